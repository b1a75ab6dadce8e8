"""Any name in a quarter's report is text in every format, and none makes a page that takes minutes."""

from __future__ import annotations

import io
import re
import zipfile

import msgspec
import pytest
from lxml import etree, html

from carbonlens.domain.drivers_savings import Register, SavingFound
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.finding import Finding
from carbonlens.domain.initiative import Initiative
from carbonlens.render.blocks import render_document_html, render_document_pdf
from carbonlens.render.markdown import render_markdown
from carbonlens.render.xlsx import render_xlsx
from carbonlens.reporting.names import without_halves
from tests.accounting.test_periods_compared import WHOLE, of_parts
from tests.render.pages import opened
from tests.render.test_hostile_names import NASTY, check_text
from tests.reporting import sustainability_case as case

LONGEST_LINE = 420
WORST = (*map(without_halves, NASTY), "L" * 10_000, "\u202e\x00🔥" + "A" * 10_000)
"""Halves of surrogate pairs are in none: no ledger can hold one."""

KWH = Estimate(value=10.0, unit="kWh")


def hostile(name):
    """A quarter in which everything that a user names has this name."""
    whole = msgspec.structs.replace(of_parts(case.QUARTER, WHOLE), entity=name)
    group = msgspec.structs.replace(whole.total, key=f"by.team.{name}", kind="recorded", site_id=name)
    found = SavingFound(
        initiative=Initiative(initiative_id=name, title=name, start="2026-01-01"),
        period=case.QUARTER,
        adjusted_kwh=KWH,
        measured_kwh=KWH,
        savings={"energy_kwh": KWH},
        claimed={"energy_kwh": KWH},
        verdict="confirmed",
        reason=name,
    )
    return case.view(
        {case.QUARTER: whole},
        splits={"team": msgspec.structs.replace(whole, groups=(group,))},
        findings=(Finding(code="CL401", severity="warning", message=name, mend=name, subject=name),),
        register=Register(period=case.QUARTER, by=name, found=(found,)),
    )


@pytest.mark.parametrize("name", WORST, ids=range(len(WORST)))
def test_a_page_holds_text_alone_in_lines_that_can_be_laid_out(name):
    page = html.fromstring(render_document_html(hostile(name)))
    plain = html.fromstring(render_document_html(hostile("plain")))
    assert {e.tag for e in page.iter()} == {e.tag for e in plain.iter()}
    assert not [a for e in page.iter() for a in e.attrib if str(a).startswith("on")]
    for element in (e for e in page.iter() if e.tag not in ("script", "style")):
        for text in (element.text or "", element.tail or ""):
            check_text(text)
            assert max(map(len, text.split("\n"))) <= LONGEST_LINE


@pytest.mark.parametrize("name", WORST, ids=range(len(WORST)))
def test_tables_and_markdown_hold_text_alone(name):
    view = hostile(name)
    file = zipfile.ZipFile(io.BytesIO(render_xlsx(view.document, view.figures)))
    for part in (p for p in file.namelist() if p.endswith((".xml", ".rels"))):
        tree = etree.fromstring(file.read(part))
        assert not [e for e in tree.iter() if str(e.tag).endswith(("}f", "}hyperlink"))]
    text = render_markdown(view.document)
    check_text(text)
    assert not re.search(r"(?<!\\)<(script|img|svg|i|b|style)\b", text, re.IGNORECASE)
    assert not re.search(r"(?<!\\)\]\((?:javascript|http)", text)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["L" * 10_000, "\x00\x07\x1b]0;t\x07\u202e"])
def test_the_worst_ids_make_a_pdf_that_does_nothing(name):
    pdf = opened(render_document_pdf(hostile(name)))
    assert not {"/OpenAction", "/AA", "/AcroForm"} & set(pdf.Root.keys())
    assert all("/Annots" not in page for page in pdf.pages)
    assert len(pdf.pages) < 20
