"""Use case: gather what a quarter's sustainability report is made of, each statement made once."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.accounting.periods_compared import compared
from carbonlens.app.compare import require_analysis
from carbonlens.app.drivers import Source, before, explained
from carbonlens.app.drivers_reading import Work
from carbonlens.app.drivers_savings import register_of
from carbonlens.app.inventory import inventory_once, load_inventory
from carbonlens.app.ledger_care import span_of
from carbonlens.app.statement import Made, make_statement
from carbonlens.app.statement_last import last_quarter
from carbonlens.app.sustainability_records import closes_of, factors_of, prior_of, restatements_of
from carbonlens.app.sustainability_scores import scores_of, works_of
from carbonlens.domain.drivers import Drivers, Measure
from carbonlens.domain.drivers_savings import Register
from carbonlens.domain.finding import Finding
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.errors import SelectionError, UsageError
from carbonlens.factors.store import FactorSet, open_factors
from carbonlens.ledger.opening import one_opening, open_ledger
from carbonlens.ledger.store import Ledger
from carbonlens.reporting.sustainability_input import Given, Quarter

SPLITS: Final = ("team", "model", "hardware")
_EARLIER: Final = 4
"""Quarters of the trend before the one that is reported: the last is that of the year before."""

CLASSES: Final = "workload"
"""What classes of work are told apart by."""

_MEASURES: Final[tuple[Measure, ...]] = ("energy", "carbon-location", "carbon-market", "cost")


class Gathered(msgspec.Struct, frozen=True, kw_only=True):
    """What a report is made of, and where it came from.

    Attributes:
        given: For the view.
        made: Statements by quarter.
        source: Ledger, inventory and factors.
        start_us, end_us: The quarter as instants, the end exclusive.
    """

    given: Given
    made: Mapping[str, Made]
    source: Source
    start_us: int
    end_us: int


def gather(
    period: str | None = None,
    *,
    inventory: str | Path | None = None,
    factors: str | Path | FactorSet | None = None,
    ledger: str | Path | None = None,
    now_us: int | None = None,
) -> Gathered:
    """Return what the report of a quarter is made of.

    Args:
        period: A fiscal quarter, ``2026Q3``; the last one with runs when ``None``.
        inventory: The inventory folder; found as the command line finds it when ``None``.
        factors: The user's own factors, found likewise, or a whole set.
        ledger: The ledger's folder; found likewise.
        now_us: The present, UTC microseconds; by the clock when ``None``.

    Raises:
        SelectionError: If the ledger is not there, or holds nothing of the quarter.
        UsageError: If the period is no quarter.
        ConfigError, InputFileError: If inventory or factors cannot be read.
        MissingExtraError: If the ``analysis`` extra is not installed.
    """
    require_analysis()
    # All who read the same runs must have the same inventory: what holds at places is found out once for it.
    with inventory_once(), ExitStack() as opened:
        kept = load_inventory(inventory)
        held = factors if isinstance(factors, FactorSet) else open_factors(factors)
        present = time.time_ns() // 1000 if now_us is None else now_us
        source = Source(kept=kept, factors=held, ledger=ledger, inventory=inventory, now_us=present)
        opened.enter_context(one_opening(ledger))
        store = opened.enter_context(open_ledger(ledger))
        if not store.exists:
            raise SelectionError("the ledger is not there", where=store.shown, mend="check --ledger")
        name, said = _quarter(period, store, source)
        hours = source.calendar.period(name)
        first, end = hours.first_hour * US_PER_HOUR, hours.end_hour * US_PER_HOUR
        # What day it is moves no figure of a quarter that is over: of the same records the same report can
        # be made on any later one. Records of later runs may, where these share a device over its end.
        source = msgspec.structs.replace(source, now_us=min(present, end))
        made, why = _statements(name, source)
        return Gathered(
            given=_given(name, made, why, source, store, said),
            made=made,
            source=msgspec.structs.replace(source, held=made),
            start_us=first,
            end_us=end,
        )


def _quarter(period: str | None, store: Ledger, source: Source) -> tuple[str, tuple[Finding, ...]]:
    """Return the quarter, and what must be said of runs that no quarter holds.

    Those are asked for even where the quarter is named: the report of it is the same either way.
    """
    if period is None:
        return last_quarter(store, source.calendar)
    text = period.strip()
    source.calendar.period(text)
    if "Q" not in text:
        raise UsageError(
            f"{text!r} is no quarter, and the sustainability report is of one",
            where="--period",
            mend="write 2026Q3; carbonlens account takes months and years too",
        )
    return text, last_quarter(store, source.calendar)[1]


def _statements(name: str, source: Source) -> tuple[dict[str, Made], dict[str, str]]:
    """Return the statements of the quarter and of those before it, and why one is not there."""
    made, why = {name: _made(name, source, SPLITS)}, {}
    other = name
    for _ in range(_EARLIER):
        other = before(other, source.calendar)
        try:
            made[other] = _made(other, source)
        except SelectionError as error:
            why[other] = error.what
    return made, why


def _made(name: str, source: Source, also: Sequence[str] = ()) -> Made:
    return make_statement(
        name,
        also=also,
        work=CLASSES,
        inventory=source.inventory,
        factors=source.factors,
        ledger=source.ledger,
        now_us=source.now_us,
    )


def _given(
    name: str,
    made: Mapping[str, Made],
    why: Mapping[str, str],
    source: Source,
    store: Ledger,
    said: tuple[Finding, ...],
) -> Given:
    calendar, own = source.calendar, made[name]
    names = _names(name, source)
    held = {n: made[n].statement if n in made else None for n in names}
    previous, last_year = names[-2], names[0]
    # A fiscal year is as long as its quarters so far: the number of this one.
    to_date = tuple(names[-int(name[5]) :])
    open_source = msgspec.structs.replace(source, held=made)
    works = works_of(names, open_source, CLASSES)
    drivers, no_drivers = _drivers(works, open_source, name, previous)
    register, no_register = _register(open_source, name)
    scores = scores_of(works, open_source)
    rows, own_ids = factors_of(own.statement, source.factors)
    span = span_of(name, calendar)
    # Figures of every quarter of the report stand in it, so what was restated or came late of any is told.
    shown = msgspec.structs.replace(span, start_us=span_of(names[0], calendar).start_us)
    found = compared(held, name, tuple(n for n in (previous, last_year) if n in made), to_date)
    restated = restatements_of(store.path, shown)
    return Given(
        period=name,
        quarters=tuple(
            Quarter(
                name=n,
                statement=held[n],
                label=made[n].label if n in made else "",
                why_none=why.get(n, ""),
            )
            for n in names
        ),
        previous=previous,
        last_year=last_year,
        to_date=to_date,
        compared=found,
        splits=own.splits,
        drivers=drivers,
        no_drivers=no_drivers,
        register=register,
        no_register=no_register,
        scores=scores.scores,
        closes=closes_of(store.path, span),
        restatements=restated.restatings,
        prior=prior_of(store, source, shown),
        factors=rows,
        own_factors=own_ids,
        factors_sha256=source.factors.sha256,
        inventory_sha256=own.inventory_sha256,
        snapshots=own.snapshots,
        deliveries=tuple(
            d for d in source.kept.inventory.deliveries if set(d.months) & set(own.statement.period.months)
        ),
        example=own.example,
        calendar=calendar.words,
        runs=sum(x.runs for x in own.statement.lines if x.kind in ("recorded", "at_least")),
        findings=(*said, *restated.findings, *scores.findings),
    )


def _names(name: str, source: Source) -> list[str]:
    """Return the quarters of the report, oldest first."""
    names = [name]
    for _ in range(_EARLIER):
        names.insert(0, before(names[0], source.calendar))
    return names


def _drivers(
    held: Mapping[str, Work], source: Source, name: str, previous: str
) -> tuple[Drivers | None, str]:
    """Return the bridges of all measures that both quarters know, else why there are none."""
    if previous not in held:
        return None, f"nothing is known of {previous}, so there is nothing to have changed from"
    works = held[previous], held[name]
    try:
        return explained(works, CLASSES, _MEASURES, now_us=source.now_us).drivers, ""
    except SelectionError as error:
        why = error.what
    known = [m for m in _MEASURES if _is_known(works, m, source)]
    if not known:
        return None, why
    return explained(works, CLASSES, known, now_us=source.now_us).drivers, ""


def _is_known(works: tuple[Work, Work], measure: Measure, source: Source) -> bool:
    """Tell whether both quarters know a measure, so that there is a bridge of it."""
    try:
        explained(works, CLASSES, (measure,), now_us=source.now_us)
    except SelectionError:
        return False
    return True


def _register(source: Source, name: str) -> tuple[Register | None, str]:
    try:
        return register_of(source, name).register, ""
    except SelectionError as error:
        return None, error.what
