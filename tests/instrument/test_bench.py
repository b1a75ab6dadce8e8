"""The engine of a bench: rounds, stopping, failing arms, Ctrl-C, resuming."""

import os
import signal
import time

import msgspec
import pytest
from msgspec.structs import replace

from carbonlens.app.bench import _early
from carbonlens.compare.study import compare_study
from carbonlens.domain.bench import Pace
from carbonlens.domain.factor import Vector
from carbonlens.domain.run import Quality
from carbonlens.errors import MeasurementError
from carbonlens.instrument.bench import BenchResult, run_bench
from carbonlens.instrument.progress import Silent
from tests.instrument.synthetic import PLACE, Machine, bench_of, opener

LEVELS = {"a": 10.0, "b": 10.0, "c": 5.0}


def go(tmp_path, machine, bench, *, levels=LEVELS, fails=None, done=(), progress=None):
    open_arm, kept = opener(machine, levels, fails)
    result = run_bench(
        bench, PLACE, scratch=tmp_path, progress=progress or Silent(), done=done, open_arm=open_arm
    )
    assert all(arm.closed for arm in kept.arms)
    return result


def rounds_of(machine):
    return [(r.step, r.repeat) for r in machine.runs if r.role == "variant"]


def test_arms_take_turns_and_mirror_every_second_round(tmp_path):
    machine = Machine(1)
    go(tmp_path, machine, bench_of(("a", "b", "c"), most=10))
    measured = rounds_of(machine)
    assert [r for _, r in measured] == [n for n in range(1, 11) for _ in range(3)]
    orders = [[s for s, r in measured if r == n] for n in range(1, 11)]
    assert all(second == first[::-1] for first, second in zip(orders[::2], orders[1::2], strict=True))


def test_it_stops_when_the_intervals_are_narrow_and_never_before_ten_rounds(tmp_path):
    quiet = go(tmp_path, Machine(2, cv=0.0005), bench_of(("a", "b", "c")))
    assert (quiet.ended, quiet.rounds) == ("narrow_enough", 10)
    noisy = go(tmp_path, Machine(2, cv=0.02), bench_of(("a", "b", "c")))
    assert (noisy.ended, noisy.rounds) == ("most_rounds", 40)
    assert noisy.half_width > 0.01 > quiet.half_width


def test_the_number_of_rounds_does_not_depend_on_the_saving(tmp_path):
    counts = {
        go(tmp_path, Machine(5), bench_of(("a", "b")), levels={"a": 10.0, "b": level}).rounds
        for level in (5.0, 9.9, 10.0, 11.0, 30.0)
    }
    assert len(counts) == 1


def test_the_budget_ends_it_but_not_before_the_least_rounds(tmp_path):
    result = go(tmp_path, Machine(3, cv=0.05), bench_of(("a", "b"), budget_s=1e-9))
    assert (result.ended, result.rounds) == ("budget", 10)


@pytest.mark.parametrize("when", ["prepare", "check", 3])
def test_an_arm_that_fails_leaves_and_the_others_go_on(tmp_path, when):
    machine = Machine(4)
    result = go(tmp_path, machine, bench_of(("a", "b", "c"), most=12), fails={"b": when})
    assert set(result.failed) == {"b"}
    assert "went wrong" in result.failed["b"]
    assert {r for s, r in rounds_of(machine) if s == "c"} == set(range(1, result.rounds + 1))
    tried = [what for name, what in machine.calls if name == "b"]
    assert tried.count("measure") == (3 if when == 3 else 0)


@pytest.mark.parametrize("when", ["prepare", "check", 3])
def test_without_a_baseline_there_is_nothing_to_compare(tmp_path, when):
    with pytest.raises(MeasurementError, match="went wrong"):
        go(tmp_path, Machine(4), bench_of(("a", "b")), fails={"a": when})


def test_with_the_baseline_alone_it_ends(tmp_path):
    assert go(tmp_path, Machine(4), bench_of(("a", "b")), fails={"b": 2}).ended == "nothing_left"


