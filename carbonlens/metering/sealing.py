"""Sealing: turn samples into the energy of a run.

One way for all: a run that ends well and one whose process was killed are sealed
by the same functions, from what the journal would hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.run import HourEnergy, Reading
from carbonlens.domain.units import US_PER_S, Z_95, Boundary
from carbonlens.metering import findings
from carbonlens.metering.choice import ENOUGH_SHARE, WHOLES, Choice, choose
from carbonlens.metering.gained import Gained
from carbonlens.metering.hours import by_hour
from carbonlens.metering.parts import Part, parts_of, shares_of
from carbonlens.metering.plausible import AT_FAULT
from carbonlens.metering.sensors import Channel, SensorInfo
from carbonlens.metering.tally import Tally, is_understood

Values = tuple[float | None, ...] | None
"""One sensor's reading: a value a channel, nothing when it was not asked, ``None`` when it failed."""

_OWN_SHARE_OF_NOTE: Final = 0.99
"""Share of a device's activity below which others are said to have used it too."""

_DECLARED: Final = frozenset({"external", "ipmi", "redfish", "powermetrics", "datasheet"})
"""Sensors that a user declares: one that is not in the total is named, whatever the reason."""


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """One look at the sensors.

    Attributes:
        t_us: Microseconds since the run's start, by the monotonic clock.
        values: One entry a sensor, in the order of the run's sensor list.
        rss_bytes: Resident memory at that moment.
        skew_us: When each sensor was read, from ``t_us`` on; ``None`` when all
            were within a millisecond.
    """

    t_us: int
    values: tuple[Values, ...]
    rss_bytes: int | None = None
    skew_us: tuple[int, ...] | None = None


class Sealed(msgspec.Struct, frozen=True, kw_only=True):
    """Energy of a window and what must be said about it.

    Attributes:
        readings: Whose sum is the run's energy.
        beside: Evidence that is not summed.
        cpu_s: CPU seconds in the window; ``None`` when no sensor read them.
        covered_s: Seconds of the window that every reading covers.
        devices: Stable ids of the accelerators read.
        parts: What the first of the readings were made from, in their order.
    """

    readings: tuple[Reading, ...]
    beside: tuple[Reading, ...] = ()
    hours: tuple[HourEnergy, ...]
    findings: tuple[Finding, ...]
    cpu_s: float | None
    covered_s: float
    devices: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()


def tallied(tally: Tally, sample: Sample) -> None:
    """Put a sample into a tally."""
    tally.take(sample.t_us, sample.values, sample.skew_us or ())


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
    tally = Tally(sensors)
    for sample in samples:
        tallied(tally, sample)
    return seal_tally(tally, start_us=start_us, window_us=window_us, unmeasured=unmeasured, hardware=hardware)


def seal_tally(
    tally: Tally,
    *,
    start_us: int,
    window_us: int,
    unmeasured: Sequence[str] = (),
    hardware: str | None = None,
    goes_on: bool = False,
) -> Sealed:
    """Turn what was tallied into readings, hours and findings; arguments as of ``seal``.

    With ``goes_on`` it is what there is so far, and the tally stays open.
    """
    window_s = window_us / US_PER_S
    sensors = tally.infos
    gained = tally.so_far(window_us) if goes_on else tally.finish(window_us)
    shares = shares_of(sensors, gained)
    parts = [
        part
        for info, mine in zip(sensors, gained, strict=True)
        if is_understood(info) and info.kind != "use"
        for part in parts_of(info, mine, window_s, shares)
    ]
    found = choose(parts, window_s)
    readings = [p.reading for p in found.energy]
    notes = [f for p in found.energy for f in p.findings]
    notes += _remarks(found.energy, hardware)
    notes += _passed_over(sensors, parts, found, window_s)
    notes += _at_fault(sensors, gained)
    notes += found.findings
    silent = _silent(found, sensors)
    more, said = _unknown(found, window_s, unmeasured, silent)
    return Sealed(
        readings=(*readings, *more),
        beside=tuple(p.reading for p in found.beside),
        hours=_added([h for p in found.energy for h in _hours(p, start_us)]),
        findings=(*_once(notes), *said),
        cpu_s=_cpu_s(sensors, gained),
        # Of a device that should have told something and did not, all the time was lost.
        covered_s=0.0 if silent else min((p.covered_s for p in found.energy), default=0.0),
        devices=tuple(
            dict.fromkeys(p.device for p in (*found.energy, *found.beside) if p.component in {"gpu", "npu"})
        ),
        parts=found.energy,
    )


