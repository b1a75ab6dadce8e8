"""Statements side by side: sums to date, changes, and what is not there."""

import pytest

from carbonlens.accounting.demand import Period
from carbonlens.accounting.emissions import Rate
from carbonlens.accounting.largest_groups import largest_groups
from carbonlens.accounting.periods_compared import compared, every_scope_key, least_key
from carbonlens.accounting.propagation import stated
from carbonlens.accounting.site_energy import Activity, SiteTerms
from carbonlens.accounting.statement import Given, statement
from carbonlens.accounting.unit_energy import per_unit
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.site import Site

NAMES = ("2026Q1", "2026Q2", "2026Q3")
MONTHS = {"2026Q1": "2026-01", "2026Q2": "2026-04", "2026Q3": "2026-07"}


def made(name, kwh, groups=(), boundary="facility"):
    """Return a statement of one own site with a shared factor error."""
    month = MONTHS[name]
    rate = Rate(factor_id="f", kg_per_kwh=stated(0.5, 0.1, "f", "kg/kWh"), span="direct")
    site = Site(site_id="a", kind="own", entity="E", market="M", zone="DE")
    terms = SiteTerms(
        site_id="a",
        site=site,
        location={month: rate},
        residual={month: rate},
        span="direct",
        input_ids=("f",),
    )

    def activity(value, group=None):
        joules = Estimate(value=value * 3.6e6, unit="J", u_random=value * 3.6e4)
        return Activity(
            site_id="a",
            month=month,
            boundary=boundary,
            energy=joules,
            location=stated(value * 0.5, 0.1, "f", "kg"),
            runs=1,
            group=group,
        )

    return statement(
        Given(
            period=Period(name=name, months=(month,)),
            label="team" if groups else None,
            activities=(activity(kwh),),
            grouped=tuple(activity(value, name) for name, value in groups),
            terms={"a": terms},
        )
    )


def three(**kwh):
    held = {n: made(n, kwh[n]) if n in kwh else None for n in NAMES}
    return compared(held, "2026Q3", [n for n in NAMES[:2] if n in kwh], NAMES)


def test_the_year_to_date_is_the_sum_of_its_quarters():
    found = three(**{"2026Q1": 100.0, "2026Q2": 200.0, "2026Q3": 300.0})
    for key, whole in (("total.facility_kwh", 600.0), (every_scope_key("location"), 300.0)):
        series = found.series[key]
        assert series.to_date.estimate.value == pytest.approx(whole)
        assert series.to_date.inputs == tuple(f.figure_id for f in series.by_period.values())


def test_an_error_that_quarters_share_stays_whole_in_the_sum_and_cancels_in_the_change():
    found = three(**{"2026Q1": 100.0, "2026Q2": 300.0, "2026Q3": 300.0})
    series = found.series["scope_2.location_kg"]
    assert series.to_date.estimate.u_by_source["f"] == pytest.approx(0.1 * 350.0)
    absolute, relative = series.change["2026Q2"]
    assert absolute.estimate.u_by_source["f"] == pytest.approx(0.0, abs=1e-9)
    assert relative.estimate.value == pytest.approx(0.0)
    assert series.change["2026Q1"][1].estimate.value == pytest.approx(2.0)


def test_a_quarter_without_a_statement_leaves_the_year_to_date_a_lower_bound():
    series = three(**{"2026Q1": 100.0, "2026Q3": 300.0}).series["total.facility_kwh"]
    assert series.to_date.estimate.state == "unbounded"
    assert series.to_date.estimate.value == pytest.approx(400.0)
    assert set(series.change) == {"2026Q1"}


def test_both_methods_are_there_whenever_one_is():
    found = three(**{"2026Q3": 300.0})
    for key in found.series:
        if "location" in key:
            assert key.replace("location", "market") in found.series


def test_lower_bounds_stand_beside_the_sum_and_are_in_none():
    held = {"2026Q3": made("2026Q3", 300.0, boundary="device")}
    found = compared(held, "2026Q3", (), ("2026Q3",))
    assert every_scope_key("location", is_least=True) in found.series
    assert "scope_2.location_at_least_kg" in found.series
    assert not {"scope_2.location_kg", "total.facility_kwh"} & set(found.series)


