"""The machine-readable shape of a comparison, which outside scripts rely on.

Fields may be added; none is renamed. What is unknown is null beside its state;
no number is ever NaN or infinite, and no text holds half a letter (a lone surrogate):
JSON knows neither.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, get_args

import msgspec

from carbonlens.domain.comparison import (
    Amounts,
    ArmMetrics,
    AttributionMethod,
    BreakEven,
    Comparison,
    Effect,
    GateResult,
    Orders,
    StepResult,
)
from carbonlens.domain.estimate import Estimate
from carbonlens.reporting.names import without_halves

SCHEMA: Final = "carbonlens/compare/1"

_AMOUNTS: Final = ("energy_j", "emissions_location_kg", "emissions_market_kg", "embodied_kg", "cost")
_PARTS: Final = {
    "j": "energy_j",
    "location_kg": "emissions_location_kg",
    "market_kg": "emissions_market_kg",
    "embodied_kg": "embodied_kg",
    "cost": "cost",
}


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as ``compare --json`` prints it.

    Args:
        comparison: The result of ``compare_study``.
    """
    c = comparison
    shape = {
        "schema": SCHEMA,
        "study": c.study.name,
        "title": c.study.title,
        "baseline": c.study.baseline,
        "unit": c.study.unit,
        "basis": c.basis,
        "volume_units": c.study.volume_units,
        "volume_period": c.study.volume_period,
        "units_per_day": c.study.per_day,
        "margin": c.study.margin,
        "mode": c.mode,
        "baseline_metrics": None if c.baseline_metrics is None else _metrics(c.baseline_metrics),
        "baseline_amounts": _amounts(c.baseline_amounts),
        "final_amounts": _amounts(c.final_amounts),
        "attribution_method": c.attribution_method,
        "orders": _orders(c.orders),
        "steps": [_step(s, c) for s in c.steps],
        "total": {
            "path": list(c.path),
            "savings": _amounts(c.total),
            "vs_baseline": _effect(c.total_effect),
            "gates": [_gate(g) for g in c.total_gates],
            "decision": c.total_decision,
        },
        "interaction_j": estimate_json(c.interaction_j),
        "effort": {
            "baseline": _amounts(c.baseline_effort),
            "accepted": _amounts(c.accepted_effort),
            "rejected": _amounts(c.rejected_effort),
        },
        "break_even": [_break_even(b) for b in c.break_even],
        "pareto": [msgspec.to_builtins(p) for p in c.pareto],
        "vector": _vector(c),
        "environment": dict(c.environment),
        "findings": [msgspec.to_builtins(f) for f in c.findings],
    }
    encodable: dict[str, Any] = _encodable(shape)
    return encodable


def _step(step: StepResult, comparison: Comparison) -> dict[str, Any]:
    return {
        "step": step.step,
        "title": step.title,
        "on": list(step.on) if step.on_known else None,
        "measured_on": step.measured_on,
        "status": step.status,
        "energy_per_unit_j": None if step.metrics is None else estimate_json(step.metrics.energy_per_unit_j),
        "vs_previous": _effect(step.vs_previous),
        "vs_baseline": _effect(step.vs_baseline),
        "savings": _amounts(step.savings),
        "attribution": _attribution(step, comparison),
        "would_have": _amounts(step.would_have),
        "verdict": step.verdict,
        "gates": [_gate(g) for g in step.gates],
        "decision": step.decision,
        "reason": step.reason,
        "reasons": list(step.reasons),
        "metrics": None if step.metrics is None else _metrics(step.metrics),
        "amounts": _amounts(step.amounts),
        "effort": _amounts(step.effort),
        "break_even": [_break_even(b) for b in step.break_even],
        "error": step.error,
    }


def _attribution(step: StepResult, comparison: Comparison) -> dict[str, Any]:
    """Return the step's part under the name of how it was made, null under the others.

    What is a mean over the orders that happen to be measured is never called Shapley.
    """
    method = comparison.attribution_method
    parts: dict[str, Any] = {}
    for name in get_args(AttributionMethod):
        parts |= _parts(name, step.attribution if name == method else None)
    found = step.order_range
    alone = step.savings if comparison.mode == "lattice" else None
    return {
        **parts,
        "order_range_j": None if found is None else {"low": found.low_j, "high": found.high_j},
        "leave_one_in_j": None if alone is None else estimate_json(alone.energy_j),
        "leave_one_out_j": None if step.leave_one_out is None else estimate_json(step.leave_one_out.energy_j),
    }


