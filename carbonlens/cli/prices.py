"""``carbonlens prices``: list, show, diff."""

from __future__ import annotations

from typing import Annotated

import typer

from carbonlens.cli.options import JsonOption

InventoryOption = Annotated[
    str | None,
    typer.Option(
        "--inventory",
        metavar="DIR",
        help="Inventory whose prices.csv wins [CARBONLENS_INVENTORY, pyproject.toml, ./inventory].",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(
        rich_markup_mode=None,
        no_args_is_help=True,
        help="Look at the prices in force: yours, and a few dated ones.",
    )
    group.command("list")(list_command)
    group.command("show")(show_command)
    group.command("diff")(diff_command)
    app.add_typer(group, name="prices")


def list_command(
    subject: Annotated[
        str | None, typer.Option("--subject", help="What is bought, or a part of its name.")
    ] = None,
    region: Annotated[str | None, typer.Option("--region", help="Where it is bought.")] = None,
    on: Annotated[str | None, typer.Option("--on", metavar="DATE", help="Day on which it holds.")] = None,
    inventory: InventoryOption = None,
    json: JsonOption = False,
) -> None:
    """List prices, each with the day from which it holds."""
    from carbonlens.app.prices import list_prices
    from carbonlens.cli import prices_view

    prices_view.print_list(list_prices(subject=subject, region=region, on=on, inventory=inventory), json=json)


def show_command(
    price_id: Annotated[str, typer.Argument(metavar="ID", help="Id, as prices list prints it.")],
    inventory: InventoryOption = None,
    json: JsonOption = False,
) -> None:
    """Show one price whole: terms, dates, source and licence."""
    from carbonlens.app.prices import show_price
    from carbonlens.cli import prices_view

    prices_view.print_price(show_price(price_id, inventory=inventory), json=json)


def diff_command(
    old: Annotated[str, typer.Argument(metavar="OLD", help="Price table (CSV).")],
    new: Annotated[
        str | None, typer.Argument(metavar="NEW", help="Likewise; without it OLD is held against ours.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Compare two price tables, or yours with the bundled one."""
    from carbonlens.app.prices import diff_prices
    from carbonlens.cli import prices_view

    prices_view.print_difference(diff_prices(old, new), json=json)
