"""Benchmark: time and memory of the whole demo, printed. The aim: 60 s on 2 cores, 1.5 GB."""

from __future__ import annotations

import os
import sys
import time

import pytest

_AIM_WALL_S = 60
_AIM_RSS_GB = 1.5


@pytest.mark.bench
def test_demo(tmp_path):
    command = [sys.executable, "-m", "carbonlens.cli.main", "demo", "-o", str(tmp_path / "demo")]
    started = time.perf_counter()
    child = os.posix_spawn(command[0], command, os.environ)
    # wait4 gives the usage of this one child, with its largest resident memory.
    _, status, usage = os.wait4(child, 0)
    wall_s = time.perf_counter() - started
    assert os.waitstatus_to_exitcode(status) == 0
    cpu_s = usage.ru_utime + usage.ru_stime
    print(
        f"\ndemo: {wall_s:.1f} s wall (aim {_AIM_WALL_S}), {cpu_s:.1f} s CPU, "
        f"{usage.ru_maxrss / 1e6:.2f} GB resident (aim {_AIM_RSS_GB}), load {os.getloadavg()[0]:.1f}"
    )
