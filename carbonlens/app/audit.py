"""Use case: check what cards, tables, statements or the runs of a ledger state, and change nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.domain.claim import Claim
from carbonlens.domain.finding import Finding
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.errors import MissingExtraError

JSON: Final = ".json"
"""Suffix of statements; other files are cards and tables."""


class Audited(msgspec.Struct, frozen=True, kw_only=True):
    """What an audit looked at and found.

    Attributes:
        of: The files, or the ledger.
        checked: How many claims or runs.
        kind: What they are, ``claim`` or ``run``; of a period its runs are claims too.
        findings: In the order of files and lines.
    """

    of: tuple[str, ...]
    checked: int
    kind: str
    findings: tuple[Finding, ...]


def audit_files(files: Sequence[Path], *, factors: str | Path | None = None) -> Audited:
    """Return what is found in model cards, tables, and statements that ``account --json`` printed.

    Args:
        files: Markdown, YAML front matter, CSV or JSON.
        factors: The user's own factors, for the years of the factors of statements; found as the
            command line finds it when ``None``.

    Raises:
        InputFileError: If one cannot be read, or states nothing that could be checked.
        ConfigError: If the factors cannot be read.
    """
    from carbonlens.audit.claims import check_claims
    from carbonlens.importers.account_file import account_claims
    from carbonlens.importers.model_card import read_claims, text_of

    claims: list[Claim] = []
    for file in files:
        if file.suffix.lower() == JSON:
            claims += account_claims(text_of(file), str(file), _periods(factors))
        else:
            claims += read_claims(file)
    return Audited(
        of=tuple(map(str, files)), checked=len(claims), kind="claim", findings=check_claims(claims)
    )


def audit_period(
    period: str,
    *,
    ledger: str | Path | None = None,
    inventory: str | Path | None = None,
    factors: str | Path | None = None,
    now_us: int | None = None,
) -> Audited:
    """Return what is found in the statement of a period and in its runs.

    Args:
        period: ``2026Q3``, ``2026-08`` or ``2026``, fiscal.
        ledger: The ledger's folder; found as the command line finds it when ``None``.
        inventory: The inventory folder; found likewise.
        factors: The user's own factors; found likewise.
        now_us: The present, UTC microseconds; by the clock when ``None``.

    Raises:
        SelectionError: If the ledger is not there, or holds nothing of the period.
        UsageError: If the period is none.
        ConfigError, InputFileError: If inventory or factors cannot be read.
        MissingExtraError: If the ``analysis`` extra is not installed.
    """
    from carbonlens.app.statement import make_statement
    from carbonlens.audit.claims import check_claims
    from carbonlens.audit.runs import check_runs
    from carbonlens.importers.account_file import account_claims
    from carbonlens.ledger.opening import open_ledger
    from carbonlens.ledger.records import current
    from carbonlens.reporting.statement_json import statement_json

    made = make_statement(period, inventory=inventory, factors=factors, ledger=ledger, now_us=now_us)
    stated = msgspec.json.encode(statement_json(made.statement))
    claims = account_claims(stated, None, _periods(factors))
    first, end = made.period.first_hour * US_PER_HOUR, made.period.end_hour * US_PER_HOUR
    with open_ledger(ledger) as store:
        runs = [r for r in current(store.view().runs)[0] if first <= (r.start_us or 0) < end]
    placed = [r for r in runs if r.zone is not None or r.site is not None]
    return Audited(
        of=(f"the statement of {period}", made.ledger),
        checked=len(claims) + len(runs),
        kind="claim",
        # That runs tell no place, the statement says of its own line.
        findings=(*check_claims(claims), *check_runs(placed)),
    )


def _periods(factors: str | Path | None) -> dict[str, str]:
    from carbonlens.factors.store import open_factors

    return {row.factor_id: row.period for row in open_factors(factors).rows}


def audit_ledger(*, ledger: str | Path | None = None, assumptions: Path | None = None) -> Audited:
    """Return what is found in the runs of a ledger, and in how they share devices.

    Args:
        ledger: The ledger's folder; found as the command line finds it when ``None``.
        assumptions: File with the factors the runs are accounted with, which are checked too.

    Raises:
        SelectionError: If a ledger is named that is not there.
        MissingExtraError: If imported batches cannot be read: an audit of a part is none.
        InputFileError, ConfigError: If the assumptions cannot be read.
    """
    from carbonlens.app.runs import list_runs
    from carbonlens.audit.runs import check_runs

    factors = []
    if assumptions is not None:
        from carbonlens.app.assumptions import load_assumptions

        vector = load_assumptions(assumptions)
        factors = [] if vector.location is None else [vector.location]
    listing = list_runs(ledger=ledger)
    if listing.unread_batches:
        raise MissingExtraError("analysis", "duckdb")
    found = check_runs(listing.runs, factors)
    return Audited(
        of=(listing.ledger,),
        checked=len(listing.runs),
        kind="run",
        findings=(*listing.findings, *found),
    )
