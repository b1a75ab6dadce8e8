"""Which runs stand beside each other: numbers of rounds, sets of optimizations, order of rows."""

from __future__ import annotations

import math
import random

import pytest
from msgspec.structs import replace

from carbonlens.compare.from_runs import study_from_runs
from carbonlens.compare.study import compare_study
from carbonlens.domain.factor import Vector
from carbonlens.domain.run import Conditions, Quality
from carbonlens.domain.study import Gate, Step, Study
from carbonlens.errors import IncomparableError
from carbonlens.reporting.comparison_json import comparison_json
from carbonlens.signals.latency import summarise
from tests.compare.study_runs import rounds, run

STUDY = Study(name="t", baseline="a", steps=(Step(name="b"), Step(name="c")), unit="image")
LEVELS = {"a": 100.0, "b": 99.5, "c": 70.0}
DRIFT = (1.00, 1.03, 0.98, 1.01, 0.99, 1.02, 0.97)
SCATTER = (0.0002, -0.0003, 0.0001, 0.0, 0.0003, -0.0001, -0.0002)


def runs(**fields):
    """Return seven rounds of three arms: 3 % of drift that pairs cancel, 0.02 % of scatter."""
    found = []
    for shift, (name, level) in enumerate(LEVELS.items()):
        noise = SCATTER[shift:] + SCATTER[:shift]
        found += rounds(name, [level * d * (1 + e) for d, e in zip(DRIFT, noise, strict=True)], **fields)
    return found


def compared(some, study=STUDY):
    return compare_study(study, some, Vector(), {})


def found(result, code):
    return [f for f in result.findings if f.code == code]


@pytest.mark.parametrize("blank", ["a", "b"])
def test_one_run_without_a_number_takes_the_pairing_from_nobody(blank):
    some = [replace(r, repeat=None) if (r.step, r.repeat) == (blank, 2) else r for r in runs()]
    result = compared(some)
    assert [s.verdict for s in result.steps] == ["same", "better"]
    # The round without a number is incomplete, and left out for all.
    assert [s.vs_previous.n_rounds for s in result.steps] == [6, 6]
    (told,) = found(result, "CL438")
    assert (told.severity, told.subject) == ("warning", blank)
    assert not found(result, "CL417")


@pytest.mark.parametrize("stray", [3, 77])
def test_one_stray_number_takes_no_run_away(stray):
    """One numbered run makes no five pairs: all runs stay, as independent samples, and that is said."""
    some = [
        replace(r, repeat=stray if r.repeat == 3 else None, run_id=f"b{i}") if r.step == "b" else r
        for i, r in enumerate(runs())
    ]
    result = compared(some)
    assert [s.vs_previous.n_rounds for s in result.steps] == [7, 7]
    assert [s.metrics.rounds for s in result.steps] == [7, 7]
    assert result.steps[0].metrics.energy_per_unit_j.value == pytest.approx(
        math.fsum(99.5 * d for d in DRIFT) / 7, rel=1e-3
    )
    assert not found(result, "CL438")
    (told,) = found(result, "CL417")
    assert (told.severity, "runs of 'b' carry no round" in told.message) == ("warning", True)
    assert "fewer than 5 that another arm has too" in told.message


DRIFTING = [100.0 * 1.01**i for i in range(12)]


def halves(spoil, rest):
    """Return twelve interleaved rounds of two identical variants under drift, each arm spoilt in one half."""
    found = []
    for name, lost in (("a", range(7, 13)), ("b", rest)):
        for one in rounds(name, DRIFTING, duration_s=2.0):
            found.append(spoil(one) if one.repeat in lost else one)
    return found


def throttled(one):
    return replace(one, conditions=Conditions(wall_s=10.0, throttled_s=5.0))


def without_energy(one):
    return replace(one, energy=(replace(one.energy[0], energy_j=None, state="unknown"),))


def crashed(one):
    return replace(one, status="failed", error="E: boom")


