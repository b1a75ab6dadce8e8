"""The stated figures against the external meter (public traces beside the project)."""

from __future__ import annotations

import pytest

from tests.signals.meter_scores import (
    AVERAGE,
    SENSOR,
    cross_scored,
    fitted,
    lengths_s,
    score,
)
from tests.signals.meter_traces import ABSENT, METER, load, windows

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not METER.exists(), reason=ABSENT),
]

MANY = 4000
SOME = 1000


@pytest.fixture(scope="module")
def rtx_3090():
    return load("3090")


@pytest.fixture(scope="module")
def a100():
    return load("A100")


def test_uncalibrated_error_is_the_boards_own_gain(rtx_3090):
    found = score(rtx_3090, SENSOR, windows(rtx_3090.span_us, lengths_s(MANY), seed=1))
    assert found.median <= 0.055


@pytest.mark.parametrize("length_s", [0.1, 0.25, 0.5, 1.0])
def test_at_least_twice_as_good_as_change_point_trapezoid(rtx_3090, length_s):
    found = score(rtx_3090, SENSOR, windows(rtx_3090.span_us, [length_s] * SOME, seed=2))
    assert found.median <= found.change_point / 2


@pytest.mark.parametrize("fit_on", [0, 1])
def test_one_half_calibrates_the_other(rtx_3090, fit_on):
    calibration, found = cross_scored(rtx_3090, fit_on, SOME)
    assert calibration.usable
    assert found.median <= 0.01
    assert found.covered >= 0.93


@pytest.mark.parametrize("board", ["3090", "A100"])
@pytest.mark.parametrize("even", ["length", "logarithm"])
def test_intervals_hold_the_meter_and_are_not_wide(board, even):
    trace = load(board)
    found = score(trace, SENSOR, windows(trace.span_us, lengths_s(SOME, even=even), seed=3))
    assert found.covered >= 0.93
    assert found.width_ratio <= 1.5


@pytest.mark.parametrize("length_s", [0.1, 0.25, 0.5, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("board", ["3090", "A100"])
def test_intervals_hold_the_meter_at_each_length(board, length_s):
    trace = load(board)
    found = score(trace, SENSOR, windows(trace.span_us, [length_s] * SOME, seed=4))
    assert found.covered >= 0.93


def test_averaged_field_is_shifted_for_its_window(rtx_3090):
    averaged = load("3090", "power.draw [W]")
    spans = windows(averaged.span_us, [1.0] * SOME, seed=5)
    found = score(averaged, AVERAGE, spans)
    unshifted = score(averaged, SENSOR, spans)
    assert found.p95 <= unshifted.p95 / 2
    assert found.covered >= 0.93


def test_a_sensor_that_sees_a_quarter_is_not_calibrated_on_a_beating_load(a100):
    found = fitted(a100, a100.span_us, SENSOR)
    assert not found.usable
    assert [f.code for f in found.findings] == ["CL129"]
