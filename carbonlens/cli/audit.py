"""``carbonlens audit``: what is wrong with stated energy and emissions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from carbonlens.cli.options import AssumptionsOption, JsonOption, LedgerOption
from carbonlens.errors import UsageError

FOUND = 3
"""Exit code of ``--strict`` where an error or a warning was found."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("audit")(audit_command)


def audit_command(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE...]", help="Model cards (.md, .yaml) or tables (.csv) [the ledger]."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 3 if there is any error or warning.")
    ] = False,
    ledger: LedgerOption = None,
    assumptions: AssumptionsOption = None,
    json: JsonOption = False,
) -> None:
    """Check energy, emissions, power and totals against each other; docs/findings.md tells the codes."""
    from carbonlens.app.audit import audit_files, audit_ledger
    from carbonlens.cli import audit_view

    if files and (ledger is not None or assumptions is not None):
        raise UsageError(
            "files and a ledger are audited apart", where="audit", mend="leave out FILE, or the other options"
        )
    audited = audit_files(files) if files else audit_ledger(ledger=ledger, assumptions=assumptions)
    if json:
        audit_view.print_as_json(audited)
    else:
        audit_view.print_as_text(audited)
    if strict and any(f.severity != "info" for f in audited.findings):
        raise typer.Exit(FOUND)
