"""CPU time of a process tree: own, reaped, living and dead-but-unreaped, each once."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from carbonlens.metering import process_time
from carbonlens.metering.process_time import TreeClock, _descendants, children, process_at
from carbonlens.metering.sensors.stream import Program
from tests.metering.processes import BURN, burn

WAITING = BURN.format(0.3) + "print('done', flush=True)\ninput()\n"


def test_own_work_is_counted():
    clock = TreeClock()
    before = clock.read()
    burn(0.2)
    assert clock.read() - before == pytest.approx(0.2, abs=0.05)


def test_sleep_is_far_below_load():
    clock = TreeClock()
    before = clock.read()
    time.sleep(0.3)
    assert clock.read() - before < 0.03


def test_a_reaped_child_is_counted_once():
    clock = TreeClock()
    before = clock.read()
    subprocess.run([sys.executable, "-c", BURN.format(0.3)], check=True)
    assert 0.3 <= clock.read() - before < 0.6


def test_a_living_child_is_counted_and_only_for_the_window():
    with subprocess.Popen(
        [sys.executable, "-c", WAITING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout.readline() == "done\n"
        clock = TreeClock(include_self=False)
        before = clock.read()
        assert before >= 0.28
        # What it used before the window stays outside of it, also once it is reaped.
        child.communicate("\n", timeout=60)
        assert clock.read() - before < 0.1


def test_a_dead_child_nobody_waited_for_is_counted():
    child = subprocess.Popen([sys.executable, "-c", BURN.format(0.2)])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process_at(child.pid).used_s >= 0.18
    assert child.pid in children(os.getpid())
    assert TreeClock(include_self=False).read() >= 0.18
    child.wait()
    assert process_at(child.pid) is None


def test_grandchildren_are_found():
    code = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {WAITING!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout.readline() == "done\n"
        assert TreeClock(include_self=False).read() >= 0.28
        child.communicate("\n", timeout=60)


def test_the_clock_never_falls():
    clock = TreeClock(include_self=False)
    seen = [clock.read()]
    for _ in range(3):
        child = subprocess.Popen([sys.executable, "-c", BURN.format(0.05)])
        while child.poll() is None:
            seen.append(clock.read(edge=False))
            time.sleep(0.005)
        seen.append(clock.read())
    assert seen == sorted(seen)
    assert 0.15 <= seen[-1] - seen[0] < 0.6


def fake_process(proc, pid, parent, ticks):
    (proc / str(pid)).mkdir()
    times = " ".join(str(t) for t in ticks)
    (proc / str(pid) / "stat").write_text(
        f"{pid} (a (b) c) S {parent} 1 1 0 -1 4 5 0 0 0 {times} 20 0 1 0 7 0\n"
    )


def test_without_the_kernels_lists_parents_are_looked_up(tmp_path):
    (tmp_path / "meminfo").write_text("")
    fake_process(tmp_path, 10, 1, (1, 1, 1, 1))
    fake_process(tmp_path, 11, 10, (100, 50, 25, 25))
    fake_process(tmp_path, 12, 11, (10, 0, 0, 0))
    fake_process(tmp_path, 13, 99, (500, 0, 0, 0))
    tick = 1 / os.sysconf("SC_CLK_TCK")
    assert children(10, tmp_path) == [11]
    assert sum(p.used_s for p in _descendants(10, tmp_path).values()) == pytest.approx(210 * tick)


def test_a_process_that_is_gone_has_no_children_and_no_time():
    assert children(2**22 + 1) == []
    assert process_at(2**22 + 1) is None


@pytest.mark.parametrize(
    ("text", "steal"),
    [
        ("cpu  100 0 50 800 0 0 0 250 0 0\ncpu0 1 2 3\n", 250 / os.sysconf("SC_CLK_TCK")),
        ("cpu  100 0 50 800\n", None),
        ("", None),
    ],
)
def test_steal_is_read_or_unknown(tmp_path, text, steal):
    file = tmp_path / "stat"
    file.write_text(text)
    assert process_time.steal_s(file) == steal


def test_steal_is_unknown_without_the_file(tmp_path):
    assert process_time.steal_s(tmp_path / "stat") is None


def test_resident_memory_is_below_its_peak():
    assert 1_000_000 < process_time.rss_bytes() <= process_time.peak_rss_bytes() * 1.1


LEAVING = """
import os, sys, time
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        def burn(s):
            end = time.process_time() + s
            while time.process_time() < end: pass
        burn(0.4)
        with open(sys.argv[1] + '/pid', 'w') as file: file.write(str(os.getpid()))
        open(sys.argv[1] + '/first', 'w').close()
        while not os.path.exists(sys.argv[1] + '/go'): time.sleep(0.01)
        burn(0.3)
        open(sys.argv[1] + '/second', 'w').close()
        while not os.path.exists(sys.argv[1] + '/end'): time.sleep(0.01)
        os._exit(0)
    while not os.path.exists(sys.argv[1] + '/leave'): time.sleep(0.01)
    os._exit(0)
