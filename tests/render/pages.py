"""Rendered pages that several tests read; each is made once."""

from __future__ import annotations

import io
from functools import cache

import pikepdf

from carbonlens.render.html import render_html
from carbonlens.render.pdf import render_pdf
from carbonlens.reporting.content import ReportView
from carbonlens.reporting.view import build_view
from tests.reporting.comparisons import comparison, hostile_comparison
from tests.reporting.golden import cases


@cache
def view(name: str) -> ReportView:
    """The view of a case: one of the golden ones, or ``hostile``."""
    if name == "hostile":
        return build_view(hostile_comparison())
    return build_view(comparison() if name == "demo" else cases()[name])


@cache
def html(name: str) -> str:
    """The whole report of a case as HTML."""
    return render_html(view(name))


@cache
def pdf(name: str, *sections: str) -> bytes:
    """The report of a case as PDF."""
    return render_pdf(view(name), sections)


def opened(content: bytes) -> pikepdf.Pdf:
    """Open a PDF from memory."""
    return pikepdf.open(io.BytesIO(content))
