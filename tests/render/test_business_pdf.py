"""The money on paper: on a page of its own, behind the business case and before the tables."""

import io

import pytest

from carbonlens.compare.business import business_case
from carbonlens.render.pdf import render_pdf
from carbonlens.reporting.view import build_view
from tests.compare.business_cases import measured
from tests.compare.study_runs import demo_comparison


@pytest.mark.slow
def test_the_case_has_the_second_page_and_leaves_the_first_as_it_is():
    pypdf = pytest.importorskip("pypdf", reason="pypdf is not installed")
    comparison = demo_comparison()
    view = build_view(comparison, business_case(comparison, measured()))
    pages = [p.extract_text() for p in pypdf.PdfReader(io.BytesIO(render_pdf(view))).pages]
    assert "Decision asked" in pages[0]
    assert "What NPV hangs on" in pages[1]
    npv = view.figures["business.npv.expected"].text
    assert npv.replace("\u202f", "").replace("\u00a0", "") in "".join(pages[1].split())
    assert "Decision asked" not in pages[1]
    alone = [
        p.extract_text() for p in pypdf.PdfReader(io.BytesIO(render_pdf(view, ("business-case",)))).pages
    ]
    assert len(alone) == 2
