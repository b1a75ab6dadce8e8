"""Restating a period of a ledger: the record of it, its chain, and adjustments after a close."""

import json
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

from carbonlens.app.ledger_care import close, supersede, verify
from carbonlens.app.restatement import prior_periods, restate
from carbonlens.app.statement import make_statement
from carbonlens.domain.identity import sha256_hex
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.domain.run import Origin
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.errors import InputFileError, RecordError, UsageError
from carbonlens.ledger import restatements
from carbonlens.ledger.activity import READINGS
from carbonlens.ledger.store import Ledger
from carbonlens.reporting.statement_json import statement_json
from tests.app import statement_case as case

OLD = case.FACTORS.replace(",0.4,location", ",0.5,location")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("CARBONLENS_FACTORS", raising=False)
    case.write(tmp_path)
    (tmp_path / "old.csv").write_text(OLD)
    return tmp_path


def made(folder, old="old.csv", new="factors.csv", period=case.PERIOD, **options):
    return restate(
        period,
        str(folder / old) if "." in old else old,
        str(folder / new),
        by="tester",
        inventory=folder / "inventory",
        ledger=folder / "ledger",
        now_us=options.pop("now_us", case.NOW_US),
        **options,
    )


def base_year(folder, threshold):
    text = f"{case.REPORTING}base_year = 2026\nrecalculation_threshold = {threshold}\n"
    (folder / "inventory" / "reporting.toml").write_text(text)


@pytest.mark.slow
def test_a_record_names_files_without_their_folders(folder):
    """Records travel with a quarter's report."""
    kept = made(folder)
    assert (kept.stored.old, kept.stored.new) == ("old.csv", "factors.csv")
    assert str(folder) not in Path(kept.file).read_text("utf-8")


def test_a_factor_that_changed_moves_what_rests_on_it_and_nothing_else(folder):
    result = made(folder).made
    row = result.row(f"statement.{case.PERIOD}.total.location_kg")
    lab = float(case.it_kwh() * case.PUE)
    edge = float(case.it_kwh("edge"))
    assert row.old.value == pytest.approx(lab * 0.5 + edge * 0.05)
    assert row.new.value == pytest.approx(lab * 0.4 + edge * 0.05)
    assert (row.reason, row.causes[-1]) == ("factor", "own/DE")
    assert "own/DE changed" in row.detail
    assert result.row(f"statement.{case.PERIOD}.total.facility_kwh") is None
    assert result.row(f"statement.{case.PERIOD}.edge.location_kg") is None


@pytest.mark.parametrize("changed", ["life_cycle", "residual", "gone"])
def test_what_another_set_of_factors_changes_is_no_error_of_records(folder, changed):
    """Supply applies beside a direct factor, and not beside one of the life cycle: that is the factor's."""
    texts = {
        "life_cycle": case.FACTORS.replace("average,direct", "average,life_cycle"),
        "residual": case.FACTORS.replace("0.7,residual", "0.6,residual"),
        "gone": "".join(x for x in case.FACTORS.splitlines(keepends=True) if "own/FR" not in x),
    }
    (folder / "old.csv").write_text(texts[changed])
    result = made(folder, keep=False).made
    assert result.rows
    assert {
        row.figure_id: row.reason for row in result.rows if row.reason != "factor" or not row.causes
    } == {}
    assert "CL464" not in {f.code for f in result.findings}


@pytest.mark.slow
def test_a_restatement_is_kept_and_supersedes_the_last(folder):
    first, second = made(folder), made(folder, why="again", now_us=case.NOW_US + 1)
    held = restatements.load(folder / "ledger")
    assert held.findings == ()
    assert len(held.by_hash) == 2
    firsts = [sha for sha, one in held.by_hash.items() if one.supersedes is None]
    assert (first.stored.supersedes, [second.stored.supersedes]) == (None, firsts)
    assert held.by_hash[held.ends(case.PERIOD)[0]] == second.stored
    assert second.stored.rows == second.made.rows
    assert verify(ledger=folder / "ledger").sound


def test_nothing_is_kept_of_nothing_or_on_a_dry_run(folder):
    assert made(folder, old="factors.csv").made.rows == ()
    assert made(folder, keep=False).file is None
    assert not (folder / "ledger" / "restatements").exists()


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["alter", "cut", "lose"])
def test_a_damaged_restatement_is_found_and_stops_the_next(folder, damage):
    made(folder)
    made(folder, now_us=case.NOW_US + 1)
    held = restatements.load(folder / "ledger")
    (sha,) = (s for s, one in held.by_hash.items() if one.supersedes is None)
    file = folder / "ledger" / "restatements" / restatements.name_of(case.PERIOD, sha)
    if damage == "alter":
        file.write_bytes(file.read_bytes().replace(b"tester", b"nobody"))
    elif damage == "cut":
        file.write_bytes(file.read_bytes()[:100])
    else:
        file.unlink()
    result = verify(ledger=folder / "ledger")
    assert not result.sound
    assert "CL511" in {f.code for f in result.findings}
    if damage != "lose":
        with pytest.raises(RecordError):
            made(folder, now_us=case.NOW_US + 2)


@pytest.mark.slow
def test_two_made_at_once_are_both_superseded(folder):
    first = made(folder).stored
    content = msgspec.json.encode(msgspec.structs.replace(first, by="other"))
    name = restatements.name_of(case.PERIOD, sha256_hex(content))
    (folder / "ledger" / "restatements" / name).write_bytes(content)
    said = [f for f in verify(ledger=folder / "ledger").findings if f.code == "CL511"]
    assert [f.severity for f in said] == ["warning"]
    last = made(folder, now_us=case.NOW_US + 1).stored
    assert (last.supersedes is not None, len(last.others)) == (True, 1)
    assert "CL511" not in {f.code for f in verify(ledger=folder / "ledger").findings}


