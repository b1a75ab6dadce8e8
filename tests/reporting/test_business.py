"""A business case as JSON, figures and a page: ids, exact money, nothing that is no number."""

import json
import math
from decimal import Decimal

import msgspec
import pytest
from msgspec.structs import replace

from carbonlens.compare.business import business_case
from carbonlens.domain.business import (
    CarbonPrice,
    Embedded,
    OneOff,
    Powered,
    RunningCost,
    SavingRule,
    Trajectory,
)
from carbonlens.errors import VerificationError
from carbonlens.render.check import check_page
from carbonlens.render.html import render_html
from carbonlens.reporting.business_figures import business_figures
from carbonlens.reporting.business_json import business_json, money_text
from carbonlens.reporting.business_words import bar_ends, payback_words, rate_words, share_above_zero, years
from carbonlens.reporting.comparison_figures import every_figure
from carbonlens.reporting.content import plain_text
from carbonlens.reporting.document import document
from carbonlens.reporting.view import build_view, figure_ids
from tests.compare.business_cases import golden, measured, stated
from tests.compare.study_runs import demo_comparison, vector

DEMO = demo_comparison()
KIT = Embedded(
    units_per_day=1000,
    life_years=3,
    battery_wh=5,
    before=Powered(name="CPU", power_w=0.8, seconds_per_unit=0.04),
    after=Powered(name="NPU", power_w=0.15, seconds_per_unit=0.02),
)
WHOLE = measured(
    carbon_price=CarbonPrice(amount_per_tonne=Decimal(90)),
    running_costs=(RunningCost(name="licence", amount_per_month=Decimal("10.50")),),
    electricity_price=Trajectory(change_per_year=0.02, low=-0.02, high=0.06),
    grid=Trajectory(change_per_year=-0.05),
)
UNPRICED = demo_comparison(with_vector=vector(electricity=None, machine=None, location=None, market=None))
CASES = {
    "whole": (DEMO, WHOLE),
    "golden": (DEMO, golden()),
    "committed": (DEMO, measured(savings=(SavingRule(name="vm", regime="committed", until="2027-12-31"),))),
    "devices": (DEMO, golden(embedded=KIT)),
    "unpriced": (UNPRICED, measured()),
    "not adopted": (replace(DEMO, total_decision="reject"), WHOLE),
    "nothing paid": (DEMO, golden(one_offs=())),
    "costs more": (DEMO, golden(savings=(stated(unit_cost=Decimal(-1)),))),
    "no effort": (replace(DEMO, accepted_effort=None), WHOLE),
    "hundred percent": (DEMO, golden(discount_rate=1.0)),
    "no discount": (DEMO, golden(discount_rate=0.0)),
    "one month": (DEMO, golden(horizon_months=1)),
}


def result_of(name):
    comparison, business = CASES[name]
    return comparison, business_case(comparison, business)


def nodes(node):
    if isinstance(node, dict):
        yield node
        for item in node.values():
            yield from nodes(item)
    elif isinstance(node, list):
        for item in node:
            yield from nodes(item)


@pytest.mark.parametrize("name", CASES)
def test_json_is_finite_and_every_id_is_a_figure(name):
    _, result = result_of(name)
    text = msgspec.json.encode(business_json(result)).decode()
    shape = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} in JSON"))
    figures = {f.figure_id: f for f in business_figures(result)}
    assert len(figures) == len(business_figures(result))
    ids = [n["id"] for n in nodes(shape) if "id" in n]
    assert set(ids) <= set(figures)
    for figure in figures.values():
        ends = (figure.estimate.value, figure.estimate.low, figure.estimate.high)
        assert all(e is None or math.isfinite(e) for e in ends), figure.figure_id
        assert set(figure.inputs) <= set(figures)
        assert figure.formula
    for node in nodes(shape):
        if "amount" in node:
            assert node["currency"] == result.business.currency
            assert node["amount"] is None or Decimal(node["amount"]).is_finite()
    assert not {"nan", "inf", "infinity"} & set(text.lower().replace('"', " ").replace(":", " ").split())


