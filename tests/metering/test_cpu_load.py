"""Full load that ends with its block or its parent, and the share of threads that was busy."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from carbonlens.metering.cpu_load import CpuTime, FullLoad, cpu_time, load_between
from carbonlens.metering.process_time import children


def spinners():
    return list(children(os.getpid()))


def test_the_load_runs_within_the_block_only():
    before = set(spinners())
    with FullLoad(2):
        fresh = set(spinners()) - before
        assert len(fresh) == 2
    assert not (set(spinners()) & fresh)


def test_the_load_ends_when_the_block_raises():
    before = set(spinners())
    with pytest.raises(KeyboardInterrupt), FullLoad(1):
        raise KeyboardInterrupt
    assert set(spinners()) <= before


def test_the_load_ends_when_its_parent_is_killed():
    script = (
        "import time\nfrom carbonlens.metering.cpu_load import FullLoad\n"
        "load = FullLoad(1)\nload.__enter__()\nprint(load._spinners[0].pid, flush=True)\ntime.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    pid = int(parent.stdout.readline())
    time.sleep(0.3)  # it asks for its parent at its start: let it know the right one
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and alive(pid):
        time.sleep(0.05)
    assert not alive(pid)


def alive(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[0] != b"Z"


def test_busy_time_is_all_but_idle_and_waiting(tmp_path):
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 5 50 800 40 1 2 2 30 0\ncpu0 1 1 1 1\n")
    assert cpu_time(stat) == CpuTime(busy=160, total=1000)
    assert load_between(CpuTime(160, 1000), CpuTime(235, 1100)) == pytest.approx(0.75)


@pytest.mark.parametrize("text", ["", "intr 1 2 3 4 5 6\n", "cpu a b c d e f\n", "cpu 1 2\n"])
def test_what_tells_no_time_is_unknown(tmp_path, text):
    stat = tmp_path / "stat"
    stat.write_text(text)
    assert cpu_time(stat) is None
    assert cpu_time(tmp_path / "none") is None
    assert load_between(None, CpuTime(1, 2)) is None
    assert load_between(CpuTime(1, 2), CpuTime(1, 2)) is None
