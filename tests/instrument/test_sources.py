"""Declared sources in a run: they are read, and a broken file is a Finding and no more."""

import os
import sys

import pytest

from carbonlens import track
from carbonlens.app.command import run_command
from carbonlens.ledger.store import Ledger

DATASHEET = '[[datasheet]]\ndevice = "coral"\npower_w = 2.0\nsource = "datasheet 1.4"\n'


@pytest.fixture
def declare(tmp_path, monkeypatch):
    """Write a sources file and name it in the environment."""

    def write(text):
        (tmp_path / "sources.toml").write_text(text)
        monkeypatch.setenv("CARBONLENS_SOURCES", str(tmp_path / "sources.toml"))

    return write


def readings(run):
    return {r.component: r for r in (*run.energy, *run.beside)}


def test_track_reads_what_was_declared(declare, tmp_path):
    declare(DATASHEET)
    with track("s", ledger=tmp_path / "ledger") as block:
        pass
    assert "datasheet 1.4" in readings(block.run)["npu"].method


def test_run_reads_what_was_declared(declare, tmp_path):
    declare(DATASHEET)
    result = run_command([sys.executable, "-c", "pass"], ledger=tmp_path / "ledger")
    assert "datasheet 1.4" in readings(result.run)["npu"].method


def test_a_projects_table_counts_in_its_folder(tmp_path, monkeypatch):
    table = DATASHEET.replace("[[datasheet]]", "[[tool.carbonlens.sources.datasheet]]")
    (tmp_path / "pyproject.toml").write_text(table)
    monkeypatch.chdir(tmp_path)
    with track("s", ledger=tmp_path / "ledger") as block:
        pass
    assert "npu" in readings(block.run)


def test_a_broken_file_is_a_finding_and_the_work_is_measured(declare, tmp_path):
    declare(DATASHEET.replace("power_w", "power_v"))
    ledger = tmp_path / "ledger"
    with track("s", ledger=ledger) as block:
        pass
    result = run_command([sys.executable, "-c", "pass"], ledger=ledger)
    for run in (block.run, result.run):
        told = [f for f in run.findings if f.code == "CL156"]
        assert len(told) == 1
        assert "unknown key 'power_v'" in told[0].message
        assert run.total_energy.value > 0
    assert result.exit_code == 0
    assert len(Ledger(ledger).view().runs) == 2


def test_a_working_folder_that_is_gone_stops_nothing(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    try:
        with track("s", ledger=tmp_path / "ledger") as block:
            pass
    finally:
        os.chdir(tmp_path)
    assert block.run.status == "complete"
    assert "CL156" in {f.code for f in block.run.findings}
