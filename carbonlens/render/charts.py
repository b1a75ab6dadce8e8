"""Charts: Vega-Lite specifications drawn as SVG, the same bytes in every process."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from html import escape
from types import ModuleType
from typing import TypeAlias

import msgspec

from carbonlens.render.environment import need, template_file
from carbonlens.reporting.charts import Spec, drift_spec, forest_spec, waterfall_spec
from carbonlens.reporting.content import Drift, Forest, Latencies, Pareto, ReportView, Tornado, Waterfall
from carbonlens.reporting.format import GROUP, MINUS
from carbonlens.reporting.latency_chart import latency_spec
from carbonlens.reporting.pareto_chart import pareto_spec
from carbonlens.reporting.power_chart import power_spec
from carbonlens.reporting.power_content import PowerTraces
from carbonlens.reporting.tornado_chart import tornado_spec

_VEGA_LITE = "6.4"
_NUMBERS = {"decimal": ".", "thousands": GROUP, "grouping": [3], "currency": ["", ""], "minus": MINUS}
"""How axes print numbers: as ``reporting.format`` does."""

Drawable: TypeAlias = Waterfall | Forest | Drift | Tornado | Pareto | Latencies | PowerTraces

_LABELLED = re.compile(r'<(path|line|text)\b([^>]*?) aria-label="([^"]*)"([^>]*?)/>')
"""A mark that tells what it is; the converter escapes the words."""


class Drawing(msgspec.Struct, frozen=True, kw_only=True):
    """A chart as SVG for paper and, where wanted, for phones."""

    wide: str
    narrow: str | None = None


def draw(view: ReportView, *, sections: tuple[str, ...], narrow: bool) -> dict[str, Drawing | None]:
    """Return the drawings of the sections by chart name; ``None`` where there is nothing to draw.

    Args:
        view: The report.
        sections: Which sections are rendered.
        narrow: For screens: also draw for phones, and with tool tips.

    Raises:
        MissingExtraError: If vl-convert is not installed.
    """
    charts: dict[str, Drawing | None] = {}
    if "business-case" in sections:
        waterfall = view.business_case.waterfall
        charts["waterfall"] = _both("waterfall", waterfall_spec, waterfall, narrow=narrow)
        money = view.business_case.investment
        if money is not None:
            charts["tornado"] = _both("tornado", tornado_spec, money.tornado, narrow=narrow)
    if "engineering" in sections:
        forest, drift = view.engineering.forest, view.engineering.drift
        charts["forest"] = _both("forest", forest_spec, forest, narrow=narrow)
        charts["drift"] = _both("drift", drift_spec, drift, narrow=narrow)
        charts["latencies"] = _both("latencies", latency_spec, view.engineering.latencies, narrow=narrow)
        charts["power"] = _both("power", power_spec, view.engineering.power, narrow=narrow)
        for front in view.engineering.pareto:
            charts[front.name] = _both(front.name, pareto_spec, front, narrow=narrow)
    return charts


def _both(name: str, spec: Callable[..., Spec], chart: Drawable | None, *, narrow: bool) -> Drawing | None:
    if chart is None:
        return None
    return Drawing(
        wide=to_svg(spec(chart), chart_id=name, alt=chart.alt, tips=narrow),
        narrow=to_svg(spec(chart, wide=False), chart_id=f"{name}-narrow", alt=chart.alt, tips=True)
        if narrow
        else None,
    )


def to_svg(spec: Spec, *, chart_id: str, alt: str, tips: bool = False) -> str:
    """Draw a specification.

    Ids inside the SVG are rewritten with the chart's own prefix, because the
    converter counts them up over the life of the process. The alternative text
    becomes the direct ``<title>`` child, which is what a tagged PDF takes it from.

    Args:
        spec: Vega-Lite specification with its data inside.
        chart_id: Prefix, unique on the page.
        alt: The finding in words.
        tips: Whether marks tell a pointer what they are.

    Raises:
        MissingExtraError: If vl-convert is not installed.
    """
    svg: str = _converter().vegalite_to_svg(
        spec, vl_version=_VEGA_LITE, allowed_base_urls=[], format_locale=_NUMBERS
    )
    names = {
        found: f"{chart_id}-{n}" for n, found in enumerate(dict.fromkeys(re.findall(r'\bid="([^"]+)"', svg)))
    }
    for found, name in names.items():
        svg = svg.replace(f'id="{found}"', f'id="{name}"').replace(f"url(#{found})", f"url(#{name})")
        svg = svg.replace(f'href="#{found}"', f'href="#{name}"')
    # One picture with one description: its parts are no pictures of their own.
    svg = re.sub(r' (?:role|aria-roledescription)="[^"]*"', "", svg)
    svg = _LABELLED.sub(r"<\1\2\4><title>\3</title></\1>" if tips else r"<\1\2\4/>", svg)
    svg = re.sub(r' aria-label="[^"]*"', "", svg)
    return re.sub(
        r"<svg([^>]*)>", lambda m: f'<svg role="img"{m[1]}><title>{escape(alt)}</title>', svg, count=1
    )


def warm_up() -> None:
    """Start the engine that draws: its first chart takes most of a second."""
    _converter().vegalite_to_svg(
        {"mark": "point", "data": {"values": []}, "encoding": {}}, vl_version=_VEGA_LITE, allowed_base_urls=[]
    )


@cache
def _converter() -> ModuleType:
    """Return vl-convert with our fonts registered, once per process."""
    converter = need("vl_convert")
    converter.register_font_directory(str(template_file("fonts/Inter-Regular.ttf").parent))
    return converter
