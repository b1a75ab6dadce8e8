"""Statement columns: the numbers of a printed statement, which add up, and one text for each figure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from carbonlens.accounting.amounts import NO_CURRENCY
from carbonlens.accounting.conversions import kwh_to_j
from carbonlens.accounting.cost import Cost
from carbonlens.accounting.group_bills import GroupBill
from carbonlens.accounting.largest_groups import largest_groups
from carbonlens.accounting.reconciliation import Reconciliation
from carbonlens.accounting.scope_totals import Total
from carbonlens.accounting.statement import Statement
from carbonlens.accounting.statement_lines import Line, key_of
from carbonlens.domain.estimate import Estimate, add
from carbonlens.reporting import format as fmt
from carbonlens.reporting.columns import MOST_APART, Column, adds_up, column

TOTAL: Final = "total"
_OF_SUM: Final = ("facility_kwh", "location_kg", "market_kg")


class Columns(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of a statement by the names of their amounts."""

    held: Mapping[str, Column]
    prefix: str

    def text(self, name: str, line: Line) -> str:
        """Return an amount of a line as printed.

        Args:
            name: One of facility energy and the emissions by both methods.
            line: Of the statement.
        """
        return self.printed(name, line).text

    def printed(self, name: str, line: Line) -> fmt.Printed:
        """Return the print of an amount of a line, with its interval."""
        return self.held[name].printed(line.key, of(name, line))

    def scope(self, total: Total, estimate: Estimate) -> str:
        """Return the emissions of a scope as printed: what its lines come to as they are printed.

        Args:
            total: The scope.
            estimate: Its sum.
        """
        name = f"{total.method}_kg"
        held = self.held[name]
        known = [x for x in total.lines if getattr(x, name).value is not None]
        figures = [getattr(x, f"{total.method}_figure") or "" for x in known]
        keys = [f.removeprefix(f"{self.prefix}.").removesuffix(f".{name}") for f in figures]
        if not adds_up(estimate, [getattr(x, name) for x in known]) or not set(keys) <= set(held.numbers):
            return fmt.mass(estimate).text
        number = round(sum(held.numbers[k] for k in keys), max(held.places, 0))
        return msgspec.structs.replace(held, numbers={TOTAL: number}).printed(TOTAL, estimate).text

    def reconciled(self, one: Reconciliation) -> tuple[fmt.Printed, fmt.Printed, fmt.Printed]:
        """Return the print of metered energy, that of runs and the rest: parts that sum to the whole."""
        whole, runs, rest = (joules(e) for e in (one.metered_kwh, one.recorded_kwh, one.difference_kwh))
        site, held = key_of(one.metered.site_id), self.held["facility_kwh"]
        key, left = f"{site}.metered", f"{site}.unattributed"
        if not one.is_activity or not {key, left} <= set(held.numbers):
            held, key, left = column(fmt.energy, TOTAL, whole, {"runs": runs, "rest": rest}), TOTAL, "rest"
        else:
            number = round(held.numbers[key] - held.numbers[left], max(held.places, 0))
            held = msgspec.structs.replace(held, numbers={**held.numbers, "runs": number})
        return held.printed(key, whole), held.printed("runs", runs), held.printed(left, rest)


def of(name: str, line: Line) -> Estimate:
    """Return an amount of a line in the unit in which it is printed: joules or kilograms."""
    held = line.estimate(name)
    return joules(held) if name.endswith("_kwh") else held


def joules(kwh: Estimate) -> Estimate:
    """Return an energy in joules."""
    return kwh.scale(float(kwh_to_j(1)), "J")


def columns_of(
    statement: Statement,
    least: Mapping[str, int] | None = None,
    before: Columns | None = None,
    most: int | None = None,
) -> Columns:
    """Return the columns of a statement: sites, or groups and what no run explains, to the total.

    Args:
        statement: Of a period.
        least: Decimals that the column of an amount has at least.
        before: Columns of the same total by other lines, whose numbers a line that is one of them takes.
        most: Groups that are printed in a line each, the largest; the others then share one.
    """
    prefix, places = f"statement.{statement.period.name}", least or {}
    said = {} if before is None else before.held
    held = {name: _column(name, statement, places.get(name), said.get(name), most) for name in _OF_SUM}
    return Columns(held=held, prefix=prefix)


def more_places(statements: Sequence[Statement], least: Mapping[str, int], most: int) -> dict[str, int]:
    """Return the decimals of columns with which no line of a table is rough or out of its interval.

    Within reason: a line that wants more than a few decimals is left as it is.

    Args:
        statements: Of a period by sites, and split by each label.
        least: Decimals that the column of an amount has at least.
        most: Groups of a split that are printed in a line each.
    """
    places = dict(least)
    for _ in range(MOST_APART):
        short: dict[str, int] = {}
        held: Columns | None = None
        for statement in statements:
            held = columns_of(statement, places, held, most)
            lines = _printed(statement, most)
            for name, one in held.held.items():
                if any(one.is_rough(x.key, e) or one.is_outside(x.key, e) for x, e in _of(name, lines)):
                    short[name] = one.places + 1
        if not short:
            break
        places |= short
    return places