@pytest.mark.parametrize("spoil", [throttled, without_energy, crashed])
def test_pairs_that_are_lost_allow_no_verdict(spoil):
    """Base has rounds 1 to 6, the step 7 to 12: their difference is the drift of the machine."""
    gates = (Gate(name="p", metric="power_w", kind="max_ratio", limit=1.05),)
    study = replace(STUDY, steps=(Step(name="b"),), gates=gates)
    result = compared(halves(spoil, range(1, 7)), study)
    (step,) = result.steps
    assert (step.verdict, step.decision, step.vs_previous.n_rounds) == ("inconclusive", "undetermined", 0)
    effect = step.vs_previous
    assert (effect.p_value, effect.ratio.low, effect.ratio.high) == (None, None, None)
    assert effect.ratio.value == pytest.approx(1.01**6)
    # Drift is in the difference of the joules too, and no scatter within the arms tells it.
    assert (step.savings.energy_j.low, step.savings.energy_j.high) == (None, None)
    if spoil is not crashed:
        assert "0 complete rounds (a run of each), and a verdict needs 5" in step.reasons[0]
    assert step.gates[0].outcome == "undetermined"
    assert not found(result, "CL428")


def test_fewer_than_five_pairs_that_are_left_allow_no_verdict():
    (step,) = compared(halves(throttled, range(1, 4)), replace(STUDY, steps=(Step(name="b"),))).steps
    assert (step.verdict, step.vs_previous.n_rounds) == ("inconclusive", 3)


def test_an_arm_without_any_number_is_independent_and_said_on_the_terminal():
    some = [replace(r, repeat=None, run_id=f"b{i}") if r.step == "b" else r for i, r in enumerate(runs())]
    result = compared(some)
    assert [s.verdict for s in result.steps] == ["inconclusive", "better"]
    (told,) = found(result, "CL417")
    assert (told.severity, "'b'" in told.message, "'a'" in told.message) == ("warning", True, False)


def test_a_table_without_rounds_is_no_slip():
    some = [replace(r, repeat=None, run_id=f"r{i}") for i, r in enumerate(runs())]
    (told,) = found(compared(some), "CL417")
    assert told.severity == "info"


def test_arms_numbered_apart_are_compared_as_independent_with_a_finding():
    """Rounds 1 to 7 and 8 to 14: as without numbers, and never "no ratio can be made"."""
    apart = [replace(r, repeat=r.repeat + 7 * "abc".index(r.step)) for r in runs()]
    plain = [replace(r, repeat=None, run_id=f"r{i}") for i, r in enumerate(runs())]
    one, other = compared(apart), compared(plain)
    for mine, theirs in zip(one.steps, other.steps, strict=True):
        assert mine.vs_previous.ratio == theirs.vs_previous.ratio
        assert mine.verdict == theirs.verdict
    assert [f.severity for f in found(one, "CL428")] == ["warning"]
    assert not found(compared(runs()), "CL428")


def test_power_of_arms_numbered_apart_has_a_ratio_too():
    gates = (Gate(name="p", metric="power_w", kind="max_ratio", limit=1.05),)
    apart = [replace(r, repeat=r.repeat + 7 * (r.step == "b")) for r in runs(duration_s=2.0) if r.step != "c"]
    study = replace(STUDY, steps=(Step(name="b"),), gates=gates)
    (gate,) = compared(apart, study).steps[0].gates
    assert gate.observed.value == pytest.approx(0.995, rel=1e-3)
    assert gate.outcome == "pass"


SETS = {"odd": ("int8",), "even": ("int8", "prune")}


