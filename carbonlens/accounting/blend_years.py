"""Demands of a period by calendar year of use, and the one blend of their parts.

A vintage is close to the consumption of its own calendar year alone (GHG Protocol Scope 2
Guidance, table 7.1, criterion 4). So a period over two years is two demands, each with the
months that it has a load in; what they took is one blend, the market-based factor of the
period.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from carbonlens.accounting.demand import Period
from carbonlens.accounting.formulas import Quantity
from carbonlens.accounting.market_based import RATE, Blend, blended_kg
from carbonlens.accounting.propagation import through
from carbonlens.domain.estimate import Estimate, add


def months_by_year(months: Iterable[str], period: Period) -> dict[str, tuple[str, ...]]:
    """Return the months that have a load by calendar year; those of the period where none has.

    Args:
        months: With a load, as ``2026-03``.
        period: Of all of it.
    """
    held: dict[str, list[str]] = {}
    for month in sorted(set(months)):
        held.setdefault(month[:4], []).append(month)
    if not held:
        return {"": period.months}
    return {year: tuple(found) for year, found in held.items()}


def loaded_months(loads: Iterable[Mapping[str, Estimate]]) -> tuple[str, ...]:
    """Return the months in which one of some loads is not zero."""
    return tuple(sorted({m for load in loads for m, kwh in load.items() if kwh.value}))


def joined(blends: Sequence[Blend]) -> Blend:
    """Return the one blend of an entity, market and period from those of its calendar years.

    Args:
        blends: By year, at least one.
    """
    first = blends[0]
    if len(blends) == 1:
        return first
    amounts = [[p.kwh.value or 0.0 for p in b.parts[:-1]] for b in blends]
    rates = [p.rate for b in blends for p in b.parts]
    period = replace(first.demand.period, months=tuple(m for b in blends for m in b.demand.period.months))
    return replace(
        first,
        demand=replace(
            first.demand,
            period=period,
            kwh=add((b.demand.kwh for b in blends), "kWh"),
            input_ids=tuple(dict.fromkeys(i for b in blends for i in b.demand.input_ids)),
        ),
        parts=tuple(p for b in blends for p in b.parts),
        emissions_kg=add((b.emissions_kg for b in blends), "kg"),
        rate=through(
            lambda *x: yearly_rate(x[: len(blends)], amounts, x[len(blends) :]),
            *(b.demand.kwh for b in blends),
            *rates,
            unit=RATE,
        ),
        findings=tuple(dict.fromkeys(f for b in blends for f in b.findings)),
    )


def yearly_rate(
    kwh: Sequence[Quantity], amounts: Sequence[Sequence[float]], rates: Sequence[Quantity]
) -> Quantity:
    """Return market-based kg per kWh of a demand whose years took from instruments of their own.

    Args:
        kwh: Of each year.
        amounts: kWh that instruments cover, by year.
        rates: Of these, then of the rest, year after year.
    """
    kg: Quantity = 0.0
    at = 0
    for energy, fixed in zip(kwh, amounts, strict=True):
        end = at + len(fixed)
        kg = kg + blended_kg(energy, fixed, rates[at:end], rates[end])
        at = end + 1
    total: Quantity = 0.0
    for energy in kwh:
        total = total + energy
    return kg / total
