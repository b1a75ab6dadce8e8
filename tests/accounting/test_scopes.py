"""Scope and category by kind of site, and what lies upstream."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from carbonlens.accounting.propagation import exactly, stated
from carbonlens.accounting.scope_totals import Line, span_shares, totals
from carbonlens.accounting.scopes import (
    CAPITAL_GOODS,
    FUEL_AND_ENERGY,
    LEASED_ASSETS,
    PURCHASED_SERVICES,
    SCOPE_2,
    UNDECLARED,
    USE_OF_SOLD_PRODUCTS,
    place_of,
    upstream,
    upstream_place,
)
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.site import Site

KWH = exactly(950.0, "kWh")
GRID = stated(0.4, 0.05, "grid:x", "kg/kWh")
SUPPLY = stated(0.1, 0.1, "upstream:x", "kg/kWh")
LOSS = stated(0.05, 0.2, "loss:x", "1")


@pytest.mark.parametrize(
    ("kind", "control", "place", "label"),
    [
        ("own", None, SCOPE_2, "scope 2"),
        ("cloud", None, PURCHASED_SERVICES, "scope 3 category 1"),
        ("customer", None, USE_OF_SOLD_PRODUCTS, "scope 3 category 11"),
        ("colocation", "operational", SCOPE_2, "scope 2"),
        ("colocation", "none", LEASED_ASSETS, "scope 3 category 8"),
    ],
)
def test_a_site_has_its_scope(kind, control, place, label):
    assert place_of(Site(site_id="s", kind=kind, control=control)) == (place, ())
    assert place.label == label


def test_a_colocation_without_control_is_no_scope_but_a_finding():
    place, findings = place_of(Site(site_id="colo-1", kind="colocation"))
    assert (place, place.key) == (UNDECLARED, "scope_undeclared")
    assert [(f.code, f.severity, f.subject) for f in findings] == [("CL388", "error", "colo-1")]


def test_upstream_is_category_3_of_own_electricity_only():
    assert upstream_place(SCOPE_2) == FUEL_AND_ENERGY
    assert upstream_place(PURCHASED_SERVICES) == PURCHASED_SERVICES


def test_fuel_supply_and_losses():
    found = upstream(KWH, GRID, SUPPLY, LOSS, span="direct", input_ids=("grid:x",))
    assert found.supply_kg.value == pytest.approx(95)
    # 950 kWh arrive of 1000 sent: 50 are lost, generated and supplied like the others.
    assert found.transmission_kg.value == pytest.approx(50 * 0.5)
    assert set(found.transmission_kg.u_by_source) == {"grid:x", "upstream:x", "loss:x"}
    assert found.findings == ()
    assert [f.inputs for f in found.figures("u", "site.facility_kwh")] == [
        ("site.facility_kwh", "grid:x")
    ] * 2


def test_a_life_cycle_factor_holds_the_supply_already():
    found = upstream(KWH, GRID, SUPPLY, LOSS, span="life_cycle")
    assert found.supply_kg.state == "not_applicable"
    assert found.transmission_kg.value == pytest.approx(50 * 0.4)
    assert [f.code for f in found.findings] == ["CL389"]


def test_missing_upstream_factors_are_unknown_or_a_lower_bound():
    nothing = upstream(KWH, GRID, None, None, span="direct")
    assert (nothing.supply_kg.state, nothing.transmission_kg.state) == ("unknown", "unknown")
    assert "fuel supply and of grid losses" in nothing.findings[0].message
    least = upstream(KWH, GRID, None, LOSS, span="direct")
    assert (least.transmission_kg.value, least.transmission_kg.state) == (pytest.approx(20), "unbounded")
    assert upstream(KWH, None, SUPPLY, LOSS, span="direct").transmission_kg.state == "unknown"


def line(name, place, location, market, span="direct"):
    kg = [unknown("kg") if x is None else exactly(x, "kg") for x in (location, market)]
    return Line(source_id=name, place=place, location_kg=kg[0], market_kg=kg[1], span=span)


LINES = [
    line("colo", UNDECLARED, 1.0, 1.0),
    line("a", SCOPE_2, 10.0, 4.0),
    line("b", SCOPE_2, 30.0, None, span="life_cycle"),
    line("buy", CAPITAL_GOODS, 5.0, 5.0),
]


def test_sums_by_scope_keep_both_methods_and_leave_nothing_out():
    sums = {(t.place, t.method): t for t in totals(LINES)}
    assert list(sums)[::2] == [(p, "location") for p in (SCOPE_2, CAPITAL_GOODS, UNDECLARED)]
    location, market = sums[SCOPE_2, "location"], sums[SCOPE_2, "market"]
    assert (location.kg.value, location.kg.state) == (40.0, "known")
    assert (market.kg.value, market.kg.state) == (4.0, "unbounded")
    assert sum(t.kg.value for t in totals(LINES) if t.method == "location") == 46.0
    assert {t.at_least_kg.state for t in sums.values()} == {"not_applicable"}


def test_lower_bounds_are_a_line_of_their_own():
    least = replace(LINES[1], location_kg=Estimate(value=7.0, unit="kg", state="unbounded"))
    total = totals([*LINES[1:3], least])[0]
    assert (total.kg.value, total.kg.state) == (40.0, "known")
    assert (total.at_least_kg.value, total.at_least_kg.state) == (7.0, "unbounded")
    alone = totals([least])[0]
    assert (alone.kg.state, alone.at_least_kg.value) == ("not_applicable", 7.0)
    assert [f.figure_id for f in alone.figures("q3")] == ["q3.scope_2.location_at_least_kg"]


def test_sums_are_figures():
    figures = {f.figure_id: f for t in totals(LINES) for f in t.figures("q3")}
    assert list(figures)[:2] == ["q3.scope_2.location_kg", "q3.scope_2.market_kg"]
    assert figures["q3.scope_2.market_kg"].inputs == ("a", "b")
    assert "q3.scope_3_category_2.location_kg" in figures


def test_a_total_over_two_spans_tells_their_shares():
    shares = span_shares(LINES[1:3])
    assert shares == {"direct": 0.25, "life_cycle": 0.75}
    assert span_shares([line("x", SCOPE_2, None, None)]) == {}
    assert span_shares([line("x", SCOPE_2, 1.0, 1.0, span=None)]) == {"not stated": 1.0}
