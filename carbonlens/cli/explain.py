"""``carbonlens explain``: any figure down to formula, factors, readings and file lines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from carbonlens.cli import grammar
from carbonlens.cli.account import InventoryOption, PeriodOption
from carbonlens.cli.compare import BaselineOption, StepsOption
from carbonlens.cli.compare_business import BusinessOption
from carbonlens.cli.factors import FactorsOption
from carbonlens.cli.options import AssumptionsOption, JsonOption, LedgerOption, StudyOption
from carbonlens.errors import UsageError

if TYPE_CHECKING:
    from carbonlens.app.explain_known import Options


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
    report: Annotated[
        Path | None,
        grammar.Option(
            "--report", metavar="FILE", help="A .json, .html or .pdf of `report`, without ledger."
        ),
    ] = None,
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
    if report is not None:
        _refuse_beside_report(options)
        _of_report(figure, report, list_=list_, json=json)
        return
    if list_:
        explain_view.print_ids(ids(options), json=json)
        return
    explain_view.print_tree(explain(_named(figure), options), json=json)


def _of_report(figure: str | None, report: Path, *, list_: bool, json: bool) -> None:
    """Explain a figure from the data of a report."""
    from carbonlens.app.explain_report import explain_in_report, ids_in_report
    from carbonlens.cli import explain_view

    if list_:
        explain_view.print_ids(ids_in_report(report), json=json)
        return
    (node,) = explain_in_report((_named(figure),), report)
    explain_view.print_tree(node, json=json)


def _named(figure: str | None) -> str:
    if figure is None:
        raise UsageError("no figure is named", where="FIGURE", mend="list ids: carbonlens explain --list")
    return figure


def _refuse_beside_report(options: Options) -> None:
    """Refuse options that say where else to look: unread ones would be believed."""
    given = [name for name in options.__struct_fields__ if getattr(options, name)]
    if given:
        name = f"--{given[0].replace('steps', 'step').replace('_', '-')}"
        raise UsageError(
            f"a report is explained from what it holds: --report takes no {name}",
            where=name,
            mend="leave one of both out",
        )
