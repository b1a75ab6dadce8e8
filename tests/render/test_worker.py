"""The rendering process: warm, limited, and gone with its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from carbonlens.errors import RenderError, VerificationError
from carbonlens.render import worker
from carbonlens.render.html import render_html
from carbonlens.render.worker import Later, Limits, Worker
from tests.render import worker_tasks
from tests.render.pages import pdf, view

HTML = "carbonlens.render.html:render_html"
PDF = "carbonlens.render.pdf:render_pdf"
BUSINESS_CASE = ("business-case",)
TASKS = "tests.render.worker_tasks"

_PARENT = """
import os, sys, time
from carbonlens.render import worker
print(worker.shared().pid, flush=True)
worker.render("tests.render.worker_tasks:slow", 60.0)
"""


def test_a_page_is_the_same_as_made_here_and_the_process_stays_warm():
    first = worker.shared().pid
    assert (
        worker.render(HTML, view("demo"), BUSINESS_CASE) == render_html(view("demo"), BUSINESS_CASE).encode()
    )
    assert worker.render(PDF, view("demo"), BUSINESS_CASE) == pdf("demo", *BUSINESS_CASE)
    assert worker.shared().pid == first != os.getpid()


@pytest.fixture(scope="module")
def one():
    made = Worker()
    yield made
    made.close()
    assert not made.alive


def test_errors_of_ours_come_back_as_what_they_are(one):
    with pytest.raises(VerificationError, match="not that of its figure") as refused:
        one.render(f"{TASKS}:refuse")
    assert (refused.value.where, refused.value.exit_code) == ("some.figure", 4)


@pytest.mark.parametrize("code", [0, 3, "a text"])
def test_what_would_end_the_process_is_told_and_it_goes_on(one, code):
    before = one.pid
    with pytest.raises(RenderError, match="ended the renderer") as refused:
        one.render(f"{TASKS}:leave", code)
    assert repr(code) in refused.value.what
    assert "--memory-mb" not in refused.value.mend
    with pytest.raises(RenderError, match="KeyboardInterrupt"):
        one.render(f"{TASKS}:interrupt")
    assert len(one.render(f"{TASKS}:fill", 1)) == 1 << 20
    assert one.pid == before


def test_memory_is_limited_and_the_process_goes_on(one):
    with pytest.raises(RenderError, match="more than the 64 MB") as refused:
        one.render(f"{TASKS}:fill", 512, limits=Limits(memory_mb=64))
    assert refused.value.exit_code == 3
    assert len(one.render(f"{TASKS}:fill", 1, limits=Limits(memory_mb=64))) == 1 << 20


def test_no_name_is_looked_up_and_no_program_started(one):
    forbidden = ("look_up", "start_a_program", "send_a_datagram", "send_a_message", "fork_with_a_terminal")
    for task in forbidden:
        with pytest.raises(RenderError, match="a report is made without"):
            one.render(f"{TASKS}:{task}")


def test_what_is_computed_meanwhile_arrives_where_it_is_asked_for(one):
    began = threading.Event()

    def rest():
        assert began.wait(30), "the function does not run while the rest is computed"
        return b"rest" * 100_000

    told = one.render(
        f"{TASKS}:joined",
        b"first ",
        later=Later(name="rest", compute=rest),
        progress=lambda words, _: words == "waiting for the rest" and began.set(),
    )
    assert told == b"first " + b"rest" * 100_000


def test_what_could_not_be_computed_meanwhile_is_told_as_what_it_is(one):
    def rest():
        raise VerificationError("is no such file", where="there", mend="mend it")

    for task in ("joined", "refuse_without_waiting"):
        first = (b"first",) if task == "joined" else ()
        with pytest.raises(VerificationError, match="no such file"):
            one.render(f"{TASKS}:{task}", *first, later=Later(name="rest", compute=rest))
    assert one.render(f"{TASKS}:fill", 1) == b"x" * (1 << 20)


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, ValueError])
def test_whatever_ends_what_is_computed_meanwhile_is_told_at_once(error):
    def rest():
        raise error

    made = Worker()
    began = time.monotonic()
    with pytest.raises(error):
        made.render(f"{TASKS}:joined", b"first", later=Later(name="rest", compute=rest))
    assert time.monotonic() - began < Limits().seconds / 2
    made.close()


def test_what_is_not_waited_for_is_no_request(one):
    with pytest.raises(VerificationError, match="not that of its figure"):
        one.render(f"{TASKS}:refuse_without_waiting", later=Later(name="rest", compute=lambda: b"rest"))
    assert one.render(f"{TASKS}:fill", 1) == b"x" * (1 << 20)


class _Unreadable:
    """Pickles here, and cannot be unpickled in the process."""

    def __init__(self, error):
        self.error = error

    def __reduce__(self):
        return worker_tasks.fail, (self.error,)


@pytest.mark.parametrize("error", [ZeroDivisionError, MemoryError, RenderError])
@pytest.mark.parametrize("where", ["request", "rest"])
def test_after_what_cannot_be_read_there_each_request_gets_its_own_answer(one, error, where):
    bad = _Unreadable(error)
    first, rest = (bad, b"rest") if where == "request" else (b"first", bad)
    with pytest.raises(RenderError):
        one.render(f"{TASKS}:joined", first, later=Later(name="rest", compute=lambda: rest))
    for size in (1, 2, 3):
        assert len(one.render(f"{TASKS}:fill", size)) == size << 20
    told = one.render(f"{TASKS}:joined", b"first ", later=Later(name="rest", compute=lambda: b"rest"))
    assert told == b"first rest"


def test_what_is_being_done_is_told(one):
    told = []
    one.render(f"{TASKS}:slow", 0.5, progress=lambda words, seconds: told.append((words, seconds)))
    assert "counting sheep" in {words for words, _ in told}
    assert [s for _, s in told] == sorted(s for _, s in told)


def test_garbage_is_let_go_of_without_a_rest_too(one):
    held = [int(one.render("tests.render.worker_tasks:leave_garbage")) for _ in range(40)]
    assert max(held) <= 5, "it adds up"
    assert max(held) > 1, "it is looked for at every page"


def test_garbage_is_let_go_of_while_nothing_is_asked(one):
    for _ in range(3):
        one.render("tests.render.worker_tasks:leave_garbage")
    time.sleep(2)  # its rest is half a second
    assert int(one.render("tests.render.worker_tasks:leave_garbage")) == 1


def test_an_ended_process_leaves_no_pipes_behind():
    old = worker.shared()
    os.kill(old.pid, signal.SIGKILL)
    old._process.wait()
    assert worker.shared() is not old
    assert old._process.stdin.closed
    assert old._process.stdout.closed
    assert old._said.closed


def test_a_process_that_dies_is_told_and_another_is_started():
    old = worker.shared().pid
    with pytest.raises(RenderError, match="died of SIGKILL"):
        worker.render(f"{TASKS}:die")
    assert worker.shared().pid != old


def test_time_is_limited():
    old = worker.shared()
    with pytest.raises(RenderError, match=r"not made within 0.2 s"):
        worker.render(f"{TASKS}:slow", 60.0, limits=Limits(seconds=0.2))
    assert not old.alive


_LATE = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
from carbonlens.cli.main import _leave
from carbonlens.errors import RenderError
from carbonlens.render import worker

def rest():
    with ThreadPoolExecutor(1) as pool:  # the interpreter's own end waits for its threads
        pool.submit(time.sleep, 50).result()
    return b"rest"

made = worker.shared()
later = worker.Later(name="rest", compute=rest)
try:
    worker.render("tests.render.worker_tasks:joined", b"", later=later, limits=worker.Limits(seconds=0.5))
except RenderError as error:
    print(made.alive, error.what.partition(" s ")[0], flush=True)
    _leave(error.exit_code)
"""


def test_what_is_still_computed_when_the_time_is_over_keeps_no_program_from_its_end(tmp_path):
    script = tmp_path / "carbonlens"
    script.write_text(_LATE)
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, str(script), "report"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=45,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (
        3,
        "False the report was not made within 0.5\n",
        "",
    )
    assert time.monotonic() - began < 30


def test_it_ends_by_itself_when_nothing_is_asked():
    idle = Worker(idle_s=0.05)
    assert idle._process.wait(60) == 0
    idle.close()


def gone(pid: int, within_s: float = 15.0) -> bool:
    """Whether a process ends in time."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            if state == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="processes are read from /proc")
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda s: s.name)
def test_it_is_gone_with_its_parent_even_while_it_works(by):
    parent = subprocess.Popen([sys.executable, "-c", _PARENT], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child = int(parent.stdout.readline())
    parent.send_signal(by)
    _, said = parent.communicate(timeout=60)
    assert parent.returncode == -by
    assert gone(child)
    assert b"worker_main" not in said
