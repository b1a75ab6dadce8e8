"""Savings that last: adjusted to volume, mix and PUE of the period, and judged by what is sure of them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.compare.drivers_bridge import Side
from carbonlens.compare.drivers_savings import (
    Pair,
    at_rate,
    avoided_kwh,
    daily_k,
    fractional_savings_uncertainty,
    independent_points,
    interval_sigma,
    judged,
    model_sigma,
    scatter_of,
)
from carbonlens.domain.drivers_savings import Scatter
from carbonlens.domain.estimate import Estimate, unknown


def kwh(value, u=0.0, source="sensor"):
    return Estimate(value=value, unit="kWh", u_by_source={source: u} if u else {})


def side(units, it, pue=1.0, u=0.0, source="sensor"):
    energy = kwh(it, u * it, source)
    return Side(units=units, it_kwh=energy, facility_kwh=energy.scale(pue, "kWh"), amount=energy)


@given(st.floats(0.1, 100), st.floats(0.1, 10))
def test_twice_the_work_at_the_same_energy_per_unit_saves_nothing(times, pue):
    pair = Pair(side(100.0, 50.0, 1.5), side(100.0 * times, 50.0 * times, pue))
    found = avoided_kwh([pair], None, 0.0)
    assert found.saving_kwh.value == pytest.approx(0.0, abs=1e-9 * times * pue)
    assert found.adjusted_kwh.value == pytest.approx(50.0 * times * pue)


def test_a_saving_takes_the_pue_of_the_period_and_no_gain_of_the_building():
    """The PUE fell from 2 to 1.25, the energy per unit by 10 %: only the latter is the initiative's."""
    found = avoided_kwh([Pair(side(100.0, 50.0, 2.0), side(200.0, 90.0, 1.25))], None, 0.0)
    assert found.saving_kwh.value == pytest.approx((100.0 - 90.0) * 1.25)
    assert found.measured_kwh.value == pytest.approx(112.5)


def test_a_non_routine_adjustment_is_added_to_the_baseline():
    found = avoided_kwh([Pair(side(100.0, 50.0), side(100.0, 60.0))], None, 15.0)
    assert found.saving_kwh.value == pytest.approx(5.0)
    assert found.adjusted_kwh.value == pytest.approx(65.0)


@pytest.mark.parametrize("days", [2, 3, 6, 46])
def test_the_interval_of_few_days_is_students(days):
    """As wide at 95 % as ASHRAE's own formula: with two days 6.5 times what a normal one would be."""
    scatter = Scatter(days=days, reporting_days=40, classes=1, autocorrelation=0.0, cv=0.05)
    k = daily_k(3)
    sigma = interval_sigma(scatter, k)
    saving = avoided_kwh([Pair(side(100.0, 50.0), side(100.0, 40.0))], sigma, 0.0).saving_kwh
    wanted = fractional_savings_uncertainty(scatter, 10.0 / 50.0, 0.95, k)
    assert (saving.high - saving.value) / saving.value == pytest.approx(wanted)
    assert interval_sigma(scatter, k) > model_sigma(scatter, k)


def test_too_few_days_give_no_interval():
    alone = Scatter(days=1, reporting_days=40, classes=1, autocorrelation=0.0, cv=0.05)
    assert interval_sigma(alone, 1.0) is None


def test_the_gain_of_a_meter_that_both_periods_share_cancels_as_far_as_it_is_shared():
    pair = Pair(side(100.0, 50.0, u=0.05), side(100.0, 40.0, u=0.05))
    shared = avoided_kwh([pair], None, 0.0).saving_kwh
    apart = avoided_kwh([pair._replace(reporting=side(100.0, 40.0, u=0.05, source="b"))], None, 0.0)
    assert shared.u_total == pytest.approx(0.05 * 10.0)
    assert apart.saving_kwh.u_total == pytest.approx(0.05 * math.hypot(50, 40))


def test_how_far_the_days_scatter_widens_a_saving():
    pair = Pair(side(100.0, 50.0), side(100.0, 40.0))
    assert avoided_kwh([pair], 0.1, 0.0).saving_kwh.u_total == pytest.approx(5.0)


def test_kg_and_money_are_those_of_the_periods_own_energy():
    saved = at_rate(kwh(10.0), Estimate(value=30.0, unit="EUR"), kwh(100.0))
    assert (saved.value, saved.unit) == (pytest.approx(3.0), "EUR")


def days(count, per=2.0, swing=0.1):
    """Return days of one class whose energy per unit swings by turns."""
    return {d: {"a": (100.0, 100.0 * per * (1 + (swing if d % 2 else -swing)))} for d in range(count)}


def test_scatter_is_that_of_what_energy_per_unit_leaves():
    found = scatter_of(days(10), 20)
    assert (found.days, found.classes, found.reporting_days) == (10, 1, 20)
    assert found.cv == pytest.approx(0.1 * math.sqrt(10 / 9))
    # By turns too high and too low: less than no correlation counts as none.
    assert found.autocorrelation == pytest.approx(-0.9)
    assert independent_points(10, found.autocorrelation) == 10


def test_days_of_differing_volume_and_mix_leave_nothing_where_energy_per_unit_is_the_same():
    steady = {d: {"a": (10.0 + d, 2.0 * (10 + d)), "b": (5.0 * d, 15.0 * d)} for d in range(8)}
    assert scatter_of(steady, 8).cv == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_days_tell_no_scatter(count):
    assert scatter_of(days(count), 20) is None


def test_correlated_days_count_for_fewer():
    alone = Scatter(days=90, reporting_days=90, classes=1, autocorrelation=0.0, cv=0.05)
    alike = Scatter(days=90, reporting_days=90, classes=1, autocorrelation=0.5, cv=0.05)
    assert independent_points(90, 0.5) == pytest.approx(30)
    assert model_sigma(alike, 1.0) > 1.5 * model_sigma(alone, 1.0)
    wholly = Scatter(days=90, reporting_days=90, classes=1, autocorrelation=1.0, cv=0.05)
    assert model_sigma(wholly, 1.0) is None
    assert daily_k(3) == pytest.approx(1.00286 + 3 * 0.03535 - 9 * 0.00024)


def saving(value, u):
    return Estimate(value=value, unit="kWh", u_random=u, signed=True)


@pytest.mark.parametrize(
    ("found", "claimed", "verdict"),
    [
        (saving(100, 10), 100, "confirmed"),
        (saving(100, 10), 50, "confirmed"),
        (saving(100, 10), 119, "confirmed"),
        (saving(100, 10), 121, "not confirmed"),
        (saving(100, 10), None, "confirmed"),
        (saving(-50, 10), 100, "not confirmed"),
        (saving(-50, 10), None, "not confirmed"),
        (saving(10, 20), 20, "undetermined"),
        # Above 0 at 95 %, and yet more than half of it in doubt at 68 %.
        (saving(10, 5.05), 10, "undetermined"),
        (saving(10, 20), 100, "not confirmed"),
        (unknown("kWh", signed=True), 10, "undetermined"),
        (Estimate(value=10, unit="kWh", bounds=(None, None), signed=True), 10, "undetermined"),
    ],
)
def test_verdicts(found, claimed, verdict):
    got, reason = judged(found, claimed)
    assert got == verdict
    assert reason
