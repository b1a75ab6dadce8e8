"""A long training loop bare, under ``track()`` and under ``carbonlens run``, block by block in turn.

``python -m tests.bench.bench_loop [MINUTES]`` (10 by default); prints a table and asserts
nothing. Each arm is one process that lives through the whole benchmark and does a slice of
steps when it is told to; only one works at a time, in an order drawn anew each time. Slices of
a twentieth of a second follow each other closely, so that a machine whose speed wanders slows
all arms alike; ten of them are one round. CPU time is the whole process's, so the sampler's
thread is in that of ``track()``; under ``run`` the wrapper is another process, and its own CPU
time stands beside.
"""

from __future__ import annotations

import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

import pytest

from tests.bench.bench_overhead import SEED, interval, line, load

STEPS, SLICES = 40, 10
"""Steps of one slice, a twentieth of a second or so, and slices of one round."""

LOOP = """
import contextlib, json, resource, sys, time
import torch
torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x, y = torch.randn(64, 256), torch.randint(0, 10, (64,))
def step():
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
def held():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
arm, steps = sys.argv[1], int(sys.argv[2])
if arm == "track":
    from carbonlens import track
    block = track("loop", ledger=sys.argv[3])
else:
    block = contextlib.nullcontext()
with block as run:
    for word in sys.stdin:
        for _ in range(5):  # what waiting put out of the caches
            step()
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(steps):
            step()
            if run is not None:
                run.step(units=64)
        took = time.perf_counter() - wall, time.process_time() - cpu
        print(json.dumps([*took, held()]), flush=True)
"""


def started(arm: str, folder: str) -> subprocess.Popen[str]:
    """Start an arm's process, which waits for a line."""
    command = [sys.executable, "-c", LOOP, arm, str(STEPS), f"{folder}/ledger"]
    if arm == "run":
        wrapper = [sys.executable, "-m", "carbonlens.cli.main", "run", "--ledger", f"{folder}/ledger", "--"]
        command = [*wrapper, *command]
    environ = {**os.environ, "XDG_STATE_HOME": f"{folder}/state", "OMP_NUM_THREADS": "1"}
    for name in ("CARBONLENS_LEDGER", "CARBONLENS_RUN_ID"):
        environ.pop(name, None)
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environ,
    )


def block(process: subprocess.Popen[str]) -> Any:  # wall s, CPU s, resident bytes
    """Let an arm do a block, and return what it took."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def spent(pid: int) -> tuple[float, int]:
    """Return CPU seconds and resident bytes of a process."""
    with open(f"/proc/{pid}/stat") as stream:  # noqa: PTH123  # as short as it gets
        after = stream.read().rpartition(")")[2].split()
    ticks = int(after[11]) + int(after[12])
    return ticks / os.sysconf("SC_CLK_TCK"), int(after[21]) * os.sysconf("SC_PAGE_SIZE")


def main(minutes: float = 10.0) -> dict[str, Any]:
    """Print the table.

    Returns:
        Of ``track`` and ``run`` the change of a step's CPU and wall time with its interval, as
        shares; and by how many bytes the memory of each process grew.
    """
    figures: dict[str, Any] = {}
    arms = ("bare", "track", "run")
    draw = random.Random(SEED)  # noqa: S311  # an order
    print(f"\nload before: {load()}, {os.cpu_count()} cores, Python {sys.version.split()[0]}")
    rounds: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        processes = {arm: started(arm, folder) for arm in arms}
        for process in processes.values():
            block(process)
        wrapper = processes["run"].pid
        before, begin = spent(wrapper), time.monotonic()
        while time.monotonic() - begin < 60 * minutes:
            slices = [
                {arm: block(processes[arm]) for arm in draw.sample(arms, len(arms))} for _ in range(SLICES)
            ]
            rounds.append(
                {arm: [sum(column) for column in zip(*(s[arm] for s in slices), strict=True)] for arm in arms}
            )
        took, after = time.monotonic() - begin, spent(wrapper)
        for process in processes.values():
            process.communicate()
    bare = statistics.median(r["bare"][1] for r in rounds) / (STEPS * SLICES)
    line(f"one bare step (CPU), median of {len(rounds)} rounds", f"{bare * 1e3:8.3f} ms")
    for arm in arms[1:]:
        for place, what in ((1, "CPU"), (0, "wall")):
            middle, low, high = interval([math.log(r[arm][place] / r["bare"][place]) for r in rounds])
            figures[f"{arm}, {what}"] = tuple(map(math.expm1, (middle, low, high)))
            figure = f"{math.expm1(middle):+8.2%} [{math.expm1(low):+.2%}, {math.expm1(high):+.2%}]"
            line(f"step under {arm} over bare, {what}", figure, "<= 0.3 %")
    share = (after[0] - before[0]) / took
    line("CPU of the wrapper of run", f"{share:8.3%} of a core", "<= 0.5 %")
    figures["memory of the wrapper"] = after[1] - before[1]
    line("memory of the wrapper, last block over first", f"{(after[1] - before[1]) / 1e6:+8.2f} MB", "flat")
    for arm in arms:
        grown = (rounds[-1][arm][2] - rounds[0][arm][2]) / SLICES
        figures[f"memory of the loop, {arm}"] = grown
        line(f"memory of the loop, {arm}, last round over first", f"{grown / 1e6:+8.2f} MB", "flat")
    print(f"load after: {load()}, {took:.0f} s", flush=True)
    return figures


@pytest.mark.bench
def test_print_loop() -> None:
    main(1.0)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
