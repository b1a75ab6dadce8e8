"""Imports by columns: the ledger, its queries and the Findings are those of records one by one."""

from contextlib import ExitStack
from unittest.mock import patch

import pytest

from carbonlens.app import importing_runs
from carbonlens.app.importing import import_files
from carbonlens.app.importing_placing import Placing
from carbonlens.app.ledger_care import compact, export, redact, supersede, verify
from carbonlens.errors import UnwritableError
from carbonlens.importers import codecarbon_blocks
from carbonlens.ledger import bulk
from carbonlens.ledger.accounts import account
from carbonlens.ledger.parquet import connect, quoted
from carbonlens.ledger.store import Ledger
from tests.importers.test_codecarbon_columns import many

LONG = {
    "duration": lambda i: ["60.0", "7300.5", "90000.25"][i % 3],
    "energy_consumed": lambda i: ["0.005", "0.05123456789", "0.5"][i % 3],
    "cpu_energy": lambda i: ["0.00125", "0.0128086419725", "0.125"][i % 3],
    "gpu_energy": lambda i: ["0.00275", "0.028179012397", "0.275"][i % 3],
    "ram_energy": lambda i: ["0.001", "0.0102469135205", "0.1"][i % 3],
    "emissions": lambda i: ["0.0005", "0.005", "0.05"][i % 3],
}
LONG |= {f"{part}_power": "" for part in ("cpu", "gpu", "ram")}
CASES = {
    "plain": [many(60)],
    "over hours and days": [many(60, **LONG)],
    "projects and places": [
        many(60, project_name=lambda i: "abc"[i % 3], country_iso_code=lambda i: ["FRA", "DEU", "XXX"][i % 3])
    ],
    "with a PUE": [many(60, pue="1.25")],
    "written again and again": [many(60, run_id=lambda i: f"run-{i // 2}" if i > 50 else f"run-{i}")],
    "ranks of one machine": [
        many(60, tracking_mode="machine", timestamp=lambda i: f"2026-03-02T{i // 2 % 24:02}:{i // 48:02}:00")
    ],
    "odd rows amid": [many(60, duration=lambda i: "nan" if i % 9 == 4 else "-1" if i % 9 == 5 else "100.0")],
    "two files that overlap": [many(60), many(90)],
    "two files of one machine": [
        many(60, tracking_mode="machine"),
        many(60, tracking_mode="machine", run_id=lambda i: f"other-{i}", cpu_power="46"),
    ],
    "further on in a second file": [
        many(20),
        many(
            20,
            duration="110.0",
            energy_consumed="0.0055",
            cpu_energy="0.00175",
            timestamp=lambda i: f"2026-03-02T00:{i:02}:10",
        ),
    ],
}


def imported(folder, texts, *, columns, block=8192, at_once=20_000):
    """Import files into a ledger of their own, by columns or one by one; a few runs are written together."""
    sources = folder / "files"
    sources.mkdir(exist_ok=True)
    for place, text in enumerate(texts):
        (sources / f"{place}.csv").write_text(text)
    ledger = folder / ("columns" if columns else "rows")
    with ExitStack() as stack:
        for name, value in (("WORTH_BYTES", 0 if columns else 1 << 60), ("BLOCK_BYTES", block)):
            stack.enter_context(patch.object(codecarbon_blocks, name, value))
        stack.enter_context(patch.object(bulk, "_AT_ONCE", at_once))
        stack.enter_context(patch.object(importing_runs.time, "time_ns", lambda: 1_780_000_000_000_000_000))
        told = import_files([sources], ledger=ledger, placing=Placing(tz="Europe/Paris", tags={"team": "t"}))
    return told, ledger


def rows_of(ledger):
    """Return the rows of a ledger's batches, the text and hash of each record too."""
    connection = connect()
    listed = ", ".join(quoted(file) for file in sorted((ledger / "imports").glob("*.parquet")))
    query = f"SELECT * FROM read_parquet([{listed}]) ORDER BY ALL"  # noqa: S608  # a name of ours
    found = connection.execute(query)
    return [d[:2] for d in found.description], found.fetchall()


@pytest.fixture(params=CASES)
def both(request, tmp_path):
    return [imported(tmp_path, CASES[request.param], columns=columns) for columns in (True, False)]


@pytest.mark.slow
def test_the_ledger_is_the_same_as_that_of_records_one_by_one(both):
    (told, ledger), (plain, other) = both
    assert told.totals == plain.totals
    assert told.files == plain.files
    assert rows_of(ledger) == rows_of(other)
    assert Ledger(ledger).view().runs == Ledger(other).view().runs
    assert verify(ledger=ledger).sound
    for period in (None, "2026Q1", "2026-03-02"):
        with Ledger(ledger).query(period) as view, Ledger(other).query(period) as plainly:
            assert account(view, ["team", "zone"]) == account(plainly, ["team", "zone"])
    for format_ in ("csv", "json"):
        assert export(format_=format_, ledger=ledger).content == export(format_=format_, ledger=other).content


def test_regular_runs_came_as_columns(tmp_path):
    with patch.object(Ledger, "add_batch", autospec=True, side_effect=Ledger.add_batch) as written:
        imported(tmp_path, CASES["plain"], columns=True)
    ((_, runs, alike), _) = written.call_args
    assert (len(runs), sum(map(len, alike))) == (0, 60)


def test_what_was_imported_by_columns_is_corrected_redacted_and_compacted_as_any(tmp_path):
    _, ledger = imported(tmp_path, CASES["plain"], columns=True)
    supersede("run-7", {"workload": "a"}, ledger=ledger)
    redact("run-8", ["tags.project"], why="asked for", ledger=ledger)
    compact(ledger=ledger)
    assert verify(ledger=ledger).sound
    runs = {run.run_id: run for run in Ledger(ledger).view().runs}
    assert len(runs) == 61
    assert "alpha" not in str(runs["run-8"].tags)
    assert runs["run-9"].tags["project"] == "alpha"


@pytest.mark.slow
def test_too_little_memory_is_said_and_leaves_nothing_behind(tmp_path):
    with (
        patch.object(bulk, "_MEMORY", "60MB"),
        patch.object(bulk, "_MOST_THREADS", 1),
        pytest.raises(UnwritableError, match="not enough memory"),
    ):
        imported(tmp_path, [many(20_000)], columns=True, block=1 << 24, at_once=10_000_000)
    assert list((tmp_path / "columns" / "imports").iterdir()) == []


def test_the_same_file_again_counts_once(tmp_path):
    imported(tmp_path, CASES["plain"], columns=True)
    told, ledger = imported(tmp_path, [CASES["plain"][0] + "\n"], columns=True)
    assert told.totals.runs == 0
    assert len(Ledger(ledger).view().runs) == 60
