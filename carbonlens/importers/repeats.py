"""Parts of a log that are in it twice, known across blocks by a compact memory of what was told.

A part repeats earlier ones where nearly all of its samples have the time and the value of one of
theirs. What it tells beside that counts: at times of which nothing was told. One power all the
time is told alike by a copy and by a clock that was set back, unless its times are uneven or it is
an earlier part from its begin to its end: then nobody can tell, and it is left out, and said.

Samples of about a thousand steps have one sum of hashes of their times and values: equal samples
have equal sums, in whatever blocks they come. So a repetition of millions of samples is found
with some bytes a thousand of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
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
"""Sums of one channel; of more, neighbours are joined: some 20 MB at most, however long a log is.

Where the clock is set back to one time again and again, several stand at one place: the oldest of twice
as many are forgotten.
"""

_FEWEST_BUCKETS: Final = 3
"""The first and the last of some are seldom whole."""

SAME_SHARE: Final = 0.9
"""Share of samples with equal time and value from which a part repeats an earlier one."""

_UNEVEN_SHARE: Final = 0.1
"""Share of steps that differ from the usual one from which equal times are no chance."""

_ROUNDING_US: Final = 1.0
"""By what computed times differ that are even."""

Part = tuple["Array", "Array"]
"""Times and values, in the order of the file."""

Near = MutableMapping[int, Part]
"""Earlier parts that are at hand as they are, by their number."""


class _Match(msgspec.Struct, frozen=True):
    """What of a part an earlier one tells.

    Attributes:
        within: Samples that stand in its time.
        told: Those whose time is one of its.
        same: Those that have its value, too.
        is_sure: Whether that they are the same can be no chance.
    """

    within: npt.NDArray[np.bool_]
    told: npt.NDArray[np.bool_]
    same: npt.NDArray[np.bool_]
    is_sure: bool


def origins_of(t_us: Array, values: Array, parts: Sequence[Part]) -> list[list[int]]:
    """Return of each part the earlier ones that have a sample of it first, by their numbers.

    Args:
        t_us: Times of all parts.
        values: Their values.
        parts: The parts, one after another.
    """
    import numpy as np

    if len(parts) < 2:
        return [[] for _ in parts]
    sizes = [len(t) for t, _ in parts]
    _, first, of = np.unique(_hashes(t_us, values), return_index=True, return_inverse=True)
    origins = np.repeat(np.arange(len(parts)), sizes)[first[of]]
    ends = np.cumsum(sizes)
    found = zip(ends - sizes, ends, strict=True)
    return [[n for n in np.unique(origins[a:b]).tolist() if n < place] for place, (a, b) in enumerate(found)]


class Repeats:
    """Knows which samples of a channel repeat earlier ones.

    Attributes:
        count, seconds: Samples that do, and the time from first to last of each part of them.
        sum_w: Sum of their values.
        other: Those of them with another value than was told of their time before.
        unclear: Those of which nobody can tell that they do.
    """

    def __init__(self) -> None:
        """Start with nothing told."""
        self.count = self.other = self.unclear = 0
        self.seconds = self.sum_w = 0.0
        self._earlier_us = -math.inf
        """How far the log told before the clock went back last."""
        self._reach_us = -math.inf
        self._is_repeating = False
        self._is_sure = True
        """Whether that the part before repeats can be no chance."""
        self._memory = _Memory()

    def take(self, part: Part, near: Near, *, is_back: bool, is_carried: bool, is_last: bool) -> Part | None:
        """Return what of a part is new; ``None`` where nothing of it is.

        Args:
            part: Samples with rising times, but for late lines.
            near: Earlier parts that are at hand as they are, and may have a sample of it; what fills a gap
                of one is put into it.
            is_back: Whether the clock went back before it, or the log began anew.
            is_carried: Whether its first sample was the last of the part before.
            is_last: Whether only parts follow that this one is near to: it need not be remembered.
        """
        t_us, values = part
        inside = t_us <= self._earlier_until(is_back=is_back)
        gone = self.repeated(part, near, is_back=is_back, is_carried=is_carried, is_last=is_last)
        if gone is None:
            return part
        _fill((t_us[inside & ~gone], values[inside & ~gone]), near)
        return _rest(t_us, values, inside)

    def _earlier_until(self, *, is_back: bool) -> float:
        return max(self._earlier_us, self._reach_us) if is_back else self._earlier_us

    def repeated(
        self, part: Part, near: Near, *, is_back: bool, is_carried: bool, is_last: bool
    ) -> npt.NDArray[np.bool_] | None:
        """Return which samples of a part repeat earlier ones, of arguments as of ``take``; or ``None``."""
        import numpy as np

        t_us, values = part
        if is_back:
            self._earlier_us = self._earlier_until(is_back=True)
            self._is_repeating = False
        is_told = np.isfinite(t_us)
        finite = t_us if is_told.all() else t_us[is_told]
        self._reach_us = max(self._reach_us, float(finite.max()) if len(finite) else -math.inf)
        inside: npt.NDArray[np.bool_] = t_us <= self._earlier_us
        if inside.any():
            counts = np.isfinite(values)
            counts[0] &= not is_carried  # it was counted with the part before, whatever that was
            samples = t_us[inside], values[inside]
            known = self._knows(samples, near, counts=counts[inside], is_whole=bool(inside.all()))
            self._is_repeating = self._is_repeating if known is None else known.mean() > 0
            if self._is_repeating:
                gone = inside.copy()
                gone[inside] = known if known is not None else True
                if known is None and not self._is_sure:
                    self.unclear += int(counts[inside].sum())
                self._count(t_us, values, gone, counts=counts)
                if not is_last:
                    self._memory.add(t_us[~gone], values[~gone], goes_on=True)
                return gone
        if not is_last:
            first = int(is_carried)
            self._memory.add(t_us[first:], values[first:], goes_on=not is_back)
        return None

    def _knows(
        self, samples: Part, near: Near, *, counts: npt.NDArray[np.bool_], is_whole: bool
    ) -> npt.NDArray[np.bool_] | None:
        """Return which samples repeat earlier ones, none or most; ``None`` where nothing at hand tells.

        They do where nearly all of them stand in parts and buckets that are known: beside a part that is
        there twice there may be what the log tells for the first time.
        """
        import numpy as np

        t_us, values = samples
        found = [_match(t_us, values, earlier, is_whole=is_whole) for earlier in near.values()]
        matches = [m for m in found if m is not None]
        bucket = self._memory.known(t_us, values)
        if bucket is None and not matches:
            return None
        none = np.zeros(len(t_us), dtype=bool)
        known = none if bucket is None else bucket
        seen = np.logical_or.reduce([known, *(m.within for m in matches)])
        if seen.mean() < SAME_SHARE:
            return none
        told = np.logical_or.reduce([known, *(m.told for m in matches)])
        same = np.logical_or.reduce([known, *(m.same for m in matches)])
        # A sum tells of no sample by itself: which of one that differs is new, nobody can tell.
        gone: npt.NDArray[np.bool_] = told | ~seen
        self._is_sure = bool(known.any()) or any(m.is_sure for m in matches)
        other = told & ~same & counts
        self.other += int(other.sum())
        self.unclear += int((counts & ~other & (~seen if self._is_sure else gone)).sum())
        return gone

    def _count(
        self, t_us: Array, values: Array, gone: npt.NDArray[np.bool_], *, counts: npt.NDArray[np.bool_]
    ) -> None:
        import numpy as np

        self.seconds += float(np.ptp(t_us[gone])) / US_PER_S
        self.count += int((gone & counts).sum())
        self.sum_w += float(values[gone & counts].sum())

    def findings(self, name: str, file: str) -> Iterator[Finding]:
        """Yield what was left out.

        Args:
            name: Of the channel.
            file: Of the log.
        """
        sure = self.count - self.other - self.unclear
        if sure > 0:
            told = counted(sure, "sample repeats an earlier one", "samples repeat earlier ones")
            text = f"{name}: {told}, over {self.seconds:.6g} s; counted once"
            yield Finding(code="CL201", severity="info", message=text, file=file)
        reasons = (
            (self.other, ", with other values"),
            (self.unclear, ", and may be a copy, or of a clock that was set back"),
        )
        for count, why in reasons:
            if count:
                told = counted(count, "sample stands", "samples stand")
                text = f"{name}: {told} at times that were told before{why}; left out"
                mend = "let the tool write UTC, and give each stretch of time once"
                yield Finding(code="CL299", severity="warning", message=text, file=file, mend=mend)


def _fill(part: Part, near: Near) -> None:
    """Put samples into those earlier parts in whose time they stand: what those lacked."""
    import numpy as np

    t_us, values = part
    for number, (earlier_us, earlier) in near.items():
        if not len(t_us):
            return
        within = _within(t_us, earlier_us)
        times = np.concatenate([earlier_us, t_us[within]])
        order = np.argsort(times, kind="stable")
        near[number] = times[order], np.concatenate([earlier, values[within]])[order]
        t_us, values = t_us[~within], values[~within]


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
        self._count = 0

    def add(self, t_us: Array, values: Array, *, goes_on: bool) -> None:
        """Keep samples; those of a part that goes on are added to what its first bucket holds."""
        import numpy as np

        if not self._width_us:
            steps = np.diff(t_us)
            rising = steps[steps > 0]
            self._width_us = BUCKET * float(np.median(rising)) if len(rising) else 0.0
        found = self._buckets(t_us, values)
        for at, (place, total, count) in enumerate(found):
            held = self._sums.setdefault(place, [])
            if held and goes_on and at == 0:
                before, so_far = held[-1]
                held[-1] = ((before + total) % (1 << 64), so_far + count)
            else:
                held.append((total, count))
        while len(self._sums) > _MOST_BUCKETS:
            self._join()
        self._count += len(found)
        if self._count > 2 * _MOST_BUCKETS:
            self._forget()

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

    def _forget(self) -> None:
        """Forget the older half of the sums of each place, while there are too many."""
        self._count = sum(map(len, self._sums.values()))
        while self._count > 2 * _MOST_BUCKETS:
            for held in self._sums.values():
                del held[: len(held) // 2]
            self._count = sum(map(len, self._sums.values()))

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


def _match(t_us: Array, values: Array, part: Part, *, is_whole: bool) -> _Match | None:
    """Return what of samples an earlier part tells, where those that stand in its time are of it.

    One power all the time tells nothing, unless it is a whole part (``is_whole``) that would repeat.
    """
    import numpy as np

    earlier_us, earlier = part
    within = _within(t_us, earlier_us)
    is_whole = is_whole and bool(within.all())
    t, v = t_us[within], values[within]
    if not len(t):
        return None
    order = np.argsort(earlier_us, kind="stable")
    places = order[np.minimum(np.searchsorted(earlier_us, t, sorter=order), len(order) - 1)]
    told = earlier_us[places] == t
    same = told & ((earlier[places] == v) | (np.isnan(earlier[places]) & np.isnan(v)))
    if same.mean() < SAME_SHARE:
        return None
    changes = np.flatnonzero(np.diff(v) != 0) + 1
    is_sure = len(changes) > 0 and bool(same[changes].mean() >= SAME_SHARE)
    if not is_sure and not is_whole:
        return None
    steps = np.diff(t)
    is_uneven = len(steps) > 0 and bool(
        (np.abs(steps - np.median(steps)) > _ROUNDING_US).mean() >= _UNEVEN_SHARE
    )
    is_all = len(t) == len(earlier) and bool(same.all())
    full = np.zeros((2, len(t_us)), dtype=bool)
    full[:, within] = told, same
    return _Match(within=within, told=full[0], same=full[1], is_sure=is_sure or is_uneven or is_all)
