"""PDF: the same page on paper, tagged (PDF/UA-1, PDF/A-3a) and with the same bytes every time."""

from __future__ import annotations

import atexit
import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING

from carbonlens.domain.units import US_PER_S
from carbonlens.render import agent_rules, page_tree
from carbonlens.render.attachments import Enclosed, Enclosing, as_pdf_attachments, given
from carbonlens.render.charts import draw
from carbonlens.render.environment import need, template_environment
from carbonlens.render.html import SECTIONS, compose, shipped_styles
from carbonlens.render.look import Look
from carbonlens.render.pdf_finish import finish
from carbonlens.render.stages import stage
from carbonlens.reporting.content import ReportView

if TYPE_CHECKING:
    from weasyprint import CSS, HTML, Document
    from weasyprint.text.fonts import FontConfiguration
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
    enclosed: Enclosing = (),
    made_us: int | None = None,
    look: Look | None = None,
) -> bytes:
    """Return the report as PDF (PDF/A-3a and PDF/UA-1); the business case on exactly one page.

    Args:
        view: The report.
        sections: Which sections, of ``business-case`` and ``engineering``.
        enclosed: Files to embed, or what waits for them: it is called once the pages are laid out.
        made_us: What the report is dated with, in UTC microseconds; undated when ``None``.
        look: A user's own templates, colours, fonts and logo.

    Raises:
        MissingExtraError: If the ``report`` extra is not installed.
        ConfigError: If a template of the user's cannot be rendered.
        VerificationError: If a printed number is not that of its figure.
    """
    chosen = tuple(s for s in SECTIONS if s in sections)
    stage("drawing charts")
    charts = draw(view, sections=chosen, narrow=False)
    for density in _DENSITIES:
        stage("laying out pages")
        page = compose(view, chosen, medium="paper", charts=charts, density=density, look=look)
        document = paper(page, look)
        if "business-case" not in chosen or _first_page_holds_business_case(document):
            break
    stage("writing the PDF")
    return written(document, page, given(enclosed), made_us)


def paper(page: str, look: Look | None = None) -> Document:
    """Return a page laid out on paper; it reads what stands in itself, and nothing else.

    The shipped style sheets and fonts in it are read once a process.

    Args:
        page: Finished HTML.
        look: What it was made with; templates of a user's may write any HTML.

    Raises:
        MissingExtraError: If WeasyPrint is not installed.
    """
    own = look is None or not look.templates
    plain = look is None or not (look.templates or look.css)
    styles = shipped_styles("paper")
    before, _, after = page.partition(styles)
    # A page with fonts of its own keeps them to itself.
    if not after or "@font-face" in before + after:
        return _html(page, own=own, plain=plain).render()
    read, fonts = _styles(styles)
    return _html(before + after, own=own, plain=plain).render(stylesheets=[read], font_config=fonts)


def written(document: Document, page: str, enclosed: tuple[Enclosed, ...], made_us: int | None) -> bytes:
    """Return a laid-out page as tagged PDF, the same bytes every time.

    Args:
        document: As WeasyPrint laid it out.
        page: The HTML that it was made from.
        enclosed: Files to embed.
        made_us: What the report is dated with, in UTC microseconds; undated when ``None``.
    """
    _mark_as_ua(document)
    document.metadata.attachments = as_pdf_attachments(enclosed, made_us)
    document.metadata.created = document.metadata.modified = _moment(made_us)
    identifier = hashlib.sha256(page.encode("utf-8"))
    for file in enclosed:
        identifier.update(file.content)
    content: bytes = document.write_pdf(
        finisher=finish, pdf_variant="pdf/a-3a", pdf_identifier=identifier.digest()[:16]
    )
    return content


def warm_up() -> None:
    """Load what lays out and reads the shipped styles and fonts."""
    template_environment().get_template("report.html.j2")
    read, fonts = _styles(shipped_styles("paper"))
    _html("<p>0").render(stylesheets=[read], font_config=fonts).write_pdf()


def _html(page: str, *, own: bool = True, plain: bool = True) -> HTML:
    tree = page_tree.read(page) if own else None
    html: HTML = need("weasyprint").HTML(string="" if tree is not None else page, url_fetcher=_fetcher())
    if tree is not None:
        html.wrapper_element = need("cssselect2").ElementWrapper.from_html_root(tree, content_language=None)
        html.etree_element = tree
    if plain:
        agent_rules.spare(html)
    return html


@cache
def _styles(styles: str) -> tuple[CSS, FontConfiguration]:
    fonts = need("weasyprint.text.fonts").FontConfiguration()
    atexit.register(_styles.cache_clear)  # fonts are given back with functions that are gone later
    return need("weasyprint").CSS(string=styles, font_config=fonts, url_fetcher=_fetcher()), fonts


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
