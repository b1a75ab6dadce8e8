"""The page of the quarter: what its tiles, chart and table say of lower bounds, labels and currencies."""

import msgspec
import pytest

from carbonlens.accounting.reported_cost import ReportedCost
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.figure import Figure
from tests.accounting.test_periods_compared import BOUND, MIXED, WHOLE, of_parts
from tests.reporting import sustainability_case as case
from tests.reporting.test_sustainability_sums import of_scopes

SCOPES = "scopes"


def made(before, own, **more):
    return case.view(
        {case.BEFORE: of_parts(case.BEFORE, before), case.QUARTER: of_parts(case.QUARTER, own)}, **more
    )


@pytest.mark.parametrize(("before", "own"), [(WHOLE, MIXED), (MIXED, WHOLE), (MIXED, MIXED)])
def test_no_change_is_printed_where_lower_bounds_stand_beside_a_sum(before, own):
    view = made(before, own)
    said = case.tiles(view)["Energy of the facilities"]
    assert "unknown against 2026Q2: lower bounds in" in said
    assert "%" not in said.partition("against")[2]
    line = case.rows(view, "Statement")["Energy of the facilities"]
    assert line[4] == "unknown | lower bounds"


def test_a_change_between_whole_sums_is_printed():
    said = case.tiles(made(WHOLE, WHOLE))["Energy of the facilities"]
    assert "% against 2026Q2" in said
    assert "lower bounds" not in said


@pytest.mark.parametrize(
    ("before", "own", "left"), [(WHOLE, MIXED, "2026Q3"), (MIXED, WHOLE, "2026Q2"), (MIXED, MIXED, "both")]
)
def test_the_bar_chart_leaves_out_totals_with_lower_bounds_and_says_so(before, own, left):
    view = made(before, own)
    names = ["2026Q2", "2026Q3"] if left == "both" else [left]
    drawn = [m.name for m in view.plots[SCOPES].marks] if SCOPES in view.plots else []
    assert not [d for d in drawn if any(n in d for n in names)]
    said = case.words(view, "statement")
    assert "Not drawn, as lower bounds or with such beside them: " in said
    for method in ("location", "market"):
        assert f"Every scope, {method}-based of {', '.join(names)}" in said
        # The trend says the same of its own lines.
        assert f"Every scope, {method}-based of {', '.join(names)}" in case.words(view, "trends")


def test_nothing_is_said_to_be_left_out_of_a_chart_that_draws_all():
    view = made(WHOLE, WHOLE)
    assert len(view.plots[SCOPES].marks) == 4
    assert "Not drawn" not in case.words(view, "statement")


def costing(name, totals, reported=None):
    """Return a statement of that cost by currency."""
    made = of_parts(name, WHOLE)
    known = {c: Estimate(value=v, unit=c) for c, v in totals.items()}
    cost = msgspec.structs.replace(made.cost, totals=known)
    figures = [
        Figure(figure_id=f"statement.{name}.cost.total.{c}", estimate=e, label=f"cost in {c}")
        for c, e in known.items()
    ]
    in_one = None
    if reported is not None:
        total = Estimate(value=reported, unit="EUR")
        in_one = ReportedCost(currency="EUR", lines=(), total=total, how=(), rates=(), inputs=())
        figures += in_one.figures(f"statement.{name}.cost", made.cost)
    return msgspec.structs.replace(made, cost=cost, reported_cost=in_one, figures=(*made.figures, *figures))


def of_costs(before, own, reported=None):
    held = {case.BEFORE: costing(case.BEFORE, before), case.QUARTER: costing(case.QUARTER, own, reported)}
    return case.view(held)


def test_every_currency_of_the_quarter_is_in_the_tile_and_the_trend():
    view = of_costs({"EUR": 4.0, "USD": 800.0}, {"EUR": 5.0, "USD": 900.0})
    said = case.tiles(view)["Cost"]
    assert "EUR\N{NO-BREAK SPACE}5" in said
    assert "USD\N{NO-BREAK SPACE}900" in said
    assert [p.name for p in view.plots["trend"].panels if p.name.startswith("Cost")] == [
        "Cost, EUR",
        "Cost, USD",
    ]


def test_a_currency_of_another_quarter_alone_hides_none_of_this_one():
    said = case.tiles(of_costs({"EUR": 4.0}, {"USD": 900.0}))["Cost"]
    assert said.startswith("USD\N{NO-BREAK SPACE}900")


def test_the_cost_in_the_reporting_currency_is_the_tile_where_there_is_one():
    view = of_costs({"EUR": 4.0}, {"EUR": 5.0, "USD": 900.0}, 805.0)
    assert case.tiles(view)["Cost"].startswith("EUR\N{NO-BREAK SPACE}805")
    line = case.rows(view, "Statement")["Cost of every currency, in EUR"]
    assert line[0] == "EUR\N{NO-BREAK SPACE}805"


def test_a_quarter_known_as_a_lower_bound_alone_says_the_bound():
    view = made(WHOLE, BOUND)
    said = case.tiles(view)
    for name in ("Energy of the facilities", "Every scope, location-based", "Every scope, market-based"):
        assert not said[name].startswith("unknown"), name
        assert "lower bound" in said[name]
    value = said["Energy of the facilities"].partition(" | ")[0]
    assert value in view.title
    assert "unknown" not in view.title


def note_of(view, name):
    (found,) = (b.table for s in view.document.sections for b in s.tables if b.name == name)
    return "".join(p.text for p in found.note)


def test_a_quarter_of_lower_bounds_alone_has_no_sum_to_stand_beside():
    view = case.view({case.QUARTER: of_parts(case.QUARTER, BOUND)})
    lines = case.rows(view, "Statement")
    assert [name for name in lines if "nergy" in name] == ["Energy of the facilities, known as at least"]
    assert not [name for name in lines if name.startswith("beside it")]


def test_lines_without_a_known_total_are_not_said_to_add_up():
    assert "add up" not in note_of(of_scopes((None,) * 4, (None,) * 4), "Statement")


def test_the_page_of_a_quarter_of_sums_says_that_they_add_up():
    both = made(WHOLE, MIXED)
    assert "add up to its total" in note_of(both, "Statement")
    assert {"Energy of the facilities", "beside it, known as at least"} <= case.rows(both, "Statement").keys()


@pytest.mark.parametrize("entity", ["One AG", ""])
def test_the_line_about_the_quarter_begins_as_a_sentence_does(entity):
    whole = msgspec.structs.replace(of_parts(case.QUARTER, WHOLE), entity=entity)
    about = case.words(case.view({case.QUARTER: whole}), "statement").splitlines()[2]
    assert about.startswith(f"{entity}: attributable" if entity else "Attributable")


def test_a_quarter_without_factors_says_so_and_prints_no_empty_table():
    view = case.view({case.QUARTER: of_parts(case.QUARTER, WHOLE)})
    assert "No factor stands behind any figure" in case.words(view, "method")
    assert all(b.table.rows for s in view.document.sections for b in s.tables)


def test_a_title_without_known_emissions_says_what_is_unknown():
    title = of_scopes((None,) * 4, (None,) * 4).title
    assert title == "2026Q3: energy unknown; emissions unknown"
