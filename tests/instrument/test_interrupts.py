"""A Ctrl-C at any moment of a block's begin and end: the run is sealed, and nothing is left open."""

import importlib.util
import os
import sys
import threading

import pytest

from carbonlens import stage, track
from carbonlens.instrument import track as rooms
from carbonlens.instrument import tracked
from carbonlens.ledger.store import Ledger
from carbonlens.metering.ending import process_ending
from carbonlens.metering.lineage import process_lineage
from carbonlens.metering.locks import Bell
from carbonlens.metering.sampler import process_sampler
from tests.metering.processes import python, state_folder

STRIDE = 5
"""Of the 1400 functions that a block calls every so many is cut in two; a prime, other than their cycles."""


def left_open(folder):
    """Return what a block that ended in any way has left."""
    journals = state_folder(folder) / "journal"
    return {
        "runs": list(process_lineage()._open),
        "sampled": list(process_sampler()._entries),
        "to be sealed": list(process_ending()._open),
        "held back": process_ending()._busy,
        "told": os.environ.get("CARBONLENS_RUN_ID"),
        "blocks": [h for h in rooms._open_here.get() if not h._ended],
        "journals": [f.name for f in journals.iterdir() if f.is_file()],
    }


def interrupted(block, number, events=("call",)):
    """Enter and leave a block, with an interrupt as its function of a number is called, or one in C is done.

    Returns:
        The place, ``None`` where there are not as many; and whether the work was begun.
    """
    calls, place, is_begun = 0, None, False

    def count(frame, event, _arg):
        nonlocal calls, place
        if event in events:
            calls += 1
            if calls == number:
                sys.setprofile(None)
                place = f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}"
                raise KeyboardInterrupt

    try:
        sys.setprofile(count)
        with block:
            is_begun = True
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return place, is_begun


class Calling:
    """A block that does its work as it is entered."""

    def __init__(self, work):
        self._work = work

    def __enter__(self):
        self._work()

    def __exit__(self, *_):
        return None


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", [track, stage])
def test_nothing_is_left_open_and_no_run_is_lost(tmp_path, kind):
    ledger = tmp_path / "ledger"
    with kind("first", ledger=ledger):
        pass
    nothing = left_open(tmp_path)
    assert not any(nothing.values())
    begun = tried = 0
    for number in range(1, 100_000, STRIDE):
        place, is_begun = interrupted(kind("s", ledger=ledger), number)
        begun += is_begun
        tried += 1
        if place is None:
            break
        # The first instruction of ``__exit__`` is nobody's to guard.
        if place.endswith(" __exit__") and "instrument/track.py" in place:
            rooms._open_here.get()[-1]._stop(None)
        assert left_open(tmp_path) == nothing, place
    assert tried > 100
    assert 0 < begun < tried
    kept = [r for r in Ledger(ledger).view().runs if r.step == "s"]
    # One that was interrupted before the work began may be recorded, as failed.
    assert begun <= len(kept) <= tried
    assert {(r.status, r.error) for r in kept} <= {("complete", None), ("failed", "KeyboardInterrupt")}
    # One that was cut in two as it was stored is no second one.
    assert sum(r.status == "complete" for r in kept) <= begun
    assert not any(r.supersedes for r in kept)


def test_a_block_around_goes_on_when_the_one_inside_is_interrupted_as_it_begins(tmp_path):
    tracker = track("s", ledger=tmp_path / "ledger")
    with tracker as outer:
        interrupted(tracker, 300)
        assert os.environ["CARBONLENS_RUN_ID"] == outer.run_id
        assert outer.run.status == "running"
        assert process_lineage().parent() == outer.run_id
    assert outer.run.status == "complete"


CUT = """
import os, sys
import carbonlens
told = []
def cut(event, arguments):
    # The extension of the library loads it while it is half made itself.
    if event == "import" and arguments[0] == "datetime" and not told:
        told.append(True)
        os.kill(os.getpid(), 2)
{before}
sys.addaudithook(cut)
try:
    with carbonlens.track("s", ledger=sys.argv[1]):
        pass
except KeyboardInterrupt:
    print("interrupted")
with carbonlens.track("s", ledger=sys.argv[1]) as run:
    pass
print(run.run.status)
"""


@pytest.mark.parametrize("before", ["", "import typing_extensions"])
def test_a_first_use_that_is_interrupted_as_it_loads_can_be_made_again(tmp_path, before):
    """The extension that holds records crashes the interpreter where its first import was cut in two."""
    pytest.importorskip("typing_extensions", reason="it comes with extras alone")
    done = python(CUT.format(before=before), tmp_path, str(tmp_path / "ledger"))
    assert (done.returncode, done.stdout.split()) == (0, ["interrupted", "complete"]), done.stderr


def test_a_bell_is_heard_once_however_often_it_was_rung():
    bell = Bell()
    assert (bell.is_rung(), bell.wait(0.001)) == (False, False)
    bell.ring()
    bell.ring()
    assert bell.is_rung()
    assert (bell.wait(60), bell.wait(0.001)) == (True, False)
    heard = []
    waiting = threading.Thread(target=lambda: heard.append(bell.wait(60)))
    waiting.start()
    bell.ring()
    waiting.join(60)
    assert heard == [True]


def test_an_interrupt_of_what_a_process_does_once_keeps_no_later_block_waiting():
    """Cut in two at each of its calls, and as a lock was taken; the module is loaded anew for each."""
    for number in range(1, 40):
        made = importlib.util.spec_from_file_location("tracked_anew", tracked.__file__)
        anew = importlib.util.module_from_spec(made)
        made.loader.exec_module(anew)
        started = []
        anew.recover_beside = lambda started=started: started.append(1)
        place, _ = interrupted(Calling(anew._recovery_once), number, ("call", "c_return"))
        again = threading.Thread(target=anew._recovery_once, daemon=True)
        again.start()
        again.join(20)
        assert not again.is_alive(), place
        assert len(started) <= 1
        if place is None:
            break
    assert place is None
    assert started == [1]
