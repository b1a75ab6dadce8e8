"""The Pareto front over quality, energy and latency."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carbonlens.compare.study import compare_study
from carbonlens.domain.factor import Vector
from carbonlens.domain.latency import Latency
from carbonlens.domain.run import Quality
from carbonlens.domain.study import Step, Study
from tests.compare.study_runs import demo_comparison, run


def front(arms):
    """Return the result of arms given as (energy, accuracy, latency)."""
    runs = [
        run(
            name,
            energy,
            quality=() if quality is None else (Quality(name="accuracy", value=quality),),
            latency=None if latency is None else Latency(n=100, p50_ms=latency, p95_ms=latency),
        )
        for name, (energy, quality, latency) in arms.items()
    ]
    first, *others = arms
    study = Study(name="t", baseline=first, steps=tuple(Step(name=n) for n in others), unit="image")
    return compare_study(study, runs, Vector(), {}).pareto


def test_what_is_beaten_in_nothing_is_on_the_front():
    points = front({"a": (10, 0.9, 5), "b": (5, 0.9, 5), "c": (4, 0.8, 6), "d": (6, 0.85, 5)})
    assert [p.step for p in points if p.on_front] == ["b", "c"]
    assert {p.step: p.dominated_by for p in points if not p.on_front} == {"a": "b", "d": "b"}
    assert list(points[0].values) == ["accuracy", "energy_j", "latency_p95_ms"]


def test_equal_arms_do_not_beat_each_other():
    assert all(p.on_front for p in front({"a": (10, 0.9, 5), "b": (10, 0.9, 5)}))


def test_a_measure_that_one_arm_lacks_counts_for_none():
    points = front({"a": (10, 0.9, None), "b": (5, 0.8, 3)})
    assert all(list(p.values) == ["accuracy", "energy_j"] for p in points)
    assert front({"a": (10, None, None), "b": (5, 0.8, 3)}) == ()


def test_a_step_that_failed_is_not_on_it():
    names = {p.step for p in demo_comparison(failed=["static-int8"]).pareto}
    assert "static-int8" not in names
    assert "torch" in names


@given(st.lists(st.tuples(*[st.integers(1, 5)] * 3), min_size=2, max_size=7))
def test_the_front_is_never_empty_and_beats_every_other(values):
    arms = {f"s{i}": (float(e), q / 10, float(t)) for i, (e, q, t) in enumerate(values)}
    points = {p.step: p for p in front(arms)}
    assert any(p.on_front for p in points.values())
    for one in points.values():
        if not one.on_front:
            e, q, t = arms[one.step]
            better = arms[one.dominated_by]
            assert (better[0] <= e, better[1] >= q, better[2] <= t) == (True, True, True)
            assert better != (e, q, t)


def test_less_of_an_error_is_better():
    def of(name, energy, error):
        return run(name, energy, quality=(Quality(name="wer", value=error, higher_is_better=False),))

    study = Study(name="t", baseline="a", steps=(Step(name="b"),), unit="image")
    runs = [of("a", 5.0, 0.1), of("b", 6.0, 0.2)]
    points = compare_study(replace(study), runs, Vector(), {}).pareto
    assert [p.on_front for p in points] == [True, False]
