"""What was measured on one arm, beside its energy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from carbonlens.compare.arms import Arm
from carbonlens.compare.gates import Measured, model_bytes
from carbonlens.compare.latency import percentile_of, sketch_of
from carbonlens.compare.observation import Observation
from carbonlens.compare.quality import Outcomes, quality_of
from carbonlens.compare.rates import PEAK_MEMORY, rate_of, throughput
from carbonlens.compare.regularity import first_round
from carbonlens.compare.statistics import sample
from carbonlens.domain.comparison import ArmMetrics
from carbonlens.domain.estimate import Estimate, unknown


def metrics_of(measured: Measured, outcomes: Outcomes) -> ArmMetrics:
    """Return the metrics of one arm.

    Args:
        measured: The arm with its quality figures.
        outcomes: Per-example outcomes by hash.
    """
    arm = measured.arm
    seen = [r.conditions for r in arm.runs if r.conditions is not None]
    loads = [c.load_1m for c in seen if c.load_1m is not None]
    steals = [c.steal_s for c in seen if c.steal_s is not None]
    throttled = [c.throttled_s for c in seen if c.throttled_s is not None]
    energy = arm.series["energy_j"].mean
    return ArmMetrics(
        energy_per_unit_j=energy,
        boundary=arm.boundary,
        cpu_s_per_unit=_over_rounds(arm.observations, _cpu_s_per_unit, "s"),
        throughput_per_s=_over_rounds(arm.observations, throughput, "1/s"),
        latency_p50_ms=percentile_of(arm, "latency_p50_ms"),
        latency_p95_ms=percentile_of(arm, "latency_p95_ms"),
        latency_p99_ms=percentile_of(arm, "latency_p99_ms"),
        model_bytes=model_bytes(arm),
        macs_per_unit=max((r.macs_per_unit for r in arm.runs if r.macs_per_unit is not None), default=None),
        quality=quality_of(arm, measured.recorded, outcomes),
        load_1m_max=max(loads, default=None),
        steal_s=sum(steals) if steals else None,
        rounds=len(arm.observations),
        energy_by_round_j=arm.series["energy_j"].values,
        first_round=first_round(arm.series["energy_j"].values) if _has_order(arm) else None,
        dynamic_per_unit_j=_as_sure_as(energy, _over_rounds(arm.observations, _dynamic_j, "J")),
        power_w=replace(rate_of(arm, "power_w"), grade=energy.grade),
        peak_memory_bytes=rate_of(arm, PEAK_MEMORY),
        throttled_s=max(throttled, default=None),
        latency=sketch_of(arm),
    )


def _has_order(arm: Arm) -> bool:
    """Return whether numbers or times tell which round was the first."""
    return all(o.repeat is not None or o.runs[0].start_us is not None for o in arm.observations)


def _dynamic_j(observation: Observation) -> float | None:
    """Return the energy above idle power per unit, where every reading tells it."""
    parts = [x.dynamic_j for r in observation.runs for x in r.energy]
    known = [float(p) for p in parts if p is not None]
    return math.fsum(known) / observation.units if known and len(known) == len(parts) else None


def _as_sure_as(energy: Estimate, dynamic: Estimate) -> Estimate:
    """Return a part of an energy with the grade and the relative common errors of the whole."""
    if dynamic.value is None or not energy.value:
        return dynamic
    share = dynamic.value / energy.value
    sources = {name: u * share for name, u in energy.u_by_source.items()}
    bounds = (None, None) if energy.has_unknown_width else dynamic.bounds
    return replace(dynamic, grade=energy.grade, u_by_source=sources, bounds=bounds)


def _over_rounds(
    observations: Sequence[Observation], read: Callable[[Observation], float | None], unit: str
) -> Estimate:
    """Return the mean over rounds with its t interval; unknown if a round lacks it."""
    values = [v for v in map(read, observations) if v is not None]
    if len(values) < len(observations):
        return unknown(unit)
    over = sample(values)
    u_random = over.u_95
    bounds = (None, None) if u_random is None else None
    return Estimate(value=over.mean, unit=unit, grade="B", u_random=u_random or 0.0, bounds=bounds)


def _cpu_s_per_unit(observation: Observation) -> float | None:
    seconds = [None if r.conditions is None else r.conditions.cpu_s for r in observation.runs]
    known = [s for s in seconds if s is not None]
    return math.fsum(known) / observation.units if len(known) == len(seconds) else None
