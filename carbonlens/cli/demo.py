"""``carbonlens demo``: real models, measured here, to an HTML and a PDF report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from carbonlens.cli import grammar
from carbonlens.cli.options import JsonOption


def register(app: grammar.Commands) -> None:
    """Add the command."""
    app.add("demo", demo_command)


def demo_command(
    output: Annotated[
        Path, grammar.Option("-o", "--output", metavar="DIR", help="Folder to write to.")
    ] = Path("demo-report"),
    rounds: Annotated[
        int | None, grammar.Option("--rounds", min=5, help="Rounds to measure; at least 5.")
    ] = None,
    seed: Annotated[int, grammar.Option("--seed", help="Seed of training and data split.")] = 0,
    small: Annotated[
        bool, grammar.Option("--small", help="Shorter training and rounds, for a quick try.")
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
        raise grammar.Exit(3)
    if result.interrupted:
        raise grammar.Exit(130)
