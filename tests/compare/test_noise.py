"""Disturbed rounds are left out with a Finding, never silently."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from carbonlens.compare.study import compare_study
from carbonlens.domain.factor import Vector
from carbonlens.domain.run import Conditions
from carbonlens.domain.study import Step, Study
from tests.compare.study_runs import rounds

STUDY = Study(name="t", baseline="a", steps=(Step(name="b"),), unit="image")
SEVEN = [1.0, 1.01, 0.99, 1.005, 0.995, 1.0, 1.002]
QUIET = {"wall_s": 10.0, "cpu_s": 9.9, "load_1m": 1.1, "steal_s": 0.0}


def runs(*, disturbed=(), grade="B", component="cpu", steps=("b",), **conditions):
    found = []
    for step, level in (("a", 1.0), ("b", 0.5)):
        for one in rounds(step, [x * level for x in SEVEN]):
            noisy = step in steps and one.repeat in disturbed
            seen = Conditions(**{**QUIET, **(conditions if noisy else {})})
            reading = replace(one.energy[0], grade=grade, component=component)
            found.append(replace(one, energy=(reading,), conditions=seen))
    return found


def compared(**how):
    return compare_study(STUDY, runs(**how), Vector(), {})


def left_out(result):
    return [f for f in result.findings if f.code == "CL434"]


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        ({"steal_s": 1.5}, "hypervisor took 15 %"),
        ({"load_1m": 4.2}, "load 4.2 where the work keeps 1 CPU busy"),
        ({"cpu_s": 7.0}, "CPU time is 70 % of wall time, usually 99 %"),
        ({"throttled_s": 2.0}, "throttled for 20 %"),
    ],
)
def test_a_disturbed_round_is_left_out_of_all_arms_and_said(conditions, words):
    result = compared(disturbed=(3,), **conditions)
    assert result.steps[0].vs_previous.n_rounds == 6
    assert result.baseline_metrics.rounds == 6
    (finding,) = left_out(result)
    assert finding.subject == "b"
    assert finding.severity == "warning"
    assert "1 of 7 rounds" in finding.message
    assert f"round 3: the {words}" in finding.message or f"round 3: {words}" in finding.message
    assert any(f.code == "CL405" and "round 3" in f.message for f in result.findings)


def test_a_quiet_study_says_nothing():
    result = compared()
    assert result.steps[0].vs_previous.n_rounds == 7
    assert not {"CL434", "CL408", "CL409"} & {f.code for f in result.findings}


def test_too_few_quiet_rounds_give_no_verdict():
    result = compared(disturbed=(1, 2, 3), steal_s=2.0)
    step = result.steps[0]
    assert (step.vs_previous.n_rounds, step.verdict) == (4, "inconclusive")
    assert "4 remain where a verdict needs 5" in left_out(result)[0].message


def test_an_arm_without_a_quiet_round_keeps_its_figures_and_has_no_verdict():
    result = compared(disturbed=range(1, 8), steal_s=2.0)
    step = result.steps[0]
    assert step.vs_previous.ratio.value == pytest.approx(0.5)
    assert (step.vs_previous.n_rounds, step.verdict, step.decision) == (7, "inconclusive", "undetermined")
    assert "no quiet round is left" in left_out(result)[0].message


@pytest.mark.parametrize("conditions", [{"steal_s": 1.5}, {"load_1m": 4.2}, {"cpu_s": 7.0}])
def test_modelled_energy_does_not_count_what_others_do(conditions):
    result = compared(disturbed=(3,), grade="D", **conditions)
    assert result.steps[0].vs_previous.n_rounds == 7
    assert not left_out(result)


def test_throttling_spoils_modelled_energy_too():
    assert left_out(compared(disturbed=(3,), grade="D", throttled_s=5.0))


def test_the_load_of_the_host_is_not_in_the_energy_of_a_gpu_but_waiting_is():
    assert not left_out(compared(disturbed=(3,), component="gpu", load_1m=8.0))
    assert left_out(compared(disturbed=(3,), component="gpu", steal_s=3.0))


def test_load_that_another_arm_of_the_study_makes_is_its_own():
    """An arm of four threads leaves its mark on the load average of the one after it."""
    found = [
        replace(r, conditions=replace(r.conditions, cpu_s=39.0 if r.step == "a" else 9.9, load_1m=4.2))
        for r in runs()
    ]
    assert not left_out(compare_study(STUDY, found, Vector(), {}))


def test_runs_that_say_nothing_of_their_host_are_used():
    found = [replace(r, conditions=None) for r in runs()]
    assert compare_study(STUDY, found, Vector(), {}).steps[0].vs_previous.n_rounds == 7


@pytest.mark.parametrize(
    ("conditions", "kept"),
    [
        ({"cpu_s": 600.0, "steal_s": 1.28, "load_1m": 60.0}, 7),
        ({"cpu_s": 600.0, "steal_s": 120.0, "load_1m": 60.0}, 0),
        ({"cpu_s": 9.9, "steal_s": 0.9}, 7),
        ({"cpu_s": 0.5, "steal_s": 0.2}, 7),
    ],
)
def test_steal_of_a_whole_machine_stands_against_all_cpus_that_the_work_keeps_busy(conditions, kept):
    result = compared(disturbed=range(1, 8), steps=("a", "b"), **conditions)
    assert (left_out(result) == []) == bool(kept)
    assert all("took 20 %" in f.message for f in left_out(result))


@pytest.mark.parametrize("grade", ["B", "D"])
def test_the_hypervisor_takes_no_more_than_all(grade):
    result = compared(disturbed=(1, 2, 3), grade=grade, cpu_s=9.9, steal_s=630.0)
    told = [f.message for f in result.findings if f.code in ("CL434", "CL408")]
    assert told
    assert all(float(m.split(" % of the")[0].rsplit(" ", 1)[-1].lstrip("(")) <= 100 for m in told)
