"""Energy by UTC hour: rows that add up exactly to a reading's energy."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from carbonlens.domain.run import HourEnergy
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.signals.cpu_model import MICROJOULE


def by_hour(
    component: str, energy_j: Decimal, steps: Iterable[tuple[int, int, float]], start_us: int
) -> tuple[HourEnergy, ...]:
    """Split a reading's energy over the UTC hours its work fell into.

    Args:
        component: Component the rows are of.
        energy_j: The reading's energy, to a microjoule.
        steps: ``(from_us, to_us, weight)`` in UTC microseconds and time order;
            within a step the weight is spread evenly.
        start_us: Start of the run, whose hour takes all when no step has weight.

    Returns:
        Rows in time order whose sum is ``energy_j``; hours without energy are left out.
    """
    weights: dict[int, float] = {}
    for from_us, to_us, weight in steps:
        if weight > 0:
            _spread(weights, from_us, to_us, weight)
    if not weights:
        return (HourEnergy(hour_utc=start_us // US_PER_HOUR, component=component, energy_j=energy_j),)
    whole = sum(weights.values())
    rows: list[HourEnergy] = []
    seen, given = 0.0, Decimal(0)
    for hour in sorted(weights):
        # The running sum is rounded, not the row, so that the last row closes exactly.
        seen += weights[hour]
        share = Decimal(str(min(seen / whole, 1.0))) if hour != max(weights) else Decimal(1)
        upto = (energy_j * share).quantize(MICROJOULE)
        if upto != given:
            rows.append(HourEnergy(hour_utc=hour, component=component, energy_j=upto - given))
        given = upto
    return tuple(rows) or (
        HourEnergy(hour_utc=start_us // US_PER_HOUR, component=component, energy_j=energy_j),
    )


def _spread(weights: dict[int, float], from_us: int, to_us: int, weight: float) -> None:
    length = to_us - from_us
    if length <= 0:
        hour = from_us // US_PER_HOUR
        weights[hour] = weights.get(hour, 0.0) + weight
        return
    at = from_us
    while at < to_us:
        hour = at // US_PER_HOUR
        upto = min(to_us, (hour + 1) * US_PER_HOUR)
        weights[hour] = weights.get(hour, 0.0) + weight * (upto - at) / length
        at = upto
