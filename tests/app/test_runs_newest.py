"""The newest runs of a large ledger: a job's shared device once, and no figure of part of a job."""

import pytest

from carbonlens.app import runs as listing
from carbonlens.cli import runs_view
from carbonlens.domain.identity import uuid7
from carbonlens.ledger.store import Ledger
from tests.accounting.device_runs import START_US, gpu, run

OTHERS = 1005


def filled(path, ranks, gap_s):
    """Return a large ledger that ends in a job whose ranks all read one GPU."""
    ledger = Ledger(path)

    def add(number, start_s, device, **fields):
        run_id = uuid7(START_US // 1000 + round(start_s * 1000), number.to_bytes(10, "big"))
        ledger.append(run(run_id, (start_s, start_s + 10), gpu(1000, device), **fields))

    for number in range(OTHERS):
        add(number, number * 0.001, f"GPU-{number}")
    for rank in range(ranks):
        add(OTHERS + rank, gap_s + rank * 0.001, "GPU-shared", job_id="j", rank=rank, step="train")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 3, 10])
def test_a_device_that_ranks_share_is_counted_once_whatever_the_limit(tmp_path, capsys, limit):
    found = listing.list_runs(ledger=filled(tmp_path / "l", 16, 100), newest=limit)
    assert found.totals is None
    (job,) = found.jobs
    assert len(job.run.parts) == 16
    assert job.billed.value == pytest.approx(1000, rel=0.02)
    runs_view.print_list(found, limit)
    lines = [line for line in capsys.readouterr().out.splitlines() if "16" in line and " x -/" in line]
    assert len(lines) == 1
    assert "16 x -/t" in lines[0]


@pytest.mark.slow
def test_a_job_that_may_reach_further_back_has_no_figure(tmp_path, capsys):
    found = listing.list_runs(ledger=filled(tmp_path / "l", 16, 2), newest=5)
    (job,) = found.jobs
    assert job.billed is None
    runs_view.print_list(found, 5)
    said = capsys.readouterr()
    (line,) = [line for line in said.out.splitlines() if "16" in line and " x -/" in line]
    assert "16+ x" in line
    assert "unknown" in line
    assert "N+ x" in said.err
