"""Retention: how much of a figure is left, as a ratio to the baseline's, and tests of pairs.

A ratio of two accuracies over the same examples is narrower than one of two
independent accuracies; both have intervals that hold at small counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from carbonlens.compare.quality import (
    Outcomes,
    direction_of,
    has_usable,
    independent_difference,
    is_known,
    paired_outcomes,
    why_bare,
    why_no_direction,
    wilson_of,
)
from carbonlens.compare.statistics import normal_quantile
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.run import Quality
from carbonlens.domain.units import Z_95

_MOST_SUMMED: Final = 1_000
"""Pairs that differ up to which the bootstrap's distribution is summed up."""


def paired_ratio(
    first: Sequence[int], second: Sequence[int], z: float = Z_95
) -> tuple[float, float, float] | None:
    """Return the ratio of two paired proportions with its interval.

    The hybrid Wilson interval of Bonett and Price (2006, Biometrics 62(1)).

    Args:
        first: 0/1 outcomes of one arm.
        second: Outcomes of the other arm on the same examples in the same order.
        z: Normal quantile of the interval.

    Returns:
        ``mean(first) / mean(second)``, lower and upper end; ``None`` where one of
        them has nothing right.
    """
    both = sum(1 for a, b in zip(first, second, strict=True) if a and b)
    only_first, only_second = sum(first) - both, sum(second) - both
    x, y = both + only_first, both + only_second
    if not x or not y:
        return None
    n = both + only_first + only_second
    spread = math.sqrt((only_first + only_second + 2) / ((x + 1) * (y + 1)))
    of_x, of_y = (math.sqrt((1 - (k + 1) / (n + 2)) / (k + 1)) for k in (x, y))
    narrowed = z * spread / (of_x + of_y)
    (low_x, high_x), (low_y, high_y) = (_wilson_count(k, n, narrowed) for k in (x, y))
    return x / y, low_x / high_y, high_x / low_y


def independent_ratio(
    a: float, of_a: tuple[float, float], b: float, of_b: tuple[float, float]
) -> tuple[float, float]:
    """Return the interval of ``a / b`` from the intervals of both positive figures.

    Square-and-add (Newcombe 1998; Zou and Donner 2008) in logarithms. An end at
    zero leaves the ratio without a lower, or with a very high upper end.

    Args:
        a: First figure.
        of_a: Its interval.
        b: Second figure.
        of_b: Its interval.
    """
    low, high = independent_difference(_log(a), _logs(of_a), _log(b), _logs(of_b))
    return math.exp(low), math.exp(min(high, 700.0))


def mcnemar(first: Sequence[int], second: Sequence[int]) -> float:
    """Return the exact two-sided p of "both arms are right equally often" (McNemar 1947).

    Given the pairs that differ, each way is a coin's (Clopper-Pearson doubling).

    Args:
        first: 0/1 outcomes of one arm.
        second: Outcomes of the other arm on the same examples in the same order.
    """
    b = sum(1 for x, y in zip(first, second, strict=True) if x and not y)
    c = sum(1 for x, y in zip(first, second, strict=True) if y and not x)
    n, few = b + c, min(b, c)
    logs = (
        math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2)
        for k in range(few + 1)
    )
    return min(1.0, 2 * math.fsum(math.exp(x) for x in logs))


def paired_bootstrap(
    first: Sequence[int], second: Sequence[int], confidence: float = 0.95
) -> tuple[float, float]:
    """Return the percentile interval of ``mean(first) - mean(second)`` over resampled examples.

    Resampling 0/1 pairs is drawing how many differ, and which way each goes: two
    binomials, whose distribution is summed up instead of drawn. It is what endless
    resampling would give. From 1,000 pairs that differ its normal limit serves.

    Args:
        first: 0/1 outcomes of one arm.
        second: Outcomes of the other arm on the same examples in the same order.
        confidence: Of the interval.
    """
    n = len(first)
    b = sum(1 for x, y in zip(first, second, strict=True) if x and not y)
    c = sum(1 for x, y in zip(first, second, strict=True) if y and not x)
    tail = (1 - confidence) / 2
    if b + c == 0:
        return 0.0, 0.0
    if b + c > _MOST_SUMMED:
        half = normal_quantile(1 - tail) * math.sqrt(b + c - (b - c) ** 2 / n)
        return (b - c - half) / n, (b - c + half) / n
    shares: dict[int, float] = {}
    for differ, p in _binomial(n, (b + c) / n).items():
        for ours, q in _binomial(differ, b / (b + c)).items():
            shares[2 * ours - differ] = shares.get(2 * ours - differ, 0.0) + p * q
    return _quantile(shares, tail) / n, _quantile(shares, 1 - tail) / n


