"""``carbonlens study``: plan the runs of a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from carbonlens.cli import grammar
from carbonlens.cli.options import JsonOption
from carbonlens.errors import UsageError

_DIGITS = 9
_SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def register(app: grammar.Commands) -> None:
    """Add the command group."""
    group = grammar.Commands(help="Plan the runs of a study.")
    group.add("plan", plan_command)
    app.add_command(group, "study")


def plan_command(
    steps: Annotated[
        str | None, grammar.Option("--steps", metavar="N", help="Number of optimizations.")
    ] = None,
    step: Annotated[
        list[str] | None, grammar.Option("--step", help="Name of an optimization, instead of --steps.")
    ] = None,
    budget: Annotated[
        str | None, grammar.Option("--budget", metavar="TIME", help="Time there is: 90s, 30m, 2h.")
    ] = None,
    run: Annotated[
        str | None,
        grammar.Option("--run", metavar="TIME", help="Work of one run [10s, longer if the budget allows]."),
    ] = None,
    rounds: Annotated[int | None, grammar.Option("--rounds", help="Rounds [what --effect asks for].")] = None,
    effect: Annotated[float, grammar.Option("--effect", help="Change to be found: 0.03 is 3 %.")] = 0.03,
    cv: Annotated[float, grammar.Option("--cv", help="Scatter of one run: 0.01 is 1 %.")] = 0.01,
    margin: Annotated[
        float,
        grammar.Option("--margin", help="Change regarded as none, which no verdict finds: 0.01 is 1 %."),
    ] = 0.01,
    out: Annotated[
        Path | None, grammar.Option("-o", "--output", help="Write the plan as a study file.")
    ] = None,
    name: Annotated[str, grammar.Option("--name", help="Name of the study in that file.")] = "study",
    unit: Annotated[str, grammar.Option("--unit", help="Functional unit in that file.")] = "unit",
    json: JsonOption = False,
) -> None:
    """Propose which combinations to run, how often, in which order, and how long it takes."""
    from carbonlens.app.study_plan import plan_study, write_study
    from carbonlens.cli import study_view
    from carbonlens.compare.planning import Wish

    made = plan_study(
        Wish(
            steps=_names(steps, step or []),
            budget_s=None if budget is None else seconds(budget, "--budget"),
            run_s=None if run is None else seconds(run, "--run"),
            rounds=rounds,
            effect=effect,
            cv=cv,
            margin=margin,
        )
    )
    written = None if out is None else write_study(made, out, name=name, unit=unit)
    if json:
        study_view.print_as_json(made, written)
    else:
        study_view.print_as_text(made, written)


def seconds(text: str, option: str) -> float:
    """Return a time such as ``90s``, ``30m``, ``2h`` or ``1.5h`` in seconds.

    Raises:
        UsageError: If it is none.
    """
    number = text.strip().rstrip("smindh")
    factor = _SECONDS.get(text.strip()[len(number) :] or "s")
    try:
        value = float(number)
    except ValueError:
        value = 0.0
    if factor is None or not 0 < value < float("inf"):
        raise UsageError(f"{option} {text!r} is no time", mend="write 90s, 30m or 2h")
    return value * factor


def _names(steps: str | None, named: list[str]) -> tuple[str, ...]:
    from carbonlens.compare.planning import MOST_STEPS

    if (steps is None) == (not named):
        raise UsageError(
            "no steps, or both --steps and --step", mend="give --steps 3, or --step for each name"
        )
    if named:
        return tuple(named)
    written = (steps or "").strip()
    count = int(written) if written.isascii() and written.isdigit() and len(written) < _DIGITS else 0
    if not 1 <= count <= MOST_STEPS:
        mend = f"write a number from 1 to {MOST_STEPS}, or --step NAME for each name"
        raise UsageError(f"--steps is {written}, no number of optimizations", mend=mend)
    return tuple(f"step{i}" for i in range(1, count + 1))
