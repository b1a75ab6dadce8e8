"""Metrics of an arm beside its energy, and the gates on each of them."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from msgspec.structs import replace

from carbonlens.compare.gates import Measured, check_gates
from carbonlens.compare.grouping import StepRuns, build_arm
from carbonlens.compare.metrics import metrics_of
from carbonlens.domain.factor import Vector
from carbonlens.domain.run import Conditions, Quality
from carbonlens.domain.study import SHORT_METRICS, Gate
from carbonlens.signals.latency import summarise
from tests.compare.study_runs import rounds

WALLS = (2.0, 2.02, 1.98, 2.01, 1.99)
JOULES = (100.0, 101.0, 99.0, 100.5, 99.5)


def arm(*, factor=1.0, n=5, change=lambda run, index: run, **fields):
    """Return an arm of 100 units a round at 50 W, all its figures times a factor."""
    fields = {
        "units": 100,
        "u_relative": 0.3,
        "latency": summarise([10.0 * factor * (0.9 + 0.2 * i / 400) for i in range(400)]),
        "model_bytes": round(1e6 * factor),
        "quality": (Quality(name="accuracy", value=min(1.0, 0.9 * factor), n=5000),),
        **fields,
    }
    runs = [
        replace(
            r,
            conditions=Conditions(wall_s=WALLS[i], cpu_s=1.0, peak_rss_bytes=round((5e8 + 1e6 * i) * factor)),
        )
        for i, r in enumerate(rounds("s", [j * factor for j in JOULES[:n]], **fields))
    ]
    runs = tuple(change(r, i) for i, r in enumerate(runs))
    group = StepRuns(step="s", on=None, variants=runs, failed=(), effort=(), all=runs)
    recorded = tuple(q for r in runs for q in r.quality)
    return Measured(arm=build_arm(group, Vector(), per_run=False)[0], recorded=recorded)


def test_power_is_energy_over_the_window_with_its_scatter_and_its_source():
    power = metrics_of(arm(), {}).power_w
    assert power.value == pytest.approx(math.fsum(j / w for j, w in zip(JOULES, WALLS, strict=True)) / 5)
    assert power.unit == "W"
    assert power.grade == "D"
    # The model's 30 % (one sigma) is common to all rounds: the interval is no narrower than it.
    assert power.high - power.value > 1.9 * 0.3 * power.value
    exact = metrics_of(arm(u_relative=0.0), {}).power_w
    assert exact.low < exact.value < exact.high
    assert exact.high - exact.value < 0.02 * exact.value


def test_peak_memory_is_the_largest_with_its_range():
    memory = metrics_of(arm(), {}).peak_memory_bytes
    assert (memory.value, memory.low, memory.high, memory.unit) == (504e6, 500e6, 504e6, "B")


def test_throughput_and_throttling():
    slowed = arm(change=lambda r, i: replace(r, conditions=replace(r.conditions, throttled_s=0.01 * i)))
    found = metrics_of(slowed, {})
    assert found.throughput_per_s.value == pytest.approx(50, rel=0.01)
    assert found.throttled_s == 0.04
    assert metrics_of(arm(), {}).throttled_s is None


def without_conditions(run, _):
    return replace(run, conditions=None)


def lower_bound(run, index):
    """The third round's energy lacks a part."""
    reading = replace(run.energy[0], state="unbounded") if index == 2 else run.energy[0]
    return replace(run, energy=(reading,))


def forgetful(run, index):
    """The fourth round records no memory."""
    return replace(run, conditions=replace(run.conditions, peak_rss_bytes=None)) if index == 3 else run


def test_what_a_round_lacks_is_unknown_and_never_a_mean_of_the_others():
    assert metrics_of(arm(change=without_conditions), {}).power_w.state == "unknown"
    assert metrics_of(arm(change=without_conditions), {}).peak_memory_bytes.state == "unknown"
    assert metrics_of(arm(change=lower_bound), {}).power_w.value is None
    assert metrics_of(arm(change=forgetful), {}).peak_memory_bytes.value is None