def _at_fault(sensors: Sequence[SensorInfo], gained: Sequence[Sequence[Gained]]) -> list[Finding]:
    """Return what must be said of devices of which no reading can be true."""
    return [
        msgspec.structs.replace(f, message=f"{channel.device}: {f.message}")
        for info, mine in zip(sensors, gained, strict=True)
        for channel, gain in zip(info.channels, mine, strict=True)
        for f in gain.findings
        if gain.amount is None and f.code == AT_FAULT
    ]


def _cpu_s(sensors: Sequence[SensorInfo], gained: Sequence[Sequence[Gained]]) -> float | None:
    for info, mine in zip(sensors, gained, strict=True):
        if info.kind == "utilisation" and info.channels[0].component == "cpu":
            return mine[0].amount
    return None


def _unknown(
    found: Choice, window_s: float, unmeasured: Sequence[str], silent: Sequence[Channel]
) -> tuple[list[Reading], list[Finding]]:
    """Return a reading of nothing known for each thing that is there and has no figure."""
    readings: list[Reading] = []
    notes: list[Finding] = []
    whole = any(p.component == "wall" for p in found.energy)
    if not found.energy:
        readings.append(_nothing_known("cpu", "no reading", found.boundary))
        notes.append(findings.reading_incomplete("cpu", 0.0, window_s))
    elif found.boundary == "device" and not _holds_memory(found):
        # The boundary is the device: the package's own figure is complete without memory.
        notes.append(findings.memory_unmeasured())
    for component in found.missing:
        readings.append(_nothing_known(component, "known at another boundary only", found.boundary))
        notes.append(findings.at_another_boundary(component, found.boundary))
    for channel in silent:
        readings.append(_nothing_known(channel.component, "no reading", found.boundary, channel.device))
        notes.append(findings.reading_incomplete(channel.device, 0.0, window_s))
    for what in () if whole else unmeasured:
        readings.append(_nothing_known("gpu", "no sensor for it", found.boundary, what))
        notes.append(findings.accelerator_unmeasured(what))
    return readings, notes


def _silent(found: Choice, sensors: Sequence[SensorInfo]) -> list[Channel]:
    """Return devices that a sensor should have told of and none did.

    Processors and memory are read by one sensor alone; where another stands in for
    it, nothing is missing; nor is it within what a meter at the wall holds. One of two
    rails at the wall is missing.
    """
    whole = any(p.component == "wall" for p in found.energy)
    seen = {p.device for p in (*found.energy, *found.beside)}
    used = {(p.component, p.info.name) for p in found.energy}
    silent: dict[str, Channel] = {}
    for info in sensors:
        for channel in info.channels if info.kind != "use" else ():
            awaited = (channel.component, info.name) in used or (
                channel.component in {"gpu", "npu"} and not whole
            )
            if awaited and channel.device not in seen:
                silent.setdefault(channel.device, channel)
    return list(silent.values())


def _holds_memory(found: Choice) -> bool:
    return any(p.component in {"ram", "total", "wall"} for p in found.energy)


