"""NVML sources: which counter and which power reading of a GPU work, found by reading them.

Nothing is decided by a product's name. The architecture only tells what
``nvmlDeviceGetPowerUsage`` means, where the fields that say so themselves are missing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from carbonlens.domain import nvml_fields
from carbonlens.domain.nvml_fields import PowerMeaning
from carbonlens.metering.devices.nvidia import Gpu
from carbonlens.metering.sensors.nvml_faults import NOT_SUPPORTED, NvmlError
from carbonlens.metering.sensors.nvml_library import Handle, Nvml, first_answer

_TIMED_READS: Final = 3
_MOST_OVER_RATED: Final = 1.5
"""Power above the limit by more than this is no power of the device's."""

_LATE_S: Final = 0.25
"""A counter read twice may show this much more time than passed: it moves in ticks."""

_LONGEST_S: Final = 10 * 365.25 * 86_400
"""No driver runs longer than ten years, so no counter holds more than that at full power."""

_UNLIMITED_W: Final = 3000.0
"""Taken as the limit of a device that states none: above any GPU made."""

_WHOLE_OVER_GPU: Final = (1.1, 5.0)
"""A module draws more than its GPU by at least this factor and these watts."""

_SUPERCHIP_MACHINES: Final = frozenset({"aarch64", "arm64"})
"""Modules that hold a processor hold an Arm one (Grace)."""


class PowerSource(msgspec.Struct, frozen=True, kw_only=True):
    """A power reading that works.

    Attributes:
        kind: Power now, or the mean of the last second.
        field: NVML field; ``None`` for ``nvmlDeviceGetPowerUsage``.
        scope: Of the field.
        cost_s: What a read takes.
        holds_cpu: Whether it is of a module with a processor.
    """

    kind: PowerMeaning
    field: int | None = None
    scope: int = nvml_fields.SCOPE_GPU
    cost_s: float = 0.0
    holds_cpu: bool = False

    def read_w(self, library: Nvml, handle: Handle) -> float:
        """Return watts.

        Raises:
            NvmlError: If it cannot be read now, or reads nothing where a device is powered.
        """
        if self.field is None:
            watts = library.power_usage_w(handle)
        else:
            watts = library.power_field_w(handle, self.field, self.scope)
        if watts <= 0:
            raise NvmlError(NOT_SUPPORTED, "power of 0 W")
        return watts

    @property
    def label(self) -> str:
        """What is read, as printed."""
        if self.field is None:
            return "PowerUsage"
        name = "POWER_INSTANT" if self.field == nvml_fields.POWER_INSTANT else "POWER_AVERAGE"
        return f"{name} of the {'module' if self.scope == nvml_fields.SCOPE_MODULE else 'board'}"


class CounterSource(msgspec.Struct, frozen=True, kw_only=True):
    """An energy counter that works.

    Attributes:
        cost_s: What a read takes.
        holds_cpu: Whether it counts a module with a processor.
    """

    cost_s: float
    holds_cpu: bool = False

    def read_j(self, library: Nvml, handle: Handle) -> float:
        """Return joules since the driver was loaded.

        Raises:
            NvmlError: If it cannot be read now.
        """
        return library.energy_j(handle)


def instant_source(library: Nvml, handle: Handle, gpu: Gpu, machine: str | None = None) -> PowerSource:
    """Return what reads a GPU's power of this moment.

    Args:
        library: NVML.
        handle: Of the GPU.
        gpu: What is known of it.
        machine: Processor architecture of the host; this one by default.

    Raises:
        NvmlError: If nothing does.
    """
    candidates = [
        PowerSource(kind="instant", field=nvml_fields.POWER_INSTANT, scope=scope)
        for scope in (nvml_fields.SCOPE_GPU, nvml_fields.SCOPE_MODULE)
    ]
    if nvml_fields.power_usage_meaning(gpu.compute_capability) == "instant":
        candidates.append(PowerSource(kind="instant"))
    return _first(library, handle, gpu, candidates, machine)


def average_source(library: Nvml, handle: Handle, gpu: Gpu, machine: str | None = None) -> PowerSource:
    """Return what reads a GPU's power as the mean of a second.

    Args:
        library: NVML.
        handle: Of the GPU.
        gpu: What is known of it; where nothing tells what ``PowerUsage`` means it is
            taken as the mean, whose interval is the wider one.
        machine: Processor architecture of the host; this one by default.

    Raises:
        NvmlError: If nothing does.
    """
    candidates = [
        PowerSource(kind="average", field=nvml_fields.POWER_AVERAGE, scope=scope)
        for scope in (nvml_fields.SCOPE_GPU, nvml_fields.SCOPE_MODULE)
    ]
    if nvml_fields.power_usage_meaning(gpu.compute_capability) != "instant":
        candidates.append(PowerSource(kind="average"))
    return _first(library, handle, gpu, candidates, machine)


