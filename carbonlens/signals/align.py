"""Align: how far one power trace lags behind another, and the line between them.

The lag is the shift at which a straight line from one trace to the other leaves
the least squares; gain and offset are that line's. Both need a load that changes.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Final

import msgspec

from carbonlens.domain.units import US_PER_S, Z_95
from carbonlens.signals.profile import Stretches

MOST_MISSING: Final = 0.2
"""Share of the points that a lag may lack beside the lag with the most: a few points lie on any line."""

PARTS: Final = 5
"""Parts of a trace that are left out in turn to see how firmly its lag stands."""


class Running:
    """Energy since the start of a profile, looked up in logarithmic time."""

    def __init__(self, profile: Stretches) -> None:
        """Sum the stretches once."""
        self._profile = profile
        self._joules = (0.0, *accumulate(profile.joules))
        lengths = (b - a for a, b in zip(profile.starts_us, profile.ends_us, strict=True))
        self._known_us = (0.0, *accumulate(lengths))

    def _until(self, t_us: float) -> tuple[float, float]:
        i = bisect_right(self._profile.starts_us, t_us) - 1
        if i < 0:
            return 0.0, 0.0
        low, high = self._profile.starts_us[i], self._profile.ends_us[i]
        share = (min(t_us, high) - low) / (high - low)
        return (
            self._joules[i] + share * self._profile.joules[i],
            self._known_us[i] + share * (high - low),
        )

    def mean_w(self, start_us: float, end_us: float) -> float | None:
        """Return the mean power between two times; ``None`` unless all of it is known."""
        (joules, known), (joules_0, known_0) = self._until(end_us), self._until(start_us)
        # Times near 1e15 microseconds are good to about a quarter of one.
        if known - known_0 < (end_us - start_us) - 1:
            return None
        return (joules - joules_0) * US_PER_S / (end_us - start_us)


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """Least-squares line ``y = level + gain (x - pivot)``.

    About the mean ``pivot``, level and gain err independently.

    Attributes:
        u_level: Standard uncertainty of the level.
        u_gain: Standard uncertainty of the gain.
        residual: Standard deviation about the line.
        explained: Share of the variance of y that the line explains (r squared).
        n: Number of points.
        n_free: Number of independent points, after the residuals' own correlation.
    """

    gain: float
    level: float
    pivot: float
    u_gain: float
    u_level: float
    residual: float
    explained: float
    n: int
    n_free: float


def fit_line(x: Sequence[float], y: Sequence[float]) -> Line | None:
    """Return the least-squares line; ``None`` if fewer than three points or no spread in x.

    Successive residuals are alike when the load has a structure of its own, so
    the number of independent points is ``n (1 - r) / (1 + r)`` with their
    correlation r (first-order autoregression).

    Args:
        x: What is known.
        y: What is wanted, one a point, in order of time.
    """
    n = len(x)
    if n < 3:
        return None
    mean_x, mean_y = math.fsum(x) / n, math.fsum(y) / n
    sxx = math.fsum((a - mean_x) ** 2 for a in x)
    if not sxx:
        return None
    gain = math.fsum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / sxx
    rest = [b - mean_y - gain * (a - mean_x) for a, b in zip(x, y, strict=True)]
    squares = math.fsum(r * r for r in rest)
    alike = math.fsum(a * b for a, b in pairwise(rest)) / squares if squares else 0.0
    n_free = max(n * (1 - max(alike, 0.0)) / (1 + max(alike, 0.0)), 3.0)
    residual = math.sqrt(squares / (n - 2))
    inflated = residual * math.sqrt(n / n_free)
    syy = math.fsum((b - mean_y) ** 2 for b in y)
    return Line(
        gain=gain,
        level=mean_y,
        pivot=mean_x,
        u_gain=inflated / math.sqrt(sxx),
        u_level=inflated / math.sqrt(n),
        residual=residual,
        explained=1 - squares / syy if syy else 0.0,
        n=n,
        n_free=n_free,
    )


class Alignment(msgspec.Struct, frozen=True, kw_only=True):
    """A device's trace put on a reference's time.

    Attributes:
        lag_us: How much later the device tells what the reference told.
        u_lag_us: Standard uncertainty of the lag.
        line: From the device's power to the reference's, at that lag.
    """

    lag_us: float
    u_lag_us: float
    line: Line


def align(device: Stretches, reference: Stretches, lags_us: Sequence[float]) -> Alignment | None:
    """Return the lag of the device behind the reference, and the line between them.

    The lag rests on the few moments at which the load changes, so its uncertainty
    is that of leaving out one part of the trace after the other (jackknife over
    ``PARTS`` groups), and at least what a likelihood ratio and the step allow.

    Args:
        device: Held power of the device, one stretch an update.
        reference: Held power of the reference.
        lags_us: Lags to try, rising and evenly spaced.

    Returns:
        ``None`` if at no lag three updates lie within the reference.
    """
    running = Running(reference)
    points = {lag: _points(device, running, lag) for lag in lags_us}
    lines = _with_enough({lag: line for lag, p in points.items() if (line := fit_line(*_columns(p)))})
    if not lines:
        return None
    best = _least(lines)
    # Lags whose fit a likelihood ratio cannot tell from the best at 95 % (chi squared, 1 degree).
    limit = lines[best].residual ** 2 * (1 + Z_95**2 / lines[best].n_free)
    alike = [lag for lag, line in lines.items() if line.residual**2 <= limit]
    step = lags_us[1] - lags_us[0] if len(lags_us) > 1 else 0.0
    least = math.hypot((max(alike) - min(alike)) / 2 / Z_95, step / math.sqrt(12))
    return Alignment(lag_us=best, u_lag_us=max(least, _jackknife(points)), line=lines[best])


def _points(device: Stretches, running: Running, lag_us: float) -> list[tuple[float, float] | None]:
    found: list[tuple[float, float] | None] = []
    for start, end, joules in zip(device.starts_us, device.ends_us, device.joules, strict=True):
        reference_w = running.mean_w(start - lag_us, end - lag_us)
        device_w = joules * US_PER_S / (end - start)
        found.append((device_w, reference_w) if reference_w is not None else None)
    return found


def _columns(points: Sequence[tuple[float, float] | None]) -> tuple[list[float], list[float]]:
    known = [point for point in points if point is not None]
    return [x for x, _ in known], [y for _, y in known]


def _with_enough(lines: Mapping[float, Line]) -> dict[float, Line]:
    """Return the lags that lack few points beside the one with the most."""
    enough = (1 - MOST_MISSING) * max((line.n for line in lines.values()), default=0)
    return {lag: line for lag, line in lines.items() if line.n >= enough}


def _least(lines: Mapping[float, Line]) -> float:
    return min(lines, key=lambda lag: lines[lag].residual)


def _jackknife(points: Mapping[float, Sequence[tuple[float, float] | None]]) -> float:
    """Return the standard uncertainty of the lag from leaving out each part in turn."""
    found = []
    n = max(len(p) for p in points.values())
    for part in range(PARTS):
        low, high = n * part // PARTS, n * (part + 1) // PARTS
        kept = {lag: fit_line(*_columns([*p[:low], *p[high:]])) for lag, p in points.items()}
        lines = _with_enough({lag: line for lag, line in kept.items() if line is not None})
        if lines:
            found.append(_least(lines))
    mean = math.fsum(found) / len(found) if found else 0.0
    return math.sqrt((PARTS - 1) / PARTS * math.fsum((lag - mean) ** 2 for lag in found))
