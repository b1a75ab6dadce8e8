"""Present value, return and payback: golden figures, laws, and two libraries as oracles."""

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from carbonlens.compare import finance

YEARLY = [-30_000.0, 14_000.0, 14_000.0, 14_000.0]
MONTHLY = [-30_000.0] + [14_000.0 / 12] * 36

rates = st.floats(-0.3, 1.0)
amounts = st.floats(0.01, 1e6)
gains = st.lists(amounts, min_size=1, max_size=60)


def test_golden_figures_of_yearly_flows():
    assert finance.net_present_value(0.08, YEARLY, 1) == pytest.approx(6_079.36, abs=0.005)
    assert finance.internal_rates(YEARLY, 1).rate == pytest.approx(0.18913, abs=5e-6)
    assert finance.payback(YEARLY, 1) == pytest.approx(2.143, abs=5e-4)
    assert finance.discounted_payback(0.08, YEARLY, 1) == pytest.approx(2.453, abs=5e-4)


def test_golden_figures_of_monthly_flows():
    assert finance.net_present_value(0.08, MONTHLY) == pytest.approx(7_383.89, abs=0.005)
    assert finance.payback(MONTHLY) == pytest.approx(2.143, abs=5e-4)
    assert finance.year_end(MONTHLY) == pytest.approx(YEARLY)


def test_a_month_is_discounted_by_the_root_of_a_year_not_by_a_twelfth_of_the_rate():
    assert finance.discount_factor(0.08, 1 / 12) == pytest.approx(1.08 ** (-1 / 12), rel=1e-14)
    assert finance.net_present_value(0.08, [0.0] * 12 + [108.0]) == pytest.approx(100.0)


def test_a_rate_of_nothing_and_one_of_a_hundred_percent():
    assert finance.net_present_value(0.0, YEARLY, 1) == pytest.approx(12_000.0)
    assert finance.discounted_payback(0.0, YEARLY, 1) == pytest.approx(finance.payback(YEARLY, 1))
    assert finance.net_present_value(1.0, YEARLY, 1) == pytest.approx(-30_000 + 7_000 + 3_500 + 1_750)


@pytest.mark.parametrize(
    ("flows", "outcome", "found"),
    [
        ([100.0, 5.0], "none", ()),
        ([-100.0, -5.0], "none", ()),
        ([0.0, 0.0], "none", ()),
        ([100.0, -150.0, 100.0], "none", ()),
        ([-1000.0, 2500.0, -1540.0], "several", (0.1, 0.4)),
        ([-1.0, 6.0, -11.0, 6.0], "several", (0.0, 1.0, 2.0)),
        ([-1.0, 2.2, -1.21], "one", (0.1,)),
        ([-100.0, 60.0], "one", (-0.4,)),
    ],
)
def test_no_one_and_several_rates_of_return(flows, outcome, found):
    rates = finance.internal_rates(flows, 1)
    assert rates.outcome == outcome
    assert rates.rates == pytest.approx(found, abs=1e-7)
    assert (rates.rate is None) == (outcome != "one")
    assert bool(rates.reason) == (outcome != "one")


def test_a_case_that_falls_below_zero_again_has_not_paid_back_before():
    assert finance.payback([-10.0, 20.0, -15.0, 10.0], 1) == pytest.approx(2.5)
    assert finance.payback([-10.0, 20.0, -15.0], 1) is None
    assert finance.payback([0.0, 5.0], 1) == 0.0
    assert finance.payback([-10.0, 9.0], 1) is None


def test_a_long_horizon_does_not_overflow():
    flows = [-1e9] + [1.0] * 600
    rate = finance.internal_rates(flows).rate
    assert rate is not None
    assert -1 < rate < 0
    assert math.isfinite(finance.net_present_value(-0.5, flows))


