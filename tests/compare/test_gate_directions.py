"""Which way a gate points: a step that got better keeps what it had, one that got worse does not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from carbonlens.compare.checking import check_conditions, parse_condition
from carbonlens.compare.gates import check_gates
from carbonlens.compare.study import compare_study, material_of
from carbonlens.domain.factor import Vector
from carbonlens.domain.run import Conditions, Quality
from carbonlens.domain.study import Gate, Step, Study
from carbonlens.signals.latency import summarise
from tests.compare.study_runs import rounds
from tests.compare.test_metrics import METRICS, arm

LESS_IS_BETTER = sorted(set(METRICS) - {"accuracy", "throughput_per_s"})


def outcome(metric, kind, limit, step, baseline):
    return check_gates((Gate(name="g", metric=metric, kind=kind, limit=limit),), baseline, step, {})[0]


def pair(metric, times):
    """Return baseline and step of which the metric is so many times the baseline's, and nothing else."""
    if metric == "wer":
        made = [
            arm(u_relative=0.0, quality=(Quality(name="wer", value=v, n=100_000, higher_is_better=False),))
            for v in (0.08, 0.08 * times)
        ]
        return made[0], made[1]
    if metric == "throughput_per_s":
        return arm(u_relative=0.0), arm(u_relative=0.0, units=round(100 * times))
    return arm(u_relative=0.0), arm(u_relative=0.0, factor=times)


@pytest.mark.parametrize("metric", [*LESS_IS_BETTER, "wer", "throughput_per_s"])
@pytest.mark.parametrize("gets_better", [True, False])
def test_what_gets_better_is_no_loss_and_keeps_all_of_its_goodness(metric, gets_better):
    is_more_better = metric == "throughput_per_s"
    baseline, step = pair(metric, 2.0 if gets_better == is_more_better else 0.5)
    expected = "pass" if gets_better else "fail"
    value = 0.08 if metric == "wer" else METRICS[metric][0]
    lost = outcome(metric, "max_loss", 0.02 * value, step, baseline)
    kept = outcome(metric, "min_retention", 0.98, step, baseline)
    assert (lost.outcome, kept.outcome) == (expected, expected)
    assert (lost.observed.value < 0) == gets_better
    assert kept.observed.value == pytest.approx(2.0 if gets_better else 0.5, rel=0.03)


@pytest.mark.parametrize("metric", [*LESS_IS_BETTER, "wer", "throughput_per_s"])
def test_a_ratio_is_the_step_over_the_baseline_whatever_is_better(metric):
    for times, expected in ((2.0, "fail"), (0.5, "pass")):
        baseline, step = pair(metric, times)
        found = outcome(metric, "max_ratio", 1.05, step, baseline)
        assert found.outcome == expected
        assert found.observed.value == pytest.approx(times, rel=0.03)


def test_a_ratio_needs_no_direction():
    figures = [Quality(name="novel", value=v, n=100_000, higher_is_better=None) for v in (0.5, 0.6)]
    arms = [arm(quality=(q,)) for q in figures]
    assert outcome("novel", "max_ratio", 1.1, arms[1], arms[0]).outcome == "fail"
    assert outcome("novel", "min_retention", 0.9, arms[1], arms[0]).outcome == "undetermined"


STUDY = Study(name="t", baseline="a", steps=(Step(name="b"),), unit="image")
DRIFT = (1.0, 1.03, 0.98, 1.01, 0.99, 1.02)


def runs(n=6, throttled=0.0):
    """Return rounds in which step b is fast: more power, more throughput, less latency."""
    found = []
    for name, joules, wall in (("a", 100.0, 2.0), ("b", 70.0, 1.0)):
        found += [
            replace(
                r,
                conditions=Conditions(wall_s=wall * d, cpu_s=1.0, throttled_s=throttled * wall),
                latency=summarise([wall * d * (0.9 + 0.2 * i / 400) for i in range(400)]),
            )
            for r, d in zip(rounds(name, [joules * d for d in DRIFT[:n]]), DRIFT, strict=False)
        ]
    return found


SPEED = (
    Gate(name="p", metric="power_w", kind="max_ratio", limit=1.05),
    Gate(name="q", metric="power_w", kind="max_value", limit=1.0),
    Gate(name="t", metric="throughput_per_s", kind="max_loss", limit=0.01),
    Gate(name="u", metric="throughput_per_s", kind="min_value", limit=1e9),
    Gate(name="l", metric="latency_p50_ms", kind="max_ratio", limit=0.1),
    Gate(name="m", metric="latency_p50_ms", kind="max_value", limit=1e-6),
)


@pytest.mark.parametrize(("n", "throttled", "why"), [(6, 0.5, "quiet"), (2, 0.0, "2 complete rounds")])
def test_a_disturbed_machine_or_too_few_rounds_decide_no_gate_on_power_or_speed(n, throttled, why):
    study = replace(STUDY, gates=SPEED if throttled else SPEED[:4])
    result = compare_study(study, runs(n, throttled), Vector(), {})
    for gate in result.steps[0].gates:
        assert (gate.name, gate.outcome) == (gate.name, "undetermined")
        assert why in gate.reason
    assert result.steps[0].decision == "undetermined"
    usual = compare_study(study, runs(), Vector(), {}).steps[0].gates
    assert {g.outcome for g in usual} <= {"pass", "fail"}


@pytest.mark.parametrize(("n", "throttled"), [(6, 0.5), (2, 0.0)])
def test_nor_do_they_decide_a_check(n, throttled):
    """The same rounds leave energy undetermined: power and throughput are no surer."""
    material, _ = material_of(STUDY, runs(n, throttled), Vector(), {})
    conditions = [parse_condition(text) for text in ("energy:>3%", "power:>3%", "throughput:<-3%")]
    assert {c.outcome for c in check_conditions(material, conditions)} == {"undetermined"}


@pytest.mark.parametrize("kind", ["max_loss", "min_retention"])
@pytest.mark.parametrize("ways", [(True, False), (False, True), (None, None)])
def test_directions_that_contradict_each_other_are_said_to(kind, ways):
    first, second = (
        arm(u_relative=0.0, quality=(Quality(name="q", value=0.9, n=1000, higher_is_better=way),))
        for way in ways
    )
    found = outcome("q", kind, 0.5, second, first)
    assert found.outcome == "undetermined"
    assert ("contradict" in found.reason) == (None not in ways)
    assert ("not stated" in found.reason) == (None in ways)
