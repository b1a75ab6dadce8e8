"""64 processes write 100 runs each into one folder: none lost, none doubled, and how many a second.

A run takes two disk syncs, so the storage's own speed stands beside the figure.
"""

import os
import statistics
import time

import pytest

from carbonlens.ledger.store import Ledger
from tests.ledger.writers import write_at_once

PROCESSES, RUNS = 64, 100


def sync_ms(folder):
    """Return the median time of a sync of a small new file, alone on the disk."""
    times = []
    for i in range(100):
        with (folder / f"{i}.probe").open("wb") as stream:
            stream.write(b"x" * 2000)
            stream.flush()
            begin = time.perf_counter()
            os.fsync(stream.fileno())
            times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e3


@pytest.mark.bench
def test_writers(tmp_path):
    before = sync_ms(tmp_path)
    acknowledged, seconds = write_at_once(tmp_path / "ledger", tmp_path / "gate", PROCESSES, RUNS)
    view = Ledger(tmp_path / "ledger").view()
    assert len(acknowledged) == PROCESSES * RUNS
    assert sorted(r.run_id for r in view.runs) == sorted(acknowledged)
    assert view.findings == ()
    rate = len(acknowledged) / seconds
    print(
        f"\n{len(acknowledged)} runs by {PROCESSES} processes: {rate:.0f} runs/s (one sync {before:.2f} ms)"
    )
