"""Metered energy: what the meters of a site counted in a period, as its activity data.

Where meters cover a site, their count is its energy, and the recorded runs allocate it; what
no run explains is a line of its own. A meter that does not cover the period whole gives a lower
bound at most: its gaps would be savings otherwise. A reading that
reaches over the ends of the period, or over months, is split by time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

import msgspec
from msgspec.structs import replace

from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate, add
from carbonlens.domain.finding import Finding
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.domain.site import Meter
from carbonlens.domain.units import US_PER_S, Boundary

WHOLE: Final = 0.999
"""Share of a period from which on a meter covers it: a missing hour in six weeks."""

BILLED: Final = "bill:"
"""Begin of the meter ids that stand for the bills of a site."""

_MICRO: Final = Decimal("0.000001")

MonthOf = Callable[[int], tuple[str, int]]
"""Month of an instant, ``2026-03``, and the instant at which it ends."""


class Metered(msgspec.Struct, frozen=True, kw_only=True):
    """What the meters of one kind at one site counted in a period.

    Attributes:
        meter_ids: Meters that are added up.
        covers: As of the meters: ``site`` or ``ai``.
        energy: In joules, at ``boundary``.
        exact_j: The same, exact to the microjoule.
        by_month: Joules by month of use.
        covered: Share of the period that every one of them covers.
        whole_months: Months whose part of the period every one of them covers.
        spans: The part of each month that lies in the period, as instants.
        estimated: Whether a reading was estimated by the supplier.
        reading_ids: Readings it is made of.
    """

    site_id: str
    meter_ids: tuple[str, ...]
    covers: str
    boundary: Boundary
    energy: Estimate
    exact_j: Decimal
    by_month: Mapping[str, Estimate]
    covered: float
    estimated: bool
    reading_ids: tuple[str, ...]
    whole_months: frozenset[str] = frozenset()
    spans: Mapping[str, tuple[int, int]] = {}
    findings: tuple[Finding, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether it covers the period, so that it is the activity data of the site."""
        return self.covered >= WHOLE

    @property
    def is_billed(self) -> bool:
        """Whether it is what bills state, and no meter of the inventory."""
        return self.meter_ids[0].startswith(BILLED)

    @property
    def name(self) -> str:
        """What tells it from the others of its site in figure ids."""
        return f"{self.covers}_{self.boundary}_{'bills' if self.is_billed else 'meters'}"


def metered(
    meters: Sequence[Meter],
    readings: Iterable[MeterReading],
    start_us: int,
    end_us: int,
    month_of: MonthOf | None = None,
) -> tuple[Metered, ...]:
    """Return what was metered: by meters of whole sites, by those of AI workloads, then by bills.

    Args:
        meters: Of the inventory; those that cover a part of a site are left out.
        readings: Of any meter and time; exports and other carriers are left out.
        start_us: First instant of the period.
        end_us: Its end, or the present in an open one.
        month_of: Tells the months of use; those of UTC when ``None``.
    """
    groups: dict[tuple[str, str, Boundary, bool], list[Meter]] = {}
    for meter in meters:
        if meter.covers != "part":
            is_billed = meter.meter_id.startswith(BILLED)
            groups.setdefault((meter.site, meter.covers, meter.boundary, is_billed), []).append(meter)
    held: dict[str, list[MeterReading]] = {}
    for reading in readings:
        if _counts(reading):
            held.setdefault(reading.meter_id, []).append(reading)
    twice: dict[str, list[MeterReading]] = {}
    for name, every in held.items():
        once, again = _apart(every)
        held[name] = [r for r in once if r.start_us < end_us and r.end_us > start_us]
        twice[name] = [r for r in again if r.start_us < end_us and r.end_us > start_us]
    found = [
        replace(
            _metered(key, group, held, (start_us, end_us), month_of or utc_month),
            findings=tuple(_twice(m, twice[m.meter_id]) for m in group if twice.get(m.meter_id)),
        )
        for key, group in groups.items()
        if any(held.get(m.meter_id) for m in group)
    ]
    return tuple(sorted(found, key=lambda m: (m.site_id, m.is_billed, m.covers != "site", m.boundary)))


def each_once(counted: Sequence[Metered]) -> tuple[Metered, ...]:
    """Return what was metered without what bills state of sites whose own meters are whole."""
    whole = {m.site_id for m in counted if m.is_whole and not m.is_billed}
    return tuple(m for m in counted if not (m.is_billed and m.site_id in whole))


def not_whole(found: Metered) -> Finding:
    """Return the Finding of meters that do not cover the period whole."""
    named = counted(len(found.meter_ids), "meter")
    return Finding(
        code="CL482",
        severity="warning",
        message=f"{named} of site {found.site_id} ({', '.join(found.meter_ids)}) cover {found.covered:.1%} "
        "of the period: a lower bound at most",
        mend="import the missing readings",
        subject=found.site_id,
    )


