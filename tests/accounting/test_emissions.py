"""A site's emissions by both methods, and the way from a sum back to runs, factors and certificates."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carbonlens.accounting.boundaries import energies, site_overheads
from carbonlens.accounting.demand import Period, Rest, demands_of
from carbonlens.accounting.emissions import Rate, site_emissions
from carbonlens.accounting.market_based import market_based
from carbonlens.accounting.propagation import exactly, stated
from carbonlens.accounting.scope_totals import totals
from carbonlens.accounting.scopes import SCOPE_2
from carbonlens.domain.certificate import CRITERIA, Certificate
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.site import Site
from carbonlens.domain.units import J_PER_KWH

SITES = [
    Site(site_id=name, kind="own", entity="acme", market="DE", pue=pue, pue_u_relative=0.02)
    for name, pue in (("a", 1.2), ("b", 1.5))
]
GRID = Rate(factor_id="grid:DE", kg_per_kwh=stated(0.4, 0.1, "grid:DE", "kg/kWh"), span="direct")
REST = Rest(residual=stated(0.6, 0.1, "residual:DE", "kg/kWh"), residual_id="residual:DE")
WIND = Certificate(
    certificate_id="go-1",
    kind="certificate",
    entity="acme",
    market="DE",
    energy_mwh=Decimal("0.135"),
    period="2026",
    value_kg_per_kwh=Decimal(0),
    retired="2026-12-01",
    criteria=dict.fromkeys(CRITERIA, True),
)


def accounted(kwh=(100.0, 100.0), certificates=(WIND,)):
    """Return blend and emissions of both sites for a quarter."""
    measured = {
        s.site_id: energies(
            Estimate(value=v * J_PER_KWH, unit="J", u_by_source={"model": 0.3 * v * J_PER_KWH}),
            "it",
            site_overheads(s),
            (f"run-{s.site_id}",),
        )
        for s, v in zip(SITES, kwh, strict=True)
    }
    demands, _ = demands_of(
        SITES,
        {k: e.facility_kwh for k, e in measured.items()},
        period=Period(name="2026Q3", months=("2026-07", "2026-08", "2026-09")),
        rests={"DE": REST},
    )
    blend = market_based(demands, certificates).blends[0]
    rate = Rate(factor_id=blend.factor_id, kg_per_kwh=blend.rate)
    found = [site_emissions(s, measured[s.site_id], GRID, rate, prefix=f"site.{s.site_id}") for s in SITES]
    return blend, found


def test_both_methods_are_kept_under_the_sites_scope():
    blend, found = accounted()
    assert [e.line.location_kg.value for e in found] == pytest.approx([48, 60])
    assert [e.line.market_kg.value for e in found] == pytest.approx([120 * 0.3, 150 * 0.3])
    assert {e.line.place for e in found} == {SCOPE_2}
    assert all(e.findings == () for e in found)
    location, market = (t.kg for t in totals(e.line for e in found))
    assert (location.value, market.value) == (pytest.approx(108), pytest.approx(blend.emissions_kg.value))
    # One model and one factor are behind both sites: their errors do not average away.
    assert location.u_by_source["model"] == pytest.approx(0.3 * 108)
    assert location.u_by_source["grid:DE"] == pytest.approx(0.1 * 108)


@given(st.tuples(st.floats(1, 1e6), st.floats(1, 1e6)), st.integers(0, 2000))
def test_the_sites_market_based_emissions_sum_to_the_blends(kwh, mwh):
    certificate = replace(WIND, energy_mwh=Decimal(mwh))
    blend, found = accounted(kwh, (certificate,))
    total = sum(e.line.market_kg.value for e in found)
    assert total == pytest.approx(blend.emissions_kg.value, abs=1e-6)


def test_missing_factors_are_unknown_and_said():
    site = Site(site_id="colo", kind="colocation")
    energy = energies(exactly(3.6e6, "J"), "device", site_overheads(site))
    found = site_emissions(site, energy, None, None, prefix="site.colo")
    assert {found.line.location_kg.state, found.line.market_kg.state} == {"unknown"}
    assert [f.code for f in found.findings] == ["CL303", "CL304", "CL388", "CL305", "CL306"]
    known = site_emissions(site, energy, GRID, None, prefix="site.colo")
    assert (known.line.location_kg.value, known.line.location_kg.state) == (pytest.approx(0.4), "unbounded")


def test_every_figure_leads_to_runs_factors_and_certificates():
    blend, found = accounted()
    made = [
        *(f for t in totals(e.line for e in found) for f in t.figures("q3")),
        *(f for e in found for f in e.figures()),
        *blend.figures("market.DE"),
    ]
    figures = {f.figure_id: f for f in made}
    assert len(figures) == len(made)

    def leaves(name):
        return {name} if name not in figures else {x for i in figures[name].inputs for x in leaves(i)}

    assert leaves("q3.scope_2.location_kg") == {"run-a", "run-b", "pue:a", "pue:b", "grid:DE"}
    market = leaves("q3.scope_2.market_kg")
    assert market == {"run-a", "run-b", "pue:a", "pue:b", "go-1", "residual:DE"}
