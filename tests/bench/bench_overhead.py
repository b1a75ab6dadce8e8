"""What measuring costs the work: carbonlens beside codecarbon, Zeus and nothing, in one run, printed.

``make bench`` runs it, and so does ``python -m tests.bench.bench_overhead``; about six
minutes. Each figure comes from processes of its own. Zeus is taken from the folder that
``ZEUS_PATH`` names (``pip install --target FOLDER zeus``), where it is given. Nothing is
asserted: a shared machine's times are no test. The load is printed with the table.
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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

IDLE_S = 30.0
AGE_S = 60.0
PAIRS = 80
BLOCK_S = 0.3
LOOP_S = 40.0
TOUCH_S = 30e-6
"""CPU time of other threads from which a step is taken as shared with the tool."""

STAND_IN = Path(__file__).parent / "stand_in"
"""Holds a module ``pynvml`` with GPUs that cost the tools nothing but their own work."""

AGED_S, PART_S, PARTS = 10.0, 3.0, 5
"""Sampling is measured after some seconds, as the median of so many parts."""

NEAR = 15
CYCLES = 20
RESAMPLES = 2000
SEED = 20261128

TOOLS = """
import contextlib, json, os, resource, statistics, sys, tempfile, time
sys.path += [p for p in [os.environ.get("ZEUS_PATH")] if p]
def rss():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
def tool(name):
    "Return a function that makes a context in which the tool measures."
    if name == "nothing":
        return contextlib.nullcontext
    if name == "carbonlens":
        from carbonlens import track
        folder = tempfile.mkdtemp()
        return lambda: track("bench", ledger=folder)
    if name.startswith("codecarbon"):
        from codecarbon import OfflineEmissionsTracker
        every = {"codecarbon": 15, "codecarbon_1s": 1, "codecarbon_10hz": 0.1}[name]
        @contextlib.contextmanager
        def measured():
            tracker = OfflineEmissionsTracker(
                country_iso_code="DEU", output_methods=[], log_level="critical",
                measure_power_secs=every, allow_multiple_runs=True)
            tracker.start()
            yield
            tracker.stop()
        return measured
    from zeus.monitor import ZeusMonitor
    monitor = ZeusMonitor()
    @contextlib.contextmanager
    def window():
        monitor.begin_window("bench")
        yield
        monitor.end_window("bench")
    return window
"""

SAMPLER = """
import threading
def nvidia():
    "Return a session that reads the stand-in's GPUs as it would read real ones."
    from pathlib import Path
    from carbonlens.metering.devices.nvidia import VisibleGpus
    from carbonlens.metering.records import new_run
    from carbonlens.metering.sensors.cpu_model import CpuModelSensor
    from carbonlens.metering.sensors.discovery import Watch
    from carbonlens.metering.sensors.nvml import NvmlEnergySensor, NvmlPowerSensor
    from carbonlens.metering.sensors.nvml_use import NvmlUseSensor
    from carbonlens.metering.sensors.ram_model import RamModelSensor
    from carbonlens.metering.session import Session
    gpus = VisibleGpus()
    sensors = [NvmlEnergySensor(gpus), NvmlPowerSensor(gpus), NvmlUseSensor(gpus)]
    sensors = [*sensors, CpuModelSensor(), RamModelSensor()]
    probes = [sensor.probe() for sensor in sensors]
    assert all(probe.usable for probe in probes), probes
    return Session(new_run("bench"), Watch(tuple(sensors)), Path(tempfile.mkdtemp()))
def session():
    if not int(os.environ["STAND_IN_GPUS"]):
        from carbonlens import track
        return track("bench", ledger=tempfile.mkdtemp())
    one = nvidia()
    one.start()
    return contextlib.closing(SimpleNamespace(close=one.finish))
from types import SimpleNamespace
name, age_s, part_s, parts = sys.argv[1], *map(float, sys.argv[2:])
with session() if name == "carbonlens" else tool(name)():
    clocks = [time.CLOCK_PROCESS_CPUTIME_ID]
    threads = [t for t in threading.enumerate() if t.name == "carbonlens-sampler"]
    clocks += [time.pthread_getcpuclockid(t.ident) for t in threads]
    time.sleep(age_s)
    shares = []
    for _ in range(int(parts)):
        before, begin = [time.clock_gettime(c) for c in clocks], time.perf_counter()
        time.sleep(part_s)
        took = time.perf_counter() - begin
        shares.append([(time.clock_gettime(c) - b) / took for c, b in zip(clocks, before)])
print(json.dumps([statistics.median(s) for s in zip(*shares)]))
os._exit(0)
"""

IDLE = """
before = rss()
make = tool(sys.argv[1])
with make():
    time.sleep(float(sys.argv[2]))
    added = rss() - before
    cpu = time.process_time()
    begin = time.perf_counter()
    time.sleep(float(sys.argv[3]))
    share = (time.process_time() - cpu) / (time.perf_counter() - begin)
