"""``carbonlens charges``: what bills say the recorded runs cost, and what no run carries."""

from __future__ import annotations

from typing import Annotated, Literal

from carbonlens.cli import grammar
from carbonlens.cli.options import JsonOption, LedgerOption
from carbonlens.cli.prices import InventoryOption


def register(app: grammar.Commands) -> None:
    """Add the command."""
    app.add("charges", charges_command)


def charges_command(
    period: Annotated[
        str | None, grammar.Option("--period", help="Such as 2026, 2026Q3 or 2026-07; else all bills.")
    ] = None,
    kind: Annotated[
        str, grammar.Option("--kind", help="billed (cash), effective (accrual), list or contracted.")
    ] = "effective",
    weights: Annotated[
        Literal["time", "energy"],
        grammar.Option("--weights", help="Share by time, the rest unallocated; or whole by energy."),
    ] = "time",
    inventory: InventoryOption = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Share imported bills over runs by resource, tags, or time and place."""
    from carbonlens.app.charges import charges_of_runs
    from carbonlens.cli import charges_view

    found = charges_of_runs(ledger=ledger, inventory=inventory, period=period, kind=kind, weights=weights)
    if json:
        charges_view.print_as_json(found)
    else:
        charges_view.print_as_text(found)
