"""What phases and steps cost: a training loop under ``track()`` against the bare loop, interleaved.

Run with ``python -m tests.bench.bench_phases [MINUTES]`` (4 by default); prints a table and
asserts nothing. Both loops do the same steps of a small network, in pairs of blocks whose order
alternates. CPU time is that of the whole process, the sampler's thread included; wall time of a
machine that does other work too says little.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

STEPS = 400
"""Steps of one block: a second or so."""

CALLS = 100_000


def cost_us(work: Callable[[], object], calls: int = CALLS) -> float:
    """Return the microseconds of CPU time that one call takes in this thread, the best of five rounds."""
    rounds = []
    for _ in range(5):
        begin = time.thread_time_ns()
        for _ in range(calls // 5):
            work()
        rounds.append((time.thread_time_ns() - begin) / (calls // 5) / 1000)
    return min(rounds)


def calls(ledger: Path) -> None:
    """Print what one call costs."""
    from carbonlens import track

    with track("calls", ledger=ledger) as run:
        print(f"{'step()':52}{cost_us(run.step):9.2f} us")
        print(f"{'step(32)':52}{cost_us(lambda: run.step(32)):9.2f} us")
        time.sleep(0.2)
        names = iter(range(10 * CALLS))

        def switch() -> None:
            run.enter_phase("steady" if next(names) % 2 else "evaluation")

        def block() -> None:
            with run.phase("checkpoint"):
                pass

        print(f"{'enter_phase(), all but a few without a look':52}{cost_us(switch):9.2f} us")
        print(f"{'with phase(): two switches':52}{cost_us(block):9.2f} us")
    with track("looks", ledger=ledger) as run:
        looks = []
        for k in range(30):
            time.sleep(0.11)
            begin = time.thread_time_ns()
            run.enter_phase(f"phase {k % 2}")
            looks.append((time.thread_time_ns() - begin) / 1000)
        print(f"{'enter_phase() with a look (0.11 s apart), median':52}{statistics.median(looks):9.1f} us")


def training() -> Callable[[], None]:
    """Return a function that does one step of training: a tenth of a millisecond to one."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
    optimizer = torch.optim.Adam(model.parameters())
    images, labels = torch.randn(128, 64), torch.randint(0, 10, (128,))

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return step


def block(step: Callable[[], None], run: Any) -> tuple[float, float]:
    """Return the wall and CPU seconds of a block of steps, with phases where there is a run."""
    wall, cpu = time.perf_counter(), time.process_time()
    if run is None:
        for _ in range(STEPS):
            step()
    else:
        for k in range(STEPS):
            if k % (STEPS // 4) == 0:
                run.enter_phase("evaluation" if k == STEPS // 2 else "steady")
            step()
            run.step(units=128)
    return time.perf_counter() - wall, time.process_time() - cpu


def pairs(ledger: Path, minutes: float) -> None:
    """Print the step time under ``track()`` over the bare one."""
    from carbonlens import track

    step = training()
    for _ in range(STEPS):
        step()
    ratios: list[tuple[float, float]] = []
    bare_s = []
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        told = {}
        for tracked in ((False, True), (True, False))[len(ratios) % 2]:
            if tracked:
                with track("pair", ledger=ledger) as run:
                    told[tracked] = block(step, run)
            else:
                told[tracked] = block(step, None)
        ratios.append((told[True][0] / told[False][0] - 1, told[True][1] / told[False][1] - 1))
        bare_s.append(told[False][1] / STEPS)
    label = f"one bare step (CPU), median of {len(ratios)} blocks"
    print(f"{label:52}{statistics.median(bare_s) * 1e6:9.1f} us")
    for name, place in (("wall", 0), ("CPU", 1)):
        values = sorted(r[place] for r in ratios)
        # Order statistics: a 95 % interval of the median without assumptions (normal approximation).
        reach = 0.98 * len(values) ** 0.5
        low, high = (
            values[min(max(round(len(values) / 2 + k * reach), 0), len(values) - 1)] for k in (-1, 1)
        )
        median = statistics.median(values)
        label = f"step under track() over bare, {name} [<= 0.3 %]"
        print(f"{label:52}{median:9.2%}   95 % [{low:.2%}, {high:.2%}]")


def memory(ledger: Path, minutes: float) -> None:
    """Print what a loop with many switches holds over time."""
    from carbonlens import track
    from carbonlens.metering.own_memory import OwnMemory

    own = OwnMemory()
    with track("memory", ledger=ledger) as run:
        held = []
        begin = time.monotonic()
        quarter = 15 * minutes
        for part in range(5):
            while time.monotonic() - begin < part * quarter:
                for k in range(200):
                    run.enter_phase(f"phase {k % 7}")
                    run.step()
                time.sleep(0.01)
            held.append(own.bytes())
    switches = sum(p.entries for p in run.run.phases)
    grown = ", ".join(f"{(h - held[1]) / 1e6:+.2f}" for h in held[1:])
    print(f"{f'memory over {minutes:g} min and {switches} switches':52}{grown} MB at each quarter")


def main(minutes: float = 4.0) -> None:
    """Print the table.

    Args:
        minutes: Length of the interleaved loops.
    """
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        ledger = Path(folder) / "ledger"
        calls(ledger)
        memory(ledger, minutes / 2)
        pairs(ledger, minutes)


@pytest.mark.bench
def test_print_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "")  # put back afterwards: main sets a folder of its own
    main(1.0)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
