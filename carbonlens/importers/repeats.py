"""Parts of a log that are in it twice, known across blocks by a compact memory of what was told.

A part repeats earlier ones where nearly all of its samples have the time and the value of one of
theirs. What it tells beside that counts: at times of which nothing was told. Where less repeats,
those alone are left out that do for sure (``repeats_proof``), and what is new goes where it counts
once (``repeats_rest``). One power all the time is told alike by a copy and by a clock that was set
back, unless its times are uneven or it is an earlier part from its begin to its end: then nobody
can tell, and it is left out, and said.

Samples of about a thousand steps have one sum of hashes of their times and values: equal samples
have equal sums, in whatever blocks they come. So a repetition of millions of samples is found
with some bytes a thousand of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.units import US_PER_S
from carbonlens.importers.repeats_proof import SAME_SHARE, Near, Part, hashes, is_no_chance, proof
from carbonlens.importers.repeats_proof import match as _match
from carbonlens.importers.repeats_rest import MEMORY, NOBODY, Told, fill, parted, rest

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from carbonlens.importers.contract import Array
    from carbonlens.importers.repeats_proof import Mask
    from carbonlens.importers.repeats_rest import Owners

    Whole = npt.NDArray[np.int64]

__all__ = ["BUCKET", "SAME_SHARE", "Part", "Repeats", "origins_of"]

BUCKET: Final = 1024
"""Steps of a channel that have one sum."""

_MOST_BUCKETS: Final = 1 << 16
"""Sums of one channel; of more, neighbours are joined: some 20 MB at most, however long a log is.

