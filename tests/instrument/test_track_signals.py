"""A program that a signal ends while it tracks: sealed, and as dead as it would be without us."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from carbonlens import track
from tests.instrument.wrapper import kill_if_alive
from tests.metering.processes import clean_environment, python, runs, start_python, state_folder

HEAD = """
import asyncio, multiprocessing, os, signal, subprocess, sys, threading, time
from carbonlens import track
LEDGER = sys.argv[1]
def ready(*said):
    print(*said, flush=True)
def wait():
    # A signal that comes just before a sleep begins does not end it.
    while True:
        time.sleep(0.5)
"""

BURN = "end = time.process_time() + 0.3\n    while time.process_time() < end: pass\n    "


RUN = (sys.executable, "-m", "carbonlens.cli.main", "run", "--step", "outer")


def journals(folder):
    return [f for f in (state_folder(folder) / "journal").iterdir() if f.is_file()]


def ended(folder, body, number=signal.SIGTERM, **more):
    """Start a program, wait for the line it prints, send it a signal; return its exit code."""
    process = start_python(HEAD + body, folder, str(folder / "ledger"), **more)
    try:
        process.send_signal(number)
        return process.wait(60)
    finally:
        kill_if_alive(process.pid)
        process.stdout.close()


def records(folder):
    return {r.step: r for r in runs(folder / "ledger")}


def ends_of(folder):
    return {step: (r.status, r.error, r.exit_code) for step, r in records(folder).items()}


def by(number):
    return ("failed", f"killed by signal {int(number)}", 128 + number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_seals_the_run_and_ends_the_process(tmp_path, number):
    # Under nohup a hangup is ignored, here and in children.
    body = (
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
        "with track('s', unit='loop', ledger=LEDGER) as run:\n"
        "    run.add_units(3)\n    " + BURN + "ready()\n    wait()\n"
    )
    assert ended(tmp_path, body, number) == -number
    run = records(tmp_path)["s"]
    assert ends_of(tmp_path) == {"s": by(number)}
    assert (run.units, run.coverage, run.lost_s) == (3, 1.0, 0.0)
    assert 0.3 <= run.conditions.cpu_s <= run.duration_s * 1.1
    assert run.total_energy.state == "known"
    assert journals(tmp_path) == []


HANGS = """
import ctypes
lock, libc = ctypes.create_string_buffer(64), ctypes.CDLL(None)
def hang():
    for _ in range(2):
        libc.pthread_mutex_lock(lock)
