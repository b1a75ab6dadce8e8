"""Laws of a statement: what is split sums to the whole, in values and in errors that are shared."""

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carbonlens.accounting.boundaries import Overheads
from carbonlens.accounting.demand import Period
from carbonlens.accounting.emissions import Rate
from carbonlens.accounting.propagation import stated
from carbonlens.accounting.site_energy import Activity, SiteTerms, at_facility
from carbonlens.accounting.statement import Given, statement
from carbonlens.domain.certificate import CRITERIA, Certificate
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.site import Site

PERIOD = Period(name="2026-05", months=("2026-05",))
SITES = ("a", "b", "c")


def terms(name):
    """Return a site of its own PUE, host overhead and factor; ``c`` knows no host overhead."""
    n = SITES.index(name)
    site = Site(site_id=name, kind="own", entity="E", market=f"M{n}", zone="DE")
    around = Overheads(
        pue=stated(1.1 + n / 10, 0.02, f"pue:{name}", "1"),
        host=stated(1.2, 0.05, f"host_overhead:{name}", "1") if name != "c" else None,
        pue_id=f"pue:{name}",
        host_id=f"host_overhead:{name}",
    )
    rate = Rate(factor_id=f"f{n}", kg_per_kwh=stated(0.3 + n / 10, 0.1, f"f{n}", "kg/kWh"), span="direct")
    return SiteTerms(
        site_id=name,
        site=site,
        overheads=around,
        location={"2026-05": rate},
        residual={"2026-05": rate},
        span="direct",
        input_ids=(f"f{n}",),
    )


TERMS = {name: terms(name) for name in SITES}


def activity(site, boundary, joules, u, group=None):
    rate = TERMS[site].location["2026-05"].kg_per_kwh
    energy = Estimate(value=joules, unit="J", grade="D", u_by_source={"model": u * joules})
    kwh = energy.scale(1 / 3.6e6, "kWh")
    return Activity(
        site_id=site,
        month="2026-05",
        boundary=boundary,
        energy=energy,
        exact_j=Decimal(joules),
        location=kwh.times(rate, "kg"),
        group=group,
    )


def of(activities, **more):
    return statement(Given(period=PERIOD, activities=tuple(activities), terms=TERMS, **more))


ACTIVITIES = st.lists(
    st.builds(
        activity,
        st.sampled_from(SITES),
        st.sampled_from(["device", "it", "facility"]),
        st.integers(1, 10**12),
        st.floats(0.001, 0.5),
        st.sampled_from(["x", "y"]),
    ),
    min_size=1,
    max_size=20,
)
NAMES = ("facility_kwh", "location_kg", "market_kg")


@settings(max_examples=40)
@given(ACTIVITIES)
def test_lines_sum_to_totals_and_groups_to_the_same(activities):
    made = of(activities, grouped=tuple(activities), label="team")
    for name in NAMES:
        for kind, whole in (("recorded", made.total), ("at_least", made.at_least)):
            for lines in (made.lines, made.groups):
                parts = [x.estimate(name).value for x in lines if x.kind == kind]
                if parts:
                    assert whole.estimate(name).value == pytest.approx(sum(parts), rel=1e-9)


@settings(max_examples=40)
@given(ACTIVITIES)
def test_a_shared_error_adds_up_linearly(activities):
    """One model of all runs: its error in the total is the sum of its errors in the parts."""
    made = of(activities)
    for whole, kind in ((made.total, "recorded"), (made.at_least, "at_least")):
        lines = [x for x in made.lines if x.kind == kind]
        if lines:
            parts = [x.estimate("facility_kwh").u_by_source["model"] for x in lines]
            assert whole.estimate("facility_kwh").u_by_source["model"] == pytest.approx(sum(parts))


@settings(max_examples=40)
@given(ACTIVITIES)
def test_scopes_hold_every_kilogram_once(activities):
    made = of(activities)
    held = [e.value for t in made.scopes if t.method == "location" for e in (t.kg, t.at_least_kg) if e.value]
    total = [x.estimate("location_kg").value for x in (made.total, made.at_least) if x is not None]
    assert sum(held) == pytest.approx(sum(v for v in total if v), rel=1e-9)


@settings(max_examples=40)
@given(ACTIVITIES, st.integers(0, 10**6), st.sampled_from(["2025", "2026", "2026-05"]))
def test_market_based_emissions_of_sites_sum_to_the_blends(activities, mwh, vintage):
    certificate = Certificate(
        certificate_id="go",
        kind="certificate",
        entity="E",
        market="M0",
        energy_mwh=Decimal(mwh),
        period=vintage,
        value_kg_per_kwh=Decimal(0),
        retired="2026-12-01",
        criteria=dict.fromkeys(CRITERIA, True),
    )
    made = of(activities, certificates=(certificate,))
    blends = {b.demand.market: b for b in made.blends}
    for site, held in TERMS.items():
        kg = [x.estimate("market_kg").value for x in made.lines if x.site_id == site]
        if kg:
            assert sum(kg) == pytest.approx(blends[held.site.market].emissions_kg.value, rel=1e-9, abs=1e-9)


def test_overheads_are_applied_once_and_in_their_order():
    kg = Estimate(value=1.0, unit="kg")
    around = TERMS["a"].overheads
    assert at_facility(kg, "facility", around).value == 1.0
    assert at_facility(kg, "it", around).value == pytest.approx(1.1)
    assert at_facility(kg, "device", around).value == pytest.approx(1.1 * 1.2)


def test_device_energy_without_a_host_overhead_is_never_added_to_true_figures():
    made = of([activity("a", "it", 3_600_000, 0.1), activity("c", "device", 3_600_000, 0.1)])
    assert made.total.estimate("facility_kwh").value == pytest.approx(1.1)
    assert made.at_least.estimate("facility_kwh").value == pytest.approx(1.3)
    assert made.at_least.estimate("facility_kwh").state == "unbounded"


def test_a_site_of_a_reserved_name_keeps_its_figures():
    held = {"total": SiteTerms(site_id="total", overheads=TERMS["a"].overheads)}
    one = Activity(
        site_id="total", month="2026-05", boundary="facility", energy=Estimate(value=3.6e6, unit="J")
    )
    made = statement(Given(period=PERIOD, activities=(one,), terms=held))
    ids = {f.figure_id: f.estimate.value for f in made.figures}
    assert ids["statement.2026-05.site:total.facility_kwh"] == pytest.approx(1.0)
    assert ids["statement.2026-05.total.facility_kwh"] == pytest.approx(1.0)