@settings(max_examples=60, deadline=None)
@given(paid=amounts, flows=gains)
def test_npv_at_the_internal_rate_is_zero(paid, flows):
    every = [-paid, *flows]
    found = finance.internal_rates(every)
    assume(found.rates)
    value = finance.net_present_value(found.rates[0], every)
    size = sum(abs(f) for f in finance.discounted(found.rates[0], every))
    assert abs(value) <= 1e-9 * size
    assert found.outcome == "one"


@settings(max_examples=60, deadline=None)
@given(paid=amounts, flows=gains, one=rates, other=rates)
def test_npv_of_a_conventional_case_falls_with_the_rate(paid, flows, one, other):
    assume(abs(one - other) > 1e-6)
    low, high = sorted((one, other))
    every = [-paid, *flows]
    assert finance.net_present_value(high, every) < finance.net_present_value(low, every)


@settings(max_examples=60, deadline=None)
@given(flows=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60), rate=rates, by=st.floats(0.01, 100))
def test_npv_scales_and_adds(flows, rate, by):
    value = finance.net_present_value(rate, flows)
    size = sum(abs(f) for f in finance.discounted(rate, flows))
    assert finance.net_present_value(rate, [by * f for f in flows]) == pytest.approx(
        by * value, abs=1e-9 * by * size
    )
    halves = [f / 2 for f in flows]
    assert 2 * finance.net_present_value(rate, halves) == pytest.approx(value, abs=1e-9 * size)


@settings(max_examples=60, deadline=None)
@given(flows=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60), rate=rates, months=st.integers(1, 24))
def test_waiting_divides_npv_by_growth(flows, rate, months):
    later = finance.net_present_value(rate, [0.0] * months + flows)
    size = sum(abs(f) for f in finance.discounted(rate, flows))
    expected = finance.net_present_value(rate, flows) * (1 + rate) ** (-months / 12)
    assert later == pytest.approx(expected, abs=1e-9 * size * max(1.0, (1 + rate) ** (-months / 12)))


@settings(max_examples=60, deadline=None)
@given(paid=amounts, flows=gains, by=st.floats(0.01, 100))
def test_return_and_payback_do_not_know_the_size_of_the_money(paid, flows, by):
    every = [-paid, *flows]
    assume(abs(sum(every)) > 1e-6 * paid)
    scaled = [by * f for f in every]
    one, other = finance.internal_rates(every), finance.internal_rates(scaled)
    assert one.rates == pytest.approx(other.rates, rel=1e-6, abs=1e-9)
    assert finance.payback(scaled) == (
        pytest.approx(p) if (p := finance.payback(every)) is not None else None
    )


@settings(max_examples=40, deadline=None)
@given(paid=amounts, flows=gains, rate=st.floats(0.0, 1.0))
def test_the_discounted_payback_is_never_the_shorter_one(paid, flows, rate):
    every = [-paid, *flows]
    plain, late = finance.payback(every), finance.discounted_payback(rate, every)
    assert late is None or (plain is not None and late >= plain - 1e-9)


@settings(max_examples=30, deadline=None)
@given(
    paid=st.floats(10, 1e5), flows=st.lists(st.floats(1, 1e5), min_size=2, max_size=24), rate=st.floats(0, 1)
)
def test_numpy_financial_agrees(paid, flows, rate):
    oracle = pytest.importorskip("numpy_financial", reason="the oracle is not installed")
    every = [-paid, *flows]
    assert finance.net_present_value(rate, every, 1) == pytest.approx(
        oracle.npv(rate, every), abs=1e-6 * paid
    )
    found = finance.internal_rates(every, 1)
    theirs = float(oracle.irr(every))
    if found.rate is not None and math.isfinite(theirs) and -0.9 < found.rate < 100:
        assert found.rate == pytest.approx(theirs, rel=1e-6, abs=1e-8)


def test_scipy_agrees_on_the_golden_rate():
    optimize = pytest.importorskip("scipy.optimize", reason="the oracle is not installed")
    root = optimize.brentq(lambda r: sum(f / (1 + r) ** (n / 12) for n, f in enumerate(MONTHLY)), 0, 5)
    assert finance.internal_rates(MONTHLY).rate == pytest.approx(root, rel=1e-9)