"""


def test_a_job_that_hangs_in_a_library_is_sealed_and_ended(tmp_path):
    """As in a collective whose other ranks are gone: no bytecode is run any more."""
    body = HANGS + "with track('a', ledger=LEDGER):\n    ready()\n    hang()"
    assert ended(tmp_path, body) == -signal.SIGTERM
    assert ends_of(tmp_path) == {"a": by(signal.SIGTERM)}


def test_after_the_block_such_a_job_ends_as_ever(tmp_path):
    body = HANGS + "with track('a', ledger=LEDGER):\n    pass\nready()\nhang()"
    assert ended(tmp_path, body) == -signal.SIGTERM
    assert records(tmp_path)["a"].status == "complete"


def test_what_wakes_somebody_elses_loop_is_left_to_it(tmp_path):
    body = (
        "import socket\n"
        "mine, theirs = socket.socketpair()\n"
        "mine.setblocking(False)\n"
        "signal.set_wakeup_fd(mine.fileno())\n"
        "with track('a', ledger=LEDGER):\n    kept = signal.set_wakeup_fd(mine.fileno())\n"
        "assert kept == mine.fileno() == signal.set_wakeup_fd(-1)\n"
        "with track('b', ledger=LEDGER):\n    assert signal.set_wakeup_fd(mine.fileno()) != -1\n"
        "assert signal.set_wakeup_fd(-1) == mine.fileno()\n"
        "with track('c', ledger=LEDGER):\n    pass\n"
        "assert signal.set_wakeup_fd(-1) == -1\n"
        "ready()\nwait()"
    )
    assert ended(tmp_path, body) == -signal.SIGTERM
    assert {r.status for r in records(tmp_path).values()} == {"complete"}


def test_nested_and_concurrent_runs_are_all_sealed(tmp_path):
    body = (
        "inside = threading.Barrier(3)\n"
        "def part(name):\n"
        "    with track(name, ledger=LEDGER):\n        inside.wait()\n        wait()\n"
        "with track('outer', ledger=LEDGER), track('inner', ledger=LEDGER):\n"
        "    for name in ('one', 'two'):\n"
        "        threading.Thread(target=part, args=(name,), daemon=True).start()\n"
        "    inside.wait()\n    ready()\n    wait()\n"
    )
    assert ended(tmp_path, body) == -signal.SIGTERM
    assert ends_of(tmp_path) == dict.fromkeys(("outer", "inner", "one", "two"), by(signal.SIGTERM))
    assert records(tmp_path)["inner"].parent_run_id == records(tmp_path)["outer"].run_id
    assert journals(tmp_path) == []


# By the system, for the signal may come while the program still prints its line.
OWN = "def own(number, frame):\n    os.write(1, b'own')\n    os._exit(9)\n"


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_handler_of_the_program_wins(tmp_path, when):
    install = "signal.signal(signal.SIGTERM, own)\n"
    body = OWN + (install if when == "before" else "")
    body += "with track('s', ledger=LEDGER):\n    " + (install if when == "after" else "pass\n")
    body += "    assert signal.getsignal(signal.SIGTERM) is own\n    ready()\n    wait()\n"
    assert ended(tmp_path, body) == 9
    assert records(tmp_path) == {}
    assert len(journals(tmp_path)) == 1


def test_a_handler_of_the_program_stays_after_the_block(tmp_path):
    body = (
        OWN + "with track('s', ledger=LEDGER):\n    signal.signal(signal.SIGTERM, own)\n"
        "assert signal.getsignal(signal.SIGTERM) is own\n"
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\nready()\nwait()\n"
    )
    assert ended(tmp_path, body) == 9
    assert ends_of(tmp_path) == {"s": ("complete", None, None)}


def test_a_handler_that_calls_the_one_before_it_decides_what_happens(tmp_path):
    # As Lightning does: it stops at the next batch, writes a checkpoint, and ends by itself.
    body = (
        "with track('s', ledger=LEDGER):\n"
        "    before, asked = signal.getsignal(signal.SIGTERM), threading.Event()\n"
        "    def both(number, frame):\n        asked.set()\n        before(number, frame)\n"
        "    assert callable(before)\n"
        "    signal.signal(signal.SIGTERM, both)\n"
        "    ready()\n    asked.wait()\n"
        "sys.exit(7)\n"
    )
    assert ended(tmp_path, body) == 7
    assert ends_of(tmp_path) == {"s": ("complete", None, None)}


def test_a_signal_that_is_ignored_stays_so(tmp_path):
    body = (
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "with track('s', ledger=LEDGER):\n"
        "    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN\n"
        "    ready()\n    sys.stdin.readline()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", HEAD + body, str(tmp_path / "ledger")],
        env=clean_environment(tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    process.stdout.readline()
    process.send_signal(signal.SIGHUP)
    process.communicate("go on\n", timeout=60)
    assert process.returncode == 0
    assert ends_of(tmp_path) == {"s": ("complete", None, None)}


NATIVE = """
import ctypes
libc = ctypes.CDLL(None)
@ctypes.CFUNCTYPE(None, ctypes.c_int)
def native(number):
    os._exit(11)
