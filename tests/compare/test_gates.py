"""Gates pass, fail or stay undetermined by whole intervals."""

from __future__ import annotations

import pytest

from carbonlens.compare.gates import Measured, check_gates
from carbonlens.compare.grouping import StepRuns, build_arm
from carbonlens.compare.latency import calls, percentile_of
from carbonlens.domain.factor import Vector
from carbonlens.domain.latency import Latency
from carbonlens.domain.run import Quality
from carbonlens.domain.study import Gate
from carbonlens.signals.latency import summarise
from tests.compare.study_runs import rounds, run


def measured(n_rounds=5, **fields):
    runs = tuple(rounds("s", [1.0] * n_rounds, **fields))
    group = StepRuns(step="s", on=None, variants=runs, failed=(), effort=(), all=runs)
    return Measured(arm=build_arm(group, Vector(), per_run=False)[0])


def outcome(metric, kind, limit, step, baseline=None, outcomes=None):
    gate = Gate(name="g", metric=metric, kind=kind, limit=limit)
    return check_gates((gate,), baseline or step, step, outcomes or {})[0]


def accuracy(right, n=899, sha=None):
    return (Quality(name="accuracy", value=right / n, n=n, outcomes_sha256=sha),)


def vector_of(right, n=899):
    return [1] * right + [0] * (n - right)


@pytest.mark.parametrize(("right", "expected"), [(883, "pass"), (870, "undetermined"), (840, "fail")])
def test_an_accuracy_gate_by_paired_outcomes(right, expected):
    baseline = measured(quality=accuracy(883, sha="a"))
    step = measured(quality=accuracy(right, sha="b"))
    found = outcome(
        "accuracy", "max_loss", 0.01, step, baseline, {"a": vector_of(883), "b": vector_of(right)}
    )
    assert found.outcome == expected
    assert found.observed.value == pytest.approx((883 - right) / 899)


def test_a_gate_without_figures_is_undetermined_and_says_why():
    found = outcome("accuracy", "max_loss", 0.01, measured())
    assert (found.outcome, found.reason) == ("undetermined", "not recorded in both arms")
    assert outcome("accuracy", "min_value", 0.9, measured()).outcome == "undetermined"
    assert check_gates((Gate(name="g", metric="accuracy", kind="max_loss", limit=1),), measured(), None, {})[
        0
    ].reason


def test_an_absolute_quality_limit():
    step = measured(quality=accuracy(883))
    assert outcome("accuracy", "min_value", 0.95, step).outcome == "pass"
    assert outcome("accuracy", "min_value", 0.98, step).outcome == "undetermined"
    assert outcome("accuracy", "min_value", 0.999, step).outcome == "fail"


@pytest.mark.parametrize(("limit", "expected"), [(78_000, "pass"), (77_999, "fail")])
def test_model_bytes_are_exact(limit, expected):
    assert outcome("model_bytes", "max_value", limit, measured(model_bytes=78_000)).outcome == expected


def test_growth_of_the_model():
    small, large = measured(model_bytes=100), measured(model_bytes=130)
    assert outcome("model_bytes", "max_loss", 40, large, small).outcome == "pass"
    assert outcome("model_bytes", "max_loss", 20, large, small).outcome == "fail"
    assert outcome("model_bytes", "max_loss", 20, large, measured()).outcome == "undetermined"
    assert outcome("model_bytes", "max_value", 20, measured()).outcome == "undetermined"


def even(p50, n):
    return summarise([p50 * (0.9 + 0.2 * i / n) for i in range(n)])


def test_a_p99_needs_299_calls():
    few = outcome("latency_p99_ms", "max_value", 50.0, measured(latency=even(10.0, 50)))
    assert (few.outcome, few.reason) == ("undetermined", "250 calls, and 299 are needed")
    enough = outcome("latency_p99_ms", "max_value", 50.0, measured(latency=even(10.0, 60)))
    assert enough.outcome == "pass"
    assert outcome("latency_p99_ms", "max_value", 9.0, measured(latency=even(10.0, 60))).outcome == "fail"


