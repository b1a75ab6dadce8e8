"""NVML: thin typed access to NVIDIA's management library through ``pynvml``.

The library is started once a process and never shut down: others in the process (the
work itself, other meters) may use it too, a second start would cost each session a
few milliseconds, and the driver gives everything back when the process ends. A forked
child starts it anew.

Every fault becomes an ``NvmlError``, an ``OSError`` with a reason and one safe mend.
Calls may block in the driver.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from carbonlens.domain.nvml_fields import GPM_GRAPHICS_UTIL
from carbonlens.metering.sensors.nvml_faults import (
    FUNCTION_NOT_FOUND,
    LIBRARY_NOT_FOUND,
    NOT_FOUND,
    NOT_SUPPORTED,
    UNINITIALIZED,
    NvmlError,
)

Handle: TypeAlias = Any
"""A device or MIG instance as the library hands it out."""

T = TypeVar("T")

_THERMAL: Final = 1
"""NVML_PERF_POLICY_THERMAL (nvml.h)."""


class Busy(NamedTuple):
    """What one process did: pid, microseconds (CPU clock) and percent of the time."""

    pid: int
    t_us: int
    percent: float


_LIMITS: Final = tuple(
    f"nvmlDeviceGet{which}Limit" for which in ("EnforcedPower", "PowerManagement", "PowerManagementDefault")
)


class Nvml:
    """Calls the library, in plain numbers and texts.

    Args:
        api: An object with the functions of the module ``pynvml``; that module by
            default, imported at the first call.
    """

    def __init__(self, api: Any = None) -> None:  # noqa: ANN401  # a module without types, or a fake of it
        """Prepare; nothing is loaded yet."""
        self._api = api
        self._lock = threading.Lock()
        self._started_by: int | None = None
        self._errors: tuple[type[BaseException], ...] = ()

    def start(self, *, again: bool = False) -> None:
        """Load and start the library, once a process.

        Args:
            again: Also when it was started, because other code shut it down.

        Raises:
            NvmlError: If there is no library or no driver.
        """
        if self._started_by == os.getpid() and not again:
            return
        with self._lock:
            if self._started_by == os.getpid() and not again:
                return
            if self._api is None:
                self._api = _pynvml()
            self._errors = _error_classes(self._api)
            self._started_by = None
            self._call("starting NVML", "nvmlInit")
            self._started_by = os.getpid()

    def driver_version(self) -> str | None:
        """Return the driver's version; ``None`` when it does not say."""
        try:
            return _text(self._ask("driver version", "nvmlSystemGetDriverVersion"))
        except OSError:
            return None

    def handles(self) -> list[Handle]:
        """Return a handle for each GPU, in PCI order; ``None`` for one that does not answer.

        Raises:
            NvmlError: If the library cannot be started, or no GPU of those there are answers.
        """
        found: list[Handle] = []
        fault: NvmlError | None = None
        for index in range(self._ask("number of GPUs", "nvmlDeviceGetCount")):
            try:
                found.append(self._ask(f"GPU {index}", "nvmlDeviceGetHandleByIndex", index))
            except NvmlError as error:
                fault = error
                found.append(None)
        if fault is not None and all(handle is None for handle in found):
            raise fault
        return found

    def handle(self, uuid: str) -> Handle:
        """Return the handle of a GPU, also one that was lost and is back.

        Raises:
            NvmlError: If it is not there.
        """
        try:
            return self._ask(uuid, "nvmlDeviceGetHandleByUUID", uuid)
        except NvmlError as fault:
            if fault.code != UNINITIALIZED:
                raise
        self.start(again=True)
        return self._ask(uuid, "nvmlDeviceGetHandleByUUID", uuid)

    def uuid(self, handle: Handle) -> str:
        """Return the UUID of a GPU or a MIG instance.

        Raises:
            NvmlError: If it does not answer.
        """
        return _text(self._ask("UUID", "nvmlDeviceGetUUID", handle))

    def name(self, handle: Handle) -> str:
        """Return the product's name; an empty text when it does not say."""
        try:
            return _text(self._ask("name", "nvmlDeviceGetName", handle))
        except OSError:
            return ""

    def minor(self, handle: Handle) -> int | None:
        """Return the number of the device file; ``None`` when there is none."""
        return self._number("nvmlDeviceGetMinorNumber", handle)

    def rated_w(self, handle: Handle) -> float | None:
        """Return the highest power limit that can be set in watts; ``None`` when the device does not say.

        The limit in force may be raised while a run goes on. Where the board tells no bound
        of it, the highest of its limits stands in.
        """
        told = [self._number(function, handle) for function in _LIMITS]
        with suppress(OSError, TypeError):
            told += self._ask("power limits", "nvmlDeviceGetPowerManagementLimitConstraints", handle)
        return max((limit / 1000 for limit in told if limit), default=None)

    def compute_capability(self, handle: Handle) -> tuple[int, int] | None:
        """Return major and minor of the architecture; ``None`` when it does not say."""
        try:
            major, minor = self._ask("architecture", "nvmlDeviceGetCudaComputeCapability", handle)
        except OSError:
            return None
        return int(major), int(minor)

    def energy_j(self, handle: Handle) -> float:
        """Return the energy counter in joules (NVML counts millijoules in 64 bits).

        Raises:
            NvmlError: If it cannot be read now.
        """
        return float(self._ask("energy counter", "nvmlDeviceGetTotalEnergyConsumption", handle)) / 1000

    def power_usage_w(self, handle: Handle) -> float:
        """Return ``nvmlDeviceGetPowerUsage`` in watts, whatever it means on this device.

        Raises:
            NvmlError: If it cannot be read now.
        """
        return float(self._ask("power", "nvmlDeviceGetPowerUsage", handle)) / 1000

    def power_field_w(self, handle: Handle, field: int, scope: int) -> float:
        """Return a power field of one scope in watts.

        Raises:
            NvmlError: If the device does not offer it or cannot be read now.
        """
        what = f"power field {field} of scope {scope}"
        value = self._ask(what, "nvmlDeviceGetFieldValues", handle, [(field, scope)])[0]
        if value.nvmlReturn != 0:
            raise NvmlError(int(value.nvmlReturn), what)
        return float(value.value.uiVal) / 1000

    def slowed_by_heat_s(self, handle: Handle) -> float:
        """Return for how long heat has held the clocks down so far (NVML counts nanoseconds).

        Raises:
            NvmlError: If the device does not tell.
        """
        told = self._ask("time slowed by heat", "nvmlDeviceGetViolationStatus", handle, _THERMAL)
        return float(told.violationTime) / 1e9

    def state(self, handle: Handle, function: str, *which: int) -> Any:  # noqa: ANN401  # as in ``_ask``
        """Return what one function tells of a device's state (``sensors.gpu_state``).

        Raises:
            NvmlError: If the device does not tell.
        """
        return self._ask(function, function, handle, *which)

    def is_divided(self, handle: Handle) -> bool:
        """Tell whether MIG is on."""
        try:
            current, _ = self._ask("MIG mode", "nvmlDeviceGetMigMode", handle)
        except OSError:
            return False
        return int(current) == 1

    def instances(self, handle: Handle) -> tuple[list[Handle], int | None]:
        """Return the MIG instances this process is shown, and how many the device can hold."""
        most = self._number("nvmlDeviceGetMaxMigDeviceCount", handle)
        found: list[Handle] = []
        for index in range(most or 0):
            try:
                found.append(self._ask("MIG", "nvmlDeviceGetMigDeviceHandleByIndex", handle, index))
            except OSError:
                continue  # places without an instance, or with one that is not ours, answer NotFound
        return found, most

    def instance_ids(self, handle: Handle) -> tuple[int | None, int | None]:
        """Return GPU instance and compute instance id of a MIG instance."""
        return (
            self._number("nvmlDeviceGetGpuInstanceId", handle),
            self._number("nvmlDeviceGetComputeInstanceId", handle),
        )

    def compute_slices(self, handle: Handle) -> int | None:
        """Return how many compute slices a MIG instance has; ``None`` when it does not say."""
        for function in ("nvmlDeviceGetAttributes_v2", "nvmlDeviceGetAttributes"):
            try:
                slices = int(self._ask("MIG size", function, handle).computeInstanceSliceCount)
            except (OSError, AttributeError):
                continue
            return slices or None
        return None

    def busy(self, handle: Handle, since_us: int) -> list[Busy]:
        """Return what each process did since a time; nobody, where none did anything.

        Raises:
            NvmlError: If the device does not tell.
        """
        try:
            samples = self._ask("process use", "nvmlDeviceGetProcessUtilization", handle, since_us)
        except NvmlError as fault:
            # "Not found" is the answer when nobody was active; code 0 is pynvml's for an empty list.
            if fault.code in {0, NOT_FOUND}:
                return []
            raise
        return [Busy(int(s.pid), int(s.timeStamp), float(s.smUtil)) for s in samples if s.pid]

    def pids(self, handle: Handle) -> list[int]:
        """Return the processes that have a context on the device; none when it does not tell."""
        for function in ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetComputeRunningProcesses_v3"):
            try:
                return [int(p.pid) for p in self._ask("processes", function, handle)]
            except OSError:
                continue
        return []

    def instance_sample(self, handle: Handle, gpu_instance: int) -> Handle:
        """Take a sample of one MIG instance's performance counters, to be freed by ``free``.

        Raises:
            NvmlError: If the device does not offer it (before Hopper) or forbids it.
        """
        sample = self._ask("performance sample", "nvmlGpmSampleAlloc")
        try:
            self._ask("performance sample", "nvmlGpmMigSampleGet", handle, gpu_instance, sample)
        except NvmlError:
            self.free(sample)
            raise
        return sample

    def active_percent(self, first: Handle, second: Handle) -> float:
        """Return how much of the time between two samples any work was active, in percent.

        Raises:
            NvmlError: If it cannot be told.
        """
        wanted = self._ask("performance metrics", "c_nvmlGpmMetricsGet_t")
        wanted.version = getattr(self._api, "NVML_GPM_METRICS_GET_VERSION", 1)
        wanted.numMetrics = 1
        wanted.sample1, wanted.sample2 = first, second
        wanted.metrics[0].metricId = GPM_GRAPHICS_UTIL
        self._ask("performance metrics", "nvmlGpmMetricsGet", wanted)
        if wanted.metrics[0].nvmlReturn != 0:
            raise NvmlError(int(wanted.metrics[0].nvmlReturn), "graphics activity")
        return float(wanted.metrics[0].value)

    def free(self, sample: Handle) -> None:
        """Give a performance sample back."""
        try:
            self._ask("performance sample", "nvmlGpmSampleFree", sample)
        except OSError:
            return  # it is the driver's loss alone

    def _number(self, function: str, handle: Handle) -> int | None:
        try:
            return int(self._ask(function, function, handle))
        except OSError:
            return None

    def _ask(self, what: str, function: str, *args: object) -> Any:  # noqa: ANN401  # the library has no types
        if self._started_by != os.getpid():
            self.start()
        return self._call(what, function, *args)

    def _call(self, what: str, function: str, *args: object) -> Any:  # noqa: ANN401  # as above
        called = getattr(self._api, function, None)
        if called is None:
            raise NvmlError(FUNCTION_NOT_FOUND, what)  # another release of pynvml
        try:
            return called(*args)
        except self._errors as error:
            raise NvmlError(int(getattr(error, "value", FUNCTION_NOT_FOUND)), what) from error


