"""What a part of a log tells beside the samples of it that repeat earlier ones.

Each stretch of it goes where its energy is counted to the next sample and no further: into the earlier
part in or at whose time it stands, or by itself, with the sample that was told before it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import msgspec

from carbonlens.importers.repeats_proof import within
from carbonlens.signals.sensor import GAP_PERIODS

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from carbonlens.importers.contract import Array
    from carbonlens.importers.repeats_proof import Mask, Near, Part

    Owners = npt.NDArray[np.int64]

Told = tuple[float, float]
"""Time and value of a sample."""

NOBODY: Final = 1 << 60
"""In place of the number of an earlier part: none has the sample."""

MEMORY: Final = NOBODY + 1
"""One that is no longer at hand has it."""


_FEWEST: Final = 3
"""Samples from which one far away does not change the median step."""


class _Stretch(msgspec.Struct, frozen=True):
    """Samples, by time, that no earlier part has.

    Attributes:
        part: The samples.
        before, after: The samples beside them that earlier parts have.
        follows, leads: The parts that have those; ``NOBODY`` where there is none.
    """

    part: Part
    before: Told | None
    after: Told | None
    follows: int
    leads: int


def fill(part: Part, near: Near) -> None:
    """Put samples into those earlier parts in whose time they stand: what those lacked."""
    t_us, values = part
    for number, earlier in near.items():
        if not len(t_us):
            return
        inside = within(t_us, earlier[0])
        near[number] = _union(earlier, (t_us[inside], values[inside]))
        t_us, values = t_us[~inside], values[~inside]


def rest(part: Part, inside: Mask, latest: Told | None) -> Part | None:
    """Return the samples beyond the repeated ones, from what was told last before them.

    Args:
        part: The samples.
        inside: Which of them stand in time that was told of.
        latest: The latest sample that was told in that time, by whatever part.
    """
    import numpy as np

    t_us, values = part
    beyond = t_us[~inside], values[~inside]
    good = np.flatnonzero(inside & np.isfinite(values))
    if not len(beyond[0]) or not len(good):
        return beyond if len(beyond[0]) else None
    last = good[int(np.argmax(t_us[good]))]
    return _beside(beyond, _later((float(t_us[last]), float(values[last])), latest), None, _held_us(t_us))


def parted(
    part: Part, owners: Owners, near: Near, latest: Told | None, free: int
) -> tuple[Part | None, list[Part]]:
    """Return of what no earlier part has the stretch that stands by itself, if any, and the others.

    What stands in the time of an earlier part is put into it. Of several stretches that stand by
    themselves the longest is returned, and the others are put where they adjoin.

    Args:
        part: The samples.
        owners: Of each the earlier part that has it, or ``NOBODY``.
        near: The earlier parts.
        latest: The latest sample that was told before the part, by whatever part.
        free: A number below that no part has, nor any below it: for what adjoins none at hand.
    """
    held_us = _held_us(part[0])
    found = [(s, _host(s, near)) for s in _stretches(part, owners)]
    alone = [s for s, host in found if host is None]
    first = max(alone, key=lambda s: len(s.part[0]), default=None)
    others: list[Part] = []
    for stretch, host in found:
        if stretch is first:
            continue
        others.append(stretch.part)
        adjoins = [n for n in (stretch.follows, stretch.leads) if n in near]
        whole = stretch.part if host is not None else _whole(stretch, near, latest, held_us)
        at = host if host is not None else adjoins[0] if adjoins else free
        near[at] = _union(near[at], whole) if at in near else whole
        free = min(free, at - 1)
    return None if first is None else _whole(first, near, latest, held_us), others


def _stretches(part: Part, owners: Owners) -> list[_Stretch]:
    import numpy as np

    order = np.argsort(part[0], kind="stable")
    t_us, values, owners = part[0][order], part[1][order], owners[order]
    edges = np.flatnonzero(np.diff(owners == NOBODY, prepend=False, append=False)).tolist()
    found: list[_Stretch] = []
    for first, end in zip(edges[::2], edges[1::2], strict=True):
        of = [int(owners[n]) if 0 <= n < len(owners) else NOBODY for n in (first - 1, end)]
        before, after = (
            None if number == NOBODY else (float(t_us[n]), float(values[n]))
            for n, number in zip((first - 1, end), of, strict=True)
        )
        found.append(_Stretch((t_us[first:end], values[first:end]), before, after, *of))
    return found


def _host(stretch: _Stretch, near: Near) -> int | None:
    """Return the part in whose time a stretch stands; ``None`` where it stands by itself."""
    import numpy as np

    t_us = stretch.part[0]
    for number in (stretch.follows, stretch.leads):
        if number in near:
            earlier_us = near[number][0]
            if t_us[0] <= np.nanmax(earlier_us) and np.nanmax(t_us) >= np.nanmin(earlier_us):
                return number
    return None


def _whole(stretch: _Stretch, near: Near, latest: Told | None, held_us: float) -> Part:
    """Return a stretch with what was told last before it and first after it."""
    import numpy as np

    t_us = stretch.part[0]
    first_us, last_us = float(t_us[0]), float(np.nanmax(t_us))
    before, after = stretch.before, stretch.after
    if before is not None:
        told = [*_good(near.get(stretch.follows)), *([] if latest is None else [latest])]
        before = max([before, *(one for one in told if one[0] <= first_us)])
    if after is not None:
        after = min([after, *(one for one in _good(near.get(stretch.leads)) if one[0] >= last_us)])
    return _beside(stretch.part, before, after, held_us)


def _good(part: Part | None) -> list[Told]:
    """Return the first and the last sample of a part that tell anything."""
    import numpy as np

    good = np.flatnonzero(np.isfinite(part[0]) & np.isfinite(part[1])) if part is not None else ()
    if part is None or not len(good):
        return []
    ends = (good[int(np.argmin(part[0][good]))], good[int(np.argmax(part[0][good]))])
    return [(float(part[0][n]), float(part[1][n])) for n in ends]


def _held_us(t_us: Array) -> float:
    """Return how long a part's samples are held for."""
    import numpy as np

    steps = np.diff(t_us)
    rising = steps[steps > 0]
    return GAP_PERIODS * float(np.median(rising)) if len(rising) else 0.0


def _beside(part: Part, before: Told | None, after: Told | None, held_us: float) -> Part:
    """Return samples with those told beside them, so that each is held to the next one.

    Beside a few samples one far away would be taken for the usual step.
    """
    import numpy as np

    t_us, values = part
    far_us = math.inf if len(t_us) >= _FEWEST else held_us
    told = [
        [one] if one is not None and away <= far_us else []
        for one, away in (
            (before, t_us[0] - before[0] if before else 0.0),
            (after, after[0] - np.nanmax(t_us) if after else 0.0),
        )
    ]
    first, last = ([[one[n] for one in some] for n in (0, 1)] for some in told)
    return np.concatenate([first[0], t_us, last[0]]), np.concatenate([first[1], values, last[1]])


def _later(one: Told, other: Told | None) -> Told:
    return other if other is not None and other[0] > one[0] else one


def _union(one: Part, other: Part) -> Part:
    """Return the samples of both, by time; one that stands in both is there once."""
    import numpy as np

    at = np.searchsorted(one[0], other[0])
    at = np.minimum(at, len(one[0]) - 1)
    is_new = (one[0][at] != other[0]) | (one[1][at] != other[1])
    t_us = np.concatenate([one[0], other[0][is_new]])
    order = np.argsort(t_us, kind="stable")
    return t_us[order], np.concatenate([one[1], other[1][is_new]])[order]