def test_a_tabled_p99_without_a_count_is_undetermined():
    found = outcome("latency_p99_ms", "max_value", 50.0, measured(latency=Latency(p50_ms=8.0, p99_ms=10.0)))
    assert found.outcome == "undetermined"
    assert found.observed.value == 10.0


def test_a_tabled_p50_rests_on_the_range_over_the_rounds():
    six = measured(n_rounds=6, latency=Latency(p50_ms=8.0))
    assert outcome("latency_p50_ms", "max_value", 9.0, six).outcome == "pass"
    assert outcome("latency_p50_ms", "max_value", 7.0, six).outcome == "fail"
    # The range of five rounds holds their median with 93.75 % only.
    for n_rounds in (1, 5):
        fewer = measured(n_rounds=n_rounds, latency=Latency(p50_ms=8.0))
        assert outcome("latency_p50_ms", "max_value", 9.0, fewer).outcome == "undetermined"


def test_the_upper_of_two_middle_rounds_stands_for_the_arm():
    def arm(*values):
        runs = tuple(
            run("s", 1.0, repeat=i, latency=Latency(p50_ms=v)) for i, v in enumerate(values, start=1)
        )
        group = StepRuns(step="s", on=None, variants=runs, failed=(), effort=(), all=runs)
        return build_arm(group, Vector(), per_run=False)[0]

    even_number = percentile_of(arm(1.0, 9.0, 5.0, 4.0, 2.0, 8.0), "latency_p50_ms")
    assert (even_number.value, even_number.low, even_number.high) == (5.0, 1.0, 9.0)
    two = percentile_of(arm(3.0, 7.0), "latency_p50_ms")
    assert (two.value, two.low, two.high) == (7.0, None, None)


def test_a_slowdown_against_the_baseline():
    fast, slow = measured(latency=even(10.0, 200)), measured(latency=even(14.0, 200))
    assert outcome("latency_p95_ms", "max_loss", 8.0, slow, fast).outcome == "pass"
    assert outcome("latency_p95_ms", "max_loss", 1.0, slow, fast).outcome == "fail"
    assert outcome("latency_p95_ms", "max_loss", 1.0, fast, slow).outcome == "pass"


def test_percentiles_merge_and_are_not_averaged():
    runs = tuple(
        run("s", 1.0, repeat=i, latency=even(p50, 100)) for i, p50 in enumerate((10.0, 30.0), start=1)
    )
    group = StepRuns(step="s", on=None, variants=runs, failed=(), effort=(), all=runs)
    arm = build_arm(group, Vector(), per_run=False)[0]
    p95 = percentile_of(arm, "latency_p95_ms")
    pooled = sorted(
        [10.0 * (0.9 + 0.2 * i / 100) for i in range(100)]
        + [30.0 * (0.9 + 0.2 * i / 100) for i in range(100)]
    )
    assert p95.value == pytest.approx(pooled[int(0.95 * 199)], rel=0.011)
    assert p95.low < p95.value <= p95.high
    assert calls(arm) == 200


def test_without_sketches_in_all_rounds_the_range_of_the_rounds_serves():
    plain = measured(n_rounds=6, latency=Latency(n=300, p50_ms=8.0, p99_ms=9.0))
    assert percentile_of(plain.arm, "latency_p99_ms").value == 9.0
    assert outcome("latency_p99_ms", "max_value", 9.5, plain).outcome == "pass"
    assert percentile_of(plain.arm, "latency_p95_ms").state == "unknown"
    single = measured(n_rounds=1, latency=Latency(n=300, p99_ms=9.0))
    assert outcome("latency_p99_ms", "max_loss", 1.0, single, plain).outcome == "undetermined"
    assert outcome("latency_p99_ms", "max_loss", 1.0, measured(), plain).reason


def test_a_round_without_latency_leaves_it_unknown():
    assert percentile_of(measured().arm, "latency_p50_ms").state == "unknown"
    assert calls(measured().arm) is None


def in_rounds(*figures):
    runs = tuple(
        run("s", 1.0, repeat=i, quality=() if f is None else (f,)) for i, f in enumerate(figures, start=1)
    )
    group = StepRuns(step="s", on=None, variants=runs, failed=(), effort=(), all=runs)
    return Measured(
        arm=build_arm(group, Vector(), per_run=False)[0],
        recorded=tuple(q for r in runs for q in r.quality),
    )