class Interrupting(Silent):
    """Sends Ctrl-C after some rounds."""

    def __init__(self, after):
        self.left, self.phase = after, None

    def start(self, total, label):
        self.phase = label

    def advance(self):
        if self.phase == "Measuring":
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_keeps_finished_rounds_and_resume_goes_on_with_the_next(tmp_path):
    machine = Machine(6, cv=0.03)
    bench = bench_of(("a", "b"), most=12)
    first = go(tmp_path, machine, bench, progress=Interrupting(4))
    assert (first.ended, first.rounds) == ("interrupted", 4)
    before = list(machine.runs)
    second = go(tmp_path, machine, bench, done=before)
    assert (second.ended, second.rounds) == ("most_rounds", 12)
    repeats = [r.repeat for r in machine.runs if r.role == "variant" and r.step == "a"]
    assert repeats == list(range(1, 13))
    assert sum(r.role in ("effort", "evaluation") for r in machine.runs) == 4
    # What a function made lived in a process that is gone: it is made again, and not recorded again.
    assert [c for c in machine.calls if c[1] == "prepare"] == [("a", "prepare"), ("b", "prepare")] * 2


def evaluations(machine):
    return [name for name, what in machine.calls if what == "evaluate"]


@pytest.mark.parametrize("told", [(), (Quality(name="confidence", value=0.5, n=None),)], ids=["none", "one"])
def test_an_evaluation_is_run_once_whatever_the_check_or_it_told(tmp_path, told):
    machine = Machine(8, cv=0.0005)
    machine.evaluates, machine.told = True, told
    go(tmp_path, machine, bench_of(("a", "b")))
    assert evaluations(machine) == ["a", "b"]
    go(tmp_path, machine, bench_of(("a", "b")), done=machine.runs)
    assert evaluations(machine) == ["a", "b"]


def test_an_evaluation_that_did_not_end_is_run_by_the_next_sitting_though_the_check_told_a_quality(tmp_path):
    machine = Machine(8, cv=0.0005)
    machine.evaluates, machine.told = True, (Quality(name="confidence", value=0.5, n=None),)
    go(tmp_path, machine, bench_of(("a", "b", "c")), fails={"b": "evaluate"})
    assert evaluations(machine) == ["a", "b", "c"]
    # What a command tracks itself may look like an evaluation of the series.
    own = [replace(r, tags={}, run_id="own") for r in machine.runs if (r.step, r.role) == ("b", "evaluation")]
    go(tmp_path, machine, bench_of(("a", "b", "c")), done=[*machine.runs, *own])
    assert evaluations(machine) == ["a", "b", "c", "b"]


def test_resuming_what_is_complete_measures_nothing_more(tmp_path):
    machine = Machine(7, cv=0.0005)
    bench = bench_of(("a", "b"))
    go(tmp_path, machine, bench)
    before = len(machine.runs)
    again = go(tmp_path, machine, bench, done=tuple(machine.runs))
    assert (again.rounds, again.ended, len(machine.runs)) == (10, "narrow_enough", before)


def cut(run):
    """Return a run that a second Ctrl-C ended."""
    return msgspec.structs.replace(run, status="recovered", run_id=f"{run.run_id}-cut")


def test_a_round_that_was_cut_short_has_its_number_and_is_none(tmp_path):
    machine, bench = Machine(6, cv=0.0005), bench_of(("a", "b"), most=10)
    go(tmp_path, machine, bench, progress=Interrupting(4))
    before = [r for r in machine.runs if not (r.step == "b" and r.repeat == 4)]
    before.append(cut(next(r for r in machine.runs if r.step == "b" and r.repeat == 4)))
    machine.runs[:] = before
    result = go(tmp_path, machine, bench, done=before)
    assert (result.ended, result.rounds) == ("narrow_enough", 10)
    repeats = [r.repeat for r in machine.runs if r.role == "variant" and r.step == "b"]
    assert repeats == [1, 2, 3, 4, *range(5, 12)]