@pytest.mark.parametrize("names", ["step", "spelled"])
def test_runs_of_two_sets_under_one_step_are_refused_with_their_names(names):
    name = "b" if names == "step" else "int8"
    some = [
        *rounds("a", [100.0 * d for d in DRIFT], on=()),
        *(
            run(name, 70.0 * d, repeat=i, on=SETS["odd" if i % 2 else "even"])
            for i, d in enumerate(DRIFT, start=1)
        ),
    ]
    with pytest.raises(IncomparableError, match=rf"'{name}' .*int8, int8\+prune"):
        study_from_runs(some)
    study = Study(name="t", baseline="a", steps=(Step(name=name),), unit="image")
    with pytest.raises(IncomparableError, match=rf"'{name}' .*int8, int8\+prune"):
        compared(some, study)


def test_a_set_that_contradicts_the_study_is_refused():
    some = [*rounds("a", [100.0, 101.0], on=()), *rounds("b", [70.0, 71.0], on=("prune",))]
    study = Study(name="t", baseline="a", steps=(Step(name="b", on=("int8",)),), unit="image")
    with pytest.raises(IncomparableError, match="int8, prune"):
        compared(some, study)


def test_a_set_in_another_order_or_unstated_is_the_same_step():
    on = [("p", "q"), ("q", "p"), None]
    some = [
        *rounds("a", [100.0, 101.0, 99.0]),
        *(run("b", 70.0, repeat=i, on=one) for i, one in enumerate(on, start=1)),
    ]
    assert compared(some, replace(STUDY, steps=(Step(name="b"),))).steps[0].metrics.rounds == 3


@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_rows_changes_no_figure(seed):
    some = [
        replace(
            r,
            quality=(Quality(name="score", value=0.9 + 0.0008 * (i % 6), higher_is_better=True),),
            latency=summarise([10.0 + i % 3] * 5),
            model_bytes=1000 + i,
            macs_per_unit=2000 - i,
        )
        for i, r in enumerate(runs())
    ]
    shuffled = some[:]
    random.Random(seed).shuffle(shuffled)
    study = replace(STUDY, gates=(Gate(name="s", metric="score", kind="min_value", limit=0.9),))
    one, other = (comparison_json(compared(x, study)) for x in (some, shuffled))
    assert one == other


def test_rounds_stand_by_their_numbers_and_the_first_is_the_first():
    backwards = runs()[::-1]
    metrics = compared(backwards).baseline_metrics
    assert metrics.energy_by_round_j == pytest.approx(
        [100 * d * (1 + e) for d, e in zip(DRIFT, SCATTER, strict=True)]
    )
    nameless = [replace(r, repeat=None, run_id=f"r{i}") for i, r in enumerate(backwards)]
    # Neither numbers nor times tell which was first.
    assert compared(nameless).baseline_metrics.first_round is None
    timed = [replace(r, start_us=10 * (100 - i)) for i, r in enumerate(nameless)]
    assert compared(timed).baseline_metrics.energy_by_round_j == metrics.energy_by_round_j
    assert compared(timed).baseline_metrics.first_round is not None


@pytest.mark.parametrize("common", range(8))
def test_saved_joules_have_an_interval_only_over_rounds_that_see_the_same_drift(common):
    """Rounds drift by 10 % and nothing is saved: the first are left of one arm, the last of the other."""
    drift = [100.0 * (1 + 0.10 * i / 6) for i in range(7)]
    most = (7 + common + 1) // 2
    kept = {"a": set(range(1, most + 1)), "b": set(range(most - common + 1, 8))}
    some = [
        r if r.repeat in kept[r.step] else replace(r, energy=())
        for r in (*rounds("a", drift, u_relative=0.05), *rounds("b", drift, u_relative=0.05))
    ]
    saved = compared(some, replace(STUDY, steps=(Step(name="b"),))).steps[0].would_have.energy_j
    if common < 5:
        assert (saved.low, saved.high) == (None, None)
    else:
        assert saved.low <= 0 <= saved.high


def test_a_run_that_names_itself_as_corrected_is_not_lost():
    """As one of a circle that the ledger has told of already: its latest record counts."""
    some = [replace(r, supersedes=r.run_id) if r.step == "b" else r for r in runs()]
    assert compared(some).steps[0].vs_previous.n_rounds == 7
