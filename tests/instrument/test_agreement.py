"""The same work costs the same, whichever way it is measured."""

import subprocess
import sys

import pytest

from carbonlens import track
from carbonlens.ledger.store import Ledger

WORK = """
import hashlib, time

def work(seconds):
    data, end = b"x" * 65536, time.process_time() + seconds
    while time.process_time() < end:
        hashlib.sha256(data).digest()

if __name__ == "__main__":
    work(0.6)
"""


def watts_per_cpu(run):
    """Return joules for each CPU second: what does not depend on how busy the machine is."""
    (energy,) = [r for r in run.energy if r.component == "cpu"]
    return float(energy.energy_j) / run.conditions.cpu_s, energy


def test_command_line_and_api_say_the_same_of_the_same_work(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "agreed_work.py").write_text(WORK)
    from agreed_work import work

    with track(step="api", ledger=tmp_path / "ledger") as tracked:
        work(0.6)
    by_api = tracked.run
    command = (sys.executable, "-m", "carbonlens.cli.main", "run", "--step", "cli", "--ledger", "ledger")
    work_alone = ("--", sys.executable, "agreed_work.py")
    subprocess.run([*command, *work_alone], cwd=tmp_path, capture_output=True, check=True)
    by_cli = next(r for r in Ledger(tmp_path / "ledger").view().runs if r.step == "cli")
    (api_w, api), (cli_w, cli) = watts_per_cpu(by_api), watts_per_cpu(by_cli)
    assert (api.grade, api.boundary, api.method) == (cli.grade, cli.boundary, cli.method)
    if api.grade == "D":  # a model: of CPU time alone, so that the load of the machine is none of it
        assert cli_w == pytest.approx(api_w, rel=0.02)
    a, c = api.estimate, cli.estimate
    assert a.low < c.high
    assert c.low < a.high
    assert by_cli.conditions.cpu_s == pytest.approx(by_api.conditions.cpu_s, rel=0.5)