def test_an_interrupt_within_a_round_counts_the_complete_ones(tmp_path):
    machine, bench = Machine(6, cv=0.03), bench_of(("a", "b"), most=12)

    class Within(Machine):
        def factor(self):
            if (
                self.windows == 4 + 2 * 3
            ):  # two checks and two efforts, three rounds, then the first of the fourth
                os.kill(os.getpid(), signal.SIGINT)
            return super().factor()

    machine = Within(6, cv=0.03)
    result = go(tmp_path, machine, bench)
    assert (result.ended, result.rounds) == ("interrupted", 3)


def test_a_narrow_interval_of_too_few_rounds_is_not_said_to_be_wide():
    pace = Pace(half_width=0.01, most=10)
    narrow = BenchResult(rounds=10, ended="most_rounds", half_width=0.004)
    (said,) = _early(narrow, pace)
    assert "did not reach" not in said.message
    assert "fewer than 10 of 10 rounds" in said.message
    (said,) = _early(msgspec.structs.replace(narrow, rounds=12, ended="budget"), pace)
    assert said.code == "CL168"
    assert "before" not in said.message
    assert "the time was up: fewer than 10 of 12 rounds" in said.message
    (said,) = _early(msgspec.structs.replace(narrow, ended="budget", half_width=0.02), pace)
    assert "the time was up after 10 rounds, before ±1 %; the widest interval is ±2.0 %" in said.message
    (said,) = _early(msgspec.structs.replace(narrow, half_width=0.02), pace)
    assert "10 rounds did not reach ±1 %; the widest interval is ±2.0 %" in said.message


@pytest.mark.parametrize("ended", ["budget", "most_rounds", "interrupted"])
@pytest.mark.parametrize("needed", [None, 12, 545, 5000])
def test_how_to_go_on_names_every_option_that_the_rounds_asked_for_need(ended, needed):
    pace = Pace(half_width=0.01, most=40)
    (said,) = _early(BenchResult(rounds=10, ended=ended, half_width=0.09, needed=needed), pace)
    if needed == 5000:
        assert "--resume" not in said.mend
        return
    assert "--resume" in said.mend
    assert ("--budget" in said.mend) == (ended == "budget")
    # What 40 rounds would do needs no more of them, unless 40 were measured.
    assert ("--rounds 545" in said.mend) == (needed == 545 and ended != "interrupted")


@pytest.mark.parametrize(("needed", "round_s", "told"), [(117, 2.5, 290), (13, 0.01, 10), (12, 2.5, None)])
def test_a_series_whose_time_was_up_says_how_much_more_its_rounds_take(needed, round_s, told):
    result = BenchResult(rounds=12, ended="budget", half_width=0.035, needed=needed, round_s=round_s)
    (said,) = _early(result, Pace(half_width=0.01, most=40))
    assert ("a larger --budget" if told is None else f"--budget {told}") in said.mend


def test_the_time_of_a_round_is_that_of_this_sitting(tmp_path):
    begun = time.monotonic()
    result = go(tmp_path, Machine(2, cv=0.02), bench_of(("a", "b"), most=12))
    assert 0 < result.round_s * result.rounds <= time.monotonic() - begun


def test_a_series_that_ended_early_says_how_many_rounds_its_scatter_asks_for(tmp_path):
    bench = bench_of(("a", "b"), most=12)
    result = go(tmp_path, Machine(2, cv=0.02), bench)
    assert (result.ended, result.rounds) == ("most_rounds", 12)
    (said,) = _early(result, bench.pace)
    assert f"about {result.needed} rounds would do" in said.message
    # That is true: so many more, and it ends as wanted, give or take what the scatter turns out to be.
    longer = go(tmp_path, Machine(2, cv=0.02), bench_of(("a", "b"), most=3 * result.needed))
    assert longer.ended == "narrow_enough"
    assert result.needed / 2 < longer.rounds < 2 * result.needed
    wild = go(tmp_path, Machine(2, cv=2.0), bench)
    (said,) = _early(wild, bench.pace)
    assert "1000 rounds would be too few" in said.message
    # More rounds are no way out, and are not advised.
    assert "--resume" not in said.mend
    assert "half_width" in said.mend