print(json.dumps({"share": share, "rss": added}))
"""

CYCLE = """
syncs = 0.0
def timed(sync):
    def call(handle):
        global syncs
        begin = time.perf_counter()
        sync(handle)
        syncs += time.perf_counter() - begin
    return call
os.fsync, os.fdatasync = timed(os.fsync), timed(os.fdatasync)
begin = time.perf_counter()
make = tool(sys.argv[1])
loaded = time.perf_counter() - begin
times, cpus = [], []
for _ in range(int(sys.argv[2])):
    syncs, begin, cpu = 0.0, time.perf_counter(), time.process_time()
    with make():
        pass
    times.append(time.perf_counter() - begin - syncs)
    cpus.append(time.process_time() - cpu)
print(json.dumps({"import": loaded, "times": times, "cpus": cpus}))
"""

STEPS = """
import torch
torch.set_num_threads(1)
torch.manual_seed(0)
make = tool(sys.argv[1])
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x, y = torch.randn(64, 256), torch.randint(0, 10, (64,))
def step():
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
def block(seconds):
    steps = []
    for _ in range(20):  # what the start and the stop put out of the caches
        step()
    cpu, begin = time.process_time(), time.perf_counter()
    last = begin
    while last - begin < seconds:
        step()
        now = time.perf_counter()
        steps.append(now - last)
        last = now
    n = len(steps)
    return (last - begin) / n, statistics.median(steps), (time.process_time() - cpu) / n
pairs, seconds = int(sys.argv[2]), float(sys.argv[3])
def touched(seconds):
    "Return each step's wall time, and the CPU time of other threads meanwhile."
    told = []
    end = time.perf_counter() + seconds
    while (begin := time.perf_counter()) < end:
        all_, own = time.process_time(), time.thread_time()
        step()
        others = (time.process_time() - all_) - (time.thread_time() - own)
        told.append((time.perf_counter() - begin, others))
    return told
block(1.0)
rows = []
for k in range(pairs):
    got = {}
    for arm in ("with", "bare") if k % 2 else ("bare", "with"):
        with make() if arm == "with" else contextlib.nullcontext():
            got[arm] = block(seconds)
    rows.append((got["bare"], got["with"]))
with make():
    print(json.dumps({"pairs": rows, "steps": touched(float(sys.argv[4]))}))
