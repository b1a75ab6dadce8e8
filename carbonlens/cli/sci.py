"""``carbonlens sci``: emissions per functional unit, with every input."""

from __future__ import annotations

from typing import Annotated, Literal

from carbonlens.cli import grammar
from carbonlens.cli.factors import FactorsOption
from carbonlens.cli.options import JsonOption, LedgerOption
from carbonlens.cli.prices import InventoryOption


def register(app: grammar.Commands) -> None:
    """Add the command."""
    app.add("sci", sci_command)


def sci_command(
    unit: Annotated[
        str,
        grammar.Option("--unit", metavar="UNIT", help="Functional unit, as runs name it: request, token."),
    ],
    study: Annotated[
        str | None, grammar.Option("--study", metavar="S", help="A study's name in the ledger.")
    ] = None,
    step: Annotated[str | None, grammar.Option("--step", metavar="S", help="One step of it.")] = None,
    period: Annotated[
        str | None, grammar.Option("--period", metavar="P", help="2026Q3, 2026-08 or 2026, fiscal.")
    ] = None,
    ai: Annotated[
        Literal["consumer", "provider"] | None,
        grammar.Option("--ai", help="SCI for AI: who uses a model, or who makes it."),
    ] = None,
    per: Annotated[
        float, grammar.Option("--per", metavar="N", help="Units that the score is per: 1e6.")
    ] = 1.0,
    units: Annotated[
        float | None,
        grammar.Option("--units", metavar="N", help="The count, where runs do not count it (FLOP)."),
    ] = None,
    normalisation: Annotated[
        Literal["gross", "effective"],
        grammar.Option("--normalisation", help="SCI for AI: all units made, or those of use alone."),
    ] = "gross",
    rationale: Annotated[str, grammar.Option("--rationale", metavar="TEXT", help="Why this unit.")] = "",
    inventory: InventoryOption = None,
    factors: FactorsOption = None,
    embodied_source: Annotated[
        str | None,
        grammar.Option(
            "--embodied-source", metavar="NAME", help="One source of embodied figures [all, as a range]."
        ),
    ] = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Score emissions per functional unit (SCI, SCI for AI) and print every input."""
    from carbonlens.app.sci import make_sci
    from carbonlens.cli import sci_view

    scored = make_sci(
        unit,
        study=study,
        step=step,
        period=period,
        ai=ai,
        per=per,
        units=units,
        normalisation=normalisation,
        rationale=rationale,
        inventory=inventory,
        factors=factors,
        ledger=ledger,
        embodied_source=embodied_source,
    )
    if json:
        sci_view.print_as_json(scored)
    else:
        sci_view.print_as_text(scored)
