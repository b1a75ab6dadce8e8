"""``carbonlens compare``: which step saved how much, and how sure that is."""

from __future__ import annotations

from typing import Annotated

import typer

from carbonlens.cli.options import AssumptionsOption, JsonOption, LedgerOption, StudyOption


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare")(compare_command)


def compare_command(
    study: StudyOption = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", help="Step to compare with, instead of the study's.")
    ] = None,
    step: Annotated[
        list[str] | None, typer.Option("--step", help="Step to compare; in order, instead of the study's.")
    ] = None,
    assumptions: AssumptionsOption = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Compare the steps of a study: savings with intervals, gates, decision."""
    from carbonlens.app.assumptions import load_assumptions
    from carbonlens.app.compare import compare
    from carbonlens.cli import compare_view

    vector = None if assumptions is None else load_assumptions(assumptions)
    comparison = compare(study, ledger=ledger, vector=vector, baseline=baseline, steps=step or [])
    if json:
        compare_view.print_as_json(comparison)
    else:
        compare_view.print_as_text(comparison)
