"""Blocks: a report that is a document as HTML and PDF, out of one template for every block."""

from __future__ import annotations

from typing import Any

from carbonlens.render.attachments import Enclosed
from carbonlens.render.charts import Drawing, to_svg
from carbonlens.render.check import check_document
from carbonlens.render.environment import template_environment
from carbonlens.render.html import Medium, page_variables
from carbonlens.render.pdf import paper, written
from carbonlens.reporting.block_charts import plot_spec
from carbonlens.reporting.document_view import DocumentView

_TEMPLATE = "sustainability/report.html.j2"


def render_document_html(view: DocumentView, *, data: bytes | None = None) -> str:
    """Return the report as one HTML file without links; its one script sorts tables.

    Args:
        view: The report.
        data: What the page carries to be verified by: the report as JSON.

    Raises:
        MissingExtraError: If the ``report`` extra is not installed.
        VerificationError: If a printed number is not that of its figure.
    """
    return _composed(view, "screen", data)


def render_document_pdf(
    view: DocumentView, *, enclosed: tuple[Enclosed, ...] = (), made_us: int | None = None
) -> bytes:
    """Return the report as PDF (PDF/A-3a and PDF/UA-1).

    Args:
        view: The report.
        enclosed: Files to embed.
        made_us: What the report is dated with, in UTC microseconds; undated when ``None``.

    Raises:
        MissingExtraError: If the ``report`` extra is not installed.
        VerificationError: If a printed number is not that of its figure.
    """
    page = _composed(view, "paper", None)
    return written(paper(page), page, enclosed, made_us)


def _composed(view: DocumentView, medium: Medium, data: bytes | None) -> str:
    charts = {name: _drawn(view, name, narrow=medium == "screen") for name in view.plots}
    sections = tuple(s.name for s in view.document.sections)
    variables: dict[str, Any] = page_variables(view, sections, medium=medium, charts=charts, data=data)
    # A template cannot ask a record for its tag.
    parts = [(s.name, [(_tag(b), b) for b in s.blocks]) for s in view.document.sections]
    page: str = template_environment().get_template(_TEMPLATE).render(**variables, parts=parts)
    check_document(page, view)
    return page


def _drawn(view: DocumentView, name: str, *, narrow: bool) -> Drawing:
    plot = view.plots[name]
    wide = to_svg(plot_spec(plot), chart_id=name, alt=plot.alt, tips=narrow)
    if not narrow:
        return Drawing(wide=wide)
    phone = to_svg(plot_spec(plot, wide=False), chart_id=f"{name}-narrow", alt=plot.alt, tips=True)
    return Drawing(wide=wide, narrow=phone)


def _tag(block: Any) -> str:  # noqa: ANN401  # one of the blocks of a document
    return str(block.__struct_config__.tag)
