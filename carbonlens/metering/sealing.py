"""Sealing: turn samples into the energy of a run.

One way for all: a run that ends well and one whose process was killed are sealed
by the same function, from what the journal would hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.run import HourEnergy, Reading
from carbonlens.domain.units import US_PER_S, Z_95, Boundary
from carbonlens.metering import findings
from carbonlens.metering.hours import by_hour
from carbonlens.metering.sensors import SensorInfo
from carbonlens.signals.counters import difference
from carbonlens.signals.cpu_model import MICROJOULE, CpuCurve, cpu_energy

_COMPLETE = 0.99
"""Share of the window from which a reading is taken as complete."""

_ENOUGH = 0.9
"""Share of the window below which a source gives way to a complete one of lesser grade."""

_UNDERSTOOD = {("cumulative", "J"), ("utilisation", "s")}
"""Kinds and units of readings that are turned into energy here."""

Values = tuple[float | None, ...] | None
"""One sensor's reading: a value a channel, or nothing at all."""

Step = tuple[int, int, float]
"""From, to (microseconds since the start) and what the counter gained."""


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """One look at all sensors.

    Attributes:
        t_us: Microseconds since the run's start, by the monotonic clock.
        values: One entry a sensor, in the order of the run's sensor list.
        rss_bytes: Resident memory at that moment.
    """

    t_us: int
    values: tuple[Values, ...]
    rss_bytes: int | None = None


class Sealed(msgspec.Struct, frozen=True, kw_only=True):
    """Energy of a window and what must be said about it.

    Attributes:
        cpu_s: CPU seconds in the window; ``None`` when no sensor read them.
        covered_s: Seconds of the window that every reading covers.
    """

    readings: tuple[Reading, ...]
    hours: tuple[HourEnergy, ...]
    findings: tuple[Finding, ...]
    cpu_s: float | None
    covered_s: float


class _Series(msgspec.Struct, frozen=True, kw_only=True):
    """What one channel gained, step by step, and how much of the window that covers."""

    device: str
    steps: tuple[Step, ...]
    covered_s: float

    @property
    def total(self) -> float:
        return math.fsum(step[2] for step in self.steps)


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """One component as one sensor saw it."""

    info: SensorInfo
    reading: Reading
    steps: tuple[Step, ...]
    findings: tuple[Finding, ...]


def seal(
    sensors: Sequence[SensorInfo],
    samples: Sequence[Sample],
    *,
    start_us: int,
    window_us: int,
    unmeasured: Sequence[str] = (),
    hardware: str | None = None,
) -> Sealed:
    """Turn samples into readings, hours and findings.

    Args:
        sensors: Descriptions, in the order of each sample's values.
        samples: In time order.
        start_us: UTC microseconds of the window's start.
        window_us: Length of the window.
        unmeasured: Accelerators that are present and that no sensor reads.
        hardware: Name of the machine's CPU, for messages.
    """
    window_s = window_us / US_PER_S
    parts: list[_Part] = []
    cpu_s: float | None = None
    for index, info in enumerate(sensors):
        if (info.kind, info.unit) not in _UNDERSTOOD:
            continue
        series = [_series(samples, index, k, info) for k in range(len(info.channels))]
        if info.unit == "s" and series[0].steps:
            cpu_s = series[0].total
        parts += _parts(info, series, window_s)
    chosen = _choose(parts, window_s)
    readings = [p.reading for p in chosen]
    notes = [f for p in chosen for f in (*p.findings, *_remarks(p.info, hardware))]
    notes += _passed_over(sensors, parts, chosen, window_s)
    boundary: Boundary = chosen[0].info.boundary if chosen else "it"
    if readings and boundary == "device" and all(r.component != "ram" for r in readings):
        # The boundary is the device: the package's own figure is complete without memory.
        notes.append(findings.memory_unmeasured())
    if not readings:
        readings.append(_nothing_known("cpu", "no reading", boundary))
        notes.append(findings.reading_incomplete("cpu", 0.0, window_s))
    for what in unmeasured:
        readings.append(_nothing_known("gpu", "no sensor for it", boundary, what))
        notes.append(findings.accelerator_unmeasured(what))
    return Sealed(
        readings=tuple(readings),
        hours=tuple(h for p in chosen for h in _hours(p, start_us)),
        findings=tuple(notes),
        cpu_s=cpu_s,
        covered_s=min((p.reading.covered_s or 0.0 for p in chosen), default=0.0),
    )


def _series(samples: Sequence[Sample], sensor: int, channel: int, info: SensorInfo) -> _Series:
    """Return the steps between the readings that there are; a reset is left uncovered."""
    steps: list[Step] = []
    covered_us = 0
    last: tuple[int, float] | None = None
    for sample in samples:
        values = sample.values[sensor] if sensor < len(sample.values) else None
        value = values[channel] if values is not None and channel < len(values) else None
        if value is None:
            continue
        if last is not None:
            gain = difference(last[1], value, info.channels[channel].max_range)
            if gain is not None:
                steps.append((last[0], sample.t_us, gain))
                covered_us += sample.t_us - last[0]
        last = (sample.t_us, value)
    return _Series(device=info.channels[channel].device, steps=tuple(steps), covered_s=covered_us / US_PER_S)


