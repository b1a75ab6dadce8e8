"""``carbonlens audit``: what is wrong with stated energy and emissions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from carbonlens.cli import grammar
from carbonlens.cli.account import InventoryOption
from carbonlens.cli.factors import FactorsOption
from carbonlens.cli.options import AssumptionsOption, JsonOption, LedgerOption
from carbonlens.errors import UsageError

FOUND = 3
"""Exit code of ``--strict`` where an error or a warning was found."""


def register(app: grammar.Commands) -> None:
    """Add the command."""
    app.add("audit", audit_command)


def audit_command(
    files: Annotated[
        list[Path] | None,
        grammar.Argument(
            metavar="[FILE...]",
            help="Model cards (.md, .yaml), tables (.csv), what account --json printed (.json) [the ledger].",
        ),
    ] = None,
    strict: Annotated[
        bool, grammar.Option("--strict", help="Exit with 3 if there is any error or warning.")
    ] = False,
    period: Annotated[
        str | None,
        grammar.Option(
            "--period", metavar="P", help="The statement of a period too: 2026Q3, 2026-08 or 2026."
        ),
    ] = None,
    inventory: InventoryOption = None,
    factors: FactorsOption = None,
    ledger: LedgerOption = None,
    assumptions: AssumptionsOption = None,
    json: JsonOption = False,
) -> None:
    """Check energy, emissions, power and totals against each other; docs/findings.md tells the codes."""
    from carbonlens.app.audit import audit_files, audit_ledger, audit_period
    from carbonlens.cli import audit_view

    if files and any(x is not None for x in (ledger, assumptions, period, inventory)):
        raise UsageError(
            "files and a ledger are audited apart", where="audit", mend="leave out FILE, or the other options"
        )
    if period is not None and assumptions is not None:
        raise UsageError(
            "a period has the factors of its statement", where="--assumptions", mend="leave it out"
        )
    if files:
        audited = audit_files(files, factors=factors)
    elif period is not None:
        audited = audit_period(period, ledger=ledger, inventory=inventory, factors=factors)
    else:
        audited = audit_ledger(ledger=ledger, assumptions=assumptions)
    if json:
        audit_view.print_as_json(audited)
    else:
        audit_view.print_as_text(audited)
    if strict and any(f.severity != "info" for f in audited.findings):
        raise grammar.Exit(FOUND)
