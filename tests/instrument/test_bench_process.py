"""A variant's process: a fresh one for each round, unless that takes too long."""

import signal
import threading
import time
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from carbonlens.app.bench import _about, in_one_process
from carbonlens.domain.bench import Pace, Variant
from carbonlens.domain.sources import Sources
from carbonlens.errors import MeasurementError
from carbonlens.instrument import bench_process
from carbonlens.instrument.bench import BenchResult
from carbonlens.instrument.bench_process import ProcessArm, is_late
from carbonlens.instrument.child import subreaper
from carbonlens.instrument.window import Label, Place
from carbonlens.ledger.store import Ledger
from tests.instrument.synthetic import bench_of
from tests.instrument.test_bench_command import SLOW, seen

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

def forks_and_dies(given=None):
    call()
    if len(open("seen").readlines()) > 2:
        if os.fork() == 0:
            time.sleep(600)
        os.kill(os.getpid(), 9)

def leaves(given=None):
    call()
    raise SystemExit(0)

def hangs(given=None):
    call()
    if len(open("seen").readlines()) > 1:
        open("hangs", "w").close()
        time.sleep(600)

def fresh_fails(given=None):
    known = {line.split()[0] for line in open("seen")} if os.path.exists("seen") else ()
    call()
    if len(known) == 2 and str(os.getpid()) not in known:
        raise ValueError("private")

def fresh_dies(given=None):
    try:
        fresh_fails(given)
    except ValueError:
        os._exit(5)

def made_twice():
    call()
    if len(open("seen").readlines()) > 2:
        raise ValueError("private")

def is_loud(given=None):
    call()
    print("x" * 600_000)

def tracks(given=None):
    import carbonlens
    call(given)
    with carbonlens.track("inner"):
        pass

def tracks_making():
    tracks()
    return "made"

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

    def arm(function="call", prepare="made", window_s=0.001, sources=None):
        variant = Variant(
            name="a", kind="callable", callable=f"renewed_work:{function}", prepare=f"renewed_work:{prepare}"
        )
        bench = replace(bench_of(("a", "b"), window_s=window_s, warm_up=0), folder=str(tmp_path))
        label = Label(step="a", study="s", role="variant", unit="call")
        place = Place(ledger=str(tmp_path / "ledger"), sources=sources or Sources())
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


def test_one_late_start_does_not_put_the_other_rounds_into_one_process(arm_of, tmp_path, monkeypatch):
    arm = arm_of()
    arm.shared_from = None  # whatever a busy machine made of the time before
    looks = accumulate(took for start_s in (0.5, 4.5, 0.5) for took in (0.0, start_s))
    monkeypatch.setattr(bench_process, "time", SimpleNamespace(monotonic=lambda: next(looks)))
    for number in (1, 2, 3, 4):
        arm.measure(number)
    monkeypatch.undo()
    assert arm.shared_from is None
    assert arm._ready_s == [0.5, 4.5, 0.5]
    assert len(processes(tmp_path)[0]) == 4


def test_a_fresh_process_that_fails_is_the_variants_failure(arm_of):
    arm = arm_of("fails_later")

    def measured():
        for number in range(1, 9):
            arm.measure(number)

    with pytest.raises(MeasurementError, match="out of memory"):
        measured()


def recorded(tmp_path):
    return Ledger(tmp_path / "ledger").view().runs


def measured(arm, rounds):
    for number in range(1, rounds + 1):
        arm.shared_from = None  # whatever a busy machine made of the time before
        arm.measure(number)


def test_a_worker_that_dies_beside_what_it_forked_is_not_waited_for(arm_of, tmp_path):
    """A loader of data, say, that has the worker's pipe: its end would never be told."""
    with subreaper():
        arm = arm_of("forks_and_dies")
        with pytest.raises(MeasurementError, match="signal 9"):
            measured(arm, 3)
        arm.close()
    mark = f"CARBONLENS_RESULT={tmp_path}".encode()
    assert not [p for p in Path("/proc").glob("[0-9]*/environ") if mark in seen(p)]


def test_a_function_that_leaves_the_program_is_a_failure_that_is_recorded_once(arm_of, tmp_path):
    with pytest.raises(MeasurementError, match="SystemExit"):
        arm_of("leaves")
    assert [(r.role, r.status, r.error) for r in recorded(tmp_path) if r.role != "effort"] == [
        ("evaluation", "failed", "SystemExit")
    ]


def test_a_window_that_the_user_cuts_did_not_end_and_fails_nothing(arm_of, tmp_path):
    """A second Ctrl-C, or a signal that ends the bench: going on measures that round again."""
    arm = arm_of("hangs", "made")

    def interrupt():
        while not (tmp_path / "hangs").exists():
            time.sleep(0.01)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        arm.measure(1)
    arm.close()
    assert arm._child.returncode == 128 + signal.SIGTERM
    assert "Traceback" not in (tmp_path / "output.log").read_text()
    assert [r.status for r in recorded(tmp_path) if r.role == "variant"] == ["recovered"]


@pytest.mark.parametrize(
    ("function", "prepare", "kept"),
    [
        ("fresh_fails", "made", "ValueError"),
        ("fresh_dies", "made", "its process ended with 5"),
        ("call", "made_twice", "ValueError"),
    ],
)
def test_one_that_fails_in_a_fresh_process_has_failed_in_the_round(arm_of, tmp_path, function, prepare, kept):
    """Its rounds so far would have it adopted: nothing but a record of the failure prevents that."""
    arm = arm_of(function, prepare)
    with pytest.raises(MeasurementError):
        measured(arm, 9)
    done = [r.repeat for r in recorded(tmp_path) if r.role == "variant" and r.status == "complete"]
    (failed,) = [r for r in recorded(tmp_path) if r.status == "failed"]
    assert (failed.role, failed.repeat, failed.error) == ("variant", len(done) + 1, kept)
    assert len(done) >= 1


def test_what_a_loud_function_prints_is_not_kept_for_all_rounds(arm_of, tmp_path):
    arm = arm_of("is_loud")
    for number in range(1, 6):
        arm.shared_from = 1
        arm.measure(number)
    assert (tmp_path / "output.log").stat().st_size < 2_000_000


@pytest.mark.parametrize("stated", [True, False])
def test_what_a_function_tracks_itself_is_a_part_of_its_window_and_recorded_where_that_is(
    arm_of, tmp_path, monkeypatch, stated
):
    if stated:  # the user's own variable must not make roots of what is done again
        monkeypatch.setenv("CARBONLENS_LEDGER", str(tmp_path / "ledger"))
    measured(arm_of("tracks", "tracks_making"), 3)
    runs = recorded(tmp_path)
    outer = {r.run_id: r.role for r in runs if r.step == "a"}
    inner = [outer[r.parent_run_id] for r in runs if r.step == "inner"]
    # What each further process prepares and checks again is not recorded, whoever tracks it.
    assert (inner.count("effort"), inner.count("evaluation")) == (1, 1)
    assert inner.count("variant") >= 3
    assert not (tmp_path / ".carbonlens").exists()


def test_a_functions_window_is_longer_than_the_update_period_of_its_meters(arm_of):
    run = arm_of(window_s=0.05, sources=SLOW).measure(1)
    assert run.duration_s >= 0.8
    assert run.units > 1