def figure(value, n=None, sha=None):
    return Quality(name="accuracy", value=value, n=n, outcomes_sha256=sha)


def test_a_quality_gate_reads_every_round():
    good = in_rounds(*[figure(0.90, 100)] * 6)
    one_good = in_rounds(figure(0.90, 100), *[figure(0.50, 100)] * 5)
    found = outcome("accuracy", "max_loss", 0.05, one_good, good)
    assert found.outcome == "fail"
    assert found.observed.value == pytest.approx(0.9 - (0.9 + 5 * 0.5) / 6)
    # A round of more examples weighs more.
    uneven = in_rounds(figure(0.9, 300), figure(0.5, 100))
    assert outcome("accuracy", "min_value", 0.5, uneven).observed.value == pytest.approx(0.8)


def test_equal_rounds_add_no_examples():
    once, often = in_rounds(figure(0.9, 100)), in_rounds(*[figure(0.9, 100)] * 9)
    widths = [
        outcome("accuracy", "min_value", 0.5, one).observed.high
        - outcome("accuracy", "min_value", 0.5, one).observed.low
        for one in (once, often)
    ]
    assert widths[0] == widths[1]


def test_rounds_with_a_bare_figure_that_disagrees_have_no_interval():
    mixed = in_rounds(figure(0.90, 100, "a"), *[figure(0.5)] * 4)
    found = outcome("accuracy", "min_value", 0.8, mixed, outcomes={"a": [1] * 90 + [0] * 10})
    assert (found.outcome, found.observed.low) == ("undetermined", None)
    # A figure printed with fewer digits agrees.
    rounded = in_rounds(figure(0.902, 1000, "a"), *[figure(0.90)] * 4)
    found = outcome("accuracy", "min_value", 0.8, rounded, outcomes={"a": [1] * 902 + [0] * 98})
    assert found.outcome == "pass"


def test_outcomes_that_are_not_right_or_wrong_leave_the_gate_undetermined():
    graded = {"a": [0.9] * 100, "b": [1.7] * 100}
    for value, sha in ((0.9, "a"), (1.7, "b")):
        arm = in_rounds(*[figure(value, 100, sha)] * 5)
        for kind in ("max_loss", "min_value"):
            found = outcome("accuracy", kind, 0.5, arm, outcomes=graded)
            assert (found.outcome, found.observed.low) == ("undetermined", None)


def scored(value, *, higher=None, n=2000):
    return measured(quality=(Quality(name="score", value=value, n=n, higher_is_better=higher),))


@pytest.mark.parametrize(("kind", "limit"), [("max_loss", 0.5), ("min_retention", 0.1)])
def test_a_loss_without_a_direction_is_undetermined(kind, limit):
    found = outcome("score", kind, limit, scored(0.5), scored(0.5))
    assert (found.outcome, found.observed.value) == ("undetermined", None)
    assert "quality_direction" in found.reason
    assert "higher_is_better" in found.reason
    contradicting = outcome("score", kind, limit, scored(0.5, higher=True), scored(0.5, higher=False))
    assert contradicting.outcome == "undetermined"
    assert outcome("score", kind, limit, scored(0.5), scored(0.5, higher=True)).outcome == "pass"


def test_an_absolute_limit_needs_no_direction():
    assert outcome("score", "min_value", 0.4, scored(0.5)).outcome == "pass"


def test_a_bare_value_far_beyond_its_limit_is_undetermined_and_says_why():
    """Nothing tells how far a bare figure may be off; a size is what it is."""
    step = measured(quality=(Quality(name="perplexity", value=31.0, n=1000, higher_is_better=False),))
    found = outcome("perplexity", "max_value", 6.0, step)
    assert (found.outcome, found.observed.value) == ("undetermined", 31.0)
    assert "a bare value has no interval" in found.reason
    assert outcome("model_bytes", "max_value", 6.0, measured(model_bytes=31)).outcome == "fail"
