"""What ``bench`` says on this machine: verdicts on real pairs, and energy that does not depend on ticks.

``python -m tests.bench.bench_bench verdicts [MINUTES]`` measures series of a small function
against itself and against one that does a tenth more, by turns, and counts the verdicts. A
series has the pace that holds where a user states none (windows of 1 s, 10 to 40 rounds).
The test has a pair of short commands at a quick pace, so that there are tens of series to judge.
``python -m tests.bench.bench_bench flat`` measures the energy of one inference in runs of
0.5 to 60 s, and of a sleep. Both print the load beside their figures: on a machine that
others use too a verdict may be ``inconclusive`` more often, never wrong more often.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from math import comb
from pathlib import Path

import pytest

WORK = """
import numpy as np

CHANCE = np.random.Generator(np.random.PCG64(0))
X, W = CHANCE.standard_normal((64, 128)), CHANCE.standard_normal((128, 128))

def layers(n):
    x = X
    for _ in range(n):
        x = np.maximum(x @ W * 0.1, 0)
    return 1

def plain():
    return layers(40)

def slower():
    return layers(44)
"""

SPEC = """
[bench]
name = "pair"
unit = "inference"

[[variant]]
name = "a"
callable = "work:plain"
environment = {{ OMP_NUM_THREADS = "1", OPENBLAS_NUM_THREADS = "1" }}

[[variant]]
name = "b"
callable = "work:{function}"
environment = {{ OMP_NUM_THREADS = "1", OPENBLAS_NUM_THREADS = "1" }}
"""

"""What a user writes for a quick function: the pace is the one that holds where nothing is stated."""

LOOP = """
import sys
n = 60 if sys.argv[1] == "plain" else 66
for _ in range(n):
    sum(range(40000))
"""

QUICK = f"""
[bench]
name = "pair"
unit = "loop"
units = 1
window_s = 0.05
least_rounds = 10
most_rounds = 12

[[variant]]
name = "a"
command = ["{sys.executable}", "-I", "-S", "loop.py", "plain"]

[[variant]]
name = "b"
command = ["{sys.executable}", "-I", "-S", "loop.py", "{{function}}"]
"""
"""A pair and a pace for tens of series in some minutes."""

WRONG = 0.05
"""Of the verdicts on two that are the same, at most so many name a difference in the long run."""

CHANCE = 0.001
"""How rarely the test may fail where no more than that are wrong."""

LEAST_SERIES = 20
"""Fewer say little: the limit of 20 is 5 wrong ones."""

IDLE = 0.5
"""Load per processor below which this machine is idle enough to tell a tenth more."""

PAIRS = {"the same": "plain", "a tenth more": "slower"}
LENGTHS_S = {0.5: 5, 2.0: 3, 9.0: 2, 11.0: 2, 60.0: 1}
"""Length of a run, and how many are made."""


def load() -> str:
    """Return the load averages of 1, 5 and 15 minutes as printed."""
    return " ".join(f"{x:.1f}" for x in os.getloadavg())


@contextmanager
def folder() -> Iterator[Path]:
    """Give a folder that holds the work and keeps this machine's own records out."""
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_STATE_HOME"] = name
        (Path(name) / "work.py").write_text(WORK, "utf-8")
        (Path(name) / "loop.py").write_text(LOOP, "utf-8")
        yield Path(name)


def most_wrong(series: int) -> int:
    """Return the most wrong verdicts that chance explains: more are as rare as ``CHANCE``."""
    left, wrong = 1.0, -1
    while left > CHANCE:
        wrong += 1
        left -= comb(series, wrong) * WRONG**wrong * (1 - WRONG) ** (series - wrong)
    return wrong


