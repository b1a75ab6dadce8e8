"""Phases of a tracked block: whatever is given and wherever they are left, the work goes on as before."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from decimal import Decimal

import pytest

from carbonlens import track
from tests.metering.processes import runs


@pytest.fixture
def ledger(tmp_path):
    return tmp_path / "ledger"


def entered(run):
    return {p.name: p.entries for p in run.phases}


def codes(run):
    return [f.code for f in run.findings]


def test_steps_count_in_the_run_and_in_their_phase(ledger):
    with track(ledger=ledger, unit="sample") as run:
        run.step(5)
        with run.phase("warm-up"):
            run.step()
        run.enter_phase("steady")
        for _ in range(3):
            run.step(units=2.5)
        run.add_units(1)
        run.enter_phase(None)
    (stored,) = runs(ledger)
    assert stored == run.run
    assert stored.units == Decimal("14.5")
    assert {p.name: p.units for p in stored.phases} == {"warm-up": 1, "steady": Decimal("8.5")}


def test_an_exception_leaves_the_phase_and_goes_on(ledger):
    error = KeyError("mine")
    handles = []

    def work():
        with track(ledger=ledger) as run, run.phase("outer"):
            handles.append(run)
            try:
                with run.phase("inner"):
                    raise ValueError("caught by the work")
            except ValueError:
                time.sleep(0.02)
            with run.phase("inner"):
                raise error

    with pytest.raises(KeyError) as caught:
        work()
    assert caught.value is error
    (run,) = handles
    assert (run.run.status, entered(run.run)) == ("failed", {"outer": 1, "inner": 2})
    outer = run.run.phases[0]
    assert outer.duration_s >= 0.02


@pytest.mark.parametrize("name", [None, 7, "", b"x", object()])
def test_a_name_that_is_no_text_is_said_and_nothing_is_entered(ledger, name):
    with track(ledger=ledger) as run:
        with run.phase(name):
            run.step()
        if name is not None:
            run.enter_phase(name)
    assert run.run.status == "complete"
    assert run.run.phases == ()
    assert run.run.units == 1
    assert codes(run.run).count("CL110") == 1


def test_steps_of_no_number_are_said(ledger):
    with track(ledger=ledger) as run:
        run.step("many")
        run.step(-1)
    assert run.run.units is None
    assert codes(run.run).count("CL110") == 1


def test_in_a_forked_child_a_phase_is_nothing(ledger):
    with track(ledger=ledger) as run, run.phase("parents"):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                with run.phase("childs"):
                    run.enter_phase("more")
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert entered(run.run) == {"parents": 1}


def test_a_phase_lock_held_at_the_fork_does_not_hold_the_child(ledger):
    with track(ledger=ledger) as run:
        with run._session.phases._lock:
            pid = os.fork()
            if pid == 0:
                begin = time.monotonic()
                with run.phase("childs"):
                    pass
                os._exit(int(time.monotonic() - begin > 1))
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_after_the_block_a_phase_is_nothing(ledger):
    with track(ledger=ledger) as run, run.phase("whole"):
        late = run.phase("late")
    sealed = run.run
    with late, run.phase("later"):
        run.step()
    run.enter_phase("last")
    assert run.run == sealed == runs(ledger)[0]
    assert entered(sealed) == {"whole": 1}


def test_a_phase_that_outlives_the_block_ends_with_it(ledger):
    tracker = track(ledger=ledger)
    run = tracker.__enter__()
    block = run.phase("open")
    block.__enter__()
    time.sleep(0.2)
    tracker.__exit__(None, None, None)
    block.__exit__(None, None, None)
    (phase,) = run.run.phases
    assert 0.2 <= phase.duration_s <= run.run.duration_s


def test_two_threads_at_once_share_the_time_and_it_is_said(ledger):
    with track(ledger=ledger) as run:
        first, second = threading.Event(), threading.Event()

        def one():
            with run.phase("one"):
                first.set()
                second.wait(60)

        def two():
            first.wait(60)
            with run.phase("two"):
                second.set()
                thread.join(60)
                time.sleep(0.01)

        thread, other = threading.Thread(target=one), threading.Thread(target=two)
        thread.start()
        other.start()
        other.join()
    assert entered(run.run) == {"one": 1, "two": 1}
    assert "CL175" in codes(run.run)
    assert sum(p.duration_s for p in run.run.phases) <= run.run.duration_s


def test_many_threads_lose_no_entry(ledger):
    with track(ledger=ledger) as run:

        def enter(name):
            for _ in range(300):
                with run.phase(name):
                    run.step()

        threads = [threading.Thread(target=enter, args=(f"t{k}",)) for k in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert entered(run.run) == {f"t{k}": 300 for k in range(4)}
    assert run.run.units == 1200
    assert sum(p.units or 0 for p in run.run.phases) <= 1200
    assert sum(p.duration_s for p in run.run.phases) <= run.run.duration_s


def test_a_generator_keeps_its_phase_open_until_it_is_closed(ledger):
    def batches(run):
        with run.phase("load"):
            yield from range(10)

    with track(ledger=ledger) as run:
        source = batches(run)
        next(source)
        with run.phase("steady"):
            source.close()  # what was entered first is left first
            time.sleep(0.01)
    assert entered(run.run) == {"load": 1, "steady": 1}
    assert "CL175" in codes(run.run)
    left_open = None
    with track(ledger=ledger) as run:
        left_open = batches(run)
        next(left_open)
    left_open.close()
    assert entered(run.run) == {"load": 1}


def test_tasks_that_take_turns_end_where_they_began(ledger):
    async def work(run, name):
        with run.phase(name):
            await asyncio.sleep(0.01)

    async def both(run):
        await asyncio.gather(work(run, "a"), work(run, "b"))

    with track(ledger=ledger) as run:
        asyncio.run(both(run))
        time.sleep(0.05)
    assert entered(run.run) == {"a": 1, "b": 1}
    assert sum(p.duration_s for p in run.run.phases) < run.run.duration_s - 0.04


def test_a_run_that_is_not_measured_takes_phases_all_the_same(monkeypatch, ledger):
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null/x")
    run = track(ledger=ledger)._handle()  # measuring has not begun
    with run.phase("load"):
        run.enter_phase("x")
        run.step()
    assert run.run.phases == ()


def test_a_phase_object_may_be_used_again(ledger):
    with track(ledger=ledger) as run:
        block = run.phase("steady")
        with block, block:
            pass
        with block:
            pass
    assert entered(run.run) == {"steady": 3}


def test_a_process_that_is_ended_at_a_switch_is_sealed_with_its_phases(tmp_path, ledger):
    code = textwrap.dedent("""
        import sys
        from carbonlens import track
        with track(ledger=sys.argv[1]) as run:
            print("on", flush=True)
            k = 0
            while True:
                with run.phase(f"p{k % 2}"):
                    run.step()
                k += 1
    """)
    child = subprocess.Popen([sys.executable, "-c", code, str(ledger)], stdout=subprocess.PIPE)
    child.stdout.readline()
    time.sleep(0.5)
    child.terminate()
    assert child.wait(60) == -signal.SIGTERM
    (run,) = runs(ledger)
    assert (run.status, run.error) == ("failed", "killed by signal 15")
    assert set(entered(run)) == {"p0", "p1"}
    assert 0 < sum(p.duration_s for p in run.phases) <= run.duration_s
    assert sum(p.units for p in run.phases) <= run.units
