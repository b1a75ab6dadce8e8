"""Scratch files where the system has no folder for them."""

import tempfile

import pytest

from carbonlens.errors import UnwritableError
from carbonlens.ledger.scratch import Scratch, unwritable


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """No candidate can be written, and none is remembered from before."""
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(tmp_path / "gone")])


def test_without_a_folder_for_temporary_files_that_is_said(nowhere):
    with pytest.raises(UnwritableError, match="TMPDIR") as refused:
        Scratch().file("x")
    assert refused.value.where == "TMPDIR"


def test_the_place_is_the_folder_where_there_is_one(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert unwritable(None, "full").where == str(tmp_path)
    assert unwritable(tmp_path / "a" / "b", "full").where == str(tmp_path / "a")
