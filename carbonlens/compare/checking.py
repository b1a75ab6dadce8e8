"""Checking: does a change exceed what is tolerated, by its one-sided bound.

The same arms, rounds and intervals as the comparison. A condition fails only where
the bound itself lies beyond the limit, so that noise does not; where no bound can
be made it is undetermined, which is neither.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from carbonlens.compare.arms import ROUNDS_NEEDED, Measure
from carbonlens.compare.contrast import exp_of, log_change
from carbonlens.compare.effects import Rule, interval_of
from carbonlens.compare.gates import Measured, observe_metric
from carbonlens.compare.material import Material
from carbonlens.compare.quality import find_quality, loss
from carbonlens.compare.rates import RATES
from carbonlens.compare.retention import retention
from carbonlens.compare.statistics import normal_quantile
from carbonlens.domain.counting import counted
from carbonlens.domain.run import Quality
from carbonlens.domain.study import SHORT_METRICS
from carbonlens.errors import SelectionError, UsageError

Outcome = Literal["pass", "fail", "undetermined"]
Scale = Literal["relative", "points"]

_NAMES: Final = {
    "energy": "energy_j",
    "carbon": "emissions_location_kg",
    "carbon_location": "emissions_location_kg",
    "carbon_market": "emissions_market_kg",
    "cost": "cost",
    **SHORT_METRICS,
}
_AMOUNTS: Final[dict[str, Measure]] = {
    "energy_j": "energy_j",
    "emissions_location_kg": "emissions_location_kg",
    "emissions_market_kg": "emissions_market_kg",
    "cost": "cost",
}
_GRAMMAR: Final = re.compile(
    r"\s*(?P<metric>[^:<>]+?)\s*:\s*(?P<op>[<>])\s*(?P<limit>[+-]?\d+(?:\.\d+)?)\s*(?P<unit>%|pp)\s*"
    r"(?:@\s*(?P<confidence>\d+(?:\.\d+)?)\s*%)?\s*"
)


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """What must not be: a change beyond a limit.

    Attributes:
        text: As given.
        metric: As named in results, or a quality name; ``quality`` is the only one recorded.
        above: Whether more than the limit fails, else less.
        limit: Relative change (0.03 is +3 %), or a difference of shares in ``points``.
        confidence: Of the one-sided bound.
    """

    text: str
    metric: str
    above: bool
    limit: float
    scale: Scale
    confidence: float = 0.95


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """One condition on one step.

    Attributes:
        change: Best value of the change; ``None`` when unknown.
        bound: One-sided bound: the least the change may be where more fails, the
            most where less does.
        reason: Why it is undetermined.
    """

    condition: Condition
    step: str
    reference: str
    metric: str
    outcome: Outcome
    change: float | None
    bound: float | None
    reason: str | None = None


def parse_condition(text: str) -> Condition:
    """Return the condition that a text spells: ``energy:>+3%@95%``, ``accuracy:<-1pp``.

    Raises:
        UsageError: If it is no such text.
    """
    found = _GRAMMAR.fullmatch(text)
    confidence = float(found["confidence"] or 95) / 100 if found else 0.0
    if found is None or not 0.5 <= confidence < 1:
        raise UsageError(
            f"--fail-if {text!r} is no condition",
            mend="write METRIC:>+3%@95% or METRIC:<-1%, with a metric of "
            f"{', '.join(_NAMES)}, quality, or a quality's own name; pp for points of a share",
        )
    name = found["metric"]
    metric = _NAMES.get(name, name)
    scale: Scale = "points" if found["unit"] == "pp" else "relative"
    if scale == "points" and (metric in _NAMES.values() or metric in RATES):
        raise UsageError(f"--fail-if {text!r}: {name} has no points", mend="write a relative change in %")
    return Condition(
        text=text,
        metric=metric,
        above=found["op"] == ">",
        limit=float(found["limit"]) / 100,
        scale=scale,
        confidence=confidence,
    )


def check_conditions(material: Material, conditions: Sequence[Condition]) -> tuple[Checked, ...]:
    """Return the outcome of every condition on every step, each against the baseline.

    Args:
        material: The study's arms.
        conditions: What must not be.

    Raises:
        SelectionError: If a condition names a quality that no run records.
    """
    steps = [n for n in material.groups if n != material.study.baseline]
    return tuple(_checked(material, one, step) for one in conditions for step in steps)


def _checked(material: Material, condition: Condition, step: str) -> Checked:
    metric = condition.metric
    if metric not in _AMOUNTS and metric not in RATES and metric not in _NAMES.values():
        metric = _quality_name(material, condition)
    change, bound, reason = _change(material, condition, metric, step)
    if reason is None and bound is None:
        reason = "no interval can be made"
    outcome: Outcome = "undetermined"
    if reason is None and bound is not None:
        beyond = bound > condition.limit if condition.above else bound < condition.limit
        outcome = "fail" if beyond else "pass"
    return Checked(
        condition=condition,
        step=step,
        reference=material.study.baseline,
        metric=metric,
        outcome=outcome,
        change=change,
        bound=bound,
        reason=reason,
    )


def _change(
    material: Material, condition: Condition, metric: str, step: str
) -> tuple[float | None, float | None, str | None]:
    """Return the change, its one-sided bound, and why nothing can be said."""
    group = material.groups[step]
    baseline, mine = material.measured(material.study.baseline), material.measured(step)
    if group.has_failed:
        return None, None, f"the step failed: {group.error}"
    if baseline is None or mine is None:
        return None, None, "the step has no run with a usable energy"
    if metric in _AMOUNTS:
        return _of_amount(material, condition, _AMOUNTS[metric], baseline, mine)
    # The two-sided interval whose one end is the one-sided bound.
    two_sided = 2 * condition.confidence - 1
    if metric in _NAMES.values() or metric in RATES:
        seen, reason = observe_metric(metric, "ratio", baseline, mine, material.outcomes, two_sided)
        return _less_one(seen.value), _less_one(seen.low if condition.above else seen.high), reason
    return _of_quality(material, condition, metric, baseline, mine)


def _of_quality(
    material: Material, condition: Condition, metric: str, baseline: Measured, mine: Measured
) -> tuple[float | None, float | None, str | None]:
    """Return what a figure itself does, whichever direction is the better one."""
    z = normal_quantile(condition.confidence)
    first, second = (_upwards(find_quality(m.arm, m.recorded, metric)) for m in (baseline, mine))
    if condition.scale == "points":
        # A loss of what is better when higher is the change with its sign turned.
        seen, reason = loss(first, second, material.outcomes, z)
        low, high = _negative(seen.high), _negative(seen.low)
        return _negative(seen.value), low if condition.above else high, reason
    seen, reason = retention(first, second, material.outcomes, z)
    return _less_one(seen.value), _less_one(seen.low if condition.above else seen.high), reason


def _upwards(figure: Quality | None) -> Quality | None:
    return None if figure is None else replace(figure, higher_is_better=True)


def _of_amount(
    material: Material, condition: Condition, measure: Measure, baseline: Measured, mine: Measured
) -> tuple[float | None, float | None, str | None]:
    log = log_change([(1.0, mine.arm), (-1.0, baseline.arm)], measure)
    study = material.study
    if log.over is None:
        return _less_one(log.estimate.value), None, "no ratio can be made: it is unknown, or zero"
    change = _less_one(log.estimate.value)
    if not log.is_complete:
        return change, None, "a part of it is not measured"
    if log.is_disturbed:
        return change, None, "no round was measured on a quiet, unchanged machine"
    if log.over.n < ROUNDS_NEEDED:
        return change, None, f"{counted(log.over.n, 'complete round')}, and {ROUNDS_NEEDED} are needed"
    rule = Rule(margin=study.margin, interval=study.interval, is_sequential=study.is_sequential)
    ends = interval_of(log, 2 * condition.confidence - 1, rule.decides(log))
    if ends is None:
        return change, None, None
    return change, exp_of(ends[0] if condition.above else ends[1]) - 1, None


def _quality_name(material: Material, condition: Condition) -> str:
    names = list(dict.fromkeys(q.name for g in material.groups.values() for r in g.all for q in r.quality))
    only = names[0] if condition.metric == "quality" and len(names) == 1 else condition.metric
    if only in names:
        _refuse_points_beyond_shares(material, condition, only)
        return only
    raise SelectionError(
        f"--fail-if {condition.text!r} names {condition.metric!r}, which no run records",
        where=material.study.name,
        mend=f"recorded qualities: {', '.join(sorted(names)) or 'none'}; metrics: {', '.join(_NAMES)}",
    )


def _refuse_points_beyond_shares(material: Material, condition: Condition, name: str) -> None:
    """Refuse percentage points of a figure that is no share of one."""
    if condition.scale != "points":
        return
    figures = (q for g in material.groups.values() for r in g.all for q in r.quality if q.name == name)
    beyond = next((q.value for q in figures if q.value is not None and not 0 <= q.value <= 1), None)
    if beyond is not None:
        raise UsageError(
            f"--fail-if {condition.text!r}: {name} is {beyond:g} in a run, which is no share of one, "
            "so it has no points",
            mend="write a relative change in %",
        )


def _less_one(ratio: float | None) -> float | None:
    return None if ratio is None else ratio - 1


def _negative(value: float | None) -> float | None:
    return None if value is None else -value
