"""Settled rows: the answers of the view itself, of questions whose SQL is made once for every period."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from carbonlens.errors import RecordError, UnwritableError
from carbonlens.ledger import queries, settling
from carbonlens.ledger.accounts import account
from carbonlens.ledger.amounts import ENERGY
from carbonlens.ledger.opening import one_opening, open_ledger
from carbonlens.ledger.settling import ask, derive, settle
from carbonlens.ledger.store import Ledger
from tests.ledger.test_queries import runs

MONTHS = ("2026-03", "2026-04")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("settled") / "ledger"
    Ledger(folder).add_batch(runs(60), source_sha256="0" * 64, importer="test-1")
    return folder


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch):
    monkeypatch.setattr(settling, "_kept", type(settling._kept)())


def by_team(parts):
    return queries.totals(parts, ["team"], [ENERGY])


def test_settled_rows_answer_as_the_view_does_with_a_text_made_for_another_period(folder):
    made = []

    def build(parts):
        made.append(parts)
        return by_team(parts)

    for month in MONTHS:
        with Ledger(folder).query(month) as view:
            expected = view.rows(by_team(view.parts))
            assert expected
            assert ask(settle(view, view.parts), "by team", build) == expected
    assert len(made) == 1


def test_questions_of_rows_with_other_columns_are_made_anew(folder):
    with Ledger(folder).query() as view:
        for columns in (["team", "energy_j"], ["team", "energy_j", "zone"]):
            settled = settle(view, view.parts.select(*columns))
            rows = ask(settled, "all", lambda parts: parts)
            assert list(rows[0]) == columns


def test_kept_questions_are_bounded(folder, monkeypatch):
    monkeypatch.setattr(settling, "_MOST", 2)
    with Ledger(folder).query() as view:
        settled = settle(view, view.parts)
        for name in ("team", "zone", "unit"):
            ask(settled, name, lambda parts, name=name: parts.select(name).unique())
        assert len(settling._kept) == 2
        # The one that went is made again.
        assert ask(settled, "team", lambda parts: parts.select("team").unique())


def test_files_go_with_the_view(folder):
    with Ledger(folder).query() as view:
        file = settle(view, view.parts).file
        assert file.is_file()
    assert not file.parent.exists()


def test_a_month_that_went_away_is_named(folder, tmp_path):
    import shutil

    shutil.copytree(folder, tmp_path / "ledger")
    with Ledger(tmp_path / "ledger").query() as view:
        (gone,) = (tmp_path / "ledger" / "imports").glob("*.parquet")
        gone.unlink()
        with pytest.raises(RecordError, match="went away"):
            settle(view, view.parts)


def test_within_one_opening_a_period_is_opened_once_and_closed_at_the_end(folder):
    with one_opening(folder):
        with open_ledger(folder) as first, first.query(MONTHS[0]) as view:
            held = view
        with one_opening(folder), open_ledger(folder) as second, second.query(MONTHS[0]) as view:
            assert view is held
        # Still open: who lent it closes it.
        assert held.rows(by_team(held.parts))
        with second.query(MONTHS[1]) as other:
            assert other is not held
    with pytest.raises(Exception, match="closed"):
        held.rows(by_team(held.parts))
    with open_ledger(folder) as after:
        assert type(after) is Ledger


def test_another_ledger_is_not_taken_for_the_one_that_is_open(folder, tmp_path):
    with one_opening(folder), open_ledger(tmp_path) as other:
        assert other.path == tmp_path
        assert not other.holds("run-1")


def test_a_full_disk_for_temporary_files_is_named(folder, tmp_path, monkeypatch):
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root may mount a small file system")
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    try:
        (place / "ballast").write_bytes(b"x" * (shutil.disk_usage(place).free - 4096))
        with Ledger(folder).query() as view, pytest.raises(UnwritableError, match="TMPDIR") as caught:
            settle(view, view.parts)
        assert str(place) in str(caught.value)
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_without_a_folder_for_temporary_files_it_is_said(folder, tmp_path, monkeypatch):
    with Ledger(folder).query() as view:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
        with pytest.raises(UnwritableError, match="TMPDIR"):
            settle(view, view.parts)


def test_questions_of_many_threads_are_kept_and_dropped_at_once(folder, monkeypatch):
    monkeypatch.setattr(settling, "_MOST", 1)

    def asked(number):
        with Ledger(folder).query() as view:
            settled = settle(view, view.parts.select("team", "energy_j"))
            return [len(ask(settled, (number, i % 2), lambda parts: parts)) for i in range(6)]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(asked, range(4)))
    assert len({n for counts in found for n in counts}) == 1


def test_a_query_that_does_not_name_its_file_is_not_kept_for_others(folder, monkeypatch):
    monkeypatch.setattr(settling.Settled, "source", property(lambda s: f"read_parquet(['{s.file}'])"))
    for month in MONTHS:
        with Ledger(folder).query(month) as view:
            expected = view.rows(view.parts.select("run_id").sort("run_id"))
            rows = settle(view, view.parts.select("run_id"))
            assert ask(rows, "ids", lambda parts: parts.sort("run_id")) == expected


def test_an_account_leaves_no_rows_behind(folder):
    with Ledger(folder).query() as view:
        account(view, ["team"])
        assert list(Path(view.scratch.file("x").parent).iterdir()) == []


def test_rows_made_of_settled_ones_answer_as_those_of_the_view_do(folder):
    """A label in the place of another: a question of it is the SQL of the first, in every period."""
    import narwhals as nw

    made, known = [], nw.col("energy_j") >= 0

    def of(name):
        return lambda parts: parts.with_columns(team=nw.col(name))

    def build(parts):
        made.append(parts)
        return by_team(parts)

    for month in MONTHS:
        with Ledger(folder).query(month) as view:
            settled = settle(view, view.parts)
            for name in ("team", "unit"):
                expected = view.rows(by_team(of(name)(view.parts)))
                assert expected
                assert ask(derive(settled, name, of(name)), "by team", build) == expected
            twice = derive(derive(settled, "unit", of("unit")), "known", lambda parts: parts.filter(known))
            assert ask(twice, "by team", build) == view.rows(by_team(of("unit")(view.parts.filter(known))))
    assert len(made) == 1


def test_a_table_without_rows_has_its_columns(folder):
    columns = {"name": "VARCHAR", "value": "DECIMAL(38,6)"}
    with Ledger(folder).query() as view:
        for rows in ([], [{"name": "a", "value": "1.5"}], []):
            frame = view.table(columns, iter(rows))
            assert [str(kind) for kind in frame.to_native().types] == ["VARCHAR", "DECIMAL(38,6)"]
            assert len(view.rows(frame)) == len(rows)
