"""The shell examples: a command measured, and two scripts compared."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.metering.processes import clean_environment, runs

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def run_script(name, folder):
    ledger = folder / "ledger"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = clean_environment(folder, CARBONLENS_LEDGER=str(ledger), PATH=path)
    done = subprocess.run(
        ["sh", str(EXAMPLES / name)], env=env, cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, runs(ledger)


def test_a_command(tmp_path):
    printed, [run] = run_script("run_command.sh", tmp_path)
    assert (run.status, run.step, run.unit, run.units) == ("complete", "squares", "number", 2_000_000)
    assert printed.splitlines()[0] == str(sum(n * n for n in range(2_000_000)))
    assert "squares" in printed


@pytest.mark.slow
def test_two_scripts(tmp_path):
    printed, found = run_script("bench/bench.sh", tmp_path)
    assert {r.step for r in found} == {"baseline", "candidate"}
    assert len({r.repeat for r in found if r.role == "variant"}) == 10
    assert "candidate" in printed
