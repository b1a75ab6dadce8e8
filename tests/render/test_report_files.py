"""The use case: files by format, refusals before any work."""

from __future__ import annotations

import sys

import pytest

from carbonlens.app.report import report
from carbonlens.errors import MissingExtraError, UnwritableError, UsageError
from carbonlens.render.attachments import Enclosed
from carbonlens.render.pdf import render_pdf
from tests.render import pages
from tests.reporting.comparisons import comparison


def test_files_are_named_after_the_only_section(tmp_path):
    files = report(comparison(), sections=["business-case"], out_dir=tmp_path / "new" / "folder")
    assert {f: p.name for f, p in files.items()} == {"html": "business-case.html", "pdf": "business-case.pdf"}
    assert files["pdf"].read_bytes().startswith(b"%PDF-")
    assert files["html"].read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert sorted(p.name for p in files["pdf"].parent.iterdir()) == [
        "business-case.html",
        "business-case.pdf",
    ]


@pytest.mark.skipif(sys.platform == "darwin", reason="names of files there are UTF-8")
def test_a_folder_whose_name_is_no_utf8_takes_the_same_pages(tmp_path, monkeypatch):
    view = pages.view("demo")
    enclosed = (Enclosed(name="runs.csv", content=b"1", description="runs"),)
    usual = render_pdf(view, ("business-case",), enclosed=enclosed)
    folder = tmp_path / "caf\udce9"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert render_pdf(view, ("business-case",), enclosed=enclosed) == usual
    files = report(comparison(), sections=["business-case"], formats=["html", "md"], out_dir=folder / "out")
    assert all(file.stat().st_size for file in files.values())


def test_a_whole_report_is_called_report(tmp_path):
    assert report(comparison(), formats=["html"], out_dir=tmp_path) == {"html": tmp_path / "report.html"}
    named = report(comparison(), formats=["html"], out_dir=tmp_path, name="digits")
    assert named == {"html": tmp_path / "digits.html"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"sections": ["quarterly"]},
        {"sections": []},
        {"formats": ["docx"]},
        {"name": "../outside"},
        {"name": ""},
    ],
)
def test_a_wrong_request_is_refused_and_nothing_written(tmp_path, wrong):
    with pytest.raises(UsageError):
        report(comparison(), out_dir=tmp_path / "out", **wrong)
    assert not (tmp_path / "out").exists()


def test_a_report_that_is_unknown_is_refused_with_all_that_are(tmp_path):
    with pytest.raises(UsageError, match="'quarterly'") as refused:
        report(comparison(), out_dir=tmp_path, sections=["quarterly"])
    assert refused.value.mend == "known: business-case, engineering, sustainability"
    with pytest.raises(UsageError, match="the report of a quarter") as refused:
        report(comparison(), out_dir=tmp_path, sections=["engineering", "sustainability"])
    assert "report_sustainability" in refused.value.mend


def test_an_unwritable_place_is_refused_before_the_work(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UnwritableError, match="file"):
        # No comparison at all: the place is looked at first.
        report(None, out_dir=tmp_path / "file")


@pytest.mark.parametrize("package", ["jinja2", "vl_convert", "weasyprint"])
def test_a_missing_extra_is_named(tmp_path, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'carbonlens\[report\]'") as refused:
        report(comparison(), sections=["business-case"], out_dir=tmp_path)
    assert refused.value.package == package
    assert refused.value.exit_code == 3
    assert list(tmp_path.iterdir()) == []