os.wait()
"""


def test_a_descendant_that_leaves_the_tree_stays_counted(tmp_path):
    def wait_for(condition):
        end = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.01)

    clock = TreeClock(include_self=False)
    before = clock.read()
    with subprocess.Popen([sys.executable, "-c", LEAVING, str(tmp_path)]) as shell:
        wait_for((tmp_path / "first").exists)
        assert clock.read() - before >= 0.38
        (tmp_path / "leave").touch()
        shell.wait(60)
        # Its parent is gone and it belongs to init; it works on, and then it ends.
        assert clock.read() - before >= 0.38
        (tmp_path / "go").touch()
        wait_for((tmp_path / "second").exists)
        assert clock.read() - before >= 0.68
        # Children that earlier tests left may be seen as well.
        worker = int((tmp_path / "pid").read_text())
        assert worker in clock._seen
        (tmp_path / "end").touch()
        # Ended is enough: when it is reaped is up to init.
        stat = Path(f"/proc/{worker}/stat")
        wait_for(lambda: not stat.exists() or stat.read_text().rpartition(") ")[2][0] in "ZX")
    lost = clock.read()
    # What comes later is not swallowed by what was lost.
    subprocess.run([sys.executable, "-S", "-c", BURN.format(0.2)], check=True)
    assert 0.2 <= clock.read() - lost < 0.35
    assert 0.88 <= clock.read() - before < 1.4


PRINTING = BURN.format(0.3) + "\nwhile True: print('0,1', flush=True); import time; time.sleep(0.02)\n"


def test_a_meters_program_is_no_part_of_the_work_alive_or_waited_for():
    clock = TreeClock(include_self=False)
    before, listed = clock.read(), children(os.getpid())
    meter = Program((sys.executable, "-c", PRINTING))
    meter.open()
    deadline = time.monotonic() + 60
    while not meter.read(0.05):
        assert time.monotonic() < deadline
    assert children(os.getpid()) == listed  # nor is it what went on after the command
    assert clock.read() - before < 0.05
    child = subprocess.run([sys.executable, "-c", BURN.format(0.2)], check=True)
    meter.end()
    meter.close()
    assert meter.exit_code not in {None, 0}
    assert child.returncode == 0
    assert 0.2 <= clock.read() - before < 0.4


def test_what_a_meters_program_starts_is_no_part_of_the_work():
    clock = TreeClock(include_self=False)
    before = clock.read()
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-u', '-c', {PRINTING!r}])"
    meter = Program((sys.executable, "-c", code))
    meter.open()
    deadline = time.monotonic() + 60
    while not meter.read(0.05):
        assert time.monotonic() < deadline
    assert clock.read() - before < 0.05
    meter.end()
    meter.close()
    assert clock.read() - before < 0.05


def test_a_program_that_somebody_else_waited_for_has_ended():
    meter = Program((sys.executable, "-c", ""))
    meter.open()
    os.waitpid(meter._process.pid, 0)
    assert meter.exit_code == 0
    meter.end()
    meter.close()


def test_a_rank_that_records_itself_is_no_part_of_its_parent_s_work():
    """Lightning starts the other ranks of a node from the first, and waits for them itself."""
    rank = subprocess.Popen([sys.executable, "-c", BURN.format(0.4)])
    process_time.leave_out_rank(rank.pid)
    clock = TreeClock()
    before = clock.read()
    assert rank.pid not in children(os.getpid())
    for _ in range(30):
        clock.read()
        time.sleep(0.02)
    while rank.poll() is None:
        clock.read()
        time.sleep(0.02)
    # Its own 0.4 s, and what starting it took, stay out; this process has looked at it 40 times.
    assert clock.read() - before < 0.2
    assert rank.pid not in process_time.left_out()


def test_a_rank_that_is_gone_already_is_not_looked_for():
    process_time.leave_out_rank(2**22 + 1)
    assert 2**22 + 1 not in process_time.left_out()
