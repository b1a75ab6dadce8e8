"""AMD: thin access to AMD's management library through ``amdsmi``, in plain numbers.

``amdsmi`` comes with ROCm, not from us, and must fit it: an import that fails in any of
its known ways is a fault with a reason. Like NVML it is started once and never shut down,
because the work itself may use it.
"""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from carbonlens.metering.devices.visibility import amd_visible

Handle: TypeAlias = Any
"""A processor as the library hands it out."""

SENTINEL: Final = 0xFFFF
"""From here on a number of watts is the library's way to say that there is none."""

FIELDS: Final = ("current_socket_power", "average_socket_power")
"""Power now, and averaged; each product answers one of them, and ``N/A`` to the other."""

_TWO_DIES: Final = "MI250"
_MICRO: Final = 1e-6


class AmdError(OSError):
    """A call to ``amdsmi`` failed."""


class Gpu(NamedTuple):
    """One processor: a card, or a die of an MI250(X)."""

    handle: Handle
    uuid: str
    name: str


class Card(NamedTuple):
    """What has a power reading of its own: its one die, or two."""

    gpu: Gpu
    dies: int = 1


class Amd:
    """Calls the library.

    Args:
        api: An object with the functions of the module ``amdsmi``; that module by
            default, imported at the first call.
    """

    def __init__(self, api: Any = None) -> None:  # noqa: ANN401  # a module without types, or a fake of it
        """Prepare; nothing is loaded yet."""
        self._api = api
        self._errors: tuple[type[BaseException], ...] = ()
        self._started = False

    def start(self) -> None:
        """Load and start the library.

        Raises:
            AmdError: If it is not there, does not fit the driver, or finds no GPU driver.
        """
        if self._started:
            return
        if self._api is None:
            self._api = _imported()
        error = getattr(self._api, "AmdSmiException", None)
        own = (error,) if isinstance(error, type) and issubclass(error, BaseException) else ()
        # Versions differ in what they lack and in what their answers hold.
        self._errors = (*own, OSError, AttributeError, KeyError, TypeError, ValueError)
        try:
            self._api.amdsmi_init(self._api.AmdSmiInitFlags.INIT_AMD_GPUS)
        except self._errors as fault:
            raise AmdError(f"amdsmi does not start: {_words(fault)}") from fault
        self._started = True

    def gpus(self) -> list[Gpu]:
        """Return the GPUs in the order in which HIP counts them.

        Raises:
            AmdError: If they cannot be listed.
        """
        handles = self._call("amdsmi_get_processor_handles")
        found = []
        for place, handle in enumerate(handles):
            listed = self._told("amdsmi_get_gpu_enumeration_info", handle)
            node = self._told("amdsmi_get_gpu_kfd_info", handle)
            order = _whole(listed.get("hip_id"))
            if order is None:
                order = _whole(node.get("node_id"))
            found.append((place if order is None else order, place, self._gpu(handle, listed)))
        return [gpu for _, _, gpu in sorted(found, key=lambda f: f[:2])]

    def _gpu(self, handle: Handle, listed: Mapping[str, Any]) -> Gpu:
        asic = self._told("amdsmi_get_gpu_asic_info", handle)
        names = (
            listed.get("hip_uuid"),
            _by_serial(asic.get("asic_serial")),
            self._answer("amdsmi_get_gpu_device_uuid", handle),
            self._answer("amdsmi_get_gpu_device_bdf", handle),
        )
        uuid = next((str(n) for n in names if _is_text(n)), "amd-gpu")
        return Gpu(handle, uuid, str(asic.get("market_name") or "AMD GPU"))

    def energy_j(self, gpu: Gpu) -> float | None:
        """Return the energy counter; ``None`` when there is none.

        Counts times microjoules a count; versions before 6.2.1 call the counts ``power``.
        """
        told = self._told("amdsmi_get_energy_count", gpu.handle)
        counts = amount(told.get("energy_accumulator", told.get("power")))
        resolution_uj = amount(told.get("counter_resolution"))
        if counts is None or not resolution_uj:
            return None
        return counts * resolution_uj * _MICRO

    def power_w(self, gpu: Gpu, field: str) -> float | None:
        """Return watts by one of ``FIELDS``; ``None`` when the product has none there.

        A GPU that answers draws some watts: 0 is what products say that do not know.
        """
        watts = amount(self._told("amdsmi_get_power_info", gpu.handle).get(field))
        return watts if watts is not None and 0 < watts < SENTINEL else None

    def rated_w(self, gpu: Gpu) -> float | None:
        """Return the highest power that can be set; ``None`` when it is not told."""
        caps = self._told("amdsmi_get_power_cap_info", gpu.handle)
        for name in ("max_power_cap", "power_cap"):
            cap = amount(caps.get(name))
            if cap:
                return _cap_w(cap)
        return None

    def state(self, gpu: Gpu) -> tuple[float | None, float | None, float | None, float | None]:
        """Return megahertz, degrees Celsius, watts of the cap in force and bytes of memory in use.

        What the product does not tell is ``None``; the hottest spot stands for the chip's
        temperature where it is told, else the chip's edge.
        """
        clock = self._of_kind("amdsmi_get_clock_info", gpu, ("AmdSmiClkType", "GFX"))
        told = clock if isinstance(clock, Mapping) else {}
        now = ("AmdSmiTemperatureMetric", "CURRENT")
        heat = [
            amount(self._of_kind("amdsmi_get_temp_metric", gpu, ("AmdSmiTemperatureType", spot), now))
            for spot in ("HOTSPOT", "EDGE")
        ]
        cap = amount(self._told("amdsmi_get_power_cap_info", gpu.handle).get("power_cap"))
        return (
            amount(told.get("clk", told.get("cur_clk"))),
            next((degrees for degrees in heat if degrees), None),
            _cap_w(cap) if cap else None,
            amount(self._of_kind("amdsmi_get_gpu_memory_usage", gpu, ("AmdSmiMemoryType", "VRAM"))),
        )

    def _of_kind(self, function: str, gpu: Gpu, *kinds: tuple[str, str]) -> object:
        """Return what a function says of some kinds by the library's own names; ``None`` without."""
        try:
            self.start()
            return self._call(function, gpu.handle, *(getattr(getattr(self._api, c), k) for c, k in kinds))
        except (AmdError, AttributeError):
            return None

    def _told(self, function: str, handle: Handle) -> Mapping[str, Any]:
        answer = self._answer(function, handle)
        return answer if isinstance(answer, Mapping) else {}

    def _answer(self, function: str, handle: Handle) -> object:
        """Return what a function says of a GPU; ``None`` when it fails or is not there."""
        try:
            return self._call(function, handle)
        except AmdError:
            return None

    def _call(self, function: str, *arguments: Handle) -> Any:  # noqa: ANN401  # what the library answers
        self.start()
        try:
            return getattr(self._api, function)(*arguments)
        except self._errors as fault:
            raise AmdError(f"{function}: {_words(fault)}") from fault


