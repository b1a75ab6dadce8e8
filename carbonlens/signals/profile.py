"""Profile: power as a step function of time, known on some stretches and not on others.

Both kinds of sensor end here: a power sample holds until the next, a counter's
difference spreads evenly between two readings. What lies between stretches is
not known and is never bridged.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import msgspec

from carbonlens.domain.units import US_PER_S


class Profile(Protocol):
    """Joules over time, asked for any window; sequences and arrays answer alike."""

    @property
    def lowest_w(self) -> float:
        """Lowest power of all stretches."""

    @property
    def highest_w(self) -> float:
        """Highest power of all stretches."""

    def energy(self, start_us: float, end_us: float) -> tuple[float, float]:
        """Return the joules between two times and the seconds of it that are known."""

    def levels(self, start_us: float, end_us: float, step_us: float) -> list[float]:
        """Return the power in watts every ``step_us``, where it is known."""

    def highest_between(self, start_us: float, end_us: float) -> float | None:
        """Return the highest power in a window; ``None`` where nothing is known."""


class Stretches(msgspec.Struct, frozen=True):
    """A profile in plain sequences: stretch ``i`` spends ``joules[i]`` evenly.

    Stretches are in rising time, do not overlap and have a length.
    """

    starts_us: tuple[float, ...]
    ends_us: tuple[float, ...]
    joules: tuple[float, ...]

    def _watts(self, i: int) -> float:
        return self.joules[i] * US_PER_S / (self.ends_us[i] - self.starts_us[i])

    @property
    def lowest_w(self) -> float:
        """Lowest power of all stretches; 0 without one."""
        return min((self._watts(i) for i in range(len(self.joules))), default=0.0)

    @property
    def highest_w(self) -> float:
        """Highest power of all stretches; 0 without one."""
        return max((self._watts(i) for i in range(len(self.joules))), default=0.0)

    def _between(self, start_us: float, end_us: float) -> range:
        return range(bisect_right(self.ends_us, start_us), bisect_left(self.starts_us, end_us))

    def energy(self, start_us: float, end_us: float) -> tuple[float, float]:
        """Return the joules between two times and the seconds of it that are known."""
        joules, known_us = [], []
        for i in self._between(start_us, end_us):
            low, high = self.starts_us[i], self.ends_us[i]
            overlap = min(high, end_us) - max(low, start_us)
            known_us.append(overlap)
            # A whole stretch gives its joules unrounded: counters stay exact.
            joules.append(self.joules[i] * (overlap / (high - low)))
        return _sum(joules), math.fsum(known_us) / US_PER_S

    def levels(self, start_us: float, end_us: float, step_us: float) -> list[float]:
        """Return the power in watts every ``step_us`` from ``start_us``, where it is known."""
        found = []
        for k in range(math.ceil((end_us - start_us) / step_us)):
            t = start_us + k * step_us
            i = bisect_right(self.starts_us, t) - 1
            if i >= 0 and t < self.ends_us[i]:
                found.append(self._watts(i))
        return found

    def highest_between(self, start_us: float, end_us: float) -> float | None:
        """Return the highest power in a window; ``None`` where nothing is known."""
        return max((self._watts(i) for i in self._between(start_us, end_us)), default=None)


def _sum(joules: Sequence[float]) -> float:
    """Return the exact sum; not a number where it is beyond what a number holds."""
    try:
        return math.fsum(joules)
    except (OverflowError, ValueError):
        return math.nan


def stretches(t_us: Sequence[float], joules: Sequence[float | None]) -> Stretches:
    """Return counter differences spread between their readings; ``None`` is a hole.

    Args:
        t_us: Times of the readings.
        joules: Difference between each reading and the next.
    """
    known = [(a, b, j) for (a, b), j in zip(pairwise(t_us), joules, strict=True) if j is not None]
    return Stretches(tuple(k[0] for k in known), tuple(k[1] for k in known), tuple(k[2] for k in known))
