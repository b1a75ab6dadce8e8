"""NVML: energy counter and power of NVIDIA GPUs (grades B and C).

All GPUs that the work may use are read, each as a whole; MIG instances are billed a
share of their GPU. A counter that falls because the driver was reloaded is handed on
as it reads: sealing takes it as a reset.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

import msgspec

from carbonlens.domain import nvml_fields
from carbonlens.domain.grades import COUNTER_GAIN_95
from carbonlens.domain.units import Z_95
from carbonlens.metering.devices.nvidia import Gpu, Selection, VisibleGpus
from carbonlens.metering.sensors import Channel, Kind, Probe, SensorInfo
from carbonlens.metering.sensors.nvml_device import DeviceLine
from carbonlens.metering.sensors.nvml_faults import NvmlError
from carbonlens.metering.sensors.nvml_library import Handle, Nvml
from carbonlens.metering.sensors.nvml_sources import (
    CounterSource,
    PowerSource,
    average_source,
    counter_source,
    instant_source,
)
from carbonlens.metering.sensors.nvml_ticks import Ticks

S = TypeVar("S", CounterSource, PowerSource)

_GAIN_SIGMA: Final = COUNTER_GAIN_95 / Z_95
_READ_SHARE: Final = 0.0004
"""Share of one core that reads between the edges may take: 4 ms each 10 s."""

_CHEAP_S: Final = 0.00002
"""A read of this cost or less is done at every look."""

_LONGEST_REST_S: Final = 60.0


class _NvmlSensor:
    """What the NVML sensors share: one channel a GPU that can be read so.

    Args:
        gpus: The GPUs of the work.
        clock: Seconds of a monotonic clock.
    """

    may_block = True
    _longest_rest_s = 0.2
    """Power that is read less often than this would leave holes."""

    def __init__(self, gpus: VisibleGpus, clock: Callable[[], float] = time.monotonic) -> None:
        self.rest_s = 0.0
        self.unread: dict[str, OSError] = {}
        """Why a GPU of the work cannot be read so, by UUID."""
        self._gpus = gpus
        self._clock = clock
        self._read: list[tuple[Gpu, CounterSource | PowerSource]] = []
        self._lines: list[DeviceLine[float]] = []

    def probe(self) -> Probe:
        """Read each GPU once or twice."""
        self._read, self._lines, self.unread = [], [], {}
        try:
            selection = self._gpus.look()
        except OSError as error:
            return Probe(usable=False, found="no NVIDIA GPU", reason=_said(error), mend=_mend(error))
        if not selection.gpus:
            return Probe(usable=False, found=_listed(selection), reason=_why_none(selection))
        for gpu in self._wanted(selection):
            try:
                source = self._source_of(gpu)
            except OSError as error:
                self.unread[gpu.uuid] = error
            else:
                self._read.append((gpu, source))
                self._lines.append(self._line(gpu.uuid, source))
        self.rest_s = min(rest_s(sum(source.cost_s for _, source in self._read)), self._longest_rest_s)
        return self._probed(selection)

    def read(self, *, edge: bool) -> tuple[float | None, ...]:
        """Return one value a GPU; ``None`` for one that cannot be read now.

        Raises:
            OSError: If no GPU can be read.
        """
        values = tuple([line.read(edge=edge) for line in self._lines])
        if values.count(None) == len(values):
            fault = next((line.fault for line in self._lines if line.fault is not None), None)
            raise OSError(str(fault or "no GPU to read"))
        return values

    def close(self) -> None:
        """Do nothing: the library stays for others, and nothing else was opened."""

    def _wanted(self, selection: Selection) -> tuple[Gpu, ...]:
        return selection.gpus

    def _source_of(self, gpu: Gpu) -> CounterSource | PowerSource:
        raise NotImplementedError

    def _line(self, uuid: str, source: CounterSource | PowerSource) -> DeviceLine[float]:
        library = self._gpus.library
        read = source.read_j if isinstance(source, CounterSource) else source.read_w
        return DeviceLine(library, uuid, partial(read, library), self._clock)

    def _found(self, what: str, gpu: Gpu, find: Callable[[Nvml, Handle, Gpu], S]) -> S:
        """Return a source, found once a process."""
        library = self._gpus.library
        return self._gpus.remembered(what, gpu.uuid, lambda: find(library, library.handle(gpu.uuid), gpu))

    def _channels(self) -> tuple[Channel, ...]:
        return tuple(
            Channel(
                device=gpu.uuid,
                component="total" if source.holds_cpu else "gpu",
                rated_w=gpu.rated_w if not _is_module(source) else None,
                part=gpu.part,
            )
            for gpu, source in self._read
        )

    def _power_info(self, name: str, kind: Kind, what: str) -> SensorInfo:
        """Return what both power sensors have in common."""
        return SensorInfo(
            name=name,
            kind=kind,
            unit="W",
            scope="module" if self._scope_is_module else "board",
            boundary="device",
            grade="C",
            update_period_s=nvml_fields.UPDATE_PERIOD_S,
            channels=self._channels(),
            method=f"NVML {what} ({_labels(self._read)})",
            gain_sigma=_GAIN_SIGMA,
        )

    @property
    def _scope_is_module(self) -> bool:
        return bool(self._read) and all(_is_module(source) for _, source in self._read)

    def _probed(self, selection: Selection) -> Probe:
        reasons = "; ".join(f"{uuid[:12]}: {_said(error)}" for uuid, error in self.unread.items())
        mend = next((m for m in map(_mend, self.unread.values()) if m), None)
        if not self._read:
            return Probe(usable=False, found=_listed(selection), reason=reasons or "not needed", mend=mend)
        cost_ms = 1000 * sum(source.cost_s for _, source in self._read)
        scope = "module" if self._scope_is_module else "board"
        found = (
            f"{', '.join(gpu.label for gpu, _ in self._read)}; {scope}, "
            f"changes every {nvml_fields.UPDATE_PERIOD_S:g} s, a read takes {cost_ms:.2g} ms; "
            f"driver {selection.driver or '?'}"
        )
        return Probe(usable=True, found=found, reason=reasons or None, mend=mend)


class NvmlEnergySensor(_NvmlSensor):
    """Reads the energy counters (Volta and newer; on a superchip, of the module).

    Args:
        gpus: The GPUs of the work.
        clock: Seconds of a monotonic clock.
    """

    _longest_rest_s = math.inf

    @property
    def info(self) -> SensorInfo:
        """Describe the readings."""
        return SensorInfo(
            name="nvml_energy",
            kind="cumulative",
            unit="J",
            scope="module" if self._scope_is_module else "board",
            boundary="device",
            grade="B",
            update_period_s=nvml_fields.UPDATE_PERIOD_S,
            channels=self._channels(),
            method="NVML energy counter"
            + (" of the module" if self._scope_is_module else "")
            + ", carried on to the moment of reading where its tick is known",
            gain_sigma=_GAIN_SIGMA,
            lag_s=nvml_fields.COUNTER_LAG_S,
            lag_sigma_s=nvml_fields.COUNTER_LAG_SIGMA_S,
        )

    def _source_of(self, gpu: Gpu) -> CounterSource:
        return self._found("counter", gpu, counter_source)

    def _line(self, uuid: str, source: CounterSource | PowerSource) -> DeviceLine[float]:
        del source  # there is but one counter
        return DeviceLine(self._gpus.library, uuid, _CarriedOn(self, uuid), self._clock)

    def _ticks(self, uuid: str) -> Ticks:
        """Return the phase of a GPU's counter, one a process."""
        library = self._gpus.library
        return self._gpus.remembered(
            "ticks", uuid, lambda: Ticks(lambda: library.energy_j(library.handle(uuid)), self._clock)
        )

    def power_w(self, uuid: str) -> float | None:
        """Return the power of the moment, for a reading to be carried on by; ``None`` without."""
        library = self._gpus.library
        gpu = next(g for g, _ in self._read if g.uuid == uuid)
        try:
            return self._found("instant", gpu, instant_source).read_w(library, library.handle(uuid))
        except OSError:
            return None


