"""Errors of drivers: how the errors of both periods' figures move what each driver changed.

To first order (JCGM 100:2008, 5.1.2). Each factor's error is relative; parts of one named source add
up as they are, over rows, factors and both periods, so that what the periods share cancels in a
change as far as it is shared. Random parts add in quadrature.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from carbonlens.compare.drivers import Split, decompose, method_of
from carbonlens.domain.drivers import Method
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.units import Grade, State

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

_BLOCK: Final = 1 << 15
"""Rows that are split at a time."""


class FactorError(NamedTuple):
    """Relative errors of one factor in one period.

    Attributes:
        random: One sigma of the independent part, a number a row.
        rows, sources, relative: Signed sigma of a named source in a row, one entry each.
        wide: Rows whose width nobody knows.
    """

    random: Array
    rows: Array
    sources: Array
    relative: Array
    wide: Array


class Moved(NamedTuple):
    """Effects and their errors: factors by groups, and by sources.

    Attributes:
        method: How the change was split.
        values: ``(K, G)``.
        variances: Of the random parts, ``(K, G)``.
        by_source: Signed sigmas, ``(K, G, S)``.
        wide: Whether nobody knows the width, ``(K, G)``.
    """

    method: Method
    values: Array
    variances: Array
    by_source: Array
    wide: Array

    def estimate(
        self,
        k: int,
        groups: Sequence[int] | slice,
        sources: Sequence[str],
        unit: str,
        *,
        grade: Grade | None = None,
        state: State = "known",
    ) -> Estimate:
        """Return one effect summed over groups.

        Args:
            k: Factor.
            groups: Which; each once.
            sources: Names of the sources, in their order.
            unit: Of the effect.
            grade: Of what it rests on.
            state: ``unbounded`` where that is known as lower bounds.
        """
        common = self.by_source[k][groups].sum(axis=0).tolist()
        return Estimate(
            value=float(self.values[k][groups].sum()),
            unit=unit,
            state=state,
            grade=grade,
            u_random=float(self.variances[k][groups].sum()) ** 0.5,
            u_by_source={name: u for name, u in zip(sources, common, strict=True) if u},
            signed=True,
            bounds=(None, None) if self.wide[k][groups].any() else None,
        )


class _Sums:
    """Effects and their errors, summed block by block."""

    def __init__(self, factors: int, size: int, named: int) -> None:
        import numpy as np

        self.values = np.zeros((factors, size))
        self.variances = np.zeros((factors, size))
        self.by_source = np.zeros((factors, size * named))
        self.wide = np.zeros((factors, size), dtype=bool)
        self._size, self._named, self._factors = size, named, factors

    def add_effects(self, split: Split, group: Array) -> None:
        """Add the effects of a block of rows."""
        import numpy as np

        for k in range(self._factors):
            self.values[k] += np.bincount(group, split.effect(k), self._size)

    def add_error(self, split: Split, group: Array, key: tuple[int, int], error: FactorError) -> None:
        """Add what the errors of one factor in one period do to a block of rows."""
        import numpy as np

        # Errors of every row in its order, as a sensor's, need no picking.
        whole = len(error.rows) == len(group) and bool((error.rows == np.arange(len(group))).all())
        rows = None if whole else error.rows
        place = (group if whole else group[error.rows]) * self._named + error.sources
        if len(place):
            size = self._size * self._named
            for k, named in enumerate(split.slopes(*key, error.relative, rows)):
                self.by_source[k] += np.bincount(place, named, size)
        if error.random.any():
            for k, spread in enumerate(split.slopes(*key, error.random)):
                self.variances[k] += np.bincount(group, spread * spread, self._size)
        if error.wide.any():
            for k, moves in enumerate(split.slopes(*key, error.wide.astype(float))):
                self.wide[k] |= np.bincount(group, moves != 0, self._size) > 0


def moved(
    before: Array,
    after: Array,
    errors: Mapping[tuple[int, int], FactorError],
    group: Array,
    counts: tuple[int, int],
) -> Moved:
    """Return the effects of each group of rows, with their errors.

    Args:
        before: Factors by rows, as ``decompose`` takes them.
        after: The same in the later period.
        errors: By factor and period, 0 before and 1 after, their rows in order; a factor without any
            is exact.
        group: Number of each row's group.
        counts: How many groups and how many sources there are.
    """
    factors, rows = before.shape
    sums, method = _Sums(factors, *counts), method_of(before, after)
    # A processor's cache holds a block; all rows at once would go to memory and back each time.
    for start in range(0, rows, _BLOCK):
        at = slice(start, start + _BLOCK)
        split = decompose(before[:, at], after[:, at], method)
        sums.add_effects(split, group[at])
        for key, error in errors.items():
            sums.add_error(split, group[at], key, _within(error, start, start + _BLOCK))
    by_source = sums.by_source.reshape(factors, *counts)
    return Moved(method, sums.values, sums.variances, by_source, sums.wide)


def _within(error: FactorError, start: int, end: int) -> FactorError:
    """Return the errors of a block of rows."""
    import numpy as np

    first, last = np.searchsorted(error.rows, (start, end)).tolist()
    held = slice(first, last)
    return FactorError(
        error.random[start:end],
        error.rows[held] - start,
        error.sources[held],
        error.relative[held],
        error.wide[start:end],
    )