def _passed_over(
    sensors: Sequence[SensorInfo], parts: Sequence[Part], found: Choice, window_s: float
) -> list[Finding]:
    """Name the sources of better grade than the chosen, the declared ones, and those of no use."""
    notes: list[Finding] = []
    for info in sensors:
        if not is_understood(info):
            notes.append(findings.source_not_understood(info.name, info.kind, info.unit))
            continue
        said = _left_beside(info, parts, found, window_s)
        notes += said
        for used in found.energy if not said else ():
            if used.info is info or info.kind == "use" or not _is_better(info, used):
                continue
            mine = [p for p in parts if p.info is info and p.component == used.component]
            covered_s = mine[0].covered_s if mine else 0.0
            if info.kind == "cumulative" and info.unit == "J" and window_s < info.update_period_s:
                notes.append(
                    findings.within_a_step(
                        info.name, used.component, window_s, info.update_period_s, used.info.name
                    )
                )
                continue
            if covered_s >= used.covered_s:
                continue  # It was complete, and left for a wider interval.
            notes.append(
                findings.source_passed_over(info.name, used.component, covered_s, window_s, used.info.name)
            )
    # What is said of a reading at fault is said although another stands in for it.
    return notes + [f for p in found.beside if p.reading.energy_j is None for f in p.findings]


def _left_beside(info: SensorInfo, parts: Sequence[Part], found: Choice, window_s: float) -> list[Finding]:
    """Name a declared source, or a meter of all the machine or module, that is not in the total."""
    declared = info.name.partition(":")[0] in _DECLARED
    component = next((c.component for c in info.channels if declared or c.component in WHOLES), None)
    if component is None or not found.energy or any(p.info is info for p in found.energy):
        return []
    used = next((p for p in found.energy if p.component == component), found.energy[0])
    if used.component == WHOLES[0] and not declared:
        return []  # The meter at the plug holds it.
    told = [
        p for p in parts if p.info is info and p.component == component and p.reading.energy_j is not None
    ]
    covered_s = max((p.covered_s for p in told), default=0.0)
    if covered_s < ENOUGH_SHARE * window_s:
        return [findings.source_passed_over(info.name, component, covered_s, window_s, used.info.name)]
    return [findings.source_beside(info.name, component, used.info.name)] if declared else []


def _is_better(info: SensorInfo, used: Part) -> bool:
    same = [c for c in info.channels if c.component == used.component]
    if used.component not in {"cpu", "ram"}:
        same = [c for c in same if c.device == used.device]
    return bool(same) and info.grade < used.info.grade


def _remarks(chosen: Sequence[Part], hardware: str | None) -> list[Finding]:
    remarks: list[Finding] = []
    for part in chosen:
        info, reading = part.info, part.reading
        curve = info.curve if reading.boundary == info.boundary else info.device_curve
        if curve is None and info.kind == "utilisation":
            remarks.append(findings.no_power_figure(part.component))
        elif curve is not None and not curve.known and part.component == "cpu":
            factor = math.exp(Z_95 * curve.relative_sigma)
            remarks.append(findings.unknown_cpu_family(hardware, factor))
        if info.scope == "machine" or info.whole_machine:
            remarks.append(findings.whole_machine_counter(info.name, part.component))
        if reading.own_share is not None and reading.own_share < _OWN_SHARE_OF_NOTE and not reading.divided:
            remarks.append(findings.device_shared(part.device, reading.own_share))
    return remarks


def _once(notes: Sequence[Finding]) -> list[Finding]:
    return list(dict.fromkeys(notes))


def _hours(part: Part, start_us: int) -> tuple[HourEnergy, ...]:
    energy_j = part.reading.energy_j
    if energy_j is None:
        return ()
    steps = ((start_us + a, start_us + b, gain) for a, b, gain in part.steps)
    return by_hour(part.component, energy_j, steps, start_us)


def _added(rows: Sequence[HourEnergy]) -> tuple[HourEnergy, ...]:
    """Return one row an hour and component: several devices of one component add up."""
    sums: dict[tuple[str, int], HourEnergy] = {}
    for row in rows:
        known = sums.get((row.component, row.hour_utc))
        if known is not None:
            row = msgspec.structs.replace(row, energy_j=known.energy_j + row.energy_j)  # noqa: PLW2901  # the row as added up so far stands in for it
        sums[row.component, row.hour_utc] = row
    return tuple(sums.values())


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
