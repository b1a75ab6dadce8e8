"""``carbonlens allocate``: the energy of shared services, over who used them."""

from __future__ import annotations

from typing import Annotated

from carbonlens.cli import grammar
from carbonlens.cli.account import InventoryOption
from carbonlens.cli.options import JsonOption, LedgerOption


def register(app: grammar.Commands) -> None:
    """Add the command."""
    app.add("allocate", allocate_command)


def allocate_command(
    period: Annotated[str, grammar.Option("--period", metavar="P", help="2026Q3, 2026-08 or 2026, fiscal.")],
    service: Annotated[
        str | None, grammar.Option("--service", metavar="ID", help="Only this service of services.toml.")
    ] = None,
    inventory: InventoryOption = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Divide the energy of shared services over their consumers; idle is a line of its own."""
    from carbonlens.app.allocation import allocate
    from carbonlens.cli import allocate_view

    found = allocate(period, service=service, inventory=inventory, ledger=ledger)
    if json:
        allocate_view.print_as_json(found)
    else:
        allocate_view.print_as_text(found)
