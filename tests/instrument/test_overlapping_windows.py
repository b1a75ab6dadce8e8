"""Windows of one process that overlap: the process's time is billed once among them."""

import threading
import time

import pytest

from carbonlens import track
from carbonlens.accounting.allocation import allocate
from carbonlens.accounting.allocation_totals import totals
from carbonlens.ledger.store import Ledger


def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def runs_of(folder):
    return [r for r in Ledger(folder).view().runs if r.status == "complete"]


def test_threads_that_each_open_a_window_are_billed_the_process_once(tmp_path):
    """Four threads of 0.2 s: each record reads all of the process, together they are billed it once."""
    ready = threading.Barrier(4)
    inside = threading.Barrier(4)

    def work():
        ready.wait(60)
        with track("part", ledger=tmp_path):
            inside.wait(60)
            burn(0.2)
            inside.wait(60)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    runs = runs_of(tmp_path)
    assert len(runs) == 4
    assert len({r.process for r in runs}) == 1
    assert runs[0].process is not None
    assert {r.parent_run_id for r in runs} == {None}
    cpu = [next(r for r in run.energy if r.component == "cpu") for run in runs]
    read = [float(c.energy_j) for c in cpu]
    found = allocate(runs)
    billed = sum(
        float(r.energy_j) for bill in found.bills.values() for r in bill.readings if r.component == "cpu"
    )
    assert sum(read) > 2.5 * max(read)
    assert billed == pytest.approx(max(read), rel=0.3)
    assert totals(runs, found).billed.value < 0.6 * sum(read)
    assert "CL320" in [f.code for f in found.findings]


def test_windows_one_after_the_other_are_billed_as_they_are(tmp_path):
    for _ in range(2):
        with track("part", ledger=tmp_path):
            burn(0.05)
    runs = runs_of(tmp_path)
    assert len({r.process for r in runs}) == 1
    bills = allocate(runs).bills
    assert all(bills[r.run_id].readings == r.energy for r in runs)
