"""Rows of several GPUs that no column tells apart: they come in bursts, one row a GPU.

One GPU that is read in a quick loop, whose log pauses regularly (each time a buffer of its file is
full, say), writes such bursts, too. Rows are of several GPUs where they are closer together than
any loop's, where few of them stand alone, or where each place of a burst keeps cells of its own; else
nobody can tell.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from carbonlens.importers.tables import with_unit

if TYPE_CHECKING:
    from carbonlens.importers.contract import Array

_SMALL_SHARE: Final = 0.2
"""Steps shorter than this share of the long ones lie within a burst."""

_WITHIN_US: Final = 8_000.0
"""Longest step between rows that were surely read by one call, and not by the next: the quickest loop
that tools' logs are known by is ``-lms 10``."""

_SLOWLY_US: Final = 25_000.0
"""The same, of a driver that takes its time over many fields."""

_HARDLY_US: Final = 200_000.0
"""The same, where it is hardly through when it is asked again."""

_LONGER: Final = 1.3
"""How many times as long as the others the step to the next burst is then at least."""

_ROUNDED: Final = 3.0
"""Milliseconds by which steps of one loop may differ since stamps are told in such."""

_FLOOR_US: Final = 500.0
"""Half of the millisecond that stamps are told in: what a step of none may be."""

_FEWEST: Final = 5
"""Bursts from which rows that come several at a time are no mishap."""

_SEVERAL_SHARE: Final = 0.1

_IN_A_ROW: Final = 10
"""Bursts one after another from which a GPU joined, or left."""

_QUICKEST_US: Final = 1_000.0
"""What a loop waits at least between two readings (``-lms 1``), and what stamps are told in."""

_OWN: Final = 50.0
"""How many times as much as within a place cells differ between places, where these are of several GPUs."""

_MOST_GPUS: Final = 64
_MOST_IN_A_MACHINE: Final = 16
"""GPUs that one machine has, but for the rarest."""

_ALONE: Final = 20.0
"""How many times as long as between its rows it is quiet around what one call wrote quickly."""

_QUIET: Final = 4.0
"""The same, of the time that all of its rows took together."""

_REGULAR_SHARE: Final = 0.9

