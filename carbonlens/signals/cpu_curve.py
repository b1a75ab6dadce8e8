"""Power of a CPU package over its load, as a share of its TDP or calibrated by two points.

The curve is a straight line up to a knee and level after it: once about 70 % of
the hardware threads are busy, the cores are, and their power limit holds. The
figures are fitted to the 86 points of codecarbon's public profiling runs (MIT,
``data/hardware/cpu_load_profiling``; RAPL package power at set loads on four
machines). Each machine differs so much from the others that such a curve cannot
be good: ``spread`` is the error of a machine that was not fitted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import msgspec

KNEE: Final = 0.7
"""Load above which the power of a package rises no further."""

_ROUNDS: Final = 100


class LoadCurve(msgspec.Struct, frozen=True, kw_only=True):
    """Power over load: ``idle + (full - idle) min(load / knee, 1)``.

    Attributes:
        idle: Power without load, in watts or as a share of the TDP.
        full: Power above the knee, in the same unit.
        knee: Load from which on the power is level.
    """

    idle: float
    full: float
    knee: float = KNEE

    def at(self, load: float) -> float:
        """Return the power at a load from 0 to 1, in the curve's unit.

        Raises:
            ValueError: If the load is not between 0 and 1.
        """
        if not 0 <= load <= 1:
            raise ValueError(f"a load lies between 0 and 1, not at {load}")
        return self.idle + (self.full - self.idle) * min(load / self.knee, 1.0)


TDP_SHARES: Final = LoadCurve(idle=0.142, full=0.674)
"""The curve of a machine nobody measured, in shares of its TDP; fitted by ``fit``."""

TDP_SHARES_FACTOR_90: Final = 2.05
"""Nine in ten points of a machine that was not fitted lie within ``x/`` this factor."""

TDP_SHARES_SPREAD: Final = math.log(TDP_SHARES_FACTOR_90) / 1.6448536269514722
"""One sigma of the logarithm of the power, from the 90 % factor."""

TWO_POINTS_FACTOR_90: Final = 1.56
"""The same of a curve through the machine's own idle and full power, on the same profiles."""

TWO_POINTS_SPREAD: Final = math.log(TWO_POINTS_FACTOR_90) / 1.6448536269514722
"""One sigma of the logarithm of the power, from that factor."""


def fit(points: Sequence[tuple[float, float]], knee: float = KNEE) -> LoadCurve:
    """Return the curve with the least squares of log power.

    Relative errors count alike at idle and at full load, and too high costs as
    much as too low, so that the curve does not favour small figures.

    Args:
        points: Pairs of load (0 to 1) and power, at two loads at least.
        knee: Load from which on the power is level.

    Raises:
        ValueError: If a power is not positive, or all loads are alike.
    """
    rows = [(min(load / knee, 1.0), power) for load, power in points]
    if any(power <= 0 for _, power in rows) or len({x for x, _ in rows}) < 2:
        raise ValueError("a curve needs positive power at two different loads")
    level = math.fsum(power for _, power in rows) / len(rows)
    idle, rise = level, 0.0
    for _ in range(_ROUNDS):
        step_idle, step_rise = _gauss_newton(rows, idle, rise)
        # Half steps until both ends stay positive: a power below nothing has no logarithm.
        while idle + step_idle <= 0 or idle + step_idle + rise + step_rise <= 0:
            step_idle, step_rise = step_idle / 2, step_rise / 2
        idle, rise = idle + step_idle, rise + step_rise
        if abs(step_idle) + abs(step_rise) < 1e-12 * level:
            break
    return LoadCurve(idle=idle, full=idle + rise, knee=knee)


def _gauss_newton(rows: Sequence[tuple[float, float]], idle: float, rise: float) -> tuple[float, float]:
    """Return the step towards the least squares of ``ln power - ln (idle + rise x)``."""
    n00 = n01 = n11 = r0 = r1 = 0.0
    for x, power in rows:
        model = idle + rise * x
        slope, miss = 1 / model, math.log(power / model)
        n00 += slope * slope
        n01 += slope * slope * x
        n11 += slope * slope * x * x
        r0 += slope * miss
        r1 += slope * x * miss
    det = n00 * n11 - n01 * n01
    return (n11 * r0 - n01 * r1) / det, (n00 * r1 - n01 * r0) / det


def two_points(idle: tuple[float, float], full: tuple[float, float], knee: float = KNEE) -> LoadCurve:
    """Return the curve of one machine from two measured points.

    Args:
        idle: Load and watts of the idle machine.
        full: Load and watts under full load.
        knee: Load from which on the power is level.

    Raises:
        ValueError: If the two loads do not differ below the knee.
    """
    low, high = min(idle[0] / knee, 1.0), min(full[0] / knee, 1.0)
    if not low < high:
        raise ValueError(f"loads of {idle[0]} and {full[0]} do not tell idle from full power")
    rise = (full[1] - idle[1]) / (high - low)
    at_rest = idle[1] - rise * low
    return LoadCurve(idle=at_rest, full=at_rest + rise, knee=knee)


def factor_within(curve: LoadCurve, points: Sequence[tuple[float, float]], share: float) -> float:
    """Return the factor within which the curve meets a share of points, up or down.

    Args:
        curve: The curve.
        points: Pairs of load and power in the curve's unit.
        share: Share of the points, above 0 and up to 1.
    """
    misses = sorted(abs(math.log(curve.at(load) / power)) for load, power in points)
    return math.exp(misses[math.ceil(share * len(misses)) - 1])
