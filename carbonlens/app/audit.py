"""Use case: check what cards, tables or the runs of a ledger state, and change nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.errors import MissingExtraError


class Audited(msgspec.Struct, frozen=True, kw_only=True):
    """What an audit looked at and found.

    Attributes:
        of: The files, or the ledger.
        checked: How many claims or runs.
        kind: What they are, ``claim`` or ``run``.
        findings: In the order of files and lines.
    """

    of: tuple[str, ...]
    checked: int
    kind: str
    findings: tuple[Finding, ...]


def audit_files(files: Sequence[Path]) -> Audited:
    """Return what is found in model cards and tables.

    Args:
        files: Markdown, YAML front matter or CSV.

    Raises:
        InputFileError: If one cannot be read, or states nothing that could be checked.
    """
    from carbonlens.audit.claims import check_claims
    from carbonlens.importers.model_card import read_claims

    claims = [claim for file in files for claim in read_claims(file)]
    return Audited(
        of=tuple(map(str, files)), checked=len(claims), kind="claim", findings=check_claims(claims)
    )


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
