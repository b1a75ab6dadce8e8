"""Rounding within: parts rounded so that they sum to a whole, each to a number inside its interval."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from fractions import Fraction

Ends = tuple[float | None, float | None]
"""Lower and upper end of an interval; ``None`` where it has no such end."""

_Range = tuple[int, int]


def within(parts: Sequence[float], ends: Sequence[Ends], places: int, whole: float) -> list[float] | None:
    """Return parts rounded inside their intervals so that they sum to a whole; ``None`` where none do.

    Every part is rounded down or up, as it would be without an interval. What is left goes, one grain
    after the other, to the part that it takes the least away.

    Args:
        parts: In the printed unit, finite.
        ends: The interval of each.
        places: Decimals; negative for rounding before the point.
        whole: What they sum to, a number of as many decimals.
    """
    grain = Fraction(10) ** -places
    values = [Fraction(part) / grain for part in parts]
    wanted = round(Fraction(whole) / grain)
    ranges = [_range(v, e, grain) for v, e in zip(values, ends, strict=True)]
    if not sum(low for low, _ in ranges) <= wanted <= sum(high for _, high in ranges):
        return None
    return [float(n * grain) for n in _moved(values, ranges, wanted)]


def _range(value: Fraction, ends: Ends, grain: Fraction) -> _Range:
    """Return the least and the most grains that a part may be printed as: both, or the one inside.

    One of less than a grain may come to nothing: it is printed as less than a grain then, which is true.
    """
    low, high = (None if e is None or not math.isfinite(e) else round(Fraction(e) / grain) for e in ends)
    least, most = math.floor(value), math.ceil(value)
    if low is not None:
        least = max(least, min(low, round(value)))
    if high is not None:
        most = min(most, max(high, round(value)))
    return (min(least, 0), max(most, 0)) if abs(value) < 1 else (least, most)


def _moved(values: Sequence[Fraction], ranges: Sequence[_Range], wanted: int) -> list[int]:
    """Return numbers in their ranges that sum to what is wanted, as near to the values as they can."""
    made = [min(max(round(v), low), high) for v, (low, high) in zip(values, ranges, strict=True)]
    left = wanted - sum(made)
    step = 1 if left > 0 else -1
    heap = [(abs(n + step - v), i) for i, (n, v) in enumerate(zip(made, values, strict=True))]
    heapq.heapify(heap)
    while left:
        _, i = heapq.heappop(heap)
        low, high = ranges[i]
        if not low <= made[i] + step <= high:
            continue
        made[i] += step
        left -= step
        heapq.heappush(heap, (abs(made[i] + step - values[i]), i))
    return made
