"""Power over time: what its chart draws and its table prints, as records."""

from __future__ import annotations

from typing import Final

import msgspec

from carbonlens.domain.trace import PowerTrace
from carbonlens.reporting.content import Phrase, Spot, Table

NAME: Final = 18
"""Width of a phase's name as printed."""

_NOT_APART: Final = "unknown: no meter told it apart"
"""Said where a phase has no mean, since the curve runs through it all the same."""


class PowerPhase(msgspec.Struct, frozen=True, kw_only=True):
    """Mean power in one phase; its ``letter``, of all arms alike, stands in its bands too.

    Attributes:
        phase: Its name in the record; ``name`` is how it is printed.
        mean: ``None`` where no sensor could tell it apart.
    """

    letter: str
    phase: str
    name: str
    mean: Spot | None

    @property
    def power(self) -> str:
        """Its power as printed."""
        return "power unknown" if self.mean is None else self.mean.text

    @property
    def label(self) -> str:
        """What is printed beside the curve."""
        return f"{self.letter}  {self.name} {self.power}"


class PowerArm(msgspec.Struct, frozen=True, kw_only=True):
    """Power over time of the one run that stands for an arm.

    Attributes:
        name: Printed name of the step; ``step`` is the study's own.
        run_id: The run.
        phases: Those that last longest in all arms, in the order of their first entry.
        hidden: How many phases more there are.
        idle: Power without work, where that is known.
    """

    name: str
    step: str
    run_id: str
    duration_s: float
    trace: PowerTrace
    mean: Spot
    peak: Spot
    phases: tuple[PowerPhase, ...] = ()
    hidden: int = 0
    idle: Spot | None = None

    @property
    def lines(self) -> tuple[str, ...]:
        """What is printed beside the curve, line by line."""
        return (
            *(p.label for p in self.phases),
            *((_NOT_APART,) if any(p.mean is None for p in self.phases) else ()),
            *(("further phases have no band",) if self.hidden else ()),
            f"mean {self.mean.text}, peak {self.peak.text}",
            *((f"dashed: idle {self.idle.text}",) if self.idle else ()),
        )


class PowerTraces(msgspec.Struct, frozen=True, kw_only=True):
    """Power over time of one run of each arm that keeps it; ``table`` is the chart as a table."""

    title: Phrase
    alt: str
    arms: tuple[PowerArm, ...]
    axis: str
    table: Table
