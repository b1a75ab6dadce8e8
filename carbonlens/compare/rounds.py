"""Rounds: in which order the arms of a series take turns, and what its rounds say so far."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import count

from carbonlens.compare.arms import Arm
from carbonlens.compare.study import material_of
from carbonlens.domain.factor import Vector
from carbonlens.domain.run import Run
from carbonlens.domain.study import Study


def round_orders(arms: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the order of the arms for each round, without end.

    Every second round mirrors the one before it (ABBA), so that a linear drift
    cancels. The pairs are rows of a Williams design (Williams 1949): over as
    many rounds as there are arms (twice as many if their number is odd) every
    arm stands equally often in each place and after each other arm.

    Args:
        arms: Names of the arms, at least one.
    """
    size = len(arms)
    # 0, 1, -1, 2, -2, ...: neighbours differ by every step exactly once.
    row = [(i + 1) // 2 if i % 2 else -(i // 2) for i in range(size)]
    for turn in count():
        order = tuple(arms[(place + turn) % size] for place in row)
        yield order
        yield order[::-1]


def log_ratios(study: Study, runs: Sequence[Run]) -> dict[str, tuple[float, ...]]:
    """Return ``ln(E_step / E_reference)`` of every complete, undisturbed round, by step.

    The rounds are those that a verdict on these runs would rest on; the reference is
    the step each is measured on, else the one before it. A step that failed, or whose
    reference did, is absent.

    Args:
        study: Baseline and steps.
        runs: Its runs so far.

    Raises:
        SelectionError: If the baseline has no usable energy.
        IncomparableError: If arms differ in what must be equal.
    """
    material, _ = material_of(study, runs, Vector(), {})
    failed = {name for name, one in material.groups.items() if one.has_failed}
    found: dict[str, tuple[float, ...]] = {}
    before = study.baseline
    for step in study.steps:
        reference = material.arms.get(step.measured_on or before)
        arm = material.arms.get(step.name)
        before = step.name
        if arm is not None and reference is not None and not failed & {arm.name, reference.name}:
            found[step.name] = _ratios(arm, reference)
    return found


def _ratios(arm: Arm, reference: Arm) -> tuple[float, ...]:
    if arm.is_disturbed or reference.is_disturbed:
        return ()
    mine, theirs = _by_round(arm), _by_round(reference)
    return tuple(math.log(mine[r] / theirs[r]) for r in sorted(mine.keys() & theirs.keys()))


def _by_round(arm: Arm) -> dict[int, float]:
    series = arm.series["energy_j"]
    pairs = zip(series.repeats or (), series.values, strict=True) if series.repeats else ()
    return {number: value for number, value in pairs if value > 0}
