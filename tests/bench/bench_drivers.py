"""What drivers of a million rows cost: the decomposition alone, and the bridge of a ledger's quarters.

Run with ``python -m tests.bench.bench_drivers [ROWS]``; prints seconds and asserts nothing about time.
First a million rows of classes of work with errors of every factor in both periods; then a compacted
year of ``bench_ledger`` with as many runs, whose statements and queries are told apart from the rest.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.bench_statement import make

FACTORS = 6
GROUPS = 1000
SOURCES = 20
CPUS = {0, 1}


def decomposition(rows: int) -> None:
    """Print what effects of rows and their errors by group and source take."""
    import numpy as np

    from carbonlens.compare.drivers_errors import FactorError, moved

    rng = np.random.default_rng(1)
    before = rng.uniform(0.1, 10.0, (FACTORS, rows))
    after = before * rng.uniform(0.5, 2.0, (FACTORS, rows))
    # One row in fifty is new, one is gone.
    before[2, ::50] = 0.0
    after[2, 1::50] = 0.0
    group = rng.integers(0, GROUPS, rows)
    every, none = np.arange(rows), np.zeros(rows, dtype=bool)
    errors = {
        (j, t): FactorError(
            np.full(rows, 0.01 if j == 3 else 0.0),
            every,
            rng.integers(0, SOURCES, rows),
            np.full(rows, 0.03),
            none,
        )
        for j in (3, 4, 5)
        for t in (0, 1)
    }
    for n in range(3):
        wall, cpu = time.perf_counter(), time.process_time()
        moved(before, after, {}, group, (GROUPS, SOURCES))
        alone = f"{time.perf_counter() - wall:.2f} s wall, {time.process_time() - cpu:.2f} s CPU"
        wall, cpu = time.perf_counter(), time.process_time()
        found = moved(before, after, errors, group, (GROUPS, SOURCES))
        took = f"{time.perf_counter() - wall:.2f} s wall, {time.process_time() - cpu:.2f} s CPU"
        left = abs(after.prod(axis=0).sum() - before.prod(axis=0).sum() - found.values.sum())
        print(f"{'cold' if n == 0 else 'warm'}: {rows} rows, {alone}; with errors of all factors {took}")
        print(f"  remainder {left / after.prod(axis=0).sum():.1e} of the total")


def bridge(folder: Path) -> None:
    """Print what the bridge of two quarters takes, and what of it the ledger's queries do."""
    from carbonlens.app import drivers_totals
    from carbonlens.app.drivers import Source, make_drivers
    from carbonlens.app.inventory import load_inventory
    from carbonlens.compare.drivers_bridge import closes
    from carbonlens.factors.store import open_factors

    where = {"inventory": folder / "inventory", "ledger": folder / "ledger"}
    factors = open_factors(folder / "factors.csv")
    present = time.time_ns() // 1000
    source = Source(kept=load_inventory(where["inventory"]), factors=factors, now_us=present, **where)
    for n in range(2):
        wall, cpu = time.perf_counter(), time.process_time()
        first, last = source.works("2026Q2", "2026Q1", "team")
        read = f"{time.perf_counter() - wall:.2f} s wall, {time.process_time() - cpu:.2f} s CPU"
        wall, cpu = time.perf_counter(), time.process_time()
        ((made, cells), *_) = drivers_totals.bridges_of(first, last, "energy", {})
        rest = f"{time.perf_counter() - wall:.2f} s wall, {time.process_time() - cpu:.2f} s CPU"
        print(f"{'cold' if n == 0 else 'warm'}: statements and queries {read}; beyond them {rest}")
        print(
            f"  {len(cells)} rows of classes and sites, remainder {made.remainder:.1e}, closes {closes(made)}"
        )
    wall = time.perf_counter()
    whole = make_drivers("2026Q2", "2026Q1", by="team", factors=factors, **where)
    print(f"all of it {time.perf_counter() - wall:.2f} s, {len(whole.drivers.figures)} figures")


def main() -> None:
    """Measure both, each in a process of its own on two processors."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    begin = (
        f"import os, sys, pathlib; os.sched_setaffinity(0, {CPUS}); import tests.bench.bench_drivers as b; "
    )
    subprocess.run([sys.executable, "-c", f"{begin}b.decomposition({rows})"], check=True)
    with tempfile.TemporaryDirectory() as name:
        make(Path(name), rows)
        subprocess.run(
            [sys.executable, "-c", f"{begin}b.bridge(pathlib.Path(sys.argv[1]))", name], check=True
        )


if __name__ == "__main__":
    main()
