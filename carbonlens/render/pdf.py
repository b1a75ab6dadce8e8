"""PDF: the same page on paper, tagged (PDF/UA-1, PDF/A-3a) and with the same bytes every time."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from carbonlens.domain.units import US_PER_S
from carbonlens.render.attachments import Enclosed, as_pdf_attachments
from carbonlens.render.charts import draw
from carbonlens.render.environment import need
from carbonlens.render.html import SECTIONS, compose
from carbonlens.reporting.content import ReportView

if TYPE_CHECKING:
    from pydyf import PDF, Dictionary  # type: ignore[import-untyped]  # it ships no types
    from weasyprint import Document
    from weasyprint.urls import URLFetcher

_UA_1 = b"""<rdf:Description rdf:about="" xmlns:pdfuaid="http://www.aiim.org/pdfua/ns/id/" pdfuaid:part="1"/>
<rdf:Description rdf:about=""
 xmlns:pdfaExtension="http://www.aiim.org/pdfa/ns/extension/"
 xmlns:pdfaSchema="http://www.aiim.org/pdfa/ns/schema#"
 xmlns:pdfaProperty="http://www.aiim.org/pdfa/ns/property#">
<pdfaExtension:schemas><rdf:Bag><rdf:li rdf:parseType="Resource">
<pdfaSchema:schema>PDF/UA identification schema</pdfaSchema:schema>
<pdfaSchema:namespaceURI>http://www.aiim.org/pdfua/ns/id/</pdfaSchema:namespaceURI>
<pdfaSchema:prefix>pdfuaid</pdfaSchema:prefix>
<pdfaSchema:property><rdf:Seq><rdf:li rdf:parseType="Resource">
<pdfaProperty:name>part</pdfaProperty:name>
<pdfaProperty:valueType>Integer</pdfaProperty:valueType>
<pdfaProperty:category>internal</pdfaProperty:category>
<pdfaProperty:description>Part of the PDF/UA standard that the file says it follows</pdfaProperty:description>
</rdf:li></rdf:Seq></pdfaSchema:property>
</rdf:li></rdf:Bag></pdfaExtension:schemas>
</rdf:Description>
</rdf:RDF>"""
"""PDF/A allows a mark that it does not know itself where the file describes it (ISO 19005-3, 6.6.2.3)."""

_DENSITIES = ("", "dense", "tight")
"""How closely text is set, tried in turn until the business case fits its page."""


def render_pdf(
    view: ReportView,
    sections: Sequence[str] = SECTIONS,
    *,
    enclosed: tuple[Enclosed, ...] = (),
    made_us: int | None = None,
) -> bytes:
    """Return the report as PDF (PDF/A-3a and PDF/UA-1); the business case on exactly one page.

    Args:
        view: The report.
        sections: Which sections, of ``business-case`` and ``engineering``.
        enclosed: Files to embed.
        made_us: What the report is dated with, in UTC microseconds; undated when ``None``.

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
    _mark_as_ua(document)
    document.metadata.attachments = as_pdf_attachments(enclosed, made_us)
    document.metadata.created = document.metadata.modified = _moment(made_us)
    identifier = hashlib.sha256(page.encode("utf-8"))
    for file in enclosed:
        identifier.update(file.content)
    content: bytes = document.write_pdf(
        finisher=_with_scopes, pdf_variant="pdf/a-3a", pdf_identifier=identifier.digest()[:16]
    )
    return content


def _with_scopes(_: Document, pdf: PDF) -> None:
    """Say of every header cell whether it heads a column or a row (ISO 14289-1, 7.5).

    WeasyPrint tells cells their headers; the corner cell, which heads no cell, has nothing then.
    """
    held: list[Any] = pdf.objects
    elements: dict[int, Dictionary] = {
        o.number: o for o in held if hasattr(o, "get") and o.get("Type") == "/StructElem"
    }
    for element in elements.values():
        if element["S"] == "/TH" and "A" in element:
            element["A"]["Scope"] = "/Column" if _is_in_head(element, elements) else "/Row"


def _is_in_head(element: Dictionary, elements: Mapping[int, Dictionary]) -> bool:
    while element is not None and element["S"] != "/Table":
        if element["S"] == "/THead":
            return True
        above: str | bytes = element["P"]
        number = int((above.decode() if isinstance(above, bytes) else above).split()[0])
        element = elements.get(number)
    return False


def _mark_as_ua(document: Document) -> None:
    """Have the file say that it follows PDF/UA-1 too: WeasyPrint writes the mark of one standard only."""
    of_one = document.metadata.generate_rdf_metadata

    def of_both(*which: object) -> bytes:
        rdf: bytes = of_one(*which)
        return rdf.replace(b"</rdf:RDF>", _UA_1)

    document.metadata.generate_rdf_metadata = of_both


def _moment(made_us: int | None) -> str | None:
    if made_us is None:
        return None
    return datetime.fromtimestamp(made_us // US_PER_S, tz=UTC).isoformat().replace("+00:00", "Z")


def _first_page_holds_business_case(document: Document) -> bool:
    following = ("investment", "engineering")
    starts = [n for n, page in enumerate(document.pages) if any(a in page.anchors for a in following)]
    return (starts[0] if starts else len(document.pages)) == 1


@cache
def _fetcher() -> URLFetcher:
    """Return a fetcher that reads what stands in the page itself, and nothing else."""
    fetcher: URLFetcher = need("weasyprint.urls").URLFetcher(allowed_protocols=["data"])
    return fetcher