def _printed(statement: Statement, most: int) -> Sequence[Line]:
    """Return the lines of a statement that its table prints in a column that adds up."""
    kept, others, _ = largest_groups(statement, most)
    return (*statement.lines, *statement.unattributed, *kept, *([] if others is None else [others]))


def _of(name: str, lines: Iterable[Line]) -> Sequence[tuple[Line, Estimate]]:
    return [(x, of(name, x)) for x in lines]


def _column(
    name: str, statement: Statement, least: int | None, before: Column | None, most: int | None
) -> Column:
    show = fmt.energy if name.endswith("_kwh") else fmt.mass
    metered = {x.site_id for x in statement.lines if x.kind == "metered"}
    top = [
        x
        for x in statement.lines
        if not x.is_lower_bound
        and (x.kind == "metered" or (x.kind == "recorded" and x.site_id not in metered))
    ]
    whole = of(name, statement.total)
    made = column(show, TOTAL, whole, _parts(name, top), least=least)
    if not all(x.key in made.numbers for x in top if of(name, x).value is not None):
        return made
    for line in top:
        if line.kind == "metered" and line.key in made.numbers:
            own = [
                x
                for x in statement.lines
                if x.site_id == line.site_id and x.kind in {"recorded", "unattributed"}
            ]
            if adds_up(of(name, line), [of(name, x) for x in own]):
                made = made.with_parts(made.numbers[line.key], _parts(name, own))
    if before is not None and (before.scale, before.places) == (made.scale, made.places):
        made = msgspec.structs.replace(made, said={**made.said, **before.said})
    return _with_groups(made, name, statement, most)


def _with_groups(made: Column, name: str, statement: Statement, most: int | None) -> Column:
    """Return the column with the groups: they and what no run explains come to the total.

    Those that share a line come to the number of that line: rounded one by one, hundreds of small ones
    would take it far from what it is.
    """
    groups = [x for x in statement.groups if not x.is_lower_bound]
    rests = [x for x in statement.unattributed if x.key in made.numbers]
    every = [of(name, x) for x in (*groups, *rests)]
    if not groups or TOTAL not in made.numbers or not adds_up(of(name, statement.total), every):
        return made
    left = made.numbers[TOTAL] - sum(made.numbers[x.key] for x in rests)
    kept, others, _ = largest_groups(statement, len(groups) if most is None else most)
    held = {x.key for x in kept}
    shared = [x for x in groups if x.key not in held]
    if others is None or not adds_up(of(name, others), [of(name, x) for x in shared]):
        return made.with_parts(left, _parts(name, groups))
    made = made.with_parts(left, _parts(name, (*kept, others)))
    return made.with_parts(made.numbers[others.key], _parts(name, shared))


def _parts(name: str, lines: Iterable[Line]) -> dict[str, Estimate]:
    return {x.key: of(name, x) for x in lines}


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of a cost by currency; names of lines, and ``bill:N`` for the lines of bills."""

    held: Mapping[str, Column]

    def text(self, name: str, amount: Estimate) -> str:
        """Return an amount as printed."""
        return self.held[amount.unit].printed(name, amount).text

    def groups(self, currency: str, bills: Sequence[GroupBill]) -> Column:
        """Return what groups carry of bills, as a column that adds up to what all runs carry.

        Args:
            currency: Of the amounts.
            bills: Of the groups in it.
        """
        made = self.held[currency]
        return (
            made.with_parts(made.numbers["cloud"], {b.key: b.line.amount for b in bills})
            if ("cloud" in made.numbers)
            else made
        )


def costs_of(cost: Cost) -> Costs:
    """Return the columns of a cost: what each kind comes to sums to the total, and bills to their kind."""
    held = {}
    for currency, total in cost.totals.items():
        names = dict.fromkeys(x.name for x in cost.lines if x.currency == currency)
        parts: dict[str, Estimate] = {n: sum_of(cost, n, currency) for n in names}
        made = column(fmt.money, TOTAL, total, parts)
        for name in names:
            lines = [(n, x) for n, x in enumerate(cost.lines) if x.name == name and x.currency == currency]
            if name in made.numbers and any(x.part is not None for _, x in lines):
                made = made.with_parts(made.numbers[name], {f"bill:{n}": x.amount for n, x in lines})
        held[currency] = made
    return Costs(held={NO_CURRENCY: Column(show=fmt.money), **held})


def sum_of(cost: Cost, name: str, currency: str) -> Estimate:
    """Return what the lines of one name come to in a currency."""
    return add(_amounts(cost, name, currency), currency)


def _amounts(cost: Cost, name: str, currency: str) -> Sequence[Estimate]:
    return [x.amount for x in cost.lines if x.name == name and x.currency == currency]
