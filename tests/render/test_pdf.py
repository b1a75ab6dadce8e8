"""PDF: one page for the manager, our fonts, tagged, and the same bytes every time."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pikepdf
import pytest

from carbonlens.render.html import render_html
from tests.render.pages import opened, pdf, view

ONE_PAGE = ["demo", "rejected", "unknown_factors", "long_ladder", "hostile"]
SLOW = [
    "demo_from_runs",
    "undetermined",
    "failed",
    "one_ungated",
    "no_baseline",
    "lattice",
    "lattice_one_round",
]
BUSINESS_CASE = ("business-case",)
BOTH = ("business-case", "engineering")

_HASH = """
import hashlib
from carbonlens.render.html import render_html
from carbonlens.render.pdf import render_pdf
from carbonlens.render.html import render_html
from tests.render.pages import view
print(hashlib.sha256(render_html(view("demo"), {sections}).encode()).hexdigest())
print(hashlib.sha256(render_pdf(view("demo"), {sections})).hexdigest())
"""


@pytest.mark.parametrize("name", [*ONE_PAGE, *(pytest.param(n, marks=pytest.mark.slow) for n in SLOW)])
def test_the_business_case_is_one_page(name):
    assert len(opened(pdf(name, *BUSINESS_CASE)).pages) == 1


def fonts(document):
    """Name and embedded font file of every font used on any page."""
    for page in document.pages:
        for font in page.Resources.get("/Font", {}).values():
            descendant = font.DescendantFonts[0] if "/DescendantFonts" in font else font
            descriptor = descendant.FontDescriptor
            yield str(descriptor.FontName), "/FontFile2" in descriptor or "/FontFile3" in descriptor


@pytest.mark.slow
def test_all_fonts_are_ours_and_embedded():
    found = set(fonts(opened(pdf("demo", *BOTH))))
    assert len(found) == 2
    assert all(embedded and "Carbonlens-Inter" in name for name, embedded in found)


def test_the_business_case_uses_our_fonts_only():
    found = set(fonts(opened(pdf("demo", *BUSINESS_CASE))))
    assert found
    assert all(embedded and "Carbonlens-Inter" in name for name, embedded in found)


def structure(node):
    """Every structure element below a node."""
    kids = node.get("/K", pikepdf.Array())
    for kid in kids if isinstance(kids, pikepdf.Array) else [kids]:
        if isinstance(kid, pikepdf.Dictionary) and "/S" in kid:
            yield kid
            yield from structure(kid)


def test_the_page_is_tagged_for_readers():
    document = opened(pdf("demo", *BUSINESS_CASE))
    root = document.Root
    assert str(root.Lang) == "en"
    assert bool(root.MarkInfo.Marked)
    assert bool(root.ViewerPreferences.DisplayDocTitle)
    with document.open_metadata() as metadata:
        assert metadata["dc:title"] == view("demo").title
        assert metadata["pdfuaid:part"] == "1"
    elements = list(structure(root.StructTreeRoot))
    kinds = {str(e.S) for e in elements}
    assert {"/H1", "/H2", "/Table", "/TH", "/TD", "/Figure", "/L"} <= kinds
    alts = [str(e.Alt) for e in elements if str(e.S) == "/Figure" and "/Alt" in e]
    assert view("demo").business_case.waterfall.alt in alts


def test_nothing_in_the_file_acts_or_points_outside():
    document = opened(pdf("hostile", *BUSINESS_CASE))
    assert not {"/OpenAction", "/AA", "/AcroForm"} & set(document.Root.keys())
    assert not list(document.attachments)
    assert all("/Annots" not in page for page in document.pages)


def other_process(seed, *sections):
    """Hashes of HTML and PDF as a process with another hash seed and no home makes them."""
    environment = {**os.environ, "PYTHONHASHSEED": seed, "HOME": "/nonexistent"}
    code = _HASH.format(sections=list(sections))
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
    )
    return result.stdout.split()


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def test_another_process_writes_the_same_bytes():
    page = render_html(view("demo"), BUSINESS_CASE).encode()
    assert other_process("1", *BUSINESS_CASE) == [sha256(page), sha256(pdf("demo", *BUSINESS_CASE))]


@pytest.mark.slow
def test_two_other_processes_write_the_same_bytes_of_the_whole_report():
    assert other_process("2", *BOTH) == other_process("3", *BOTH)


@pytest.mark.slow
def test_a_report_is_the_page_and_three_sheets_with_the_index():
    document = opened(pdf("demo", *BOTH))
    sizes = [(float(p.MediaBox[2]), float(p.MediaBox[3])) for p in document.pages]
    assert sizes[0] == pytest.approx((595.3, 841.9), abs=0.5)
    assert all(size == pytest.approx((841.9, 595.3), abs=0.5) for size in sizes[1:])
    assert 4 <= len(sizes) <= 6
