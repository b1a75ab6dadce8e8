"""Any name in any format is text: it neither acts, nor breaks the file, nor turns its reading."""

from __future__ import annotations

import io
import re
import unicodedata
import zipfile
from functools import cache

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree

from carbonlens.domain.finding import Finding
from carbonlens.render.html import render_html
from carbonlens.render.markdown import render_markdown
from carbonlens.render.pdf import render_pdf
from carbonlens.render.xlsx import render_xlsx
from carbonlens.reporting.document import document
from carbonlens.reporting.report_json import report_json
from carbonlens.reporting.view import build_view
from tests.render.pages import opened
from tests.reporting.comparisons import HOSTILE_NAMES, Arm, comparison

BOTH = ("business-case", "engineering")
NASTY = (
    *HOSTILE_NAMES,
    '=cmd|"/C calc"!A0',
    "@SUM(1+1)",
    "+1-1",
    "\t=1",
    "../../etc/passwd",
    "</style></script><svg onload=alert(1)>",
    "[x](javascript:alert(1)) ![y](http://x/y) <http://z>",
    "| a | b |\n|---|---|",
    "\x00\x07\x1b]0;t\x07\x7f\x85\u2028\ufffe\ud800",
    "\u202e\u2066\u200f\u061c\ufeff",
    "",
    " ",
)
NAMES = st.one_of(
    st.sampled_from(NASTY),
    st.text(max_size=60),
    st.builds(lambda a, b: a + b, st.sampled_from(NASTY), st.text(max_size=10)),
)
TURNS = re.compile("[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]")
CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def hostile(name):
    """A view in which everything that a user names has this name."""
    arms = (
        Arm(name=f"{name}-1", cpu_us=400, title=name),
        Arm(name=f"{name}-2", cpu_us=900, status="failed", error=name, title=name),
    )
    finding = Finding(code="CL401", severity="warning", message=name, mend=name, subject=name)
    made = comparison(arms, study=name or "x", title=name, unit=name or "x", findings=(finding,))
    return build_view(msgspec.structs.replace(made, environment=((name, name),))), made


def check_text(text):
    assert not CONTROLS.search(text)
    assert not TURNS.search(text)


def check_html(view):
    page = render_html(view, BOTH)
    body = page.split("</style>", 1)[1]
    check_text(body)
    tags = {tag.lower() for tag in re.findall(r"<([a-zA-Z]+)", body)}
    assert tags <= known_tags()
    assert body.count("<script>") == body.count("</script>") == 1
    assert not re.search(r"<[^>]*\son\w+=", body)


@cache
def known_tags():
    """Elements of a page with a plain name."""
    page = render_html(hostile("plain")[0], BOTH)
    return frozenset(tag.lower() for tag in re.findall(r"<([a-zA-Z]+)", page.split("</style>", 1)[1]))


def check_xlsx(view):
    file = zipfile.ZipFile(io.BytesIO(render_xlsx(document(view, BOTH), view.figures)))
    for part in file.namelist():
        if part.endswith((".xml", ".rels")):
            tree = etree.fromstring(file.read(part))
            assert not [e for e in tree.iter() if str(e.tag).endswith(("}f", "}hyperlink"))]
    assert not any("external" in name.lower() for name in file.namelist())


def check_markdown(view):
    text = render_markdown(document(view, BOTH))
    check_text(text)
    assert not re.search(r"(?<!\\)<(script|img|svg|i|b|style)\b", text, re.IGNORECASE)
    assert not re.search(r"(?<!\\)\]\((?:javascript|http)", text)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(NAMES)
@pytest.mark.slow
def test_any_name_is_harmless_in_pages_tables_and_data(name):
    view, made = hostile(name)
    check_html(view)
    check_xlsx(view)
    check_markdown(view)
    shape = msgspec.json.encode(report_json(view, BOTH, comparison=made))
    assert msgspec.json.decode(shape)["figures"]


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", '=cmd|"/C calc"!A0', "\u202e\x00🔥" + "A" * 10_000]
)
def test_the_worst_names_are_harmless(name):
    view, _ = hostile(name)
    check_html(view)
    check_xlsx(view)
    check_markdown(view)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NASTY])
def test_the_worst_names_make_a_pdf_that_does_nothing(name):
    pdf = opened(render_pdf(hostile(name)[0], ("business-case",)))
    assert not {"/OpenAction", "/AA", "/AcroForm"} & set(pdf.Root.keys())
    assert all("/Annots" not in page for page in pdf.pages)
    title = str(pdf.docinfo.get("/Title", ""))
    assert not [c for c in title if unicodedata.category(c) in ("Cc", "Cs")]
