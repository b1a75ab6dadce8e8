"""``carbonlens demo``: real models, measured here, to an HTML and a PDF report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from carbonlens.cli.options import JsonOption


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo")(demo_command)


def demo_command(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Folder to write to.")] = Path(
        "demo-report"
    ),
    rounds: Annotated[
        int | None, typer.Option("--rounds", min=5, help="Rounds to measure; at least 5.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of training and data split.")] = 0,
    small: Annotated[
        bool, typer.Option("--small", help="Shorter training and rounds, for a quick try.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Train, compress and measure a small model here, and report what each step saved."""
    from carbonlens.cli import demo_view
    from carbonlens.studies.demo import run_demo

    with demo_view.progress() as bars:
        result = run_demo(output, rounds=rounds, seed=seed, small=small, progress=bars)
    demo_view.print_result(result, json=json)
    if result.failed_steps:
        raise typer.Exit(3)
    if result.interrupted:
        raise typer.Exit(130)