def _parts(info: SensorInfo, series: Sequence[_Series], window_s: float) -> list[_Part]:
    """Return the components of one sensor that gave any step."""
    made: list[_Part] = []
    for component in dict.fromkeys(c.component for c in info.channels):
        mine = [s for s, c in zip(series, info.channels, strict=True) if c.component == component]
        if not any(s.steps for s in mine):
            continue
        short = [s for s in mine if s.covered_s < _COMPLETE * window_s]
        if info.curve is not None:
            reading = _modelled(info, info.curve, component, mine)
        else:
            reading = _counted(info, component, mine, window_s)
        made.append(
            _Part(
                info=info,
                reading=msgspec.structs.replace(reading, state="unbounded") if short else reading,
                steps=tuple(step for s in mine for step in s.steps),
                findings=tuple(findings.reading_incomplete(s.device, s.covered_s, window_s) for s in short),
            )
        )
    return made


def _modelled(info: SensorInfo, curve: CpuCurve, component: str, series: Sequence[_Series]) -> Reading:
    """Return the energy of CPU time on a power curve."""
    energy = cpu_energy(math.fsum(s.total for s in series), curve)
    return Reading(
        component=component,
        energy_j=energy.energy_j,
        dynamic_j=energy.dynamic_j,
        boundary=info.boundary,
        grade=info.grade,
        method=info.method,
        u_by_source_j={curve.source_id: energy.u_j},
        covered_s=min(s.covered_s for s in series),
    )


def _counted(info: SensorInfo, component: str, series: Sequence[_Series], window_s: float) -> Reading:
    """Return the energy that counters of joules gained."""
    joules = math.fsum(s.total for s in series)
    # A value is up to one update period old at each edge, evenly: T / sqrt(12) an edge.
    edge_j = joules / window_s * info.update_period_s / math.sqrt(6) if window_s > 0 else 0.0
    return Reading(
        component=component,
        energy_j=Decimal(str(joules)).quantize(MICROJOULE),
        boundary=info.boundary,
        grade=info.grade,
        method=info.method,
        u_random_j=edge_j,
        u_by_source_j={f"sensor:{info.name}": joules * info.gain_sigma},
        devices=tuple(s.device for s in series),
        covered_s=min(s.covered_s for s in series),
    )


def _choose(parts: Sequence[_Part], window_s: float) -> list[_Part]:
    """Keep the best evidence of each component, all at the boundary of the CPU's.

    Best is the better grade, unless it covers too little of the window and the other
    covers enough: a lower bound from a tenth of the time says less than a model of
    all of it.

    A whole-server figure already holds the memory, so a memory counter of another
    boundary beside it is left out.
    """
    best: dict[str, _Part] = {}
    for part in parts:
        kept = best.get(part.reading.component)
        if kept is None or _rank(part, window_s) < _rank(kept, window_s):
            best[part.reading.component] = part
    cpu = best.get("cpu")
    if cpu is None:
        return list(best.values())
    return [cpu, *(p for c, p in best.items() if c != "cpu" and p.info.boundary == cpu.info.boundary)]


def _rank(part: _Part, window_s: float) -> tuple[bool, str]:
    return (part.reading.covered_s or 0.0) < _ENOUGH * window_s, part.info.grade


def _passed_over(
    sensors: Sequence[SensorInfo], parts: Sequence[_Part], chosen: Sequence[_Part], window_s: float
) -> list[Finding]:
    """Name the sources of better grade than the chosen, and those that cannot be used."""
    notes: list[Finding] = []
    for info in sensors:
        if (info.kind, info.unit) not in _UNDERSTOOD:
            notes.append(findings.source_not_understood(info.name, info.kind, info.unit))
            continue
        for used in chosen:
            component = used.reading.component
            if info.grade < used.info.grade and any(c.component == component for c in info.channels):
                mine = [p for p in parts if p.info is info and p.reading.component == component]
                covered_s = (mine[0].reading.covered_s or 0.0) if mine else 0.0
                notes.append(
                    findings.source_passed_over(info.name, component, covered_s, window_s, used.info.name)
                )
    return notes


def _remarks(info: SensorInfo, hardware: str | None) -> list[Finding]:
    remarks: list[Finding] = []
    if info.curve is not None and not info.curve.known:
        factor = math.exp(Z_95 * info.curve.relative_sigma)
        remarks.append(findings.unknown_cpu_family(hardware, factor))
    if info.scope == "machine":
        remarks.append(findings.whole_machine_counter(info.name))
    return remarks


def _hours(part: _Part, start_us: int) -> tuple[HourEnergy, ...]:
    energy_j = part.reading.energy_j
    if energy_j is None:
        return ()
    steps = ((start_us + a, start_us + b, gain) for a, b, gain in part.steps)
    return by_hour(part.reading.component, energy_j, steps, start_us)


def _nothing_known(component: str, method: str, boundary: Boundary, device: str | None = None) -> Reading:
    return Reading(
        component=component,
        energy_j=None,
        boundary=boundary,
        grade=None,
        method=method,
        state="unknown",
        devices=(device,) if device else (),
    )
