"""Law 10: verdict and gates make the decision, reasons carry figures."""

from __future__ import annotations

import pytest

from carbonlens.compare.decision import decide, failed, judge
from carbonlens.domain.comparison import Effect, GateResult
from carbonlens.domain.estimate import Estimate


def gate(outcome, value=0.02):
    observed = Estimate(value=value, unit="1", signed=True, bounds=(value - 0.005, value + 0.005))
    return GateResult(
        name="accuracy", metric="accuracy", outcome=outcome, observed=observed, limit=0.01, kind="max_loss"
    )


def effect(verdict, ratio=0.5, n_rounds=5, **more):
    return Effect(
        reference="onnx",
        ratio=Estimate(value=ratio, unit="1", bounds=(ratio * 0.98, ratio * 1.02)),
        p_value=0.01,
        p_holm=0.01,
        verdict=verdict,
        n_rounds=n_rounds,
        **more,
    )


@pytest.mark.parametrize(
    ("verdict", "outcomes", "expected"),
    [
        ("better", [], "adopt"),
        ("better", ["pass", "pass"], "adopt"),
        ("better", ["pass", "undetermined"], "undetermined"),
        ("better", ["pass", "fail"], "reject"),
        ("same", ["pass"], "reject"),
        ("worse", ["pass"], "reject"),
        ("inconclusive", ["pass"], "undetermined"),
        ("inconclusive", ["undetermined"], "undetermined"),
        ("inconclusive", ["fail"], "reject"),
    ],
)
def test_decisions(verdict, outcomes, expected):
    assert decide(verdict, [gate(o) for o in outcomes]) == expected


@pytest.mark.parametrize(
    ("verdict", "outcome", "rests_on", "status", "reason"),
    [
        ("better", "pass", None, "accepted", "better"),
        ("better", "fail", None, "rejected", "gate"),
        ("better", "undetermined", None, "undetermined", "gate_undetermined"),
        ("worse", "fail", None, "rejected", "worse"),
        ("inconclusive", "pass", None, "undetermined", "inconclusive"),
        ("better", "pass", "dynamic-int8", "undetermined", "rests_on"),
        ("worse", "pass", "dynamic-int8", "rejected", "worse"),
    ],
)
def test_status_and_code(verdict, outcome, rests_on, status, reason):
    got = judge(effect(verdict), [gate(outcome)], unit="image", margin=0.01, rests_on=rests_on)
    assert (got.status, got.reason) == (status, reason)


def test_reasons_carry_the_figures():
    got = judge(effect("better"), [gate("fail")], unit="image", margin=0.01)
    assert got.reasons == (
        "energy per image against onnx: −50.0 % (95 % interval −51.0 % to −49.0 %)",
        "gate accuracy fails: loss 0.02 (0.015 to 0.025), limit 0.01",
    )


def test_an_inconclusive_step_says_what_could_have_been_found():
    got = judge(effect("inconclusive", 0.99, minimum_detectable=0.031), [], unit="image", margin=0.01)
    assert "may be no change; these rounds would detect a saving of 3.10 %" in got.reasons[0]


def test_too_few_rounds_are_said():
    got = judge(effect("inconclusive", n_rounds=3), [], unit="image", margin=0.01)
    assert got.reasons[0].endswith("3 complete rounds (a run of each), and a verdict needs 5")


def test_same_names_the_margin():
    got = judge(effect("same", 1.0), [], unit="image", margin=0.01)
    assert ": 0 % (95 %" in got.reasons[0]
    # By the tests, not by the interval in front, which may reach beyond the margin.
    assert got.reasons[0].endswith("; two one-sided tests put it within the margin of 1.00 %")


def test_a_step_on_a_rejected_one_names_it_first():
    got = judge(effect("better"), [], unit="image", margin=0.01, rests_on="dynamic-int8")
    assert got.reasons[0].startswith("it was measured on dynamic-int8, which is not accepted")


def test_an_undetermined_gate_says_what_is_missing():
    missing = GateResult(
        name="P99",
        metric="latency_p99_ms",
        outcome="undetermined",
        observed=Estimate(value=None, unit="ms", state="unknown"),
        limit=50.0,
        kind="max_value",
        reason="250 calls, and 299 are needed",
    )
    got = judge(effect("better"), [missing, gate("undetermined")], unit="image", margin=0.01)
    assert got.reasons[1] == "gate P99 is undetermined: 250 calls, and 299 are needed"
    assert got.reasons[2] == "gate accuracy is undetermined: loss 0.02 (0.015 to 0.025), limit 0.01"


def test_without_an_effect_there_is_no_verdict():
    got = judge(None, [], unit="image", margin=0.01)
    assert (got.decision, got.reason) == ("undetermined", "inconclusive")
    assert "no ratio" in got.reasons[0]


def test_a_failed_step():
    got = failed("ValueError: no kernel")
    assert (got.status, got.decision) == ("failed", "undetermined")
    assert got.reasons == ("failed: ValueError: no kernel",)
