"""All charts as drawn: contrast in both themes, labels, intervals, outlines, and the finding in words."""

from __future__ import annotations

import re
from functools import cache

import pytest
from lxml import etree

from carbonlens.compare.business import business_case
from carbonlens.render.charts import draw
from carbonlens.reporting.chart_theme import DARK, DECOR, LIGHT, chart_css
from carbonlens.reporting.view import build_view
from tests.compare.business_cases import measured
from tests.compare.study_runs import demo_comparison
from tests.render.pages import view
from tests.reporting.golden import cases
from tests.reporting.test_charts import luminance

SECTIONS = ("business-case", "engineering")
SVG = "{http://www.w3.org/2000/svg}"
CASES = ("demo", "hostile", "lattice", "long_ladder", "money", "traced")
PAINT = re.compile(r'\b(fill|stroke)="([^"]+)"')
DRAWN = {
    "waterfall": "business_case.waterfall",
    "tornado": "business_case.investment.tornado",
    "forest": "engineering.forest",
    "drift": "engineering.drift",
    "latencies": "engineering.latencies",
    "power": "engineering.power",
}


@cache
def seen(name):
    if name == "money":
        comparison = demo_comparison()
        return build_view(comparison, business_case(comparison, measured()))
    return view(name)


@cache
def drawn(name):
    """Every chart of a case: name and width, and its SVG."""
    drawings = draw(seen(name), sections=SECTIONS, narrow=True)
    both = {(n, w): getattr(d, w) for n, d in drawings.items() if d is not None for w in ("wide", "narrow")}
    assert both
    return both


def contrast(one, other):
    """Contrast ratio (WCAG 2.2)."""
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def test_all_kinds_of_charts_are_looked_at():
    names = {n for case in CASES for n, _ in drawn(case)}
    assert names == {*DRAWN, "pareto_latency", "pareto_quality"}


@pytest.mark.parametrize("name", CASES)
def test_every_colour_is_one_of_the_theme(name):
    # Else the style sheet could not recolour it on a dark page.
    for chart, svg in drawn(name).items():
        painted = {colour for _, colour in PAINT.findall(svg)} - {"none", "transparent"}
        assert painted <= set(LIGHT.values()), chart


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_marks_and_words_stand_out_from_the_page(theme):
    told = {name: contrast(colour, theme["paper"]) for name, colour in theme.items() if name not in DECOR}
    assert min(told.values()) >= 3, told
    assert told["ink"] >= 4.5
    # Whiskers and percentiles stand on the bars as well.
    assert all(
        contrast(theme["ink"], theme[name]) >= 3 for name in ("blue", "green", "vermilion", "grey")
    ) or (theme is DARK)


@pytest.mark.parametrize("name", CASES)
def test_words_are_ink_and_marks_no_decoration(name):
    for chart, svg in drawn(name).items():
        for words in etree.fromstring(svg).iter(f"{SVG}text"):
            is_halo = words.get("stroke") == LIGHT["paper"]
            assert is_halo or words.get("fill") == LIGHT["ink"], chart
            assert words.get("fill-opacity", "1") == "1"
            assert float(words.get("opacity", "1")) == 1, chart


def test_the_style_sheet_recolours_each_colour_of_the_theme():
    css = chart_css()
    for name, colour in LIGHT.items():
        for what in ("fill", "stroke"):
            assert f'.chart svg [{what}="{colour}"] {{ {what}: var(--chart-{name}); }}' in css
        assert f"--chart-{name}: {DARK[name]};" in css
    assert DARK.keys() == LIGHT.keys()


def record(name, chart):
    """What a chart was drawn from."""
    if chart.startswith("pareto"):
        return next(p for p in seen(name).engineering.pareto if p.name == chart)
    node = seen(name)
    for part in DRAWN[chart].split("."):
        node = getattr(node, part)
    return node


@pytest.mark.parametrize("name", CASES)
def test_the_finding_in_words_is_the_first_child(name):
    for (chart, _), svg in drawn(name).items():
        root = etree.fromstring(svg)
        said = record(name, chart).alt
        assert root[0].tag == f"{SVG}title"
        assert root[0].text == said
        assert root.get("role") == "img"
        # Whole sentences, and numbers where the chart shows any.
        assert said.endswith(".")
        assert len(said.split()) >= 8
        assert chart == "drift" or re.search(r"[0-9]", said), said


