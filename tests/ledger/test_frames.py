"""One view over live runs, imports and compacted months: each run counts once."""

import os
from decimal import Decimal

import msgspec
import pytest

from carbonlens.domain.identity import uuid7
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.errors import MissingExtraError, RecordError
from carbonlens.ledger import batches, parquet, queries, redaction
from carbonlens.ledger.calendar import Calendar
from carbonlens.ledger.frames import View
from carbonlens.ledger.latest import latest
from carbonlens.ledger.layout import CORRECTIONS
from carbonlens.ledger.reading import open_view, to_pandas
from carbonlens.ledger.records import current
from carbonlens.ledger.store import Ledger

NOV = Calendar().period("2026-11").first_hour * US_PER_HOUR
OCT = Calendar().period("2026-10").first_hour * US_PER_HOUR


def make(run_id, energy="1", start_us=NOV, **more):
    value = None if energy is None else Decimal(energy)
    reading = Reading(
        component="cpu",
        energy_j=value,
        boundary="it",
        grade="D",
        method="m",
        state="unknown" if value is None else "known",
        u_by_source_j={"cpu_model:x": 0.25},
    )
    return Run(run_id=run_id, start_us=start_us, energy=(reading,), **more)


def month(ledger, name, runs, file="f"):
    path = ledger / "months" / name / f"{file}.parquet"
    batches.write(path, runs)
    return path


def seen(ledger, period=None, **more):
    with open_view(ledger, period, **more) as view:
        rows = view.rows(queries.run_table(view.parts))
        return sorted((r["run_id"], r["energy_j"]) for r in rows), view.findings


def ids(ledger, period=None):
    return [run_id for run_id, _ in seen(ledger, period)[0]]


def codes(ledger, period=None):
    return [f.code for f in seen(ledger, period)[1]]


def test_all_forms_are_one_table(tmp_path):
    store = Ledger(tmp_path)
    store.append(make("live"))
    store.add_batch(
        [make("imported", "2"), make("undated", "3", None)], source_sha256="ab" * 32, importer="t-1"
    )
    month(tmp_path, "202610", [make("folded", "4", OCT)])
    found, findings = seen(tmp_path)
    assert found == [("folded", 4), ("imported", 2), ("live", 1), ("undated", 3)]
    assert findings == []


def test_the_view_counts_what_the_records_say(tmp_path):
    """The same ledger through Python's records and through the columns."""
    store = Ledger(tmp_path)
    for i in range(6):
        store.append(make(f"r{i}", str(i)))
    store.append(make("c0", "10", supersedes="r0"))
    store.append(make("c1", "11", supersedes="c0"))
    month(tmp_path, "202611", [make("r1", "1"), make("m", "7"), make("c2", "12", supersedes="r2")])
    month(
        tmp_path,
        "202611",
        [make("m", "7"), make("x", "1", supersedes="y"), make("y", "2", supersedes="x")],
        "g",
    )
    store.add_batch(
        [make("i", "8"), make("i", "8"), make("k", study="s")], source_sha256="ab" * 32, importer="t-1"
    )
    store.add_batch([make("k", "9", study="t")], source_sha256="cd" * 32, importer="t-1")
    held = store.holdings()
    kept, _ = current([r.run for r in held.records])
    expected = sorted((r.run_id, r.energy[0].energy_j) for r in kept)
    found, findings = seen(tmp_path)
    assert found == expected
    assert "CL508" in [f.code for f in findings]


def test_one_content_met_three_times_counts_once_without_words(tmp_path):
    run = make("r")
    Ledger(tmp_path).append(run)
    month(tmp_path, "202611", [run])
    month(tmp_path, "202611", [run], "g")
    assert seen(tmp_path) == ([("r", 1)], [])


def test_two_contents_under_one_id_are_said(tmp_path):
    Ledger(tmp_path).append(make("r", "5"))
    month(tmp_path, "202611", [make("r", "1")])
    month(tmp_path, "202611", [make("r", "2")], "g")
    found, findings = seen(tmp_path)
    assert found == [("r", 1)]
    assert {f.code for f in findings} == {"CL505"}


def test_a_correction_in_a_compacted_month_outside_the_period_is_found(tmp_path):
    month(tmp_path, "202611", [make("old"), make("kept")])
    month(tmp_path, "202610", [make("new", "9", OCT, supersedes="old")])
    assert ids(tmp_path, "2026-11") == ["kept"]
    assert ids(tmp_path, "2026-10") == ["new"]


