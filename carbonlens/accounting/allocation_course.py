"""Course: joules over time, as the running integral of pieces that may overlap."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

from carbonlens.accounting.allocation_bounds import Piece

_ZERO = Decimal(0)


class Within(NamedTuple):
    """What of some pieces lies in a span of time.

    Attributes:
        joules: With each piece spread evenly over its own time.
        sure_j: Of pieces that lie wholly inside.
        u_j: One sigma of where pieces over an edge of the span have their energy:
            the widest that a part between none and all of a piece can have.
    """

    joules: Decimal
    sure_j: Decimal
    u_j: float


class Course:
    """Joules between any two moments.

    Args:
        pieces: In any order; each holds its joules evenly spread.
    """

    def __init__(self, pieces: Iterable[Piece]) -> None:
        """Sum the pieces up once."""
        changes: dict[int, Decimal] = {}
        for start, end, joules in pieces:
            power = joules / (end - start)
            changes[start] = changes.get(start, _ZERO) + power
            changes[end] = changes.get(end, _ZERO) - power
        self.times = sorted(changes)
        self._sums = [_ZERO]
        self._powers: list[Decimal] = []
        power = _ZERO
        for start, end in pairwise(self.times):
            power += changes[start]
            self._powers.append(power)
            self._sums.append(self._sums[-1] + power * (end - start))

    def between(self, start_us: int, end_us: int) -> Decimal:
        """Return the joules from ``start_us`` to ``end_us``."""
        return self._until(end_us) - self._until(start_us)

    def marks(self, start_us: int, end_us: int) -> list[int]:
        """Return the moments between two, at which the power may change."""
        return self.times[bisect_right(self.times, start_us) : bisect_left(self.times, end_us)]

    def _until(self, t_us: int) -> Decimal:
        k = bisect_right(self.times, t_us) - 1
        if k < 0:
            return _ZERO
        if k >= len(self._powers):
            return self._sums[-1]
        return self._sums[k] + self._powers[k] * (t_us - self.times[k])


def within(pieces: Iterable[Piece], start_us: int, end_us: int) -> Within:
    """Return what of pieces lies in a span of time.

    Args:
        pieces: In any order.
        start_us: Where the span begins.
        end_us: Where it ends.
    """
    joules = sure = _ZERO
    variance = 0.0
    for start, end, energy in pieces:
        part_us = min(end, end_us) - max(start, start_us)
        if part_us <= 0:
            continue
        inside = energy * part_us / (end - start)
        joules += inside
        if part_us == end - start:
            sure += energy
        else:
            variance += float(inside) * float(energy - inside)
    return Within(joules, sure, variance**0.5)


def split_by(pieces: Iterable[Piece], mine: Course, all_of_them: Sequence[Course]) -> list[Piece]:
    """Return the part of pieces that falls to one of several courses, by their power at the time.

    Args:
        pieces: What is to be divided.
        mine: The course whose part is wanted, one of ``all_of_them``.
        all_of_them: Together they take all; where none has energy, nobody takes it.
    """
    marks = sorted({t for course in all_of_them for t in course.times})
    parts: list[Piece] = []
    for start, end, joules in pieces:
        edges = [start, *marks[bisect_right(marks, start) : bisect_right(marks, end - 1)], end]
        for a, b in pairwise(edges):
            whole = sum((course.between(a, b) for course in all_of_them), _ZERO)
            if whole > 0:
                parts.append((a, b, joules * (b - a) / (end - start) * mine.between(a, b) / whole))
    return parts
