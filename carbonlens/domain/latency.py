"""Latency: a mergeable sketch beside exact percentiles where they are known."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class LatencySketch(msgspec.Struct, frozen=True, kw_only=True):
    """Counts per logarithmic bucket; bucket ``i`` holds ``(g**(i-1), g**i]`` ms.

    With ``g = (1 + a) / (1 - a)`` the midpoint ``2 g**i / (g + 1)`` is within a
    relative error ``a`` of every value in the bucket (DDSketch, Masson et al.
    2019). Sketches of the same ``a`` merge by adding counts.
    """

    relative_error: float
    counts: Mapping[int, int]
    zero_count: int = 0


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """Latency of one call, in milliseconds, over ``n`` calls.

    Percentiles are exact when stated; they are never averaged. A P99 needs at
    least 299 calls to be bounded at 95 % confidence, so it is ``None`` below.
    """

    n: int | None = None
    mean_ms: float | None = None
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    sketch: LatencySketch | None = None