def test_a_live_correction_among_the_corrections_is_found_in_any_period(tmp_path):
    Ledger(tmp_path).append(make("old"))
    file = tmp_path / "runs" / CORRECTIONS / "new.json"
    file.parent.mkdir()
    file.write_bytes(msgspec.json.encode(make("new", "9", OCT, supersedes="old")))
    assert ids(tmp_path, "2026-11") == []
    assert ids(tmp_path, "2026-10") == ["new"]


def test_a_live_correction_that_moved_a_run_to_an_older_month_is_found_by_its_id(tmp_path):
    store = Ledger(tmp_path)
    old, new = (uuid7(NOV // 1000 + i, bytes(10)) for i in (1, 2))
    store.append(make(old))
    moved = store.append(make(new, "9", OCT, supersedes=old))
    os.utime(moved, (OCT / 1e6, OCT / 1e6))
    assert ids(tmp_path, "2026-11") == []
    assert ids(tmp_path, "2026-10") == [new]


def test_what_is_redacted_elsewhere_is_redacted_here(tmp_path):
    run = make("r", tags={"owner": "somebody", "team": "a"})
    file = month(tmp_path, "202611", [run, make("s")])
    record = next(r for r in Ledger(tmp_path).holdings().records if r.run.run_id == "r")
    stone = redaction.entomb(record, ["tags.owner"], by="me", when_us=NOV, why="asked")
    stones = tmp_path / "redactions"
    stones.mkdir()
    (stones / stone.file_name).write_bytes(msgspec.json.encode(stone))
    with View(tmp_path) as view:
        rows = view.rows(queries.run_table(view.parts))
        assert view.findings == []
    assert [(r["run_id"], r["tags"]) for r in rows] == [("r", "\x1fteam=a\x1f"), ("s", None)]
    assert file.exists()


def blank_data(file):
    """Overwrite a file's data, but not its footer: who reads it, fails."""
    raw = bytearray(file.read_bytes())
    footer = int.from_bytes(raw[-8:-4], "little") + 8
    raw[4:-footer] = os.urandom(len(raw) - footer - 4)
    file.write_bytes(raw)


def test_a_period_reads_only_its_own_files(tmp_path):
    store = Ledger(tmp_path)
    october = month(tmp_path, "202610", [make(f"o{i}", "1", OCT + i) for i in range(300)])
    month(tmp_path, "202611", [make("n", "2")])
    blank_data(october)
    store.append(make("live", "3"))
    assert seen(tmp_path, "2026-11") == ([("live", 3), ("n", 2)], [])
    with pytest.raises(RecordError):
        ids(tmp_path, "2026-10")


def test_a_live_run_written_long_before_a_period_is_not_read_for_it(tmp_path):
    store = Ledger(tmp_path)
    store.append(make("gone")).write_text("{")
    # The system's own time of a file cannot be set back: the period must lie after this test.
    store.append(make("own", "3", Calendar().period("2099-11").first_hour * US_PER_HOUR))
    assert seen(tmp_path, "2099-11") == ([("own", 3)], [])
    assert codes(tmp_path, "2026-11") == ["CL501"]


def test_a_run_that_reaches_into_the_period_gives_it_its_hours(tmp_path):
    run = make("long", "4", NOV - 2 * US_PER_HOUR, end_us=NOV + 2 * US_PER_HOUR)
    Ledger(tmp_path / "live").append(run)
    month(tmp_path / "folded", "202610", [run])
    for name in ("live", "folded"):
        assert seen(tmp_path / name, "2026-11")[0] == [("long", 2)]
        assert seen(tmp_path / name, "2026-10")[0] == [("long", 2)]


def test_runs_without_a_start_are_in_no_period_and_counted(tmp_path):
    store = Ledger(tmp_path)
    store.append(make("a", "1", None))
    store.append(make("c"))
    store.add_batch([make("b", "1", None)], source_sha256="ab" * 32, importer="t-1")
    with open_view(tmp_path, "2026-11") as view:
        assert view.undated == 2
    assert ids(tmp_path, "2026-11") == ["c"]


def test_damaged_and_newer_files_are_findings_and_the_rest_is_read(tmp_path):
    torn = month(tmp_path, "202610", [make("torn")])
    torn.write_bytes(torn.read_bytes()[:200])
    newer = month(tmp_path, "202611", [make("newer")], "new")
    connection = parquet.connect()
    scan = f"SELECT * REPLACE (99 AS row_schema) FROM '{newer}'"
    connection.execute(f"COPY ({scan}) TO '{newer}.x' (FORMAT parquet)")
    connection.close()
    newer.with_name(newer.name + ".x").replace(newer)
    month(tmp_path, "202611", [make("good")])
    found, findings = seen(tmp_path)
    assert found == [("good", 1)]
    assert sorted(f.code for f in findings) == ["CL502", "CL503"]


def test_batches_of_the_first_version_are_still_read(tmp_path):
    file = tmp_path / "imports" / "old.parquet"
    file.parent.mkdir()
    columns = {"run_id": "VARCHAR", "energy_j": "DECIMAL(24,6)", "record": "VARCHAR"}
    runs = [make("a", "2"), make("b", None)]
    rows = [{"run_id": r.run_id, "record": msgspec.json.encode(r).decode()} for r in runs]
    parquet.write(file, columns, rows)
    Ledger(tmp_path).append(make("live"))
    assert seen(tmp_path) == ([("a", 2), ("b", None), ("live", 1)], [])


def test_parts_of_a_run_that_is_not_there_stand_for_themselves(tmp_path):
    store = Ledger(tmp_path)
    store.append(make("parent"))
    store.append(make("child", parent_run_id="parent"))
    store.append(make("lost", parent_run_id="gone"))
    store.append(make("old"))
    store.append(make("new", supersedes="old"))
    store.append(make("child of old", parent_run_id="old"))
    with View(tmp_path) as view:
        assert view.orphans == ["gone"]
        rows = view.rows(queries.roots(view.parts, view.orphans).select("run_id").sort("run_id"))
    assert [r["run_id"] for r in rows] == ["lost", "new", "parent"]


def test_an_empty_ledger_is_empty(tmp_path):
    assert seen(tmp_path / "none") == ([], [])


def test_the_table_keeps_decimals_exact(tmp_path):
    Ledger(tmp_path).append(make("r", "123456789012345678.123456"))
    Ledger(tmp_path).append(make("s", None))
    table = to_pandas(tmp_path)
    assert table["energy_j"][0] == Decimal("123456789012345678.123456")
    assert table["energy_j"].isna().tolist() == [False, True]


def test_the_latest_runs_are_found_without_reading_the_others(tmp_path):
    store = Ledger(tmp_path)
    for i in range(5):
        store.append(make(f"0190a000-0000-7000-8000-00000000000{i}", start_us=NOV + i))
    store.append(
        make("0190b000-0000-7000-8000-000000000000", supersedes="0190a000-0000-7000-8000-000000000004")
    )
    oldest = tmp_path / "runs" / "202611" / "0190a000-0000-7000-8000-000000000000.json"
    oldest.write_text("{")
    found = latest(tmp_path, 2)
    assert [r.run_id[:8] + r.run_id[-1] for r in found.runs] == ["0190b0000", "0190a0003"]
    assert found.findings == ()
    month(
        tmp_path,
        "202612",
        [make("0190c000-0000-7000-8000-000000000000", start_us=NOV + 50 * 24 * US_PER_HOUR)],
    )
    assert latest(tmp_path, 1).runs[0].run_id.startswith("0190c")


@pytest.mark.parametrize("n", [1, 2, 3, 8, 40])
def test_the_latest_of_many_files_are_those_of_all(tmp_path, n):
    """Ids and starts disagree, months overlap, some runs have no start."""
    hour = US_PER_HOUR
    spread = [(i, NOV + (i * 37 % 11 - 5) * 24 * hour if i % 5 else None) for i in range(24)]
    every = [make(uuid7(1000 * (i * 7 % 24) + 1, bytes(10)), start_us=start) for i, start in spread]
    for i in range(6):
        month(tmp_path, f"20260{i + 1}", every[4 * i : 4 * i + 4], file=f"f{i}")
    # Twice as many as are asked for are looked at, by start and by id.
    found = [r.run_id for r in latest(tmp_path, n).runs]
    assert found == sorted((r.run_id for r in every), reverse=True)[:n]


def test_the_latest_compacted_runs_are_found_without_the_data_of_older_months(tmp_path):
    for i, start in enumerate((OCT, NOV)):
        runs = [make(uuid7(start // 1000 + k, bytes(10)), start_us=start + k) for k in range(5)]
        month(tmp_path, ("202610", "202611")[i], runs)
    older = tmp_path / "months" / "202610" / "f.parquet"
    content = bytearray(older.read_bytes())
    # The footer stays: it alone is read.
    content[4:200] = b"x" * 196
    older.write_bytes(content)
    assert [r.start_us - NOV for r in latest(tmp_path, 2).runs] == [4, 3]


def test_without_duckdb_the_error_names_the_extra(tmp_path):
    import subprocess
    import sys

    code = (
        "import sys; sys.modules['duckdb'] = None\n"
        "from pathlib import Path; from carbonlens.ledger.frames import View\n"
        f"View(Path({str(tmp_path)!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert MissingExtraError.code in done.stderr
