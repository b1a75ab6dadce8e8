"""Verification finds what was altered, lost or doubled, and says nothing about a sound ledger."""

import json
import os

import pytest

from carbonlens.app.bench_series import alone
from carbonlens.app.ledger_care import close, compact, supersede
from carbonlens.ledger.atomic import write_atomically
from carbonlens.ledger.closes import Span
from carbonlens.ledger.closing import close as close_at
from carbonlens.ledger.store import Ledger
from carbonlens.ledger.verify import verify
from tests.ledger.test_compaction import NOW_US, fill, runs_over


def codes(folder):
    return sorted(f.code for f in verify(folder, now_us=NOW_US).findings)


def rewrite_parquet(file, change):
    """Alter a Parquet file by SQL as someone with access would."""
    import duckdb

    other = file.with_suffix(".other")
    altered = f"SELECT * REPLACE ({change}) FROM read_parquet('{file}')"
    duckdb.sql(f"COPY ({altered}) TO '{other}' (FORMAT parquet)")
    other.replace(file)


@pytest.fixture
def folder(tmp_path):
    ledger = fill(tmp_path, runs_over(60, 12))
    compact(ledger=tmp_path, months=["202609"])
    ledger.add_outcomes([1, 0])
    return tmp_path


def test_a_sound_ledger_has_no_finding(folder):
    result = verify(folder, now_us=NOW_US)
    assert (result.findings, result.sound, result.records, result.counting) == ((), True, 12, 12)


def test_verifying_changes_nothing(folder):
    before = {f: (f.read_bytes(), f.stat().st_mtime_ns) for f in folder.rglob("*") if f.is_file()}
    verify(folder, now_us=NOW_US)
    assert {f: (f.read_bytes(), f.stat().st_mtime_ns) for f in folder.rglob("*") if f.is_file()} == before


@pytest.mark.parametrize(
    "change",
    [
        "CASE WHEN run_id = 'run-0001' THEN energy_j + 1 ELSE energy_j END AS energy_j",
        "replace(record, '1.25', '9.25') AS record",
        "'other-study' AS study",
        "CAST(7 AS DECIMAL(24,6)) AS u_sensor_j",
    ],
)
def test_an_altered_cell_is_found_even_with_a_manifest_made_to_fit(folder, change):
    from carbonlens.domain.identity import sha256_hex

    (file,) = folder.glob("months/*/*.parquet")
    rewrite_parquet(file, change)
    manifest = json.loads(file.with_suffix(".json").read_text())
    manifest["file_sha256"] = sha256_hex(file.read_bytes())
    file.with_suffix(".json").write_text(json.dumps(manifest))
    assert "CL510" in codes(folder)
    assert not verify(folder, now_us=NOW_US).sound


def test_a_flipped_byte_anywhere_in_a_month_is_found(folder):
    (file,) = folder.glob("months/*/*.parquet")
    content = bytearray(file.read_bytes())
    for place in range(4, len(content), len(content) // 7):
        flipped = bytes(content[:place]) + bytes([content[place] ^ 1]) + bytes(content[place + 1 :])
        file.write_bytes(flipped)
        assert not verify(folder, now_us=NOW_US).sound, place


def test_altered_outcomes_are_found(folder):
    (file,) = folder.glob("outcomes/*.json")
    file.write_text("[1,1]")
    assert codes(folder) == ["CL510"]


def test_a_missing_manifest_is_told_and_mended_by_compacting(folder):
    (file,) = folder.glob("months/*/*.json")
    file.unlink()
    assert codes(folder) == ["CL515"]
    compact(ledger=folder)
    assert codes(folder) == []


def test_runs_left_beside_their_month_are_told_and_count_once(folder):
    left = folder / "runs" / "202609" / "run-0000.json"
    write_atomically(left, fill_one(folder))
    result = verify(folder, now_us=NOW_US)
    assert ([f.code for f in result.findings], result.records) == (["CL515"], 12)
    assert result.sound


def fill_one(folder):
    run = runs_over(60, 12)[0]
    other = Ledger(folder.parent / "aside")
    return other.append(run).read_bytes()


def test_strange_and_left_over_files_are_told(folder):
    (folder / "notes.txt").write_text("mine")
    (folder / "runs" / "202610" / "table.csv").write_text("mine")
    old = folder / "runs" / "202610" / f".run.{'0' * 16}.tmp"
    old.write_text("{")
    os.utime(old, (NOW_US / 1e6 - 7200,) * 2)
    fresh = folder / "runs" / "202610" / f".run2.{'1' * 16}.tmp"
    fresh.write_text("{")
    os.utime(fresh, (NOW_US / 1e6 - 5,) * 2)
    assert codes(folder) == ["CL515", "CL518", "CL518"]


def test_what_a_bench_holds_its_series_by_is_the_ledgers(folder):
    (folder / "studies").mkdir(exist_ok=True)
    with alone("bench-1", Ledger(folder)):
        assert list((folder / "studies").iterdir())
        assert codes(folder) == []


def test_corrections_of_records_that_are_not_here_are_told(folder):
    supersede("run-0011", {"units": "9"}, ledger=folder)
    (folder / "runs" / "202611" / "run-0011.json").unlink()
    assert codes(folder) == ["CL509"]


def test_a_record_gone_from_a_closed_period_is_found(folder):
    span = Span(name="2026-10", start_us=1_790_812_800_000_000, end_us=1_793_491_200_000_000)
    close_at(folder, Ledger(folder).holdings(), span, now_us=NOW_US, by="t")
    assert codes(folder) == []
    next(folder.glob("runs/202610/*.json")).unlink()
    result = verify(folder, now_us=NOW_US)
    assert [f.code for f in result.findings] == ["CL511"]
    assert "1 of 7 records" in result.findings[0].message


def test_a_ledger_that_is_not_there_is_empty_and_sound(tmp_path):
    result = verify(tmp_path / "none", now_us=NOW_US)
    assert (result.records, result.findings) == (0, ())


def test_closing_is_refused_while_something_cannot_be_read(folder):
    from carbonlens.errors import RecordError

    (folder / "runs" / "202610" / "torn.json").write_text("{")
    with pytest.raises(RecordError, match="ledger verify"):
        close("2026-09", ledger=folder)