Where the clock is set back to one time again and again, several stand at one place: the oldest of twice
as many are forgotten.
"""

_MOST_PARTS, _MOST_MOVED = 16, 1 << 20
"""Stretches that are kept as they are when they were put into an earlier part, and their samples: 16 MiB."""

_FEWEST_BUCKETS: Final = 3
"""The first and the last of some are seldom whole."""


class _Known(msgspec.Struct, frozen=True):
    """What of samples repeats earlier ones.

    Attributes:
        gone: Those that do.
        owners: Of each the earlier part that has it, where each is known for sure by itself.
    """

    gone: Mask
    owners: Owners | None = None


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
    _, first, of = np.unique(hashes(t_us, values), return_index=True, return_inverse=True)
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
        added: Samples beside some that do, at times that were told before: those count.
    """

    def __init__(self) -> None:
        """Start with nothing told."""
        self.count = self.other = self.unclear = self.added = 0
        self.seconds = self.sum_w = 0.0
        self._earlier_us = -math.inf
        """How far the log told before the clock went back last."""
        self._reach_us = -math.inf
        self._earlier: Told | None = None
        """The latest sample that told anything before the clock went back last."""
        self._latest: Told | None = None
        self._is_repeating = False
        self._is_proven = False
        """Whether samples of the part that goes on repeat others, each known by itself."""
        self._is_sure = True
        """Whether that the part before repeats can be no chance."""
        self._memory = _Memory()
        self._moved: list[Part] = []
        """What was new in a part and was put into others: a later part may repeat it."""
        self._free = -1

    def take(self, part: Part, near: Near, *, is_back: bool, is_carried: bool, is_last: bool) -> Part | None:
        """Return what of a part is new; ``None`` where nothing of it is.

        Args:
            part: Samples with rising times, but for late lines.
            near: Earlier parts that are at hand as they are, and may have a sample of it; what fills a gap
                of one is put into it, and what is new beside one that is no longer at hand is put beside
                them, under a number below 0.
            is_back: Whether the clock went back before it, or the log began anew.
            is_carried: Whether its first sample was the last of the part before.
            is_last: Whether only parts follow that this one is near to: it need not be remembered.
        """
        t_us, values = part
        inside = t_us <= self._earlier_until(is_back=is_back)
        known = self._known(part, near, is_back=is_back, is_carried=is_carried, is_last=is_last)
        if known is None:
            return part
        if known.owners is not None:
            new, others = parted(part, known.owners, near, self._earlier, self._free)
            self._free = min([self._free, *(n - 1 for n in near)])
            self._moved = [*self._moved, *others]
            while len(self._moved) > _MOST_PARTS or sum(len(t) for t, _ in self._moved) > _MOST_MOVED:
                del self._moved[0]
            return new
        fill((t_us[inside & ~known.gone], values[inside & ~known.gone]), near)
        return rest(part, inside, self._earlier)

    def _earlier_until(self, *, is_back: bool) -> float:
        return max(self._earlier_us, self._reach_us) if is_back else self._earlier_us

    def repeated(
        self, part: Part, near: Near, *, is_back: bool, is_carried: bool, is_last: bool
    ) -> Mask | None:
        """Return which samples of a part repeat earlier ones, of arguments as of ``take``; or ``None``."""
        known = self._known(part, near, is_back=is_back, is_carried=is_carried, is_last=is_last)
        return None if known is None else known.gone

    def _known(
        self, part: Part, near: Near, *, is_back: bool, is_carried: bool, is_last: bool
    ) -> _Known | None:
        import numpy as np

        t_us, values = part
        if is_back:
            self._earlier_us, self._earlier = self._earlier_until(is_back=True), self._latest
            self._is_repeating = self._is_proven = False
        self._reach(t_us, values)
        inside: Mask = t_us <= self._earlier_us
        if inside.any():
            counts = np.isfinite(values)
            counts[0] &= not is_carried  # it was counted with the part before, whatever that was
            samples = t_us[inside], values[inside]
            known = self._knows(samples, near, counts=counts[inside], is_whole=bool(inside.all()))
            has_proof = known is not None and known.owners is not None
            if known is not None and not has_proof:
                self._is_repeating = bool(known.gone.any())
            self._is_proven = self._is_proven or has_proof
            if has_proof or self._is_repeating:
                gone = inside.copy()
                gone[inside] = known.gone if known is not None else True
                if known is None and not self._is_sure:
                    self.unclear += int(counts[inside].sum())
                self._count(t_us, values, gone, counts=counts)
                if not is_last:
                    self._memory.add(t_us[~gone], values[~gone], goes_on=True)
                owners = np.full(len(t_us), NOBODY)
                if known is None or known.owners is None:
                    return _Known(gone)
                owners[inside] = known.owners
                return _Known(gone, owners)
            if self._is_proven:
                self.added += int((self._memory.tells(samples[0]) & counts[inside]).sum())
        if not is_last:
            first = int(is_carried)
            self._memory.add(t_us[first:], values[first:], goes_on=not is_back)
        return None

    def _reach(self, t_us: Array, values: Array) -> None:
        """Note the latest time, and the latest sample that tells anything."""
        import numpy as np

        is_told = np.isfinite(t_us)
        if is_told.any():
            self._reach_us = max(self._reach_us, float(t_us[is_told].max()))
        good = np.flatnonzero(is_told & np.isfinite(values))
        if len(good):
            last = good[int(np.argmax(t_us[good]))]
            if self._latest is None or t_us[last] > self._latest[0]:
                self._latest = float(t_us[last]), float(values[last])

    def _knows(self, samples: Part, near: Near, *, counts: Mask, is_whole: bool) -> _Known | None:
        """Return which samples repeat earlier ones; ``None`` where nothing at hand tells.

        Nearly all do where nearly all of them stand in parts and buckets that are known: beside a part
        that is there twice there may be what the log tells for the first time. Else those do that are
        known by themselves.
        """
        import numpy as np

        t_us, values = samples
        found = [_match(t_us, values, earlier, is_whole=is_whole) for earlier in near.values()]
        matches = [m for m in found if m is not None]
        bucket = self._memory.known(t_us, values)
        none = np.zeros(len(t_us), dtype=bool)
        known = none if bucket is None else bucket
        seen = np.logical_or.reduce([known, *(m.within for m in matches)])
        is_near = bucket is None or not bucket.any()
        if seen.mean() < SAME_SHARE or (is_near and (counts & ~seen).any()):
            proven = self._proven(samples, near, counts=counts)
            if proven is not None or (bucket is None and not matches):
                return proven
            if seen.mean() < SAME_SHARE:
                return _Known(none)
        told = np.logical_or.reduce([known, *(m.told for m in matches)])
        same = np.logical_or.reduce([known, *(m.same for m in matches)])
        # A sum tells of no sample by itself: which of one that differs is new, nobody can tell.
        gone: Mask = told | ~seen
        self._is_sure = bool(known.any()) or any(m.is_sure for m in matches)
        other = told & ~same & counts
        self.other += int(other.sum())
        self.unclear += int((counts & ~other & (~seen if self._is_sure else gone)).sum())
        return _Known(gone)

    def _proven(self, samples: Part, near: Near, *, counts: Mask) -> _Known | None:
        """Return which samples are each known to repeat one; ``None`` where none is."""
        import numpy as np

        t_us, values = samples
        owners = np.full(len(t_us), NOBODY)
        again = np.zeros(len(t_us), dtype=bool)
        for number, earlier in near.items():
            of = proof(t_us, values, earlier)
            if of is not None:
                owners[(owners == NOBODY) & of.same] = number
                again |= of.told
        remembered = self._memory.proven(t_us, values)
        for moved in self._moved:
            of = proof(t_us, values, moved)
            remembered |= of.same if of is not None else False
        remembered &= owners == NOBODY
        if remembered.any():
            owners[remembered] = MEMORY
            again |= self._memory.tells(t_us)
        gone = owners != NOBODY
        if not gone.any():
            return None
        self.added += int((again & ~gone & counts).sum())
        return _Known(gone, owners)

    def _count(self, t_us: Array, values: Array, gone: Mask, *, counts: Mask) -> None:
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
        if self.added:
            told = counted(self.added, "sample stands", "samples stand")
            text = f"{name}: {told} at times that were told before, beside some that repeat; added up"
            mend = "give each stretch of time once"
            yield Finding(code="CL243", severity="warning", message=text, file=file, mend=mend)


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

    def known(self, t_us: Array, values: Array) -> Mask | None:
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
        found: Mask = np.isin(self._places(t_us), places)
        return found

    def proven(self, t_us: Array, values: Array) -> Mask:
        """Return which samples stand in buckets that are known as they are, many enough to be no chance."""
        import numpy as np

        every = self._buckets(t_us, values)
        gone = np.zeros(len(t_us), dtype=bool)
        are_known = np.array([(total, count) in self._sums.get(place, ()) for place, total, count in every])
        edges = np.flatnonzero(np.diff(are_known, prepend=False, append=False)).tolist() if every else []
        at = np.searchsorted([place for place, _, _ in every], self._places(t_us)) if edges else gone
        for first, end in zip(edges[::2], edges[1::2], strict=True):
            same = (at >= first) & (at < end) & np.isfinite(t_us)
            if is_no_chance(t_us, values, same[1:] & same[:-1]):
                gone |= same
        return gone

    def tells(self, t_us: Array) -> Mask:
        """Return which times stand in a bucket that something was told of."""
        import numpy as np

        if not self._width_us:
            return np.zeros(len(t_us), dtype=bool)
        found: Mask = np.isin(self._places(t_us), list(self._sums))
        return found

    def _buckets(self, t_us: Array, values: Array) -> list[tuple[int, int, int]]:
        """Return place, sum of hashes and number of the samples of each bucket, by time."""
        import numpy as np

        finite = np.isfinite(t_us)
        if not self._width_us or not finite.any():
            return []
        places = self._places(t_us[finite])
        found_hashes = hashes(t_us[finite], values[finite])
        order = np.argsort(places, kind="stable")
        found, first, counts = np.unique(places[order], return_index=True, return_counts=True)
        sums = np.add.reduceat(found_hashes[order], first)
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
