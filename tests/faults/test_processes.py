"""What programs do to a run: kill, fork, spawn, workers, asyncio, threads, exec; for each kind of sensor.

Each program is a process of its own that plays a recording of 100 W, so that what a run
says can be held against what was drawn while it ran.
"""

import os
import signal
import subprocess
import sys
import time

import pytest

from carbonlens.metering.sensors.replay import TraceWriter
from tests.faults.kinds import GPU, WATTS, KindSensor
from tests.metering.processes import clean_environment, python, runs, start_python, state_folder

KINDS = (
    "cumulative",
    "instant",
    pytest.param("average", marks=pytest.mark.slow),
    pytest.param("utilisation", marks=pytest.mark.slow),
    pytest.param("use", marks=pytest.mark.slow),
)
ONE_KIND = (
    "cumulative",
    *(pytest.param(k, marks=pytest.mark.slow) for k in ("instant", "average", "utilisation", "use")),
)
LENGTH_S, STEP_US = 40, 20_000

HEAD = """
import asyncio, multiprocessing, os, sys, threading, time
from carbonlens import track
LEDGER = sys.argv[1]
"""
RECOVER = "from carbonlens.metering.recovery import recover\nrecover()"


@pytest.fixture
def replay(tmp_path):
    """Return what makes a recording of a kind, and the environment that plays it."""

    def made(kind):
        info = KindSensor(kind, may_block=False).info
        path = tmp_path / f"{kind}.jsonl"
        writer = TraceWriter(path, info)
        for t_us in range(0, LENGTH_S * 1_000_000, STEP_US):
            passed_s = t_us / 1e6
            rate = WATTS if info.unit == "J" else 1.0
            values = (WATTS,) if info.unit == "W" else (5000 + rate * passed_s,)
            if kind == "use":
                values = (4500 + 0.25 * passed_s, 5000 + passed_s)
            writer.append(t_us, values)
        writer.close()
        return {"CARBONLENS_REPLAY": str(path)}

    return made


def true_of(run, kind, *, lower_bound=False):
    """Hold a run's energy against the recording."""
    reading = next((r for r in run.energy if r.devices == (GPU,)), run.energy[0])
    if kind == "use":
        assert (reading.energy_j, reading.state) == (None, "unknown")
        return
    assert reading.state == ("unbounded" if lower_bound else "known")
    # A recording has a value each 20 ms, which is old by so much.
    assert float(reading.energy_j) == pytest.approx(WATTS * run.duration_s, rel=0.03, abs=WATTS * 0.045)
    assert "CL157" in {f.code for f in run.findings} or lower_bound


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_block_is_recovered_or_sealed(tmp_path, replay, kind, number):
    code = HEAD + ("with track('killed', ledger=LEDGER):\n    print('in', flush=True)\n    time.sleep(90)\n")
    begin = time.monotonic()
    process = start_python(code, tmp_path, str(tmp_path / "ledger"), **replay(kind))
    under_way = time.monotonic()
    time.sleep(0.75)
    process.send_signal(number)
    assert process.wait(60) != 0
    lived_s = time.monotonic() - begin
    python(RECOVER, tmp_path)
    (run,) = runs(tmp_path / "ledger")
    assert run.status == ("recovered" if number == signal.SIGKILL else "failed")
    # Looks are 0.1 s apart: one is lost.
    assert 0.5 <= run.duration_s <= lived_s
    assert under_way - begin < 20
    true_of(run, kind, lower_bound=number == signal.SIGKILL)
    if number == signal.SIGKILL:
        assert (run.coverage, run.lost_s) == (None, None)
        assert "CL106" in {f.code for f in run.findings}


