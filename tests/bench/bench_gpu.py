"""What the GPU sensors are worth on a real NVIDIA GPU: agreement, repeatability, short windows, overhead.

Run with ``python -m tests.bench.bench_gpu [FOLDER]`` on a machine with an NVIDIA GPU
and PyTorch (about nine minutes); prints a table, and writes the table and a recorded
trace to FOLDER. Asserts nothing: the printed table of a real run is kept beside this
file in ``gpu_h100.txt`` and ``gpu_h200.txt``.
"""

from __future__ import annotations

import math
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SEED = 20261128
WINDOWS_S = (0.05, 0.1, 0.2, 0.5, 1.0)
BURSTS = 40
TAIL_S = 0.4
TRIALS = 8
PAIRS = 60

rows: list[str] = []


def say(text: str = "") -> None:
    """Print a line and keep it."""
    rows.append(text)
    print(text, flush=True)


class Load:
    """Matrix products on the GPU, about ``ms`` of work a call."""

    def __init__(self, ms: float) -> None:
        """Find how many products make up the time."""
        import torch

        self._torch = torch
        self.a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
        self.out = torch.empty_like(self.a)
        self.products = 1
        self.call()
        begin = time.perf_counter()
        for _ in range(20):
            self.call()
        one_ms = (time.perf_counter() - begin) / 20 * 1e3
        self.products = max(1, round(ms / one_ms))
        self._graph = self._recorded()

    def _recorded(self) -> Any:
        """Return some 50 ms of the same products as one CUDA graph: a driver queues a thousand, and waits."""
        torch = self._torch
        begin = time.perf_counter()
        self.call()
        one_s = (time.perf_counter() - begin) / self.products
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(max(1, round(0.05 / one_s))):
                torch.mm(self.a, self.a, out=self.out)
        graph.replay()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(10):
            graph.replay()
        torch.cuda.synchronize()
        self.one_s = (time.perf_counter() - begin) / 10
        return graph

    def call(self) -> None:
        """Do the work once and wait for it."""
        for _ in range(self.products):
            self._torch.mm(self.a, self.a, out=self.out)
        self._torch.cuda.synchronize()

    @contextmanager
    def steady(self) -> Iterator[list[int]]:
        """Keep the GPU busy without a pause within the block; the list holds how often it was asked to."""
        asked: list[int] = []
        ended = threading.Event()

        def keep() -> None:
            events = [self._torch.cuda.Event() for _ in range(2)]
            while not ended.is_set():
                # One is always waiting while another runs.
                self._graph.replay()
                events[len(asked) % 2].record()
                asked.append(1)
                events[len(asked) % 2].synchronize()

        thread = threading.Thread(target=keep)
        thread.start()
        try:
            yield asked
        finally:
            ended.set()
            thread.join()
            self._torch.cuda.synchronize()

    def run(self, seconds: float) -> int:
        """Repeat for some time; return how often."""
        end, calls = time.perf_counter() + seconds, 0
        while time.perf_counter() < end:
            self.call()
            calls += 1
        return calls


class Gpu:
    """The sensors under test."""

    def __init__(self, folder: Path) -> None:
        """Probe them."""
        from carbonlens.metering.devices.nvidia import VisibleGpus
        from carbonlens.metering.sensors.nvml import NvmlEnergySensor, NvmlPowerSensor

        self.gpus = VisibleGpus()
        self.energy = NvmlEnergySensor(self.gpus)
        self.power = NvmlPowerSensor(self.gpus)
        for sensor in (self.energy, self.power):
            probe = sensor.probe()
            say(f"{sensor.info.name:14} {probe.found} {probe.reason or ''}")
        self.folder = folder

    def joules(self) -> float:
        """Return the counter."""
        value = self.energy.read(edge=True)[0]
        assert value is not None
        return value

    @contextmanager
    def window(self) -> Iterator[list[Any]]:
        """Measure a block as a session does; the list holds the sealed run afterwards."""
        from carbonlens.metering.records import new_run
        from carbonlens.metering.sensors.discovery import watch
        from carbonlens.metering.session import Session

        session = Session(new_run("bench"), watch(), self.folder / "ledger")
        sealed: list[Any] = []
        session.start()
        try:
            yield sealed
        finally:
            sealed.append(session.finish().run)


def gpu_readings(run: Any) -> dict[str, Any]:
    """Return the GPU's readings by evidence grade, and the chosen one as ``used``."""
    chosen = [r for r in run.energy if r.component == "gpu"]
    found = {r.grade: r for r in (*chosen, *(r for r in run.beside if r.component == "gpu"))}
    return found | {"used": chosen[0]}


def idle(gpu: Gpu) -> float:
    """Return idle power with a context open."""
    time.sleep(4)
    start, begin = gpu.joules(), time.perf_counter()
    time.sleep(10)
    watts = (gpu.joules() - start) / (time.perf_counter() - begin)
    say(f"{'idle with a context, 10 s':52}{watts:8.1f} W")
    return watts


