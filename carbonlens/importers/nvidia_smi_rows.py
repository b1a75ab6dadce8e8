"""Rows of several GPUs that no column tells apart: they come in bursts, one row a GPU.

One GPU that is read in a quick loop, whose log pauses regularly (each time a buffer of its file is
full, say), writes such bursts, too, as does one that a script reads before and after each step of its
work. Rows are of several GPUs where they are closer together than any loop's, where few of them stand
alone, or where each place of a burst has a board of its own; else nobody can tell. What a GPU draws
tells something only of rows that are closer than a script reads them: power follows the work, as it does.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from carbonlens.domain.units import US_PER_S
from carbonlens.importers.nvidia_smi_boards import (
    SEVERAL_SHARE,
    WITHIN_US,
    Burst,
    Cells,
    are_boards,
    are_of_boards,
    keep_cells,
)
from carbonlens.importers.nvidia_smi_periods import FEWEST, MOST_GPUS, TICK_US, are_ticks, period_of

if TYPE_CHECKING:
    from carbonlens.importers.contract import Array

_SMALL_SHARE: Final = 0.2
"""Steps shorter than this share of the long ones lie within a burst."""

_SLOWLY_US: Final = 25_000.0
"""The same, of a driver that takes its time over many fields."""

_HARDLY_US: Final = 200_000.0
"""The same, where some of its GPUs take longer than others."""

_FLOOR_US: Final = 500.0
"""Half of the millisecond that stamps are told in: what a step of none may be."""

_IN_A_ROW: Final = 10
"""Bursts one after another from which a GPU joined, or left."""

_QUICKEST_US: Final = 1_000.0
"""What a loop waits at least between two readings (``-lms 1``), and what stamps are told in."""

_MOST_IN_A_MACHINE: Final = 16
"""GPUs that one machine has, but for the rarest."""

_NOT_ANEW: Final = 3
"""Parts of a log that are of one size by no mishap: a loop that is started anew leaves two."""

_ALONE: Final = 20.0
"""How many times as long as between its rows it is quiet around what one call wrote quickly."""

_SLOWEST_GPU_US: Final = 90_000.0
"""How long a driver takes for one GPU at most: everyday loops wait a tenth of a second and more."""

_QUIET: Final = 4.0
"""The same, of the time that all of its rows took together."""

_REGULAR_SHARE: Final = 0.9


class Bursts(msgspec.Struct, frozen=True):
    """How rows come in bursts.

    Attributes:
        size: Rows of a burst.
        apart_us: Microseconds from which a step begins a new one.
        told: Whether they are of several GPUs, one row written several times, or nobody can tell.
    """

    size: int
    apart_us: float
    told: Literal["several", "one row", "unclear"]


class Places:
    """Tells each row's place in its burst.

    Attributes:
        is_lost: Whether a GPU joined or left: bursts are of another size than they were.
    """

    def __init__(self, bursts: Bursts) -> None:
        """Start before the first burst."""
        self.is_lost = False
        self._bursts = bursts
        self._last_us: float | None = None
        self._place = -1
        self._count = 0
        self._odd = 0

    def of(self, t_us: float) -> int:
        """Return the place of the next row; again from the first where a burst is too long."""
        last_us, self._last_us = self._last_us, t_us
        if last_us is None or abs(t_us - last_us) > self._bursts.apart_us:
            is_odd = last_us is not None and self._count != self._bursts.size
            self._odd = self._odd + 1 if is_odd else 0
            self.is_lost = self.is_lost or self._odd >= _IN_A_ROW
            self._place = self._count = 0
        else:
            self._place = (self._place + 1) % self._bursts.size
        self._count += 1
        return self._place


class Joining:
    """Looks for rows of a GPU that joined the only one.

    Its rows are much closer to the other's than the first rows were, or steps have a period.

    Args:
        times_us: Times of the first rows.
        told_in_us: What times are told in. If that is seconds, two rows of one may be of one GPU.
    """

    def __init__(self, times_us: Sequence[float], *, told_in_us: float) -> None:
        """Know how far apart the first rows were."""
        rising = sorted(later - earlier for earlier, later in pairwise(times_us) if later > earlier)
        self._apart_us = _SMALL_SHARE * rising[len(rising) // 2] if rising else None
        self._told_in_us = told_in_us

    def is_told_by(self, t_us: Array, values: Sequence[Array]) -> bool:
        """Tell whether rows after the first ones are of several GPUs, or nobody can tell that they are not.

        Args:
            t_us: Their times.
            values: Cells of each column that is read: equal ones at one time are one row written twice.
        """
        import numpy as np

        steps = np.diff(t_us)
        is_new = steps != 0
        if not is_new.all():
            for v in values:
                is_new |= (v[1:] != v[:-1]) & ~(np.isnan(v[1:]) & np.isnan(v[:-1]))
        if period_of(t_us[np.append(True, is_new)], self._told_in_us) is not None:
            return True
        if self._apart_us is None or int((np.abs(steps) <= self._apart_us).sum()) < FEWEST:
            return False
        rows = [tuple(map(str, row)) for row in zip(*(v.tolist() for v in values), strict=True)]
        found = _parted(t_us.tolist(), rows, self._apart_us)
        is_fine = self._told_in_us < US_PER_S and not are_ticks(t_us)
        return _are_mostly_several(found) if is_fine else _are_nearly_all_several(found)


def resolution_us(stamps: Sequence[str]) -> float:
    """Return the microseconds that stamps are told in: by the most digits after the point of any."""
    digits = max((len(s.partition(".")[2]) for s in stamps), default=0)
    return 10.0 ** (6 - digits)


def bursts_of(
    times_us: Sequence[float],
    rows: Sequence[Cells],
    *,
    time: int | None,
    told_in_us: float,
    lasting: Sequence[int] = (),
) -> Bursts | None:
    """Return how rows come in bursts of one size; ``None`` where they do not.

    Args:
        times_us: Times of the rows, in order.
        rows: Their cells, all of them: two GPUs that draw the same differ in another one.
        time: Place of the cell that tells the time.
        told_in_us: What times are told in.
        lasting: Places of cells that tell of the board, and do not change with its work.
    """
    steps = [later - earlier for earlier, later in pairwise(times_us)]
    quickly_us, slowly_us = _widest_us(steps), _widest_us(steps, _SLOWLY_US)
    for apart_us in (quickly_us, slowly_us, _usual_us(steps)):
        if apart_us is None:
            continue
        found = _parted(times_us, rows, apart_us)
        usual = _usual_size(found)
        if usual is None:
            continue
        if usual > _MOST_IN_A_MACHINE and len(found) < _NOT_ANEW and apart_us != quickly_us:
            # A loop that was started anew, or stood still once.
            continue
        if sum(map(_is_one_row, found)) >= _REGULAR_SHARE * len(found):
            return Bursts(usual, apart_us, "one row")
        whole = [burst for burst in found if len(burst) == usual]
        is_by_times = not _are_within_ticks(times_us, apart_us) and (
            _are_closer_than_a_loop(whole) or _are_of_one_call(whole) or keep_cells(whole, time)
        )
        is_told = told_in_us <= _QUICKEST_US and (is_by_times or are_boards(whole, lasting))
        is_told = is_told and not _are_parts(found, told_in_us)
        return Bursts(usual, apart_us, "several" if is_told else "unclear")
    return _hardly_apart(times_us, rows, told_in_us, lasting)


def _hardly_apart(
    times_us: Sequence[float], rows: Sequence[Cells], told_in_us: float, lasting: Sequence[int]
) -> Bursts | None:
    """Return the bursts of a driver that is hardly through when it is asked again: each a little apart.

    One GPU's loop has no step that is longer each second or each eighth time: where one is, it may be of
    several.
    """
    import numpy as np

    told = list(zip(times_us, rows, strict=True))
    # A row that is written twice is none of another GPU.
    once = [t for (t, row), before in zip(told, [None, *told], strict=False) if (t, row) != before]
    period = period_of(np.array(once), told_in_us)
    if period is None:
        return None
    apart_us = math.sqrt(max(period.short_us, _FLOOR_US) * period.long_us)
    found = _parted(times_us, rows, apart_us)
    whole = [burst for burst in found if len(burst) == period.size]
    is_told = _usual_size(found) == period.size and (
        are_boards(whole, lasting)
        or (period.short_us <= _SMALL_SHARE * period.long_us and _are_of_one_call(whole))
    )
    return Bursts(period.size, apart_us, "several" if is_told else "unclear")


def _usual_size(found: Sequence[Burst]) -> int | None:
    """Return the rows that nearly all bursts have; ``None`` where that is one, or there is no such size."""
    sizes = [len(burst) for burst in found]
    if len(sizes) < 2:
        return None
    usual, count = Counter(sizes).most_common(1)[0]
    # The last burst may be cut off. Of two it is no longer than the first.
    is_so = 2 <= usual <= MOST_GPUS and count >= _REGULAR_SHARE * (len(sizes) - 1)
    return usual if is_so and (len(sizes) > 2 or sizes[1] <= sizes[0]) else None


def are_mixed(
    times_us: Sequence[float], rows: Sequence[Cells], *, told_in_us: float, lasting: Sequence[int]
) -> bool:
    """Tell whether rows that come in no bursts of one size may be of several GPUs.

    Args:
        times_us: Times of the rows, in order.
        rows: Their cells.
        told_in_us: What times are told in.
        lasting: Places of cells that nothing changes in a board.
    """
    return are_of_boards(rows, lasting) or (told_in_us < US_PER_S and are_several(times_us, rows))


def are_several(times_us: Sequence[float], rows: Sequence[Cells]) -> bool:
    """Tell whether rows that come in bursts of no one size may be of several GPUs: one was not always there.

    Args:
        times_us: Times of the rows, in order, finer than seconds: several rows of one second may be those
            of one GPU.
        rows: Their cells.
    """
    import numpy as np

    apart_us = _widest_us([later - earlier for earlier, later in pairwise(times_us)])
    if apart_us is None:
        return False
    found = _parted(times_us, rows, apart_us)
    return _are_nearly_all_several(found) if are_ticks(np.array(times_us)) else _are_mostly_several(found)


def _are_nearly_all_several(found: Sequence[Burst]) -> bool:
    """Whether nearly all bursts hold several rows: one GPU's may now and then be of one second, or tick."""
    return sum(map(_is_several, found)) >= max(FEWEST, _REGULAR_SHARE * len(found))


