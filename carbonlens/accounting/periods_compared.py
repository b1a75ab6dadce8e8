"""Periods compared: the lines of several statements side by side, the year to date, and the change.

A line that a period lacks is no zero: there was none of it. A period that cannot be accounted
leaves the year to date a lower bound. Totals over the scopes are by method, and lower bounds
stand on lines of their own, as in each statement: a sum that one stands beside lacks a part of its
period, so that its difference from another period's sum says nothing of a change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from carbonlens.accounting.base_year import relative_change
from carbonlens.accounting.propagation import through
from carbonlens.accounting.scope_totals import METHODS, Method, Total
from carbonlens.accounting.scopes import Place
from carbonlens.accounting.statement import Statement
from carbonlens.domain.estimate import Estimate, add, unknown
from carbonlens.domain.figure import Figure

EVERY_SCOPE: Final = "every_scope"
COST: Final = "cost.total."
"""Begin of the keys of cost; the currency follows."""

_ENERGY: Final = ("total.facility_kwh", "total.at_least.facility_kwh")
_NO_CHANGE: Final = "unknown: a lower bound stands beside the sum of {}, or it is one"
"""In place of the formula of a change, where a sum lacks a part of its period."""

_WATER: Final = ("total.water_site_l", "total.water_source_l")


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the statements of several periods.

    Attributes:
        key: What its figures are called after the period.
        by_period: The figure of each period that has the line.
        to_date: Of the fiscal year until the end of the period.
        change: Absolute and relative change against each other period.
    """

    key: str
    by_period: Mapping[str, Figure]
    to_date: Figure | None = None
    change: Mapping[str, tuple[Figure, Figure]] = {}

    def estimate(self, period: str) -> Estimate | None:
        """Return the line's estimate of a period; ``None`` where the period lacks the line."""
        held = self.by_period.get(period)
        return None if held is None else held.estimate


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of several statements.

    Attributes:
        period: The one that is reported.
        places: Scopes and categories that any period has, in order.
        series: By key.
    """

    period: str
    places: tuple[Place, ...]
    series: Mapping[str, Series]

    def has_least(self, key: str, period: str) -> bool:
        """Tell whether a line of a period is a lower bound, or one stands beside it.

        Args:
            key: Of the line.
            period: By name.
        """
        lines = {n: s.by_period[period] for n, s in self.series.items() if period in s.by_period}
        return _has_least(key, lines)

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Every figure of the lines, and those made of them."""
        return tuple(
            f
            for one in self.series.values()
            for f in (
                *one.by_period.values(),
                *((one.to_date,) if one.to_date is not None else ()),
                *(f for pair in one.change.values() for f in pair),
            )
        )


def compared(
    statements: Mapping[str, Statement | None], period: str, against: Sequence[str], to_date: Sequence[str]
) -> Compared:
    """Return the lines of a period beside those of others.

    Args:
        statements: By period; ``None`` where there is none.
        period: The one that is reported.
        against: Periods that it is compared with.
        to_date: Periods of the fiscal year up to the end of this one, itself too.
    """
    held = {name: _lines(one) for name, one in statements.items() if one is not None}
    places = {t.place for one in statements.values() if one is not None for t in one.scopes}
    keys = [k for k in _keys(held.values(), sorted(places)) if any(k in lines for lines in held.values())]
    return Compared(
        period=period,
        places=tuple(sorted(places)),
        series={key: _series(key, held, period, against, to_date) for key in keys},
    )


def scope_key(place: Place, method: Method, *, is_least: bool = False) -> str:
    """Return the key of a scope's line by one method."""
    return f"{place.key}.{method}{'_at_least' if is_least else ''}_kg"


def every_scope_key(method: Method, *, is_least: bool = False) -> str:
    """Return the key of the sum over the scopes by one method."""
    return f"{EVERY_SCOPE}.{method}{'_at_least' if is_least else ''}_kg"


def in_one_key(currency: str) -> str:
    """Return the key of the cost of every currency, converted to the reporting one."""
    return f"cost.in_{currency}.total"


def is_in_one(key: str) -> bool:
    """Tell whether a line is a cost that was converted to the reporting currency."""
    return key == in_one_key(key.removeprefix("cost.in_").removesuffix(".total"))


def least_key(key: str) -> str | None:
    """Return the key of the line of lower bounds that stands beside a line of sums.

    Args:
        key: Of any line; ``None`` comes back where it has no such line, or is one itself.
    """
    if key == _ENERGY[0]:
        return _ENERGY[1]
    begin, is_of_method, method = key.rpartition(".")
    method = method.removesuffix("_kg")
    return f"{begin}.{method}_at_least_kg" if is_of_method and method in METHODS else None


def _has_least(key: str, lines: Mapping[str, Figure]) -> bool:
    """Tell whether one of a period's lines is a lower bound, or has one beside it."""
    own = lines.get(key)
    return (own is not None and own.estimate.state == "unbounded") or least_key(key) in lines