class _CarriedOn:
    """Reads one counter and adds what was drawn since it moved, if that is known from the start."""

    def __init__(self, sensor: NvmlEnergySensor, uuid: str) -> None:
        self._sensor = sensor
        self._uuid = uuid
        self._last: tuple[float, float] | None = None
        self._carries: bool | None = None

    def __call__(self, handle: Handle) -> float:
        ticks = self._sensor._ticks(self._uuid)
        told_j = self._sensor._gpus.library.energy_j(handle)
        age_s = ticks.age_s()
        if age_s is None:
            ticks.look_beside()
        if self._carries is None:
            # Carried on at one edge alone, a window would seem up to a tick longer.
            self._carries = age_s is not None
        watts = self._sensor.power_w(self._uuid) if self._carries and age_s is not None else None
        joules = told_j if watts is None else told_j + (age_s or 0.0) * watts
        if self._last is not None and told_j >= self._last[0]:
            # Carried on too far before: a counter that did not fall must not seem to.
            joules = max(joules, self._last[1])
        self._last = (told_j, joules)
        return joules


class NvmlPowerSensor(_NvmlSensor):
    """Reads the power of the moment: the field ``POWER_INSTANT``, or ``PowerUsage`` where it is that.

    Args:
        gpus: The GPUs of the work.
        clock: Seconds of a monotonic clock.
    """

    @property
    def info(self) -> SensorInfo:
        """Describe the readings."""
        return msgspec.structs.replace(
            self._power_info("nvml_power", "instant", "power now"),
            lag_s=nvml_fields.INSTANT_LAG_S,
            lag_sigma_s=nvml_fields.INSTANT_LAG_SIGMA_S,
            duty=nvml_fields.MODULE_DUTY if self._on_superchip else nvml_fields.INSTANT_DUTY,
        )

    @property
    def _on_superchip(self) -> bool:
        return any(_is_module(source) or source.holds_cpu for _, source in self._read)

    def _source_of(self, gpu: Gpu) -> PowerSource:
        return self._found("instant", gpu, instant_source)


