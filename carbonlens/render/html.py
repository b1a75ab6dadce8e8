"""HTML: one self-contained page, checked against its own figures."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Literal

from carbonlens._version import __version__
from carbonlens.render.attachments import DATA_ID, DATA_TYPE, as_data_block
from carbonlens.render.charts import Drawing, draw
from carbonlens.render.check import check_page
from carbonlens.render.environment import need, template_environment, template_file
from carbonlens.reporting.content import ReportView

SECTIONS = ("business-case", "engineering")
Medium = Literal["screen", "paper"]
_WEIGHTS = ((400, "Inter-Regular"), (600, "Inter-SemiBold"))


def render_html(view: ReportView, sections: Sequence[str] = SECTIONS, *, data: bytes | None = None) -> str:
    """Return the report as one HTML file without scripts that run and without links.

    Args:
        view: The report.
        sections: Which sections, of ``business-case`` and ``engineering``.
        data: What the page carries to be verified by: the report as JSON.

    Raises:
        MissingExtraError: If the ``report`` extra is not installed.
        VerificationError: If a printed number is not that of its figure.
    """
    chosen = tuple(s for s in SECTIONS if s in sections)
    charts = draw(view, sections=chosen, narrow=True)
    return compose(view, chosen, medium="screen", charts=charts, data=data)


def compose(
    view: ReportView,
    sections: tuple[str, ...],
    *,
    medium: Medium,
    charts: dict[str, Drawing | None],
    density: str = "",
    data: bytes | None = None,
) -> str:
    """Return the page for a medium, after the self-check.

    Args:
        view: The report.
        sections: Sections in order.
        medium: Screen or paper; decides the font format.
        charts: The drawings.
        density: ``dense`` sets the text tighter.
        data: What a page on screen carries to be verified by.

    Raises:
        VerificationError: If a printed number is not that of its figure.
    """
    markup = need("markupsafe").Markup
    page: str = (
        template_environment()
        .get_template("report.html.j2")
        .render(
            view=view,
            sections=sections,
            medium=medium,
            density=density,
            charts={name: _trusted(drawing, markup) for name, drawing in charts.items()},
            font_css=markup(_font_css("ttf" if medium == "paper" else "woff2")),
            report_css=markup(template_file("report.css").read_text(encoding="utf-8")),
            print_css=markup(template_file("print.css").read_text(encoding="utf-8")),
            generator=f"carbonlens {__version__}",
            data=None if data is None else markup(as_data_block(data)),
            data_id=DATA_ID,
            data_type=DATA_TYPE,
        )
    )
    check_page(page, view)
    return page


def _trusted(drawing: Drawing | None, markup: Callable[[str], str]) -> dict[str, str | None] | None:
    """Mark our own SVG as markup; the names in it were escaped by the converter."""
    if drawing is None:
        return None
    narrow = None if drawing.narrow is None else markup(drawing.narrow)
    return {"wide": markup(drawing.wide), "narrow": narrow}


def _font_css(suffix: str) -> str:
    kind = {"ttf": "font/ttf", "woff2": "font/woff2"}[suffix]
    rules = []
    for weight, name in _WEIGHTS:
        content = b64encode(template_file(f"fonts/{name}.{suffix}").read_bytes()).decode("ascii")
        rules.append(
            f'@font-face {{ font-family: "Carbonlens Inter"; font-weight: {weight}; font-style: normal; '
            f'src: url("data:{kind};base64,{content}"); }}'
        )
    return "\n".join(rules)
