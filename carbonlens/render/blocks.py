"""Blocks: a report that is a document as HTML and PDF, out of one template for every block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from carbonlens.render.attachments import Enclosing, given
from carbonlens.render.charts import Drawing, to_svg
from carbonlens.render.column_widths import column_widths
from carbonlens.render.environment import need, template_file
from carbonlens.render.html import Medium, made_page, page_variables
from carbonlens.render.look import Look
from carbonlens.render.pdf import paper, written
from carbonlens.render.stages import stage
from carbonlens.reporting.block_charts import plot_spec
from carbonlens.reporting.document import TableBlock
from carbonlens.reporting.document_view import DocumentView

KIND = "sustainability"
"""Name of the section that the frame of all pages includes."""


def render_document_html(view: DocumentView, *, data: bytes | None = None, look: Look | None = None) -> str:
    """Return the report as one HTML file without links; its one script sorts tables.

    Args:
        view: The report.
        data: What the page carries to be verified by: the report as JSON.
        look: A user's own templates, colours, fonts and logo.

    Raises:
        MissingExtraError: If the ``report`` extra is not installed.
        ConfigError: If a template of the user's cannot be rendered.
        VerificationError: If a printed number is not that of its figure.
    """
    return made_page(document_variables(view, "screen", data), view, look)


def render_document_pdf(
    view: DocumentView,
    *,
    enclosed: Enclosing = (),
    made_us: int | None = None,
    look: Look | None = None,
) -> bytes:
    """Return the report as PDF (PDF/A-3a and PDF/UA-1).

    Args:
        view: The report.
        enclosed: Files to embed, or what waits for them: it is called once the pages are laid out.
        made_us: What the report is dated with, in UTC microseconds; undated when ``None``.
        look: A user's own templates, colours, fonts and logo.

    Raises:
        MissingExtraError: If the ``report`` extra is not installed.
        ConfigError: If a template of the user's cannot be rendered.
        VerificationError: If a printed number is not that of its figure.
    """
    variables = document_variables(view, "paper", None)
    if look is None:  # a user's rules may set texts in any way
        variables["widths"] = {t.name: column_widths(t.table) for t in _tables(view)}
    page = made_page(variables, view, look)
    stage("laying out pages")
    laid_out = paper(page, look)
    stage("writing the PDF")
    return written(laid_out, page, given(enclosed), made_us)


def document_variables(view: DocumentView, medium: Medium, data: bytes | None) -> dict[str, Any]:
    """Return what every template of the page takes.

    Args:
        view: The report.
        medium: Screen or paper.
        data: What a page on screen carries to be verified by.
    """
    stage("drawing charts")
    charts = {name: _drawn(view, name, narrow=medium == "screen") for name in view.plots}
    stage("writing the page")
    variables = page_variables(view, (KIND,), medium=medium, charts=charts, data=data)
    variables["widths"] = dict.fromkeys(t.name for t in _tables(view))
    # A template cannot ask a record for its tag.
    variables["parts"] = {s.name: [(_tag(b), b) for b in s.blocks] for s in view.document.sections}
    rules = template_file(f"{KIND}.css").read_text(encoding="utf-8")
    variables["kind_styles"] = need("markupsafe").Markup(rules)
    return variables


def _tables(view: DocumentView) -> Iterator[TableBlock]:
    return (table for section in view.document.sections for table in section.tables)


def _drawn(view: DocumentView, name: str, *, narrow: bool) -> Drawing:
    plot = view.plots[name]
    wide = to_svg(plot_spec(plot), chart_id=name, alt=plot.alt, tips=narrow)
    if not narrow:
        return Drawing(wide=wide)
    phone = to_svg(plot_spec(plot, wide=False), chart_id=f"{name}-narrow", alt=plot.alt, tips=True)
    return Drawing(wide=wide, narrow=phone)


def _tag(block: Any) -> str:  # noqa: ANN401  # one of the blocks of a document
    return str(block.__struct_config__.tag)
