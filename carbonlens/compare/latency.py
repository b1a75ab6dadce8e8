"""Latency of an arm: merged sketches, else the range of exact percentiles.

Percentiles are never averaged. Sketches of all rounds merge to the percentile
of all calls. Without them the middle round's percentile stands for the arm
(the upper of two middles, because percentiles are not averaged), and the range
over at least six rounds is its interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Final

from carbonlens.compare.arms import Arm
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.latency import Latency, LatencySketch
from carbonlens.domain.units import Z_95
from carbonlens.signals import latency as sketches

PERCENTILES: Final = {"latency_p50_ms": 0.50, "latency_p95_ms": 0.95, "latency_p99_ms": 0.99}

CALLS_NEEDED: Final = {"latency_p50_ms": 5, "latency_p95_ms": 59, "latency_p99_ms": sketches.MIN_N_P99}
"""Fewest calls whose largest bounds the percentile from above: ``q**n <= 0.05``."""

_ROUNDS_OF_RANGE: Final = 6
"""Fewest rounds whose range holds their median with 95 %: ``1 - 2 * 0.5**6`` is 96.9 %."""


def percentile_of(arm: Arm, metric: str, z: float = Z_95) -> Estimate:
    """Return a latency percentile of an arm, in milliseconds.

    Args:
        arm: The arm.
        metric: ``latency_p50_ms``, ``latency_p95_ms`` or ``latency_p99_ms``.
        z: Normal quantile of the interval; the range over rounds is as it is.
    """
    stated = _stated(arm)
    if not stated:
        return unknown("ms")
    merged = _merged(stated)
    if merged is not None:
        return _of_sketch(merged, PERCENTILES[metric], z)
    values = sorted(v for v in (getattr(x, metric.removeprefix("latency_")) for x in stated) if v is not None)
    if not values or len(values) < len(stated):
        return unknown("ms")
    bounds = (values[0], values[-1]) if len(values) >= _ROUNDS_OF_RANGE else (None, None)
    return Estimate(value=values[len(values) // 2], unit="ms", bounds=bounds)


def sketch_of(arm: Arm) -> LatencySketch | None:
    """Return the latencies of all calls of an arm, merged; ``None`` where a round keeps no sketch."""
    stated = _stated(arm)
    return _merged(stated) if stated else None


def calls(arm: Arm) -> int | None:
    """Return the number of timed calls of an arm; ``None`` when a round does not say."""
    counts = [None if r.latency is None else r.latency.n for r in arm.runs]
    known = [c for c in counts if c is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _stated(arm: Arm) -> list[Latency]:
    """Return the latencies of the rounds; none where one does not tell its own."""
    found = [r.latency for r in arm.runs]
    stated = [x for x in found if x is not None]
    return stated if len(stated) == len(found) else []


def _merged(stated: Sequence[Latency]) -> LatencySketch | None:
    parts = [x.sketch for x in stated if x.sketch is not None]
    if len(parts) < len(stated) or len({p.relative_error for p in parts}) != 1:
        return None
    return reduce(sketches.merge, parts)


def _of_sketch(sketch: LatencySketch, q: float, z: float) -> Estimate:
    """Return a quantile with the interval of its order statistics.

    The rank of a quantile is binomial; its normal range is read from the
    sketch and widened by the sketch's own error.
    """
    n = sketches.count(sketch)
    value = sketches.quantile(sketch, q)
    if value is None:
        return unknown("ms")
    half = z * math.sqrt(q * (1 - q) / n)
    low = sketches.quantile(sketch, max(0.0, q - half))
    high = sketches.quantile(sketch, min(1.0, q + half))
    a = sketch.relative_error
    return Estimate(
        value=value,
        unit="ms",
        bounds=(None if low is None else low * (1 - a), None if high is None else high * (1 + a)),
    )


def too_few_calls(arm: Arm, metric: str) -> str | None:
    """Say why a percentile is not supported by its calls; ``None`` where it is.

    A table states no counts; a P50 or P95 then rests on the range over the rounds.

    Args:
        arm: The arm.
        metric: ``latency_p50_ms``, ``latency_p95_ms`` or ``latency_p99_ms``.
    """
    needed, n = CALLS_NEEDED[metric], calls(arm)
    if n is None:
        return f"a P99 needs {needed} calls, and their number is not recorded" if needed > 100 else None
    return f"{counted(n, 'call')}, and {needed} are needed" if n < needed else None
