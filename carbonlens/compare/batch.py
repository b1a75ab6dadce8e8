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
from carbonlens.compare.contrast import LogChange, contrast, exp_of, log_change
from carbonlens.compare.statistics import sample
from carbonlens.domain.comparison import Amounts
from carbonlens.domain.estimate import Estimate, unknown, worst_grade

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
        series = [cells[k].series[measure] for k in keys]
        for name, estimate in zip(summed, _estimates(matrix, series), strict=True):
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
    grade = worst_grade(s.mean.grade for s in series)
    disturbed = [any(cells[k].is_disturbed for k in one) for one in summed.values()]
    repeats = series[0].repeats or ()
    places = sorted(range(len(repeats)), key=repeats.__getitem__)
    changes: dict[str, LogChange] = {}
    for name, row, errors, is_disturbed in zip(
        summed, rows.tolist(), shared.tolist(), disturbed, strict=True
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


def _estimates(matrix: Matrix, series: Sequence[Series]) -> list[Estimate]:
    """Return the weighted sums of one measure; the random part is the scatter over the rounds."""
    import numpy as np

    means = [s.mean for s in series]
    unit = next((m.unit for m in means if m.value is not None), means[0].unit)
    first = series[0].repeats
    if any(m.value is None or m.unit != unit for m in means) or any(s.repeats != first for s in series):
        return [unknown(unit, signed=True)] * len(matrix)
    names = _names(series)
    values = matrix @ np.array([m.value for m in means], dtype=float)
    shared = matrix @ _sources(series, relative=False)
    rows = matrix @ np.array([s.values for s in series])
    known = all(m.state == "known" for m in means)
    grade = worst_grade(m.grade for m in means)
    found = []
    for value, row, errors in zip(values.tolist(), rows.tolist(), shared.tolist(), strict=True):
        u_random = sample(row).u_95
        found.append(
            Estimate(
                value=value,
                unit=unit,
                state="known" if known else "unknown",
                grade=grade,
                u_random=u_random or 0.0,
                u_by_source=dict(zip(names, errors, strict=True)),
                signed=True,
                bounds=None if known and u_random is not None else (None, None),
            )
        )
    return found


def _names(series: Sequence[Series]) -> list[str]:
    return list(dict.fromkeys(name for s in series for name in s.mean.u_by_source))


def _sources(series: Sequence[Series], *, relative: bool) -> Matrix:
    """Return the error of each cell by source, signed; over the mean where relative."""
    import numpy as np

    names = _names(series)
    table = np.array([[s.mean.u_by_source.get(n, 0.0) for n in names] for s in series], dtype=float)
    table = table.reshape(len(series), len(names))
    if relative:
        table /= np.array([[s.mean.value] for s in series], dtype=float)
    return table
