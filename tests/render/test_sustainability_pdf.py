"""The quarter's report on paper: PDF/UA-1 and PDF/A-3 as far as checkers tell, and its pages as pictures."""

from __future__ import annotations

import json
import re
import subprocess
from itertools import pairwise

import pytest
from PIL import Image

from tests.render.pages import opened
from tests.render.test_golden_pages import (
    FOLDER,
    MOST_VISIBLE,
    UPDATE,
    page_of,
    pinned,
    visibly_different,
)
from tests.render.test_pdf_standards import elements, findings_of, tool

pytestmark = pytest.mark.slow

__all__ = ["pinned"]

PAGES = {"sustainability-statement": 1, "sustainability-drivers": 5}


@pytest.fixture(scope="module")
def file(company_report):
    return company_report.file("pdf")


@pytest.fixture(scope="module")
def document(file):
    return opened(file.read_bytes())


def test_outloud_finds_no_error(file):
    # Its guess about meaning takes tables of one row for torn apart (TBL-010), so conformance alone.
    command = [tool("outloud"), "--layer", "conformance", "--json", "-", str(file)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    errors = [f for f in findings_of(json.loads(ran.stdout)) if str(f.get("severity", "")).lower() == "error"]
    assert errors == []
    assert ran.returncode == 0


def test_pdfua_finds_nothing(file):
    ran = subprocess.run([tool("pdfua"), "check", str(file)], capture_output=True, text=True, check=False)
    assert "errors=0 warnings=0" in ran.stdout, ran.stdout
    assert ran.returncode == 0


def test_the_syntax_is_sound_and_both_standards_are_marked(document):
    assert document.check_pdf_syntax() == []
    packet = document.Root.Metadata.read_bytes()
    for mark in (b'pdfaid:part="3"', b'pdfaid:conformance="A"', b'pdfuaid:part="1"'):
        assert mark in packet


def test_every_header_cell_says_what_it_heads_and_every_picture_what_it_shows(document):
    found = list(elements(document.Root.StructTreeRoot.K))
    heads = [e for e in found if e.S == "/TH"]
    assert {str(e.A.Scope) for e in heads} == {"/Column", "/Row"}
    pictures = [e for e in found if e.S == "/Figure"]
    assert len(pictures) >= 8
    assert all(re.search(r"\w", str(e.Alt)) for e in pictures)
    levels = [int(str(e.S)[2]) for e in found if re.fullmatch(r"/H[1-6]", str(e.S))]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_no_page_begins_with_what_belongs_to_the_one_before_or_ends_with_a_head(file):
    """Neither a note nor a caption stands alone: as lines of text, page by page."""
    import pypdf

    pages = [p.extract_text().splitlines() for p in pypdf.PdfReader(file).pages]
    for lines in pages[1:]:
        assert not re.match(r"(Rounded so|A total is by|Hash:|And \d+ more|Runs that count no)", lines[0])
    for lines in pages:
        # The page's foot is its last text.
        body = [x for x in lines if "carbonlens · page" not in x and "example: invented" not in x]
        assert not re.match(r"(Findings|Factors|Standards|Restated figures|Evidence index)", body[-1])


@pytest.mark.parametrize("name", PAGES)
def test_golden_page(name, pinned, file):
    page, golden = page_of(file.read_bytes(), PAGES[name]), FOLDER / f"{name}.png"
    if UPDATE:
        page.save(golden, optimize=True)
    assert visibly_different(page, Image.open(golden).convert("RGB")) <= MOST_VISIBLE