def verdicts(minutes: float, written: str = SPEC, most: int | None = None) -> dict[str, Counter[str]]:
    """Measure both pairs by turns for some time and print how often each verdict was given.

    Args:
        minutes: No series begins after them.
        written: The bench file, with a place for the function.
        most: Series of each pair that are enough.
    """
    from carbonlens.app.bench import bench

    found = {pair: Counter[str]() for pair in PAIRS}
    rounds, seconds, ends = Counter[str](), dict.fromkeys(PAIRS, 0.0), Counter[str]()
    deadline = time.monotonic() + 60 * minutes
    print(f"load before: {load()}")
    with folder() as here:
        number = 0
        while time.monotonic() < deadline and (most is None or number < most * len(PAIRS)):
            for pair, function in PAIRS.items():
                number += 1
                spec = here / f"{function}.toml"
                spec.write_text(written.format(function=function), "utf-8")
                begun = time.monotonic()
                outcome = bench(spec, ledger=here / f"ledger-{number}")
                seconds[pair] += time.monotonic() - begun
                found[pair][outcome.comparison.steps[0].verdict] += 1
                rounds[pair] += outcome.result.rounds
                ends[outcome.result.ended] += 1
                ends["in one process"] += bool(outcome.result.in_one_process)
    for pair, counts in found.items():
        each = ", ".join(f"{n} {verdict}" for verdict, n in counts.most_common())
        total = max(counts.total(), 1)
        print(
            f"{pair}: {counts.total()} series of {rounds[pair] / total:.0f} rounds and "
            f"{seconds[pair] / total:.0f} s on average: {each}"
        )
    print(f"ended: {', '.join(f'{n} {how}' for how, n in ends.items() if n)}; load after: {load()}")
    return found


def flat() -> None:
    """Print the energy of one inference in runs of several lengths, and the power of a sleep."""
    from carbonlens import track

    # Threads that wait for each other would cost what the machine's other users make of it.
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    with folder() as here:
        sys.path.insert(0, str(here))
        from work import plain  # type: ignore[import-not-found]  # written above

        print(
            f"load before: {load()}\n{'run':>8}{'J / 1000 inferences':>22}{'95 %':>18}{'W / CPU':>10}{'W':>8}"
        )
        for seconds, times in LENGTHS_S.items():
            for _ in range(times):
                with track(unit="inference", ledger=here / "ledger") as run:
                    end = time.monotonic() + seconds
                    while time.monotonic() < end:
                        run.add_units(sum(plain() for _ in range(20)))
                print(_line(f"{seconds:g} s", run.run))
        with track(unit="inference", ledger=here / "ledger") as run:
            time.sleep(9)
        print(_line("sleep", run.run))
        print(f"load after: {load()}")


def _line(name: str, run: object) -> str:
    from carbonlens.domain.run import Run

    assert isinstance(run, Run)
    energy, seen = run.total_energy, run.conditions
    assert energy.value is not None
    assert seen is not None
    watts = energy.value / seen.wall_s
    cpu_w = f"{energy.value / seen.cpu_s:.2f}" if seen.cpu_s else "-"
    if not run.units:
        return f"{name:>8}{'-':>22}{'-':>18}{cpu_w:>10}{watts:>8.2f}"
    per = 1000 / float(run.units)
    ends = f"{(energy.low or 0) * per:.2f} to {(energy.high or 0) * per:.2f}"
    return f"{name:>8}{energy.value * per:>22.3f}{ends:>18}{cpu_w:>10}{watts:>8.2f}"


@pytest.mark.parametrize(("series", "most"), [(1, 1), (10, 4), (40, 7), (100, 13)])
def test_the_limit_is_that_of_the_binomial_distribution(series: int, most: int) -> None:
    assert most_wrong(series) == most
    beyond = sum(
        comb(series, k) * WRONG**k * (1 - WRONG) ** (series - k) for k in range(most + 1, series + 1)
    )
    assert beyond <= CHANCE


@pytest.mark.bench
def test_real_pairs_get_no_wrong_verdict() -> None:
    """A tenth more is never better; like pairs differ as rarely as chance has it; an idle machine tells."""
    found = verdicts(8.0, QUICK)
    same, more = found["the same"], found["a tenth more"]
    assert same.total() >= LEAST_SERIES, "the machine is too slow to judge by"
    assert same["better"] + same["worse"] <= most_wrong(same.total())
    assert more["better"] <= most_wrong(more.total()) // 2
    if os.getloadavg()[2] / (os.cpu_count() or 1) < IDLE:
        assert more["worse"] > more["inconclusive"]


if __name__ == "__main__":
    what, *rest = sys.argv[1:] or ["verdicts"]
    if what == "flat":
        flat()
    else:
        verdicts(float(rest[0]) if rest else 10.0)
