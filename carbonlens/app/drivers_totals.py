"""Use case part: what bridges lead from and to, as the statements of both periods have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from carbonlens.accounting.amounts import NO_CURRENCY
from carbonlens.accounting.cost import CostLine
from carbonlens.accounting.statement_lines import PAID, Kind, Line
from carbonlens.app.drivers_reading import AMOUNTS, Work, sides, without_it
from carbonlens.compare.drivers_bridge import Beside, Cell, Totals, bridge, nothing
from carbonlens.compare.drivers_names import changes, joined, with_other_kind
from carbonlens.domain.drivers import Bridge, Measure
from carbonlens.domain.estimate import Estimate, add

_KINDS: Final = (False, True)


def bridges_of(
    first: Work, last: Work, measure: Measure, same: Mapping[str, str]
) -> list[tuple[Bridge, tuple[Cell, ...]]]:
    """Return the bridges of a measure with their rows: of true figures, of lower bounds, by currency.

    None of what is unknown in a period.

    Args:
        first: The earlier period.
        last: The later one.
        measure: What is explained.
        same: Names after of work that goes under another one, by the names before.
    """
    found = []
    flat = without_it((first, last))
    for currency in _currencies(first, last) if measure == "cost" else (None,):
        name, unit = AMOUNTS[measure] if currency is None else (f"{PAID}{currency}", currency)
        kinds = {
            is_least: joined(
                sides(first, measure, currency, is_least=is_least, flat=flat),
                sides(last, measure, currency, is_least=is_least, flat=flat),
                same,
            )
            for is_least in _KINDS
        }
        for is_least in _KINDS:
            totals = totals_of(first, last, name, unit, is_least=is_least)
            if totals is None or totals.before.value is None or totals.after.value is None:
                continue
            every = with_other_kind(kinds[is_least], kinds[not is_least])
            # Work that another currency pays is in that one's bridge.
            cells = tuple(c for c in every if any(s.amount.value is not None for s in c.sides))
            told = changes(cells, same)
            found.append((bridge(cells, totals, measure, is_least=is_least, changes=told), cells))
    return found


def _currencies(first: Work, last: Work) -> tuple[str, ...]:
    totals = (c for w in (first, last) for c in w.statement.cost.totals if c != NO_CURRENCY)
    return tuple(dict.fromkeys((*first.currencies, *last.currencies, *totals)))


def totals_of(first: Work, last: Work, name: str, unit: str, *, is_least: bool) -> Totals | None:
    """Return an amount's totals in both periods; ``None`` where neither period has one.

    Args:
        first: The earlier period.
        last: The later one.
        name: Of the amount in a statement.
        unit: Its unit.
        is_least: Whether of the lower bounds.
    """
    is_cost = name.startswith(PAID) and not is_least
    others = [_other_costs(w, unit) if is_cost else {} for w in (first, last)]
    ends = [
        [e for e in (_total(work, name, is_least=is_least), *more.values()) if e is not None]
        for work, more in zip((first, last), others, strict=True)
    ]
    if not any(ends):
        return None
    before, after = (add(held, unit) if held else nothing(unit) for held in ends)
    lines = [
        Beside(
            name=f"other:{line}",
            before=_held(others[0].get(line), unit),
            after=_held(others[1].get(line), unit),
        )
        for line in dict.fromkeys((*others[0], *others[1]))
    ]
    pair = [_beyond_runs(w, name, unit, is_least=is_least) for w in (first, last)]
    if any(e is not None for e in pair):
        meters = Beside(name="unattributed", before=_held(pair[0], unit), after=_held(pair[1], unit))
        lines = [meters, *lines]
    return Totals(before=before, after=after, beside=tuple(lines))


def is_other(line: CostLine, currency: str) -> bool:
    """Tell whether a line of cost is no electricity, and in that currency."""
    is_power = line.name == "electricity" or (line.part is not None and line.site_id is not None)
    return not is_power and line.currency == currency


def _total(work: Work, name: str, *, is_least: bool) -> Estimate | None:
    """Return an amount of a statement's total; ``None`` where it has none of that name."""
    line = work.statement.at_least if is_least else work.statement.total
    return line.estimate(name) if line is not None and name in line.amounts else None


def _held(estimate: Estimate | None, unit: str) -> Estimate:
    """Return an amount as its total counts it: what is unknown or not there adds nothing."""
    return nothing(unit) if estimate is None or estimate.value is None else estimate


def _beyond_runs(work: Work, name: str, unit: str, *, is_least: bool) -> Estimate | None:
    """Return what meters counted beyond recorded runs; ``None`` without such a meter."""
    lines = {(x.site_id, x.kind): x for x in work.statement.lines}
    metered = [x for x in lines.values() if x.kind == "metered" and x.is_lower_bound == is_least]
    kind: Kind = "at_least" if is_least else "recorded"
    parts = [_rest(x, lines.get((x.site_id, kind)), name) for x in metered if name in x.amounts]
    return add(parts, unit) if parts else None


def _rest(whole: Line, own: Line | None, name: str) -> Estimate:
    part = whole.estimate(name)
    if own is None or own.estimate(name).value is None:
        return part
    left = part.minus(own.estimate(name))
    return left if left.state == "known" or left.value is None else replace(left, state="unbounded")


def _other_costs(work: Work, currency: str) -> dict[str, Estimate]:
    """Return the cost that is no electricity, by the name of its lines."""
    held: dict[str, list[Estimate]] = {}
    for line in work.statement.cost.lines:
        if is_other(line, currency):
            held.setdefault(line.name, []).append(line.amount)
    return {name: add(parts, currency) for name, parts in held.items()}
