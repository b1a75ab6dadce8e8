"""Effort over saving with Fieller's interval."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.compare.break_even import break_even, break_evens, fieller
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.units import Z_95


def joules(value, u=0.0, *, state="known", **sources):
    return Estimate(value=value, unit="J", u_random=u, u_by_source=sources, signed=True, state=state)


def quotient(effort, saving):
    return break_even("energy", effort, saving, "image")


def test_a_clear_saving_is_reached():
    got = quotient(joules(100.0, 5.0), joules(2.0, 0.1))
    assert got.outcome == "reached"
    assert got.units.value == 50.0
    assert got.units.unit == "image"
    assert got.units.low < 50.0 < got.units.high


@given(f=st.floats(1, 1e4), uf=st.floats(0, 0.3), s=st.floats(0.1, 100), us=st.floats(0.001, 0.4))
def test_both_ends_lie_on_fiellers_curve(f, uf, s, us):
    low, high = fieller(f, s, (f * uf) ** 2, (s * us) ** 2)
    for r in (low, high):
        if r:
            assert (f - r * s) ** 2 == pytest.approx(Z_95**2 * ((f * uf) ** 2 + (r * s * us) ** 2), rel=1e-6)
    assert low <= f / s <= high


def test_a_common_model_error_cancels():
    plain = quotient(joules(100.0, 5.0), joules(2.0, 0.1))
    modelled = quotient(joules(100.0, 5.0, model=30.0), joules(2.0, 0.1, model=0.6))
    assert (modelled.units.low, modelled.units.high) == pytest.approx((plain.units.low, plain.units.high))
    apart = quotient(joules(100.0, 5.0, a=30.0), joules(2.0, 0.1, b=0.6))
    assert apart.units.low < plain.units.low
    assert apart.units.high is None or apart.units.high > plain.units.high


def test_the_part_that_is_not_common_stays():
    half = quotient(joules(100.0, model=15.0), joules(2.0, model=0.6))
    assert half.units.low < 50.0 < half.units.high


@pytest.mark.parametrize("effort", [0.0, 5.0])
@pytest.mark.parametrize("price", [0.0045, 0.006])
def test_a_price_error_in_the_effort_too_does_not_close_the_interval(price, effort):
    """Ten thousand for engineering beside five for electricity: the price is an error of the saving."""
    alone = quotient(joules(10_000.0), joules(0.01, price=price))
    both = quotient(joules(10_000.0 + effort, price=price * effort / 0.01), joules(0.01, price=price))
    assert both.outcome == alone.outcome == ("reached" if price < 0.005 else "may_never")
    assert both.units.low == pytest.approx(alone.units.low, rel=0.001)
    assert both.units.high == (alone.units.high and pytest.approx(alone.units.high, rel=0.005))


def test_a_source_of_opposite_direction_adds_up():
    """It moves effort up and saving down; the ends solve Fieller's condition with the covariance."""
    got = quotient(joules(1000.0, 10.0, cpu=300.0), joules(3.0, 0.6, cpu=-0.5))
    assert got.outcome == "reached"
    for r in (got.units.low, got.units.high):
        var = 10.0**2 + (0.6 * r) ** 2 + (300.0 + 0.5 * r) ** 2
        assert (1000.0 - 3.0 * r) ** 2 == pytest.approx(Z_95**2 * var)
    assert 95 < got.units.low < 105
    assert 900 < got.units.high < 1000


def test_what_cancels_in_the_quotient_may_still_be_a_loss():
    got = quotient(joules(1000.0, 10.0, price=600.0), joules(2.0, price=1.2))
    assert (got.outcome, got.units.high) == ("may_never", None)
    assert 0 < got.units.low < 500


signed = st.floats(-1, 1)


@given(
    s=st.floats(0.01, 10),
    u=st.floats(0, 1),
    f=st.lists(signed, min_size=3, max_size=3),
    of_s=st.lists(signed, min_size=3, max_size=3),
)
def test_a_saving_that_may_be_a_loss_is_never_reached(s, u, f, of_s):
    effort = joules(100.0, 5.0, **{k: 100 * v for k, v in zip("abc", f, strict=True)})
    saving = joules(s, u * s, **{k: s * v for k, v in zip("abc", of_s, strict=True)})
    got = quotient(effort, saving)
    assert (got.outcome == "reached") == (saving.low > 0) == (got.units.high is not None)


@pytest.mark.parametrize("value", [0.1, -0.05])
def test_a_saving_that_may_be_none_may_never_be_reached(value):
    got = quotient(joules(100.0, 5.0), joules(value, 0.2))
    assert got.outcome == "may_never"
    assert got.units.low > 0
    assert got.units.high is None


@pytest.mark.parametrize(("value", "u"), [(-2.0, 0.1), (0.0, 0.0)])
def test_a_step_that_takes_more_never_earns_back(value, u):
    got = quotient(joules(100.0, 5.0), joules(value, u))
    assert (got.outcome, got.units.value, got.units.state) == ("never", None, "not_applicable")