def _are_mostly_several(found: Sequence[Burst]) -> bool:
    """Whether bursts hold several rows so often, or so long, that it is no mishap."""
    several = list(map(_is_several, found))
    longest = run = 0
    for is_so in several:
        run = run + 1 if is_so else 0
        longest = max(longest, run)
    is_often = sum(several) >= max(FEWEST, SEVERAL_SHARE * len(found)) or longest >= _IN_A_ROW
    return max(map(len, found)) <= MOST_GPUS and is_often


def _are_parts(found: Sequence[Burst], told_in_us: float) -> bool:
    """Whether bursts come in bursts themselves: one call wrote several, since some GPUs took longer."""
    import numpy as np

    period = period_of(np.array([burst[0][0] for burst in found]), told_in_us)
    return period is not None and period.short_us <= _HARDLY_US


def _are_within_ticks(times_us: Sequence[float], apart_us: float) -> bool:
    """Whether bursts are what the ticks of a coarse clock make of one loop that is quicker than they are."""
    import numpy as np

    t_us = np.array(times_us)
    steps = np.abs(np.diff(t_us))
    return are_ticks(t_us) and float(np.median(steps[steps > apart_us])) < 2 * TICK_US


def _are_closer_than_a_loop(found: Sequence[Burst]) -> bool:
    """Whether rows within bursts are less than a millisecond apart: a loop waits as long at least."""
    spans = sum(abs(burst[-1][0] - burst[0][0]) for burst in found)
    return len(found) > 1 and spans < _QUICKEST_US * sum(len(burst) - 1 for burst in found)


