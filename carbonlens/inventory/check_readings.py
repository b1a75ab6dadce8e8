"""Suspicious readings: overlaps, gaps, feed-in, unknown energies and meters nobody declared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import groupby
from typing import Final

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding, Severity
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.domain.units import J_PER_KWH, US_PER_HOUR, US_PER_S

_DAY_H: Final = 24
_DECLARE: Final = "declare it with its site and boundary: without them its readings count nowhere"


def check(inventory: Inventory) -> Iterator[Finding]:
    """Yield what is suspicious about readings: at most one Finding a meter, direction and code."""
    known = {m.meter_id for m in inventory.meters}
    unknown = [r for r in inventory.readings if r.meter_id not in known]
    for meter, readings in groupby(sorted(unknown, key=_order), key=lambda r: r.meter_id):
        yield _found("CL364", "warning", list(readings), f"meter {meter} is not in meters.toml", _DECLARE)
    for _, series in groupby(sorted(inventory.readings, key=_order), key=_series):
        yield from _check_series(list(series))


def _series(reading: MeterReading) -> tuple[str, str, str]:
    return reading.meter_id, reading.direction, reading.carrier


def _order(reading: MeterReading) -> tuple[str, str, str, int, int]:
    return (*_series(reading), reading.start_us, reading.end_us)


def _check_series(readings: Sequence[MeterReading]) -> Iterator[Finding]:
    """Yield the Findings of one meter in one direction, its readings in order of time."""
    meter = readings[0].meter_id
    overlapping: list[MeterReading] = []
    after_gap: list[MeterReading] = []
    gap_us, first_gap_us, end_us = 0, 0, readings[0].start_us
    for reading in readings:
        if reading.start_us < end_us:
            overlapping.append(reading)
        elif reading.start_us > end_us:
            first_gap_us = first_gap_us or end_us
            gap_us += reading.start_us - end_us
            after_gap.append(reading)
        end_us = max(end_us, reading.end_us)
    if overlapping:
        overlaps = counted(len(overlapping), "reading overlaps", "readings overlap")
        text = f"{overlaps} an earlier one of {meter}: its energy would count twice"
        mend = "remove one of them, or let the right one have supersedes with the id of the other"
        yield _found("CL362", "error", overlapping, text, mend)
    if after_gap:
        where = f"{_hours(gap_us)} in all, the first at {_utc(first_gap_us)}"
        text = f"{counted(len(after_gap), 'gap')} in the readings of {meter}, {where}"
        yield _found("CL363", "warning", after_gap, text, "add the missing readings")
    if readings[0].direction == "export":
        known = [r.energy_j for r in readings if r.energy_j is not None]
        kwh = float(sum(known, Decimal(0)) / J_PER_KWH)
        text = f"meter {meter} fed {kwh:.6g} kWh out: it is not taken off what was used"
        yield _found("CL366", "info", readings, text, None)
    lacking = [r for r in readings if r.energy_j is None]
    if lacking:
        yield _unknown(lacking)


def _unknown(readings: Sequence[MeterReading]) -> Finding:
    back = sum(_runs_back(r) for r in readings)
    differing = sum(r.counter_start_j is not None and not _runs_back(r) for r in readings)
    reasons = (
        (back, counted(back, "counter runs back", "counters run back")),
        (differing, counted(differing, "energy differs from", "energies differ from") + " the counters"),
    )
    why = ", ".join(text for count, text in reasons if count) or "nothing usable is stated"
    known = counted(len(readings), "reading")
    text = f"the energy of {known} of {readings[0].meter_id} is unknown: {why}"
    mend = "state the energy; where a meter was changed, of the span in which it was"
    return _found("CL367", "error", readings, text, mend)


def _runs_back(reading: MeterReading) -> bool:
    first, last = reading.counter_start_j, reading.counter_end_j
    return first is not None and last is not None and last < first


def _found(
    code: str, severity: Severity, readings: Sequence[MeterReading], message: str, mend: str | None
) -> Finding:
    """Return a Finding that points at the first of the readings."""
    origin = readings[0].origin
    return Finding(
        code=code,
        severity=severity,
        message=message,
        file=None if origin is None else origin.source_file,
        line=None if origin is None else origin.source_line,
        subject=readings[0].meter_id,
        mend=mend,
    )


def _hours(span_us: int) -> str:
    hours = span_us / US_PER_HOUR
    return f"{hours:.3g} h" if hours < 2 * _DAY_H else f"{hours / _DAY_H:.3g} days"


def _utc(instant_us: int) -> str:
    return f"{datetime.fromtimestamp(instant_us // US_PER_S, tz=UTC):%Y-%m-%dT%H:%MZ}"