@pytest.mark.parametrize("name", CASES)
def test_each_mark_has_a_tool_tip_with_its_printed_figure(name):
    texts = [f.text for f in seen(name).figures.values()]
    for (chart, _), svg in drawn(name).items():
        tips = [t.text for t in etree.fromstring(svg).iter(f"{SVG}title")][1:]
        assert tips, chart
        if chart != "drift":
            assert all(any(text in tip for text in texts) for tip in tips), (chart, tips)
        assert "aria-label" not in svg


def test_paper_has_no_tool_tips():
    made = draw(view("traced"), sections=SECTIONS, narrow=False)
    assert None not in made.values()
    for drawing in made.values():
        assert drawing.wide.count("<title>") == 1


def marks(svg, kind, **wanted):
    """Marks of a kind with these attributes."""
    found = [
        m for g in etree.fromstring(svg).iter(f"{SVG}g") if kind in (g.get("class") or "").split() for m in g
    ]
    return [m for m in found if all(m.get(k.replace("_", "-")) == v for k, v in wanted.items())]


@pytest.mark.parametrize("width", ["wide", "narrow"])
def test_what_was_not_accepted_is_outlined_and_unfilled(width):
    bars = marks(drawn("demo")["waterfall", width], "mark-rect")
    dashed = [b for b in bars if b.get("stroke-dasharray")]
    rejected = [b for b in seen("demo").business_case.waterfall.bars if b.kind == "rejected"]
    assert len(dashed) == len(rejected) == 1
    assert dashed[0].get("fill-opacity") == "0"
    assert dashed[0].get("stroke") == LIGHT["vermilion"]


@pytest.mark.parametrize("width", ["wide", "narrow"])
def test_intervals_have_whiskers(width):
    charts = drawn("demo")
    page = seen("demo")
    bars = [b for b in page.business_case.waterfall.bars if b.low is not None]
    whiskers = marks(charts["waterfall", width], "mark-rule", stroke=LIGHT["ink"])
    assert len(whiskers) == len(bars) > 0
    whiskers = marks(charts["forest", width], "mark-rule", stroke=LIGHT["ink"])
    assert len(whiskers) == len(page.engineering.forest.means) + 1  # and the line of no change
    front = page.engineering.pareto[1]
    ends = [s for m in front.marks for s in (m.x, m.y) if s.low is not None]
    assert len(marks(charts["pareto_quality", width], "mark-rule", stroke=LIGHT["ink"])) == len(ends) > 5


@pytest.mark.parametrize("width", ["wide", "narrow"])
@pytest.mark.parametrize("chart", ["pareto_latency", "pareto_quality"])
def test_a_beaten_step_is_told_by_shape_and_label(chart, width):
    svg = drawn("demo")[chart, width]
    points = marks(svg, "mark-symbol")
    hollow = [p for p in points if p.get("fill") == LIGHT["paper"] and p.get("stroke") == LIGHT["grey"]]
    filled = [p for p in points if p.get("fill") == LIGHT["blue"]]
    beaten = [m for m in record("demo", chart).marks if not m.on_front]
    assert (len(hollow), len(filled)) == (len(beaten), 3)
    assert "A" in filled[0].get("d")  # a circle is drawn in arcs, a diamond in lines
    assert not any("A" in p.get("d") for p in hollow)
    words = [t.text for t in etree.fromstring(svg).iter(f"{SVG}text") if t.text.endswith("(beaten)")]
    assert len(words) == 2 * len(beaten)  # with their halos


@pytest.mark.parametrize("width", ["wide", "narrow"])
def test_of_many_steps_only_those_on_the_front_are_named(width):
    front = record("long_ladder", "pareto_latency")
    assert len(front.marks) == 16
    svg = drawn("long_ladder")["pareto_latency", width]
    assert len(marks(svg, "mark-symbol")) == 16
    words = {t.text for t in etree.fromstring(svg).iter(f"{SVG}text") if t.get("stroke")}
    assert words == {m.name for m in front.marks if m.on_front} != set()
    assert "too many to be named" in "".join(p.text for p in front.note)


@pytest.mark.parametrize("name", cases())
def test_a_chart_that_is_not_there_is_said(name):
    page = view(name).engineering
    said = [p[0].text for p in page.left_out]
    for chart, words in (
        (page.forest, "No interval plot"),
        (page.drift, "No drift plot"),
        (page.pareto, "No Pareto chart"),
        (page.latencies, "No latency distribution"),
        (page.power, "No power trace: "),
    ):
        assert bool(chart) != any(s.startswith(words) for s in said)
