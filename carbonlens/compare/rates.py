"""Rates of an arm that are means over rounds: throughput and power, and its largest memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from msgspec.structs import replace

from carbonlens.compare import statistics
from carbonlens.compare.arms import Arm
from carbonlens.compare.observation import Observation
from carbonlens.compare.statistics import Sample
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.run import Run

PEAK_MEMORY: Final = "peak_memory_bytes"


def seconds(run: Run) -> float | None:
    """Return the wall time of a run; ``None`` when unknown or none."""
    wall = run.conditions.wall_s if run.conditions is not None else run.duration_s
    return wall if wall is not None and wall > 0 else None


def throughput(observation: Observation) -> float | None:
    """Return functional units a second of wall time."""
    walls = [w for w in map(seconds, observation.runs) if w is not None]
    return observation.units / math.fsum(walls) if len(walls) == len(observation.runs) else None


def power(observation: Observation) -> float | None:
    """Return mean power in watts, at the boundary of the energy; ``None`` for a lower bound."""
    walls = [w for w in map(seconds, observation.runs) if w is not None]
    energy = observation.energy_j
    if energy.value is None or energy.state != "known" or len(walls) < len(observation.runs):
        return None
    return energy.value * observation.units / math.fsum(walls)


def _peak(observation: Observation) -> float | None:
    peaks = [None if r.conditions is None else r.conditions.peak_rss_bytes for r in observation.runs]
    known = [p for p in peaks if p is not None]
    return float(max(known)) if known and len(known) == len(peaks) else None


RATES: Final[Mapping[str, tuple[str, Callable[[Observation], float | None]]]] = {
    "throughput_per_s": ("1/s", throughput),
    "power_w": ("W", power),
    PEAK_MEMORY: ("B", _peak),
}
"""Unit and reader of each metric."""


def rate_of(arm: Arm, metric: str, confidence: float = 0.95) -> Estimate:
    """Return a rate of an arm with its interval.

    A mean has the t-interval of its rounds, and power also the error of its
    energy's sources. Memory is the largest peak, with the range over the rounds.

    Args:
        arm: The arm.
        metric: A key of ``RATES``.
        confidence: Of the interval.
    """
    unit, read = RATES[metric]
    values = [v for v in map(read, arm.observations) if v is not None]
    if len(values) < len(arm.observations):
        return unknown(unit)
    if metric == PEAK_MEMORY:
        bounds = (min(values), max(values)) if len(values) > 1 else (None, None)
        return Estimate(value=max(values), unit=unit, bounds=bounds)
    over = statistics.sample(values)
    energy = arm.series["energy_j"].mean
    shared = math.hypot(*energy.u_by_source.values()) / (energy.value or math.inf) * over.mean
    half = over.half_width(confidence, shared if metric == "power_w" else 0.0)
    ends = (None, None) if half is None else (max(0.0, over.mean - half), over.mean + half)
    return Estimate(value=over.mean, unit=unit, bounds=ends)


def log_ratio(baseline: Arm, step: Arm, metric: str) -> Sample | None:
    """Return ln(step / baseline) of a rate over the rounds; ``None`` where a round lacks it.

    Paired where both arms were measured in numbered rounds in common, else independent; an error of
    the energy's sources is common to both arms and cancels. Where none of the common rounds is left
    the scatter is unknown, and the number of rounds is 0.

    Args:
        baseline: What it is compared with.
        step: The step.
        metric: A key of ``RATES``.
    """
    read = RATES[metric][1]
    rows = []
    for arm in (step, baseline):
        values = [(o.repeat, read(o)) for o in arm.observations]
        logs = [(r, math.log(v)) for r, v in values if v is not None and v > 0]
        if len(logs) < len(values):
            return None
        rows.append(logs)
    mine, other = rows
    numbered = [{r: v for r, v in logs if r is not None} for logs in rows]
    in_rounds = all(len(n) == len(logs) for n, logs in zip(numbered, rows, strict=True))
    common = sorted(numbered[0].keys() & numbered[1].keys()) if in_rounds else []
    if common:
        return statistics.sample([numbered[0][r] - numbered[1][r] for r in common])
    apart = statistics.welch([(1.0, [v for _, v in mine]), (-1.0, [v for _, v in other])])
    is_lost = in_rounds and step.measured & baseline.measured
    return replace(apart, se=None, df=None, n=0) if is_lost else apart
