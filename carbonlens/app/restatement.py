"""Use case: make the figures of a period again, keep old and new, and say what it changes."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import msgspec

from carbonlens.accounting.base_year import Reason
from carbonlens.accounting.restatement import (
    PriorPeriod,
    Restatement,
    not_as_closed,
    prior_period,
    restatement,
    source_name,
    unexplained,
    with_base_year,
)
from carbonlens.app.factors import rows_of
from carbonlens.app.inventory import calendar_of, load_inventory
from carbonlens.app.ledger_care import pseudonym, span_of
from carbonlens.app.metered_adjustments import metered_adjustments, names_of_activity
from carbonlens.app.statement import make_statement
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.units import US_PER_HOUR, US_PER_S, Boundary
from carbonlens.errors import InputFileError, MissingExtraError, RecordError, SelectionError, UsageError
from carbonlens.factors.place import locate_factors
from carbonlens.factors.store import FactorSet, bundled, open_factors, present, read_own, with_own
from carbonlens.ledger import restatements
from carbonlens.ledger.calendar import Calendar, Period
from carbonlens.ledger.closes import Chain, Close, adjustments, load
from carbonlens.ledger.opening import open_ledger
from carbonlens.ledger.restatements import Stored
from carbonlens.ledger.store import Ledger, unwritable
from carbonlens.reporting.statement_json import SCHEMA

BUNDLED: Final = "bundled"
"""Stands for the factors that come with carbonlens, without the user's own."""

_IN_FORCE: Final = "the factors in force"


class Restating(msgspec.Struct, frozen=True, kw_only=True):
    """What a restatement gave.

    Attributes:
        made: Old and new of every figure that changed.
        stored: The record of it.
        file: Where it lies; ``None`` where it was not kept.
    """

    made: Restatement
    stored: Stored
    file: str | None
    ledger: str


class _Side(msgspec.Struct, frozen=True, kw_only=True):
    """Old or new figures, and what they were made with."""

    words: str
    figures: tuple[Figure, ...]
    factor_ids: frozenset[str] = frozenset()
    sha256: str | None = None


def restate(  # noqa: PLR0913 - each is an option of the command line
    period: str,
    old: str,
    new: str | None = None,
    *,
    reason: Reason | None = None,
    why: str = "",
    by: str | None = None,
    keep: bool = True,
    inventory: str | Path | None = None,
    ledger: str | Path | None = None,
    now_us: int | None = None,
) -> Restating:
    """Make a period's figures with old and with new factors, and keep the difference.

    Args:
        period: ``2026Q3``, ``2026-08`` or ``2026``, fiscal.
        old: Factors of that time: a table or folder of your own, a wheel of carbonlens,
            ``bundled``; or a statement that ``account --json`` printed, a file ending in ``.json``.
        new: Likewise; the factors in force when ``None``.
        reason: What the entity states as the reason; told by the inputs when ``None``.
        why: In its words.
        by: Who restates it, as it is to be printed; a pseudonym when ``None``.
        keep: Whether the ledger keeps it.
        inventory: The inventory folder; found as the command line finds it when ``None``.
        ledger: The ledger's folder; found likewise.
        now_us: The present, UTC microseconds; by the clock when ``None``.

    Raises:
        SelectionError: If there is no such ledger, or no runs in the period.
        UsageError: If the period is none, or a statement is of another.
        InputFileError, ConfigError: If factors, statement or inventory cannot be read.
        RecordError: If an earlier restatement is damaged.
        UnwritableError: If the ledger cannot be written.
    """
    present_us = time.time_ns() // 1000 if now_us is None else now_us
    held = load_inventory(inventory).inventory
    options: dict[str, Any] = {"inventory": inventory, "ledger": ledger, "now_us": present_us}
    before, after = (_side(text, period, options) for text in (old, new))
    made = restatement(
        period,
        before.figures,
        after.figures,
        factor_ids=before.factor_ids | after.factor_ids,
        stated=reason,
        why=why,
    )
    made = _judged(made, held, before)
    with open_ledger(ledger) as store:
        calendar = calendar_of(held.terms)
        span = span_of(period, calendar)
        made = _said(made, store, span.start_us, span.end_us, before)
        record = Stored(
            period=period,
            start_us=span.start_us,
            end_us=span.end_us,
            made_us=present_us,
            by=by or pseudonym(),
            reason=reason,
            why=why,
            old=source_name(before.words),
            new=source_name(after.words),
            old_factors_sha256=before.sha256,
            new_factors_sha256=after.sha256,
            rows=made.rows,
            same=made.same,
            base_year=made.base_year,
        )
        if not keep or not made.rows:
            return Restating(made=made, stored=record, file=None, ledger=store.shown)
        try:
            stored, file = restatements.keep(store.path, record)
        except OSError as error:
            raise unwritable(store.path, error) from error
        return Restating(made=made, stored=stored, file=str(file), ledger=store.shown)


