"""What is exported holds the figures exactly, names their units, and comes back by import."""

import csv
import io
import json
from decimal import Decimal

import duckdb
import msgspec
import pytest

from carbonlens.app.importing import import_files
from carbonlens.app.ledger_care import compact, export, supersede
from carbonlens.domain.run import Run
from carbonlens.ledger.export import COLUMNS
from carbonlens.ledger.store import Ledger
from tests.ledger.test_compaction import fill, runs_over
from tests.ledger.test_store import make_run


def rows(folder, **more):
    text = export(format_="csv", ledger=folder, **more).content.decode()
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture
def folder(tmp_path):
    runs = [
        make_run("a", "0.100000", study="s", step="base", unit="query", tags={"k": 'x,"y"\n=z'}),
        make_run("b", None, study="s", step="b,c", unit="query"),
        make_run("c", "7", study="other", step="=1+1", unit="query"),
    ]
    fill(tmp_path / "ledger", runs)
    return tmp_path / "ledger"


def test_the_table_comes_back_by_import_with_the_same_figures(folder, tmp_path):
    file = tmp_path / "runs.csv"
    file.write_bytes(export(format_="csv", ledger=folder).content)
    result = import_files([file], ledger=tmp_path / "again")
    assert result.totals.runs == 3
    before = {r.run_id: r for r in Ledger(folder).view().runs}
    after = {r.run_id: r for r in Ledger(tmp_path / "again").view().runs}
    for name, run in before.items():
        again = after[name]
        assert (again.step, again.study, again.units, again.start_us) == (
            run.step,
            run.study,
            run.units,
            run.start_us,
        )
        assert again.energy[0].energy_j == run.energy[0].energy_j
        assert again.total_energy.low == pytest.approx(run.total_energy.low, nan_ok=True)


def test_unknown_is_empty_never_zero(folder):
    by_id = {r["run_id"]: r for r in rows(folder)}
    assert (by_id["b"]["energy_j"], by_id["b"]["energy_low_j"], by_id["b"]["energy_state"]) == (
        "",
        "",
        "unknown",
    )
    assert (by_id["a"]["energy_j"], by_id["c"]["energy_j"]) == ("0.100000", "7")
    assert by_id["a"]["lost_s"] == ""


def test_only_runs_that_count_are_exported(folder):
    edited = supersede("c", {"units": "9"}, ledger=folder)
    names = {r["run_id"] for r in rows(folder)}
    assert names == {"a", "b", edited.after.run_id}


def test_a_study_and_a_period_can_be_asked_for(folder, tmp_path):
    assert {r["run_id"] for r in rows(folder, study="s")} == {"a", "b"}
    fill(tmp_path / "dated", runs_over(60, 6))
    inside = {r["run_id"] for r in rows(tmp_path / "dated", period="2026-10")}
    assert inside == {r["run_id"] for r in rows(tmp_path / "dated") if r["start_utc"].startswith("2026-10")}
    assert 0 < len(inside) < 6


def test_parquet_holds_exact_decimals(folder, tmp_path):
    file = tmp_path / "runs.parquet"
    file.write_bytes(export(format_="parquet", ledger=folder).content)
    query = f"SELECT run_id, energy_j FROM '{file}' ORDER BY run_id"
    assert duckdb.sql(query).fetchall() == [("a", Decimal("0.1")), ("b", None), ("c", Decimal(7))]
    assert [c[0] for c in duckdb.sql(f"DESCRIBE SELECT * FROM '{file}'").fetchall()] == list(COLUMNS)


def test_json_holds_the_whole_records(folder):
    payload = json.loads(export(format_="json", ledger=folder).content)
    runs = [msgspec.convert(r, Run) for r in payload["runs"]]
    assert sorted(runs, key=lambda r: r.run_id) == sorted(Ledger(folder).view().runs, key=lambda r: r.run_id)


@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
def test_the_same_runs_give_the_same_bytes_however_they_lie(folder, format_):
    before = export(format_=format_, ledger=folder).content
    assert export(format_=format_, ledger=folder).content == before
    compact(ledger=folder)
    assert export(format_=format_, ledger=folder).content == before


def test_every_number_column_names_its_unit_or_is_a_count():
    counts = {"repeat", "units", "attempt", "rank", "quality", "quality_n", "cost"}
    for name, kind in COLUMNS.items():
        if kind != "VARCHAR" and name not in counts:
            assert name.rpartition("_")[2] in {"j", "s", "us", "kg", "bytes", "ratio"}, name
