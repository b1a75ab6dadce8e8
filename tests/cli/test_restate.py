"""``ledger restate`` and ``ledger adjustments`` as users run them."""

import pytest

from tests.app import statement_case as case
from tests.app.test_restatement import OLD


@pytest.fixture
def filled(shell):
    case.write(shell.folder)
    (shell.folder / "old.csv").write_text(OLD)
    return shell


def restate(shell, *more, run=None, code=0):
    options = ("--from", "old.csv", "--to", "factors.csv", "--ledger", "ledger")
    return (run or shell)("ledger", "restate", case.PERIOD, *options, *more, code=code)


@pytest.mark.slow
def test_old_and_new_are_printed_and_kept(filled):
    done = restate(filled)
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("total.location_kg ") for line in lines)
    assert any("factor (" in line and "own/DE changed" in line for line in lines)
    assert lines[-1].startswith(f"saved {case.PERIOD}-")
    assert "supersedes" in restate(filled).stdout
    assert "Nothing was kept." in restate(filled, "--dry-run").stdout
    assert len(list((filled.folder / "ledger" / "restatements").iterdir())) == 2


def test_json_has_every_row(filled):
    shown = restate(filled, run=filled.json)
    assert (shown["schema"], shown["old"]["from"]) == ("carbonlens/ledger-restate/1", "old.csv")
    rows = {r["id"]: r for r in shown["figures"]}
    row = rows[f"statement.{case.PERIOD}.total.location_kg"]
    assert row["difference"]["value"] == pytest.approx(row["new"]["value"] - row["old"]["value"])
    assert row["reason"] == "factor"


def test_a_reason_that_is_none_is_refused(filled):
    assert "known: structure" in restate(filled, "--reason", "mood", code=2).stderr


def test_adjustments_of_a_ledger_without_closes(filled):
    done = filled("ledger", "adjustments", "--ledger", "ledger")
    assert "No closed period" in done.stdout
    shown = filled.json("ledger", "adjustments", "--ledger", "ledger")
    assert shown == {"schema": "carbonlens/ledger-adjustments/1", "adjustments": []}
