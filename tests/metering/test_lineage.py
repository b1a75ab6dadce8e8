"""Which run a run is part of: by context, thread, asyncio task, environment and fork."""

import asyncio
import contextvars
import os
import subprocess
import sys
import threading

import pytest

from carbonlens.metering.lineage import VARIABLE, Lineage

OUTER, INNER, OTHER = (f"00000000-0000-7000-8000-00000000000{n}" for n in range(3))


@pytest.fixture
def lineage(monkeypatch):
    """A fresh lineage, tried in a context of its own."""
    monkeypatch.delenv(VARIABLE, raising=False)
    return Lineage()


def in_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def apart(test):
    """Run in a copy of the context, so that no test leaves a run open for the next."""

    def wrapped(lineage):
        contextvars.copy_context().run(test, lineage)

    wrapped.__name__ = test.__name__
    return wrapped


@apart
def test_nesting(lineage):
    assert lineage.parent() is None
    lineage.enter(OUTER, None)
    assert lineage.parent() == OUTER
    lineage.enter(INNER, OUTER)
    assert lineage.parent() == INNER
    assert not lineage.leave(INNER)
    assert lineage.parent() == OUTER
    assert not lineage.leave(OUTER)
    assert lineage.parent() is None


@apart
def test_children_learn_it_by_environment(lineage):
    lineage.enter(OUTER, None)
    assert os.environ[VARIABLE] == OUTER
    lineage.enter(INNER, OUTER)
    assert os.environ[VARIABLE] == INNER
    lineage.leave(INNER)
    assert os.environ[VARIABLE] == OUTER
    lineage.leave(OUTER)
    assert VARIABLE not in os.environ


@apart
def test_a_run_given_by_environment_is_the_parent_and_comes_back(lineage):
    os.environ[VARIABLE] = OTHER
    assert lineage.parent() == OTHER
    lineage.enter(OUTER, OTHER)
    assert in_thread(lineage.parent) == OUTER
    lineage.leave(OUTER)
    assert os.environ.pop(VARIABLE) == OTHER


@apart
def test_nonsense_in_the_environment_is_no_run(lineage):
    os.environ[VARIABLE] = "../../etc/passwd"
    assert lineage.parent() is None
    del os.environ[VARIABLE]


@apart
def test_a_thread_is_part_of_the_main_threads_run(lineage):
    lineage.enter(OUTER, None)
    assert in_thread(lineage.parent) == OUTER
    lineage.leave(OUTER)


@apart
def test_runs_of_two_threads_are_no_family_and_overlap(lineage):
    inside, leave = threading.Event(), threading.Event()
    overlapped = []

    def work():
        lineage.enter(OUTER, None)
        inside.set()
        leave.wait(60)
        overlapped.append(lineage.leave(OUTER))

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait(60)
    assert lineage.parent() is None
    lineage.enter(OTHER, None)
    leave.set()
    thread.join()
    assert lineage.leave(OTHER)
    assert overlapped == [True]


@apart
def test_tasks_are_part_of_the_run_they_were_made_in(lineage):
    async def task(run_id):
        parent = lineage.parent()
        lineage.enter(run_id, parent)
        await asyncio.sleep(0.01)
        lineage.leave(run_id)
        return parent

    async def main():
        lineage.enter(OUTER, None)
        parents = await asyncio.gather(task(INNER), task(OTHER))
        lineage.leave(OUTER)
        return parents

    assert asyncio.run(main()) == [OUTER, OUTER]


@apart
def test_a_run_that_has_ended_is_nobodys_parent(lineage):
    lineage.enter(OUTER, None)
    copied = contextvars.copy_context()
    lineage.leave(OUTER)
    assert copied.run(lineage.parent) is None


@apart
def test_leaving_twice_does_no_harm(lineage):
    lineage.enter(OUTER, None)
    lineage.leave(OUTER)
    assert lineage.leave(OUTER) is False


def test_a_parent_that_is_taken_out_of_the_environment_is_forgotten(monkeypatch):
    monkeypatch.setenv(VARIABLE, "01a21f7d-66a9-73bb-b1ee-43cbbb5813c7")
    lineage = Lineage()
    lineage.enter("01a21f7d-66a9-73bb-b1ee-43cbbb5813c8", lineage.parent())
    lineage.leave("01a21f7d-66a9-73bb-b1ee-43cbbb5813c8")
    monkeypatch.delenv(VARIABLE)
    assert lineage.parent() is None


@apart
def test_a_run_that_another_thread_closes_leaves_what_is_around_it(lineage):
    lineage.enter(OUTER, None)
    lineage.enter(INNER, OUTER)
    in_thread(lambda: lineage.leave(INNER))
    assert lineage.parent() == OUTER
    lineage.leave(OUTER)
    assert lineage.parent() is None


@apart
def test_a_run_that_outlives_what_encloses_it_is_part_of_what_is_around_that(lineage):
    os.environ[VARIABLE] = "01a21f7d-66a9-73bb-b1ee-43cbbb5813c7"
    around = lineage.parent()
    lineage.enter(OUTER, around)
    lineage.enter(INNER, OUTER)
    lineage.enter(OTHER, INNER)
    assert lineage.leave(OUTER)  # both sides say it
    assert lineage.parent_of(INNER) == around
    assert lineage.parent_of(OTHER) == INNER
    assert not lineage.leave(OTHER)
    assert lineage.leave(INNER)
    assert lineage.parent_of(INNER) is None
    os.environ.pop(VARIABLE)


def test_a_run_that_ended_is_no_parent_in_a_fork_either(lineage):
    def blocks(test):
        for run_id, leaves in ((OUTER, False), (INNER, False), (OUTER, True), (INNER, True)):
            if leaves:
                lineage.leave(run_id)
            else:
                lineage.enter(run_id, lineage.parent())
            test(run_id, leaves)

    told = []
    contextvars.copy_context().run(blocks, lambda *_: told.append(lineage.at_fork()))
    assert told == [OUTER, INNER, INNER, None]


@apart
def test_a_fork_in_a_run_that_another_thread_closed_is_part_of_what_is_around_it(lineage):
    lineage.enter(OUTER, None)
    lineage.enter(INNER, OUTER)
    in_thread(lambda: lineage.leave(INNER))
    assert lineage.at_fork() == OUTER


@apart
def test_a_fork_asks_no_lock_that_its_parent_holds(lineage):
    lineage.enter(OUTER, None)
    with lineage._lock:
        assert lineage.at_fork() == OUTER


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_knows_no_run_that_has_ended(tmp_path):
    code = (
        "import os, carbonlens\n"
        "a, b = (carbonlens.track(n, study='s', ledger='led') for n in 'ab')\n"
        "a.__enter__(); b.__enter__(); a.__exit__(None, None, None); b.__exit__(None, None, None)\n"
        "if not (child := os.fork()):\n"
        "    with carbonlens.track('c', study='s', ledger='led') as run: pass\n"
        "    print(run.run.parent_run_id, flush=True); os._exit(0)\n"
        "os.waitpid(child, 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "None\n"
