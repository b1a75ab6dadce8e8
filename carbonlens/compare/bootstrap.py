"""Bootstrap intervals of a mean: exact enumeration, or bias-corrected and accelerated.

Below 20 rounds the bootstrap is too narrow (BCa covers 84 % of the claimed 95 %
at 5 rounds, 90 % at 10), so verdicts rest on Student's t there and these are
for golden cases and for long, skewed series.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, combinations
from typing import TYPE_CHECKING, Final

import msgspec

from carbonlens.compare.statistics import normal_quantile
from carbonlens.domain.counting import counted
from carbonlens.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Means = NDArray[np.float64]
    Counts = NDArray[np.int64]

ROUNDS_NEEDED: Final = 20
"""Fewer values give no bootstrap interval unless every resample is enumerated for a check."""

EXACT_LIMIT: Final = 100_000
"""Most resamples that are enumerated: 10 values have 92,378 that differ."""

RESAMPLES: Final = 9_999
SEED: Final = 20261128

_ROUNDING: Final = 1e-9
"""Relative slack in which two sums of the same numbers in another order are one."""


class Bootstrap(msgspec.Struct, frozen=True, kw_only=True):
    """A bootstrap distribution's interval and what it is made of.

    Attributes:
        mean: Of the values themselves.
        low, high: Ends of the BCa interval.
        percentile_low, percentile_high: Ends of the plain percentile interval.
        bias: ``z0``, the normal deviate of the share of resamples below the mean.
        acceleration: ``a``, from the jackknife.
        alpha_low, alpha_high: Shares at which the BCa interval cuts.
        resamples: Resamples the distribution rests on, with multiplicity.
        is_exact: Whether every resample was enumerated.
    """

    mean: float
    low: float
    high: float
    percentile_low: float
    percentile_high: float
    bias: float
    acceleration: float
    alpha_low: float
    alpha_high: float
    resamples: int
    is_exact: bool


def exact_count(n: int) -> int:
    """Return how many different resamples ``n`` values have: C(2n - 1, n)."""
    return math.comb(2 * n - 1, n)


def exact(values: Sequence[float], confidence: float = 0.95) -> Bootstrap:
    """Return the interval over every possible resample: the same on any machine.

    Resamples that hold the same values are enumerated once, with the number of
    ways to draw them; each of the ``n**n`` ordered draws counts alike.

    Args:
        values: At least two.
        confidence: For example 0.95.

    Raises:
        UsageError: If more than 100,000 different resamples would be needed.
    """
    n = len(values)
    _require(n, 2)
    if exact_count(n) > EXACT_LIMIT:
        raise UsageError(
            f"{n} values have {exact_count(n)} different resamples; at most {EXACT_LIMIT} are enumerated",
            mend="use the seeded bootstrap from 20 values on, or Student's t",
        )
    import numpy as np

    counts, weights = _compositions(n)
    sums = np.zeros(len(weights))
    # One column after the other: a matrix product adds in an order of its own on every machine.
    for count, value in zip(counts.T, values, strict=True):
        sums += count * float(value)
    return _interval(values, sums / n, weights, confidence, is_exact=True)


@lru_cache(maxsize=4)
def _compositions(n: int) -> tuple[Counts, Counts]:
    """Return how often each different resample holds each of ``n`` values, and in how many ways it is drawn.

    A resample is ``n`` draws with ``n - 1`` bars between the values they are of.
    """
    import numpy as np

    places = chain.from_iterable(combinations(range(2 * n - 1), n - 1))
    bars = np.fromiter(places, np.int64, exact_count(n) * (n - 1)).reshape(-1, n - 1)
    counts = np.diff(bars, axis=1, prepend=-1, append=2 * n - 1) - 1
    factorials = np.array([math.factorial(i) for i in range(n + 1)], dtype=np.int64)
    return counts, math.factorial(n) // factorials[counts].prod(axis=1)


def bca(
    values: Sequence[float], confidence: float = 0.95, *, resamples: int = RESAMPLES, seed: int = SEED
) -> Bootstrap:
    """Return the BCa interval over random resamples (Efron 1987).

    Args:
        values: At least 20.
        confidence: For example 0.95.
        resamples: Number of random resamples.
        seed: Of the generator; the same seed gives the same interval.

    Raises:
        UsageError: If there are fewer than 20 values.
    """
    n = len(values)
    _require(n, ROUNDS_NEEDED)
    import numpy as np

    draws = np.random.Generator(np.random.PCG64(seed)).integers(0, n, (resamples, n))
    means = np.asarray(values, dtype=float)[draws].mean(axis=1)
    return _interval(values, means, np.ones(resamples, dtype=np.int64), confidence, is_exact=False)


def _interval(
    values: Sequence[float], means: Means, weights: Counts, confidence: float, *, is_exact: bool
) -> Bootstrap:
    mean = math.fsum(values) / len(values)
    order = means.argsort(kind="stable")
    means, weights = means[order], weights[order]
    seen = weights.cumsum()
    tail = (1 - confidence) / 2
    bias, acceleration = _bias(means, weights, mean), _acceleration(values)
    if bias is None:
        # All values are equal, or all resamples lie on one side: there is nothing to correct.
        bias, shares = 0.0, (tail, 1 - tail)
    else:
        shares = _cut(bias, acceleration, tail), _cut(bias, acceleration, 1 - tail)
    return Bootstrap(
        mean=mean,
        low=_at(means, seen, shares[0]),
        high=_at(means, seen, shares[1]),
        percentile_low=_at(means, seen, tail),
        percentile_high=_at(means, seen, 1 - tail),
        bias=bias,
        acceleration=acceleration,
        alpha_low=shares[0],
        alpha_high=shares[1],
        resamples=int(seen[-1]),
        is_exact=is_exact,
    )


def _bias(means: Means, weights: Counts, mean: float) -> float | None:
    """Return z0; ties with the mean count half (Efron and Tibshirani 1993, chapter 14)."""
    slack = _ROUNDING * max(abs(mean), abs(float(means[0])), abs(float(means[-1])))
    below = int(weights[means < mean - slack].sum())
    ties = int(weights[abs(means - mean) <= slack].sum())
    share = (below + ties / 2) / int(weights.sum())
    return normal_quantile(share) if 0 < share < 1 else None


def _acceleration(values: Sequence[float]) -> float:
    """Return a, the skewness of the jackknife means over six."""
    n, total = len(values), math.fsum(values)
    jackknife = [(total - v) / (n - 1) for v in values]
    centre = math.fsum(jackknife) / n
    squares = math.fsum((centre - j) ** 2 for j in jackknife)
    if squares == 0:
        return 0.0
    return math.fsum((centre - j) ** 3 for j in jackknife) / (6 * squares * math.sqrt(squares))


def _cut(bias: float, acceleration: float, share: float) -> float:
    z = bias + normal_quantile(share)
    return math.erfc(-(bias + z / (1 - acceleration * z)) / math.sqrt(2)) / 2


def _at(means: Means, seen: Counts, share: float) -> float:
    """Return the order statistic of rank ``ceil(share * total)``; ``seen`` counts up to each."""
    rank = max(1, math.ceil(share * int(seen[-1])))
    return float(means[min(int(seen.searchsorted(rank)), len(means) - 1)])


def _require(n: int, least: int) -> None:
    if n < least:
        raise UsageError(
            f"a bootstrap interval of {counted(n, 'value')}: at least {least} are needed",
            mend="measure more rounds, or use Student's t",
        )
