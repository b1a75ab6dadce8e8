"""The figures that wrappers and ``bench`` are to reach, each against its limit, on this machine.

``python -m tests.bench.bench_figures [loop] [pairs] [start]`` measures all three or those named:

- ``loop``: ten minutes of a training loop bare, under ``track()`` and under ``carbonlens run``, slice
  by slice in turn (``bench_loop``): a step within 0.3 % of bare, memory flat.
- ``pairs``: a hundred series of two commands that do the same, and a hundred where one does a tenth
  more, by turns (``bench_bench``): no difference in 95 of the first, ``worse`` in 90 of the second.
- ``start``: what ``carbonlens run`` adds to the wall time of a command, 41 pairs in turn: 150 ms.

The limits hold on an idle machine: the load is printed beside each, and where it is above
``MOST_LOAD`` nothing is measured. Exit code 1 where a limit is passed.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable

import pytest

from tests.bench import bench_bench, bench_loop
from tests.bench.bench_overhead import interval, line, load

STEP = 0.003
"""Of a bare step's time."""

GROWN = 1_000_000
"""Bytes by which a process that holds a gigabyte of libraries may seem to grow: allocators' own."""

SERIES, NO_DIFFERENCE, WORSE = 100, 95, 90
START_S = 0.150
PAIRS = 41
MOST_LOAD = 2.5


def judged(name: str, figure: str, limit: str, *, holds: bool) -> bool:
    """Print a figure beside its limit, and return whether it is kept."""
    line(name, figure, f"{limit}: {'kept' if holds else 'missed'}")
    return holds


def loop(minutes: float = 10.0) -> bool:
    """Judge the training loop: not worse than the limit as far as the interval tells."""
    figures = bench_loop.main(minutes)
    kept = []
    for arm in ("track, CPU", "track, wall", "run, CPU", "run, wall"):
        middle, low, high = figures[arm]
        told = f"{middle:+.2%} [{low:+.2%}, {high:+.2%}]"
        limit = f"<= {STEP:.1%}" if high <= STEP or low > STEP else f"<= {STEP:.1%} (within the interval)"
        kept.append(judged(f"step under {arm}", told, limit, holds=middle <= STEP))
    for what, grown in figures.items():
        if what.startswith("memory"):
            limit = f"<= {GROWN / 1e6:g} MB"
            kept.append(judged(what, f"{grown / 1e6:+.2f} MB", limit, holds=grown <= GROWN))
    return all(kept)


def pairs(series: int = SERIES) -> bool:
    """Judge the verdicts on a pair of quick commands."""
    found = bench_bench.verdicts(60.0, bench_bench.QUICK, most=series)
    same, more = found["the same"], found["a tenth more"]
    none = same["same"] + same["inconclusive"]
    kept = judged(
        "like pairs without a difference",
        f"{none} of {same.total()}",
        f">= {NO_DIFFERENCE} %",
        holds=none >= same.total() * NO_DIFFERENCE / 100,
    )
    return kept & judged(
        "a tenth more found worse",
        f"{more['worse']} of {more.total()}",
        f">= {WORSE} %",
        holds=more["worse"] >= more.total() * WORSE / 100,
    )


def start(count: int = PAIRS) -> bool:
    """Judge what ``carbonlens run`` adds to a command, pair by pair."""
    with tempfile.TemporaryDirectory() as folder:
        known = {k: v for k, v in os.environ.items() if not k.startswith("CARBONLENS")}
        # As a user has it: compiled modules are kept, here in a folder of the benchmark.
        known.pop("PYTHONDONTWRITEBYTECODE", None)
        environ = known | {
            "XDG_STATE_HOME": folder,
            "CARBONLENS_LEDGER": f"{folder}/ledger",
            "PYTHONPYCACHEPREFIX": f"{folder}/compiled",
        }
        command = ["sleep", "0.05"]
        wrapped = [sys.executable, "-m", "carbonlens.cli.main", "run", "--", *command]

        def took(words: list[str]) -> float:
            begin = time.perf_counter()
            subprocess.run(words, env=environ, check=True, stderr=subprocess.DEVNULL)
            return time.perf_counter() - begin

        took(wrapped)  # compiles
        more = [took(wrapped) - took(command) for _ in range(count)]
    middle, low, high = interval(more)
    line("run adds to a command, least", f"{min(more) * 1e3:.0f} ms")
    return judged(
        f"run adds to a command, median of {count} (mean {statistics.fmean(more) * 1e3:.0f})",
        f"{middle * 1e3:.0f} ms [{low * 1e3:.0f}, {high * 1e3:.0f}]",
        f"<= {START_S * 1e3:.0f} ms",
        holds=middle <= START_S,
    )


PARTS: dict[str, Callable[[], bool]] = {"start": start, "pairs": pairs, "loop": loop}


def main(names: list[str]) -> int:
    """Measure the parts named, or all, and return the exit code."""
    if os.getloadavg()[0] > MOST_LOAD:
        print(f"nothing is measured: the load is {load()}, and the limits hold up to {MOST_LOAD:g}")
        return 2
    kept = True
    for name in names or list(PARTS):
        print(f"\n{name}: load {load()}, {os.cpu_count()} cores, Python {sys.version.split()[0]}", flush=True)
        kept &= PARTS[name]()
    return 0 if kept else 1


@pytest.mark.parametrize(
    ("same", "more", "kept"),
    [
        ({"same": 60, "inconclusive": 35, "worse": 5}, {"worse": 90, "inconclusive": 10}, True),
        ({"same": 60, "inconclusive": 34, "worse": 6}, {"worse": 90, "inconclusive": 10}, False),
        ({"same": 100}, {"worse": 89, "inconclusive": 11}, False),
    ],
)
def test_verdicts_are_judged_by_their_limits(
    monkeypatch: pytest.MonkeyPatch, same: dict[str, int], more: dict[str, int], *, kept: bool
) -> None:
    found = {"the same": Counter(same), "a tenth more": Counter(more)}
    monkeypatch.setattr(bench_bench, "verdicts", lambda *_, **__: found)
    assert pairs() is kept


@pytest.mark.parametrize(
    ("change", "grown", "kept"), [(0.0029, 0, True), (0.0031, 0, False), (0.0, 2e6, False)]
)
def test_a_loop_is_judged_by_its_limits(
    monkeypatch: pytest.MonkeyPatch, change: float, grown: float, *, kept: bool
) -> None:
    arms = ("track, CPU", "track, wall", "run, CPU", "run, wall")
    figures = dict.fromkeys(arms, (0.0, -0.001, 0.001)) | {
        "run, wall": (change, change - 0.001, change + 0.001),
        "memory of the wrapper": grown,
    }
    monkeypatch.setattr(bench_loop, "main", lambda _minutes: figures)
    assert loop() is kept


@pytest.mark.bench
def test_print_figures(capsys: pytest.CaptureFixture[str]) -> None:
    """A short course: that each is measured and told, not that this machine is idle."""
    loop(0.2)
    pairs(2)
    start(3)
    told = capsys.readouterr().out
    assert told.count(": kept") + told.count(": missed") + told.count("interval): ") >= 11


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
