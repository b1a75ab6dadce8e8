"""Gates: conditions a step must meet besides saving energy.

A gate passes when the whole 95 % interval meets it, fails when the whole
interval does not, and is undetermined otherwise or when something is missing.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from carbonlens.compare.arms import Arm
from carbonlens.compare.latency import CALLS_NEEDED, calls, percentile_of
from carbonlens.compare.quality import Outcomes, find_quality, independent_difference, loss, quality_of
from carbonlens.domain.comparison import GateResult
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.run import Quality
from carbonlens.domain.study import Gate
from carbonlens.domain.units import GateOutcome


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """An arm with the quality figures recorded beside its measured runs."""

    arm: Arm
    recorded: tuple[Quality, ...] = ()


def check_gates(
    gates: Sequence[Gate], baseline: Measured, step: Measured | None, outcomes: Outcomes
) -> tuple[GateResult, ...]:
    """Return the outcome of every gate for one step.

    Args:
        gates: The study's gates.
        baseline: What losses are measured against.
        step: The step; ``None`` when it was not measured.
        outcomes: Per-example outcomes by hash.
    """
    return tuple(_check(g, baseline, step, outcomes) for g in gates)


def _check(gate: Gate, baseline: Measured, step: Measured | None, outcomes: Outcomes) -> GateResult:
    if step is None:
        return _result(gate, unknown("1"), "undetermined", "the step was not measured")
    if gate.metric == "model_bytes":
        observed, reason = _model_bytes(gate, baseline.arm, step.arm)
    elif gate.metric in CALLS_NEEDED:
        observed, reason = _latency(gate, baseline.arm, step.arm)
    elif gate.kind == "max_loss":
        first = find_quality(baseline.arm, baseline.recorded, gate.metric)
        second = find_quality(step.arm, step.recorded, gate.metric)
        observed, reason = loss(first, second, outcomes)
    else:
        found = quality_of(step.arm, step.recorded, outcomes).get(gate.metric, unknown("1"))
        observed, reason = found, None if found.value is not None else "not recorded"
    outcome = _outcome(gate, observed) if reason is None else "undetermined"
    if outcome == "undetermined" and reason is None:
        reason = "its interval holds the limit" if observed.low is not None else "it has no interval"
    return _result(gate, observed, outcome, reason)


def _outcome(gate: Gate, observed: Estimate) -> GateOutcome:
    low, high = observed.low, observed.high
    if low is None or high is None:
        return "undetermined"
    if gate.kind == "min_value":
        if low >= gate.limit:
            return "pass"
        return "fail" if high < gate.limit else "undetermined"
    # A loss must stay under its limit; a value may reach it.
    if high < gate.limit or (gate.kind == "max_value" and high <= gate.limit):
        return "pass"
    return "fail" if low > gate.limit else "undetermined"


def _model_bytes(gate: Gate, baseline: Arm, step: Arm) -> tuple[Estimate, str | None]:
    mine = model_bytes(step)
    if mine is None:
        return unknown("B"), "the size of the model is not recorded"
    if gate.kind != "max_loss":
        return _exact(float(mine), "B", signed=False), None
    first = model_bytes(baseline)
    if first is None:
        return unknown("B"), "the size of the baseline's model is not recorded"
    return _exact(float(mine - first), "B", signed=True), None


def model_bytes(arm: Arm) -> int | None:
    """Return the size of the arm's model; the largest where rounds differ."""
    return max((r.model_bytes for r in arm.runs if r.model_bytes is not None), default=None)


def _latency(gate: Gate, baseline: Arm, step: Arm) -> tuple[Estimate, str | None]:
    mine = percentile_of(step, gate.metric)
    reason = _too_few(gate, step)
    if gate.kind != "max_loss":
        return mine, reason
    first = percentile_of(baseline, gate.metric)
    reason = reason or _too_few(gate, baseline)
    if mine.value is None or first.value is None:
        return unknown("ms", signed=True), reason or "not recorded in both arms"
    value = mine.value - first.value
    if mine.low is None or mine.high is None or first.low is None or first.high is None:
        return Estimate(value=value, unit="ms", signed=True, bounds=(None, None)), reason
    ends = independent_difference(mine.value, (mine.low, mine.high), first.value, (first.low, first.high))
    return Estimate(value=value, unit="ms", signed=True, bounds=ends), reason


def _too_few(gate: Gate, arm: Arm) -> str | None:
    """Say why a percentile is not supported by its calls.

    A table states no counts; a P50 or P95 then rests on the range over the rounds.
    """
    needed, n = CALLS_NEEDED[gate.metric], calls(arm)
    if n is None:
        return f"a P99 needs {needed} calls, and their number is not recorded" if needed > 100 else None
    return f"{n} calls, and {needed} are needed" if n < needed else None


def _exact(value: float, unit: str, *, signed: bool) -> Estimate:
    return Estimate(value=value, unit=unit, signed=signed, bounds=(value, value))


def _result(gate: Gate, observed: Estimate, outcome: GateOutcome, reason: str | None) -> GateResult:
    return GateResult(
        name=gate.name,
        metric=gate.metric,
        outcome=outcome,
        observed=observed,
        limit=gate.limit,
        kind=gate.kind,
        reason=reason,
    )
