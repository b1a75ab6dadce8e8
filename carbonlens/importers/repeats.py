"""Parts of a log that are in it twice, known across blocks by a compact memory of what was told.

Samples of about a thousand steps have one sum of hashes of their times and values: equal samples
have equal sums, in whatever blocks they come. So a repetition of millions of samples is found
with some bytes a thousand of them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from carbonlens.domain.units import US_PER_S

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from carbonlens.importers.contract import Array

    Whole = npt.NDArray[np.int64]
    Sums = npt.NDArray[np.uint64]

BUCKET: Final = 1024
"""Steps of a channel that have one sum."""

_MOST_BUCKETS: Final = 1 << 16
"""Sums of one channel; of more, neighbours are joined: some 20 MB at most, however long a log is."""

_FEWEST_BUCKETS: Final = 3
"""The first and the last of some are seldom whole."""

SAME_SHARE: Final = 0.9
"""Share of samples with equal time and value from which a part repeats an earlier one."""

Part = tuple["Array", "Array"]
"""Times and values, in the order of the file."""


class Repeats:
    """Knows which samples of a channel repeat earlier ones.

    Attributes:
        count, seconds: Samples that do, and the time from first to last of each part of them.
        sum_w: Sum of their values.
    """

    def __init__(self) -> None:
        """Start with nothing told."""
        self.count = 0
        self.seconds = self.sum_w = 0.0
        self._earlier_us = -math.inf
        """How far the log told before the clock went back last."""
        self._reach_us = -math.inf
        self._is_repeating = False
        self._memory = _Memory()

    def take(
        self, part: Part, near: list[Part], *, is_back: bool, is_carried: bool, is_last: bool
    ) -> Part | None:
        """Return what of a part is new; ``None`` where nothing of it is.

        Args:
            part: Samples with rising times, but for late lines.
            near: Earlier parts that are at hand as they are.
            is_back: Whether the clock went back before it, or the log began anew.
            is_carried: Whether its first sample was the last of the part before.
            is_last: Whether only parts follow that this one is near to: it need not be remembered.
        """
        t_us, values = part
        inside = self.repeated(part, near, is_back=is_back, is_carried=is_carried, is_last=is_last)
        return part if inside is None else _rest(t_us, values, inside)

    def repeated(
        self, part: Part, near: list[Part], *, is_back: bool, is_carried: bool, is_last: bool
    ) -> npt.NDArray[np.bool_] | None:
        """Return which samples of a part repeat earlier ones, of arguments as of ``take``; or ``None``."""
        import numpy as np

        t_us, values = part
        if is_back:
            self._earlier_us = max(self._earlier_us, self._reach_us)
            self._is_repeating = False
        finite = t_us[np.isfinite(t_us)]
        self._reach_us = max(self._reach_us, float(finite.max()) if len(finite) else -math.inf)
        inside: npt.NDArray[np.bool_] = t_us <= self._earlier_us
        if inside.any():
            known = self._knows(t_us[inside], values[inside], near, is_whole=bool(inside.all()))
            self._is_repeating = self._is_repeating if known is None else known
            if self._is_repeating:
                self._count(t_us, values, inside, is_carried=is_carried)
                if not is_last:
                    self._memory.add(t_us[~inside], values[~inside], goes_on=True)
                return inside
        if not is_last:
            first = int(is_carried)
            self._memory.add(t_us[first:], values[first:], goes_on=not is_back)
        return None

    def _knows(self, t_us: Array, values: Array, near: list[Part], *, is_whole: bool) -> bool | None:
        """Return whether samples repeat earlier ones; ``None`` where nothing at hand tells.

        They do where nearly all of them stand in parts and buckets that are known: beside a part that is
        there twice there may be what the log tells for the first time.
        """
        import numpy as np

        matched = np.zeros(len(t_us), dtype=bool)
        for earlier_us, earlier in near:
            within = _within(t_us, earlier_us)
            if _repeats(t_us, values, earlier_us, earlier, is_whole=is_whole):
                matched |= within
        known = self._memory.known(t_us, values)
        if known is None and not matched.any():
            return None
        if known is not None:
            matched |= known
        return bool(matched.mean() >= SAME_SHARE)

    def _count(self, t_us: Array, values: Array, inside: npt.NDArray[np.bool_], *, is_carried: bool) -> None:
        import numpy as np

        self.seconds += float(np.ptp(t_us[inside])) / US_PER_S
        repeated = inside & np.isfinite(values)
        if is_carried:
            # It was counted with the part before, whatever that was.
            repeated[0] = False
        self.count += int(repeated.sum())
        self.sum_w += float(values[repeated].sum())


def _rest(t_us: Array, values: Array, inside: npt.NDArray[np.bool_]) -> Part | None:
    """Return the samples beyond the repeated ones, from the last of these on."""
    import numpy as np

    rest_t, rest = t_us[~inside], values[~inside]
    good = np.flatnonzero(inside & np.isfinite(values))
    if not len(rest_t) or not len(good):
        return (rest_t, rest) if len(rest_t) else None
    last = good[int(np.argmax(t_us[good]))]
    return np.append(t_us[last], rest_t), np.append(values[last], rest)


class _Memory:
    """Sums of hashes of samples, by the time that they stand in."""

    def __init__(self) -> None:
        self._width_us = 0.0
        self._sums: dict[int, list[tuple[int, int]]] = {}

    def add(self, t_us: Array, values: Array, *, goes_on: bool) -> None:
        """Keep samples; those of a part that goes on are added to what its first bucket holds."""
        import numpy as np

        if not self._width_us:
            steps = np.diff(t_us)
            rising = steps[steps > 0]
            self._width_us = BUCKET * float(np.median(rising)) if len(rising) else 0.0
        for at, (place, total, count) in enumerate(self._buckets(t_us, values)):
            held = self._sums.setdefault(place, [])
            if held and goes_on and at == 0:
                before, so_far = held[-1]
                held[-1] = ((before + total) % (1 << 64), so_far + count)
            else:
                held.append((total, count))
        while len(self._sums) > _MOST_BUCKETS:
            self._join()

    def known(self, t_us: Array, values: Array) -> npt.NDArray[np.bool_] | None:
        """Return which samples stand in known buckets; ``None`` where no whole bucket tells it.

        The first and the last bucket are seldom whole: they are taken for what their neighbours are.
        """
        import numpy as np

        every = self._buckets(t_us, values)
        told = values[np.isfinite(values)]
        # One power all the time is the same after a clock was set back, too.
        if len(every) < _FEWEST_BUCKETS or not len(told) or not np.ptp(told):
            return None
        are_known = [(total, count) in self._sums.get(place, ()) for place, total, count in every]
        are_known[0], are_known[-1] = are_known[1], are_known[-2]
        places = [place for (place, _, _), is_known in zip(every, are_known, strict=True) if is_known]
        found: npt.NDArray[np.bool_] = np.isin(self._places(t_us), places)
        return found

    def _buckets(self, t_us: Array, values: Array) -> list[tuple[int, int, int]]:
        """Return place, sum of hashes and number of the samples of each bucket, by time."""
        import numpy as np

        finite = np.isfinite(t_us)
        if not self._width_us or not finite.any():
            return []
        places = self._places(t_us[finite])
        hashes = _hashes(t_us[finite], values[finite])
        order = np.argsort(places, kind="stable")
        found, first, counts = np.unique(places[order], return_index=True, return_counts=True)
        sums = np.add.reduceat(hashes[order], first)
        return list(zip(found.tolist(), sums.tolist(), counts.tolist(), strict=True))

    def _places(self, t_us: Array) -> Whole:
        """Return the bucket of each time; one that is no number stands in none."""
        import numpy as np

        told = np.where(np.isfinite(t_us), t_us / self._width_us, -math.inf)
        found: Whole = np.clip(np.floor(told), -(2.0**62), 2.0**62).astype(np.int64)
        return found

    def _join(self) -> None:
        """Make buckets twice as wide."""
        joined: dict[int, list[tuple[int, int]]] = {}
        for place, sums in self._sums.items():
            held = joined.setdefault(place // 2, [])
            for at, (total, count) in enumerate(sums):
                if at < len(held):
                    held[at] = ((held[at][0] + total) % (1 << 64), held[at][1] + count)
                else:
                    held.append((total, count))
        self._sums, self._width_us = joined, 2 * self._width_us


def _hashes(t_us: Array, values: Array) -> Sums:
    """Return a hash of each sample; a reading that failed is like any other that did."""
    import numpy as np

    # Adding 0 makes one of the two zeros.
    t = np.ascontiguousarray(t_us + 0.0).view(np.uint64)
    v = np.where(np.isnan(values), np.nan, values + 0.0).view(np.uint64)
    # Mixing of splitmix64 (Steele, Lea, Flood 2014), of the time and then of both.
    mixed: Sums = _mixed(_mixed(t) ^ v)
    return mixed


def _mixed(bits: Sums) -> Sums:
    import numpy as np

    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _within(t_us: Array, earlier_us: Array) -> npt.NDArray[np.bool_]:
    """Return which times stand in the time of others."""
    import numpy as np

    found: npt.NDArray[np.bool_] = (t_us >= np.nanmin(earlier_us)) & (t_us <= np.nanmax(earlier_us))
    return found


def _repeats(t_us: Array, values: Array, earlier_us: Array, earlier: Array, *, is_whole: bool) -> bool:
    """Whether the samples that stand in the time of earlier ones are those.

    One power all the time tells nothing, unless it is a whole part (``is_whole``) that would repeat.
    """
    import numpy as np

    within = _within(t_us, earlier_us)
    is_whole = is_whole and bool(within.all())
    t, v = t_us[within], values[within]
    if not len(t):
        return False
    order = np.argsort(earlier_us, kind="stable")
    places = order[np.minimum(np.searchsorted(earlier_us, t, sorter=order), len(order) - 1)]
    same_value = (earlier[places] == v) | (np.isnan(earlier[places]) & np.isnan(v))
    same = (earlier_us[places] == t) & same_value
    if same.mean() < SAME_SHARE:
        return False
    changes = np.flatnonzero(np.diff(v) != 0) + 1
    return is_whole or (len(changes) > 0 and bool(same[changes].mean() >= SAME_SHARE))
