"""Room: a chart that draws some of the steps says how many it leaves out."""

from __future__ import annotations

import re

import pytest

from carbonlens.reporting.content import plain_text
from carbonlens.reporting.number_words import in_words
from carbonlens.reporting.view import build_view
from tests.reporting.comparisons import Arm, comparison

CHARTS = {"interval plot": "forest", "drift plot": "drift", "latency distribution": "latencies"}


def ladder(steps: int):
    arms = tuple(Arm(name=f"step-{i}", cpu_us=800 - i, accuracy=0.9 + i / 1e4) for i in range(steps))
    return comparison(arms)


@pytest.fixture(scope="module")
def page():
    return build_view(ladder(39)).engineering


@pytest.mark.parametrize(
    ("chart", "drawn", "hidden"),
    [("interval plot", 24, 15), ("drift plot", 8, 32), ("latency distribution", 12, 28)],
)
def test_what_finds_no_room_in_a_chart_is_counted_beside_it_and_in_its_words(page, chart, drawn, hidden):
    said = [plain_text(p) for p in page.left_out]
    wanted = f"The {chart} shows the first {in_words(drawn)} steps; {in_words(hidden)} more are left out."
    assert wanted in said
    assert f"and {in_words(hidden)} more that are left out" in getattr(page, CHARTS[chart]).alt


def test_a_scatter_says_which_steps_it_draws(page):
    assert [len(p.marks) for p in page.pareto] == [16, 16]
    said = [plain_text(p) for p in page.left_out]
    assert (
        "A Pareto chart shows sixteen steps, those that none beats first; twenty-four more are left out."
        in said
    )
    assert all("twenty-four more that are left out" in p.alt for p in page.pareto)


def test_steps_beyond_the_tables_count_too():
    page = build_view(ladder(70)).engineering
    found = {len(c): c for c in map(plain_text, page.left_out)}
    assert any("forty-six more are left out" in c for c in found.values())
    assert any("sixty-three more are left out" in c for c in found.values())


def test_where_all_find_room_nothing_is_said_of_it():
    page = build_view(ladder(7)).engineering
    assert not [p for p in page.left_out if "shows" in plain_text(p)]
    assert not [c for c in (page.forest, page.drift, page.latencies) if "left out" in c.alt]


def test_one_step_too_many_is_one():
    said = [plain_text(p) for p in build_view(ladder(8)).engineering.left_out]
    assert "The drift plot shows the first eight steps; one more is left out." in said


def test_the_words_have_no_digit_and_the_lead_counts_exactly(page):
    assert not [p for p in page.left_out if re.search(r"\d", plain_text(p))]
    assert "thirty-nine accepted" in plain_text(page.lead)


@pytest.mark.parametrize(
    "name",
    ["\u05e9\u05dc\u05d5\u05dd", "\u0645\u0631\u062d\u0628\u0627", "\u0939\u093f\u0928\u094d\u0926\u0940"],
)
def test_names_that_paper_sets_wrongly_in_charts_are_told_of(name):
    view = build_view(comparison((Arm(name="step", title=name, cpu_us=400),)))
    notes = [plain_text(view.business_case.waterfall_note), *map(plain_text, view.engineering.left_out)]
    assert sum("are right in the tables" in note for note in notes) == 2


def test_other_names_need_no_word_of_it():
    view = build_view(comparison((Arm(name="step", title="Größe, размер, 大小", cpu_us=400),)))
    notes = [plain_text(view.business_case.waterfall_note), *map(plain_text, view.engineering.left_out)]
    assert not [note for note in notes if "In PDF" in note]
