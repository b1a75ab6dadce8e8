"""PDF standards: PDF/UA-1 and PDF/A-3a as far as the checkers that can be installed tell.

None of them proves PDF/A; veraPDF comes as no Python package. What they do check gives 0 errors.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pikepdf
import pytest

from carbonlens.render.attachments import Enclosed, of_pdf
from carbonlens.render.pdf import render_pdf
from tests.render.pages import opened, pdf, view

BOTH = ("business-case", "engineering")
SOME = ["demo", "hostile", "lattice", "unknown_factors"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("standards")


def file_of(name, folder):
    path = folder / f"{name}.pdf"
    path.write_bytes(pdf(name, *BOTH))
    return path


def tool(name):
    found = Path(sys.executable).with_name(name)
    if not found.exists():
        pytest.skip(f"{name} is not installed: pip install --group dev")
    return str(found)


WHOLLY = ["demo", "hostile"]
"""Without a table of one row, whose heads outloud's guess about meaning takes for torn apart (TBL-010)."""


@pytest.mark.slow
@pytest.mark.parametrize("name", SOME)
def test_outloud_finds_no_error(name, folder):
    layer = [] if name in WHOLLY else ["--layer", "conformance"]
    ran = subprocess.run(
        [tool("outloud"), *layer, "--json", "-", str(file_of(name, folder))],
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads(ran.stdout)
    errors = [f for f in findings_of(report) if str(f.get("severity", "")).lower() == "error"]
    assert errors == []
    assert ran.returncode == 0


def findings_of(node):
    """Every finding of a checker's report, wherever it stands."""
    if isinstance(node, dict):
        if "severity" in node:
            yield node
        for value in node.values():
            yield from findings_of(value)
    elif isinstance(node, list):
        for value in node:
            yield from findings_of(value)


@pytest.mark.slow
@pytest.mark.parametrize("name", SOME)
def test_pdfua_finds_nothing(name, folder):
    ran = subprocess.run(
        [tool("pdfua"), "check", str(file_of(name, folder))], capture_output=True, text=True, check=False
    )
    assert "errors=0 warnings=0" in ran.stdout, ran.stdout
    assert ran.returncode == 0


@pytest.mark.parametrize("name", ["demo", "hostile"])
def test_the_syntax_is_sound(name):
    assert opened(pdf(name, *BOTH)).check_pdf_syntax() == []


def test_one_block_of_metadata_marks_both_standards():
    document = opened(pdf("demo", *BOTH))
    packet = document.Root.Metadata.read_bytes()
    assert packet.count(b"<rdf:RDF") == packet.count(b"</rdf:RDF>") == 1
    assert b'pdfaid:part="3"' in packet
    assert b'pdfaid:conformance="A"' in packet
    assert b'pdfuaid:part="1"' in packet
    assert b"pdfaExtension:schemas" in packet


def elements(node, seen=None):
    """Structure elements below a node."""
    if isinstance(node, pikepdf.Array):
        for kid in node:
            yield from elements(kid)
    elif isinstance(node, pikepdf.Dictionary) and "/S" in node:
        yield node
        if "/K" in node:
            yield from elements(node.K)


@pytest.mark.parametrize("name", ["demo", "lattice"])
def test_every_header_cell_says_what_it_heads_and_every_picture_what_it_shows(name):
    document = opened(pdf(name, *BOTH))
    found = list(elements(document.Root.StructTreeRoot.K))
    heads = [e for e in found if e.S == "/TH"]
    assert heads
    assert {str(e.A.Scope) for e in heads} == {"/Column", "/Row"}
    pictures = [e for e in found if e.S == "/Figure"]
    assert pictures
    assert all(re.search(r"\w", str(e.Alt)) for e in pictures)


def test_files_are_enclosed_with_what_they_are_to_the_report():
    files = (
        Enclosed(name="runs.csv", content=b"run_id\n", description="runs"),
        Enclosed(name="report.json", content=b'{"a": 1}', description="data", relationship="Source"),
    )
    made = render_pdf(view("demo"), ("business-case",), enclosed=files, made_us=1_780_000_000_000_000)
    assert made == render_pdf(view("demo"), ("business-case",), enclosed=files, made_us=1_780_000_000_000_000)
    assert of_pdf(made, "x") == {"report.json": b'{"a": 1}', "runs.csv": b"run_id\n"}
    document = opened(made)
    # Whatever the order in which they are given: names of files lie in a sorted tree.
    assert document.check_pdf_syntax() == []
    specs = {str(f.UF): str(f.AFRelationship) for f in document.Root.AF}
    assert specs == {"report.json": "/Source", "runs.csv": "/Data"}
    assert msgspec.json.decode(of_pdf(made, "x")["report.json"]) == {"a": 1}
