"""Golden structure: what stands on a page in which order, for HTML and for the tags of the PDF."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from lxml import html as lxml_html

from tests.render.pages import html, opened, pdf

FOLDER = Path(__file__).parent / "golden_structure"
CASES = ("demo", "unknown_factors", "no_baseline")
_TOLD = {"h1", "h2", "h3", "table", "figure", "ul", "p"}


def outline(page: str) -> Iterator[str]:
    """Headings, tables, charts, lists and notes of a page, indented by section."""
    body = lxml_html.document_fromstring(page).find(".//main")
    for element in body.iter():
        if element.tag not in _TOLD or any(
            a.tag in ("svg", "table", "figure", "ul") for a in element.iterancestors()
        ):
            continue
        depth = sum(a.tag == "section" for a in element.iterancestors())
        yield "  " * depth + said(element)


def said(element) -> str:
    """One line about an element."""
    if element.tag == "table":
        rows, columns = len(element.findall("tbody/tr")), len(element.findall("thead/tr/th"))
        return f"table {columns} x {rows}: {text(element.find('caption'))}"
    if element.tag == "figure":
        drawings = element.findall(".//svg")
        return f"figure, {len(drawings)} drawings: {text(element.find('figcaption'))}"
    if element.tag == "ul":
        return f"list of {len(element)}" if element.get("class") != "index" else "index of figures"
    if element.tag == "p":
        return f"{element.get('class') or 'paragraph'}"
    return f"{element.tag} {text(element)}"


def text(element) -> str:
    """Text with plain spaces."""
    return " ".join(element.text_content().split())


def tags(content: bytes) -> Iterator[str]:
    """How many elements of each kind the PDF's structure tree has."""
    counts: dict[str, int] = {}
    with opened(content) as document:
        for held in document.objects:
            if hasattr(held, "get") and str(held.get("/Type", "")) == "/StructElem":
                kind = str(held["/S"])
                counts[kind] = counts.get(kind, 0) + 1
    # Rows, cells and inline parts follow the tables, and how many there are the layout.
    for kind in ("/Document", "/H1", "/H2", "/H3", "/Figure", "/Table", "/Caption", "/L"):
        yield f"{kind[1:]} {counts.get(kind, 0)}"


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_golden_structure(name):
    lines = [*outline(html(name)), "", "PDF", *tags(pdf(name, "business-case", "engineering"))]
    found, file = "\n".join(lines) + "\n", FOLDER / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(found, encoding="utf-8")
    assert found == file.read_text(encoding="utf-8")
