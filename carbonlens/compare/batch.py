"""Many contrasts over the same cells at once: one matrix product instead of a sum each.

A lattice of ten optimizations has 1,024 cells and twenty contrasts of up to
1,024 terms in five measures. Small lattices, and cells that do not share their
rounds, go through the plain functions, which give the same figures.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from carbonlens.compare.arms import MEASURES, Arm, Measure, Series
from carbonlens.compare.contrast import LogChange, contrast, exp_of, log_change, weighted
from carbonlens.compare.statistics import sample
from carbonlens.domain.comparison import Amounts
from carbonlens.domain.estimate import Estimate, worst_grade
from carbonlens.domain.units import Grade

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

K = TypeVar("K", bound=Hashable)
Weights = Sequence[tuple[float, K]]

_WORTH_A_MATRIX: Final = 64
"""Cells from which on importing numpy pays."""


def contrasts(weights: Mapping[str, Weights[K]], cells: Mapping[K, Arm]) -> dict[str, Amounts]:
    """Return the weighted sums of cells in all measures, one per name.

    Args:
        weights: Weights that add to zero with the keys of their cells; a key may
            stand more than once.
        cells: The measured cells; all keys of the weights are among them.
    """
    summed = {name: _summed(w) for name, w in weights.items()}
    keys = list(dict.fromkeys(k for one in summed.values() for k in one))
    matrix = _rows(summed, keys) if _is_matrix([cells[k] for k in keys]) else None
    if matrix is None:
        return {name: contrast(_terms(one, cells)) for name, one in summed.items()}
    found: dict[str, dict[str, Estimate]] = {name: {} for name in summed}
    for measure in MEASURES:
        series = {k: cells[k].series[measure] for k in keys}
        if _is_table(list(series.values())):
            estimates = _estimates(matrix, series, list(summed.values()))
        else:
            # What one cell lacks is unknown of the sums it is in, and of no other.
            estimates = [weighted([(w, series[k]) for k, w in one.items()]) for one in summed.values()]
        for name, estimate in zip(summed, estimates, strict=True):
            found[name][measure] = estimate
    return {name: Amounts(**one) for name, one in found.items()}


def log_changes(
    weights: Mapping[str, Weights[K]], cells: Mapping[K, Arm], measure: Measure = "energy_j"
) -> dict[str, LogChange]:
    """Return the weighted sums of logarithms of cells, round by round, one per name.

    Args:
        weights: Weights that add to zero with the keys of their cells.
        cells: The measured cells.
        measure: What is compared.
    """
    summed = {name: _summed(w) for name, w in weights.items()}
    keys = list(dict.fromkeys(k for one in summed.values() for k in one))
    series = [cells[k].series[measure] for k in keys]
    usable = _is_matrix([cells[k] for k in keys]) and all(min(s.values) > 0 for s in series)
    if not usable or any(s.mean.state != "known" for s in series):
        return {name: log_change(_terms(one, cells), measure) for name, one in summed.items()}
    import numpy as np

    matrix = _rows(summed, keys)
    rows = matrix @ np.log(np.array([s.values for s in series]))
    shared = matrix @ _sources(series, relative=True)
    grades = _grades(dict(zip(keys, series, strict=True)), list(summed.values()))
    disturbed = [any(cells[k].is_disturbed for k in one) for one in summed.values()]
    repeats = series[0].repeats or ()
    places = sorted(range(len(repeats)), key=repeats.__getitem__)
    changes: dict[str, LogChange] = {}
    for name, row, errors, grade, is_disturbed in zip(
        summed, rows.tolist(), shared.tolist(), grades, disturbed, strict=True
    ):
        over = sample(row)
        changes[name] = LogChange(
            over=over,
            u_common=math.hypot(*errors),
            estimate=Estimate(value=exp_of(over.mean), unit="1", grade=grade),
            rounds=tuple((repeats[i], row[i]) for i in places),
            is_disturbed=is_disturbed,
        )
    return changes


def _summed(weights: Weights[K]) -> dict[K, float]:
    """Return each cell once, with the sum of its weights."""
    sums: dict[K, float] = {}
    for weight, key in weights:
        sums[key] = sums.get(key, 0.0) + weight
    return sums


def _terms(summed: Mapping[K, float], cells: Mapping[K, Arm]) -> list[tuple[float, Arm]]:
    return [(weight, cells[key]) for key, weight in summed.items()]


def _is_matrix(arms: Sequence[Arm]) -> bool:
    """Return whether there are many cells, and all have the same numbered rounds in the same order."""
    if len(arms) < _WORTH_A_MATRIX:
        return False
    first = arms[0].series["energy_j"].repeats
    # A round that stands twice would be one round only where rounds are matched by number.
    if first is None or len(set(first)) < len(first):
        return False
    return all(a.series["energy_j"].repeats == first for a in arms)


def _rows(summed: Mapping[str, Mapping[K, float]], keys: Sequence[K]) -> Matrix:
    import numpy as np

    place = {key: i for i, key in enumerate(keys)}
    matrix = np.zeros((len(summed), len(keys)))
    for row, one in zip(matrix, summed.values(), strict=True):
        row[[place[k] for k in one]] = list(one.values())
    return matrix


def _is_table(series: Sequence[Series]) -> bool:
    """Return whether one measure has a figure in all cells, in one unit and over the same rounds."""
    unit, repeats = series[0].mean.unit, series[0].repeats
    return all(s.mean.value is not None and (s.mean.unit, s.repeats) == (unit, repeats) for s in series)


def _estimates(
    matrix: Matrix, cells: Mapping[K, Series], terms: Sequence[Mapping[K, float]]
) -> list[Estimate]:
    """Return the weighted sums of one measure; the random part is the scatter over the rounds."""
    import numpy as np

    series = list(cells.values())
    lower_bounds = {key for key, s in cells.items() if s.mean.state != "known"}
    widthless = {key for key, s in cells.items() if s.mean.has_unknown_width}
    grades = _grades(cells, terms)
    names = _names(series)
    values = matrix @ np.array([s.mean.value for s in series], dtype=float)
    shared = matrix @ _sources(series, relative=False)
    rows = matrix @ np.array([s.values for s in series])
    found = []
    table = zip(terms, grades, values.tolist(), rows.tolist(), shared.tolist(), strict=True)
    for keys, grade, value, row, errors in table:
        u_random = sample(row).u_95
        known = lower_bounds.isdisjoint(keys)
        is_told = known and u_random is not None and widthless.isdisjoint(keys)
        found.append(
            Estimate(
                value=value,
                unit=series[0].mean.unit,
                state="known" if known else "unknown",
                grade=grade,
                u_random=u_random or 0.0,
                u_by_source=dict(zip(names, errors, strict=True)),
                signed=True,
                bounds=None if is_told else (None, None),
            )
        )
    return found


def _grades(cells: Mapping[K, Series], terms: Sequence[Mapping[K, float]]) -> list[Grade | None]:
    """Return the worst grade of the cells of each sum; nearly always all have one."""
    every = {s.mean.grade for s in cells.values()}
    if len(every) == 1:
        return [every.pop()] * len(terms)
    return [worst_grade(cells[k].mean.grade for k in keys) for keys in terms]


def _names(series: Sequence[Series]) -> list[str]:
    return list(dict.fromkeys(name for s in series for name in s.mean.u_by_source))


def _sources(series: Sequence[Series], *, relative: bool) -> Matrix:
    """Return the error of each cell by source, signed; over the mean where relative."""
    import numpy as np

    names = _names(series)
    errors = (s.mean.u_by_source.get(n, 0.0) for s in series for n in names)
    table = np.fromiter(errors, float, len(series) * len(names)).reshape(len(series), len(names))
    if relative:
        table /= np.array([[s.mean.value] for s in series], dtype=float)
    return table
