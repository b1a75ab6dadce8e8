"""Steps between rows that are longer, or shorter, each second, each eighth, each nth time.

Several GPUs that are read one after the other and then left alone leave such steps, one GPU's loop
none. What is looked at is where the longest steps stand, not how long they are: a log that stood
still for a minute, or one whose steps differ by a fifth, changes little of that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from carbonlens.importers.contract import Array

    Order = npt.NDArray[np.int64]

MOST_GPUS: Final = 64
FEWEST: Final = 5
"""Bursts from which rows that come several at a time are no mishap."""

_LONGER: Final = 1.2
"""How many times as long as the others steps of one place are at least."""

_QUICK_US: Final = 25_000.0
_LATE: Final = 1.6
"""How many times as long at least where the others are longer than that: a driver that is busy once in each
step of the work answers 30 or 60 ms late, which is a part of an everyday loop's step."""

_ROUNDED: Final = 1.5
"""By how many units of the stamps they are longer: steps of one loop differ by one, by rounding."""

TICK_US: Final = 15_625.0
"""What a coarse clock goes on by at a time: 1/64 s."""

_ON_TICKS: Final = 0.95
"""How much stamps agree, of 1, where they are ticks of such a clock and rounded."""

_SLOWEST_US: Final = 1_000_000.0
"""Longest step between GPUs that are read one after the other: no driver takes longer over one."""

_SURE: Final = 6.0
"""Natural logarithm of how many times there were fewer chances than it would take, were there no period."""

_SURER: Final = 14.0
"""The same of a part of the rows: there are many."""

_SURE_OF_FEW: Final = 2.0
"""The same of a short log where nine tenths of the steps are longer than nine tenths of the others."""

_FEW: Final = 256
_WIDTHS: Final = (1024, 256)
"""Rows that are looked at together, beside all of them: a GPU may join, and a row may be lost."""

_LOOK_AT: Final = 4096
"""Rows of which all are looked at; of more of them as many as the widest at a time, twice as far apart."""

_OTHER_SHARE: Final = 0.75 / MOST_GPUS
"""Share of steps that is unlike the middle one at least where there is a period."""


class Period(msgspec.Struct, frozen=True):
    """How steps come back.

    Attributes:
        size: Rows after which they do.
        short_us: Microseconds of a step within a burst of them.
        long_us: Of the step to the next burst.
    """

    size: int
    short_us: float
    long_us: float


def period_of(t_us: Array, told_in_us: float) -> Period | None:
    """Return the period that steps between rows have; ``None`` where they have none.

    Args:
        t_us: Times of the rows.
        told_in_us: Microseconds that times are told in.
    """
    if len(t_us) <= 2 * FEWEST:
        return None
    for part in _parts(t_us):
        found = _period_of_part(part, told_in_us, _SURE if len(part) == len(t_us) else _SURER)
        if found is not None:
            return found
    return None


def _may_have_one(steps: Array, told_in_us: float) -> bool:
    """Whether enough steps differ from the middle one."""
    import numpy as np

    middle = float(np.partition(steps, len(steps) // 2)[len(steps) // 2])
    # Where half of them are long, the middle one may be either.
    far = (steps > max(_LONGER * middle, middle + told_in_us)) | (steps * _LONGER < middle)
    return int(np.count_nonzero(far)) >= _OTHER_SHARE * len(steps)


def _parts(t_us: Array) -> Iterator[Array]:
    """Yield the rows that are looked at together."""
    if len(t_us) <= _LOOK_AT + 1:
        yield t_us
        for width in _WIDTHS:
            if len(t_us) > width + 1:
                yield from (t_us[at : at + width + 1] for at in range(0, len(t_us) - width - 1, width))
                yield t_us[-width - 1 :]
        return
    width = _WIDTHS[0]
    yield from (t_us[at : at + width + 1] for at in range(0, len(t_us) - width - 1, 2 * _LOOK_AT))
    yield from (t_us[-width - 1 :] for width in _WIDTHS)


def _period_of_part(t_us: Array, told_in_us: float, sure: float) -> Period | None:
    """Return the period of rows that are looked at together."""
    import numpy as np

    steps = np.abs(np.diff(t_us))
    if not _may_have_one(steps, told_in_us):
        return None
    most = min(MOST_GPUS, len(steps) // FEWEST)
    chances = math.log(max(most * (most + 1) // 2 - 1, 1))
    order = np.argsort(steps, kind="stable")
    least = chances + (_SURE_OF_FEW if len(steps) < _FEW else sure)
    places = [_likeliest(order, size, least) for size in range(2, most + 1)]
    likely = sorted((p for p in places if p[0] >= least), reverse=True)
    apart_us = max(_ROUNDED * told_in_us, (TICK_US + told_in_us) * are_ticks(t_us)) if likely else 0.0
    for sureness, size, place in likely:
        is_there = np.arange(len(steps)) % size == place
        long, short = steps[is_there], steps[~is_there]
        long_us, short_us = float(np.median(long)), float(np.median(short))
        longer = _LONGER if short_us <= _QUICK_US else _LATE
        if not longer * short_us <= long_us >= short_us + apart_us or short_us > _SLOWEST_US:
            continue
        is_clear = float(np.quantile(long, 0.1)) >= _LONGER * float(np.quantile(short, 0.9))
        if sureness >= chances + sure or is_clear:
            return Period(size, short_us, long_us)
    return None


def _likeliest(order: Order, size: int, least: float) -> tuple[float, int, int]:
    """Return how surely one place of a size has longer steps than by chance, with the size and the place.

    As many of the longest steps are looked at as there are bursts, and twice as many, if some are longer by
    mishap.

    Args:
        order: The steps, the longest last.
        size: The size.
        least: How surely it must be.
    """
    import numpy as np

    bursts = len(order) // size
    taken = bursts if size == 2 else 2 * bursts
    places = order[-taken:] % size
    counts = np.bincount(places, minlength=size)
    place = int(counts.argmax())
    count = int(counts[place])
    best = _sureness(count, taken, size), size, place
    if taken > bursts and _sureness(min(count, bursts), bursts, size) >= least:
        counts = np.bincount(places[-bursts:], minlength=size)
        place = int(counts.argmax())
        best = max(best, (_sureness(int(counts[place]), bursts, size), size, place))
    return best


def _sureness(count: int, taken: int, size: int) -> float:
    """Return the negative logarithm of Chernoff's bound of the chance that as many stand at one place.

    One in ``size`` does by chance.
    """
    share = count / taken
    told = share * math.log(share * size)
    if share < 1:
        told += (1 - share) * math.log((1 - share) * size / (size - 1))
    return taken * told


def are_ticks(t_us: Array) -> bool:
    """Tell whether stamps are those of a coarse clock: steps of one loop then differ by a tick.

    Eight ticks are a whole number of milliseconds: stamps that are all as far apart may be of any clock.

    Args:
        t_us: The stamps.
    """
    return _agreement(t_us, TICK_US) >= _ON_TICKS > _agreement(t_us, 8 * TICK_US)


def _agreement(t_us: Array, turn_us: float) -> float:
    """Return how much the places of stamps within a turn agree, of 1."""
    import numpy as np

    return float(abs(np.exp(2j * np.pi * np.mod(t_us, turn_us) / turn_us).mean()))