def cards(amd: Amd, environ: Mapping[str, str]) -> list[Card]:
    """Return the cards that the work may use, each once.

    The first die of an MI250(X) reads the whole card and the second 0 or nothing (zeus
    pull request 203, ROCm/rocm_smi_lib issue 160): work on either is on that card.

    Args:
        amd: The library.
        environ: The work's environment.

    Raises:
        AmdError: If the GPUs cannot be listed.
    """
    gpus = amd.gpus()
    first = _first_dies(amd, gpus)
    chosen = dict.fromkeys(first[place] for place in amd_visible(environ, [g.uuid for g in gpus]))
    return [Card(gpus[place], first.count(place)) for place in chosen]


def _first_dies(amd: Amd, gpus: Sequence[Gpu]) -> list[int]:
    """Return for each GPU the place of the one that reads its card."""
    first: list[int] = []
    for place, gpu in enumerate(gpus):
        before = first[place - 1] if place else place
        alone = first.count(before) == 1
        is_second = (
            place > 0
            and alone
            and _TWO_DIES in gpu.name
            and gpus[before].name == gpu.name
            and all(amd.power_w(gpu, field) is None for field in FIELDS)
        )
        first.append(before if is_second else place)
    return first


def _cap_w(cap: float) -> float:
    """Return watts of a cap: microwatts in current versions, watts in those before 6."""
    return cap * _MICRO if cap > SENTINEL else cap


def amount(value: object) -> float | None:
    """Return a number as the library gives it; ``None`` for ``N/A`` and what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _by_serial(serial: object) -> str | None:
    """Return the UUID that ROCm makes of a serial number (``0x...``)."""
    if not _is_text(serial) or not str(serial).lower().startswith("0x"):
        return None
    return f"GPU-{str(serial).lower().removeprefix('0x')}"


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value.strip().upper() not in {"", "N/A"}


def _words(fault: BaseException) -> str:
    return (str(fault).strip() or type(fault).__name__).splitlines()[0]


def _imported() -> Any:  # noqa: ANN401  # a module without types
    try:
        # It prints where a library is missing, and nothing may be printed meanwhile.
        with contextlib.redirect_stdout(io.StringIO()):
            import amdsmi  # type: ignore[import-not-found, unused-ignore]  # of the driver, not of PyPI
    except ImportError as fault:
        raise AmdError("amdsmi is not installed") from fault
    except (OSError, AttributeError, KeyError) as fault:
        raise AmdError(f"amdsmi does not fit the installed ROCm: {_words(fault)}") from fault
    return amdsmi