libc.signal.argtypes = (ctypes.c_int, type(native))
libc.signal(int(signal.SIGTERM), native)
assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
"""


def test_a_handler_that_a_library_put_behind_pythons_back_wins(tmp_path):
    body = NATIVE + "with track('s', ledger=LEDGER):\n    ready()\n    wait()\n"
    assert ended(tmp_path, body) == 11


def test_the_default_action_is_back_after_the_last_run(tmp_path):
    default = (signal.SIG_DFL, signal.SIG_DFL)
    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, signal.SIG_DFL) for number in numbers]

    def now():
        return tuple(map(signal.getsignal, numbers))

    try:
        with track("outer", ledger=tmp_path / "ledger"):
            ours = now()
            with track("inner", ledger=tmp_path / "ledger"):
                assert now() == ours
            assert now() == ours
            assert all(map(callable, ours))
        assert now() == default
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def test_another_thread_than_the_main_one_installs_nothing(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    seen = []

    def work():
        with track("s", ledger=tmp_path / "ledger"):
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
    assert [r.status for r in runs(tmp_path / "ledger")] == ["complete"]


def test_handlers_left_by_another_thread_let_the_process_die(tmp_path):
    # The last run is closed where a handler cannot be taken away.
    body = (
        "blocks = [track(str(k), ledger=LEDGER) for k in range(2)]\n"
        "for block in blocks:\n    block.__enter__()\n"
        "def close():\n"
        "    for block in blocks:\n        block.__exit__(None, None, None)\n"
        "thread = threading.Thread(target=close)\nthread.start()\nthread.join()\nready()\nwait()\n"
    )
    assert ended(tmp_path, body) == -signal.SIGTERM
    assert {status for status, _, _ in ends_of(tmp_path).values()} == {"complete"}


FORKED = """
    child = os.fork()
    if child == 0:
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        ready()
        wait()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_a_forked_child_dies_alone(tmp_path):
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            HEAD.replace("print(*said, flush=True)", "print(os.getpid(), flush=True)")
            + "with track('s', ledger=LEDGER):"
            + FORKED,
            str(tmp_path / "ledger"),
        ],
        env=clean_environment(tmp_path),
        stdout=subprocess.PIPE,
        text=True,
    )
    os.kill(int(process.stdout.readline()), signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert (out.strip(), process.returncode) == (str(-signal.SIGTERM), 0)
    assert ends_of(tmp_path) == {"s": ("complete", None, None)}


@pytest.mark.parametrize("way", ["fork", "spawn", "forkserver"])
def test_worker_processes_are_terminated_as_ever(tmp_path, way):
    program = tmp_path / "program.py"
    program.write_text(
        HEAD + "def work(queue):\n    queue.put(signal.getsignal(signal.SIGTERM).name)\n    wait()\n"
        "if __name__ == '__main__':\n"
        f"    context = multiprocessing.get_context({way!r})\n"
        "    with track('s', ledger=LEDGER):\n"
        "        queue = context.Queue()\n"
        "        worker = context.Process(target=work, args=(queue,))\n"
        "        worker.start()\n        print(queue.get())\n"
        "        worker.terminate()\n        worker.join()\n        print(worker.exitcode)\n"
    )
    done = subprocess.run(
        [sys.executable, program, str(tmp_path / "ledger")],
        env=clean_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.split() == ["SIG_DFL", str(-signal.SIGTERM)], done.stderr
    assert ends_of(tmp_path) == {"s": ("complete", None, None)}


def test_a_worker_that_tracks_seals_its_own_run_alone(tmp_path):
    body = (
        "def work(queue):\n"
        "    with track('worker', ledger=LEDGER):\n        queue.put(1)\n        wait()\n"
        "context = multiprocessing.get_context('fork')\n"
        "with track('parent', ledger=LEDGER):\n"
        "    queue = context.Queue()\n"
        "    worker = context.Process(target=work, args=(queue,))\n"
        "    worker.start()\n    queue.get()\n    worker.terminate()\n    worker.join()\n"
        "sys.exit(-worker.exitcode)\n"
    )
    done = python(HEAD + body, tmp_path, str(tmp_path / "ledger"))
    assert (done.returncode, done.stderr) == (signal.SIGTERM, "")
    assert ends_of(tmp_path) == {"parent": ("complete", None, None), "worker": by(signal.SIGTERM)}


def test_a_program_that_is_started_has_the_default_action(tmp_path):
    body = (
        "code = 'import signal; print(signal.getsignal(signal.SIGTERM).name)'\n"
        "with track('s', ledger=LEDGER):\n"
        "    print(subprocess.run([sys.executable, '-c', code], capture_output=True, text=True).stdout)\n"
    )
    assert python(HEAD + body, tmp_path, str(tmp_path / "ledger")).stdout.strip() == "SIG_DFL"


def test_a_loop_of_asyncio_is_ended_too(tmp_path):
    body = (
        "@track('task', ledger=LEDGER)\n"
        "async def work(name):\n    await asyncio.sleep(60)\n"
        "async def main():\n"
        "    asyncio.get_running_loop().call_later(0.05, ready)\n"
        "    await asyncio.gather(work(1), work(2))\n"
        "asyncio.run(main())\n"
    )
    assert ended(tmp_path, body) == -signal.SIGTERM
    found = runs(tmp_path / "ledger")
    assert [(r.status, r.error) for r in found] == [by(signal.SIGTERM)[:2]] * 2
    assert journals(tmp_path) == []


def test_a_handler_of_asyncios_loop_wins(tmp_path):
    body = (
        "async def main():\n"
        "    asked = asyncio.Event()\n"
        "    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked.set)\n"
        "    asyncio.get_running_loop().call_soon(ready)\n"
        "    await asked.wait()\n"
        "with track('s', ledger=LEDGER):\n    asyncio.run(main())\n"
        "sys.exit(6)\n"
    )
    assert ended(tmp_path, body) == 6
    assert ends_of(tmp_path) == {"s": ("complete", None, None)}


def test_a_ledger_that_cannot_be_written_does_not_keep_the_process_alive(tmp_path):
    (tmp_path / "file").write_text("")
    body = "with track('s', ledger=LEDGER + '/../file/ledger'):\n    ready()\n    wait()\n"
    assert ended(tmp_path, body) == -signal.SIGTERM
    (run,) = runs(state_folder(tmp_path) / "ledger")
    assert (run.status, run.error, run.exit_code) == by(signal.SIGTERM)


@pytest.mark.skipif(not os.access("/dev/full", os.W_OK), reason="no device that is always full")
def test_a_full_disk_does_not_keep_the_process_alive(tmp_path):
    body = (
        "import resource\n"
        "with track('s', ledger=LEDGER):\n"
        "    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "    os.dup2(os.open('/dev/full', os.O_WRONLY), 2)\n    ready()\n    wait()\n"
    )
    assert ended(tmp_path, body) == -signal.SIGTERM
    assert records(tmp_path) == {}
    # What there is of its journal is recovered once there is room.
    assert len(journals(tmp_path)) == 1


def test_a_seal_that_hangs_does_not_keep_the_process_alive(tmp_path):
    # As where the disk of a ledger does not answer.
    body = (
        "with track('s', ledger=LEDGER):\n"
        "    import carbonlens.metering.ending as ending\n"
        "    hang = ending.OpenRun(lambda number: wait(), wait)\n"
        "    ending.process_ending().opened(hang)\n    ready()\n    wait()\n"
    )
    assert ended(tmp_path, body) == -signal.SIGTERM
    assert records(tmp_path) == {}
    assert len(journals(tmp_path)) == 1


def test_a_block_that_was_cut_inside_another_leaves_later_runs_to_be_sealed(tmp_path):
    """What a Ctrl-C cut lets signals through for all blocks around it, which end once more each."""
    body = (
        "from carbonlens.metering.ending import process_ending\n"
        "ending = process_ending()\n"
        "with ending.undisturbed(), ending.undisturbed():\n    ending.calm()\n"
        "with track('s', ledger=LEDGER):\n    ready()\n    wait()\n"
    )
    assert ended(tmp_path, body) == -signal.SIGTERM
    assert ends_of(tmp_path) == {"s": by(signal.SIGTERM)}


def test_a_second_signal_changes_nothing(tmp_path):
    # The second one arrives while the first is being dealt with.
    body = (
        "with track('s', ledger=LEDGER):\n"
        "    import carbonlens.metering.ending as ending\n"
        "    def again(number):\n        os.kill(os.getpid(), number)\n        time.sleep(0.05)\n"
        "    ending.process_ending().opened(ending.OpenRun(again, lambda: None))\n"
        "    ready()\n    wait()\n"
    )
    assert ended(tmp_path, body) == -signal.SIGTERM
    assert ends_of(tmp_path) == {"s": by(signal.SIGTERM)}


def test_a_fault_in_sealing_does_not_escape(tmp_path):
    body = (
        "def fail(*_):\n    raise SystemExit('no')\n"
        "with track('s', ledger=LEDGER):\n"
        "    import carbonlens.metering.ending as ending\n"
        "    ending.process_ending().opened(ending.OpenRun(fail, fail))\n    ready()\n"
        "    try:\n        wait()\n    finally:\n        print('escaped', flush=True)\n"
    )
    process = start_python(HEAD + body, tmp_path, str(tmp_path / "ledger"))
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert (out, process.returncode) == ("", -signal.SIGTERM)
    assert ends_of(tmp_path) == {"s": by(signal.SIGTERM)}


def test_a_signal_while_the_block_ends_lets_it_end(tmp_path):
    # The program signals itself from within the seal, as the worst of moments.
    body = (
        "import carbonlens.instrument.tracked as module\n"
        "from carbonlens.metering.session import Session\n"
        "class Slow(Session):\n"
        "    def finish(self, *args, **more):\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        return super().finish(*args, **more)\n"
        "module.Session = Slow\n"
        "ready()\n"
        "with track('s', ledger=LEDGER):\n    pass\n"
        "wait()\n"
    )
    process = start_python(HEAD + body, tmp_path, str(tmp_path / "ledger"))
    assert process.wait(60) == -signal.SIGTERM
    process.stdout.close()
    assert ends_of(tmp_path) == {"s": ("complete", None, None)}
    assert journals(tmp_path) == []


def test_a_signal_while_the_work_is_recorded_seals(tmp_path):
    # Within add_units the recorder's lock is held by what was interrupted.
    body = (
        "class Held:\n"
        "    def __init__(self, lock):\n        self.lock = lock\n"
        "    def __enter__(self):\n        self.lock.acquire()\n        ready()\n        wait()\n"
        "    def __exit__(self, *_):\n        self.lock.release()\n"
        "    def acquire(self, timeout):\n        return self.lock.acquire(timeout=timeout)\n"
        "    def release(self):\n        self.lock.release()\n"
        "with track('s', ledger=LEDGER) as run:\n"
        "    run.add_units(2)\n"
        "    run._recorder._lock = Held(run._recorder._lock)\n"
        "    run.add_units(1.5)\n"
    )
    assert ended(tmp_path, body) == -signal.SIGTERM
    assert ends_of(tmp_path) == {"s": by(signal.SIGTERM)}
    assert records(tmp_path)["s"].units == 2


def test_the_wrapper_and_the_program_say_the_same(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(HEAD + "with track('inner', ledger=LEDGER):\n    ready()\n    wait()\n")
    process = subprocess.Popen(
        [*RUN, "--ledger", tmp_path / "ledger", "--", sys.executable, program, tmp_path / "ledger"],
        env=clean_environment(tmp_path),
        stdout=subprocess.PIPE,
        text=True,
    )
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM
    assert ends_of(tmp_path) == {"outer": by(signal.SIGTERM), "inner": by(signal.SIGTERM)}
    found = records(tmp_path)
    assert found["inner"].parent_run_id == found["outer"].run_id


def test_a_block_whose_own_seal_hangs_is_not_waited_for_for_ever(tmp_path):
    body = (
        "import carbonlens.instrument.tracked as module\n"
        "from carbonlens.metering.session import Session\n"
        "class Hanging(Session):\n"
        "    def finish(self, *args, **more):\n        ready()\n        wait()\n"
        "module.Session = Hanging\n"
        "with track('s', ledger=LEDGER):\n    pass\n"
    )
    assert ended(tmp_path, body) == -signal.SIGTERM
    assert len(journals(tmp_path)) == 1


def test_the_first_process_of_a_container_keeps_the_default(tmp_path):
    # It does not die by a signal's default action, and so must not be sealed as if it did.
    unshare = ["unshare", "--pid", "--fork", "--mount-proc"]
    try:
        subprocess.run([*unshare, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no namespace of process ids can be made")
    body = "with track('s', ledger=LEDGER):\n    ready(os.getpid(), signal.getsignal(signal.SIGTERM).name)\n"
    done = subprocess.run(
        [*unshare, sys.executable, "-c", HEAD + body, tmp_path / "ledger"],
        env=clean_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.split() == ["1", "SIG_DFL"]


def test_a_child_that_a_library_forked_dies_alone(tmp_path):
    """Without Python's hooks it shares the pipe that tells of signals."""
    body = (
        "import ctypes\n"
        "libc = ctypes.CDLL(None)\n"
        "with track('a', ledger=LEDGER):\n"
        "    pid = ctypes.PyDLL(None).fork()\n"
        "    if pid == 0:\n"
        "        libc.pause()\n"
        "        libc._exit(3)\n"
        "    time.sleep(0.3)\n"
        "    os.kill(pid, signal.SIGTERM)\n"
        "    end = time.monotonic() + 1.5\n"
        "    while time.monotonic() < end: pass\n"
        "    os.kill(pid, signal.SIGKILL)\n"
        "    os.waitpid(pid, 0)\n"
        "ready('alive')\n"
    )
    done = python(HEAD + body, tmp_path, str(tmp_path / "ledger"))
    assert (done.returncode, done.stdout) == (0, "alive\n")
    assert records(tmp_path)["a"].status == "complete"


def test_a_program_that_closes_all_files_has_its_own_to_itself(tmp_path):
    """Daemons close whatever they do not know; the journal's number is then another file's."""
    body = (
        "with track('a', ledger=LEDGER):\n"
        "    time.sleep(0.2)\n"
        "    os.closerange(3, 256)\n"
        "    mine = [os.open(f'mine{i}', os.O_RDWR | os.O_CREAT) for i in range(20)]\n"
        "    time.sleep(0.5)\n"
        "for i, number in enumerate(mine):\n"
        "    os.write(number, b'line')\n"
        "    os.close(number)\n"
        "    assert open(f'mine{i}').read() == 'line'\n"
        "print('done')\n"
    )
    done = python(HEAD + body, tmp_path, str(tmp_path / "ledger"))
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert records(tmp_path)["a"].status == "complete"
