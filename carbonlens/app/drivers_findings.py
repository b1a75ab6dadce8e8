"""Use case part: what is to be said of two periods before their change is believed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from carbonlens.app.drivers_reading import Work
from carbonlens.compare.drivers_bridge import Cell, Side, closes, is_comparable
from carbonlens.domain.counting import counted
from carbonlens.domain.drivers import NO_UNIT, Bridge, Change
from carbonlens.domain.finding import Finding
from carbonlens.domain.units import HOURS_PER_DAY, US_PER_HOUR

_NAMED: Final = 3
_LENGTHS: Final = 0.1
"""Periods of a kind differ by less: a quarter has 90 to 92 days, a February 28."""


def about(first: Work, last: Work, by: str, present_us: int) -> Iterator[Finding]:
    """Yield what holds for all bridges between two periods.

    Args:
        first: The earlier period.
        last: The later one.
        by: Label of the classes of work.
        present_us: The present.
    """
    yield from _of_time(first, last, present_us)
    works = (first, last)
    for work in works:
        period = work.made.period.text
        if all(unit == NO_UNIT for unit, _, _ in work.shares):
            yield _warning(
                "CL652",
                f"no run of {period} counts its work: volume, mix and energy per unit are not told apart",
                "record units with the runs: --unit U --units N, or add_units()",
            )
        for (unit, name), runs in sorted(work.silent.items()):
            yield _warning(
                "CL653",
                f"{counted(runs, 'run')} of {name} in {period} name the unit {unit} and no number of it: "
                "their energy raises the energy per unit",
                "correct them: carbonlens runs supersede RUN --by units=...",
                subject=name,
            )
    if all(name == "(none)" for w in works for _, name, _ in w.shares):
        yield Finding(
            code="CL654",
            severity="info",
            message=f"no run states {by}: all work of a unit is one class, and there is no mix",
            mend="choose another label with --by",
        )
    yield from _of_overheads(first, last)


def of_bridge(made: Bridge, cells: Sequence[Cell], against: str, period: str) -> Iterator[Finding]:
    """Yield what is to be said of one bridge.

    Args:
        made: The bridge.
        cells: Its rows.
        against: The earlier period.
        period: The later one.
    """
    if not closes(made):
        yield Finding(
            code="CL655",
            severity="error",
            message=f"the bridge of {made.key} does not close: {made.remainder:.6g} {made.unit} of the "
            "change are in no line",
            mend="records or prices changed while it was made: ask again; else report it as a fault",
        )
    if made.method == "shapley":
        yield _warning(
            "CL656",
            f"a value of {made.key} is negative: its change is split by Shapley values, as there is "
            "no logarithm of it",
            "see which: a negative price or factor is in --json",
        )
    apart = [c for c in cells if not is_comparable(c, is_least=made.is_least)]
    if apart:
        names = ", ".join(f"{c.name} at {c.site} ({_why(c, made, against, period)})" for c in apart[:_NAMED])
        more = f" and {len(apart) - _NAMED} more" if len(apart) > _NAMED else ""
        yield _warning(
            "CL657",
            f"{made.key}, known in one period only: {names}{more}; no driver explains their part",
            "state factors, prices and overheads of both periods",
        )


def maybe_renamed(change: Change) -> Finding:
    """Return the Finding of two names that may be of one work."""
    return Finding(
        code="CL658",
        severity="warning",
        message=f"{change.name} ended and {change.to} began with the same {change.evidence}: perhaps one "
        "work under another name, whose change then stands under mix",
        mend=f"join them: --same {change.name}={change.to}",
        subject=change.to,
    )


def _of_time(first: Work, last: Work, present_us: int) -> Iterator[Finding]:
    lengths = []
    for work in (first, last):
        period = work.made.period
        end = period.end_hour * US_PER_HOUR
        lengths.append(period.end_hour - period.first_hour)
        if present_us < end:
            days = max(present_us - period.first_hour * US_PER_HOUR, 0) / US_PER_HOUR / HOURS_PER_DAY
            yield _warning(
                "CL650",
                f"{period.text} is not over: {days:.0f} of {lengths[-1] / HOURS_PER_DAY:.0f} days are in it, "
                "and its volume is of these",
                "ask for a period that is over",
            )
        elif work.made.is_draft:
            yield _warning(
                "CL650",
                f"{period.text} is not closed: its figures may change",
                f"close it: carbonlens ledger close {period.text}",
            )
    if abs(lengths[0] - lengths[1]) > _LENGTHS * max(lengths):
        told = [f"{n / HOURS_PER_DAY:.0f}" for n in lengths]
        yield _warning(
            "CL651",
            f"the periods have {told[0]} and {told[1]} days: the volume tells of that too",
            "compare periods of one length",
        )


def _of_overheads(first: Work, last: Work) -> Iterator[Finding]:
    for site in sorted({s for w in (first, last) for _, _, s in w.shares}):
        held = [w.statement.terms.get(site) for w in (first, last)]
        if any(t is None for t in held):
            continue
        for name, words in (("pue", "PUE"), ("host", "host overhead")):
            known = [t is not None and getattr(t.overheads, name) is not None for t in held]
            if known[0] != known[1]:
                when = (last if known[1] else first).made.period.text
                yield _warning(
                    "CL659",
                    f"the {words} of {site} is known in {when} only: what it adds there is knowledge, "
                    "no change",
                    "state it for both periods",
                    subject=site,
                )


def _why(cell: Cell, made: Bridge, against: str, period: str) -> str:
    """Return why a row cannot be compared."""
    for side, name in ((cell.before, against), (cell.after, period)):
        if side is not None and not side.is_known:
            return f"{_missing(side, made)} in {name}"
    first = cell.before if cell.before is not None and cell.before.is_least else cell.after
    return f"a lower bound in {against if first is cell.before else period} only"


def _missing(side: Side, made: Bridge) -> str:
    if side.facility_kwh.value is None:
        return "energy unknown"
    if made.measure == "cost":
        return f"no price in {made.unit}"
    return "no factor" if side.amount.value is None else "no factor of a part"


def _warning(code: str, message: str, mend: str, subject: str | None = None) -> Finding:
    return Finding(code=code, severity="warning", message=message, mend=mend, subject=subject)
