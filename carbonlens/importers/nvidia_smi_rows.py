"""Rows of several GPUs that no column tells apart: they come in bursts, one row a GPU."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import msgspec

_SMALL_SHARE: Final = 0.2
"""Steps shorter than this share of the long ones lie within a burst."""

_WITHIN_US: Final = 8_000.0
"""Longest step between rows that were surely read by one call, and not by the next: the quickest loop
that tools' logs are known by is ``-lms 10``."""

_FLOOR_US: Final = 500.0
"""Half of the millisecond that stamps are told in: what a step of none may be."""

_FEWEST: Final = 5
"""Bursts from which rows that come several at a time are no mishap."""

_SEVERAL_SHARE: Final = 0.1

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


def bursts_of(times_us: Sequence[float], rows: Sequence[str]) -> Bursts | None:
    """Return how rows come in bursts of one size; ``None`` where they do not.

    Args:
        times_us: Times of the rows, in order.
        rows: The rows as written: bursts of equal ones are one row written twice.
    """
    steps = [later - earlier for earlier, later in pairwise(times_us)]
    for apart_us in (_widest_us(steps), _usual_us(steps)):
        if apart_us is None:
            continue
        found = _parted(times_us, rows, apart_us)
        usual, count = Counter(map(len, found)).most_common(1)[0]
        if not 2 <= usual <= _MOST_GPUS or len(found) < 2 or count < _REGULAR_SHARE * (len(found) - 1):
            continue
        if sum(map(_is_one_row, found)) < _REGULAR_SHARE * len(found):
            return Bursts(usual, apart_us)
    return None


def are_several(times_us: Sequence[float], rows: Sequence[str]) -> bool:
    """Tell whether rows that come in bursts of no one size are of several GPUs: one was not always there.

    Args:
        times_us: Times of the rows, in order, finer than seconds: several rows of one second may be those
            of one GPU.
        rows: The rows as written.
    """
    apart_us = _widest_us([later - earlier for earlier, later in pairwise(times_us)])
    if apart_us is None:
        return False
    found = _parted(times_us, rows, apart_us)
    several = sum(len(burst) > 1 and not _is_one_row(burst) for burst in found)
    return max(map(len, found)) <= _MOST_GPUS and several >= max(_FEWEST, _SEVERAL_SHARE * len(found))


def _usual_us(steps: Sequence[float]) -> float | None:
    """Return the step from which a burst begins, by the long ones."""
    rising = sorted(s for s in steps if s > 0)
    return _SMALL_SHARE * rising[int(0.9 * (len(rising) - 1))] if rising else None


def _widest_us(steps: Sequence[float]) -> float | None:
    """Return the step from which a burst begins, by the widest gap above short ones.

    It does not depend on how many GPUs there are, nor on one interval.
    """
    sizes = sorted(max(abs(s), _FLOOR_US) for s in steps)
    gaps = [(high / low, low, high) for low, high in pairwise(sizes) if low <= _WITHIN_US]
    ratio, low, high = max(gaps, default=(0.0, 0.0, 0.0))
    return math.sqrt(low * high) if ratio >= 1 / _SMALL_SHARE else None


def _parted(times_us: Sequence[float], rows: Sequence[str], apart_us: float) -> list[list[tuple[float, str]]]:
    """Return the bursts: times and rows of each."""
    found: list[list[tuple[float, str]]] = []
    last_us = -math.inf
    for t_us, row in zip(times_us, rows, strict=True):
        if abs(t_us - last_us) > apart_us:
            found.append([])
        found[-1].append((t_us, row))
        last_us = t_us
    return found


def _is_one_row(burst: Sequence[tuple[float, str]]) -> bool:
    """Whether a burst is one row, written twice."""
    return len(burst) > 1 and len(set(burst)) == 1
