"""Phase: a part of a run's window that has a name, such as warm-up or evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

import msgspec

from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.units import Grade, State

LOAD: Final = "load"
WARM_UP: Final = "warm-up"
STEADY: Final = "steady"
EVALUATION: Final = "evaluation"
CHECKPOINT: Final = "checkpoint"
NAMES: Final = (LOAD, WARM_UP, STEADY, EVALUATION, CHECKPOINT)
"""Names of phases that this package gives; all others are users' own."""


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """All stretches of one name within a run; the phases of a run do not overlap.

    Attributes:
        name: ``load``, ``warm-up``, ``steady``, ``evaluation``, ``checkpoint`` or one's own.
        entries: How often it was entered.
        duration_s: Seconds in it.
        energy_j: Joules of the run's readings in it; ``None`` when unknown.
        units: Functional units done in it; ``None`` where none were counted.
    """

    name: str
    entries: int
    duration_s: float
    energy_j: Decimal | None = None
    state: State = "known"
    grade: Grade | None = None
    u_random_j: float = 0.0
    u_by_source_j: Mapping[str, float] = msgspec.field(default_factory=dict)
    units: Decimal | None = None

    @property
    def energy(self) -> Estimate:
        """The energy as an estimate in joules."""
        if self.energy_j is None:
            return unknown("J")
        # Where nothing tells how sure it is, it has no interval, not a zero one.
        no_width = not self.u_by_source_j and self.u_random_j == 0 and self.energy_j != 0
        return Estimate(
            value=float(self.energy_j),
            unit="J",
            state=self.state,
            grade=self.grade,
            u_random=self.u_random_j,
            u_by_source=self.u_by_source_j,
            bounds=(None, None) if no_width else None,
        )
