"""``carbonlens explain``: any figure down to formula, factors, readings and file lines."""

from __future__ import annotations

from typing import Annotated

from carbonlens.cli import grammar
from carbonlens.cli.account import InventoryOption, PeriodOption
from carbonlens.cli.compare import BaselineOption, StepsOption
from carbonlens.cli.compare_business import BusinessOption
from carbonlens.cli.factors import FactorsOption
from carbonlens.cli.options import AssumptionsOption, JsonOption, LedgerOption, StudyOption
from carbonlens.errors import UsageError


def register(app: grammar.Commands) -> None:
    """Add the command."""
    app.add("explain", explain_command)


def explain_command(
    figure: Annotated[
        str | None,
        grammar.Argument(
            metavar="FIGURE",
            help="Id of a figure, run, factor, price, certificate or declared value; --list names figures.",
        ),
    ] = None,
    study: StudyOption = None,
    period: PeriodOption = None,
    list_: Annotated[bool, grammar.Option("--list", help="List the ids of the statement or study.")] = False,
    baseline: BaselineOption = None,
    step: StepsOption = None,
    volume: Annotated[str | None, grammar.Option("--volume", help="As compare was asked with.")] = None,
    assumptions: AssumptionsOption = None,
    inventory: InventoryOption = None,
    factors: FactorsOption = None,
    embodied_source: Annotated[
        str | None,
        grammar.Option("--embodied-source", metavar="NAME", help="As account or sci was asked with."),
    ] = None,
    business: BusinessOption = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Explain where a figure comes from."""
    from carbonlens.app.explain import explain, ids
    from carbonlens.app.explain_known import Options
    from carbonlens.cli import explain_view

    options = Options(
        study=study,
        period=period,
        ledger=ledger,
        inventory=inventory,
        factors=factors,
        baseline=baseline,
        steps=tuple(step or ()),
        assumptions=assumptions,
        volume=volume,
        embodied_source=embodied_source,
        business=business,
    )
    if list_:
        explain_view.print_ids(ids(options), json=json)
        return
    if figure is None:
        raise UsageError("no figure is named", where="FIGURE", mend="list ids: carbonlens explain --list")
    explain_view.print_tree(explain(figure, options), json=json)
