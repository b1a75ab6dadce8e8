"""What stands for a metered site: months add up to their quarter, and no gap is a saving."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.accounting.metered import each_once, metered
from carbonlens.accounting.site_energy import Activity, SiteTerms
from carbonlens.accounting.standing import standing
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.site import Meter
from carbonlens.domain.units import US_PER_HOUR
from tests.accounting.test_metered import JANUARY, MAIN, reading

MONTHS = {"2026-01": (0, 31), "2026-02": (31, 59), "2026-03": (59, 90)}
DAY = 24 * US_PER_HOUR
TERMS = {"lab": SiteTerms(site_id="lab")}
BILL = Meter(meter_id="bill:lab", site="lab", boundary="facility", covers="site")


def span(first, last):
    return JANUARY + first * DAY, JANUARY + last * DAY


def of_runs(month, kwh):
    energy = Estimate(value=kwh * 3.6e6, unit="J")
    return Activity(site_id="lab", month=month, boundary="facility", energy=energy)


def stands(readings, runs, days, meters=(MAIN,)):
    counted = each_once(metered(list(meters), readings, *span(*days)))
    return standing(counted, runs, TERMS, "p").get("lab")


def kwh_of(readings, runs, days):
    found = stands(readings, runs, days)
    return sum(r.energy.value for r in runs) / 3.6e6 if found is None else found.facility_kwh.value


@given(
    st.lists(st.tuples(st.integers(0, 89), st.integers(1, 40), st.integers(0, 10**9)), max_size=4),
    st.lists(st.tuples(st.sampled_from(sorted(MONTHS)), st.integers(0, 300)), max_size=4),
)
def test_what_stands_in_months_adds_up_to_what_stands_in_their_quarter(rows, recorded):
    """So the instruments that a quarter takes are those that its months took."""
    at, readings = 0, []
    for start, length, joules in sorted(rows):
        first, last = max(at, start), min(start + length, 90)
        if last > first:
            readings.append(reading(*span(first, last), joules))
            at = last
    runs = [of_runs(month, kwh) for month, kwh in recorded]
    whole = kwh_of(readings, runs, (0, 90))
    parts = [kwh_of(readings, [r for r in runs if r.month == m], days) for m, days in MONTHS.items()]
    assert whole == pytest.approx(sum(parts), abs=1e-6)


def test_a_meter_with_a_gap_gives_a_lower_bound_that_keeps_what_it_counted():
    january = [reading(*span(0, 31), 100 * 3_600_000)]
    found = stands(january, [of_runs("2026-03", 90), of_runs("2026-01", 120)], (0, 90))
    assert (found.facility_kwh.value, found.facility_kwh.state) == (190, "unbounded")
    assert {m: e.value for m, e in found.months.items()} == {"2026-01": 100, "2026-03": 90}
    assert {e.state for e in found.months.values()} == {"unbounded"}


def test_runs_stand_alone_where_a_meter_with_gaps_counted_less():
    half = [reading(*span(0, 10), 3_600_000)]
    assert stands(half, [of_runs("2026-01", 2)], (0, 31)) is None
    assert stands(half, [], (0, 31)).facility_kwh.value == pytest.approx(1)


def test_a_whole_meter_comes_before_the_bill_and_a_whole_bill_before_a_meter_with_gaps():
    billed = reading(*span(0, 31), 1000 * 3_600_000, meter="bill:lab")
    for days, kwh in ((31, 980), (20, 1000)):
        own = reading(*span(0, days), 980 * 3_600_000)
        found = stands([own, billed], [], (0, 31), (MAIN, BILL))
        assert (found.facility_kwh.value, found.is_least) == (pytest.approx(kwh), False)
    assert stands([billed], [], (0, 31), (MAIN, BILL)).facility_kwh.value == pytest.approx(1000)
