"""Small-sample statistics: t intervals, Welch, Holm, detectable effect, trend."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from carbonlens.compare import student
from carbonlens.domain.units import Z_95

_WIDE = 1e6
"""A shared error this many times the scatter leaves a normal distribution."""

POWER = 0.80
"""Probability with which the minimum detectable effect would be found."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A mean with its standard error.

    Attributes:
        mean: Mean, in the values' unit.
        se: Standard error of the mean; ``None`` when the scatter is unknown.
        df: Degrees of freedom of ``se``.
        n: Number of rounds, or the smallest arm where arms are not paired.
    """

    mean: float
    se: float | None
    df: float | None
    n: int

    def with_common(self, u_common: float) -> Sample:
        """Return the sample with an error that all rounds share in its standard error.

        The effective degrees of freedom are those of Welch and Satterthwaite
        (JCGM 100:2008, G.4.1), in which the shared error counts with infinitely
        many. Interval, p value and detectable effect all rest on this one sample.

        Args:
            u_common: One sigma of the shared error.
        """
        if self.se is None or self.df is None or u_common == 0:
            return self
        se = math.hypot(self.se, u_common)
        # As a power of a ratio, which no small variance can underflow.
        df = self.df * (se / self.se) ** 4 if self.se > 0 and se / self.se < _WIDE else math.inf
        return replace(self, se=se, df=df)

    def half_width(self, confidence: float, u_common: float = 0.0) -> float | None:
        """Return half the width of the two-sided interval.

        Args:
            confidence: For example 0.95.
            u_common: One sigma of an error that all rounds share.
        """
        one = self.with_common(u_common)
        if one.se is None or one.df is None:
            return None
        return t_quantile(1 - (1 - confidence) / 2, one.df) * one.se

    def p_value(self, u_common: float = 0.0) -> float | None:
        """Return the two-sided p of "the mean is zero" (Student's t)."""
        one = self.with_common(u_common)
        if one.se is None or one.df is None:
            return None
        if one.se == 0:
            return 1.0 if self.mean == 0 else 0.0
        return student.two_sided_p(self.mean / one.se, one.df)

    @property
    def u_95(self) -> float | None:
        """One sigma whose normal 95 % interval is the t interval.

        ``t * se / 1.96``: an estimate keeps sigmas only, and with few rounds
        1.96 standard errors would be too narrow.
        """
        if self.se is None or self.df is None:
            return None
        return t_quantile(0.975, self.df) * self.se / Z_95


def t_quantile(p: float, df: float) -> float:
    """Return the quantile of Student's t distribution, the normal one for infinite ``df``."""
    return student.quantile(p, df)


def normal_quantile(p: float) -> float:
    """Return the quantile of the standard normal distribution."""
    return student.quantile(p, math.inf)


def sample(values: Sequence[float]) -> Sample:
    """Return mean and standard error of independent values.

    Raises:
        ValueError: If there are no values.
    """
    n = len(values)
    if n == 0:
        raise ValueError("a mean needs at least one value")
    mean = math.fsum(values) / n
    if n == 1:
        return Sample(mean=mean, se=None, df=None, n=1)
    variance = math.fsum((v - mean) ** 2 for v in values) / (n - 1)
    return Sample(mean=mean, se=math.sqrt(variance / n), df=n - 1, n=n)


def welch(terms: Sequence[tuple[float, Sequence[float]]]) -> Sample:
    """Return a weighted sum of independent arms' means (Welch 1947).

    Degrees of freedom by Welch-Satterthwaite.

    Args:
        terms: Weight and values of each arm.
    """
    parts = [(weight, sample(values)) for weight, values in terms]
    mean = math.fsum(weight * s.mean for weight, s in parts)
    n = min(s.n for _, s in parts)
    if any(s.se is None for _, s in parts):
        return Sample(mean=mean, se=None, df=None, n=n)
    variances = [(weight * (s.se or 0.0)) ** 2 for weight, s in parts]
    total = math.fsum(variances)
    below = math.fsum(v * v / (s.n - 1) for v, (_, s) in zip(variances, parts, strict=True))
    df = total * total / below if below > 0 else float(sum(s.n - 1 for _, s in parts))
    return Sample(mean=mean, se=math.sqrt(total), df=df, n=n)


def paired(terms: Sequence[tuple[float, Sequence[float]]]) -> Sample:
    """Return a weighted sum of arms measured in the same rounds, round by round.

    What a round does to all arms (drift, load) leaves the sum of a contrast,
    whose weights add to zero. For two arms with weights +1 and -1 this is
    Student's paired t.

    Args:
        terms: Weight and values of each arm; values in the same order of rounds.
    """
    rows = zip(*(values for _, values in terms), strict=True)
    weights = [weight for weight, _ in terms]
    return sample([math.fsum(w * v for w, v in zip(weights, row, strict=True)) for row in rows])


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p values adjusted for their number (Holm 1979), in the given order.

    Tests that could not be made (``None``) are not counted.
    """
    order = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    so_far = 0.0
    for rank, (p, i) in enumerate(order):
        so_far = max(so_far, min(1.0, p * (len(order) - rank)))
        adjusted[i] = so_far
    return adjusted


def minimum_detectable_log(over: Sample, confidence: float, u_common: float = 0.0) -> float | None:
    """Return the smallest mean this design would find with 80 % power.

    ``(t[1 - alpha/2] + t[0.8]) * se``: the usual approximation by central t.

    Args:
        over: The design's sample.
        confidence: Two-sided confidence of the test.
        u_common: One sigma of an error that all rounds share.
    """
    one = over.with_common(u_common)
    if one.se is None or one.df is None:
        return None
    return (t_quantile(1 - (1 - confidence) / 2, one.df) + t_quantile(POWER, one.df)) * one.se


def trend(values: Sequence[float], places: Sequence[float]) -> Sample | None:
    """Return the slope of values over their places, by least squares.

    Args:
        values: What may drift.
        places: Where each value stands, for example the number of its round.

    Returns:
        The slope per place with its standard error; ``None`` for fewer than
        three values, or when all stand in one place.
    """
    n = len(values)
    x_mean, y_mean = (math.fsum(v) / n if n else 0.0 for v in (places, values))
    spread = math.fsum((x - x_mean) ** 2 for x in places)
    if n < 3 or spread == 0:
        return None
    pairs = [(x - x_mean, y - y_mean) for x, y in zip(places, values, strict=True)]
    slope = math.fsum(x * y for x, y in pairs) / spread
    left = math.fsum((y - slope * x) ** 2 for x, y in pairs)
    return Sample(mean=slope, se=math.sqrt(left / (n - 2) / spread), df=n - 2, n=n)


def grubbs(values: Sequence[float], alpha: float) -> int | None:
    """Return the place of the one value that does not belong to the others.

    Grubbs' two-sided test (1969): the largest distance from the mean over the
    standard deviation, against its critical value for normal values.

    Args:
        values: At least three; fewer give ``None``.
        alpha: Probability of naming one where none is out.
    """
    n = len(values)
    over = sample(values) if n >= 3 else None
    if over is None or not over.se:
        return None
    deviation = over.se * math.sqrt(n)
    distances = [abs(v - over.mean) for v in values]
    place = max(range(n), key=distances.__getitem__)
    t = t_quantile(1 - alpha / (2 * n), n - 2)
    critical = (n - 1) / math.sqrt(n) * math.sqrt(t * t / (n - 2 + t * t))
    return place if distances[place] / deviation > critical else None