def counter_source(library: Nvml, handle: Handle, gpu: Gpu, machine: str | None = None) -> CounterSource:
    """Return the energy counter of a GPU, if it counts what is possible.

    Read twice without waiting in between; the second read is timed.

    Args:
        library: NVML.
        handle: Of the GPU.
        gpu: What is known of it.
        machine: Processor architecture of the host; this one by default.

    Raises:
        NvmlError: If it cannot be read.
        OSError: If what it reads is impossible.
    """
    begin = time.perf_counter()
    first_j = library.energy_j(handle)
    middle = time.perf_counter()
    second_j = library.energy_j(handle)
    end = time.perf_counter()
    try:
        power_w = library.power_usage_w(handle)
    except OSError:
        power_w = None
    fault = counter_fault(first_j, second_j, end - begin, power_w, gpu.rated_w)
    if fault is not None:
        raise OSError(f"energy counter: {fault}")
    return CounterSource(cost_s=end - middle, holds_cpu=_module_holds_cpu(library, handle, machine))


def counter_fault(
    first_j: float, second_j: float, between_s: float, power_w: float | None, rated_w: float | None
) -> str | None:
    """Return why two readings of a counter are impossible; ``None`` when they are not.

    Args:
        first_j: Joules.
        second_j: Joules a little later.
        between_s: Seconds from before the first to after the second reading.
        power_w: Power at that time, where it is known.
        rated_w: The device's power limit, where it states one.
    """
    most_w = _MOST_OVER_RATED * max(rated_w or _UNLIMITED_W, power_w or 0.0)
    if first_j < 0 or second_j < 0 or max(first_j, second_j) > most_w * _LONGEST_S:
        return f"it reads {second_j:.3g} J, more than the device can have used"
    if second_j < first_j:
        return f"it fell by {first_j - second_j:.3g} J between two reads"
    if second_j - first_j > most_w * (between_s + _LATE_S):
        return f"it rose by {second_j - first_j:.3g} J in {between_s * 1000:.1f} ms"
    if second_j == 0 and power_w:
        return f"it reads 0 J while the device draws {power_w:.0f} W"
    return None


def _first(
    library: Nvml, handle: Handle, gpu: Gpu, candidates: Sequence[PowerSource], machine: str | None
) -> PowerSource:
    def attempt(source: PowerSource) -> Callable[[], float]:
        def read() -> float:
            watts = source.read_w(library, handle)
            if gpu.rated_w is not None and watts > _MOST_OVER_RATED * gpu.rated_w and _is_of_board(source):
                raise NvmlError(NOT_SUPPORTED, f"power of {watts:.3g} W, beyond the limit")
            return watts

        return read

    place, _ = first_answer(library, [attempt(source) for source in candidates])
    found = candidates[place]
    cost_s = min(_timed(lambda: found.read_w(library, handle)) for _ in range(_TIMED_READS))
    holds_cpu = found.scope == nvml_fields.SCOPE_MODULE and _module_holds_cpu(library, handle, machine)
    return msgspec.structs.replace(found, cost_s=cost_s, holds_cpu=holds_cpu)


def _is_of_board(source: PowerSource) -> bool:
    """Tell whether the GPU's own limit holds for it: a module draws more."""
    return source.scope == nvml_fields.SCOPE_GPU


def _module_holds_cpu(library: Nvml, handle: Handle, machine: str | None) -> bool:
    """Tell whether the GPU sits on a module with a processor that draws more than it alone.

    Only then does a counter or a module's power hold the processor's; to say so of
    another board would leave the processor out of a total.
    """
    if (machine or os.uname().machine) not in _SUPERCHIP_MACHINES:
        return False
    try:
        module_w = library.power_field_w(handle, nvml_fields.POWER_INSTANT, nvml_fields.SCOPE_MODULE)
    except OSError:
        return False
    try:
        gpu_w = library.power_field_w(handle, nvml_fields.POWER_INSTANT, nvml_fields.SCOPE_GPU)
    except OSError:
        return True
    factor, watts = _WHOLE_OVER_GPU
    return module_w > factor * gpu_w + watts


def _timed(read: Callable[[], float]) -> float:
    begin = time.perf_counter()
    read()
    return time.perf_counter() - begin