def test_the_shape_that_scripts_rely_on():
    _, result = result_of("golden")
    shape = business_json(result)
    assert shape["schema"] == "carbonlens/business/1"
    one = shape["scenarios"]["expected"]
    assert one["npv"]["amount"] == "7383.89"
    assert one["npv"]["id"] == "business.npv.expected"
    assert one["irr"]["outcome"] == "one"
    assert one["payback_years"] == pytest.approx(2.143, abs=5e-4)
    assert shape["year_end"]["npv"]["amount"] == "6079.36"
    assert shape["year_end"]["irr"]["rate"] == pytest.approx(0.18913, abs=5e-6)
    assert shape["year_end"]["discounted_payback_years"] == pytest.approx(2.453, abs=5e-4)
    assert shape["one_offs"][0]["cost"]["amount"] == "30000"
    assert shape["monte_carlo"]["seed"] == result.business.seed
    assert len(one["cash_flows"]) == 37


def test_stated_money_is_exact_and_computed_money_to_cents():
    case = golden(
        one_offs=(OneOff(name="w", amount=Decimal("0.10")), OneOff(name="v", amount=Decimal("1e3")))
    )
    shape = business_json(business_case(DEMO, case))
    assert [o["cost"]["amount"] for o in shape["one_offs"]] == ["0.10", "1000"]
    assert money_text(7383.886) == "7383.89"
    assert money_text(4.4e-8) == "0.000000044"
    assert money_text(-0.5) == "-0.5"
    assert money_text(0.0) == "0.00"
    assert money_text(math.nan) is None
    assert money_text(math.inf) is None
    assert money_text(None) is None


def test_figures_lead_to_those_of_the_comparison():
    comparison, result = result_of("whole")
    known = every_figure(comparison)
    figures = {f.figure_id: f for f in business_figures(result, known)}
    electricity = figures["business.saving.1.unit_cost"]
    assert "total.savings.energy" in electricity.inputs
    assert "assumption.electricity_price" in electricity.inputs
    assert figures["business.one_off.2"].inputs == ("effort.accepted.cost",)
    every = {*figures, *known}
    assert all(i in every for f in figures.values() for i in f.inputs)
    assert "business.saving.1.unit_cost" in figures["business.cash_value.expected"].inputs
    assert "business.cash_value.expected" in figures["business.npv.expected"].inputs


def test_words():
    one = business_case(DEMO, golden()).expected
    assert years(1.5).text == "18\u00a0months"
    assert years(2.5).text == "2.5\u00a0years"
    assert payback_words(None, one) == "none"
    assert payback_words(0.0, one) == "at once"
    assert payback_words(None, replace(one, flows=())) == "unknown"
    assert rate_words(None) == "unknown"
    assert rate_words(business_case(DEMO, golden(one_offs=())).expected.rates) == "none"
    drawn = replace(business_case(DEMO, WHOLE).monte_carlo, positive=1.0)
    assert share_above_zero(drawn).high == 1.0


# The page --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["whole", "devices", "unpriced", "not adopted"])
def test_the_page_prints_figures_of_the_case_and_no_other_number(name):
    comparison, result = result_of(name)
    view = build_view(comparison, result)
    page = render_html(view, ("business-case",))
    assert 'id="investment"' in page
    money = view.business_case.investment
    used = set(figure_ids(money))
    assert used <= set(view.figures)
    assert {i for i in used if i.startswith("business.")} == used
    assert "nan" not in plain_text(money.title).lower()


def test_without_a_case_the_page_is_as_it_was():
    view = build_view(DEMO)
    assert view.business_case.investment is None
    assert 'id="investment"' not in render_html(view, ("business-case",))


