"""Material of a comparison: everything that ladder and lattice both start from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from carbonlens.accounting.amounts import account
from carbonlens.compare.arms import MEASURES, Arm, core_hours, measured_energy
from carbonlens.compare.contrast import scaled, sum_amounts
from carbonlens.compare.gates import Measured
from carbonlens.compare.grouping import StepRuns
from carbonlens.compare.quality import Outcomes
from carbonlens.domain.comparison import Amounts, Effect, StepResult
from carbonlens.domain.factor import Vector
from carbonlens.domain.finding import Finding
from carbonlens.domain.study import Study


class Material(msgspec.Struct, frozen=True, kw_only=True):
    """The arms of a study with all that belongs to them.

    Attributes:
        groups: Runs by step, baseline included.
        arms: Usable arms by step.
        efforts: Work to make each step; a step without recorded work is absent.
    """

    study: Study
    vector: Vector
    outcomes: Outcomes
    groups: Mapping[str, StepRuns]
    arms: Mapping[str, Arm]
    efforts: Mapping[str, Amounts]

    @property
    def baseline(self) -> Arm:
        """The baseline's arm."""
        return self.arms[self.study.baseline]

    @property
    def volume(self) -> float:
        """What amounts are multiplied by: the study's volume, else one unit."""
        return 1.0 if self.study.volume_units is None else self.study.volume_units

    def measured(self, step: str) -> Measured | None:
        """Return a step's arm with the quality recorded in any of its runs."""
        arm = self.arms.get(step)
        if arm is None:
            return None
        return Measured(arm=arm, recorded=tuple(q for r in self.groups[step].all for q in r.quality))

    def for_volume(self, amounts: Amounts) -> Amounts:
        """Return per-unit amounts on the basis of the comparison."""
        return scaled(amounts, self.volume)


class Outline(msgspec.Struct, frozen=True, kw_only=True):
    """What a ladder or a lattice finds.

    Attributes:
        steps: In the study's order.
        path: Baseline and what is adopted on top of it.
        saving: Of the whole path per unit; ``None`` when its end was not measured.
        end: The arm at the end of the path.
        effect: Change of that arm against the baseline.
        made: Steps whose effort the path needs.
        interaction_j: Only a lattice has one.
    """

    mode: str
    steps: tuple[StepResult, ...]
    path: tuple[str, ...]
    saving: Amounts | None
    end: Arm | None
    made: tuple[str, ...]
    effect: Effect | None = None
    interaction_j: Amounts | None = None
    findings: tuple[Finding, ...] = ()


def effort_of(runs: StepRuns, vector: Vector) -> tuple[Amounts | None, tuple[Finding, ...]]:
    """Return what making a step took, failed attempts included.

    Args:
        runs: The step's runs.
        vector: Factors and prices.
    """
    parts: list[Amounts] = []
    findings: list[Finding] = []
    for run in runs.effort:
        amounts, of_account = account(measured_energy(run), run.boundary, core_hours(run), vector)
        parts.append(amounts)
        findings.extend(of_account)
    return (sum_amounts(parts) if parts else None), tuple(findings)


def total_effort(material: Material, steps: Iterable[str]) -> tuple[Amounts | None, tuple[str, ...]]:
    """Return the effort of several steps, and the steps that recorded none.

    With a step missing, the sum is a lower bound.

    Args:
        material: The study's material.
        steps: Names of the steps.
    """
    names = list(steps)
    known = [material.efforts[n] for n in names if n in material.efforts]
    silent = tuple(n for n in names if n not in material.efforts)
    if not known:
        return None, silent
    total = sum_amounts(known)
    return (at_least(total) if silent else total), silent


def at_least(amounts: Amounts) -> Amounts:
    """Return the amounts as lower bounds."""
    bounded = {}
    for measure in MEASURES:
        estimate = getattr(amounts, measure)
        bounded[measure] = estimate if estimate.value is None else replace(estimate, state="unbounded")
    return Amounts(**bounded)
