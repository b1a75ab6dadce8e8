"""Numbers in a theme's own style: other signs, the same digits, everywhere alike."""

from __future__ import annotations

import re

import pytest

from carbonlens.domain.number_style import NumberStyle
from carbonlens.render.charts import draw
from carbonlens.render.html import compose
from carbonlens.reporting.restyled import restyled
from tests.render.pages import view
from tests.reporting.golden import cases

BOTH = ("business-case", "engineering")
GERMAN = NumberStyle(decimal=",", group=".", minus="-", currency="sign", dates="DD.MM.YYYY")


@pytest.mark.parametrize("name", [*cases(), "hostile"])
def test_a_figure_keeps_its_digits_and_changes_its_signs(name):
    before = view(name)
    after = restyled(before, GERMAN)
    assert after.figures.keys() == before.figures.keys()
    for figure_id, was in before.figures.items():
        now = after.figures[figure_id]
        assert now.figure == was.figure
        for one, other in ((was.text, now.text), (was.interval, now.interval), (was.number, now.number)):
            assert re.sub(r"\D", "", one) == re.sub(r"\D", "", other)
            assert "−" not in other
            assert "\u202f" not in other
            assert not re.search(r"\d\.\d(?!\d\d)", other)


@pytest.mark.parametrize("name", ["demo", "long_ladder", "hostile"])
def test_a_page_in_another_style_passes_its_own_check(name):
    styled = restyled(view(name), GERMAN)
    charts = draw(styled, sections=BOTH, narrow=True)
    page = compose(styled, BOTH, medium="screen", charts=charts)
    assert styled.figures["total.reduction_energy"].text in page


def test_names_are_not_rewritten():
    before, after = view("hostile"), restyled(view("hostile"), GERMAN)
    names = [b.name for b in before.business_case.waterfall.bars]
    assert [b.name for b in after.business_case.waterfall.bars] == names


def test_our_own_style_is_the_view_itself():
    assert restyled(view("demo"), NumberStyle()) is view("demo")


@pytest.mark.parametrize("name", ["demo", "unknown_factors", "undetermined"])
def test_beside_a_decimal_comma_the_ends_of_an_interval_are_not_parted_by_one(name):
    before, after = view(name), restyled(view(name), GERMAN)
    intervals = [
        (f.interval, after.figures[i].interval) for i, f in before.figures.items() if ", " in f.interval
    ]
    assert intervals
    for was, now in intervals:
        assert now.count("; ") == 1
        assert ", " not in now
        assert now.partition("; ")[0].count(",") == was.partition(", ")[0].count(".")
    plot = after.engineering.forest
    assert any("; " in m.text for m in plot.means)
    assert all(m.text in plot.alt for m in plot.means)


def test_beside_a_decimal_point_a_comma_parts_them():
    after = restyled(view("demo"), NumberStyle(group="'"))
    assert any(", " in f.interval for f in after.figures.values())
    assert not any(";" in f.interval for f in after.figures.values())
