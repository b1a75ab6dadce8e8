"""A variant's process: a fresh one for each round, unless that takes too long."""

import pytest
from msgspec.structs import replace

from carbonlens.app.bench import _about, in_one_process
from carbonlens.domain.bench import Pace, Variant
from carbonlens.domain.sources import Sources
from carbonlens.errors import MeasurementError
from carbonlens.instrument.bench import BenchResult
from carbonlens.instrument.bench_process import ProcessArm, is_late
from carbonlens.instrument.window import Label, Place
from carbonlens.ledger.store import Ledger
from tests.instrument.synthetic import bench_of

WORK = """
import os, time

def made():
    return "made"

def slowly():
    with open("prepared", "a") as stream:
        stream.write("once ")
    time.sleep(1.3)
    return "made"

def call(given="none"):
    with open("seen", "a") as stream:
        stream.write(f"{os.getpid()} {given}\\n")

def sleeps(given):
    call(given)
    time.sleep(1.3)

def hiccups(given):
    call(given)
    if len({line.split()[0] for line in open("seen")}) == 2:
        time.sleep(4.5)

def fails_later(given=None):
    call()
    if len(open("seen").readlines()) > 3:
        raise ValueError("out of memory")
"""


@pytest.fixture
def arm_of(tmp_path):
    """Make arms of functions, checked, and close them."""
    (tmp_path / "renewed_work.py").write_text(WORK)
    made = []

    def arm(function="call", prepare="made", window_s=0.001):
        variant = Variant(
            name="a", kind="callable", callable=f"renewed_work:{function}", prepare=f"renewed_work:{prepare}"
        )
        bench = replace(bench_of(("a", "b"), window_s=window_s, warm_up=0), folder=str(tmp_path))
        label = Label(step="a", study="s", role="variant", unit="call")
        place = Place(ledger=str(tmp_path / "ledger"), sources=Sources())
        one = ProcessArm(variant, bench, place, label, tmp_path)
        made.append(one)
        one.prepare(record=True)
        one.check(record=True)
        return one

    yield arm
    for one in made:
        one.close()


def processes(tmp_path):
    """Return the processes that called, in order, and what they were given."""
    lines = [line.split() for line in (tmp_path / "seen").read_text().splitlines()]
    return list(dict.fromkeys(pid for pid, _ in lines)), {given for _, given in lines}


def test_each_round_has_a_process_of_its_own_with_what_was_prepared(arm_of, tmp_path):
    arm = arm_of()
    for number in (1, 2, 3):
        arm.shared_from = None  # whatever a busy machine made of the time before
        arm.measure(number)
    pids, given = processes(tmp_path)
    assert (len(pids), given) == (3, {"made"})
    roles = [r.role for r in Ledger(tmp_path / "ledger").view().runs]
    assert sorted(roles) == ["effort", "evaluation", "variant", "variant", "variant"]


def test_one_that_is_slow_to_be_ready_is_kept_and_that_is_said(arm_of, tmp_path):
    arm = arm_of(prepare="slowly")
    for number in (1, 2, 3, 4):
        arm.measure(number)
    assert arm.shared_from == 1
    # Known by the first process already: a long effort is not done again to see it.
    assert (len(processes(tmp_path)[0]), (tmp_path / "prepared").read_text()) == (1, "once ")
    result = BenchResult(rounds=4, ended="narrow_enough", in_one_process={"a": 1})
    (finding,) = _about(result, Pace())
    assert (finding.code, finding.severity) == ("CL188", "info")
    assert finding.message.startswith("one process for all rounds of a: ")
    assert _about(BenchResult(rounds=10, ended="narrow_enough"), Pace()) == ()


def test_one_that_is_always_slow_after_preparing_is_kept_in_the_end(arm_of, tmp_path):
    arm = arm_of("sleeps")
    arm.shared_from = None  # whatever a busy machine made of the time before
    for number in (1, 2, 3, 4, 5):
        arm.measure(number)
    assert arm.shared_from in (2, 3, 4)  # the later it is, the sooner
    # Each of the rounds before has its own, the first one too.
    assert len(processes(tmp_path)[0]) == arm.shared_from


@pytest.mark.parametrize(
    ("ready_s", "expected"),
    [
        ((0.5,), False),
        ((4.5,), False),
        ((60.0,), True),
        ((4.0, 4.0, 4.0), True),
        ((0.5, 60.0, 60.0), False),
        ((0.5, 60.0, 60.0, 60.0), True),
        ((60.0, 60.0, 60.0, 0.5), False),
    ],
)
def test_the_latest_processes_tell_whether_one_is_kept(ready_s, expected):
    assert is_late(ready_s, limit_s=3.0) is expected


def test_which_rounds_shared_a_process_is_told_of_each_variant():
    assert in_one_process(BenchResult(rounds=12, ended="most_rounds")) == ""
    some = BenchResult(rounds=12, ended="most_rounds", in_one_process={"a": 1, "b": 4, "c": 1})
    assert in_one_process(some) == "all rounds of a, c and b from round 4 on"


@pytest.mark.slow
def test_one_late_start_does_not_put_the_other_rounds_into_one_process(arm_of, tmp_path):
    arm = arm_of("hiccups", window_s=1.0)
    for number in (1, 2, 3, 4):
        arm.measure(number)
    assert arm.shared_from is None
    assert len(processes(tmp_path)[0]) == 4


def test_a_fresh_process_that_fails_is_the_variants_failure(arm_of):
    arm = arm_of("fails_later")

    def measured():
        for number in range(1, 9):
            arm.measure(number)

    with pytest.raises(MeasurementError, match="out of memory"):
        measured()