class NvmlAverageSensor(_NvmlSensor):
    """Reads the mean power of the last second, of GPUs that do not tell that of the moment.

    Args:
        gpus: The GPUs of the work.
        clock: Seconds of a monotonic clock.
    """

    @property
    def info(self) -> SensorInfo:
        """Describe the readings."""
        return msgspec.structs.replace(
            self._power_info("nvml_average", "average", "power, mean of 1 s"),
            window_s=nvml_fields.AVERAGE_WINDOW_S,
            lag_s=nvml_fields.COUNTER_LAG_S,
            lag_sigma_s=nvml_fields.AVERAGE_LAG_SIGMA_S,
        )

    def _wanted(self, selection: Selection) -> tuple[Gpu, ...]:
        return tuple(gpu for gpu in selection.gpus if not self._tells_now(gpu))

    def _tells_now(self, gpu: Gpu) -> bool:
        try:
            self._found("instant", gpu, instant_source)
        except OSError:
            return False
        return True

    def _source_of(self, gpu: Gpu) -> PowerSource:
        return self._found("average", gpu, average_source)


def rest_s(cost_s: float) -> float:
    """Return how long to leave a source alone between the edges of a window.

    Args:
        cost_s: What one read of all its devices takes.
    """
    return 0.0 if cost_s <= _CHEAP_S else min(cost_s / _READ_SHARE, _LONGEST_REST_S)


def _is_module(source: CounterSource | PowerSource) -> bool:
    if isinstance(source, CounterSource):
        return source.holds_cpu
    return source.scope == nvml_fields.SCOPE_MODULE


def _labels(read: list[tuple[Gpu, CounterSource | PowerSource]]) -> str:
    return ", ".join(dict.fromkeys(s.label for _, s in read if isinstance(s, PowerSource)))


def _listed(selection: Selection) -> str:
    if not selection.gpus:
        return f"{selection.present} NVIDIA GPUs, none of them the work's"
    return ", ".join(gpu.label for gpu in selection.gpus)


def _why_none(selection: Selection) -> str:
    if not selection.present:
        return "the driver lists no GPU"
    return "CUDA_VISIBLE_DEVICES, a container or a cgroup keeps all of them from the work"


def _said(error: OSError) -> str:
    return str(error)


def _mend(error: OSError) -> str | None:
    return error.mend if isinstance(error, NvmlError) else None
