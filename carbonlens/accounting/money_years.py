"""Calendar years of money: how much of an amount is of which year's prices.

A period may lie in two calendar years. Money is of the year in which it arose: a bill of its time,
electricity of its hours, work and hardware of their days.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Final

from carbonlens.accounting.charges import FIELDS
from carbonlens.accounting.cost import CostLine
from carbonlens.accounting.metered import Metered
from carbonlens.accounting.site_energy import Activity
from carbonlens.domain.charge import Charge
from carbonlens.domain.money import Money

_YEAR: Final = 4
"""Digits of the year of a month, ``2026-03``."""


def weighted(parts: Iterable[tuple[int, float]]) -> dict[int, float]:
    """Return the share of each year; empty where the parts sum to nothing.

    Args:
        parts: Years with weights, such as amounts or days.
    """
    sums: dict[int, float] = {}
    for year, weight in parts:
        sums[year] = sums.get(year, 0.0) + weight
    whole = sum(sums.values())
    return {year: weight / whole for year, weight in sorted(sums.items())} if whole else {}


def of_days(first: str, end: str) -> dict[int, float]:
    """Return the share of each year in local days.

    Args:
        first: First date.
        end: Date after the last.
    """
    start, after = date.fromisoformat(first), date.fromisoformat(end)
    return weighted(
        (year, (min(after, date(year + 1, 1, 1)) - max(start, date(year, 1, 1))).days)
        for year in range(start.year, after.year + 1)
        if max(start, date(year, 1, 1)) < after
    )


def of_electricity(activities: Iterable[Activity], metered: Iterable[Metered]) -> dict[str, dict[int, float]]:
    """Return the share of each year in the electricity of sites: by its cost, else by its energy.

    Args:
        activities: Of recorded runs, by month of use.
        metered: Of sites; those that cover the period whole come before their runs.
    """
    parts: dict[str, list[tuple[int, float]]] = {}
    for one in activities:
        weight = sum(c.value or 0.0 for c in one.costs.values()) or float(one.exact_j or 0)
        if one.month:
            parts.setdefault(one.site_id, []).append((int(one.month[:_YEAR]), weight))
    for counted in metered:
        if counted.is_whole:
            parts[counted.site_id] = [
                (int(month[:_YEAR]), joules.value or 0.0) for month, joules in counted.by_month.items()
            ]
    return {site: weighted(held) for site, held in parts.items()}


def of_charges(
    line: CostLine, charges: Mapping[str, Charge], years: Mapping[int, tuple[int, int]]
) -> dict[int, float]:
    """Return the share of each year in a line of bills, by the time of what it rests on.

    Args:
        line: Its ids are those of charges.
        charges: By id.
        years: Instants of each year within the period, the end exclusive.
    """
    parts: list[tuple[int, float]] = []
    for charge in (charges[i] for i in line.input_ids if i in charges):
        cost: Money | None = getattr(charge, FIELDS[line.cost_kind or "effective"])
        within = [(y, min(charge.end_us, end) - max(charge.start_us, at)) for y, (at, end) in years.items()]
        shares = weighted((year, float(span)) for year, span in within if span > 0)
        if cost is not None:
            parts += [(year, float(cost.amount) * share) for year, share in shares.items()]
    return weighted(parts)


def of_lines(
    amounts: Sequence[tuple[str, float]], by_site: Mapping[str, Mapping[int, float]]
) -> dict[int, float]:
    """Return the share of each year in a sum over sites.

    Args:
        amounts: Sites with their amounts.
        by_site: Share of each year at each site.
    """
    return weighted(
        (year, amount * share) for site, amount in amounts for year, share in by_site.get(site, {}).items()
    )