def test_what_is_unknown_is_unknown():
    for effort, saving in (
        (unknown("J"), joules(2.0)),
        (joules(1.0), unknown("J")),
        (joules(1.0), joules(2.0, state="unknown")),
    ):
        got = quotient(effort, saving)
        assert (got.outcome, got.units.value) == ("unknown", None)


def test_an_effort_that_is_a_lower_bound_gives_at_least():
    got = quotient(joules(100.0, 5.0, state="unbounded"), joules(2.0, 0.1))
    assert got.outcome == "may_never"
    assert (got.units.state, got.units.high) == ("unbounded", None)


def test_a_saving_of_one_round_earns_nothing_back_for_sure():
    saving = Estimate(value=2.0, unit="J", signed=True, bounds=(None, None))
    got = quotient(joules(100.0), saving)
    assert (got.outcome, got.units.value, got.units.low) == ("may_never", 50.0, None)
    assert quotient(joules(100.0), Estimate(value=-2.0, unit="J", bounds=(None, None))).units.value is None


@pytest.mark.parametrize("bounds", [(None, None), (80.0, 125.0)])
def test_an_effort_of_unknown_width_is_not_reached_for_sure(bounds):
    effort = Estimate(value=100.0, unit="J", bounds=bounds)
    got = quotient(effort, joules(2.0, 0.1))
    assert (got.outcome, got.units.value) == ("may_never", 50.0)
    assert (got.units.low, got.units.high) == (None, None)
    assert quotient(effort, joules(-2.0, 0.1)).outcome == "never"
    # A lower bound of unknown width is still a lower bound.
    part = quotient(Estimate(value=100.0, unit="J", bounds=bounds, state="unbounded"), joules(2.0, 0.1))
    assert (part.units.state, part.units.low, part.units.high) == ("unbounded", None, None)


def test_no_effort_is_earned_back_at_once():
    got = quotient(joules(0.0), joules(2.0, 0.1))
    assert (got.outcome, got.units.value) == ("reached", 0.0)


def test_four_measures():
    from tests.compare.study_runs import demo_comparison

    saving = demo_comparison().total
    names = [b.measure for b in break_evens(None, saving, "image")]
    assert names == ["energy", "carbon_location", "carbon_market", "cost"]
    assert {b.outcome for b in break_evens(None, saving, "image")} == {"unknown"}


@pytest.mark.slow
@pytest.mark.parametrize("u_saving", [0.1, 0.4])
def test_the_interval_covers(u_saving):
    rng = np.random.default_rng(3)
    f, s, uf = 100.0, 2.0, 10.0
    us = s * u_saving
    hits = 0
    for one, other in zip(rng.normal(f, uf, 4000), rng.normal(s, us, 4000), strict=True):
        low, high = fieller(max(0.0, one), other, uf**2, us**2)
        hits += low <= f / s and (high is None or f / s <= high)
    assert hits / 4000 == pytest.approx(0.95, abs=0.015)


SHARED = [
    # Effort with its random error and sources, saving with its own.
    ((1000.0, 10.0, {"cpu": 300.0}), (10.0, 1.0, {"cpu": 3.0})),
    ((1000.0, 10.0, {"cpu": 300.0}), (3.0, 0.6, {"cpu": -0.5})),
    ((1000.0, 10.0, {"cpu": 100.0}), (10.0, 0.6, {"cpu": 3.0})),
    ((1000.0, 10.0, {"cpu": 300.0}), (10.0, 0.6, {"cpu": 1.0})),
    ((1000.0, 10.0, {"cpu": 200.0}), (1.0, 0.3, {"cpu": 0.4, "gpu": -0.3})),
    ((10_005.0, 10.0, {"price": 2.5}), (0.01, 0.0005, {"price": 0.0045})),
    ((1000.0, 50.0, {"cpu": 100.0, "gpu": 300.0}), (10.0, 1.0, {"cpu": 3.0, "gpu": 1.0})),
    ((10_000.0, 10.0, {}), (0.01, 0.001, {"price": 0.003})),
]


@pytest.mark.parametrize(("effort", "saving"), SHARED)
def test_the_interval_covers_with_shared_sources(effort, saving):
    """Monte Carlo: one draw a source moves both figures, and the true quotient stays inside.

    2,000 draws have a standard error of 0.5 points; a common share that cancels
    leaves the interval somewhat wide where the random part is small (up to 98 %).
    """
    draws = 2000
    rng = np.random.default_rng(5)
    names = sorted({*effort[2], *saving[2]})
    errors = {n: rng.normal(size=draws) for n in names}
    seen = [
        value + u * rng.normal(size=draws) + sum(errors[n] * sources.get(n, 0.0) for n in names)
        for value, u, sources in (effort, saving)
    ]
    true = effort[0] / saving[0]
    hits = 0
    for f, s in zip(*seen, strict=True):
        kept = joules(s, saving[1], **saving[2])
        got = quotient(joules(f, effort[1], **effort[2]), kept)
        assert kept.low > 0 or got.outcome != "reached"
        if got.outcome != "never":
            hits += got.units.low <= true and (got.units.high is None or true <= got.units.high)
    assert 0.93 <= hits / draws <= 0.99
