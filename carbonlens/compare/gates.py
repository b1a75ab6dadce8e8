"""Gates: conditions a step must meet besides saving energy.

A gate passes when the whole 95 % interval meets it, fails when the whole
interval does not, and is undetermined otherwise or when something is missing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from carbonlens.compare.arms import ROUNDS_NEEDED, Arm
from carbonlens.compare.latency import CALLS_NEEDED, percentile_of, too_few_calls
from carbonlens.compare.quality import (
    BARE,
    Outcomes,
    direction_of,
    find_quality,
    independent_difference,
    is_known,
    loss,
    paired_outcomes,
    quality_of,
    why_bare,
)
from carbonlens.compare.rates import PEAK_MEMORY, RATES, log_ratio, rate_of
from carbonlens.compare.retention import independent_ratio, mcnemar, paired_bootstrap, ratio, retention
from carbonlens.compare.statistics import normal_quantile
from carbonlens.domain.comparison import GateResult
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.run import Quality
from carbonlens.domain.study import Gate
from carbonlens.domain.units import GateOutcome

Against = Literal["nothing", "difference", "ratio", "retention"]
"""What is observed of a metric: itself, its loss against the baseline, its ratio to the baseline's,
or the share of the baseline's goodness that is kept (the inverse ratio where less is better)."""

Observed = tuple[Estimate, str | None]
"""A figure, and why nothing can be decided by it, if so."""

_AGAINST: dict[str, Against] = {
    "max_loss": "difference",
    "max_value": "nothing",
    "min_value": "nothing",
    "min_retention": "retention",
    "max_ratio": "ratio",
}
_MISSING: dict[str, str] = {
    "power_w": "the time or a part of the energy is not known in every round",
    "throughput_per_s": "the time is not recorded in every round",
    "peak_memory_bytes": "the peak of memory is not recorded in every round",
}


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
        baseline: What losses and ratios are measured against.
        step: The step; ``None`` when it was not measured.
        outcomes: Per-example outcomes by hash.
    """
    return tuple(_check(g, baseline, step, outcomes) for g in gates)


def observe_metric(
    metric: str,
    against: Against,
    baseline: Measured,
    step: Measured,
    outcomes: Outcomes,
    confidence: float = 0.95,
) -> Observed:
    """Return what is observed of a metric on a step.

    Args:
        metric: A quality name, a latency percentile, ``model_bytes``, or a rate.
        against: Itself, its loss, its ratio or what is kept of it; a loss is positive when
            things get worse: more of what should be less, or less of what should be more.
        baseline: What it is compared with.
        step: The step.
        outcomes: Per-example outcomes by hash.
        confidence: Of the two-sided interval.
    """
    z = normal_quantile(1 - (1 - confidence) / 2)
    if metric == "model_bytes":
        return _of_size(against, baseline.arm, step.arm)
    if metric in CALLS_NEEDED:
        return _of_latency(metric, against, baseline.arm, step.arm, z)
    if metric in RATES:
        return _of_rate(metric, against, baseline.arm, step.arm, confidence)
    if against == "nothing":
        found = quality_of(step.arm, step.recorded, outcomes).get(metric, unknown("1"))
        if found.value is None:
            return found, "not recorded"
        # A size is a property of the file; a bare figure of quality is one draw of unknown spread.
        if found.low is not None:
            return found, None
        figure = find_quality(step.arm, step.recorded, metric)
        bare = BARE if figure is None else why_bare(figure)
        return found, f"{bare}; how far it may be off is not known"
    first = find_quality(baseline.arm, baseline.recorded, metric)
    second = find_quality(step.arm, step.recorded, metric)
    observe = {"difference": loss, "ratio": ratio, "retention": retention}[against]
    return observe(first, second, outcomes, z)


def model_bytes(arm: Arm) -> int | None:
    """Return the size of the arm's model; the largest where rounds differ."""
    return max((r.model_bytes for r in arm.runs if r.model_bytes is not None), default=None)


def _check(gate: Gate, baseline: Measured, step: Measured | None, outcomes: Outcomes) -> GateResult:
    if step is None:
        return _result(gate, unknown("1"), "undetermined", "the step was not measured")
    observed, reason = observe_metric(gate.metric, _AGAINST[gate.kind], baseline, step, outcomes)
    outcome = _outcome(gate, observed) if reason is None else "undetermined"
    if outcome == "undetermined" and reason is None:
        reason = "its interval holds the limit" if observed.low is not None else "it has no interval"
    result = _result(gate, observed, outcome, reason)
    if not _is_share(gate.metric, baseline, step):
        result = replace(result, is_share=False)
    return _tested(result, gate, baseline, step, outcomes)


def _is_share(metric: str, *arms: Measured) -> bool:
    """Return whether no figure of a quality lies beyond 0 and 1."""
    figures = (find_quality(m.arm, m.recorded, metric) for m in arms)
    return all(q is None or q.value is None or 0 <= q.value <= 1 for q in figures)