def of_parts(name, parts):
    """Return a statement of several sites; ``device`` leaves a site's energy a lower bound."""
    month = MONTHS[name]
    rate = Rate(factor_id="f", kg_per_kwh=stated(0.5, 0.1, "f", "kg/kWh"), span="direct")
    terms, activities = {}, []
    for site_id, kwh, boundary in parts:
        site = Site(site_id=site_id, kind="own", entity="E", market="M", zone="DE")
        rates = {month: rate}
        terms[site_id] = SiteTerms(
            site_id=site_id,
            site=site,
            location=rates,
            residual=rates,
            span="direct",
            input_ids=("f",),
            supply=stated(0.05, 0.01, "s", "kg/kWh"),
            loss=stated(0.06, 0.01, "l", "1"),
        )
        activities.append(
            Activity(
                site_id=site_id,
                month=month,
                boundary=boundary,
                energy=Estimate(value=kwh * 3.6e6, unit="J", u_random=kwh * 3.6e4),
                location=stated(kwh * 0.5, 0.1, "f", "kg"),
                runs=1,
                group=None,
            )
        )
    return statement(
        Given(
            period=Period(name=name, months=(month,)),
            label=None,
            activities=tuple(activities),
            grouped=(),
            terms=terms,
        )
    )


WHOLE, MIXED, BOUND = (
    [("a", 100, first), ("b", 900, second)]
    for first, second in (("facility", "facility"), ("facility", "device"), ("device", "device"))
)


@pytest.mark.parametrize(
    ("before", "own"),
    [(WHOLE, MIXED), (MIXED, WHOLE), (MIXED, MIXED), (WHOLE, BOUND), (BOUND, WHOLE)],
)
def test_a_sum_that_lower_bounds_stand_beside_has_no_known_change(before, own):
    held = {"2026Q2": of_parts("2026Q2", before), "2026Q3": of_parts("2026Q3", own)}
    found = compared(held, "2026Q3", ("2026Q2",), ("2026Q2", "2026Q3"))
    sums = [k for k in found.series if least_key(k) in found.series]
    assert {"total.facility_kwh", "scope_2.location_kg", every_scope_key("market")} <= set(sums)
    for key in sums:
        absolute, relative = found.series[key].change["2026Q2"]
        assert (absolute.estimate.state, absolute.estimate.value) == ("unknown", None), key
        assert (relative.estimate.state, relative.estimate.value) == ("unknown", None), key
        assert "lower bound" in absolute.formula
        named = [n for n in held if n in absolute.formula]
        assert named == [n for n in held if found.has_least(key, n)]
        assert named


def test_whole_sums_have_a_known_change_and_no_words_of_bounds():
    held = {n: of_parts(n, WHOLE) for n in ("2026Q2", "2026Q3")}
    found = compared(held, "2026Q3", ("2026Q2",), ("2026Q2", "2026Q3"))
    absolute, relative = found.series["total.facility_kwh"].change["2026Q2"]
    assert (absolute.estimate.state, relative.estimate.value) == ("known", 0.0)
    assert "lower bound" not in absolute.formula


@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_the_largest_groups_and_the_others_sum_to_all(most):
    groups = [(f"t{n}", 10.0 * n) for n in range(1, 6)]
    whole = made("2026Q3", 150.0, groups)
    kept, others, left = largest_groups(whole, most)
    values = [x.estimate("facility_kwh").value for x in (*kept, *((others,) if others else ()))]
    assert sum(values) == pytest.approx(150.0)
    assert len(kept) + left == len(groups)
    assert values[: len(kept)] == sorted(values[: len(kept)], reverse=True)


def test_a_single_rest_keeps_its_name():
    kept, others, left = largest_groups(made("2026Q3", 30.0, [("x", 10.0), ("y", 20.0)]), 1)
    assert (len(kept), others, left) == (2, None, 0)


@pytest.mark.parametrize(
    ("amount", "count"),
    [(unknown("kWh"), 10.0), (Estimate(value=1.0, unit="kWh"), None), (Estimate(value=1.0, unit="kg"), 0.0)],
)
def test_an_intensity_without_amount_or_count_is_unknown(amount, count):
    assert per_unit(amount, count).state == "unknown"


def test_an_intensity_is_the_amount_over_the_units():
    kwh = Estimate(value=2.0, unit="kWh", u_random=0.2)
    assert per_unit(kwh, 4.0).value == pytest.approx(2.0 * 3.6e6 / 4)
    assert per_unit(kwh, 4.0).u_random == pytest.approx(0.2 * 3.6e6 / 4)
    grams = per_unit(Estimate(value=2.0, unit="kg"), 4.0)
    assert (grams.value, grams.unit) == (500.0, "g")