def _side(text: str | None, period: str, options: dict[str, Any]) -> _Side:
    if text is not None and text.endswith(".json"):
        return _side_of_statement(Path(text), period)
    factors = _factors(text)
    made = make_statement(period, factors=factors, **options)
    return _Side(
        words=text or _IN_FORCE,
        figures=made.statement.figures,
        factor_ids=frozenset(row.factor_id for row in factors.rows),
        sha256=factors.sha256,
    )


def _factors(text: str | None) -> FactorSet:
    if text is None:
        return open_factors()
    if text == BUNDLED:
        return bundled()
    if text.endswith(".whl"):
        base, own = FactorSet(rows=rows_of(text)), locate_factors()
        return base if own is None else with_own(base, read_own(own, now=present()))
    return open_factors(text)


class _JsonEstimate(msgspec.Struct, frozen=True):
    value: float | None
    unit: str
    state: Any = "known"
    grade: Any = None
    low: float | None = None
    high: float | None = None


class _JsonFigure(msgspec.Struct, frozen=True):
    id: str
    estimate: _JsonEstimate
    label: str = ""
    formula: str = ""
    inputs: tuple[str, ...] = ()


class _JsonStatement(msgspec.Struct, frozen=True):
    schema: str
    period: str
    figures: tuple[_JsonFigure, ...]
    factors_sha256: str | None = None


def _side_of_statement(file: Path, period: str) -> _Side:
    """Read a statement that was printed as JSON; of its figures the errors are known as intervals only."""
    from carbonlens.domain.decoding import decode_json

    try:
        found = decode_json(file.read_bytes(), _JsonStatement)
    except OSError as error:
        raise InputFileError(
            f"cannot be read ({error.strerror or error})", where=str(file), mend="check the path"
        ) from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InputFileError(
            f"is no statement ({error})", where=str(file), mend="give what carbonlens account --json printed"
        ) from error
    if found.schema != SCHEMA or found.period != period:
        raise UsageError(
            f"is {found.schema} of {found.period}, not a statement of {period}",
            where=str(file),
            mend="give what carbonlens account --json printed of that period",
        )
    figures = tuple(
        Figure(
            figure_id=f.id,
            estimate=Estimate(
                value=f.estimate.value,
                unit=f.estimate.unit,
                state=f.estimate.state,
                grade=f.estimate.grade,
                bounds=None if f.estimate.value is None else (f.estimate.low, f.estimate.high),
            ),
            label=f.label,
            formula=f.formula,
            inputs=f.inputs,
        )
        for f in found.figures
    )
    return _Side(words=str(file.name), figures=figures, sha256=found.factors_sha256)


def _judged(made: Restatement, inventory: Inventory, before: _Side) -> Restatement:
    """Return the restatement with what it does to the base year, where the period is it."""
    terms = inventory.terms
    if terms.base_year is None or made.period.strip() != str(terms.base_year):
        return made
    return with_base_year(
        made,
        year=terms.base_year,
        old=before.figures,
        prefix=f"statement.{made.period}.total",
        threshold=terms.recalculation_threshold,
    )


