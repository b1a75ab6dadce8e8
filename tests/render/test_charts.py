"""Charts as SVG: our font, our ids, the finding as alternative text."""

from __future__ import annotations

import re

import pytest

from carbonlens.render.charts import draw, to_svg
from carbonlens.reporting.charts import waterfall_spec
from carbonlens.reporting.content import Tornado, TornadoEnd, TornadoRow
from carbonlens.reporting.format import GROUP, MINUS, fixed
from carbonlens.reporting.tornado_chart import tornado_spec
from carbonlens.reporting.view import build_view
from tests.render.pages import view
from tests.reporting.comparisons import hostile_comparison
from tests.reporting.power_case import traced

SECTIONS = ("business-case", "engineering")


@pytest.fixture(scope="module")
def drawn():
    """The charts of a study that kept no trace, and of one that did."""
    without = draw(view("demo"), sections=SECTIONS, narrow=True)
    assert [name for name, drawing in without.items() if drawing is None] == ["power"]
    return without | {"power": draw(view("traced"), sections=("engineering",), narrow=True)["power"]}


def test_the_finding_is_the_first_child(drawn):
    alt = view("demo").business_case.waterfall.alt
    assert re.match(r"<svg[^>]*><title>" + re.escape(alt), drawn["waterfall"].wide)
    assert "Static int8 quantization (QDQ) −11.1" in alt


def test_ids_carry_the_prefix_of_their_chart():
    # A clipped mark makes the converter number its clip paths over the process.
    clipped = {
        "data": {"values": [{"x": 1, "y": 2}, {"x": 2, "y": 1}]},
        "mark": {"type": "line", "clip": True},
        "encoding": {
            "x": {"field": "x", "type": "quantitative"},
            "y": {"field": "y", "type": "quantitative"},
        },
    }
    first, second = (to_svg(clipped, chart_id="one", alt="a") for _ in range(2))
    assert first == second
    ids = re.findall(r'\bid="([^"]+)"', first)
    assert ids
    assert all(i.startswith("one-") for i in ids)
    assert set(re.findall(r"url\(#([^)]+)\)", first)) <= set(ids)


def test_the_same_specification_gives_the_same_bytes_again(drawn):
    chart = view("demo").business_case.waterfall
    again = to_svg(waterfall_spec(chart), chart_id="waterfall", alt=chart.alt, tips=True)
    assert again == drawn["waterfall"].wide


def test_text_is_text_in_our_font(drawn):
    for drawing in drawn.values():
        fonts = re.findall(r'font-family="([^"]+)"', drawing.wide)
        assert set(fonts) == {"Carbonlens Inter"}
    assert ">−50.6\u00a0%<" in drawn["waterfall"].wide
    assert "aria-label" not in drawn["waterfall"].wide
    assert drawn["waterfall"].wide.count('role="') == 1


def test_names_are_escaped_in_charts():
    drawings = draw(build_view(traced(hostile_comparison())), sections=SECTIONS, narrow=True)
    assert drawings["power"]
    for drawing in filter(None, drawings.values()):
        for svg in (drawing.wide, drawing.narrow):
            assert "<script" not in svg
    assert "&lt;script&gt;" in drawings["waterfall"].wide


def test_nothing_to_draw_is_none():
    assert draw(view("no_baseline"), sections=("business-case",), narrow=False) == {"waterfall": None}
    assert draw(view("demo"), sections=("business-case",), narrow=False)["waterfall"].narrow is None


@pytest.mark.parametrize("wide", [True, False])
def test_axes_print_numbers_as_the_text_does(wide):
    def end(value):
        return TornadoEnd(figure_id="x", value=value, text="")

    row = TornadoRow(name="volume", low=end(-15_000.0), high=end(2_500_000.0))
    chart = Tornado(title=(), alt="", rows=(row,), axis="EUR", middle=0.0, factor=1.0)
    svg = to_svg(tornado_spec(chart, wide=wide), chart_id="tornado", alt="a")
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    ticks = [t for t in texts if re.fullmatch(r"[\d\W]+", t) and any(c.isdigit() for c in t)]
    assert len(ticks) >= 3
    for text in ticks:
        number = float(text.replace(GROUP, "").replace(MINUS, "-"))
        assert text == fixed(number, 0)
    assert any(GROUP in t for t in ticks)
