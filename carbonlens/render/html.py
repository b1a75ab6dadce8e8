"""HTML: one self-contained page, checked against its own figures."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal

from carbonlens._version import __version__
from carbonlens.render.attachments import DATA_ID, DATA_TYPE, as_data_block
from carbonlens.render.charts import Drawing, draw
from carbonlens.render.check import check_view
from carbonlens.render.environment import need, template_environment, template_file
from carbonlens.render.look import Look
from carbonlens.render.stages import stage
from carbonlens.render.user_templates import composed
from carbonlens.reporting.chart_theme import chart_css
from carbonlens.reporting.content import ReportView
from carbonlens.reporting.document_view import DocumentView

SECTIONS = ("business-case", "engineering")
Medium = Literal["screen", "paper"]
_WEIGHTS = ((400, "Inter-Regular"), (600, "Inter-SemiBold"))


def render_html(
    view: ReportView,
    sections: Sequence[str] = SECTIONS,
    *,
    data: bytes | None = None,
    look: Look | None = None,
) -> str:
    """Return the report as one HTML file without links; its one script sorts tables.

    Args:
        view: The report.
        sections: Which sections, of ``business-case`` and ``engineering``.
        data: What the page carries to be verified by: the report as JSON.
        look: A user's own templates, colours, fonts and logo.

    Raises:
        MissingExtraError: If the ``report`` extra is not installed.
        ConfigError: If a template of the user's cannot be rendered.
        VerificationError: If a printed number is not that of its figure.
    """
    chosen = tuple(s for s in SECTIONS if s in sections)
    stage("drawing charts")
    charts = draw(view, sections=chosen, narrow=True)
    stage("writing the page")
    return compose(view, chosen, medium="screen", charts=charts, data=data, look=look)


def compose(  # noqa: PLR0913  # what a page has beside its view, by name
    view: ReportView,
    sections: tuple[str, ...],
    *,
    medium: Medium,
    charts: Mapping[str, Drawing | None],
    density: str = "",
    data: bytes | None = None,
    look: Look | None = None,
) -> str:
    """Return the page for a medium, after the self-check.

    Args:
        view: The report.
        sections: Sections in order.
        medium: Screen or paper; decides the font format.
        charts: The drawings.
        density: ``dense`` sets the text tighter.
        data: What a page on screen carries to be verified by.
        look: A user's own templates, colours, fonts and logo.

    Raises:
        ConfigError: If a template of the user's cannot be rendered.
        VerificationError: If a printed number is not that of its figure.
    """
    variables = page_variables(view, sections, medium=medium, charts=charts, density=density, data=data)
    return made_page(variables, view, look)


def made_page(variables: dict[str, Any], view: ReportView | DocumentView, look: Look | None) -> str:
    """Return the page that templates make, ours or a user's, after the self-check.

    Args:
        variables: What every template of the page takes.
        view: What it prints.
        look: A user's own templates, colours, fonts and logo.

    Raises:
        ConfigError: If a template of the user's cannot be rendered.
        VerificationError: If a printed number is not that of its figure.
    """
    if look is not None:
        variables |= {"own_styles": need("markupsafe").Markup(look.css), "logo": look.logo}
        if look.templates:
            return composed(look, variables, view)
    page: str = template_environment().get_template("report.html.j2").render(**variables)
    check_view(page, view)
    return page


def page_variables(
    view: ReportView | DocumentView,
    sections: tuple[str, ...],
    *,
    medium: Medium,
    charts: Mapping[str, Drawing | None],
    density: str = "",
    data: bytes | None = None,
) -> dict[str, Any]:
    """Return what every template of a page takes; arguments as of ``compose``."""
    markup = need("markupsafe").Markup
    script = _shipped("sort.js") if medium == "screen" else ""
    return {
        "view": view,
        "sections": sections,
        "medium": medium,
        "density": density,
        "charts": {name: _trusted(drawing, markup) for name, drawing in charts.items()},
        "styles": markup(shipped_styles(medium)),
        "kind_styles": "",
        "own_styles": "",
        "logo": None,
        "script": markup(script),
        "script_source": markup(_script_source(script)),
        "generator": f"carbonlens {__version__}",
        "data": None if data is None else markup(as_data_block(data)),
        "data_id": DATA_ID,
        "data_type": DATA_TYPE,
    }


@cache
def shipped_styles(medium: Medium) -> str:
    """Return the style sheets of a medium: fonts, page, charts, print.

    Args:
        medium: Screen or paper; decides the font format.
    """
    fonts = _font_css("ttf" if medium == "paper" else "woff2")
    return "\n".join((fonts, _shipped("report.css"), chart_css(), _shipped("print.css")))


@cache
def _shipped(name: str) -> str:
    return template_file(name).read_text(encoding="utf-8")


def _trusted(drawing: Drawing | None, markup: Callable[[str], str]) -> dict[str, str | None] | None:
    """Mark our own SVG as markup; the names in it were escaped by the converter."""
    if drawing is None:
        return None
    narrow = None if drawing.narrow is None else markup(drawing.narrow)
    return {"wide": markup(drawing.wide), "narrow": narrow}


def _script_source(script: str) -> str:
    """Return what the page's policy allows to run: this very script, by its hash, or nothing."""
    if not script:
        return "'none'"
    digest = b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"


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
