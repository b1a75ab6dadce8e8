"""Workers that were forked before a block: the block read their CPU time, and it counts once."""

import os
import subprocess
import sys

import pytest

from carbonlens.accounting.allocation import allocate
from carbonlens.accounting.allocation_totals import totals
from carbonlens.ledger.store import Ledger

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc and fork")

PROGRAM = """
import multiprocessing
import sys
import time

import carbonlens

folder, outlives = sys.argv[1], sys.argv[2] == "outlives"
began, ended = multiprocessing.Event(), multiprocessing.Event()


def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def work():
    with carbonlens.track("worker", ledger=folder):
        burn(0.3)
        began.set()
        if outlives:
            ended.wait(60)
            burn(0.3)


with multiprocessing.get_context("fork").Pool(1) as pool:
    pool.apply(burn, (0.01,))
    with carbonlens.track("main", ledger=folder):
        made = pool.apply_async(work)
        began.wait(60)
        if not outlives:
            made.get(60)
    ended.set()
    made.get(60)
"""


def runs_of(folder, how):
    environ = {k: v for k, v in os.environ.items() if k != "CARBONLENS_RUN_ID"}
    command = [sys.executable, "-c", PROGRAM, str(folder), how]
    subprocess.run(command, check=True, timeout=120, env=environ)
    return {r.step: r for r in Ledger(folder).view().runs}


def of_processor(run):
    return next(float(r.energy_j) for r in run.energy if r.component == "cpu")


def test_a_worker_of_a_pool_made_before_the_block_lies_in_the_block(tmp_path):
    runs = runs_of(tmp_path, "within")
    main, worker = runs["main"], runs["worker"]
    assert worker.parent_run_id is None, "nothing told it of the block"
    assert main.process in worker.ancestors
    assert worker.process != main.process
    assert of_processor(main) > 0.8 * of_processor(worker), "the block read the worker's time too"
    every = list(runs.values())
    found = totals(every, allocate(every))
    assert found.billed.value == pytest.approx(main.total_energy.value)
    assert (found.runs, found.nested) == (1, 1)


def test_what_a_worker_uses_after_the_block_counts_beside_it(tmp_path):
    runs = runs_of(tmp_path, "outlives")
    main, worker = runs["main"], runs["worker"]
    every = list(runs.values())
    found = totals(every, allocate(every))
    whole = main.total_energy.value + worker.total_energy.value
    assert found.runs == 2
    assert main.total_energy.value < found.billed.value < whole
    after = (worker.end_us - main.end_us) / (worker.end_us - worker.start_us)
    expected = main.total_energy.value + worker.total_energy.value * after
    assert found.billed.value == pytest.approx(expected, rel=1e-6)
