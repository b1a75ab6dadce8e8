"""The care commands as users run them: what they print, and how they exit."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

RUNS = """run_id,study,step,energy_j,units,unit,start_utc,duration_s,energy_grade,boundary
a1,s,base,100.5,10,query,2026-03-05T10:00:00Z,5,B,device
a2,s,fast,80.25,10,query,2026-03-05T11:00:00Z,4,B,device
"""


@pytest.fixture
def filled(shell):
    (shell.folder / "runs.csv").write_text(RUNS)
    shell("import", "runs.csv")
    shell("run", "--study", "live", "--", "true")
    return shell


def ids(shell):
    return [r["run_id"] for r in shell.json("runs")["runs"]]


def test_a_tag_and_a_correction_supersede_the_run(filled):
    edited = filled.json("runs", "tag", "a1", "team=vision")
    assert edited["supersedes"] == "a1"
    printed = filled("runs", "supersede", "a1", "--by", "units=20", "--why", "typo").stdout
    assert edited["run_id"] in printed
    shown = filled.json("runs")["runs"]
    assert len(shown) == 3
    (last,) = [r for r in shown if r["units"] in ("20", 20, 20.0)]
    assert last["study"] == "s"


@pytest.mark.parametrize("text", ["team", "=vision", " =x"])
def test_what_is_no_tag_is_refused_in_the_commands_own_terms(filled, text):
    said = filled("runs", "tag", "a1", text, code=2).stderr
    assert "--tag" not in said
    assert "write team=vision" in said
    assert "write --tag team=vision" in filled("run", "--tag", text, "--", "true", code=2).stderr


def test_a_correction_by_a_file(filled):
    (filled.folder / "fix.json").write_text(json.dumps({"site": "paris", "units": "11"}))
    assert filled.json("runs", "supersede", "a2", "--by", "fix.json")["run"]["site"] == "paris"
    done = filled("runs", "supersede", "a2", "--by", "none.json", code=3)
    assert "none.json" in done.stderr
    assert "field" in filled("runs", "supersede", "a2", "--by", "joules=1", code=2).stderr


def test_verify_is_short_and_exits_4_on_a_mismatch(filled):
    done = filled("ledger", "verify")
    assert len(done.stdout.splitlines()) <= 15
    assert "The ledger is sound: 3 runs count" in done.stdout
    assert filled.json("ledger", "verify")["sound"] is True
    (file,) = Path(filled.folder).glob(".carbonlens/imports/*.parquet")
    file.write_bytes(file.read_bytes()[:100])
    done = filled("ledger", "verify", code=4)
    assert "MISMATCH" in done.stdout
    assert file.name in done.stderr
    assert len((done.stdout + done.stderr).splitlines()) <= 15
    assert filled.json("ledger", "verify", code=4)["sound"] is False


def test_compact_close_export_and_redact(filled):
    assert "Nothing to fold" in filled("ledger", "compact").stdout
    assert "1 run in" in filled("ledger", "compact", "--month", f"{datetime.now(tz=UTC):%Y-%m}").stdout
    assert len(ids(filled)) == 3
    closed = filled.json("ledger", "close", "2026-03", "--by", "me")
    assert (closed["counting"], closed["by"]) == (2, "me")
    assert closed["energy"] == [{"boundary": "device", "energy_j": "180.750000", "is_whole": True}]
    assert "closed already" in filled("ledger", "close", "2026-03", code=2).stderr
    assert "not over" in filled("ledger", "close", "2999", code=2).stderr
    table = filled("ledger", "export", "--period", "2026-03").stdout.splitlines()
    assert len(table) == 3
    filled("ledger", "export", "--format", "parquet", "-o", "out.parquet")
    assert (filled.folder / "out.parquet").read_bytes()[:4] == b"PAR1"
    assert "no format" in filled("ledger", "export", "--format", "xls", code=2).stderr
    done = filled("ledger", "redact", "a1", "--field", "energy", "--why", "wrong meter")
    assert "unknown from now on" in done.stdout
    assert "no run" in filled("ledger", "redact", "zzzz", "--field", "tags", "--why", "w", code=2).stderr
    assert filled.json("ledger", "verify")["sound"] is True


def test_a_close_prints_each_boundary_in_units_that_fit(filled):
    (filled.folder / "more.csv").write_text(
        RUNS.splitlines()[0] + "\nb1,s,base,0.002,1,query,2026-03-06T10:00:00Z,5,B,facility\n"
    )
    filled("import", "more.csv")
    printed = filled("ledger", "close", "2026-03").stdout
    assert "0 kWh" not in printed
    assert len([line for line in printed.splitlines() if line.startswith("Energy")]) == 2
    assert "device boundary" in printed
    assert "facility boundary" in printed


def test_a_mistyped_ledger_is_no_sound_one(shell):
    for words in (["ledger", "verify"], ["ledger", "close", "2026-03"], ["ledger", "export"]):
        assert "no ledger" in shell(*words, "--ledger", "mistyped", code=2).stderr
    assert not (shell.folder / "mistyped").exists()


def test_units_beyond_a_record_are_refused(shell):
    assert "more than a record holds" in shell("run", "--units", "1e25", "--", "true", code=2).stderr


def test_a_superseded_run_is_shown_as_such(filled):
    newer = filled.json("runs", "tag", "a1", "team=vision")["run_id"]
    assert f"superseded by {newer}" in filled("runs", "show", "a1").stdout
    assert filled.json("runs", "show", "a1")["superseded_by"] == newer
    assert filled.json("runs", "show", newer)["superseded_by"] is None


def test_an_id_of_two_studies_needs_the_study(filled):
    (filled.folder / "other.csv").write_text(RUNS.replace(",s,", ",t,"))
    filled("import", "other.csv")
    assert "--study" in filled("runs", "tag", "a1", "k=v", code=2).stderr
    assert filled.json("runs", "tag", "a1", "k=v", "--study", "t")["run"]["study"] == "t"
    filled("runs", "supersede", "a1", "--by", "units=20", "--study", "s")
    filled("ledger", "redact", "a2", "--field", "units", "--why", "w", "--study", "s")
    assert "k" in filled("runs", "show", "a2", "--study", "t", "--json").stdout


def test_an_export_of_an_open_period_is_a_draft(filled):
    assert "DRAFT" in filled("ledger", "export", "--period", "2026-03").stderr
    filled("ledger", "close", "2026-03")
    assert "DRAFT" not in filled("ledger", "export", "--period", "2026-03").stderr


def test_a_close_is_of_the_days_of_the_inventory(filled):
    reporting = filled.folder / "inventory" / "reporting.toml"
    reporting.parent.mkdir()
    reporting.write_text('timezone = "Europe/Berlin"\nfiscal_year_start = 3\n')
    assert len(filled("ledger", "export", "--period", "2027Q1").stdout.splitlines()) == 3
    assert len(filled("ledger", "export", "--period", "2027Q1", "--inventory", "none", code=3).stderr) > 0
    for words in (["--timezone", "UTC"], ["--fiscal-year-start", "1"]):
        refused = filled("ledger", "close", "2026Q4", *words, code=2).stderr
        assert "Europe/Berlin, fiscal year from March" in refused
        assert "reporting.toml" in refused
    printed = filled("ledger", "close", "2026Q4", "--fiscal-year-start", "3").stdout
    assert "From 2025-12-01 to 2026-02-28 in Europe/Berlin, fiscal year from March." in printed
    closed = filled.json("ledger", "close", "2026-03")
    assert closed["period"] == "2026-03~Europe-Berlin"
    assert closed["start_us"] == datetime(2026, 2, 28, 23, tzinfo=UTC).timestamp() * 1e6
    assert "DRAFT" not in filled("ledger", "export", "--period", "2026-03").stderr


def test_without_an_inventory_the_options_state_the_calendar(filled):
    closed = filled.json("ledger", "close", "2026-03", "--timezone", "Europe/Berlin")
    assert closed["reporting_timezone"] == "Europe/Berlin"
