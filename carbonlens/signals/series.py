"""Series: timed readings made clean, and the periods they were taken at.

A reading that failed (``None`` or not a number), and one whose time is none, is
dropped and counted, never taken as zero. Times are microseconds; readings out of order are sorted, and of
several at one time the last one given stands.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.units import US_PER_S
from carbonlens.signals.profile import Stretches

MOST_US: Final = 2.0**53
"""Largest time in microseconds: beyond it (285 years) a number no longer tells each of them."""


class Dropped(msgspec.Struct, frozen=True, kw_only=True):
    """What had to be left out of a series or put in order.

    Attributes:
        failed: Readings that were missing or not a number, or whose time was not.
        repeated: Readings that bear the same time as a later one.
        disordered: Readings that came earlier than the one before them.
    """

    failed: int = 0
    repeated: int = 0
    disordered: int = 0


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """Clean readings of one sensor: strictly rising times, finite values.

    Attributes:
        asked_us: Median time between readings, those that failed among them; ``None`` where
            none failed, or fewer than two have a time.
    """

    t_us: tuple[float, ...]
    values: tuple[float, ...]
    dropped: Dropped = Dropped()
    asked_us: float | None = None

    @property
    def pace_us(self) -> float | None:
        """Median time between readings, whether they told anything or not; ``None`` for fewer than two."""
        return self.spacing_us if self.asked_us is None else self.asked_us

    @property
    def spacing_us(self) -> float | None:
        """Median time between readings; ``None`` for fewer than two."""
        return _spacing_us(self.t_us)

    @property
    def quick_spacing_us(self) -> float | None:
        """Time between readings that one in ten undercuts; ``None`` for fewer than two."""
        steps = sorted(b - a for a, b in pairwise(self.t_us))
        return steps[len(steps) // 10] if steps else None

    def moves(self) -> Series:
        """Return the first reading and those that differ from the one before.

        A sensor polled faster than it updates repeats itself; what is left are
        its own updates, each at the time it was first seen.
        """
        rows = zip(self.t_us, self.values, (None, *self.values), strict=False)
        kept = [(t, v) for t, v, old in rows if v != old]
        return Series(t_us=tuple(t for t, _ in kept), values=tuple(v for _, v in kept))

    def held(self, gap_us: float, shift_us: float = 0.0) -> Stretches:
        """Return power samples held until the next one, but never longer than ``gap_us``.

        Args:
            gap_us: Longest time a sample stands for.
            shift_us: How long ago a sample was true when it was read.
        """
        ends = [min(b, a + gap_us) for a, b in pairwise(self.t_us)]
        ends += [t + gap_us for t in self.t_us[-1:]]
        rows = [
            (a - shift_us, b - shift_us, w * (b - a) / US_PER_S)
            for w, a, b in zip(self.values, self.t_us, ends, strict=True)
        ]
        # What rounding leaves without a length tells nothing.
        kept = [row for row in rows if row[0] < row[1]]
        starts_us, ends_us, joules = (tuple(row[k] for row in kept) for k in range(3))
        return Stretches(starts_us, ends_us, joules)


def clean(t_us: Iterable[float], values: Iterable[float | None]) -> Series:
    """Return the readings sorted, without the failed and the repeated ones.

    Args:
        t_us: Times in microseconds.
        values: One value a time; ``None`` or a non-finite number for a failed reading.

    Raises:
        ValueError: If there are not as many values as times.
    """
    times, told = list(t_us), list(values)
    if len(times) != len(told):
        told_words, time_words = counted(len(told), "value"), counted(len(times), "time")
        raise ValueError(f"there must be as many values as times: {told_words}, {time_words}")
    pairs = list(zip(times, told, strict=True))
    good = [(t, v) for t, v in pairs if v is not None and math.isfinite(v) and abs(t) <= MOST_US]
    disordered = sum(b[0] < a[0] for a, b in pairwise(good))
    latest = dict(sorted(good, key=lambda pair: pair[0]) if disordered else good)
    failed = len(pairs) - len(good)
    asked = sorted({t for t, _ in pairs if t is not None and abs(t) <= MOST_US}) if failed else []
    return Series(
        t_us=tuple(latest),
        values=tuple(latest.values()),
        dropped=Dropped(failed=failed, repeated=len(good) - len(latest), disordered=disordered),
        asked_us=_spacing_us(asked),
    )


def _spacing_us(t_us: Sequence[float]) -> float | None:
    from statistics import median  # 4 ms of every start that no power is read in

    return median(b - a for a, b in pairwise(t_us)) if len(t_us) > 1 else None


def faults(dropped: Dropped) -> list[Finding]:
    """Return a Finding for each kind of reading that had to be left out or moved."""
    found = []
    if dropped.failed:
        found.append(
            Finding(
                code="CL125",
                severity="warning",
                message=f"{counted(dropped.failed, 'reading')} failed and left out, not counted as zero",
            )
        )
    if dropped.repeated or dropped.disordered:
        found.append(
            Finding(
                code="CL126",
                severity="warning",
                message=f"{counted(dropped.repeated, 'reading shares', 'readings share')}"
                f" a time with another one and "
                f"{dropped.disordered} out of order",
                mend="integrate each host's and each device's readings by themselves",
            )
        )
    return found
