"""Sustainability sums: columns of cost, and columns of two methods that share lines."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Final

import msgspec

from carbonlens.accounting.amounts import NO_CURRENCY
from carbonlens.accounting.cost import Cost
from carbonlens.domain.estimate import Estimate
from carbonlens.reporting import format as fmt
from carbonlens.reporting.columns import Column, column
from carbonlens.reporting.format import Printed

TOTAL: Final = "total"
"""Name of the total in a column."""

_CENT: Final = 2
NO_PLACES: Final[Mapping[str, int]] = {}


def cost_columns(cost: Cost, places: Mapping[str, int] = NO_PLACES) -> dict[str, Column]:
    """Return a cost by currency: its lines by their number and the total, rounded so that they add up.

    Amounts that are all exact are printed to the cent where any of them has one. Beside others they
    are rounded to whole units at most: where the total is coarser, no line is rounded for its sake.

    Args:
        cost: Of a period.
        places: Decimals that the column of a currency has at least, where it is not printed to the cent.
    """
    made = {}
    for currency, total in cost.totals.items():
        parts = {str(n): x.amount for n, x in enumerate(cost.lines, 1) if x.currency == currency}
        every = [total, *parts.values()]
        is_sure = all(map(is_exact, every))
        least = _cents(every) if is_sure else places.get(currency)
        if currency == NO_CURRENCY:
            continue
        held = column(fmt.money, TOTAL, total, parts, least=least)
        is_coarse = held.places < 0 or (held.scale is not None and held.scale.factor != 1)
        if is_coarse and not is_sure and any(map(is_exact, parts.values())):
            held = column(fmt.money, TOTAL, total, {}, least=least)
        made[currency] = held
    return made


def is_exact(estimate: Estimate) -> bool:
    """Tell whether an amount is known without an interval."""
    return estimate.state == "known" and (estimate.low is None or estimate.low == estimate.high)


def exact_money(amount: Estimate) -> Printed:
    """Return the print of an exact amount: of a bill, to the cent; in millions, as any other."""
    scale = fmt.money.choose(amount)
    places = _cents([amount])
    if amount.value is None or scale.factor != 1 or places is None:
        return fmt.money(amount)
    return fmt.money(amount, scale, at=(round(amount.value, places), places))


def _cents(amounts: Sequence[Estimate]) -> int | None:
    """Return the decimals that exact amounts need: none, or those of cents; ``None`` in millions."""
    if any(fmt.money.choose(a).factor != 1 for a in amounts):
        return None
    return _CENT if any(a.value is not None and a.value != round(a.value) for a in amounts) else 0


def sharing(
    columns: Sequence[Column], parts: Sequence[Mapping[str, Estimate]], shared: Collection[str], name: str
) -> tuple[Column, ...] | None:
    """Return columns that add up though parts stand in all of them, with one number for each of these.

    Every part is rounded down or up to its next number; ``None`` where no number suits all columns.

    Args:
        columns: Of one unit and as many decimals, each with the number of its total.
        parts: Of each column by name, all known.
        shared: Names of the parts that are alike in all.
        name: Of the totals.
    """
    first = columns[0]
    if first.scale is None or any((c.scale, c.places) != (first.scale, first.places) for c in columns):
        return None
    same = {n: parts[0][n] for n in sorted(shared)}
    held, most = _grains(first, same.values())
    others = [{n: e for n, e in p.items() if n not in shared} for p in parts]
    limits = [_grains(first, own.values()) for own in others]
    wholes = [round(Fraction(c.numbers[name]) / _grain(c)) for c in columns]
    middle = float(sum(_in_grains(first, e) for e in same.values()))
    bare = [msgspec.structs.replace(c, said={}) for c in columns]
    for number in sorted(range(held, most + 1), key=lambda n: (abs(n - middle), n)):
        if all(low <= w - number <= high for w, (low, high) in zip(wholes, limits, strict=True)):
            made = []
            for one, own, whole in zip(bare, others, wholes, strict=True):
                with_same = one.with_parts(float(number * _grain(one)), same)
                made.append(with_same.with_parts(float((whole - number) * _grain(one)), own))
            return tuple(made)
    return None


def _grain(one: Column) -> Fraction:
    """Return the step between two printed numbers."""
    return Fraction(10) ** -one.places


def _in_grains(one: Column, estimate: Estimate) -> Fraction:
    factor = 1.0 if one.scale is None else one.scale.factor
    return Fraction((estimate.value or 0.0) * factor) / _grain(one)


def _grains(one: Column, estimates: Iterable[Estimate]) -> tuple[int, int]:
    """Return what figures come to at least and at most, in steps, each rounded down or up."""
    held = [_in_grains(one, e) for e in estimates]
    return sum(map(math.floor, held)), sum(map(math.ceil, held))
