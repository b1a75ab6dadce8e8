"""What cells tell of rows that come in bursts: whether each place of a burst is a GPU of its own."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from carbonlens.importers.nvidia_smi_looks import is_told
from carbonlens.importers.nvidia_smi_periods import FEWEST
from carbonlens.importers.tables import with_unit

if TYPE_CHECKING:
    from carbonlens.importers.contract import Array

WITHIN_US: Final = 8_000.0
"""Longest step between rows that were surely read by one call, and not by the next: the quickest loop
that tools' logs are known by is ``-lms 10``."""

SEVERAL_SHARE: Final = 0.1

_OWN: Final = 50.0
"""How many times as much as within a place cells differ between places, where these are of several GPUs."""

_LASTING_SHARE: Final = 0.95

Cells = Sequence[str]
Burst = Sequence[tuple[float, tuple[str, ...]]]


def are_of_boards(rows: Sequence[Cells], lasting: Sequence[int]) -> bool:
    """Tell whether rows are of one board now and of another then, whatever their times.

    Args:
        rows: Their cells.
        lasting: Places of cells that nothing changes in a board.
    """
    boards = [board for row in rows if all(map(is_told, board := [row[at] for at in lasting]))]
    changes = sum(earlier != later for earlier, later in pairwise(boards))
    return changes >= max(FEWEST, SEVERAL_SHARE * len(boards))


def are_boards(found: Sequence[Burst], lasting: Sequence[int]) -> bool:
    """Whether each place of bursts is of a board of its own: cells that last differ between places.

    Where they repeat within a burst, fewer boards may have been read several times.
    """
    if len(found) < FEWEST or not lasting:
        return False
    size = len(found[0])
    boards: list[tuple[str, ...]] = []
    for place in range(size):
        cells = Counter(tuple(burst[place][1][at] for at in lasting) for burst in found)
        board, count = cells.most_common(1)[0]
        if count < _LASTING_SHARE * len(found):
            return False
        boards.append(board)
    return not any(boards == boards[:n] * (size // n) for n in range(1, size) if size % n == 0)


def keep_cells(found: Sequence[Burst], time: int | None) -> bool:
    """Whether each place keeps cells of its own in a column: between places they differ more than in one.

    That tells something of rows alone that are closer than a script reads one GPU, before and after each
    step of its work, say: its cells follow the work.

    What all of a burst have in common, and how that changes over time, is taken out before: one GPU whose
    power rises tells rising cells, burst after burst.
    """
    import numpy as np

    if len(found) < FEWEST:
        return False
    t_us = np.array([[t for t, _ in burst] for burst in found])
    if float(np.abs(np.diff(t_us, axis=1)).mean()) > WITHIN_US:
        return False
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


def _columns(found: Sequence[Burst], time: int | None) -> Iterator[Array]:
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
