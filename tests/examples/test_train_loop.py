"""The plain PyTorch loop of the documentation, run as it stands there: two processes, one job."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.metering.processes import clean_environment, runs

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "train_loop.py"
PHASES = {"load", "warm-up", "steady", "evaluation", "checkpoint"}
SAMPLES = 1437
"""Images that one epoch trains on."""


@pytest.mark.slow
def test_the_loop_is_measured_in_phases_and_resumed_as_the_same_job(tmp_path):
    pytest.importorskip("torch", reason="torch is of an extra that is not installed")
    pytest.importorskip("sklearn", reason="sklearn is of an extra that is not installed")
    ledger = tmp_path / "ledger"
    env = clean_environment(tmp_path, CARBONLENS_LEDGER=str(ledger))
    for more in (["--stop-after", "5"], []):
        command = [sys.executable, str(EXAMPLE), *more]
        done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=600)
        assert (done.returncode, done.stderr) == (0, "")
    first, second = sorted(runs(ledger), key=lambda r: r.start_us)
    assert first.job_id == second.job_id != ""
    assert (first.attempt, second.attempt) == (1, 2)
    for run in (first, second):
        assert (run.status, run.role, run.unit, run.units) == ("complete", "training", "sample", 5 * SAMPLES)
        phases = {p.name: p for p in run.phases}
        assert set(phases) == PHASES
        assert sum(p.duration_s for p in run.phases) <= run.duration_s
        assert sum(p.energy_j or 0 for p in run.phases) <= run.energy[0].energy_j
        assert (phases["warm-up"].units, phases["steady"].units) == (320, 5 * SAMPLES - 320)
        assert {p.entries for p in run.phases} == {1}
        for name in ("load", "steady"):
            assert phases[name].state == "known", run.findings
            assert phases[name].energy_j > 0
        assert run.latency.n == 3600
        (accuracy,) = run.quality
        assert (accuracy.n, accuracy.value > 0.9) == (360, True)