def _apart(readings: Sequence[MeterReading]) -> tuple[list[MeterReading], list[MeterReading]]:
    """Return the readings of a meter that do not overlap, and those that begin within an earlier one.

    Lines of a bill are parts of one delivery, such as day and night, and may share their time.
    """
    once: list[MeterReading] = []
    again: list[MeterReading] = []
    for reading in sorted(readings, key=lambda r: (r.start_us, -r.end_us, r.reading_id)):
        is_within = once and reading.start_us < once[-1].end_us and not reading.meter_id.startswith(BILLED)
        (again if is_within else once).append(reading)
    return once, again


def _twice(meter: Meter, readings: Sequence[MeterReading]) -> Finding:
    named = ", ".join(r.reading_id for r in readings[:3])
    return Finding(
        code="CL487",
        severity="warning",
        message=f"{counted(len(readings), 'reading')} of meter {meter.meter_id} of site {meter.site} begin "
        f"within an earlier one, and are left out: {named}",
        mend="keep one reading for each time; let a correction name the reading that it supersedes",
        subject=meter.meter_id,
    )


def _counts(reading: MeterReading) -> bool:
    return reading.direction == "import" and reading.carrier == "electricity" and reading.energy_j is not None


def _metered(
    key: tuple[str, str, Boundary, bool],
    meters: Sequence[Meter],
    held: Mapping[str, Sequence[MeterReading]],
    period: tuple[int, int],
    month_of: MonthOf,
) -> Metered:
    exact = Decimal(0)
    by_month: dict[str, list[Estimate]] = {}
    for meter in meters:
        for reading in held.get(meter.meter_id, ()):
            for month, joules in _split(reading, period, month_of):
                exact += joules
                by_month.setdefault(month, []).append(_estimate(meter, reading, joules))
    months = {month: add(parts, "J") for month, parts in sorted(by_month.items())}
    every = [r for m in meters for r in held.get(m.meter_id, ())]
    spans = {m: s for m, s in _months(period, month_of) if m in months}
    return Metered(
        site_id=key[0],
        meter_ids=tuple(m.meter_id for m in meters),
        covers=key[1],
        boundary=key[2],
        energy=add(months.values(), "J"),
        exact_j=exact,
        by_month=months,
        covered=_all_covered(meters, held, period),
        whole_months=frozenset(m for m, s in spans.items() if _all_covered(meters, held, s) >= WHOLE),
        spans=spans,
        estimated=any(r.method == "estimated" for r in every),
        reading_ids=tuple(r.reading_id for r in every),
    )


def _estimate(meter: Meter, reading: MeterReading, joules: Decimal) -> Estimate:
    limit = reading.accuracy_class if reading.accuracy_class is not None else meter.accuracy_class
    value = float(joules)
    if limit is None:
        return Estimate(value=value, unit="J", grade=reading.grade, bounds=(None, None))
    # A class is a limit of error: rectangular (JCGM 100:2008, 4.3.7), and one error of the meter.
    u = value * limit / math.sqrt(3)
    return Estimate(value=value, unit="J", grade=reading.grade, u_by_source={f"meter:{meter.meter_id}": u})


def _split(
    reading: MeterReading, period: tuple[int, int], month_of: MonthOf
) -> Iterator[tuple[str, Decimal]]:
    """Yield the part of a reading in each month of the period; the parts sum to it exactly."""
    whole = reading.energy_j or Decimal(0)
    span = reading.end_us - reading.start_us
    done, at = Decimal(0), reading.start_us
    while at < reading.end_us:
        month, after = month_of(at)
        cuts = [c for c in (after, *period) if at < c]
        end = min(reading.end_us, *cuts)
        upto = whole if end == reading.end_us else (whole * (end - reading.start_us) / span).quantize(_MICRO)
        if period[0] <= at < period[1]:
            yield month, upto - done
        done, at = upto, end


def utc_month(at_us: int) -> tuple[str, int]:
    """Return the UTC month of an instant and the instant at which it ends."""
    at = datetime.fromtimestamp(at_us // US_PER_S, tz=UTC)
    index = at.year * 12 + at.month
    after = datetime(index // 12, index % 12 + 1, 1, tzinfo=UTC)
    return f"{at.year:04}-{at.month:02}", int(after.timestamp()) * US_PER_S


def _months(period: tuple[int, int], month_of: MonthOf) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the months of a period, each with the part of it that lies in the period."""
    at = period[0]
    while at < period[1]:
        month, after = month_of(at)
        yield month, (at, min(after, period[1]))
        at = after


def _all_covered(
    meters: Sequence[Meter], held: Mapping[str, Sequence[MeterReading]], period: tuple[int, int]
) -> float:
    """Return the share of a period that every one of some meters covers."""
    return min(_covered(held.get(m.meter_id, ()), period) for m in meters)


def _covered(readings: Iterable[MeterReading], period: tuple[int, int]) -> float:
    start, end = period
    covered, at = 0, start
    for reading in sorted(readings, key=lambda r: r.start_us):
        first, last = max(reading.start_us, at), min(reading.end_us, end)
        if last > first:
            covered += last - first
            at = last
    return covered / (end - start) if end > start else 0.0
