"""``carbonlens ledger restate`` and ``adjustments``: what a period's figures were, and are."""

from __future__ import annotations

from typing import Annotated, get_args

from carbonlens.cli import grammar
from carbonlens.cli.account import InventoryOption
from carbonlens.cli.options import JsonOption, LedgerOption
from carbonlens.errors import UsageError


def restate_command(
    period: Annotated[str, grammar.Argument(metavar="PERIOD", help="2026Q3, 2026-09 or 2026, fiscal.")],
    old: Annotated[
        str,
        grammar.Option(
            "--from",
            metavar="OLD",
            help="Old factors: table, folder, carbonlens wheel, 'bundled'; or account --json as .json.",
            is_path=True,
        ),
    ],
    new: Annotated[
        str | None,
        grammar.Option("--to", metavar="NEW", help="New ones, likewise [those in force].", is_path=True),
    ] = None,
    reason: Annotated[
        str | None,
        grammar.Option(
            "--reason",
            metavar="WORD",
            help="structure, method, factor, error, sourcing or organic [by inputs].",
        ),
    ] = None,
    why: Annotated[
        str, grammar.Option("--why", metavar="TEXT", help="The reason in words; it is kept.")
    ] = "",
    by: Annotated[
        str | None, grammar.Option("--by", metavar="NAME", help="Who does it, as it will be kept.")
    ] = None,
    dry_run: Annotated[bool, grammar.Option("--dry-run", help="Print it, keep nothing.")] = False,
    inventory: InventoryOption = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Make a period's figures again, keep old and new, and say whether the base year changes."""
    from carbonlens.accounting.base_year import Reason
    from carbonlens.app.restatement import restate
    from carbonlens.cli import restate_view

    known: dict[str, Reason] = {name: name for name in get_args(Reason)}
    if reason is not None and reason not in known:
        raise UsageError(f"no reason {reason!r}", where="--reason", mend=f"known: {', '.join(known)}")
    found = restate(
        period,
        old,
        new,
        reason=None if reason is None else known[reason],
        why=why,
        by=by,
        keep=not dry_run,
        inventory=inventory,
        ledger=ledger,
    )
    restate_view.print_restating(found, json=json)


def adjustments_command(
    inventory: InventoryOption = None, ledger: LedgerOption = None, json: JsonOption = False
) -> None:
    """List what records found after a close change in closed periods: lines of the later period."""
    from carbonlens.app.restatement import prior_periods
    from carbonlens.cli import restate_view

    restate_view.print_adjustments(prior_periods(inventory=inventory, ledger=ledger), json=json)
