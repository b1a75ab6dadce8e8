"""Which of a step's recorded figures stands for it: of runs that ended well, in any order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carbonlens.compare.grouping import StepRuns, build_arm
from carbonlens.compare.quality import disagreement, find_quality
from carbonlens.compare.study import compare_study
from carbonlens.domain.factor import Vector
from carbonlens.domain.run import Quality
from carbonlens.domain.study import Gate, Step, Study
from tests.compare.study_runs import rounds, run


def figures(*values, **more):
    return [Quality(name="bleu", value=v, higher_is_better=True, **more) for v in values]


def arm_of(recorded):
    runs = tuple(run("s", 1.0, repeat=i, quality=(q,)) for i, q in enumerate(recorded, start=1))
    group = StepRuns(step="s", on=None, variants=runs, failed=(), effort=(), all=runs)
    return build_arm(group, Vector(), per_run=False)[0]


@given(values=st.permutations([0.9000, 0.9008, 0.9016, 0.9024]))
def test_bare_figures_that_are_alike_are_their_mean_in_any_order(values):
    found = find_quality(arm_of(figures(*values)), (), "bleu")
    assert found.value == pytest.approx(0.9012)
    assert disagreement(arm_of(figures(*values)), (), "bleu") is None


@given(order=st.permutations([0, 1, 2]))
def test_equal_figures_keep_the_most_examples_in_any_order(order):
    three = [*figures(0.9, n=100), *figures(0.9, n=1000), *figures(0.9)]
    assert find_quality(arm_of([three[i] for i in order]), (), "bleu").n == 1000


@pytest.mark.parametrize("status", ["failed", "recovered", "running"])
@pytest.mark.parametrize("role", ["effort", "variant", "training"])
def test_quality_of_a_run_that_did_not_end_well_decides_no_gate(status, role):
    """It judged something else than what was measured, or nobody knows what."""
    study = Study(
        name="t", baseline="a", steps=(Step(name="b"),), unit="image",
        gates=(Gate(name="acc", metric="accuracy", kind="max_loss", limit=0.01),),
    )  # fmt: skip
    good = (Quality(name="accuracy", value=0.91, n=100_000),)
    spoilt = run(
        "b", 50.0, repeat=9, run_id="spoilt", role=role, quality=good, status=status,
        error="boom" if status == "failed" else None,
    )  # fmt: skip
    some = [
        *rounds("a", [100.0, 101.0, 99.0, 100.5, 99.5], quality=good),
        *rounds("b", [70.0, 71.0, 69.0, 70.5, 69.5]),
    ]
    result = compare_study(study, [*some, spoilt], Vector(), {})
    (gate,) = result.steps[0].gates
    assert (gate.outcome, gate.observed.value) == ("undetermined", None)
    (told,) = [f for f in result.findings if f.code == "CL429"]
    assert (told.severity, told.subject, "accuracy" in told.message) == ("warning", "b", True)
    # Where a run that ended records it, that figure is used, and the spoilt one not.
    better = run("b", 5.0, role="effort", run_id="made", repeat=None, quality=(replace(good[0], value=0.5),))
    again = compare_study(study, [*some, spoilt, better], Vector(), {})
    assert again.steps[0].gates[0].observed.value == pytest.approx(0.41)
    assert not [f for f in again.findings if f.code == "CL429"]