def test_dynamic_energy_stands_beside_where_every_reading_tells_it():
    def told(run, _):
        return replace(
            run, energy=(replace(run.energy[0], dynamic_j=run.energy[0].energy_j * Decimal("0.6")),)
        )

    found = metrics_of(arm(change=told), {})
    assert found.dynamic_per_unit_j.value == pytest.approx(0.6)
    assert found.energy_per_unit_j.value == pytest.approx(1.0)
    # It is no surer than the whole: the model's 30 % (one sigma) is its own too.
    assert found.dynamic_per_unit_j.grade == "D"
    assert found.dynamic_per_unit_j.u_total == pytest.approx(0.3 * 0.6, rel=0.01)
    in_part = arm(change=lambda r, i: told(r, i) if i else r)
    assert metrics_of(in_part, {}).dynamic_per_unit_j.value is None


# Every metric a gate can name: the arm's value, and what takes it away.
METRICS = {
    "accuracy": (0.9, {"quality": ()}, None),
    "latency_p50_ms": (10.0, {"latency": None}, None),
    "latency_p95_ms": (10.9, {"latency": None}, None),
    "latency_p99_ms": (10.98, {"latency": None}, None),
    "model_bytes": (1e6, {"model_bytes": None}, None),
    "power_w": (50.0, {}, lower_bound),
    "peak_memory_bytes": (504e6, {}, forgetful),
    "throughput_per_s": (50.0, {}, lambda r, i: replace(r, conditions=None, duration_s=None)),
}


def outcome(metric, kind, limit, step, baseline):
    gate = Gate(name="g", metric=metric, kind=kind, limit=limit)
    return check_gates((gate,), baseline, step, {})[0]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", ["max_value", "min_value", "max_loss", "min_retention", "max_ratio"])
def test_every_metric_has_every_gate(metric, kind):
    value = METRICS[metric][0]
    factor = 0.9 if metric == "accuracy" else 1.3
    step, baseline = arm(factor=factor, u_relative=0.0), arm(u_relative=0.0)
    if metric == "throughput_per_s":
        # More units in the same time.
        step, factor = arm(units=130, u_relative=0.0), 1.3
    # A loss is positive when things get worse; retention is the share of goodness that is kept.
    is_more_better = metric in ("accuracy", "throughput_per_s")
    change = value * (1 - factor) if is_more_better else value * (factor - 1)
    kept = factor if is_more_better else 1 / factor
    near, far = {
        "max_value": (1.05 * factor * value, 0.95 * factor * value),
        "min_value": (0.95 * factor * value, 1.05 * factor * value),
        "max_loss": (change + 0.5 * abs(change), change - 0.5 * abs(change)),
        "min_retention": (0.95 * kept, 1.05 * kept),
        "max_ratio": (1.05 * factor, 0.95 * factor),
    }[kind]
    assert outcome(metric, kind, near, step, baseline).outcome == "pass"
    assert outcome(metric, kind, far, step, baseline).outcome == "fail"


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", ["max_value", "min_value", "max_loss", "min_retention", "max_ratio"])
@pytest.mark.parametrize("whose", ["step", "baseline"])
def test_a_gate_whose_metric_is_absent_is_undetermined_with_a_reason(metric, kind, whose):
    _, fields, change = METRICS[metric]
    without = arm(**fields, **({} if change is None else {"change": change}))
    step, baseline = (without, arm()) if whose == "step" else (arm(), without)
    found = outcome(metric, kind, 1.0, step, baseline)
    if whose == "baseline" and kind in ("max_value", "min_value"):
        assert found.outcome in ("pass", "fail")  # An absolute limit asks nothing of the baseline.
        return
    assert found.outcome == "undetermined"
    assert found.reason


@pytest.mark.parametrize("metric", sorted(set(METRICS) - {"accuracy"}))
def test_every_metric_but_a_quality_has_a_short_name(metric):
    assert metric in SHORT_METRICS.values()


@pytest.mark.parametrize("kind", ["max_loss", "min_value", "max_value", "min_retention"])
def test_a_quality_of_0_to_100_is_no_share_and_the_reason_names_its_scale(kind):
    baseline, step = (
        arm(quality=(Quality(name="accuracy", value=v, n=4000),), u_relative=0.0) for v in (91.2, 90.9)
    )
    gate = Gate(name="g", metric="accuracy", kind=kind, limit=90.0)
    (found,) = check_gates((gate,), baseline, step, {})
    assert (found.outcome, found.is_share) == ("undetermined", False)
    assert "no share of 0 to 1" in found.reason
    assert any(v in found.reason for v in ("91.2 is", "90.9 is"))
    (share,) = check_gates((replace(gate, limit=0.9),), arm(u_relative=0.0), arm(u_relative=0.0), {})
    assert share.is_share