def _are_of_one_call(found: Sequence[Burst]) -> bool:
    """Whether few rows stand alone, each soon after the other: one call wrote them, and then it was quiet.

    A quick loop of one GPU pauses after more rows than a machine has GPUs: a file's buffer takes twenty
    wide rows at least.
    """
    if len(found) < 2 or len(found[0]) > _MOST_IN_A_MACHINE:
        return False
    within = sum(abs(b[0] - a[0]) for burst in found for a, b in pairwise(burst))
    mean_us = within / sum(len(burst) - 1 for burst in found)
    pauses = sorted(abs(later[0][0] - earlier[-1][0]) for earlier, later in pairwise(found))
    shortest_us = pauses[len(pauses) // 20]
    is_quick = mean_us <= WITHIN_US and shortest_us >= _ALONE * mean_us
    # Rows further apart may be a loop of one GPU that was begun again and again.
    is_slow_driver = mean_us <= _SLOWEST_GPU_US and len(found) >= _NOT_ANEW
    return is_quick or (is_slow_driver and shortest_us >= _QUIET * within / len(found))


def _usual_us(steps: Sequence[float]) -> float | None:
    """Return the step from which a burst begins, by the long ones."""
    rising = sorted(s for s in steps if s > 0)
    return _SMALL_SHARE * rising[int(0.9 * (len(rising) - 1))] if rising else None


def _widest_us(
    steps: Sequence[float], within_us: float = WITHIN_US, share: float = _SMALL_SHARE
) -> float | None:
    """Return the step from which a burst begins, by the widest gap above short ones.

    It does not depend on how many GPUs there are, nor on one interval.
    """
    sizes = sorted(max(abs(s), _FLOOR_US) for s in steps)
    gaps = [(high / low, low, high) for low, high in pairwise(sizes) if low <= within_us]
    ratio, low, high = max(gaps, default=(0.0, 0.0, 0.0))
    return math.sqrt(low * high) if ratio >= 1 / share else None


def _parted(times_us: Sequence[float], rows: Sequence[Cells], apart_us: float) -> list[Burst]:
    """Return the bursts: times and rows of each."""
    found: list[list[tuple[float, tuple[str, ...]]]] = []
    last_us = -math.inf
    for t_us, row in zip(times_us, rows, strict=True):
        if abs(t_us - last_us) > apart_us:
            found.append([])
        found[-1].append((t_us, tuple(row)))
        last_us = t_us
    return [*found]


def _is_one_row(burst: Burst) -> bool:
    """Whether a burst is one row, written twice."""
    return len(burst) > 1 and len(set(burst)) == 1


def _is_several(burst: Burst) -> bool:
    """Whether a burst holds several rows, and not one written twice."""
    return len(burst) > 1 and not _is_one_row(burst)
