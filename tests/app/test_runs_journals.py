"""What ``runs`` says of journals that it made no run of, each in one line."""

import os
import time
from decimal import Decimal

import pytest
from msgspec.structs import replace

from carbonlens.app.runs import list_runs
from carbonlens.cli import runs_view
from carbonlens.domain.run import Reading
from carbonlens.ledger.store import Ledger
from carbonlens.metering.recovery import SILENT_S
from carbonlens.metering.session import journal_folder
from tests.metering.journals import header, look, orphan, write


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = journal_folder()
    made.mkdir(parents=True, exist_ok=True)
    return made


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "ledger"
    path.mkdir()
    return path


def make_silent(path):
    past = time.time() - SILENT_S - 60
    os.utime(path, (past, past))


def said(ledger):
    return [(f.code, f.message) for f in list_runs(ledger=ledger).findings]


def test_a_recovered_run_is_told_once(folder, ledger, capsys):
    orphan(folder, ledger)
    listing = list_runs(ledger=ledger)
    assert (len(listing.recovered), listing.runs[0].status) == (1, "recovered")
    runs_view.print_list(listing, 10)
    assert "recovered 1 run whose process was gone" in capsys.readouterr().err
    assert list_runs(ledger=ledger).recovered == ()


def test_damaged_journals_are_told_once_and_moved_aside(folder, ledger):
    path = write(folder, header(ledger, start_ticks=1))
    path.write_bytes(b"no journal at all\n")
    make_silent(path)
    assert said(ledger) == [("CL159", "1 journal of killed runs cannot be read: moved aside")]
    assert said(ledger) == []
    assert not path.exists()


def test_a_journal_of_another_version_is_told_each_time(folder, ledger):
    path = write(folder, replace(header(ledger, start_ticks=1), version=99), look(0, 1.0))
    make_silent(path)
    for _ in range(2):
        assert said(ledger) == [("CL159", "1 journal of another version of carbonlens: not read")]


def test_a_run_of_another_machine_is_listed_and_told(folder, ledger):
    _, path = orphan(folder, ledger, host_id="other", machine="other machine")
    make_silent(path)
    listing = list_runs(ledger=ledger)
    assert [r.status for r in listing.runs] == ["running"]
    (finding,) = listing.findings
    assert finding.code == "CL159"
    assert finding.message.startswith("1 run is of another machine")
    # Of another ledger it is nobody's concern here.
    other = ledger.with_name("other")
    other.mkdir()
    assert list_runs(ledger=other).findings == ()


@pytest.mark.parametrize("newest", [None, 5])
def test_a_run_that_is_sealed_while_runs_are_listed_stands_there_once(folder, ledger, newest):
    """Its journal was there when journals were looked at, and its record when the ledger was read."""
    live = header(ledger)
    write(folder, live, look(0, 1.0))
    assert [r.status for r in list_runs(ledger=ledger, newest=newest).runs] == ["running"]
    reading = Reading(component="cpu", energy_j=Decimal(5), boundary="it", grade="D", method="m")
    Ledger(ledger).append(replace(live.run, status="complete", energy=(reading,)))
    listing = list_runs(ledger=ledger, newest=newest)
    assert [r.status for r in listing.runs] == ["complete"]
    assert listing.totals is not None
    assert (listing.totals.runs, listing.totals.billed.value) == (1, 5)