def _orders(orders: Orders | None) -> dict[str, Any] | None:
    if orders is None:
        return None
    return {"measured": orders.measured, "possible": orders.possible, "coverage": orders.coverage}


def _effect(effect: Effect | None) -> dict[str, Any] | None:
    if effect is None:
        return None
    return {
        "reference": effect.reference,
        "ratio": estimate_json(effect.ratio),
        "p_value": effect.p_value,
        "p_holm": effect.p_holm,
        "verdict": effect.verdict,
        "n_rounds": effect.n_rounds,
        "minimum_detectable": effect.minimum_detectable,
        "method": effect.method,
        "drift_per_round": effect.drift_per_round,
        "drift_p": effect.drift_p,
        "outlier_rounds": list(effect.outlier_rounds),
    }


def _amounts(amounts: Amounts | None) -> dict[str, Any]:
    """Return all measures, null where there is nothing: always an object."""
    return {name: None if amounts is None else estimate_json(getattr(amounts, name)) for name in _AMOUNTS}


def _parts(prefix: str, amounts: Amounts | None) -> dict[str, Any]:
    return {
        f"{prefix}_{suffix}": None if amounts is None else estimate_json(getattr(amounts, name))
        for suffix, name in _PARTS.items()
    }


def _gate(gate: GateResult) -> dict[str, Any]:
    return {
        "name": gate.name,
        "outcome": gate.outcome,
        "metric": gate.metric,
        "kind": gate.kind,
        "observed": estimate_json(gate.observed),
        "limit": gate.limit,
        "reason": gate.reason,
        "p_mcnemar": gate.p_value,
        "bootstrap": None if gate.bootstrap is None else list(gate.bootstrap),
    }


def _metrics(metrics: ArmMetrics) -> dict[str, Any]:
    return {
        "energy_per_unit_j": estimate_json(metrics.energy_per_unit_j),
        "boundary": metrics.boundary,
        "cpu_s_per_unit": estimate_json(metrics.cpu_s_per_unit),
        "throughput_per_s": estimate_json(metrics.throughput_per_s),
        "latency_p50_ms": estimate_json(metrics.latency_p50_ms),
        "latency_p95_ms": estimate_json(metrics.latency_p95_ms),
        "latency_p99_ms": estimate_json(metrics.latency_p99_ms),
        "model_bytes": metrics.model_bytes,
        "macs_per_unit": metrics.macs_per_unit,
        "quality": {name: estimate_json(value) for name, value in metrics.quality.items()},
        "load_1m_max": metrics.load_1m_max,
        "steal_s": metrics.steal_s,
        "rounds": metrics.rounds,
        "energy_by_round_j": list(metrics.energy_by_round_j),
        "first_round": estimate_json(metrics.first_round),
        "dynamic_per_unit_j": estimate_json(metrics.dynamic_per_unit_j),
        "power_w": estimate_json(metrics.power_w),
        "peak_memory_bytes": estimate_json(metrics.peak_memory_bytes),
        "throttled_s": metrics.throttled_s,
    }


def _break_even(one: BreakEven) -> dict[str, Any]:
    return {
        "measure": one.measure,
        "outcome": one.outcome,
        "units": estimate_json(one.units),
        "days": estimate_json(one.days),
        "effort": estimate_json(one.effort),
        "saving_per_unit": estimate_json(one.saving_per_unit),
    }


def _vector(comparison: Comparison) -> dict[str, Any]:
    stated: dict[str, Any] = msgspec.to_builtins(comparison.vector)
    return {**stated, "example": comparison.vector.example}


def estimate_json(estimate: Estimate | None) -> dict[str, Any] | None:
    """Return an estimate as JSON holds it, without a number that no JSON knows.

    Args:
        estimate: Any; nothing gives null.
    """
    if estimate is None:
        return None
    shape = estimate.as_json()
    is_number = estimate.value is not None and math.isfinite(estimate.value)
    if estimate.state == "unknown" or (estimate.value is not None and not is_number):
        # A difference of lower bounds bounds nothing, and nobody knows what no float holds.
        return {**shape, "value": None, "low": None, "high": None, "state": "unknown"}
    return shape


def _encodable(shape: Any) -> Any:  # noqa: ANN401 - a JSON value of any kind
    """Return a value without what JSON has not: numbers that are none, halves of letters in names."""
    if isinstance(shape, float):
        return shape if math.isfinite(shape) else None
    if isinstance(shape, str):
        return without_halves(shape)
    if isinstance(shape, Mapping):
        return {_encodable(key): _encodable(value) for key, value in shape.items()}
    if isinstance(shape, list | tuple):
        return [_encodable(value) for value in shape]
    return shape
