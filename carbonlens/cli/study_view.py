"""How a plan is printed: JSON, or a few lines and the order of the first rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import msgspec

from carbonlens.cli import output
from carbonlens.compare.from_runs import joined
from carbonlens.compare.planning import Plan
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate
from carbonlens.reporting import format as fmt

SCHEMA = "carbonlens/study-plan/1"
_ROUNDS_SHOWN = 2
_MOST_SHOWN = 8
_LINES_A_ROUND = 2


def print_as_json(plan: Plan, written: Path | None) -> None:
    """Print the whole plan: combinations, orders, and every round's order."""
    cells = [{"name": joined(c), "on": list(c)} for c in plan.cells]
    output.print_json(
        {
            "schema": SCHEMA,
            **msgspec.to_builtins(plan),
            "cells": cells,
            "runs": len(plan.cells) * plan.rounds,
            "baseline": joined(()),
            "schedule": [[cells[i]["name"] for i in order] for order in plan.schedule],
            "study_file": None if written is None else str(written),
        }
    )


def print_as_text(plan: Plan, written: Path | None) -> None:
    """Print what to run and how long it takes."""
    n, cells = len(plan.steps), len(plan.cells)
    if plan.mode == "lattice":
        output.say_words(f"all {cells} combinations of {counted(n, 'step')}: exact Shapley values")
    else:
        output.say_words(
            f"{cells} of {2**n} combinations, on {len(plan.orders)} orders drawn in antithetic pairs: "
            "estimated"
        )
        keep = " (keep the orders with -o study.toml)" if written is None else ""
        output.say_words(f"Shapley values with an interval{keep}")
    output.say_words(
        f"{counted(plan.rounds, 'round')}"
        f" of {counted(cells, 'run')} of {_time(plan.run_s)} and {_time(plan.settle_s)} to settle: "
        f"{_time(plan.total_s)}"
    )
    output.say_words(
        f"finds a change of {_percent(plan.detectable)} in 8 of 10 studies if one run scatters by "
        f"{_percent(plan.cv)}"
    )
    if not plan.finds_effect and plan.effect <= plan.margin:
        output.say_words(
            f"NOT the {_percent(plan.effect)} asked for, within the margin of {_percent(plan.margin)}: "
            "state a smaller --margin"
        )
    elif not plan.finds_effect:
        output.say_words(
            f"NOT the {_percent(plan.effect)} asked for: plan more rounds or time, or a quieter machine"
        )
    if plan.budget_s is not None and not plan.fits:
        output.say_words(
            f"does NOT fit the budget of {_time(plan.budget_s)}: give more time, fewer steps, or shorter runs"
        )
    for number, order in enumerate(plan.schedule[:_ROUNDS_SHOWN], start=1):
        for line in _round(number, [joined(plan.cells[i]) for i in order]):
            output.say(line)
    if plan.rounds > _ROUNDS_SHOWN:
        output.say_words("and so on: a new order for each pair of rounds, then its reverse (--json: all)")
    if written is not None:
        output.say(output.clip(f"saved {written}", output.WIDTH))


def _round(number: int, names: Sequence[str]) -> list[str]:
    """Return the order of a round in two lines, with how many more there are."""
    for many in range(min(len(names), _MOST_SHOWN), 0, -1):
        rest = f" ... {len(names) - many} more" if many < len(names) else ""
        lines = output.wrap(f"round {number}: {', '.join(names[:many])}{rest}", output.WIDTH)
        if len(lines) <= _LINES_A_ROUND:
            return lines
    rest = f" ... {len(names) - 1} more" if len(names) > 1 else ""
    first = output.clip(names[0], output.WIDTH - len(rest) - 2)  # a line of its own, indented
    return output.wrap(f"round {number}: {first}{rest}", output.WIDTH)


def _time(seconds: float) -> str:
    return fmt.span(Estimate(value=math.ceil(seconds), unit="s")).text


def _percent(share: float) -> str:
    return fmt.percent(Estimate(value=float(f"{share:.2g}"), unit="1")).text