def costs(gpu: Gpu) -> None:
    """Print what a read costs."""
    for name, read in (("counter", gpu.energy.read), ("instantaneous power", gpu.power.read)):
        times = []
        for _ in range(60):
            begin = time.perf_counter()
            read(edge=True)
            times.append(time.perf_counter() - begin)
            time.sleep(0.01)
        say(
            f"{'cost of a read, ' + name:52}{statistics.median(times) * 1e6:8.1f} us"
            f"   worst {max(times) * 1e6:.0f}"
        )


def agreement(gpu: Gpu, load: Load) -> None:
    """Print how far counter and integrated power are apart under steady load."""
    load.run(8)
    for seconds, target in ((5.0, 1.0), (2.0, 3.0)):
        apart, shares, bounds, held = [], [], [], 0
        for _ in range(6):
            # Begun before and ended after, so that the load is steady over the edges too.
            with load.steady() as asked:
                time.sleep(1.0)
                before, begin = len(asked), time.perf_counter()
                with gpu.window() as sealed:
                    time.sleep(seconds)
                shares.append((len(asked) - before) * load.one_s / (time.perf_counter() - begin))
            found = gpu_readings(sealed[0])
            apart.append(float(found["C"].energy_j) / float(found["B"].energy_j) - 1)
            power, counter = found["C"].estimate, found["B"].estimate
            held += (power.low or 0) <= (counter.high or math.inf) and (counter.low or 0) <= (
                power.high or math.inf
            )
            bounds += [f"{r.grade} {r.covered_s:.2f} s" for r in found.values() if r.state != "known"]
        worst = max(map(abs, apart)) * 100
        mean = statistics.mean(apart) * 100
        say(
            f"{f'power against counter, steady, {seconds:g} s [within {target:g} %]':52}"
            f"{mean:+8.2f} %    worst {worst:.2f} %"
        )
        said = ", ".join(f"{x * 100:+.2f}" for x in apart)
        say(f"    each in %: {said}; the GPU was busy for {min(shares) * 100:.0f} % of each")
        say(f"    intervals of both overlap in {held} of {len(apart)}; lower bounds: {bounds or 'none'}")


def repeatability(gpu: Gpu) -> None:
    """Print how far equal trials are apart."""
    for ms in (1, 10, 50):
        load = Load(ms)
        load.run(8)
        per_call = []
        for _ in range(TRIALS):
            with gpu.window() as sealed:
                calls = load.run(3)
            per_call.append(float(gpu_readings(sealed[0])["used"].energy_j) / calls)
        cv = statistics.stdev(per_call) / statistics.mean(per_call) * 100
        say(
            f"{f'energy a call of {ms} ms, CV of {TRIALS} trials of 3 s [<= 2 %]':52}{cv:8.2f} %"
            f"    {statistics.mean(per_call):.4g} J"
        )


def short_windows(gpu: Gpu, idle_w: float) -> None:
    """Print bias by repetition and coverage of single windows, bursts at random phase."""
    say()
    say("bursts of d at random phase, 0.4-0.7 s of idle between; reference: the whole pattern less idle")
    say(
        f"{'d s':>6}{'ref. J':>9}{'repeated':>10}{'s.e.':>7}{'single':>10}{'median |e|':>12}"
        f"{'covered':>9}{'half-width':>12}  used"
    )
    chance, load = random.Random(SEED), Load(1)  # noqa: S311  # chance for a test load, no secret
    load.run(5)
    time.sleep(3)
    for d in WINDOWS_S:
        tails, singles, covered, halves, grades = [], [], [], [], []
        start_j, begin, busy = gpu.joules(), time.perf_counter(), 0.0
        for _ in range(BURSTS):
            time.sleep(chance.uniform(0.0, 0.3))
            before, t0 = gpu.joules(), time.perf_counter()
            with gpu.window() as sealed:
                load.run(d)
            length = float(sealed[0].duration_s)
            busy += length
            time.sleep(TAIL_S)
            after, t1 = gpu.joules(), time.perf_counter()
            tails.append((after - before) - idle_w * (t1 - t0 - length))
            singles.append(gpu_readings(sealed[0])["used"])
        time.sleep(0.5)
        whole = gpu.joules() - start_j
        reference = (whole - idle_w * (time.perf_counter() - begin - busy)) / BURSTS
        errors = []
        for reading in singles:
            estimate = reading.estimate
            value = estimate.value
            errors.append((value or 0.0) / reference - 1 if value is not None else -1.0)
            low, high = estimate.low, estimate.high
            known = value is not None
            covered.append((low is None or low <= reference) and (high is None or reference <= high))
            if known and low is not None and high is not None:
                halves.append((high - low) / 2 / reference)
            grades.append(reading.grade or "-")
        se = statistics.stdev(tails) / math.sqrt(BURSTS) / reference
        say(
            f"{d:6g}{reference:9.1f}{statistics.mean(tails) / reference - 1:+10.2%}{se:7.2%}"
            f"{statistics.mean(errors):+10.1%}{statistics.median(map(abs, errors)):12.1%}"
            f"{statistics.mean(covered):9.0%}{statistics.median(halves) if halves else math.nan:12.0%}"
            f"  {''.join(sorted(set(grades)))} {sum(g == 'B' for g in grades)}/{len(grades)}"
        )
    say("[repeated within 3 %, covered at least 93 %]")


