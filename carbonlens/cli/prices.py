"""``carbonlens prices``: list, show, diff."""

from __future__ import annotations

from typing import Annotated

from carbonlens.cli import grammar
from carbonlens.cli.options import JsonOption

InventoryOption = Annotated[
    str | None,
    grammar.Option(
        "--inventory",
        metavar="DIR",
        is_path=True,
        help="Inventory whose prices.csv wins [CARBONLENS_INVENTORY, pyproject.toml, ./inventory].",
    ),
]


def register(app: grammar.Commands) -> None:
    """Add the command group."""
    group = grammar.Commands(help="Look at the prices in force: yours, and a few dated ones.")
    group.add("list", list_command)
    group.add("show", show_command)
    group.add("diff", diff_command)
    app.add_command(group, "prices")


def list_command(
    subject: Annotated[
        str | None, grammar.Option("--subject", help="What is bought, or a part of its name.")
    ] = None,
    region: Annotated[str | None, grammar.Option("--region", help="Where it is bought.")] = None,
    on: Annotated[str | None, grammar.Option("--on", metavar="DATE", help="Day on which it holds.")] = None,
    inventory: InventoryOption = None,
    json: JsonOption = False,
) -> None:
    """List prices, each with the day from which it holds."""
    from carbonlens.app.prices import list_prices
    from carbonlens.cli import prices_view

    prices_view.print_list(list_prices(subject=subject, region=region, on=on, inventory=inventory), json=json)


def show_command(
    price_id: Annotated[str, grammar.Argument(metavar="ID", help="Id, as prices list prints it.")],
    inventory: InventoryOption = None,
    json: JsonOption = False,
) -> None:
    """Show one price whole: terms, dates, source and licence."""
    from carbonlens.app.prices import show_price
    from carbonlens.cli import prices_view

    prices_view.print_price(show_price(price_id, inventory=inventory), json=json)


def diff_command(
    old: Annotated[str, grammar.Argument(metavar="OLD", help="Price table (CSV).", is_path=True)],
    new: Annotated[
        str | None,
        grammar.Argument(metavar="NEW", help="Likewise; without it OLD is held against ours.", is_path=True),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Compare two price tables, or yours with the bundled one."""
    from carbonlens.app.prices import diff_prices
    from carbonlens.cli import prices_view

    prices_view.print_difference(diff_prices(old, new), json=json)