def retention(
    baseline: Quality | None, step: Quality | None, outcomes: Outcomes, z: float = Z_95
) -> tuple[Estimate, str | None]:
    """Return what share of the baseline's quality a step keeps: 1 is all of it, more is better.

    For a figure of which less is better it is the inverse ratio.

    Args:
        baseline: The baseline's figure.
        step: The step's figure.
        outcomes: Per-example outcomes by hash.
        z: Normal quantile of the interval.

    Returns:
        The ratio; and why it has no interval, if so.
    """
    if baseline is None or step is None or not is_known(baseline) or not is_known(step):
        return Estimate(value=None, unit="1", state="unknown"), "not recorded in both arms"
    is_more_better = direction_of(baseline, step)
    if is_more_better is None:
        return Estimate(value=None, unit="1", state="unknown"), why_no_direction(baseline, step)
    (mine, other) = (step, baseline) if is_more_better else (baseline, step)
    a, b = mine.value or 0.0, other.value or 0.0
    if a <= 0 or b <= 0:
        return Estimate(value=None, unit="1", state="unknown"), "a figure that is not positive has no ratio"
    plain = Estimate(value=a / b, unit="1", bounds=(None, None))
    if not (has_usable(baseline, outcomes) and has_usable(step, outcomes)):
        return plain, "its per-example outcomes are not 0 or 1, so they give no interval"
    pair = paired_outcomes(mine, other, outcomes)
    found = None if pair is None else paired_ratio(*pair, z)
    if found is not None:
        return Estimate(value=found[0], unit="1", bounds=found[1:]), None
    of_a, of_b = wilson_of(mine, z), wilson_of(other, z)
    if of_a is None or of_b is None:
        return plain, why_bare(baseline, step)
    return Estimate(value=a / b, unit="1", bounds=independent_ratio(a, of_a, b, of_b)), None


def ratio(
    baseline: Quality | None, step: Quality | None, outcomes: Outcomes, z: float = Z_95
) -> tuple[Estimate, str | None]:
    """Return a step's figure over the baseline's, whichever direction is the better one.

    Args:
        baseline: The baseline's figure.
        step: The step's figure.
        outcomes: Per-example outcomes by hash.
        z: Normal quantile of the interval.

    Returns:
        The ratio; and why it has no interval, if so.
    """
    first, second = (None if q is None else replace(q, higher_is_better=True) for q in (baseline, step))
    return retention(first, second, outcomes, z)


def _wilson_count(count: int, n: int, z: float) -> tuple[float, float]:
    half = z * math.sqrt(z * z + 4 * count * (1 - count / n))
    return tuple((2 * count + z * z + s * half) / (2 * (n + z * z)) for s in (-1, 1))  # type: ignore[return-value]  # two bounds, made by a loop


def _binomial(n: int, p: float) -> dict[int, float]:
    """Return the probability of each count within eight standard deviations."""
    if n == 0 or p in (0.0, 1.0):
        return {round(n * p): 1.0}
    reach = 8 * math.sqrt(n * p * (1 - p)) + 8
    counts = range(max(0, math.floor(n * p - reach)), min(n, math.ceil(n * p + reach)) + 1)
    log_p, log_q, whole = math.log(p), math.log1p(-p), math.lgamma(n + 1)
    return {
        k: math.exp(whole - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * log_p + (n - k) * log_q)
        for k in counts
    }


def _quantile(shares: Mapping[int, float], tail: float) -> float:
    below = 0.0
    for value in sorted(shares):
        below += shares[value]
        if below >= tail:
            return float(value)
    return float(max(shares))


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -700.0


def _logs(ends: tuple[float, float]) -> tuple[float, float]:
    return _log(ends[0]), _log(ends[1])
