"""Market-based emissions: the hierarchy, quality, vintage, over-allocation, and the blend."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carbonlens.accounting.demand import Demand, Period, Rest, demands_of
from carbonlens.accounting.instruments import fault, is_close
from carbonlens.accounting.market_based import market_based
from carbonlens.accounting.propagation import exactly, stated
from carbonlens.domain.certificate import CRITERIA, Certificate
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.site import Site

MONTHS = ("2026-07", "2026-08", "2026-09")
REST = Rest(residual=stated(0.5, 0.1, "residual:DE", "kg/kWh"), residual_id="residual:DE")
DEMAND = Demand(
    entity="acme",
    market="DE",
    period=Period(name="2026Q3", months=MONTHS),
    kwh=Estimate(value=100_000.0, unit="kWh", u_by_source={"gain": 5_000.0}),
    rest=REST,
)
CERTIFICATE = Certificate(
    certificate_id="go-1",
    value_kg_per_kwh=Decimal(0),
    kind="certificate",
    entity="acme",
    market="DE",
    energy_mwh=Decimal(40),
    period="2026",
    retired="2026-12-01",
    criteria=dict.fromkeys(CRITERIA, True),
)
PPA = replace(CERTIFICATE, certificate_id="a-ppa", kind="contract", energy_mwh=Decimal(30), retired=None)
SUPPLIER = replace(
    CERTIFICATE,
    certificate_id="tariff",
    kind="supplier",
    energy_mwh=None,
    retired=None,
    value_kg_per_kwh=Decimal("0.2"),
    u_relative=0.05,
)


def one(*certificates, demand=DEMAND):
    made = market_based([demand], certificates)
    return made.blends[0], made


def codes(findings):
    return [f.code for f in findings]


def shape(blend):
    return [(p.source_id, p.kind, p.kwh.value) for p in blend.parts]


def test_the_residual_mix_takes_what_instruments_leave():
    blend, made = one(CERTIFICATE)
    assert shape(blend) == [("go-1", "certificate", 40_000), ("residual:DE", "residual", 60_000)]
    assert blend.emissions_kg.value == pytest.approx(30_000)
    assert blend.rate.value == pytest.approx(0.3)
    assert (made.findings, blend.findings, blend.is_provisional) == ((), (), False)
    assert blend.factor_id == "market:acme:DE:2026Q3"


def test_the_blend_carries_the_errors_of_demand_and_residual_mix():
    blend, _ = one(CERTIFICATE)
    # One kWh more would take the residual mix.
    assert blend.emissions_kg.u_by_source == pytest.approx({"gain": 2500, "residual:DE": 3000})
    # Rate 0.5 * (1 - 40000/E): its slope over E is 0.5 * 40000 / E^2.
    assert blend.rate.u_by_source == pytest.approx({"gain": 0.5 * 40_000 / 1e10 * 5_000, "residual:DE": 0.03})


def test_instruments_count_in_the_order_of_the_hierarchy():
    blend, _ = one(SUPPLIER, PPA, CERTIFICATE)
    assert shape(blend) == [
        ("go-1", "certificate", 40_000),
        ("a-ppa", "contract", 30_000),
        ("tariff", "supplier", 30_000),
    ]
    assert blend.emissions_kg.value == pytest.approx(6_000)
    assert blend.emissions_kg.u_by_source == pytest.approx({"gain": 1000, "tariff": 300})


def test_more_than_the_consumption_is_no_negative_emission():
    blend, made = one(replace(CERTIFICATE, energy_mwh=Decimal(130)))
    assert (blend.emissions_kg.value, blend.rate.value) == (0.0, 0.0)
    assert shape(blend) == [("go-1", "certificate", 100_000)]
    assert made.left_kwh == {"go-1": 30_000}
    assert codes(made.findings) == ["CL391"]
    assert "30 MWh" in made.findings[0].message


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"criteria": {**CERTIFICATE.criteria, "unique_claim": False}}, "unique_claim"),
        ({"criteria": {}}, "ghg_rate, unique_claim"),
        ({"retired": None}, "not retired"),
        ({"energy_mwh": None}, "energy is not stated"),
        ({"period": "2024"}, "no consumption of its entity, market and year"),
        ({"market": "FR"}, "no consumption"),
        ({"entity": "other"}, "no consumption"),
    ],
)
def test_what_does_not_fit_is_not_counted_and_said(change, words):
    blend, made = one(replace(CERTIFICATE, **change))
    assert shape(blend) == [("residual:DE", "residual", 100_000)]
    assert codes(made.findings) == ["CL390"]
    assert words in made.findings[0].message


def test_the_same_instrument_twice_counts_once():
    blend, made = one(CERTIFICATE, CERTIFICATE)
    assert shape(blend)[0] == ("go-1", "certificate", 40_000)
    assert codes(made.findings) == ["CL390"]
    assert "second time" in made.findings[0].message


def test_a_vintage_is_close_in_a_calendar_year_of_the_consumption():
    fiscal = ("2025-12", "2026-01")
    assert is_close(CERTIFICATE, fiscal)
    assert is_close(replace(CERTIFICATE, period="2025-03"), fiscal)
    assert not is_close(replace(CERTIFICATE, period="2024"), fiscal)
    assert fault(CERTIFICATE) is None


def test_vintages_of_the_very_months_go_first():
    march = replace(CERTIFICATE, certificate_id="a-march", period="2026-03", energy_mwh=Decimal(100))
    august = replace(CERTIFICATE, certificate_id="b-august", period="2026-08", energy_mwh=Decimal(100))
    assert shape(one(march, august)[0]) == [("b-august", "certificate", 100_000)]


def test_no_residual_mix_takes_the_average_with_disclosure():
    rest = Rest(average=exactly(0.4, "kg/kWh"), average_id="grid:DE")
    blend, _ = one(CERTIFICATE, demand=replace(DEMAND, rest=rest))
    assert shape(blend)[-1] == ("grid:DE", "average", 60_000)
    assert blend.emissions_kg.value == pytest.approx(24_000)
    assert codes(blend.findings) == ["CL392"]
    assert "disclosed" in blend.findings[0].message


def test_neither_leaves_market_based_emissions_unknown():
    blend, _ = one(CERTIFICATE, demand=replace(DEMAND, rest=Rest()))
    assert (blend.emissions_kg.value, blend.rate.value) == (None, None)
    assert shape(blend)[-1][1:] == ("uncovered", 60_000)
    assert codes(blend.findings) == ["CL393"]
    # Where instruments cover all of it, no other factor is needed.
    covered, _ = one(replace(CERTIFICATE, energy_mwh=Decimal(100)), demand=replace(DEMAND, rest=Rest()))
    assert (covered.emissions_kg.value, covered.findings) == (0.0, ())


def test_an_open_period_is_provisional():
    blend, _ = one(CERTIFICATE, demand=replace(DEMAND, period=replace(DEMAND.period, is_open=True)))
    assert blend.is_provisional
    assert codes(blend.findings) == ["CL394"]
    assert any("provisional" in f.label for f in blend.figures("m"))


def test_an_unknown_demand_and_a_lower_bound():
    blend, made = one(CERTIFICATE, demand=replace(DEMAND, kwh=unknown("kWh")))
    assert (blend.emissions_kg.state, blend.rate.state) == ("unknown", "unknown")
    assert made.left_kwh == {"go-1": 40_000}
    least = one(CERTIFICATE, demand=replace(DEMAND, kwh=replace(DEMAND.kwh, state="unbounded")))[0]
    assert (least.emissions_kg.value, least.emissions_kg.state) == (pytest.approx(30_000), "unbounded")


def test_a_rate_of_unknown_width_leaves_the_blend_without_an_interval():
    blend, _ = one(replace(SUPPLIER, u_relative=None))
    assert (blend.rate.value, blend.rate.low) == (pytest.approx(0.2), None)


def test_a_years_certificate_is_shared_by_the_quarters_and_used_once():
    later = replace(DEMAND, period=Period(name="2026Q4", months=("2026-10", "2026-11", "2026-12")))
    big = replace(CERTIFICATE, energy_mwh=Decimal(150))
    made = market_based([later, DEMAND], [big])
    assert [b.demand.period.name for b in made.blends] == ["2026Q3", "2026Q4"]
    assert [shape(b)[0][2] for b in made.blends] == [100_000, 50_000]
    assert made.blends[1].rate.value == pytest.approx(0.25)
    assert made.findings == ()


@given(
    needs=st.lists(st.integers(1, 10_000), min_size=1, max_size=4),
    held=st.lists(st.tuples(st.integers(1, 10), st.sampled_from(["certificate", "contract"])), max_size=5),
)
def test_parts_sum_to_the_demand_and_no_energy_is_used_twice(needs, held):
    demands = [
        replace(DEMAND, period=Period(name=f"m{n}", months=(f"2026-{n + 1:02d}",)), kwh=exactly(kwh, "kWh"))
        for n, kwh in enumerate(needs)
    ]
    instruments = [
        replace(CERTIFICATE, certificate_id=f"c{n}", kind=kind, energy_mwh=Decimal(mwh))
        for n, (mwh, kind) in enumerate(held)
    ]
    made = market_based(demands, instruments)
    used = dict.fromkeys((c.certificate_id for c in instruments), Decimal(0))
    for blend, need in zip(made.blends, needs, strict=True):
        assert sum(p.kwh.value for p in blend.parts) == pytest.approx(need)
        kg = sum(p.kwh.value * p.rate.value for p in blend.parts)
        assert blend.emissions_kg.value == pytest.approx(kg)
        assert blend.emissions_kg.value >= 0
        for part in blend.parts:
            if part.source_id in used:
                used[part.source_id] += Decimal(part.kwh.value)
    for instrument in instruments:
        name = instrument.certificate_id
        assert used[name] + made.left_kwh[name] == instrument.energy_mwh * 1000
    assert made.blends[-1].emissions_kg.value == pytest.approx(0) or not any(made.left_kwh.values())


def test_demands_are_of_scope_2_sites_by_entity_and_market():
    sites = [
        Site(site_id="a", kind="own", entity="acme", market="DE"),
        Site(site_id="b", kind="colocation", control="operational", entity="acme", market="DE"),
        Site(site_id="c", kind="cloud", entity="acme", market="DE"),
        Site(site_id="d", kind="own", entity="acme"),
        Site(site_id="e", kind="own", entity="acme", market="FR"),
        Site(site_id="unused", kind="own", entity="acme", market="FR"),
    ]
    energy = {s.site_id: exactly(10.0, "kWh") for s in sites[:5]}
    demands, findings = demands_of(sites, energy, period=DEMAND.period, rests={"DE": REST})
    assert [(d.market, d.kwh.value, d.input_ids) for d in demands] == [
        ("DE", 20.0, ("site.a.facility_kwh", "site.b.facility_kwh")),
        ("FR", 10.0, ("site.e.facility_kwh",)),
    ]
    assert [(f.code, f.subject) for f in findings] == [("CL395", "d")]
    assert (demands[0].rest, demands[1].rest) == (REST, Rest())


def test_figures_lead_from_the_rate_to_each_certificate():
    figures = {f.figure_id: f for f in one(CERTIFICATE)[0].figures("m")}
    assert figures["market:acme:DE:2026Q3"].inputs == ("m.emissions_kg", "m.demand_kwh")
    assert figures["m.emissions_kg"].inputs == ("m.part_1_kwh", "m.part_2_kwh")
    assert figures["m.part_1_kwh"].inputs == ("m.demand_kwh", "go-1")
    assert figures["m.part_2_kwh"].inputs == ("m.demand_kwh", "residual:DE")


def test_what_rounding_leaves_of_an_instrument_is_no_surplus():
    demand = replace(DEMAND, kwh=Estimate(value=40_000 * (1 - 3e-16), unit="kWh"))
    _, made = one(CERTIFICATE, demand=demand)
    assert 0 < made.left_kwh["go-1"] < Decimal("1e-6")
    assert made.findings == ()
    little = replace(DEMAND, kwh=Estimate(value=40_000 * (1 - 1e-6), unit="kWh"))
    assert codes(one(CERTIFICATE, demand=little)[1].findings) == ["CL391"]
