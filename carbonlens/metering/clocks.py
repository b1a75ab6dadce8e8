"""Two clocks of one moment: windows are measured by the monotonic one, and kept by the wall clock."""

from __future__ import annotations

import time
from typing import Final

_PAIRS: Final = 5
"""So often both are read: between the two the thread may be put aside for milliseconds."""


def wall_us(monotonic_ns: int) -> int:
    """Return what the wall clock showed at a moment, in microseconds.

    Args:
        monotonic_ns: The moment by the monotonic clock, in nanoseconds.
    """
    widths_ns: list[tuple[int, int]] = []
    for _ in range(_PAIRS):
        before_ns, wall_ns, after_ns = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        widths_ns.append((after_ns - before_ns, wall_ns - (before_ns + after_ns) // 2))
    _, ahead_ns = min(widths_ns)
    return (monotonic_ns + ahead_ns) // 1000
