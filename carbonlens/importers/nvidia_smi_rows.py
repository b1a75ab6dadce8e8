"""Rows of several GPUs that no column tells apart: they come in bursts, one row a GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import msgspec

_SMALL_SHARE: Final = 0.2
"""Steps shorter than this share of the long ones lie within a burst."""

_MOST_GPUS: Final = 64
_REGULAR_SHARE: Final = 0.9


class Bursts(msgspec.Struct, frozen=True):
    """Rows of a burst, and microseconds from which a step begins a new one."""

    size: int
    apart_us: float


class Places:
    """Tells each row's place in its burst."""

    def __init__(self, bursts: Bursts) -> None:
        """Start before the first burst."""
        self._bursts = bursts
        self._last_us: float | None = None
        self._place = -1

    def of(self, t_us: float) -> int:
        """Return the place of the next row; the last where a burst is longer than it should be."""
        last_us, self._last_us = self._last_us, t_us
        if last_us is None or abs(t_us - last_us) > self._bursts.apart_us:
            self._place = 0
        else:
            self._place = (self._place + 1) % self._bursts.size
        return self._place


def bursts_of(times_us: Sequence[float], values: Sequence[str]) -> Bursts | None:
    """Return how rows come in bursts of one size; ``None`` where they do not.

    Args:
        times_us: Times of the rows, in order.
        values: Their power as written: bursts of equal rows are one row written twice.
    """
    steps = [later - earlier for earlier, later in pairwise(times_us)]
    longest = sorted(s for s in steps if s > 0)
    if not longest:
        return None
    long_us = longest[int(0.9 * (len(longest) - 1))]
    apart_us = _SMALL_SHARE * long_us
    sizes: Counter[int] = Counter()
    alike = size = 0
    start = 0
    for place in range(1, len(times_us) + 1):
        if place < len(times_us) and steps[place - 1] <= apart_us:
            continue
        size = place - start
        sizes[size] += 1
        rows = set(zip(times_us[start:place], values[start:place], strict=True))
        alike += size > 1 and len(rows) == 1
        start = place
    usual, count = sizes.most_common(1)[0]
    bursts = sum(sizes.values())
    if not 2 <= usual <= _MOST_GPUS or count < _REGULAR_SHARE * (bursts - 1) or bursts < 2:
        return None
    return None if alike >= _REGULAR_SHARE * bursts else Bursts(usual, apart_us)
