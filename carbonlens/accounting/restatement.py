"""Restatement: figures of one period made again, old beside new, each with its reason.

A change of factors or method, an error or a change of structure may also recalculate the base
year (GHG Protocol Corporate Standard, chapter 5); records that came after a close are lines of
the period in which they were found.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final

import msgspec

from carbonlens.accounting.base_year import Change, Reason, Recalculation, recalculation, relative_change
from carbonlens.accounting.propagation import through
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding
from carbonlens.domain.units import Boundary, State

_NAMED: Final = 3
_SAME: Final = 1e-12
"""Relative difference that is rounding of the machine, and no change."""

_EMISSIONS: Final = ("location_kg", "market_kg")


class Restated(msgspec.Struct, frozen=True, kw_only=True):
    """One figure, old and new.

    Attributes:
        figure_id: The same in both.
        old, new: ``None`` where the figure is in one of the two only.
        reason, detail: Why, as far as its inputs tell, or as was stated.
        causes: Ids of the inputs that changed.
    """

    figure_id: str
    label: str
    old: Estimate | None
    new: Estimate | None
    reason: Reason
    detail: str
    causes: tuple[str, ...] = ()

    @property
    def delta(self) -> Estimate:
        """New less old; what both rest on cancels. Unknown where one is missing."""
        if self.old is None or self.new is None:
            held = self.old or self.new
            return unknown("1" if held is None else held.unit, signed=True)
        return self.new.minus(self.old)

    @property
    def change(self) -> float | None:
        """Relative to the old figure; ``None`` where that is unknown or zero."""
        if self.old is None or self.delta.state != "known":
            return None
        return through(relative_change, self.delta, self.old, unit="1", signed=True).value


class Restatement(msgspec.Struct, frozen=True, kw_only=True):
    """A restated period.

    Attributes:
        rows: Figures that differ, in the order of the new ones.
        same: Figures that do not.
        base_year: By method, where the period is the base year.
    """

    period: str
    rows: tuple[Restated, ...]
    same: int
    base_year: Mapping[str, Recalculation] = {}
    findings: tuple[Finding, ...] = ()

    def row(self, figure_id: str) -> Restated | None:
        """Return the row of a figure; ``None`` if it did not change."""
        return next((r for r in self.rows if r.figure_id == figure_id), None)


def source_name(words: str) -> str:
    """Return where figures came from, a file without its folders: those are no business of any reader.

    Args:
        words: A path, or other words, which stay as they are.
    """
    return words.rstrip("/\\").replace("\\", "/").rpartition("/")[2] or words


def restatement(
    period: str,
    old: Sequence[Figure],
    new: Sequence[Figure],
    *,
    factor_ids: Collection[str] = (),
    stated: Reason | None = None,
    why: str = "",
) -> Restatement:
    """Compare the figures of a period with what they are now.

    Figures that rest on nothing else (factors, prices, energies) are causes and no rows.

    Args:
        period: Its name.
        old: All figures as they were, leaves too.
        new: As they are.
        factor_ids: Which leaves are factors.
        stated: Reason that the reporting entity gives for all rows, such as ``structure``.
        why: Its words.
    """
    before, after = _by_id(old), _by_id(new)
    moved = _moved(before, after), _retold(before, after)
    rows: list[Restated] = []
    same = 0
    for name in dict.fromkeys((*after, *before)):
        one, two = before.get(name), after.get(name)
        if not any(f is not None and f.inputs for f in (one, two)):
            continue
        if one is not None and two is not None and _alike(one.estimate, two.estimate):
            same += 1
        else:
            rows.append(_row(name, (before, after), moved, factor_ids, stated, why))
    return Restatement(period=period, rows=tuple(rows), same=same)


def _row(
    name: str,
    sets: tuple[Mapping[str, Figure], Mapping[str, Figure]],
    moved: tuple[Collection[str], Collection[str]],
    factor_ids: Collection[str],
    stated: Reason | None,
    why: str,
) -> Restated:
    one, two = sets[0].get(name), sets[1].get(name)
    below = _leaves(name, sets[0]) | _leaves(name, sets[1])
    causes = tuple(sorted(below & set(moved[0]) or below & set(moved[1])))
    factors = [c for c in causes if c in factor_ids]
    if stated is not None:
        reason, detail = stated, why
    elif factors:
        reason, detail = "factor", f"{_named(factors)} changed"
    elif one is not None and two is not None and one.formula != two.formula:
        reason, detail = "method", f"was {one.formula}; is {two.formula}"
    else:
        reason, detail = "error", f"{_named(causes)} changed" if causes else "no input that it names changed"
    held = two or one
    return Restated(
        figure_id=name,
        label="" if held is None else held.label,
        old=None if one is None else one.estimate,
        new=None if two is None else two.estimate,
        reason=reason,
        detail=detail,
        causes=causes,
    )


def with_base_year(
    made: Restatement, *, year: int, old: Sequence[Figure], prefix: str, threshold: float | None
) -> Restatement:
    """Return a restatement of the base year with whether it must be recalculated, by method.

    Where lower bounds stand beside a sum, nobody knows what share of the year a change is: it is open.

    Args:
        made: Of the base year's whole period.
        year: The base year.
        old: Its figures as they were stated.
        prefix: Of its totals: ``statement.2025.total``.
        threshold: Declared significance; ``None`` when nobody declared one.
    """
    before = _by_id(old)
    found: dict[str, Recalculation] = {}
    for name in _EMISSIONS:
        row, base = made.row(f"{prefix}.{name}"), before.get(f"{prefix}.{name}")
        if base is None:
            continue
        changes, kg, least = [] if row is None else [_change(row)], base.estimate, f"{prefix}.at_least.{name}"
        if kg.state == "known" and (least in before or made.row(least) is not None):
            # Lower bounds stand beside the sum, so that the sum is none of the whole year.
            kg = msgspec.structs.replace(kg, state="unbounded")
        found[name.removesuffix("_kg")] = recalculation(year, kg, changes, threshold)
    findings = dict.fromkeys(f for r in found.values() for f in r.findings)
    return msgspec.structs.replace(made, base_year=found, findings=(*made.findings, *findings))


def _change(row: Restated) -> Change:
    gone = unknown("kg")
    return Change(
        reason=row.reason,
        detail=row.detail,
        old_kg=row.old or gone,
        new_kg=row.new or gone,
        input_ids=row.causes,
    )


class PriorPeriod(msgspec.Struct, frozen=True, kw_only=True):
    """Energy of a closed period that came to light later, at one boundary, recorded or metered.

    Attributes:
        period: The closed period.
        found_in: Periods in which the records were found, in order; their lines it is.
        records: Ids of the records.
        closed_j, now_j: As it was closed, and as it is, as far as known; ``None`` where nothing is.
        closed_state: ``unbounded`` where a part was unknown at the close: a lower bound.
        now: As it is, with its interval; ``unbounded`` where a part is unknown.
        same_unknown: Whether what is unknown is the same then and now, so that it cancels.
        metered_at: Site whose meters, or bills with energy, counted it; ``None`` for recorded runs.
    """

    period: str
    found_in: tuple[str, ...]
    boundary: Boundary | None
    records: tuple[str, ...]
    closed_j: Decimal | None
    now_j: Decimal | None
    now: Estimate
    closed_state: State = "known"
    same_unknown: bool = False
    metered_at: str | None = None

    @property
    def adjustment_j(self) -> Decimal | None:
        """What is adjusted: exact; ``None`` where a part of one of the two is unknown.

        A difference of lower bounds bounds nothing.
        """
        if self.now_j is None or self.closed_j is None:
            return None
        is_exact = self.same_unknown or self.closed_state == self.now.state == "known"
        return self.now_j - self.closed_j if is_exact else None

    @property
    def is_none(self) -> bool:
        """Whether nothing is adjusted, for sure: nothing that is to be said."""
        both_unknown = self.same_unknown and self.closed_j is None and self.now_j is None
        return both_unknown or self.adjustment_j == 0


def prior_period(
    period: str,
    closed: Mapping[Boundary | None, Decimal | None],
    now: Mapping[Boundary | None, tuple[Decimal | None, Estimate]],
    found: Iterable[tuple[str, str]],
    *,
    partial: Collection[Boundary | None] = (),
    same_unknown: bool = False,
) -> tuple[PriorPeriod, ...]:
    """Return the lines that a closed period's late records make, one a boundary.

    A closed period is not opened again: what it was closed with stays, and the difference is a
    line of the period in which it was found.

    Args:
        period: The closed period.
        closed: Energy by boundary, as its manifest has it.
        now: Energy by boundary, as the ledger gives it today.
        found: Of each late record: its id, and the period in which it was found.
        partial: Boundaries of whose energy a part was unknown at the close.
        same_unknown: Whether the runs of unknown energy are those of the close, none of them late.
    """
    late = list(found)
    names = tuple(dict.fromkeys(record for record, _ in late))
    periods = tuple(sorted({place for _, place in late}))
    lines = []
    for boundary in sorted({*closed, *now}, key=str):
        now_j, estimate = now.get(boundary, (Decimal(0), Estimate(value=0.0, unit="J")))
        # A boundary that the manifest does not have had no energy in it.
        closed_j = closed.get(boundary, Decimal(0))
        line = PriorPeriod(
            period=period,
            found_in=periods,
            boundary=boundary,
            records=names,
            closed_j=closed_j,
            now_j=now_j,
            now=estimate,
            closed_state=held_state(closed_j, is_whole=boundary not in partial),
            same_unknown=same_unknown,
        )
        if late and not line.is_none:
            lines.append(line)
    return tuple(lines)


def held_state(joules: Decimal | None, *, is_whole: bool) -> State:
    """Return what is known of an energy that was summed as far as known."""
    if joules is None:
        return "unknown"
    return "known" if is_whole else "unbounded"


def not_as_closed(period: str, closed_with: str, old: str) -> Finding:
    """Return the Finding of old factors that are not those a period was closed with.

    Args:
        period: The closed period.
        closed_with: Hash of its factor set.
        old: Hash of the set that was given.
    """
    return Finding(
        code="CL400",
        severity="warning",
        message=f"{period} was closed with the factor set {closed_with[:12]}, and the old figures here "
        f"rest on {old[:12]}",
        mend="give the factors of that time: a folder, or the wheel of the carbonlens that closed it",
        subject=period,
    )


def other_factors(closes: Mapping[str, str], used: str) -> tuple[Finding, ...]:
    """Return the Findings of a statement that is made with other factors than its period was closed with.

    Args:
        closes: Hash of the factor set by close.
        used: Hash of the set in use.
    """
    return tuple(
        Finding(
            code="CL400",
            severity="warning",
            message=f"{period} was closed with the factor set {then[:12]}, and this statement is made with "
            f"{used[:12]}: its figures may differ from those of the close",
            mend="give the factors of that time with --factors, or see carbonlens ledger restate",
            subject=period,
        )
        for period, then in closes.items()
        if then != used
    )


def unexplained(made: Restatement) -> tuple[Finding, ...]:
    """Return the Finding of rows for which no factor and no method accounts."""
    rows = [r for r in made.rows if r.reason == "error"]
    if not rows:
        return ()
    return (
        Finding(
            code="CL464",
            severity="info",
            message=f"{counted(len(rows), 'figure')} changed with the records alone: as the correction of an "
            "error",
            mend="state --reason and --why where it is a change of structure or the entity's own growth",
        ),
    )


def _by_id(figures: Sequence[Figure]) -> dict[str, Figure]:
    return {f.figure_id: f for f in figures}


def _moved(before: Mapping[str, Figure], after: Mapping[str, Figure]) -> frozenset[str]:
    """Return the ids that a figure may rest on and that are not what they were, or in one set only."""
    named = {i for f in (*before.values(), *after.values()) for i in f.inputs}
    moved = set()
    for name in named:
        one, two = before.get(name), after.get(name)
        if one is None and two is None:
            ends = [any(name in f.inputs for f in held.values()) for held in (before, after)]
            if ends[0] != ends[1]:
                moved.add(name)
        elif one is None or two is None or (not one.inputs and not _alike(one.estimate, two.estimate)):
            moved.add(name)
    return frozenset(moved)


def _retold(before: Mapping[str, Figure], after: Mapping[str, Figure]) -> frozenset[str]:
    """Return the leaves that have their value still and count something else: a factor of another span."""
    both = [(name, before[name], after[name]) for name in before.keys() & after.keys()]
    return frozenset(
        n for n, one, two in both if not one.inputs and not two.inputs and one.label != two.label
    )


def _leaves(name: str, figures: Mapping[str, Figure]) -> set[str]:
    """Return the ids that a figure rests on in the end, and those on the way."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        held = figures.get(waiting.pop())
        for one in () if held is None else held.inputs:
            if one not in found:
                found.add(one)
                waiting.append(one)
    return found


def _alike(one: Estimate, two: Estimate) -> bool:
    if one.value is None or two.value is None:
        return one.value is two.value and one.state == two.state
    size = max(abs(one.value), abs(two.value))
    return abs(one.value - two.value) <= _SAME * size and one.state == two.state


def _named(ids: Sequence[str]) -> str:
    return ", ".join(ids[:_NAMED]) + (f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else "")