PROGRAMS = {
    # name: (code, exit code, records, what the parent prints)
    "fork": (
        "with track('one', ledger=LEDGER):\n"
        "    if os.fork() == 0:\n        time.sleep(0.1)\n        os._exit(7)\n"
        "    print(os.waitstatus_to_exitcode(os.wait()[1]))\n    time.sleep(0.3)\n",
        0,
        ["one"],
        "7\n",
    ),
    "fork that leaves the block": (
        "with track('one', ledger=LEDGER):\n    child = os.fork()\n    time.sleep(0.3)\n"
        "if child:\n    print(os.waitstatus_to_exitcode(os.wait()[1]))\nelse:\n    sys.exit(5)\n",
        0,
        ["one"],
        "5\n",
    ),
    "fork that tracks": (
        "with track('one', ledger=LEDGER):\n"
        "    if os.fork() == 0:\n"
        "        with track('child', ledger=LEDGER):\n            time.sleep(0.3)\n        os._exit(0)\n"
        "    os.wait()\n    time.sleep(0.1)\n",
        0,
        ["child", "one"],
        "",
    ),
    "workers": (
        # As a loader of data has them: forked, fed and emptied by queues, ended at the end.
        "def work(tasks, done):\n    for n in iter(tasks.get, None):\n        done.put(n * n)\n"
        "context = multiprocessing.get_context('fork')\n"
        "with track('one', ledger=LEDGER) as run:\n"
        "    tasks, done = context.Queue(), context.Queue()\n"
        "    crew = [context.Process(target=work, args=(tasks, done), daemon=True) for _ in range(2)]\n"
        "    [w.start() for w in crew]\n    [tasks.put(n) for n in range(100)]\n"
        "    print(sum(done.get() for _ in range(100)))\n    run.add_units(100)\n    time.sleep(0.3)\n"
        "    [tasks.put(None) for _ in crew]\n    [w.join() for w in crew]\n",
        0,
        ["one"],
        "328350\n",
    ),
    "asyncio": (
        "@track('task', ledger=LEDGER)\nasync def task(n):\n    await asyncio.sleep(0.3)\n    return n\n"
        "async def main():\n    print(sum(await asyncio.gather(*(task(n) for n in range(5)))))\n"
        "asyncio.run(main())\n",
        0,
        ["task"] * 5,
        "10\n",
    ),
    "threads": (
        "def work(n):\n    with track(f't{n}', ledger=LEDGER):\n        time.sleep(0.3)\n"
        "crew = [threading.Thread(target=work, args=(n,)) for n in range(5)]\n"
        "[w.start() for w in crew]\n[w.join() for w in crew]\nprint('done')\n",
        0,
        [f"t{n}" for n in range(5)],
        "done\n",
    ),
    "exec": (
        "with track('one', ledger=LEDGER):\n    time.sleep(0.5)\n"
        "    os.execv('/bin/sh', ['sh', '-c', 'echo other; exit 9'])\n",
        9,
        ["one"],
        "other\n",
    ),
    "an exception": (
        "try:\n    with track('one', ledger=LEDGER):\n        time.sleep(0.3)\n        {}['key']\n"
        "except KeyError as error:\n    print(repr(error))\n    sys.exit(4)\n",
        4,
        ["one"],
        "KeyError('key')\n",
    ),
    "an exit": (
        "with track('one', ledger=LEDGER):\n    time.sleep(0.3)\n    sys.exit(3)\n",
        3,
        ["one"],
        "",
    ),
}


@pytest.mark.parametrize("kind", ONE_KIND)
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_a_program_does_is_its_own(tmp_path, replay, kind, name):
    code, exit_code, steps, printed = PROGRAMS[name]
    ledger = tmp_path / "ledger"
    done = python(HEAD + code, tmp_path, str(ledger), **replay(kind))
    assert (done.returncode, done.stdout, done.stderr) == (exit_code, printed, "")
    python(RECOVER, tmp_path)
    found = runs(ledger)
    assert sorted(r.step for r in found) == steps
    for run in found:
        lost = name == "exec"
        assert run.status == ("recovered" if lost else "failed" if exit_code in {3, 4} else "complete")
        true_of(run, kind, lower_bound=lost)
    assert [f for f in (state_folder(tmp_path) / "journal").iterdir() if f.is_file()] == []


SPAWN = """
import multiprocessing, sys, time
from carbonlens import track
def work(ledger):
    with track("child", ledger=ledger):
        time.sleep(0.3)
    return 6
if __name__ == "__main__":
    with track("one", ledger=sys.argv[1]):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            print(pool.apply(work, (sys.argv[1],)))
"""


@pytest.mark.parametrize("kind", ONE_KIND)
def test_a_spawned_process_measures_its_own(tmp_path, replay, kind):
    program = tmp_path / "program.py"
    program.write_text(SPAWN)
    done = subprocess.run(
        [sys.executable, program, tmp_path / "ledger"],
        env=clean_environment(tmp_path, **replay(kind)),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "6\n", "")
    found = {r.step: r for r in runs(tmp_path / "ledger")}
    assert set(found) == {"one", "child"}
    for run in found.values():
        true_of(run, kind)


RUN = (sys.executable, "-m", "carbonlens.cli.main", "run", "--step", "command")


def command(folder, *argv, **more):
    return subprocess.Popen(
        [*RUN, "--ledger", folder / "ledger", "--", *argv],
        env=clean_environment(folder, **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("kind", ONE_KIND)
def test_a_commands_exit_code_passes_through(tmp_path, replay, kind):
    process = command(tmp_path, "sh", "-c", "sleep 0.4; exit 3", **replay(kind))
    process.communicate(timeout=60)
    assert process.returncode == 3
    (run,) = runs(tmp_path / "ledger")
    assert (run.status, run.exit_code) == ("failed", 3)
    true_of(run, kind)


@pytest.mark.parametrize("kind", ONE_KIND)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_to_the_wrapper_seals_or_leaves_a_journal(tmp_path, replay, kind, number):
    script = "echo $$ > pid; exec sleep 20"
    process = command(tmp_path, "sh", "-c", f"cd {tmp_path}; {script}", **replay(kind))
    pid = tmp_path / "pid"
    deadline = time.monotonic() + 20
    while not (pid.exists() and pid.read_text().strip()) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.5)
    process.send_signal(number)
    process.communicate(timeout=60) if number != signal.SIGKILL else process.wait(60)
    assert process.returncode == -number
    if number == signal.SIGKILL:
        # Nothing can reach the command from a wrapper that is killed: it runs on.
        os.kill(int(pid.read_text()), signal.SIGKILL)
        process.communicate()
    python(RECOVER, tmp_path)
    (run,) = runs(tmp_path / "ledger")
    assert run.status == ("recovered" if number == signal.SIGKILL else "failed")
    true_of(run, kind, lower_bound=number == signal.SIGKILL)
