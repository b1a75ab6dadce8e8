"""The report of a quarter: its golden text, its formats, and that it is made again and verified."""

from __future__ import annotations

import io
import json
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import msgspec
import pytest

from carbonlens.app.sustainability import gather
from carbonlens.app.sustainability_report import Material, report_sustainability
from carbonlens.app.verify import verify
from carbonlens.errors import SelectionError, UsageError, VerificationError
from carbonlens.render.attachments import of_pdf
from carbonlens.render.blocks import render_document_html
from carbonlens.reporting.sustainability import build_sustainability
from tests.app import company_case, quarters_case

GOLDEN = Path(__file__).parents[1] / "reporting" / "golden_texts" / "sustainability.md"
FORMATS = ("html", "pdf", "xlsx", "md", "json")


@pytest.fixture(scope="module")
def company(company_report):
    return company_report.places


@pytest.fixture(scope="module")
def made(company_report) -> Material:
    return company_report.material


@pytest.fixture(scope="module")
def files(company_report):
    return {f"r.{name}": company_report.file(name) for name in FORMATS}


@pytest.fixture(scope="module")
def quarters(tmp_path_factory):
    return quarters_case.given(quarters_case.write(tmp_path_factory.mktemp("quarters")))


@pytest.mark.slow
def test_golden_text(files):
    said = files["r.md"].read_text("utf-8")
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(said, "utf-8")
    assert said == GOLDEN.read_text("utf-8")


@pytest.mark.slow
def test_every_total_is_by_a_named_method(made):
    for section in made.view.document.sections:
        for block in section.tables:
            text = " ".join(p.text for row in block.table.rows for p in row.head)
            assert ("location-based" in text) == ("market-based" in text), block.name


@pytest.mark.slow
def test_the_totals_are_those_of_the_statement(made, company):
    from carbonlens.app.statement import make_statement

    statement = make_statement("2026Q3", now_us=company_case.NOW_US, **company).statement
    known = {f.figure_id: f.estimate for f in statement.figures}
    shared = [n for n in made.view.figures if n in known]
    assert "statement.2026Q3.scope_2.location_kg" in shared
    assert "statement.2026Q3.scope_2.market_kg" in shared
    for name in shared:
        assert made.view.figures[name].figure.estimate == known[name], name


@pytest.mark.slow
def test_each_page_says_draft_and_example(files):
    import pypdf

    pages = pypdf.PdfReader(io.BytesIO(files["r.pdf"].read_bytes())).pages
    assert 6 <= len(pages) <= 16
    for page in pages:
        text = page.extract_text()
        assert "DRAFT" in text
        assert "example: invented figures" in text


@pytest.mark.slow
def test_it_carries_its_runs_factors_and_itself(files, made):
    held = of_pdf(files["r.pdf"].read_bytes(), "r.pdf")
    assert {"report.json", "factors.csv", "runs.csv"} <= set(held)
    assert len(held["runs.csv"].splitlines()) == made.gathered.given.runs + 1
    assert json.loads(held["report.json"])["figures"].keys() == made.view.figures.keys()


@pytest.mark.slow
def test_the_workbook_has_every_table_and_figure(files, made):
    names = zipfile.ZipFile(files["r.xlsx"]).read("xl/workbook.xml").decode()
    for section in made.view.document.sections:
        for block in section.tables:
            assert f'name="{block.name}"' in names


@pytest.mark.slow
def test_the_same_bytes_with_another_hash_seed(made, tmp_path):
    (tmp_path / "view.pickle").write_bytes(pickle.dumps(made.gathered.given))
    code = (
        "import pickle, sys, hashlib, pathlib\n"
        "from carbonlens.reporting.sustainability import build_sustainability as build\n"
        "from carbonlens.render.blocks import render_document_html as html, render_document_pdf as pdf\n"
        "from carbonlens.render.xlsx import render_xlsx as xlsx\n"
        "view = build(pickle.loads(pathlib.Path(sys.argv[1]).read_bytes()))\n"
        "made = (html(view).encode(), pdf(view), xlsx(view.document, view.figures))\n"
        "print([hashlib.sha256(m).hexdigest() for m in made])\n"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "view.pickle")],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


@pytest.mark.slow
def test_it_is_verified_against_its_ledger(files, company):
    found = verify(files["r.pdf"], ledger=company["ledger"])
    assert found.mismatches == ()
    assert found.rebuilt == "same"


@pytest.mark.slow
def test_a_figure_that_was_altered_is_found(files, company, tmp_path):
    shape = json.loads(files["r.json"].read_text("utf-8"))
    shape["figures"]["statement.2026Q3.scope_2.market_kg"]["value"] *= 0.9
    altered = tmp_path / "altered.json"
    altered.write_text(json.dumps(shape), "utf-8")
    found = verify(altered, ledger=company["ledger"])
    assert not found.holds
    assert "statement.2026Q3.scope_2.market_kg" in {m.figure_id for m in found.mismatches}


@pytest.mark.slow
def test_a_page_that_disagrees_with_its_figures_is_refused(made):
    name = "statement.2026Q3.scope_2.market_kg"
    figures = dict(made.view.figures)
    figures[name] = msgspec.structs.replace(figures[name], text="1 t")
    with pytest.raises(VerificationError):
        render_document_html(msgspec.structs.replace(made.view, figures=figures))


@pytest.mark.slow
def test_one_quarter_without_inventory_or_factors_says_what_is_unknown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = company_case.make(tmp_path / "c", begin="2026-09-28")
    found = gather("2026Q3", ledger=given["ledger"], now_us=company_case.NOW_US)
    view = build_sustainability(found.given)
    page = render_document_html(view)
    assert "no runs in 2026Q2" in page
    assert "No register:" in page
    assert "No bridge:" in page
    location = view.figures["statement.2026Q3.every_scope.location_kg"]
    assert location.figure.estimate.state == "unknown"
    assert location.text == "unknown"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("period", "error", "words"),
    [
        ("2026-07", UsageError, "is no quarter"),
        ("2026", UsageError, "is no quarter"),
        ("soon", UsageError, "is no period"),
        ("2024Q1", SelectionError, "no runs in 2024Q1"),
    ],
)
def test_a_period_without_a_report_is_refused(period, error, words, quarters):
    with pytest.raises(error, match=words):
        gather(period, **quarters)


@pytest.mark.parametrize("formats", [(), ("docx",), ("html", "xls")])
def test_an_unknown_format_is_refused_before_any_work(formats, tmp_path):
    with pytest.raises(UsageError, match="no such format"):
        report_sustainability("2026Q3", formats=formats, out_dir=tmp_path / "out", ledger=tmp_path)
    assert not (tmp_path / "out").exists()


def test_a_ledger_that_is_not_there_is_said(tmp_path):
    with pytest.raises(SelectionError, match="not there"):
        report_sustainability("2026Q3", formats=("json",), out_dir=tmp_path, ledger=tmp_path / "none")