def process_nvml() -> Nvml:
    """Return this process's own access to the library; a forked child gets one of its own."""
    return _nvml_of(os.getpid())


@lru_cache(maxsize=1)
def _nvml_of(pid: int) -> Nvml:
    del pid  # only the key: a lock that another thread held at the fork stays locked in the child
    return Nvml()


def retried(library: Nvml, what: Callable[[], T]) -> T:
    """Return what a call gives, starting the library anew if other code shut it down.

    Raises:
        NvmlError: If it fails for another reason, or again.
    """
    try:
        return what()
    except NvmlError as fault:
        if fault.code != UNINITIALIZED:
            raise
    library.start(again=True)
    return what()


def first_answer(library: Nvml, attempts: Sequence[Callable[[], T]]) -> tuple[int, T]:
    """Return the place and the answer of the first attempt that succeeds.

    Raises:
        NvmlError: That of the first attempt, if none does.
    """
    first: NvmlError | None = None
    for place, attempt in enumerate(attempts):
        try:
            return place, retried(library, attempt)
        except NvmlError as fault:
            first = first or fault
    raise first or NvmlError(NOT_SUPPORTED, "nothing to ask for")


def _pynvml() -> Any:  # noqa: ANN401  # the module has no types
    try:
        import pynvml
    except ImportError as error:
        raise NvmlError(LIBRARY_NOT_FOUND, "importing pynvml (package nvidia-ml-py)") from error
    return pynvml


def _error_classes(api: Any) -> tuple[type[BaseException], ...]:  # noqa: ANN401  # as above
    names = ("NVMLError", "NVMLLibraryMismatchError")
    return tuple(c for c in (getattr(api, name, None) for name in names) if c is not None)


def _text(value: str | bytes) -> str:
    """Return a text of any release: old ones give bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