def test_the_headline_says_whether_it_is_worth_it():
    def title(name):
        comparison, result = result_of(name)
        return plain_text(build_view(comparison, result).business_case.investment.title)

    assert title("golden").startswith("Worth EUR\u00a07")
    assert title("costs more").startswith("Not worth it")
    assert title("not adopted").startswith("No step is adopted")
    assert title("unpriced").startswith("What it is worth is unknown")
    assert "at most" in title("no effort")


def test_the_headline_gives_the_range_where_it_may_be_a_loss():
    comparison, result = result_of("golden")
    for low, high in ((-2110.0, 30100.0), (10.0, 30100.0), (-50.0, -10.0)):
        drawn = replace(result.monte_carlo, low=low, high=high)
        title = plain_text(
            build_view(comparison, replace(result, monte_carlo=drawn)).business_case.investment.title
        )
        ranged = "; all ranges together give EUR −2 110 to EUR 30 100"
        assert title.replace("\u202f", " ").replace("\u00a0", " ").endswith(ranged) == (low < 0 < high)


def test_the_dashed_line_of_the_tornado_is_explained():
    comparison, result = result_of("whole")
    drawn = build_view(comparison, result).business_case.investment.tornado
    assert drawn.axis.endswith("dashed: all as expected")


def test_a_bar_that_is_not_its_figure_is_refused():
    comparison, result = result_of("whole")
    view = build_view(comparison, result)
    page = render_html(view, ("business-case",))
    money = view.business_case.investment
    first = money.tornado.rows[0]
    for end in (
        replace(first.low, value=first.low.value + 1),
        replace(first.low, text="EUR 1"),
        replace(first.low, figure_id="business.tornado.none.low"),
    ):
        rows = (replace(first, low=end), *money.tornado.rows[1:])
        changed = replace(money, tornado=replace(money.tornado, rows=rows))
        wrong = replace(view, business_case=replace(view.business_case, investment=changed))
        with pytest.raises(VerificationError):
            check_page(page, wrong)


def test_a_number_of_the_case_that_was_changed_on_the_page_is_refused():
    comparison, result = result_of("golden")
    view = build_view(comparison, result)
    page = render_html(view, ("business-case",))
    at = page.index('data-figure="business.npv.expected"')
    shown = view.figures["business.npv.expected"].text
    assert shown in page[at:]
    with pytest.raises(VerificationError, match=r"business\.npv\.expected"):
        check_page(page[:at] + page[at:].replace(shown, "EUR\u00a09\u202f000", 1), view)


def test_other_formats_hold_the_case_too():
    comparison, result = result_of("whole")
    view = build_view(comparison, result)
    section = document(view, ("business-case",)).sections[0]
    names = [t.name for t in section.tables]
    assert {"Volumes", "Ranges", "Savings", "One-offs"} <= set(names)
    assert len(names) == len(set(names))
    ids = set(figure_ids(section))
    assert {"business.npv.low", "business.npv.expected", "business.npv.high"} <= ids
    ends = {e.figure_id for row in view.business_case.investment.tornado.rows for e in (row.low, row.high)}
    assert ends <= ids


def test_ends_of_bars_are_printed_as_all_numbers_are():
    moved = Trajectory(change_per_year=0.02, low=-0.015, high=0.1)
    result = business_case(DEMO, measured(electricity_price=moved, machine_price=moved))
    ends = {bar.key: bar_ends(result, bar) for bar in result.tornado}
    assert ends["rate"] == ("5\u00a0%", "12\u00a0%")
    assert ends["one_off_1"] == ("3\u202f800", "11\u202f400")
    assert ends["volume"] == ("500\u00a0billion", "2\u00a0trillion")
    assert all(ends[k] == ("−1.5\u00a0%", "+10\u00a0%") for k in ("electricity", "machine") if k in ends)
    labels = {f.figure_id: f.label for f in business_figures(result)}
    assert labels["business.tornado.one_off_1.high"] == "NPV with work at 11\u202f400"