@pytest.mark.slow
def test_the_base_year_is_recalculated_from_its_threshold_on(folder):
    base_year(folder, 0.05)
    found = made(folder, period="2026").made.base_year
    assert found["location"].is_needed
    assert found["location"].change == pytest.approx(-0.19, abs=0.01)
    # The market-based figures rest on the residual mix, which is the same.
    assert found["market"].is_needed is False
    base_year(folder, 0.5)
    assert made(folder, period="2026").made.base_year["location"].is_needed is False
    base_year(folder, 0.05)
    grown = made(folder, period="2026", reason="organic", why="growth").made
    assert grown.base_year["location"].is_needed is False
    assert "CL386" in {f.code for f in grown.findings}


def test_a_part_of_the_base_year_does_not_recalculate_it(folder):
    base_year(folder, 0.05)
    assert made(folder).made.base_year == {}


def test_bundled_factors_can_be_the_old_ones(folder):
    row = made(folder, old="bundled", keep=False).made.row(f"statement.{case.PERIOD}.total.location_kg")
    assert row.reason == "factor"
    assert "own/DE" in row.causes


@pytest.mark.slow
def test_a_printed_statement_can_be_the_old_one(folder):
    options = {"ledger": folder / "ledger", "inventory": folder / "inventory", "now_us": case.NOW_US}
    before = make_statement(case.PERIOD, factors=folder / "factors.csv", **options).statement
    text = json.dumps(json.loads(msgspec.json.encode(statement_json(before))))
    (folder / "before.json").write_text(text)
    assert made(folder, old="before.json").made.rows == ()
    reading = msgspec.to_builtins(case.runs()[0].energy[0]) | {"energy_j": "1"}
    supersede("run-00", {"energy": [reading]}, why="meter was wrong", ledger=folder / "ledger")
    changed = made(folder, old="before.json").made
    total = changed.row(f"statement.{case.PERIOD}.total.it_kwh")
    assert (total.reason, total.delta.value) == ("error", pytest.approx(-0.55, abs=1e-5))
    assert "CL464" in {f.code for f in changed.findings}
    with pytest.raises(UsageError, match="not a statement of 2026"):
        made(folder, old="before.json", period="2026")
    (folder / "torn.json").write_text(text[:50])
    with pytest.raises(InputFileError, match="is no statement"):
        made(folder, old="torn.json")


def test_factors_that_a_period_was_not_closed_with_are_said(folder):
    close(case.PERIOD, ledger=folder / "ledger", by="tester")
    assert "CL400" in {f.code for f in made(folder, keep=False).made.findings}
    assert "CL400" not in {f.code for f in made(folder, old="bundled", keep=False).made.findings}


@pytest.mark.slow
def test_records_found_after_a_close_are_lines_of_the_later_period(folder):
    store = folder / "ledger"
    close(case.PERIOD, ledger=store, by="tester")
    assert prior_periods(ledger=store, now_us=case.NOW_US) == ()
    late = case.runs()[1]
    Ledger(store).append(msgspec.structs.replace(late, run_id="late"))
    (line,) = prior_periods(ledger=store, now_us=case.NOW_US)
    assert (line.period, line.found_in, line.records) == (case.PERIOD, ("2026-09",), ("late",))
    assert (line.boundary, line.adjustment_j) == ("it", late.energy[0].energy_j)
    close("2026-06", ledger=store, by="tester")
    (line,) = prior_periods(ledger=store, now_us=case.NOW_US)
    assert line.found_in == ("2026-06",)
    assert line.adjustment_j == Decimal(late.energy[0].energy_j)


def test_readings_found_after_a_close_are_lines_of_metered_energy(folder):
    store, inventory = folder / "ledger", folder / "inventory"
    (inventory / "meters.toml").write_text(case.METER)
    close(case.PERIOD, ledger=store, by="tester", inventory=inventory)
    day_us = 24 * US_PER_HOUR
    reading = MeterReading(
        reading_id="late-one",
        meter_id="main",
        start_us=case.FIRST_HOUR * US_PER_HOUR,
        end_us=(case.FIRST_HOUR + case.HOURS) * US_PER_HOUR,
        energy_j=Decimal(31) * 3_600_000,
        boundary="facility",
        origin=Origin(instrument="test-1"),
    )
    Ledger(store).add_rows(READINGS, [reading], source_sha256="cd" * 32, importer="test-1")
    (line,) = prior_periods(ledger=store, inventory=inventory, now_us=case.NOW_US)
    assert (line.metered_at, line.boundary, line.records) == ("lab", "facility", ("late-one",))
    assert (line.closed_j, line.now_j, line.adjustment_j) == (None, reading.energy_j, None)
    # A reading that reaches into the next month counts with the month's part of it alone.
    close("2026-06", ledger=store, by="tester", inventory=inventory)
    more = msgspec.structs.replace(
        reading, reading_id="late-two", supersedes="late-one", end_us=reading.end_us + 31 * day_us
    )
    Ledger(store).add_rows(READINGS, [more], source_sha256="ce" * 32, importer="test-1")
    may, june = prior_periods(ledger=store, inventory=inventory, now_us=case.NOW_US)
    assert (may.period, may.now_j) == ("2026-05", reading.energy_j / 2)
    assert (june.period, june.closed_j, june.now_j) == ("2026-06", None, reading.energy_j * 30 / 62)
