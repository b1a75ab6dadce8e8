"""The curve of CPU power over load: shape, fitting, and its stated error on public profiles."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.signals.cpu_curve import (
    TDP_SHARES,
    TDP_SHARES_FACTOR_90,
    TWO_POINTS_FACTOR_90,
    LoadCurve,
    factor_within,
    fit,
    two_points,
)
from tests.signals.cpu_profiles import (
    ABSENT,
    PROFILES,
    bundled_within,
    calibrated,
    cubic,
    errors,
    left_out,
    points,
)

shares = st.floats(min_value=0.01, max_value=1)
needs_profiles = pytest.mark.skipif(not PROFILES.exists(), reason=ABSENT)


def test_power_is_level_above_the_knee():
    curve = LoadCurve(idle=10, full=80, knee=0.5)
    assert [curve.at(x) for x in (0, 0.25, 0.5, 0.8, 1)] == [10, 45, 80, 80, 80]
    with pytest.raises(ValueError, match="between 0 and 1"):
        curve.at(1.2)


@given(idle=shares, full=shares, knee=st.floats(min_value=0.2, max_value=1))
def test_fit_finds_a_curve_from_its_own_points(idle, full, knee):
    curve = LoadCurve(idle=idle, full=full, knee=knee)
    found = fit([(x / 10, curve.at(x / 10)) for x in range(11)], knee)
    assert found.idle == pytest.approx(idle, rel=1e-6)
    assert found.full == pytest.approx(full, rel=1e-6)


def test_fit_is_the_least_of_log_squares():
    told = [(0.0, 10.0), (0.1, 18.0), (0.3, 22.0), (0.5, 41.0), (0.9, 44.0), (1.0, 52.0)]

    def loss(curve):
        return sum(math.log(curve.at(x) / y) ** 2 for x, y in told)

    found = fit(told)
    for a, b in itertools.product((0.99, 1.0, 1.01), repeat=2):
        assert loss(found) <= loss(LoadCurve(idle=found.idle * a, full=found.full * b)) + 1e-12


def test_fit_refuses_what_makes_no_curve():
    with pytest.raises(ValueError, match="two different loads"):
        fit([(0.8, 50.0), (1.0, 50.0)])
    with pytest.raises(ValueError, match="positive power"):
        fit([(0.0, 0.0), (1.0, 50.0)])


def test_two_points_pass_through_both():
    curve = two_points((0.05, 20.0), (0.95, 90.0))
    assert curve.at(0.05) == pytest.approx(20)
    assert curve.at(0.95) == pytest.approx(90)
    with pytest.raises(ValueError, match="do not tell idle from full"):
        two_points((0.8, 60.0), (1.0, 61.0))


def test_factor_holds_the_share_of_points():
    curve = LoadCurve(idle=10, full=10)
    told = [(0.5, 10.0 * f) for f in (1.0, 1.1, 1.2, 0.5, 3.0)]
    assert factor_within(curve, told, 0.8) == pytest.approx(2)
    assert factor_within(curve, told, 1.0) == pytest.approx(3)


@needs_profiles
def test_bundled_curve_is_the_fit_to_the_profiles():
    found = fit([(p.load, p.share) for p in points()])
    assert len(points()) == 86
    assert pytest.approx(found.idle, abs=0.0005) == TDP_SHARES.idle
    assert pytest.approx(found.full, abs=0.0005) == TDP_SHARES.full
    assert bundled_within(TDP_SHARES, 0.9) <= TDP_SHARES_FACTOR_90


@needs_profiles
@pytest.mark.slow
def test_machine_left_out_beats_the_cubic_and_lies_in_the_stated_width():
    found = errors(list(itertools.chain(*left_out().values())))
    other = errors([cubic(p.load) / p.share for p in points()])
    assert other.mean == pytest.approx(0.46, abs=0.005)
    assert found.mean < other.mean
    assert found.factor_90 <= TDP_SHARES_FACTOR_90


@needs_profiles
@pytest.mark.slow
def test_two_points_bring_a_machine_to_a_fifth():
    assert errors(list(itertools.chain(*calibrated().values()))).mean <= 0.20


@needs_profiles
@pytest.mark.slow
def test_two_points_hold_nine_in_ten_within_the_stated_factor():
    assert errors(list(itertools.chain(*calibrated().values()))).factor_90 <= TWO_POINTS_FACTOR_90
