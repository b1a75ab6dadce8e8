"""Material of a comparison: everything that ladder and lattice both start from."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from carbonlens.compare.arms import Arm
from carbonlens.compare.contrast import scaled
from carbonlens.compare.effort import Works
from carbonlens.compare.gates import Measured
from carbonlens.compare.grouping import StepRuns
from carbonlens.compare.quality import Outcomes
from carbonlens.domain.comparison import Amounts, AttributionMethod, Effect, GateResult, Orders, StepResult
from carbonlens.domain.factor import Vector
from carbonlens.domain.finding import Finding
from carbonlens.domain.study import Study
from carbonlens.domain.units import Decision


class Material(msgspec.Struct, frozen=True, kw_only=True):
    """The arms of a study with all that belongs to them.

    Attributes:
        groups: Runs by step, baseline included.
        arms: Usable arms by step.
        efforts: Work to make each step alone; a step without recorded work is absent.
        works: Its effort runs.
    """

    study: Study
    vector: Vector
    outcomes: Outcomes
    groups: Mapping[str, StepRuns]
    arms: Mapping[str, Arm]
    efforts: Mapping[str, Amounts]
    works: Works

    @property
    def baseline(self) -> Arm:
        """The baseline's arm."""
        return self.arms[self.study.baseline]

    @property
    def volume(self) -> float:
        """What amounts are multiplied by: the study's volume, else one unit."""
        return 1.0 if self.study.volume_units is None else self.study.volume_units

    def measured(self, step: str) -> Measured | None:
        """Return a step's arm with the quality recorded in any of its runs that ended well."""
        arm = self.arms.get(step)
        if arm is None:
            return None
        return Measured(arm=arm, recorded=self.groups[step].recorded)

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
        gates: Of that arm against the baseline.
        decision: On that arm as a whole; ``None`` without one.
        made: Steps whose effort the path needs.
        interaction_j: Only a lattice has one.
        method: How the parts were made.
        orders: Coverage of a lattice's orders.
    """

    mode: str
    steps: tuple[StepResult, ...]
    path: tuple[str, ...]
    saving: Amounts | None
    end: Arm | None
    made: tuple[str, ...]
    effect: Effect | None = None
    gates: tuple[GateResult, ...] = ()
    decision: Decision | None = None
    interaction_j: Amounts | None = None
    findings: tuple[Finding, ...] = ()
    method: AttributionMethod | None = None
    orders: Orders | None = None