def _keys(held: Iterable[Mapping[str, Figure]], places: Sequence[Place]) -> Iterator[str]:
    yield from _ENERGY
    for place in places:
        for is_least in (False, True):
            yield from (scope_key(place, method, is_least=is_least) for method in METHODS)
    for is_least in (False, True):
        yield from (every_scope_key(method, is_least=is_least) for method in METHODS)
    yield from _WATER
    yield from sorted({key for lines in held for key in lines if key.startswith(COST) or is_in_one(key)})


def _lines(statement: Statement) -> dict[str, Figure]:
    """Return a statement's lines by what they are called after the period."""
    begin = f"statement.{statement.period.name}."
    found = {f.figure_id.removeprefix(begin): f for f in statement.figures if f.figure_id.startswith(begin)}
    sums = {f.figure_id.removeprefix(begin): f for f in _every_scope(statement, begin)}
    applies = {n: f for n, f in found.items() if f.estimate.state != "not_applicable"}
    return {**applies, **sums}


def _every_scope(statement: Statement, begin: str) -> Iterator[Figure]:
    for method in METHODS:
        totals = [t for t in statement.scopes if t.method == method]
        for is_least in (False, True):
            parts = [(t, _part(t, is_least=is_least)) for t in totals]
            known = [(t, e) for t, e in parts if e.state != "not_applicable"]
            if known:
                yield Figure(
                    figure_id=f"{begin}{every_scope_key(method, is_least=is_least)}",
                    estimate=add((e for _, e in known), "kg"),
                    label=f"every scope, {method}-based{', lower bounds' if is_least else ''}",
                    formula="sum of the scopes and categories",
                    inputs=tuple(f"{begin}{scope_key(t.place, method, is_least=is_least)}" for t, _ in known),
                )


def _part(total: Total, *, is_least: bool) -> Estimate:
    return total.at_least_kg if is_least else total.kg


def _series(
    key: str,
    held: Mapping[str, Mapping[str, Figure]],
    period: str,
    against: Sequence[str],
    to_date: Sequence[str],
) -> Series:
    by_period = {name: lines[key] for name, lines in held.items() if key in lines}
    change = {}
    for other in against:
        own, before = (_line_or_bound(key, held.get(n, {})) for n in (period, other))
        if own is not None and before is not None and (period in by_period or other in by_period):
            least = [n for n in (period, other) if _has_least(key, held[n])]
            change[other] = _change(key, own, before, (period, other), least)
    return Series(
        key=key, by_period=by_period, to_date=_to_date(key, held, by_period, period, to_date), change=change
    )


def _line_or_bound(key: str, lines: Mapping[str, Figure]) -> Figure | None:
    """Return a line of a period, else what is known of it as a lower bound alone: that is no zero."""
    return lines.get(key) or lines.get(least_key(key) or "")


def _to_date(
    key: str,
    held: Mapping[str, Mapping[str, Figure]],
    by_period: Mapping[str, Figure],
    period: str,
    names: Sequence[str],
) -> Figure | None:
    parts = [by_period[n] for n in names if n in by_period]
    if not parts:
        return None
    unit = parts[0].estimate.unit
    # A period without a statement is unknown; one whose statement lacks the line has none of it.
    gone = [unknown(unit) for n in names if n not in held]
    return Figure(
        figure_id=f"to_date.{period}.{key}",
        estimate=add((*(f.estimate for f in parts), *gone), unit),
        label=f"{parts[0].label}, year to date",
        formula="sum of the periods of the fiscal year",
        inputs=tuple(f.figure_id for f in parts),
    )


def _change(
    key: str, own: Figure, before: Figure, periods: tuple[str, str], least: Sequence[str]
) -> tuple[Figure, Figure]:
    """Return the absolute and the relative change; ``least`` names periods whose sum lacks a part."""
    period, other = periods
    delta = own.estimate.minus(before.estimate)
    if least:
        delta = unknown(own.estimate.unit, signed=True)
    share = unknown("1", signed=True)
    if delta.state == "known" and before.estimate.state == "known" and before.estimate.value:
        share = through(relative_change, delta, before.estimate, unit="1", signed=True)
    absolute = Figure(
        figure_id=f"change.{period}.{other}.{key}",
        estimate=delta,
        label=f"{own.label}: change against {other}",
        formula=_NO_CHANGE.format(" and of ".join(least))
        if least
        else "this period less the other; what both rest on cancels",
        inputs=(own.figure_id, before.figure_id),
    )
    relative = Figure(
        figure_id=f"change.{period}.{other}.{key}.share",
        estimate=share,
        label=f"{own.label}: relative change against {other}",
        formula="change / other",
        inputs=(absolute.figure_id, before.figure_id),
    )
    return absolute, relative