class Noting(Silent):
    """Keeps what it is told."""

    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)


@pytest.mark.parametrize("when", ["prepare", "check", 3])
def test_who_failed_is_named_once(tmp_path, when):
    told = Noting()
    result = go(tmp_path, Machine(4), bench_of(("a", "b", "c"), most=10), fails={"b": when}, progress=told)
    said = "measure went wrong" if when == 3 else f"{when} went wrong"
    assert result.failed == {"b": said}
    assert told.notes == [f"b failed: {said}"]


def test_a_baseline_that_fails_in_a_round_says_how_to_go_on_and_that_goes_on(tmp_path):
    machine, bench = Machine(8, cv=0.0005), bench_of(("a", "b"))
    with pytest.raises(MeasurementError) as failed:
        go(tmp_path, machine, bench, fails={"a": 7})
    assert "6 finished rounds are kept" in failed.value.mend
    assert "--resume goes on with them if no measured file was changed" in failed.value.mend
    assert "otherwise begin anew" in failed.value.mend
    lost = msgspec.structs.replace(machine.runs[-1], step="a", repeat=7, status="failed", error="went wrong")
    told = Noting()
    result = go(tmp_path, machine, bench, done=[*machine.runs, lost], progress=told)
    assert (result.ended, result.rounds) == ("narrow_enough", 10)
    assert any("that round is left out" in note for note in told.notes)
    with pytest.raises(MeasurementError) as failed:
        go(tmp_path, machine, bench, fails={"a": "check"})
    assert "--resume" not in failed.value.mend


@pytest.mark.parametrize("is_listed", [False, True])
def test_without_any_energy_source_it_ends_after_the_first_check(tmp_path, is_listed):
    machine = Machine(9)
    open_arm, _ = opener(machine, LEVELS)

    def blind(*given):
        arm = open_arm(*given)
        whole = arm.check

        def check(*, record):
            run = whole(record=record)
            unread = [msgspec.structs.replace(r, energy_j=None, state="unknown") for r in run.energy]
            return msgspec.structs.replace(run, energy=tuple(unread) if is_listed else ())

        arm.check = check
        return arm

    with pytest.raises(MeasurementError, match="nothing here tells the energy"):
        run_bench(bench_of(("a", "b")), PLACE, scratch=tmp_path, progress=Silent(), open_arm=blind)
    assert ("b", "check") not in machine.calls
    assert not [c for c in machine.calls if c[1] == "measure"]


def test_an_arm_that_fails_is_closed_at_once(tmp_path):
    machine = Machine(4)
    open_arm, kept = opener(machine, LEVELS, {"b": 3})
    seen = []

    class Watching(Silent):
        def advance(self):
            seen.append([arm.closed for arm in kept.arms])

    run_bench(
        bench_of(("a", "b", "c"), most=12), PLACE, scratch=tmp_path, progress=Watching(), open_arm=open_arm
    )
    assert [False, True, False] in seen


def verdicts(tmp_path, level, seeds):
    found = []
    for seed in seeds:
        machine, bench = Machine(seed), bench_of(("a", "b"))
        go(tmp_path, machine, bench, levels={"a": 10.0, "b": level})
        found.append(compare_study(bench.study, machine.runs, Vector(), {}).steps[0].verdict)
    return found


def test_two_identical_variants_are_not_told_apart(tmp_path):
    found = verdicts(tmp_path, 10.0, range(100))
    assert sum(v in ("same", "inconclusive") for v in found) >= 95


def test_one_that_takes_a_tenth_more_is_worse(tmp_path):
    found = verdicts(tmp_path, 11.0, range(100, 140))
    assert sum(v == "worse" for v in found) >= 36
