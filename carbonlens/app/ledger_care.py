"""Use case: look after a ledger: compact, verify, export, close, redact, correct."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.identity import sha256_hex
from carbonlens.domain.run import Run
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.errors import MissingExtraError, SelectionError
from carbonlens.ledger.naming import names_by_address
from carbonlens.ledger.opening import open_ledger
from carbonlens.ledger.records import Stored, current, family_of
from carbonlens.ledger.store import Ledger, unwritable

if TYPE_CHECKING:
    from carbonlens.ledger.calendar import Calendar
    from carbonlens.ledger.closes import Close, Span
    from carbonlens.ledger.closing import PeriodStatus
    from carbonlens.ledger.compaction import Compaction
    from carbonlens.ledger.export import Format
    from carbonlens.ledger.holdings import Holdings
    from carbonlens.ledger.redacting import Redaction
    from carbonlens.ledger.verify import Verification


class Edited(msgspec.Struct, frozen=True, kw_only=True):
    """A correction as written.

    Attributes:
        before: The record that was the run's latest.
        after: The one that supersedes it.
        adjusts: Name of the closed period whose figures it adjusts.
        settles: How many further corrections of the run it supersedes too.
    """

    before: Run
    after: Run
    ledger: str
    adjusts: str | None = None
    settles: int = 0


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """What an export gave.

    Attributes:
        content: The file's bytes.
        runs: How many runs are in it.
        findings: What could not be read, and is not in it.
        label: Of the period that was asked for: ``DRAFT`` while it is open; empty without one.
    """

    content: bytes
    runs: int
    label: str = ""
    findings: tuple[Finding, ...] = ()


def compact(*, ledger: str | Path | None = None, months: Sequence[str] | None = None) -> Compaction:
    """Fold past months into Parquet.

    Args:
        ledger: The ledger's folder; found as the command line finds it when ``None``.
        months: Only these (``yyyymm``), also the present one; all past ones when ``None``.

    Raises:
        SelectionError: If there is no ledger, or nothing of the months that are given.
        MissingExtraError: If DuckDB is not installed.
        UnwritableError: If the ledger cannot be written; it is as it was.
    """
    from carbonlens.ledger import compaction

    with _opened(ledger) as store:
        _require_duckdb()
        try:
            present, is_copy = f"{datetime.now(tz=UTC):%Y%m}", store.shown != str(store.path)
            done = compaction.compact(store.path, before=present, months=months, is_copy=is_copy)
        except OSError as error:
            raise unwritable(store.path, error) from error
        return msgspec.structs.replace(done, findings=store.named(done.findings))


def verify(*, ledger: str | Path | None = None) -> Verification:
    """Check a whole ledger.

    Raises:
        SelectionError: If there is no ledger.
        RecordError: If the folder itself cannot be read.
    """
    from carbonlens.ledger import verify as checks

    with _opened(ledger) as store:
        try:
            found = checks.verify(store.path, now_us=_now_us())
        except OSError as error:
            raise store.unreadable(error) from error
        named = (msgspec.structs.replace(c, findings=store.named(c.findings)) for c in found.checks)
        return msgspec.structs.replace(found, checks=tuple(named))


def export(
    *,
    format_: Format,
    ledger: str | Path | None = None,
    period: str | None = None,
    study: str | None = None,
    calendar: Calendar | None = None,
) -> Exported:
    """Return the runs that count, as a file's bytes.

    Args:
        format_: ``csv``, ``parquet`` or ``json``.
        ledger: The ledger's folder; found as the command line finds it when ``None``.
        period: Only runs that touch it, such as ``2026Q3``.
        study: Only runs of this study.
        calendar: Time zone and fiscal year the period is meant in.

    Raises:
        SelectionError: If no run that counts is of the study and has a part in the period.
        MissingExtraError: If DuckDB is needed and not installed.
        UsageError: If the period is none.
    """
    from carbonlens.ledger.closes import touches
    from carbonlens.ledger.export import export as make

    span = None if period is None else span_of(period, calendar)
    with _opened(ledger) as store:
        held = store.holdings()
        label = "" if span is None or held.unread_files else _status(store, held, span).label
    if held.unread_files:
        raise MissingExtraError("analysis", "duckdb")
    counting, broken = current([r.run for r in held.records])
    wanted = {id(r) for r in counting}
    records: list[Stored] = [
        r
        for r in held.records
        if id(r.run) in wanted
        and (study is None or r.run.study == study)
        and (span is None or touches(r.run.start_us, r.run.end_us, span))
    ]
    if not records and (study or period):
        asked = " and ".join([f"of a study {study!r}"] * bool(study) + [f"in {period}"] * bool(period))
        raise SelectionError(
            f"no run that counts is {asked}", where=store.shown, mend="carbonlens runs lists them"
        )
    records.sort(key=lambda r: (*r.run.recorded_us, r.run.run_id))
    return Exported(
        content=make(records, format_, span),
        runs=len(records),
        label=label,
        findings=(*held.findings, *broken),
    )


def close(
    period: str,
    *,
    ledger: str | Path | None = None,
    by: str | None = None,
    calendar: Calendar | None = None,
    inventory: str | Path | None = None,
) -> Close:
    """Close a period, and keep the inventory that its figures rest on.

    Args:
        period: ``2026Q3``, ``2026-09`` or ``2026``.
        ledger: The ledger's folder; found as the command line finds it when ``None``.
        by: Who closes it, as it is to be printed; a pseudonym when ``None``.
        calendar: That the period is meant in; the inventory's when ``None``.
        inventory: The inventory folder; found as the command line finds it when ``None``.

    Raises:
        SelectionError: If there is no ledger.
        UsageError: If the period is not over, closed already, or not of the inventory's calendar.
        RecordError: If a part of the ledger cannot be read.
        UnwritableError: If the ledger cannot be written.
        ConfigError, InputFileError: If the user's own factors or the inventory cannot be read.
    """
    from carbonlens.app.inventory import load_inventory, meant_calendar
    from carbonlens.factors.store import open_factors
    from carbonlens.ledger import closing

    with _opened(ledger, whole=True) as store:
        span = span_of(period, meant_calendar(inventory, calendar))
        closing.refuse_open(span, _now_us())
        kept = load_inventory(inventory, store=store)
        try:
            return closing.close(
                store.path,
                store.holdings(),
                span,
                now_us=_now_us(),
                by=by or pseudonym(),
                factor_set=open_factors().sha256,
                inventory=kept.snapshots,
            )
        except OSError as error:
            raise unwritable(store.path, error) from error


def period_status(
    period: str, *, ledger: str | Path | None = None, calendar: Calendar | None = None
) -> PeriodStatus:
    """Return whether a period's figures are final; an open period's are a draft.

    Raises:
        UsageError: If the period is none.
        RecordError: If the ledger cannot be read.
    """
    with open_ledger(ledger) as store:
        return _status(store, store.holdings(), span_of(period, calendar))


def _status(store: Ledger, held: Holdings, span: Span) -> PeriodStatus:
    from carbonlens.ledger import closing

    try:
        return closing.period_status(store.path, held, span)
    except OSError as error:
        raise store.unreadable(error) from error


def redact(
    run: str,
    fields: Sequence[str],
    *,
    why: str,
    by: str | None = None,
    study: str | None = None,
    ledger: str | Path | None = None,
) -> Redaction:
    """Take content out of all records of a run for good.

    Args:
        run: Run id, or enough of its start or end.
        fields: Paths such as ``tags.owner``, ``origin.args`` or ``energy``.
        why: Reason, kept in the tombstone.
        by: Who does it, as it is to be printed; a pseudonym when ``None``.
        study: Of the run, where several studies have its id.
        ledger: The ledger's folder; found as the command line finds it when ``None``.

    Raises:
        SelectionError: If there is no such run, or it holds none of the fields.
        UsageError: If a field cannot be taken out.
        UnwritableError: If the ledger cannot be written.
    """
    from carbonlens.ledger import redacting
    from carbonlens.ledger.editing import select

    with _opened(ledger) as store:
        runs = redacting.with_misfits(store.path, store.view().runs)
        family = family_of(select(run, runs, where=store.shown, study=study), runs)
        try:
            done = redacting.redact(
                store.path, family, fields, by=by or pseudonym(), when_us=_now_us(), why=why
            )
        except OSError as error:
            raise unwritable(store.path, error) from error
        return msgspec.structs.replace(
            done,
            files=names_by_address(done.files, store.path, store.shown),
            remaining=names_by_address(done.remaining, store.path, store.shown),
            tombstones=names_by_address(done.tombstones, store.path, store.shown),
        )


def tag(
    run: str, tags: Mapping[str, str], *, study: str | None = None, ledger: str | Path | None = None
) -> Edited:
    """Write a record that supersedes the run and has these tags too.

    Two corrections by hosts that did not know of each other are settled by it.

    Args:
        run: Run id, or enough of its start or end.
        tags: Names and values; an empty value takes a tag out.
        study: Of the run, where several studies have its id.
        ledger: The ledger's folder; found as the command line finds it when ``None``.

    Raises:
        SelectionError: If there is no such run, or more than one.
        UsageError: If nothing changes, or the two corrections differ in what is not given.
        UnwritableError: If the ledger cannot be written.
    """
    from carbonlens.ledger import editing, forks

    with _opened(ledger) as store:
        runs = store.view().runs
        before = editing.select(run, runs, where=store.shown, study=study)
        return _write(store, before, editing.tagged(before, tags, fork=forks.fork_of(before, runs)))


def supersede(
    run: str,
    changes: Mapping[str, Any],
    *,
    why: str | None = None,
    study: str | None = None,
    ledger: str | Path | None = None,
) -> Edited:
    """Write a record that supersedes the run and differs in these fields.

    Two corrections by hosts that did not know of each other are settled by it.

    Args:
        run: Run id, or enough of its start or end.
        changes: Field to its value as JSON has it.
        why: Reason, kept in the new record.
        study: Of the run, where several studies have its id.
        ledger: The ledger's folder; found as the command line finds it when ``None``.

    Raises:
        SelectionError: If there is no such run, or more than one.
        UsageError: If the changes make no run or change nothing, put the run into itself, or the
            two corrections differ in what is not given.
        UnwritableError: If the ledger cannot be written.
    """
    from carbonlens.ledger import editing, forks

    with _opened(ledger) as store:
        runs = store.view().runs
        before = editing.select(run, runs, where=store.shown, study=study)
        after = editing.corrected(before, changes, why=why, fork=forks.fork_of(before, runs))
        editing.refuse_circle(before, after, runs)
        return _write(store, before, after)


def span_of(period: str, calendar: Calendar | None = None) -> Span:
    """Return the instants of a period.

    Args:
        period: ``2026Q3``, ``2026-09`` or ``2026``.
        calendar: Time zone and fiscal year; UTC and the calendar year when ``None``.

    Raises:
        UsageError: If it is none.
    """
    from carbonlens.ledger.calendar import Calendar
    from carbonlens.ledger.closes import Span

    meant = calendar or Calendar()
    found = meant.period(period)
    return Span(
        name=meant.name_of(period),
        start_us=found.first_hour * US_PER_HOUR,
        end_us=found.end_hour * US_PER_HOUR,
        reporting_timezone=meant.reporting_timezone,
        fiscal_year_start=meant.fiscal_year_start,
    )


@contextmanager
def _opened(ledger: str | Path | None, *, whole: bool = False) -> Iterator[Ledger]:
    """Lend a ledger that is there: care of one that is not would make it, or praise it.

    Raises:
        SelectionError: If nothing is there.
    """
    with open_ledger(ledger, whole=whole) as store:
        if not store.exists:
            raise SelectionError("there is no ledger", where=store.shown, mend="check --ledger")
        yield store


def pseudonym() -> str:
    """Return a stable name for the user of this host that tells nobody who it is."""
    return "user-" + sha256_hex(f"{os.getuid()} {os.uname().nodename}".encode())[:12]


def _write(store: Ledger, before: Run, after: Run) -> Edited:
    from carbonlens.ledger import closes

    try:
        chain = closes.load(store.path)
    except OSError as error:
        raise store.unreadable(error) from error
    store.append(after)
    closed = [
        c.period
        for c in chain.closes.values()
        if any(closes.touches(r.start_us, r.end_us, closes.span_of(c)) for r in (before, after))
    ]
    return Edited(
        before=before,
        after=after,
        ledger=store.shown,
        adjusts=min(closed, default=None),
        settles=len(after.supersedes_also),
    )


def _require_duckdb() -> None:
    from carbonlens.ledger import parquet

    parquet.connect().close()


def _now_us() -> int:
    return time.time_ns() // 1000
