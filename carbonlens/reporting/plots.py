"""Plots: what the engineering charts draw, as records."""

from __future__ import annotations

from statistics import median

from carbonlens.domain.comparison import StepResult
from carbonlens.reporting.content import Drift, Forest, Mean, Trace, phrase, quoted
from carbonlens.reporting.facts import Facts
from carbonlens.reporting.names import clip
from carbonlens.reporting.number_words import in_words
from carbonlens.reporting.room import of_more
from carbonlens.reporting.step_tables import every_arm

MOST_MEANS = 24
MOST_TRACES = 8


def forest(facts: Facts) -> Forest | None:
    """Return each step's change against the step it was measured on; ``None`` without any interval."""
    every = [m for m in (_mean(facts, s) for s in facts.comparison.steps) if m is not None]
    if not every:
        return None
    means, hidden = every[:MOST_MEANS], max(len(every) - MOST_MEANS, 0)
    said = "; ".join(f"{clip(m.name, 30)} {m.text} {m.verdict}" for m in means)
    return Forest(
        title=phrase("Change of energy per ", quoted(facts.unit), " against the step it was measured on"),
        alt=f"Interval plot of {in_words(len(means))} changes of energy{of_more(hidden)}: {said}.",
        means=tuple(means),
        margin=100 * facts.comparison.study.margin,
        axis="change in percent; left of zero saves energy",
        hidden=hidden,
    )


def _mean(facts: Facts, step: StepResult) -> Mean | None:
    entry = facts.effect(step, "previous", step.vs_previous)
    estimate = entry.printed.figure.estimate
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return None
    return Mean(
        name=facts.name(step.step),
        change=100 * estimate.value,
        low=100 * estimate.low,
        high=100 * estimate.high,
        verdict=step.verdict,
        figure_id=entry.figure_id,
        text=f"{entry.printed.text} {entry.printed.interval}",
    )


def drift(facts: Facts) -> Drift | None:
    """Return the rounds of each arm in run order; ``None`` with fewer than two rounds."""
    every = []
    for arm in every_arm(facts):
        rounds = arm.metrics.energy_by_round_j if arm.metrics else ()
        middle = median(rounds) if rounds else 0.0
        if len(rounds) > 1 and middle:
            values = tuple(100 * (r / middle - 1) for r in rounds)
            every.append(Trace(name=facts.name(arm.step), values=values))
    if not every:
        return None
    traces, hidden = every[:MOST_TRACES], max(len(every) - MOST_TRACES, 0)
    return Drift(
        title=phrase("Energy of each round in run order, in percent off the step’s own median"),
        alt=(
            f"Small panels of {in_words(len(traces))} step{'' if len(traces) == 1 else 's'}"
            f"{of_more(hidden)}: energy of each round in run order, as "
            "deviation from the step's median. A slope would show drift."
        ),
        traces=tuple(traces),
        axis="percent off median",
        hidden=hidden,
    )
