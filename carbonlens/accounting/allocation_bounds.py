"""What a device drew at least and at most, from readings of overlapping windows.

Readings of one device are joules over half-open windows in microseconds. Any set
of them that covers a stretch of time bounds the stretch from above, any set
without overlap bounds it from below; both are exact sums of what was read. One that
saw a part of its window only is a lower bound, and bounds nothing from above.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from decimal import ROUND_FLOOR, Decimal
from heapq import heappop, heappush
from typing import Final, TypeAlias

Piece: TypeAlias = tuple[int, int, Decimal]
"""Start, end and joules of one reading; ``start < end``."""

MICROJOULE: Final = Decimal("0.000001")
_NOISE: Final = Decimal("1E-18")


def bounds(
    pieces: Sequence[Piece], complete: Sequence[Piece] | None = None
) -> tuple[Decimal, Decimal | None]:
    """Return the least and the most that the union of the windows can have drawn.

    Readings that contradict each other swap the two; the range between them is
    then their disagreement.

    Args:
        pieces: At least one, of windows that hang together.
        complete: Those that saw all of their window; all when ``None``. Where they do
            not cover the stretch, nothing bounds it from above: ``None``.
    """
    least, most = heaviest_disjoint(pieces), lightest_cover(pieces)
    if complete is not None and len(complete) < len(pieces):
        if not _cover(complete, min(s for s, _, _ in pieces), max(e for _, e, _ in pieces)):
            return least, None
        most = lightest_cover(complete)
    return min(least, most), max(least, most)


def _cover(pieces: Sequence[Piece], start_us: int, end_us: int) -> bool:
    """Tell whether windows leave no gap between two times."""
    at = start_us
    for start, end, _ in sorted(pieces):
        if start > at:
            return False
        at = max(at, end)
    return bool(pieces) and at >= end_us


def lightest_cover(pieces: Sequence[Piece]) -> Decimal:
    """Return the smallest sum of readings whose windows cover the whole stretch.

    Args:
        pieces: At least one; their windows leave no gap between them.
    """
    ordered = sorted(pieces)
    first, last = ordered[0][0], max(end for _, end, _ in ordered)
    # Cheapest sums that cover up to an end; those that end before the next start are of no use any more.
    open_sums: list[tuple[Decimal, int]] = []
    best: Decimal | None = None
    for start, end, joules in ordered:
        while open_sums and open_sums[0][1] < start:
            heappop(open_sums)
        total = joules if start == first else joules + open_sums[0][0]
        heappush(open_sums, (total, end))
        if end == last and (best is None or total < best):
            best = total
    return best if best is not None else Decimal(0)


def heaviest_disjoint(pieces: Sequence[Piece]) -> Decimal:
    """Return the largest sum of readings of which no two windows overlap.

    Args:
        pieces: In any order.
    """
    ordered = sorted(pieces, key=lambda p: (p[1], p[0]))
    ends = [end for _, end, _ in ordered]
    best = [Decimal(0)]
    for index, (start, _, joules) in enumerate(ordered):
        before = bisect_right(ends, start, 0, index)
        best.append(max(best[index], best[before] + joules))
    return best[-1]


def exact(joules: Decimal) -> Decimal:
    """Return joules rounded down to a microjoule, after the noise of division is taken off."""
    return joules.quantize(_NOISE).quantize(MICROJOULE, rounding=ROUND_FLOOR)


def apportion(parts: Sequence[Decimal], total: Decimal) -> list[Decimal]:
    """Return the parts in whole microjoules, their sum exactly ``total``.

    Largest remainder: every part is rounded down, and the microjoules that are
    left go to the parts that lost most, the earlier first.

    Args:
        parts: None negative; their sum is ``total`` but for rounding.
        total: In whole microjoules.
    """
    floors = [exact(p) for p in parts]
    missing = int((total - sum(floors, Decimal(0))) / MICROJOULE)
    if missing == 0:
        return floors
    lost = [part.quantize(_NOISE) - floor for part, floor in zip(parts, floors, strict=True)]
    order = sorted(range(len(parts)), key=lost.__getitem__, reverse=True)  # stable: the earlier first
    step = MICROJOULE if missing >= 0 else -MICROJOULE
    # Rounding leaves less than one microjoule a part, so one round is enough; a part stays above zero.
    turns = order if missing >= 0 else [i for i in reversed(order) if floors[i] > 0]
    for i in turns[: abs(missing)]:
        floors[i] += step
    return floors
