"""Scores of an integrator against the external meter: what the bench prints and the tests hold."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from carbonlens.signals.calibrate import Calibration, calibrate
from carbonlens.signals.integrate import integrate_power
from carbonlens.signals.sensor import Sensor
from tests.signals.meter_traces import (
    PERIOD_US,
    Trace,
    change_point_trapezoid,
    trapezoid,
    windows,
)

SHORTEST_S, LONGEST_S = 0.1, 5.0

SENSOR = Sensor(kind="instant", update_period_us=PERIOD_US)
"""A board of which only the update period is known."""

AVERAGE = Sensor(kind="average", update_period_us=PERIOD_US, window_us=1_000_000)
"""``power.draw`` of an RTX 3090: a mean over the second before."""

METER_U = 0.005
"""Relative standard uncertainty of the meter; its maker states none, 1 % at 95 % is assumed."""


@dataclass(frozen=True)
class Score:
    """Errors over many windows, as shares of the meter's energy.

    ``half_width`` is the median of (high - low) / 2.
    """

    n: int
    median: float
    bias: float
    p95: float
    covered: float
    half_width: float
    trapezoid: float
    change_point: float

    @property
    def width_ratio(self) -> float:
        return self.half_width / self.p95


def score(trace: Trace, sensor: Sensor, spans: list[tuple[float, float]]) -> Score:
    errors, held, halves, lines, changed = [], [], [], [], []
    for start, end in spans:
        truth = trace.truth(start, end)
        energy = integrate_power(trace.t_us, trace.power_w, start, end, sensor).estimate
        errors.append(energy.value / truth - 1)
        held.append(energy.low <= truth <= energy.high)
        halves.append((energy.high - energy.low) / 2 / truth)
        lines.append(abs(trapezoid(trace, start, end) / truth - 1))
        changed.append(abs(change_point_trapezoid(trace, start, end) / truth - 1))
    size = np.abs(errors)
    return Score(
        n=len(spans),
        median=float(np.median(size)),
        bias=float(np.mean(errors)),
        p95=float(np.percentile(size, 95)),
        covered=float(np.mean(held)),
        half_width=float(np.median(halves)),
        trapezoid=float(np.median(lines)),
        change_point=float(np.median(changed)),
    )


def lengths_s(n: int, longest_s: float = LONGEST_S, *, even: str = "length", seed: int = 1) -> np.ndarray:
    """Random lengths from 0.1 s, even over the length or over its logarithm."""
    rng = np.random.default_rng(seed)
    if even == "length":
        return rng.uniform(SHORTEST_S, longest_s, n)
    return np.exp(rng.uniform(np.log(SHORTEST_S), np.log(longest_s), n))


def halves(trace: Trace) -> tuple[tuple[float, float], tuple[float, float]]:
    """The two halves of the time that log and meter share."""
    start, end = trace.span_us
    middle = (start + end) / 2
    return (start, middle), (middle, end)


def fitted(trace: Trace, span_us: tuple[float, float], sensor: Sensor) -> Calibration:
    """Calibrate on the samples of one span."""
    inside = (trace.t_us >= span_us[0]) & (trace.t_us < span_us[1])
    return calibrate(
        (trace.t_us[inside].tolist(), trace.power_w[inside].tolist()),
        (trace.meter_us.tolist(), trace.meter_w.tolist()),
        sensor,
        meter_u=METER_U,
    )


def cross_scored(
    trace: Trace, fit_on: int, n: int, *, even: str = "length", sensor: Sensor = SENSOR
) -> tuple[Calibration, Score]:
    """Calibrate on one half and score on windows of the other one."""
    parts = halves(trace)
    found = fitted(trace, parts[fit_on], sensor)
    corrected = replace(trace, power_w=np.array(found.correct(trace.power_w.tolist()), float))
    span = parts[1 - fit_on]
    longest_s = min(LONGEST_S, (span[1] - span[0]) / 1e6 - 0.05)
    spans = windows(span, lengths_s(n, longest_s, even=even), seed=2)
    return found, score(corrected, found.applied_to(sensor), spans)