"""


def child(code: str, *arguments: object, **variables: str) -> subprocess.Popen[str]:
    """Start one measurement in a process and a state folder of its own."""
    folder = tempfile.mkdtemp()
    environ = {**os.environ, "XDG_STATE_HOME": folder, "OMP_NUM_THREADS": "1", **variables}
    for name in ("CARBONLENS_LEDGER", "CARBONLENS_RUN_ID"):
        environ.pop(name, None)
    command = [sys.executable, "-c", TOOLS + code, *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ, cwd=folder
    )


def told(process: subprocess.Popen[str]) -> Any:  # what the child printed
    """Return what a measurement printed; why not, where it failed."""
    out, err = process.communicate()
    if process.returncode != 0:
        return (err.strip().splitlines() or ["it said nothing"])[-1]
    return json.loads(out.splitlines()[-1])


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the median and its 95 % bootstrap interval."""
    draw = random.Random(SEED)  # noqa: S311  # a bootstrap
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return statistics.median(values), medians[RESAMPLES // 40], medians[-RESAMPLES // 40]


def line(name: str, figure: str, target: str = "") -> None:
    """Print a line of the table."""
    print(f"{name:58}{figure:34}{target}", flush=True)


def load() -> str:
    """Return the machine's load averages."""
    return " ".join(f"{x:.2f}" for x in os.getloadavg())


def idle() -> None:
    """Print what each tool takes of a core while the program sleeps, and the memory it adds."""
    tools = ("nothing", "carbonlens", "codecarbon", "codecarbon_1s", "codecarbon_10hz", "zeus")
    young = {name: child(IDLE, name, 1.0, IDLE_S) for name in tools}
    old = child(IDLE, "carbonlens", AGE_S, IDLE_S)
    for name, process in young.items():
        found = told(process)
        if isinstance(found, str):
            line(f"{name}", f"not measured: {found[:90]}")
            continue
        target = "<= 0.5 %" if name == "carbonlens" else ""
        line(
            f"{name}: share of a core over {IDLE_S:g} s of sleep",
            f"{found['share']:8.3%}   RSS {found['rss'] / 1e6:+.1f} MB",
            target,
        )
    found = told(old)
    line(f"carbonlens: the same, {AGE_S:g} s old", f"{found['share']:8.3%}", "<= 0.5 %")


def sampler() -> None:
    """Print the CPU time of sampling, without a GPU, with one and with eight that are stood in for.

    In CPU time, after ten seconds: that of all the tool's threads, and of the sampler's alone.
    """
    places = {
        name: os.pathsep.join(p for p in (str(STAND_IN), os.environ.get(name)) if p)
        for name in ("PYTHONPATH", "PATH")
    }
    for gpus in (0, 1, 8):
        for name in ("carbonlens", "codecarbon_1s", "codecarbon_10hz", "zeus"):
            found = told(child(SAMPLER, name, AGED_S, PART_S, PARTS, STAND_IN_GPUS=str(gpus), **places))
            what = f"{name}: CPU of sampling, {gpus} GPUs stood in for"
            if isinstance(found, str):
                line(what, f"not measured: {found[:80]}")
                continue
            alone = f"   sampler's thread {found[1]:.3%}" if len(found) > 1 else ""
            line(what, f"{found[0]:8.3%}{alone}", "<= 0.5 %" if name == "carbonlens" else "")


def cycles() -> None:
    """Print what a start and a stop take, the first and later ones, without disk syncs."""
    for name, rounds in (("carbonlens", 5 * CYCLES), ("codecarbon", 5), ("zeus", CYCLES)):
        found = told(child(CYCLE, name, rounds))
        if isinstance(found, str):
            line(f"{name}", f"not measured: {found[:90]}")
            continue
        first, *later = found["times"]
        target = "<= 5 ms" if name == "carbonlens" else ""
        line(f"{name}: first start + stop (import {found['import']:.2f} s)", f"{first * 1e3:8.2f} ms")
        cpu_ms = statistics.median(found["cpus"][1:]) * 1e3
        line(
            f"{name}: later start + stop, median",
            f"{statistics.median(later) * 1e3:8.2f} ms   CPU {cpu_ms:.2f} ms",
            target,
        )


def excess(told: Sequence[tuple[float, float]], pick: Callable[[int], bool]) -> tuple[float, float, float]:
    """Return by how much picked steps are longer than those around them, as a share of all time.

    A step beside which another thread worked is held against its neighbours, so that the
    machine's own unrest cancels out.
    """
    walls = [wall for wall, _ in told]
    quiet = [others < TOUCH_S for _, others in told]
    more = []
    for k in range(NEAR, len(told) - NEAR):
        if pick(k):
            around = [walls[j] for j in range(k - NEAR, k + NEAR + 1) if quiet[j] and j != k]
            if around:
                more.append(walls[k] - statistics.median(around))
    if not more:
        return 0.0, 0.0, 0.0
    draw = random.Random(SEED)  # noqa: S311  # a bootstrap
    scale = len(more) / sum(walls)
    means = sorted(statistics.fmean(draw.choices(more, k=len(more))) for _ in range(RESAMPLES))
    low, high = means[RESAMPLES // 40], means[-RESAMPLES // 40]
    return statistics.fmean(more) * scale, low * scale, high * scale


def steps() -> None:
    """Print by how much a torch loop's step changes: step by step, and in interleaved pairs."""
    arms = (("nothing", PAIRS), ("carbonlens", PAIRS), ("codecarbon_1s", PAIRS // 2), ("zeus", PAIRS // 2))
    for name, pairs in arms:
        found = told(child(STEPS, name, pairs, BLOCK_S, LOOP_S))
        if isinstance(found, str):
            line(f"{name}", f"not measured: {found[:90]}")
            continue
        told_steps = found["steps"]
        shared = sum(others >= TOUCH_S for _, others in told_steps)
        every = max(len(told_steps) // max(shared, 300), 1)
        target = "<= 0.3 %" if name == "carbonlens" else ""
        for what, pick in (
            (f"{shared} shared steps", lambda k, t=told_steps: t[k][1] >= TOUCH_S),
            ("as many of the others", lambda k, t=told_steps, n=every: k % n == 0 and t[k][1] < TOUCH_S),
        ):
            middle, low, high = excess(told_steps, pick)
            line(f"{name}: step time by {what}", f"{middle:+8.3%} ({low:+.3%} to {high:+.3%})", target)
            target = "(0: the method's own error)"
        for place, what in ((2, "CPU time"), (1, "median wall")):
            middle, low, high = interval([math.log(w[place] / b[place]) for b, w in found["pairs"]])
            line(
                f"{name}: step time in {pairs} pairs, {what}",
                f"{math.expm1(middle):+7.2%} ({math.expm1(low):+.2%} to {math.expm1(high):+.2%})",
            )


def print_table(parts: Sequence[Callable[[], None]] = (idle, sampler, cycles, steps)) -> None:
    """Print all of it."""
    print(f"\nload before: {load()}, {os.cpu_count()} cores, Python {sys.version.split()[0]}")
    for part in parts:
        begin = time.perf_counter()
        part()
        print(f"  ({part.__name__} took {time.perf_counter() - begin:.0f} s, load {load()})", flush=True)


@pytest.mark.bench
def test_print_overhead():
    print_table()


if __name__ == "__main__":
    chosen = [f for f in (idle, sampler, cycles, steps) if f.__name__ in sys.argv[1:]]
    print_table(chosen or (idle, sampler, cycles, steps))
