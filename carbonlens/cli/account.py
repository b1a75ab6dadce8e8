"""``carbonlens account``: the statement of a period."""

from __future__ import annotations

from typing import Annotated

from carbonlens.cli import grammar
from carbonlens.cli.factors import FactorsOption
from carbonlens.cli.options import JsonOption, LedgerOption

PeriodOption = Annotated[
    str | None,
    grammar.Option(
        "--period", metavar="P", help="2026Q3, 2026-08 or 2026, fiscal [the last quarter with runs]."
    ),
]
InventoryOption = Annotated[
    str | None,
    grammar.Option(
        "--inventory",
        metavar="DIR",
        is_path=True,
        help="The inventory folder [CARBONLENS_INVENTORY, pyproject.toml, ./inventory].",
    ),
]


def register(app: grammar.Commands) -> None:
    """Add the command."""
    app.add("account", account_command)


def account_command(
    period: PeriodOption = None,
    by: Annotated[
        str | None,
        grammar.Option(
            "--by", metavar="LABEL", help="site, zone, team, model, hardware, study, step, tag:NAME."
        ),
    ] = None,
    inventory: InventoryOption = None,
    factors: FactorsOption = None,
    embodied_source: Annotated[
        str | None,
        grammar.Option(
            "--embodied-source", metavar="NAME", help="One source of embodied figures [all, as a range]."
        ),
    ] = None,
    hourly: Annotated[
        bool, grammar.Option("--hourly", help="How certificates match the load by the hour, in full.")
    ] = False,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Account for a period: energy, carbon twice, water, hardware and cost, per site and in total."""
    from carbonlens.app.statement import make_statement
    from carbonlens.cli import account_view

    made = make_statement(
        period, by=by, inventory=inventory, factors=factors, ledger=ledger, embodied_source=embodied_source
    )
    if json:
        account_view.print_as_json(made)
    else:
        account_view.print_as_text(made, hourly=hourly)