def step_time(gpu: Gpu, name: str, width: int, batch: int) -> None:
    """Print what measuring adds to the step of a training loop."""
    import torch

    model = torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(12))).cuda()
    x = torch.randn(batch, width, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def steps(n: int) -> float:
        begin = time.perf_counter()
        for _ in range(n):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) / n

    steps(200)
    n = max(1, int(0.5 / steps(100)))
    ratios = []
    for pair in range(PAIRS):
        order = (False, True) if pair % 2 else (True, False)
        took = {}
        for measured in order:
            if measured:
                with gpu.window():
                    took[True] = steps(n)
            else:
                took[False] = steps(n)
        ratios.append(math.log(took[True] / took[False]))
    mean, error = statistics.mean(ratios), statistics.stdev(ratios) / math.sqrt(len(ratios))
    say(
        f"{f'step of {1e3 * took[False]:.2g} ms ({name}), {PAIRS} pairs [<= 0.3 %]':52}{mean:+8.2%}"
        f"    95 % [{mean - 2.02 * error:+.2%}, {mean + 2.02 * error:+.2%}],"
        f" median {statistics.median(ratios):+.2%}"
    )


def own_cost(gpu: Gpu) -> None:
    """Print start, stop and the sampler's share of one core."""
    times = []
    for _ in range(30):
        begin = time.perf_counter()
        with gpu.window():
            inside = time.perf_counter()
        times.append((inside - begin, time.perf_counter() - inside))
    for name, values in (("start", [a for a, _ in times]), ("stop", [b for _, b in times])):
        what = f"{name} of a window, counter read in it (driver)"
        say(f"{what:52}{statistics.median(values) * 1e3:8.2f} ms")
    begin = time.process_time()
    with gpu.window():
        time.sleep(20)
    used = time.process_time() - begin
    say(f"{'CPU of sampling at 10 Hz over 20 s [<= 0.5 %]':52}{used / 20:8.3%} of a core")


def rivals(load: Load) -> None:
    """Print what codecarbon and Zeus say and cost, where they are installed."""

    def timed(name: str, start: Callable[[], Any], stop: Callable[[Any], Any]) -> None:
        begin = time.perf_counter()
        handle = start()
        first = time.perf_counter() - begin
        load.run(1)
        begin = time.perf_counter()
        stop(handle)
        say(f"{name:52}{first * 1e3:8.1f} ms start, {(time.perf_counter() - begin) * 1e3:.1f} ms stop")

    try:
        from codecarbon import OfflineEmissionsTracker

        def started() -> Any:
            tracker = OfflineEmissionsTracker(country_iso_code="FRA", save_to_file=False, log_level="error")
            tracker.start()
            return tracker

        timed("codecarbon", started, lambda t: t.stop())
    except ImportError as error:
        say(f"codecarbon: not installed here ({error.name})")
    try:
        from zeus.monitor import ZeusMonitor

        monitor = ZeusMonitor()
        timed("Zeus", lambda: monitor.begin_window("w"), lambda _: monitor.end_window("w"))
    except ImportError as error:
        say(f"Zeus: not installed here ({error.name})")


def record(gpu: Gpu, load: Load, path: Path) -> None:
    """Write a trace of steps of load: microseconds, watts, joules."""
    lines = ["t_us,power_w,energy_j"]
    begin = time.perf_counter()
    for busy_s, idle_s in ((3, 3), (1, 1), (0.5, 0.5), (2, 4)):
        for seconds, work in ((busy_s, True), (idle_s, False)):
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                watts, joules = gpu.power.read(edge=True)[0], gpu.joules()
                lines.append(f"{(time.perf_counter() - begin) * 1e6:.0f},{watts},{joules:.3f}")
                if work:
                    load.run(0.03)
                else:
                    time.sleep(0.03)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Print the table; parts may be named after the folder."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        os.environ["XDG_STATE_HOME"] = folder
        gpu, load = Gpu(Path(folder)), Load(1)
        parts: dict[str, Callable[[], None]] = {
            "costs": lambda: costs(gpu),
            "agreement": lambda: agreement(gpu, load),
            "repeatability": lambda: repeatability(gpu),
            "short": lambda: short_windows(gpu, idle(gpu)),
            "own": lambda: own_cost(gpu),
            "step": lambda: step_time(gpu, "bound by the GPU", 4096, 1024),
            "launch": lambda: step_time(gpu, "bound by launches", 512, 64),
            "rivals": lambda: rivals(load),
            "record": lambda: record(gpu, load, out / "gpu_steps.csv"),
        }
        begin = time.perf_counter()
        for name, part in parts.items():
            if not sys.argv[2:] or name in sys.argv[2:]:
                part()
                (out / "gpu.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
        say(f"took {time.perf_counter() - begin:.0f} s")
        (out / "gpu.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