def _said(made: Restatement, store: Ledger, start_us: int, end_us: int, before: _Side) -> Restatement:
    closed = [c for c in load(store.path).closes.values() if c.start_us < end_us and c.end_us > start_us]
    findings = [
        not_as_closed(c.period, c.factor_set_sha256, before.sha256)
        for c in closed
        if c.factor_set_sha256 is not None and before.sha256 not in (None, c.factor_set_sha256)
    ]
    every: tuple[Finding, ...] = (*made.findings, *findings, *unexplained(made))
    return msgspec.structs.replace(made, findings=every)


def prior_periods(
    *,
    inventory: str | Path | None = None,
    ledger: str | Path | None = None,
    now_us: int | None = None,
) -> tuple[PriorPeriod, ...]:
    """Return what records that came after a close change in closed periods, each with where it was found.

    Args:
        inventory: The inventory folder, with its meters; its time zone names the present month.
        ledger: The ledger's folder.
        now_us: The present, UTC microseconds; by the clock when ``None``.

    Raises:
        SelectionError: If there is no such ledger.
        MissingExtraError: If the ``analysis`` extra is not installed.
        RecordError: If the ledger cannot be read.
    """
    from carbonlens.app.compare import require_analysis

    require_analysis()
    declared = load_inventory(inventory).inventory
    calendar = calendar_of(declared.terms)
    month = _month(time.time_ns() // 1000 if now_us is None else now_us, calendar)
    with open_ledger(ledger) as store:
        if not store.exists:
            raise SelectionError("the ledger is not there", where=store.shown, mend="check --ledger")
        held, chain = store.holdings(), load(store.path)
        if held.unread_files:
            raise MissingExtraError("analysis", "duckdb")
        late = adjustments(store.path, held, chain)
        _refuse_damaged(chain, {a.period for a in late})
        others = names_of_activity(store) if late else frozenset()
        lines: list[PriorPeriod] = []
        for name in sorted({a.period for a in late}):
            found = [(a.name, a.taken_up or month) for a in late if a.period == name]
            of_runs = [one for one in found if one[0] not in others]
            lines += _lines(store.path, chain.closes[name], of_runs) if of_runs else ()
            lines += metered_adjustments(store, declared, chain.closes[name], found)
        return tuple(lines)


def _refuse_damaged(chain: Chain, adjusted: Collection[str]) -> None:
    """Refuse a chain that lacks a manifest: what its period was closed with is not known.

    Raises:
        RecordError: If one is damaged, or gone.
    """
    for fault in chain.findings:
        raise RecordError(fault.message, where=fault.file, mend=fault.mend or "restore the file from a copy")
    for name in sorted(set(adjusted) - set(chain.closes)):
        raise RecordError(
            f"the manifest of {name} is gone", where=f"{name}.json", mend="restore the file from a copy"
        )


def _lines(ledger: Path, close: Close, found: Sequence[tuple[str, str]]) -> tuple[PriorPeriod, ...]:
    from carbonlens.ledger.accounts import account
    from carbonlens.ledger.frames import View

    hours = Period(close.start_us // US_PER_HOUR, close.end_us // US_PER_HOUR, close.period)
    with View(ledger, hours) as view:
        held = account(view)
    now = {t.boundary: (t.energy.exact, t.energy.estimate) for t in held.totals}
    closed: dict[Boundary | None, Decimal | None] = {e.boundary: e.energy_j for e in close.energy}
    if set(closed) == {None} and _told(now):
        # A manifest of the first version has one energy, of boundaries it does not name.
        closed = dict.fromkeys(now)
    # As many as at the close, and none of them late: the same.
    same = held.unknown_runs == close.unknown_energy and not {n for n, _ in found} & set(held.unknown_ids)
    return prior_period(close.period, closed, now, found, partial=close.partial, same_unknown=same)


def _told(now: Collection[Boundary | None]) -> bool:
    return any(boundary is not None for boundary in now)


def _month(instant_us: int, calendar: Calendar) -> str:
    rows = calendar.rows(instant_us // US_PER_HOUR, instant_us // US_PER_HOUR + 1)
    if not rows:
        return f"{datetime.fromtimestamp(instant_us // US_PER_S, tz=UTC):%Y-%m}"
    return f"{rows[0].month // 100:04}-{rows[0].month % 100:02}"
