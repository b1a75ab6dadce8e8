"""Matching by the hour beside matching over the period."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carbonlens.accounting.hourly_matching import (
    clean_by_hour,
    hourly_kg,
    hourly_match,
    load_weighted_rate,
    unweighted_kg,
)
from carbonlens.accounting.propagation import exactly, stated
from carbonlens.domain.certificate import Certificate
from carbonlens.domain.estimate import Estimate, unknown

RESIDUAL = stated(0.5, 0.1, "residual", "kg/kWh")
WIND = Certificate(
    certificate_id="wind",
    kind="contract",
    entity="e",
    market="m",
    energy_mwh=Decimal("0.04"),
    period="2026",
    value_kg_per_kwh=Decimal(0),
    hourly_mwh={1: Decimal("0.02"), 2: Decimal("0.02")},
)


def loads(*kwh):
    return {h: exactly(v, "kWh") for h, v in enumerate(kwh)}


def clean(*kwh):
    return {h: Decimal(v) for h, v in enumerate(kwh)}


def test_a_surplus_of_one_hour_serves_no_other():
    match = hourly_match(loads(10, 10, 10, 10), clean(20, 15, 5, 0), RESIDUAL)
    assert (match.matched_kwh.value, match.score.value) == (25.0, 0.625)
    assert (match.annual_matched_kwh.value, match.annual_kg.value) == (40.0, 0.0)
    assert match.hourly_kg.value == pytest.approx(7.5)
    assert match.hourly_kg.u_by_source == {"residual": pytest.approx(0.75)}
    assert match.findings == ()


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=48))
def test_the_score_is_the_sum_of_minima_over_the_load(hours):
    match = hourly_match(loads(*(x for x, _ in hours)), clean(*(c for _, c in hours)), exactly(0.5, "kg/kWh"))
    load, least = sum(x for x, _ in hours), sum(min(x, c) for x, c in hours)
    supply = sum(c for _, c in hours)
    assert match.matched_kwh.value == pytest.approx(least)
    assert match.score.value == (pytest.approx(least / load) if load else None)
    assert match.hourly_kg.value == pytest.approx(0.5 * (load - least))
    assert match.annual_kg.value == pytest.approx(0.5 * max(load - supply, 0))
    assert match.annual_matched_kwh.value == pytest.approx(min(load, supply))
    assert match.hourly_kg.value >= match.annual_kg.value - 1e-9


def test_a_common_error_of_the_load_is_in_the_score():
    load = {h: Estimate(value=10.0, unit="kWh", u_by_source={"gain": 1.0}) for h in range(2)}
    match = hourly_match(load, clean(20, 5), RESIDUAL)
    # Score (10 g + 5) / (20 g): its slope over the gain g is -5/20.
    assert match.score.value == pytest.approx(0.75)
    assert match.score.u_by_source["gain"] == pytest.approx(-0.25 * 0.1)
    assert match.hourly_kg.u_by_source == pytest.approx({"gain": 0.5, "residual": 0.25})


def test_unknown_hours_and_an_unknown_residual_mix():
    load = {**loads(10, 10), 2: unknown("kWh")}
    match = hourly_match(load, clean(5, 20, 10), RESIDUAL)
    assert match.score.state == "unknown"
    assert (match.matched_kwh.value, match.matched_kwh.state) == (15.0, "unbounded")
    assert (match.hourly_kg.value, match.hourly_kg.state) == (2.5, "unbounded")
    assert [f.code for f in match.findings] == ["CL384"]
    assert "1 hour of 3" in match.findings[0].message
    assert hourly_match(loads(10), clean(5), None).hourly_kg.state == "unknown"
    assert hourly_match(loads(10), clean(10), None).hourly_kg.value == 0.0


def test_only_instruments_with_hours_and_without_emissions_are_clean():
    others = [
        replace(WIND, certificate_id="no-hours", hourly_mwh={}),
        replace(WIND, certificate_id="gas", value_kg_per_kwh=Decimal("0.4")),
    ]
    found, ids, findings = clean_by_hour([WIND, replace(WIND, certificate_id="sun"), *others])
    assert found == {1: Decimal(40), 2: Decimal(40)}
    assert ids == ("wind", "sun")
    assert [f.code for f in findings] == ["CL396"]
    assert "no-hours, gas" in findings[0].message
    assert clean_by_hour([WIND])[2] == ()


def test_hours_at_their_own_rates():
    kwh, rates = [1.0, 1.0, 2.0], [0.1, 0.3, 0.5]
    assert hourly_kg(kwh, rates) == pytest.approx(1.4)
    assert unweighted_kg(kwh, rates) == pytest.approx(1.2)
    assert load_weighted_rate(kwh, rates) == pytest.approx(0.35)


def test_figures_rest_on_each_other():
    match = hourly_match(loads(10), clean(5), RESIDUAL, ("site.kwh", "residual"), ("wind",))
    figures = {f.figure_id: f for f in match.figures("h")}
    assert figures["h.score"].inputs == ("h.matched_kwh", "h.load_kwh")
    assert figures["h.load_kwh"].inputs == ("site.kwh", "residual")
    assert figures["h.clean_kwh"].inputs == ("wind",)
    known = {*figures, *match.input_ids, *match.clean_ids}
    assert all(i in known for f in figures.values() for i in f.inputs)


def test_over_the_period_an_hour_without_load_counts_too():
    match = hourly_match(loads(10), {0: Decimal(5), 1: Decimal(5)}, RESIDUAL)
    assert (match.clean_kwh.value, match.matched_kwh.value) == (10.0, 5.0)
    assert (match.annual_matched_kwh.value, match.annual_kg.value) == (10.0, 0.0)
