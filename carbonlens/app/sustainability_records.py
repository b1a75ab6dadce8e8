"""Use case part: closes, restatements, late records and factors that a quarter's report names."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from carbonlens.accounting.restatement import PriorPeriod
from carbonlens.accounting.statement import Statement
from carbonlens.app.drivers import Source
from carbonlens.app.restatement import prior_periods
from carbonlens.domain.factor_row import FactorRow
from carbonlens.domain.finding import Finding
from carbonlens.factors.store import FactorSet
from carbonlens.ledger import restatements
from carbonlens.ledger.closes import Span, load
from carbonlens.ledger.store import Ledger
from carbonlens.reporting.sustainability_input import Closed, Restating


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
        span: The period.
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
        )
        for one in last
    )
    return Restated(restatings=made, findings=held.findings)


def prior_of(store: Ledger, source: Source, label: str) -> tuple[PriorPeriod, ...]:
    """Return what records that came after a close change in closed periods.

    Args:
        store: The ledger, open.
        source: Where it lies, with its inventory.
        label: Of the quarter: nothing came after its close unless it is adjusted.
    """
    if label != "ADJUSTED" or not store.exists:
        return ()
    return prior_periods(inventory=source.inventory, ledger=source.ledger, now_us=source.now_us)


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
