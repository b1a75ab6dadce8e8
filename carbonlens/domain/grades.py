"""Default widths by evidence grade, where a source gives a grade and no interval.

DESIGN law 2; see docs/adr/0006-default-widths.md. A is the meter's own
specification, so it has no default: without one its width is unknown.
"""

from __future__ import annotations

import math
from typing import Final

from carbonlens.domain.units import Z_95, Grade

COUNTER_GAIN_95: Final = 0.05
"""Largest usual gain error of a device's own counter or power sensor (B, C)."""

MODEL_FACTOR_95: Final = 1.8
DATASHEET_FACTOR_95: Final = 2.0

_RELATIVE_SIGMA: Final[dict[Grade, float]] = {
    "B": COUNTER_GAIN_95 / Z_95,
    "C": COUNTER_GAIN_95 / Z_95,
    "D": math.log(MODEL_FACTOR_95) / Z_95,
    "E": math.log(DATASHEET_FACTOR_95) / Z_95,
}


def default_relative_sigma(grade: Grade | None) -> float | None:
    """Return one relative sigma for a grade; ``None`` where there is no default."""
    return None if grade is None else _RELATIVE_SIGMA.get(grade)
