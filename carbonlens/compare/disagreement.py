"""Disagreement: steps whose verdict and whose joules point to opposite sides.

The verdict is a mean of log ratios, in which every combination (and round) weighs
the same; saved joules are differences of means, in which those that use most weigh
most. A step that saves where little is used and costs where much is can be better by
the one and a loss by the other. Both figures stand; this says so.
"""

from __future__ import annotations

from collections.abc import Iterable

from carbonlens.domain.comparison import StepResult
from carbonlens.domain.finding import Finding


def disagreements(steps: Iterable[StepResult], mode: str) -> tuple[Finding, ...]:
    """Return a finding for each step of which verdict and joules disagree.

    Args:
        steps: Of the comparison.
        mode: ``ladder`` or ``lattice``.
    """
    is_lattice = mode == "lattice"
    how = "the mean of its relative changes" if is_lattice else "the ratios within its rounds"
    why = (
        "what it does depends on which others are on"
        if is_lattice
        else "its rounds lie at very different levels of energy"
    )
    mend = (
        "decide by its change on top of what will be on (leave_one_out)"
        if is_lattice
        else "measure again at one steady level"
    )
    return tuple(
        Finding(
            code="CL444",
            severity="warning",
            message=f"step {step.step!r} is {step.verdict} by {how}, but {step.joules_say} energy by its "
            f"part of the saving: {why}",
            subject=step.step,
            mend=mend,
        )
        for step in steps
        if step.joules_say is not None
    )
