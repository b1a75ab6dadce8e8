"""Conditions of ``check``: one-sided bounds by the comparison's own intervals."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from carbonlens.compare.checking import check_conditions, parse_condition
from carbonlens.compare.study import material_of
from carbonlens.domain.factor import Vector
from carbonlens.domain.run import Quality
from carbonlens.domain.study import Step, Study
from carbonlens.errors import SelectionError, UsageError
from tests.compare.study_runs import demo_outcomes, demo_runs, demo_study, rounds, run, vector

A = (100.0, 101.0, 99.0, 102.0, 98.0, 100.5)
NOISE = (1.001, 0.998, 1.003, 0.999, 1.002, 0.997)


def checked(ratio, text, n=6, **fields):
    study = Study(name="t", baseline="a", steps=(Step(name="b"),), unit="image")
    b = [a * ratio * x for a, x in zip(A, NOISE, strict=True)]
    runs = [*rounds("a", A[:n]), *rounds("b", b[:n], **fields)]
    material, _ = material_of(study, runs, Vector(), {})
    (one,) = check_conditions(material, [parse_condition(text)])
    return one


def demo_checked(text, step="pruned"):
    material, _ = material_of(demo_study(), demo_runs(), vector(), demo_outcomes())
    return next(c for c in check_conditions(material, [parse_condition(text)]) if c.step == step)


@pytest.mark.parametrize("confidence", [80, 95, 99.5])
def test_the_bound_is_the_one_sided_t_bound_of_the_log_ratios(confidence):
    logs = [math.log(1.05 * x) for x in NOISE]
    mean, se = math.fsum(logs) / 6, stats.sem(logs)
    low = math.exp(mean - stats.t.ppf(confidence / 100, 5) * se) - 1
    high = math.exp(mean + stats.t.ppf(confidence / 100, 5) * se) - 1
    assert checked(1.05, f"energy:>+3%@{confidence}%").bound == pytest.approx(low, rel=1e-9)
    assert checked(1.05, f"energy:<+3%@{confidence}%").bound == pytest.approx(high, rel=1e-9)


@pytest.mark.parametrize(
    ("ratio", "text", "outcome"),
    [
        (1.05, "energy:>+3%@95%", "fail"),
        (1.05, "energy:>3%", "fail"),
        (1.031, "energy:>+3%@95%", "pass"),  # more than 3 %, but not for sure
        (1.031, "energy:>+3%@60%", "fail"),
        (0.90, "energy:>+3%@95%", "pass"),
        (0.90, "energy:>-20%", "fail"),  # a saving of a fifth was asked for
        (0.70, "energy:<-10%", "fail"),
    ],
)
def test_a_condition_fails_only_for_sure(ratio, text, outcome):
    assert checked(ratio, text).outcome == outcome


def test_a_regression_within_the_noise_of_four_rounds_is_undetermined():
    one = checked(1.5, "energy:>+3%", n=4)
    assert (one.outcome, one.bound) == ("undetermined", None)
    assert one.change == pytest.approx(0.5, abs=0.01)
    assert "5 are needed" in one.reason


def test_a_failed_step_is_undetermined_and_says_why():
    one = checked(1.5, "energy:>+3%", status="failed", error="no kernel")
    assert (one.outcome, one.change) == ("undetermined", None)
    assert "no kernel" in one.reason


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("accuracy:<-1pp", "pass"),
        ("quality:<-1%", "pass"),
        ("accuracy:>-50pp", "fail"),
        ("size:>+0%", "pass"),
        ("size:<-50%", "fail"),
        ("latency_p95:>+5%", "pass"),
        ("latency_p99:<-50%", "fail"),
        ("throughput:<+10%", "pass"),
        ("power:>+5%", "pass"),
        ("memory:>+5%", "undetermined"),
        ("carbon:>+3%", "pass"),
        ("carbon_market:<-40%", "fail"),
        ("cost:<-40%", "fail"),
    ],
)
def test_other_metrics(text, outcome):
    assert demo_checked(text).outcome == outcome


def test_a_quality_of_which_less_is_better_changes_as_it_is_printed():
    def of(step, value):
        quality = (Quality(name="error", value=value, n=1000, higher_is_better=False),)
        return [run(step, 100.0 + i, repeat=i, quality=quality) for i in range(6)]

    study = Study(name="t", baseline="a", steps=(Step(name="b"),), unit="image")
    material, _ = material_of(study, [*of("a", 0.10), *of("b", 0.20)], Vector(), {})
    relative, points = check_conditions(
        material, [parse_condition("error:>+20%"), parse_condition("error:>+2pp")]
    )
    assert (relative.change, points.change) == (pytest.approx(1.0), pytest.approx(0.1))
    assert (relative.outcome, points.outcome) == ("fail", "fail")
    assert 0.2 < relative.bound < 1.0
    assert 0.02 < points.bound < 0.1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "energy",
        "energy:3%",
        "energy:>x%",
        "energy:>3",
        "energy:>3%@100%",
        "energy:>3%@40%",
        "energy:>1pp",
        "energy_j:>1pp",
        "emissions_location_kg:>1pp",
        "model_bytes:>-10pp",
        "latency_p50_ms:>0pp",
        "power_w:>1pp",
        "peak_memory_bytes:>1pp",
    ],
)
def test_what_is_no_condition_says_how_to_write_one(text):
    with pytest.raises(UsageError, match="write"):
        parse_condition(text)


@pytest.mark.parametrize("text", ["bleu:<-1%", "quality:<-1%"])
def test_a_quality_that_nobody_recorded_is_an_error(text):
    with pytest.raises(SelectionError, match="recorded qualities: none"):
        checked(1.0, text)


@settings(max_examples=40, deadline=None)
@given(st.floats(0.5, 2.0), st.floats(-40, 60))
def test_more_than_a_limit_and_less_than_it_never_both_fail(ratio, limit):
    texts = [f"energy:>{limit:.4f}%", f"energy:<{limit:.4f}%"]
    outcomes = [checked(ratio, t).outcome for t in texts]
    assert outcomes != ["fail", "fail"]


def of_quality(name, values, **fields):
    study = Study(name="t", baseline="a", steps=(Step(name="b"),), unit="image")
    runs = [
        run(step, 100.0 + i, repeat=i, quality=(Quality(name=name, value=value, **fields),))
        for step, value in zip("ab", values, strict=True)
        for i in range(6)
    ]
    return material_of(study, runs, Vector(), {})[0]


def test_points_of_a_figure_that_is_no_share_are_refused():
    material = of_quality("accuracy", (95.2, 94.0), n=1000)
    with pytest.raises(UsageError, match="no share of one"):
        check_conditions(material, [parse_condition("accuracy:<-1pp")])
    assert check_conditions(material, [parse_condition("accuracy:<-5%")])[0].outcome == "undetermined"


def test_a_change_needs_no_direction():
    material = of_quality("score", (0.5, 0.4), n=1000, higher_is_better=None)
    relative, points = check_conditions(
        material, [parse_condition("score:<-5%"), parse_condition("score:<-2pp")]
    )
    assert (relative.change, points.change) == (pytest.approx(-0.2), pytest.approx(-0.1))
    assert (relative.outcome, points.outcome) == ("fail", "fail")
