"""PDF: the same page on paper, tagged (PDF/UA-1) and with the same bytes every time."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from carbonlens.render.charts import draw
from carbonlens.render.environment import need
from carbonlens.render.html import SECTIONS, compose
from carbonlens.reporting.content import ReportView

if TYPE_CHECKING:
    from weasyprint import Document
    from weasyprint.urls import URLFetcher

_DENSITIES = ("", "dense", "tight")
"""How closely text is set, tried in turn until the business case fits its page."""


def render_pdf(view: ReportView, sections: Sequence[str] = SECTIONS) -> bytes:
    """Return the report as PDF; the business case on exactly one page.

    Args:
        view: The report.
        sections: Which sections, of ``business-case`` and ``engineering``.

    Raises:
        MissingExtraError: If the ``report`` extra is not installed.
        VerificationError: If a printed number is not that of its figure.
    """
    chosen = tuple(s for s in SECTIONS if s in sections)
    charts = draw(view, sections=chosen, narrow=False)
    for density in _DENSITIES:
        page = compose(view, chosen, medium="paper", charts=charts, density=density)
        document = need("weasyprint").HTML(string=page, url_fetcher=_fetcher()).render()
        if "business-case" not in chosen or _first_page_holds_business_case(document):
            break
    identifier = hashlib.sha256(page.encode("utf-8")).digest()[:16]
    content: bytes = document.write_pdf(pdf_variant="pdf/ua-1", pdf_identifier=identifier)
    return content


def _first_page_holds_business_case(document: Document) -> bool:
    starts = [number for number, page in enumerate(document.pages) if "engineering" in page.anchors]
    return (starts[0] if starts else len(document.pages)) == 1


@cache
def _fetcher() -> URLFetcher:
    """Return a fetcher that reads what stands in the page itself, and nothing else."""
    fetcher: URLFetcher = need("weasyprint.urls").URLFetcher(allowed_protocols=["data"])
    return fetcher
