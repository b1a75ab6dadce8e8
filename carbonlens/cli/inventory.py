"""``carbonlens inventory``: check the folder of sites, meters, certificates and prices, or begin one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from carbonlens.cli import grammar
from carbonlens.cli.options import JsonOption, LedgerOption

MALFORMED = 2
"""Exit code of a file that must be mended before the inventory can be read."""


def register(app: grammar.Commands) -> None:
    """Add the command group."""
    group = grammar.Commands(help="Sites, meters, certificates, assets and prices that figures rest on.")
    group.add("check", check_command)
    group.add("init", init_command)
    app.add_command(group, "inventory")


def check_command(
    folder: Annotated[
        str | None,
        grammar.Argument(
            metavar="[DIR]",
            is_path=True,
            help="The inventory folder [CARBONLENS_INVENTORY, pyproject.toml, ./inventory].",
        ),
    ] = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Read all files and list what is malformed or suspicious; exit 2 if a file is malformed."""
    from carbonlens.app.deliveries import delivered
    from carbonlens.app.inventory import check_inventory
    from carbonlens.cli import inventory_view
    from carbonlens.ledger.opening import open_ledger

    loaded = check_inventory(folder)
    came = None
    if loaded.inventory is not None and loaded.inventory.deliveries:
        with open_ledger(ledger) as store:
            came = delivered(loaded.inventory, store) if store.exists else None
    if json:
        inventory_view.print_as_json(loaded, came)
    else:
        inventory_view.print_as_text(loaded, came)
    if loaded.faults:
        raise grammar.Exit(MALFORMED)


def init_command(
    folder: Annotated[
        Path,
        grammar.Argument(metavar="[DIR]", help="New folder for the files [./inventory].", show_default=False),
    ] = Path("inventory"),
    json: JsonOption = False,
) -> None:
    """Write the example of an invented company, each key with a comment, to begin from."""
    from carbonlens.app.inventory import write_example
    from carbonlens.cli import inventory_view

    inventory_view.print_example(folder, write_example(folder), json=json)
