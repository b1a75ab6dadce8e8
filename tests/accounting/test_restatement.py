"""Restatement: what changed, why, and whether the base year follows."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.accounting.base_year import Change, recalculation
from carbonlens.accounting.restatement import prior_period, restatement, source_name, with_base_year
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.figure import Figure

PREFIX = "statement.2025.total"


def figure(name, value, *inputs, unit="kg", formula="kg = kwh * factor", **errors):
    estimate = Estimate(value=value, unit=unit, u_by_source=errors)
    return Figure(figure_id=name, estimate=estimate, label=name, formula=formula, inputs=inputs)


def figures(factor=0.4, kwh=100.0, formula="kg = kwh * factor", factor_id="grid/DE"):
    return [
        figure("run:a", kwh, unit="kWh"),
        figure(factor_id, factor, unit="kg/kWh"),
        figure("site.kwh", kwh, "run:a", unit="kWh", meter=5.0),
        figure("site.kg", kwh * factor, "site.kwh", factor_id, formula=formula, meter=5.0 * factor),
        figure(f"{PREFIX}.location_kg", kwh * factor, "site.kg", formula="sum", meter=5.0 * factor),
    ]


def made(old, new, **options):
    return restatement("2025", old, new, factor_ids={"grid/DE", "grid/DE-2"}, **options)


def told(result):
    return {r.figure_id: (r.reason, r.causes) for r in result.rows}


def test_a_factor_with_another_value_is_the_reason_all_the_way_up():
    result = made(figures(0.4), figures(0.5))
    assert told(result) == {
        "site.kg": ("factor", ("grid/DE",)),
        f"{PREFIX}.location_kg": ("factor", ("grid/DE",)),
    }
    assert result.same == 1
    row = result.row("site.kg")
    assert (row.delta.value, row.change) == (pytest.approx(10.0), pytest.approx(0.25))
    # The meter's error is the same in both, and cancels but for the factor's change.
    assert row.delta.u_by_source["meter"] == pytest.approx(0.5)


def test_a_factor_of_another_id_is_named_on_both_sides():
    result = made(figures(0.4), figures(0.5, factor_id="grid/DE-2"))
    assert result.row("site.kg").causes == ("grid/DE", "grid/DE-2")
    assert result.row("site.kg").reason == "factor"


def test_another_formula_alone_is_a_change_of_method():
    new = figures(0.4, formula="kg = kwh * factor * 1.1")
    new[3] = figure("site.kg", 44.0, "site.kwh", "grid/DE", formula="kg = kwh * factor * 1.1")
    result = made(figures(0.4), new)
    assert told(result) == {"site.kg": ("method", ())}
    assert "was kg = kwh * factor; is kg" in result.row("site.kg").detail


def test_other_records_alone_are_the_correction_of_an_error():
    result = made(figures(kwh=100.0), figures(kwh=90.0))
    assert {r.reason for r in result.rows} == {"error"}
    assert result.row("site.kwh").causes == ("run:a",)


def test_a_stated_reason_stands():
    result = made(figures(kwh=100.0), figures(kwh=90.0), stated="organic", why="fewer requests")
    assert {(r.reason, r.detail) for r in result.rows} == {("organic", "fewer requests")}


def test_figures_of_one_side_are_rows_without_a_difference():
    result = made(figures(), figures()[:-1])
    (row,) = result.rows
    assert (row.new, row.delta.state, row.change) == (None, "unknown", None)


@given(st.floats(0.01, 10), st.floats(0.01, 10), st.floats(0.01, 10))
def test_a_restatement_there_and_back_changes_nothing(a, b, kwh):
    there, back = made(figures(a, kwh), figures(b, kwh)), made(figures(b, kwh), figures(a, kwh))
    assert {r.figure_id for r in there.rows} == {r.figure_id for r in back.rows}
    for one, two in zip(there.rows, back.rows, strict=True):
        assert one.delta.value == pytest.approx(-two.delta.value)
    assert made(figures(a, kwh), figures(a, kwh)).rows == ()


@pytest.mark.parametrize(
    ("factor", "stated", "threshold", "is_needed", "kg"),
    [
        (0.42, None, 0.05, True, 42.0),
        (0.41, None, 0.05, False, 40.0),
        (0.80, "organic", 0.05, False, 40.0),
        (0.80, None, None, None, 40.0),
    ],
)
def test_the_base_year_follows_its_declared_threshold(factor, stated, threshold, is_needed, kg):
    old = figures(0.4)
    result = made(old, figures(factor), stated=stated)
    result = with_base_year(result, year=2025, old=old, prefix=PREFIX, threshold=threshold)
    found = result.base_year["location"]
    assert (found.is_needed, found.recalculated_kg.value) == (is_needed, pytest.approx(kg))
    assert "market" not in result.base_year


@pytest.mark.parametrize("side", ["old", "new"])
def test_a_sum_beside_lower_bounds_is_no_base_to_hold_a_change_against(side):
    bound = figure(f"{PREFIX}.at_least.location_kg", 3000.0, "run:b")
    old, new = figures(0.4), figures(0.5)
    (old if side == "old" else new).append(bound)
    whole = with_base_year(made(old, new), year=2025, old=old, prefix=PREFIX, threshold=0.05)
    held = whole.base_year["location"]
    assert (held.is_needed, held.change) == (None, None)
    assert [f.code for f in whole.findings] == ["CL385"]


def test_a_restatement_and_a_plain_recalculation_agree():
    old = figures(0.4)
    result = with_base_year(made(old, figures(0.5)), year=2025, old=old, prefix=PREFIX, threshold=0.05)
    change = Change(reason="factor", detail="x", old_kg=old[4].estimate, new_kg=figures(0.5)[4].estimate)
    plain = recalculation(2025, old[4].estimate, [change], 0.05)
    assert result.base_year["location"].change == plain.change


def joules(value):
    return Decimal(value), Estimate(value=float(value), unit="J")


def test_late_records_are_lines_of_the_period_they_were_found_in():
    lines = prior_period(
        "2026Q1",
        {"it": Decimal(100), "device": Decimal(7)},
        {"it": joules(130), "device": joules(7), "facility": joules(5)},
        [("r1", "2026Q2"), ("r2", "2026Q3"), ("r1", "2026Q2")],
    )
    assert [(x.boundary, x.adjustment_j) for x in lines] == [("facility", 5), ("it", 30)]
    assert {x.found_in for x in lines} == {("2026Q2", "2026Q3")}
    assert {x.records for x in lines} == {("r1", "r2")}


def test_energy_that_left_a_closed_period_is_a_negative_line():
    (line,) = prior_period("2026Q1", {"it": Decimal(100)}, {}, [("r1", "2026Q2")])
    assert line.adjustment_j == -100


def test_without_late_records_there_is_no_adjustment():
    assert prior_period("2026Q1", {"it": Decimal(1)}, {"it": joules(2)}, []) == ()


def test_what_was_closed_as_unknown_is_adjusted_by_an_unknown_amount():
    (line,) = prior_period("2026Q1", {"it": None}, {"it": joules(2)}, [("r1", "2026Q2")])
    assert line.adjustment_j is None


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("/home/ann/acme/factors.csv", "factors.csv"),
        ("C:\\ann\\factors.csv", "factors.csv"),
        ("acme/factors/", "factors"),
        ("factors.csv", "factors.csv"),
        ("the factors in force", "the factors in force"),
        ("/", "/"),
    ],
)
def test_the_source_of_figures_is_named_without_its_folders(words, name):
    assert source_name(words) == name
