"""Latency: exact percentiles from raw samples, and a sketch that merges.

The sketch counts values in logarithmic buckets (DDSketch; Masson, Rim and Lee,
VLDB 2019): any quantile read from it is within the relative error of a value of
that rank, and two sketches of one error merge by adding counts.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from typing import Final

from carbonlens.domain.latency import Latency, LatencySketch

RELATIVE_ERROR: Final = 0.01
"""Relative error of a quantile read from a sketch."""

MIN_N_P99: Final = 299
"""Fewest samples whose largest bounds the 99th percentile: ``0.99**n <= 0.05``."""


def percentile(ordered: Sequence[float], q: float) -> float:
    """Return a percentile of sorted values, interpolated between order statistics.

    Args:
        ordered: Values in rising order, at least one.
        q: Quantile from 0 to 1 (type 7 of Hyndman and Fan 1996).

    Raises:
        ValueError: If there is no value, or ``q`` lies outside 0 to 1.
    """
    if not ordered or not 0 <= q <= 1:
        raise ValueError("a percentile needs a value and a quantile from 0 to 1")
    place = q * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def summarise(values_ms: Sequence[float], *, relative_error: float = RELATIVE_ERROR) -> Latency | None:
    """Return count, mean, exact percentiles and sketch; ``None`` without a value.

    Args:
        values_ms: Latencies in milliseconds, in any order, finite and not negative.
        relative_error: Of the sketch.

    Raises:
        ValueError: If a value is negative or not finite.
    """
    if not values_ms:
        return None
    return _exact(values_ms, sketch_of(values_ms, relative_error=relative_error))


def _exact(values_ms: Sequence[float], sketch: LatencySketch) -> Latency:
    """Return the summary of values whose sketch is there already."""
    ordered = sorted(values_ms)
    return Latency(
        n=len(ordered),
        mean_ms=math.fsum(ordered) / len(ordered),
        p50_ms=percentile(ordered, 0.50),
        p95_ms=percentile(ordered, 0.95),
        p99_ms=percentile(ordered, 0.99) if len(ordered) >= MIN_N_P99 else None,
        sketch=sketch,
    )


def sketch_of(values_ms: Iterable[float], *, relative_error: float = RELATIVE_ERROR) -> LatencySketch:
    """Count values in logarithmic buckets.

    Raises:
        ValueError: If a value is negative or not finite, or the error is not in (0, 1).
    """
    log_growth = math.log(_growth(relative_error))
    counts: dict[int, int] = {}
    zeros = 0
    for value in values_ms:
        if not 0 <= value < math.inf:
            raise ValueError(f"a latency is a finite number of milliseconds from 0, not {value}")
        if value == 0:
            zeros += 1
            continue
        index = math.ceil(math.log(value) / log_growth)
        counts[index] = counts.get(index, 0) + 1
    return LatencySketch(relative_error=relative_error, counts=counts, zero_count=zeros)


def merge(first: LatencySketch, second: LatencySketch) -> LatencySketch:
    """Return the sketch of both sets of values.

    Raises:
        ValueError: If the sketches differ in relative error.
    """
    if first.relative_error != second.relative_error:
        raise ValueError("sketches of different relative error do not merge")
    counts = dict(first.counts)
    for index, count in second.counts.items():
        counts[index] = counts.get(index, 0) + count
    return LatencySketch(
        relative_error=first.relative_error,
        counts=counts,
        zero_count=first.zero_count + second.zero_count,
    )


def count(sketch: LatencySketch) -> int:
    """Return how many values the sketch holds."""
    return sketch.zero_count + sum(sketch.counts.values())


def buckets(sketch: LatencySketch) -> list[tuple[float, float, int]]:
    """Return from and to of each bucket in milliseconds and its count, in rising order; zeros are in none."""
    growth = _growth(sketch.relative_error)
    return [(growth ** (i - 1), growth**i, n) for i, n in sorted(sketch.counts.items())]


def quantile(sketch: LatencySketch, q: float) -> float | None:
    """Return the value of rank ``floor(q (n - 1))``, within the relative error.

    Args:
        sketch: The counts.
        q: Quantile from 0 to 1.

    Returns:
        Milliseconds; ``None`` when the sketch is empty.

    Raises:
        ValueError: If ``q`` lies outside 0 to 1.
    """
    if not 0 <= q <= 1:
        raise ValueError(f"a quantile lies from 0 to 1, not {q}")
    n = count(sketch)
    if n == 0:
        return None
    rank = int(q * (n - 1))
    seen = sketch.zero_count
    if rank < seen:
        return 0.0
    growth = _growth(sketch.relative_error)
    index = 0
    for index in sorted(sketch.counts):
        seen += sketch.counts[index]
        if rank < seen:
            break
    return 2 * growth**index / (growth + 1)


def _growth(relative_error: float) -> float:
    if not 0 < relative_error < 1:
        raise ValueError(f"a relative error lies between 0 and 1, not {relative_error}")
    return (1 + relative_error) / (1 - relative_error)


class LatencyCollector:
    """Collects latencies call by call, with bounded memory.

    Args:
        keep_raw: Values kept for exact percentiles; beyond them only the sketch
            and the mean remain. Sorting the default takes about 30 ms, which a
            block's end may take (law 8).
        relative_error: Of the sketch.
    """

    def __init__(self, keep_raw: int = 100_000, *, relative_error: float = RELATIVE_ERROR) -> None:
        """Start empty."""
        self._raw: array[float] | None = array("d")
        self._keep_raw = keep_raw
        self._relative_error = relative_error
        self._counts: dict[int, int] = {}
        self._zeros = 0
        self._n = 0
        self._sum = 0.0

    def add(self, values_ms: Sequence[float]) -> None:
        """Take further latencies.

        Raises:
            ValueError: If a value is negative or not finite; then none is taken.
        """
        more = sketch_of(values_ms, relative_error=self._relative_error)
        for index, n in more.counts.items():
            self._counts[index] = self._counts.get(index, 0) + n
        self._zeros += more.zero_count
        self._n += len(values_ms)
        self._sum += math.fsum(values_ms)
        if self._raw is not None:
            self._raw.extend(values_ms)
            if len(self._raw) > self._keep_raw:
                self._raw = None

    def latency(self, *, exact: bool = True) -> Latency | None:
        """Return what was collected; ``None`` when there is nothing.

        Args:
            exact: False to leave the sorting out, and the percentiles with it.
        """
        if self._n == 0:
            return None
        sketch = LatencySketch(
            relative_error=self._relative_error, counts=dict(self._counts), zero_count=self._zeros
        )
        if exact and self._raw is not None:
            return _exact(self._raw, sketch)
        return Latency(n=self._n, mean_ms=self._sum / self._n, sketch=sketch)
