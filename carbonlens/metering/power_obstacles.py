"""Obstacles to power over time: why a run that asked for a trace has no curve, as a Finding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from carbonlens.domain.finding import Finding
from carbonlens.domain.trace import NO_POWER, NO_POWER_SAID
from carbonlens.domain.units import US_PER_S
from carbonlens.metering.phase_energy import place_of
from carbonlens.metering.sealing import Sealed
from carbonlens.metering.sensors import SensorInfo

LEAST_BIN_US: Final = 100_000
"""Sensors are looked at ten times a second, at most."""


class Obstacle(NamedTuple):
    """Why power over time cannot be told, and what would mend it."""

    why: str
    mend: str


TOO_SHORT: Final = Obstacle(
    f"the run was shorter than two looks ({2 * LEAST_BIN_US / US_PER_S:g} s)",
    "let it do more work in one run",
)
UNREAD: Final = Obstacle(
    "no stretch of the run has readings for half of it", "see the findings about its sensors"
)
_IN_PART: Final = Obstacle(
    "the energy of a part of the run is not known",
    "see the findings about its sensors, and carbonlens doctor",
)
_MIXED: Final = Obstacle(
    "its readings are of several boundaries, which have no sum", "read all parts at one boundary"
)


def obstacle(infos: Sequence[SensorInfo], sealed: Sealed, window_us: int) -> Obstacle | None:
    """Return why a run's power over time cannot be told; ``None`` where that depends on its readings alone.

    Args:
        infos: The sensors.
        sealed: What the run's readings were made from.
        window_us: Length of the run.
    """
    if window_us < 2 * LEAST_BIN_US:
        return TOO_SHORT
    if not sealed.parts or len(sealed.readings) != len(sealed.parts):
        return _IN_PART
    if any(p.reading.energy_j is None or place_of(p, infos) is None for p in sealed.parts):
        return _IN_PART
    return _MIXED if len({r.boundary for r in sealed.readings}) > 1 else None


def no_power(why: str, mend: str) -> Finding:
    """A trace was asked for and the record holds no power over time; its energy is not concerned.

    Args:
        why: The reason.
        mend: What would settle it.
    """
    return Finding(
        code=NO_POWER,
        severity="info",
        message=NO_POWER_SAID + why,
        mend=mend,
        subject="power",
    )