Cells = Sequence[str]
_Burst = Sequence[tuple[float, tuple[str, ...]]]


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
    """Looks for rows of a GPU that joined the only one: much closer together than the first rows were.

    Args:
        times_us: Times of the first rows.
        is_fine: Whether stamps are finer than seconds: two rows of one second may be of one GPU.
    """

    def __init__(self, times_us: Sequence[float], *, is_fine: bool) -> None:
        """Know how far apart the first rows were."""
        rising = sorted(later - earlier for earlier, later in pairwise(times_us) if later > earlier)
        self._apart_us = _SMALL_SHARE * rising[len(rising) // 2] if rising else None
        self._is_fine = is_fine

    def is_told_by(self, t_us: Array, values: Sequence[Array]) -> bool:
        """Tell whether rows after the first ones are of several GPUs, or nobody can tell that they are not.

        Args:
            t_us: Their times.
            values: Cells of each column that is read: equal ones at one time are one row written twice.
        """
        import numpy as np

        if self._apart_us is None or int((np.abs(np.diff(t_us)) <= self._apart_us).sum()) < _FEWEST:
            return False
        rows = [tuple(map(str, row)) for row in zip(*(v.tolist() for v in values), strict=True)]
        found = _parted(t_us.tolist(), rows, self._apart_us)
        if self._is_fine:
            return _are_mostly_several(found)
        return sum(map(_is_several, found)) >= max(_FEWEST, _REGULAR_SHARE * len(found))


def resolution_us(stamps: Sequence[str]) -> float:
    """Return the microseconds that stamps are told in: by the most digits after the point of any."""
    digits = max((len(s.partition(".")[2]) for s in stamps), default=0)
    return 10.0 ** (6 - digits)


def bursts_of(
    times_us: Sequence[float], rows: Sequence[Cells], *, time: int | None, told_in_us: float
) -> Bursts | None:
    """Return how rows come in bursts of one size; ``None`` where they do not.

    Args:
        times_us: Times of the rows, in order.
        rows: Their cells, all of them: two GPUs that draw the same differ in another one.
        time: Place of the cell that tells the time.
        told_in_us: What times are told in.
    """
    steps = [later - earlier for earlier, later in pairwise(times_us)]
    slowly_us = _widest_us(steps, _SLOWLY_US)
    for apart_us, most in (
        (_widest_us(steps), _MOST_GPUS),
        (slowly_us, _MOST_IN_A_MACHINE),
        (_usual_us(steps), _MOST_GPUS),
    ):
        if apart_us is None:
            continue
        found = _parted(times_us, rows, apart_us)
        usual, count = Counter(map(len, found)).most_common(1)[0]
        if not 2 <= usual <= most or len(found) < 2 or count < _REGULAR_SHARE * (len(found) - 1):
            continue
        if sum(map(_is_one_row, found)) >= _REGULAR_SHARE * len(found):
            return Bursts(usual, apart_us, "one row")
        whole = [burst for burst in found if len(burst) == usual]
        is_told = told_in_us <= _QUICKEST_US and (
            _are_closer_than_a_loop(whole) or _are_of_one_call(whole) or _keep_cells(whole, time)
        )
        return Bursts(usual, apart_us, "several" if is_told else "unclear")
    return _hardly_apart(times_us, rows, time) if told_in_us <= _QUICKEST_US else None


def _hardly_apart(times_us: Sequence[float], rows: Sequence[Cells], time: int | None) -> Bursts | None:
    """Return the bursts of a driver that is hardly through when it is asked again: each a little apart.

    One GPU's loop has no step that is longer each second or each eighth time: where one is, it may be of
    several.
    """
    steps = [later - earlier for earlier, later in pairwise(times_us)]
    apart_us = _widest_us(steps, _HARDLY_US, 1 / _LONGER)
    if apart_us is None:
        return None
    short = max((abs(s) for s in steps if abs(s) <= apart_us), default=0.0)
    long = min((abs(s) for s in steps if abs(s) > apart_us), default=0.0)
    found = _parted(times_us, rows, apart_us)
    if len(found) <= _FEWEST or long - short < _ROUNDED * _QUICKEST_US:
        return None
    usual, count = Counter(map(len, found)).most_common(1)[0]
    if not 2 <= usual <= _MOST_IN_A_MACHINE or count < _REGULAR_SHARE * (len(found) - 1):
        return None
    whole = [burst for burst in found if len(burst) == usual]
    return Bursts(usual, apart_us, "several" if _keep_cells(whole, time) else "unclear")


def are_several(times_us: Sequence[float], rows: Sequence[Cells]) -> bool:
    """Tell whether rows that come in bursts of no one size may be of several GPUs: one was not always there.

    Args:
        times_us: Times of the rows, in order, finer than seconds: several rows of one second may be those
            of one GPU.
        rows: Their cells.
    """
    apart_us = _widest_us([later - earlier for earlier, later in pairwise(times_us)])
    if apart_us is None:
        return False
    return _are_mostly_several(_parted(times_us, rows, apart_us))


def _are_mostly_several(found: Sequence[_Burst]) -> bool:
    """Whether bursts hold several rows so often, or so long, that it is no mishap."""
    several = list(map(_is_several, found))
    longest = run = 0
    for is_so in several:
        run = run + 1 if is_so else 0
        longest = max(longest, run)
    is_often = sum(several) >= max(_FEWEST, _SEVERAL_SHARE * len(found)) or longest >= _IN_A_ROW
    return max(map(len, found)) <= _MOST_GPUS and is_often


def _are_closer_than_a_loop(found: Sequence[_Burst]) -> bool:
    """Whether rows within bursts are less than a millisecond apart: a loop waits as long at least."""
    spans = sum(abs(burst[-1][0] - burst[0][0]) for burst in found)
    return spans < _QUICKEST_US * sum(len(burst) - 1 for burst in found)


def _are_of_one_call(found: Sequence[_Burst]) -> bool:
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
    is_quick = mean_us <= _WITHIN_US and shortest_us >= _ALONE * mean_us
    return is_quick or shortest_us >= _QUIET * within / len(found)


def _keep_cells(found: Sequence[_Burst], time: int | None) -> bool:
    """Whether each place keeps cells of its own in a column: between places they differ more than in one.

    What all of a burst have in common, and how that changes over time, is taken out before: one GPU whose
    power rises tells rising cells, burst after burst.
    """
    import numpy as np

    if len(found) < _FEWEST:
        return False
    t_us = np.array([[t for t, _ in burst] for burst in found])
    middle_us = t_us.mean(axis=1)
    if not (np.diff(middle_us) > 0).all():
        return False
    for values in _columns(found, time):
        mean = values.mean(axis=1)
        slope = np.gradient(mean, middle_us)
        left = values - mean[:, None] - slope[:, None] * (t_us - middle_us[:, None])
        of_place = left.mean(axis=0)
        within = float(((left - of_place) ** 2).sum()) / (len(found) - 1)
        between = float((of_place**2).sum()) * len(found)
        is_no_rounding = float(np.ptp(of_place)) > 1e-6 * float(np.abs(values).max())
        if is_no_rounding and between >= _OWN * within:
            return True
    return False


def _columns(found: Sequence[_Burst], time: int | None) -> Iterator[Array]:
    """Yield the cells of each other column as numbers, a row a burst; few words are numbered."""
    import numpy as np

    shape = len(found), len(found[0])
    for place in range(min(len(row) for burst in found for _, row in burst)):
        cells = [row[place] for burst in found for _, row in burst]
        numbers = {cell: _number(cell) for cell in set(cells)}
        if place == time or len(numbers) < 2:
            continue
        if None not in numbers.values():
            yield np.array([numbers[c] for c in cells], dtype=np.float64).reshape(shape)
        elif len(numbers) <= shape[1]:
            order = {cell: n for n, cell in enumerate(dict.fromkeys(cells))}
            yield np.array([order[c] for c in cells], dtype=np.float64).reshape(shape)


def _number(cell: str) -> float | None:
    try:
        value = float(with_unit(cell)[0])
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _usual_us(steps: Sequence[float]) -> float | None:
    """Return the step from which a burst begins, by the long ones."""
    rising = sorted(s for s in steps if s > 0)
    return _SMALL_SHARE * rising[int(0.9 * (len(rising) - 1))] if rising else None


def _widest_us(
    steps: Sequence[float], within_us: float = _WITHIN_US, share: float = _SMALL_SHARE
) -> float | None:
    """Return the step from which a burst begins, by the widest gap above short ones.

    It does not depend on how many GPUs there are, nor on one interval.
    """
    sizes = sorted(max(abs(s), _FLOOR_US) for s in steps)
    gaps = [(high / low, low, high) for low, high in pairwise(sizes) if low <= within_us]
    ratio, low, high = max(gaps, default=(0.0, 0.0, 0.0))
    return math.sqrt(low * high) if ratio >= 1 / share else None


def _parted(times_us: Sequence[float], rows: Sequence[Cells], apart_us: float) -> list[_Burst]:
    """Return the bursts: times and rows of each."""
    found: list[list[tuple[float, tuple[str, ...]]]] = []
    last_us = -math.inf
    for t_us, row in zip(times_us, rows, strict=True):
        if abs(t_us - last_us) > apart_us:
            found.append([])
        found[-1].append((t_us, tuple(row)))
        last_us = t_us
    return [*found]


def _is_one_row(burst: _Burst) -> bool:
    """Whether a burst is one row, written twice."""
    return len(burst) > 1 and len(set(burst)) == 1


def _is_several(burst: _Burst) -> bool:
    """Whether a burst holds several rows, and not one written twice."""
    return len(burst) > 1 and not _is_one_row(burst)
