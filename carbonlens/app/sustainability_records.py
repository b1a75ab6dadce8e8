"""Use case part: closes, restatements, late records and factors that a quarter's report names."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.accounting.restatement import PriorPeriod
from carbonlens.accounting.statement import Statement
from carbonlens.app.drivers import Source
from carbonlens.app.ledger_care import span_of
from carbonlens.app.restatement import prior_periods
from carbonlens.app.statement_ledger import month_of
from carbonlens.domain.factor_row import FactorRow
from carbonlens.domain.finding import Finding
from carbonlens.domain.identity import uuid7_ms
from carbonlens.domain.run import Run
from carbonlens.domain.units import US_PER_S
from carbonlens.factors.store import FactorSet
from carbonlens.ledger import activity, restatements
from carbonlens.ledger.closes import Chain, Span, adjustments, load
from carbonlens.ledger.closes import span_of as span_of_close
from carbonlens.ledger.store import Ledger
from carbonlens.reporting.sustainability_input import NOT_TAKEN_UP, Closed, Restating


class Restated(msgspec.Struct, frozen=True, kw_only=True):
    """Restatements of a period, and what is wrong with them."""

    restatings: tuple[Restating, ...]
    findings: tuple[Finding, ...]


def closes_of(ledger: Path, span: Span) -> tuple[Closed, ...]:
    """Return the closes that touch a period, in order of time.

    Args:
        ledger: The ledger's folder.
        span: The period.
    """
    chain = load(ledger)
    held = [c for c in chain.closes.values() if c.start_us < span.end_us and c.end_us > span.start_us]
    return tuple(
        Closed(
            period=one.period,
            manifest_sha256=chain.hashes[one.period],
            closed_on=_date(one.closed_us),
            by=one.by,
            runs=len(one.runs),
            factor_set_sha256=one.factor_set_sha256,
        )
        for one in sorted(held, key=lambda c: (c.start_us, c.end_us))
    )


def restatements_of(ledger: Path, span: Span) -> Restated:
    """Return the restatements that touch a period, the last of each period alone.

    Args:
        ledger: The ledger's folder.
        span: Of all quarters of the report: figures of each stand in it.
    """
    held = restatements.load(ledger)
    touching = [r for r in held.by_hash.values() if r.start_us < span.end_us and r.end_us > span.start_us]
    ends = {sha for name in {r.period for r in touching} for sha in held.ends(name)}
    last = sorted((held.by_hash[sha] for sha in ends), key=lambda r: (r.start_us, r.period, r.made_us))
    made = tuple(
        Restating(
            period=one.period,
            old=one.old,
            new=one.new,
            made_on=_date(one.made_us),
            reason=one.reason,
            why=one.why,
            rows=one.rows,
            base_year=one.base_year,
        )
        for one in last
    )
    return Restated(restatings=made, findings=held.findings)


def prior_of(store: Ledger, source: Source, span: Span) -> tuple[PriorPeriod, ...]:
    """Return what records that came after a close change in closed periods, with where each was found.

    Kept are those of closes that touch the span, and those that were found in it.

    Args:
        store: The ledger, open.
        source: Where it lies, with its inventory.
        span: Of all quarters of the report: figures of each stand in it.

    Raises:
        RecordError: If a manifest is damaged or gone: what its period was closed with is not known.
    """
    chain = load(store.path)
    if not chain.closes and not chain.findings:
        return ()
    lines = prior_periods(inventory=source.inventory, ledger=source.ledger, now_us=source.now_us)
    found = _places(store, source, chain) if lines else {}
    kept = []
    for line in lines:
        places = [p for name in line.records for p in found.get((line.period, name), [_NOWHERE])]
        if any(_meet(p, span) for p in (span_of_close(chain.closes[line.period]), *places)):
            names = sorted({p.name for p in places if p is not _NOWHERE})
            if _NOWHERE in places:
                names.append(_NOWHERE.name)
            kept.append(msgspec.structs.replace(line, found_in=tuple(names)))
    return tuple(kept)


_NOWHERE: Final = Span(name=NOT_TAKEN_UP, start_us=0, end_us=0)
"""Stands for the period of a record of which nothing says when it came."""


def _places(store: Ledger, source: Source, chain: Chain) -> dict[tuple[str, str], list[Span]]:
    """Return where each late record was found, by its closed period and id.

    That is the close that took it up, else the month in which it was corrected or imported: never the
    present, which a report that is made again has another of.
    """
    held = store.holdings()
    came = {r.sha256: _came_us(r.run) for r in held.records}
    for kind in activity.KINDS.values():
        rows = activity.read_stored(store.path / kind.folder, kind)[0]
        came.update((sha, row.origin.imported_us if row.origin is not None else None) for row, sha in rows)
    month = month_of(source.calendar)
    found: dict[tuple[str, str], list[Span]] = {}
    for one in adjustments(store.path, held, chain):
        when_us = came.get(one.sha256)
        place = _NOWHERE
        if one.taken_up is not None:
            place = span_of_close(chain.closes[one.taken_up])
        elif one.kind == "late" and when_us is not None:
            name = month(when_us)[0]
            if name:
                place = msgspec.structs.replace(span_of(name, source.calendar), name=name)
        found.setdefault((one.period, one.name), []).append(place)
    return found


def _came_us(run: Run) -> int | None:
    """Return when a record came, UTC microseconds; ``None`` where nothing tells.

    A correction bears the origin of what it corrects, and tells its own time by its id.
    """
    corrected_ms = uuid7_ms(run.run_id) if run.supersedes is not None else None
    if corrected_ms is not None:
        return corrected_ms * (US_PER_S // 1000)
    return None if run.origin is None else run.origin.imported_us


def _meet(one: Span, other: Span) -> bool:
    return one.start_us < other.end_us and one.end_us > other.start_us


def factors_of(statement: Statement, factors: FactorSet) -> tuple[tuple[FactorRow, ...], frozenset[str]]:
    """Return the rows that a statement's figures rest on, in order, and which are the user's own.

    Args:
        statement: Of the quarter.
        factors: The rows in force.
    """
    named = {i for f in statement.figures for i in f.inputs}
    rows = [r for r in factors.rows if r.factor_id in named]
    rows.sort(key=lambda r: (r.kind, r.subject, r.method or "", r.period, r.factor_id))
    return tuple(rows), frozenset(r.factor_id for r in factors.own if r.factor_id in named)


def _date(instant_us: int) -> str:
    return f"{datetime.fromtimestamp(instant_us / 1e6, tz=UTC):%Y-%m-%d}"
