"""What tells that samples repeat those of an earlier part of a log: their times and their values."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Final

import msgspec

from carbonlens.signals.sensor import GAP_PERIODS

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from carbonlens.importers.contract import Array

    Mask = npt.NDArray[np.bool_]
    Sums = npt.NDArray[np.uint64]

SAME_SHARE: Final = 0.9
"""Share of samples with equal time and value from which a part repeats an earlier one."""

_UNEVEN_SHARE: Final = 0.1
"""Share of steps that differ from the usual one from which equal times are no chance."""

_ROUNDING_US: Final = 1.0
"""By what computed times differ that are even."""

_FEWEST_CHANGES: Final = 8
"""Changes of the value between neighbours from which a few equal samples of a part are no chance."""

_FEWEST_STEPS: Final = 3
"""Kinds of uneven steps from which times are no even ones that were rounded."""

Part = tuple["Array", "Array"]
"""Times and values, in the order of the file."""

Near = MutableMapping[int, Part]
"""Earlier parts that are at hand as they are, by their number."""


class Match(msgspec.Struct, frozen=True):
    """What of a part an earlier one tells.

    Attributes:
        within: Samples that stand in its time.
        told: Those whose time is one of its.
        same: Those that have its value, too.
        is_sure: Whether that they are the same can be no chance.
    """

    within: Mask
    told: Mask
    same: Mask
    is_sure: bool


class Proof(msgspec.Struct, frozen=True):
    """Which samples of a part stand in an earlier one too, for sure.

    Attributes:
        told: Those whose time is one of its.
        same: Those that have its value, too: they repeat it.
    """

    told: Mask
    same: Mask


def hashes(t_us: Array, values: Array) -> Sums:
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


def within(t_us: Array, earlier_us: Array) -> Mask:
    """Return which times stand in the time of others."""
    import numpy as np

    found: Mask = (t_us >= np.nanmin(earlier_us)) & (t_us <= np.nanmax(earlier_us))
    return found


def match(t_us: Array, values: Array, part: Part, *, is_whole: bool) -> Match | None:
    """Return what of samples an earlier part tells, where those that stand in its time are of it.

    One power all the time tells nothing, unless it is a whole part (``is_whole``) that would repeat.
    """
    import numpy as np

    earlier_us, earlier = part
    stands = within(t_us, earlier_us)
    is_whole = is_whole and bool(stands.all())
    t, v = t_us[stands], values[stands]
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
    full[:, stands] = told, same
    return Match(within=stands, told=full[0], same=full[1], is_sure=is_sure or is_uneven or is_all)


def proof(t_us: Array, values: Array, part: Part) -> Proof | None:
    """Return which samples repeat those of an earlier part for sure, be they ever so few of them.

    Nearly all that stand in the time of which it tells must: what stands in a gap of it, or before or
    after it, is told for the first time, and says nothing against it.
    """
    import numpy as np

    earlier_us, earlier = part
    order = np.argsort(earlier_us, kind="stable")[: int(np.isfinite(earlier_us).sum())]
    if not len(order):
        return None
    earlier_us, earlier = earlier_us[order], earlier[order]
    places = np.searchsorted(earlier_us, t_us)
    at = np.minimum(places, len(order) - 1)
    told: Mask = earlier_us[at] == t_us
    beside = earlier[at]
    same: Mask = told & ((beside == values) | (np.isnan(beside) & np.isnan(values)))
    steps = np.diff(earlier_us, append=np.inf)
    rising = steps[(steps > 0) & np.isfinite(steps)]
    held_us = GAP_PERIODS * float(np.median(rising)) if len(rising) else 0.0
    in_time = told | ((places > 0) & (steps[places - 1] <= held_us))
    if not same.any() or same[in_time].mean() < SAME_SHARE:
        return None
    changes = _changes(values) | _changes(beside)
    changes &= told[1:] & told[:-1]
    if changes.any() and same[1:][changes].mean() < SAME_SHARE:
        return None
    pairs = same[1:] & same[:-1] & (np.diff(at) == 1)
    return Proof(told=told, same=same) if is_no_chance(t_us, values, pairs) else None


def is_no_chance(t_us: Array, values: Array, pairs: Mask) -> bool:
    """Whether that samples are the same as others can be no chance: values change, or times are uneven.

    Args:
        t_us: Times of the samples.
        values: Their values.
        pairs: Which of them and the one after it are the same as two others that follow one another.
    """
    import numpy as np

    if int((_changes(values) & pairs).sum()) >= _FEWEST_CHANGES:
        return True
    steps = np.diff(t_us)[pairs]
    if not len(steps):
        return False
    uneven = steps[np.abs(steps - np.median(steps)) > _ROUNDING_US]
    kinds = np.unique(np.round(uneven))
    return len(uneven) >= _UNEVEN_SHARE * len(steps) and len(kinds) >= _FEWEST_STEPS


def _changes(values: Array) -> Mask:
    """Return after which values another one follows; one that failed tells of no change."""
    import numpy as np

    steps = np.diff(values)
    found: Mask = np.isfinite(steps) & (steps != 0)
    return found