def _tested(
    result: GateResult, gate: Gate, baseline: Measured, step: Measured, outcomes: Outcomes
) -> GateResult:
    """Add McNemar's test and the paired bootstrap where both arms saw the same examples."""
    if gate.kind not in ("max_loss", "min_retention"):
        return result
    figures = [find_quality(m.arm, m.recorded, gate.metric) for m in (baseline, step)]
    first, second = figures
    if first is None or second is None or not is_known(first) or not is_known(second):
        return result
    pair = paired_outcomes(first, second, outcomes)
    if pair is None or result.observed.value is None:
        return result
    bootstrap = None
    if gate.kind == "max_loss":
        low, high = paired_bootstrap(*pair)
        bootstrap = (low, high) if direction_of(first, second) else (-high, -low)
    return replace(result, p_value=mcnemar(*pair), bootstrap=bootstrap)


def _outcome(gate: Gate, observed: Estimate) -> GateOutcome:
    low, high = observed.low, observed.high
    if low is None or high is None:
        return "undetermined"
    if gate.kind in ("min_value", "min_retention"):
        if low >= gate.limit:
            return "pass"
        return "fail" if high < gate.limit else "undetermined"
    # A loss must stay under its limit; a value may reach it.
    if high < gate.limit or (gate.kind != "max_loss" and high <= gate.limit):
        return "pass"
    return "fail" if low > gate.limit else "undetermined"


def _of_size(against: Against, baseline: Arm, step: Arm) -> Observed:
    mine, first = model_bytes(step), model_bytes(baseline)
    if mine is None:
        return unknown("B"), "the size of the model is not recorded"
    if against == "nothing":
        return _exact(float(mine), "B", signed=False), None
    if first is None:
        return unknown("B"), "the size of the baseline's model is not recorded"
    if against == "difference":
        return _exact(float(mine - first), "B", signed=True), None
    if first == 0 or (against == "retention" and mine == 0):
        return unknown("1"), "a model without size has no ratio"
    return _exact(first / mine if against == "retention" else mine / first, "1", signed=False), None


def _of_latency(metric: str, against: Against, baseline: Arm, step: Arm, z: float) -> Observed:
    mine, first = percentile_of(step, metric, z), percentile_of(baseline, metric, z)
    reason = too_few_calls(step, metric) or _unsettled(step)
    if against == "nothing":
        return mine, reason
    return _two(mine, first, against, reason or too_few_calls(baseline, metric) or _unsettled(baseline))


def _of_rate(metric: str, against: Against, baseline: Arm, step: Arm, confidence: float) -> Observed:
    mine = rate_of(step, metric, confidence)
    reason = None if mine.value is not None else _MISSING[metric]
    is_settled = metric == PEAK_MEMORY  # Heat and load slow the work; they take no memory.
    if against == "nothing":
        return mine, reason or (None if is_settled else _unsettled(step) or _too_few(step))
    if not is_settled:
        reason = reason or _unsettled(step) or _unsettled(baseline)
    is_more_better = metric == "throughput_per_s"
    if is_settled or against == "difference":
        first = rate_of(baseline, metric, confidence)
        if not is_settled:
            reason = reason or _too_few(step) or _too_few(baseline)
        # More throughput is better, and less power and memory.
        return _two(*((first, mine) if is_more_better else (mine, first)), against, reason)
    over = log_ratio(baseline, step, metric)
    if over is None:
        return unknown("1"), reason or f"of the baseline {_MISSING[metric]}"
    if against == "retention" and not is_more_better:
        over = replace(over, mean=-over.mean)
    half = over.half_width(confidence)
    ends = (None, None) if half is None else (math.exp(over.mean - half), math.exp(over.mean + half))
    return Estimate(value=math.exp(over.mean), unit="1", bounds=ends), reason or _fewer_than_needed(over.n)


def _unsettled(arm: Arm) -> str | None:
    """Say why nothing that hangs on the machine's speed can be decided by an arm, if so."""
    return "no round was measured on a quiet, unchanged machine" if arm.is_disturbed else None


def _too_few(arm: Arm) -> str | None:
    return _fewer_than_needed(len(arm.observations))


def _fewer_than_needed(rounds: int) -> str | None:
    if rounds >= ROUNDS_NEEDED:
        return None
    return f"{counted(rounds, 'complete round')}, and {ROUNDS_NEEDED} are needed"


def _two(mine: Estimate, first: Estimate, against: Against, reason: str | None) -> Observed:
    """Return the difference or the ratio of two independent figures; what is kept is the inverse ratio."""
    if against == "retention":
        mine, first = first, mine
    unit = mine.unit if against == "difference" else "1"
    is_difference = against == "difference"
    if mine.value is None or first.value is None or (first.value <= 0 and not is_difference):
        return unknown(unit, signed=is_difference), reason or "not recorded in both arms"
    value = mine.value - first.value if is_difference else mine.value / first.value
    if mine.low is None or mine.high is None or first.low is None or first.high is None:
        return Estimate(value=value, unit=unit, signed=is_difference, bounds=(None, None)), reason
    make = independent_difference if is_difference else independent_ratio
    ends = make(mine.value, (mine.low, mine.high), first.value, (first.low, first.high))
    return Estimate(value=value, unit=unit, signed=is_difference, bounds=ends), reason


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
