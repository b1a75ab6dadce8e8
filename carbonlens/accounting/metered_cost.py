"""Cost of metered electricity: what the meters of a site counted, at the price of each hour.

A reading of an hour or less falls into its hour. A longer one is spread evenly over its time,
as it is over months; where its hours have several prices that is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from carbonlens.accounting.cost import electricity_by_tariff
from carbonlens.accounting.metered import Metered
from carbonlens.accounting.tariff import HourPrice
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.finding import Finding
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.domain.units import US_PER_HOUR


class MeteredCost(msgspec.Struct, frozen=True, kw_only=True):
    """What the metered electricity of a site costs, by currency; empty where no hour has a price."""

    costs: dict[str, Estimate]
    findings: tuple[Finding, ...] = ()


def metered_cost(
    one: Metered,
    facility_kwh: Estimate,
    readings: Iterable[MeterReading],
    prices: Sequence[HourPrice],
    period: tuple[int, int],
) -> MeteredCost:
    """Return what the electricity of a metered site costs.

    Args:
        one: What its meters counted in the period.
        facility_kwh: The same at the facility.
        readings: Of any meter; those that ``one`` is made of tell when it was used.
        prices: Of the hours of the site.
        period: Its instants, the end exclusive.
    """
    if not prices:
        return MeteredCost(costs={})
    names = set(one.reading_ids)
    held = [r for r in readings if r.reading_id in names]
    shares = hour_shares(held, period)
    kwh = {hour: facility_kwh.scale(share, "kWh") for hour, share in shares.items()}
    lines = electricity_by_tariff(kwh, prices)
    return MeteredCost(
        costs={line.currency: line.amount for line in lines},
        findings=tuple(_spread(one.site_id, held, prices, period)),
    )


def hour_shares(readings: Iterable[MeterReading], period: tuple[int, int]) -> dict[int, float]:
    """Return the share of each UTC hour in what readings counted in a period; they sum to 1.

    Args:
        readings: With a known energy; one is spread evenly over its time.
        period: Its instants, the end exclusive.
    """
    joules: dict[int, float] = {}
    for reading in readings:
        span = reading.end_us - reading.start_us
        at, last = max(reading.start_us, period[0]), min(reading.end_us, period[1])
        power = float(reading.energy_j or 0) / span if span else 0.0
        while at < last:
            hour = at // US_PER_HOUR
            end = min(last, (hour + 1) * US_PER_HOUR)
            joules[hour] = joules.get(hour, 0.0) + power * (end - at)
            at = end
    total = sum(joules.values())
    if total == 0:
        return dict.fromkeys(joules, 1 / len(joules)) if joules else {}
    return {hour: part / total for hour, part in joules.items()}


def _spread(
    site_id: str, readings: Iterable[MeterReading], prices: Sequence[HourPrice], period: tuple[int, int]
) -> Iterable[Finding]:
    """Yield a Finding if a reading reaches over hours of several prices."""
    price_of: Mapping[int, object] = {p.hour_utc: (p.amount_per_kwh, p.currency) for p in prices}
    wide = 0
    for reading in readings:
        first = max(reading.start_us, period[0]) // US_PER_HOUR
        last = -(-min(reading.end_us, period[1]) // US_PER_HOUR)
        wide += len({price_of.get(hour) for hour in range(first, last)}) > 1
    if wide:
        yield Finding(
            code="CL496",
            severity="info",
            message=f"meters of {site_id}: {counted(wide, 'reading')} over hours of several prices: the "
            "energy was spread evenly over them",
            mend="import readings of each hour",
            subject=site_id,
        )
