"""Gain, offset and lag of a simulated device against a simulated meter."""

from __future__ import annotations

import math

import numpy as np
import pytest

from carbonlens.errors import MeasurementError
from carbonlens.signals.align import align, fit_line
from carbonlens.signals.calibrate import calibrate
from carbonlens.signals.integrate import integrate_power
from carbonlens.signals.profile import Stretches
from carbonlens.signals.sensor import Sensor

S = 1_000_000
TICK_US = 100_000
SENSOR = Sensor(kind="instant", source="GPU-1", update_period_us=TICK_US, duty=1.0)


def load_w(t_us: np.ndarray) -> np.ndarray:
    """Idle and three levels of load, about 5 s each, over and over, out of step with the updates."""
    return np.array([60.0, 150.0, 320.0, 240.0])[(t_us // 5_037_000).astype(int) % 4]


def recorded(gain: float, offset_w: float, lag_us: float, seconds: int = 35, noise_w: float = 0.5):
    """A device that tells ``reading`` with truth = offset + gain reading, ``lag_us`` late."""
    rng = np.random.default_rng(4)
    meter_us = np.arange(-S, seconds * S, 2000.0)
    meter_w = load_w(meter_us + 20 * S)
    device_us = np.arange(0.0, seconds * S, TICK_US) + 13_000
    told = (load_w(device_us - lag_us + 20 * S) - offset_w) / gain + rng.normal(0, noise_w, device_us.size)
    return (device_us.tolist(), told.tolist()), (meter_us.tolist(), meter_w.tolist())


@pytest.mark.parametrize(
    ("gain", "offset_w", "lag_us"), [(1.05, 3.0, 100_000), (0.93, -12.0, 30_000), (1.0, 0.0, 0)]
)
def test_line_and_lag_are_found(gain, offset_w, lag_us):
    found = calibrate(*recorded(gain, offset_w, lag_us), SENSOR, meter_u=0.001)
    assert found.usable
    assert found.gain.value == pytest.approx(gain, abs=4 * found.gain.u_random)
    assert found.offset_w.value == pytest.approx(offset_w, abs=4 * found.offset_w.u_random)
    # A sample tells of a change at the next update: half an update later on average.
    assert found.lag_us.value == pytest.approx(lag_us + TICK_US / 2, abs=2 * found.lag_us.u_random)
    assert found.lag_us.u_random >= TICK_US / math.sqrt(12)
    assert found.gain.u_random < 0.01


def test_corrected_energy_is_that_of_the_meter_within_its_interval():
    device, meter = recorded(1.06, 8.0, 80_000)
    found = calibrate(device, meter, SENSOR, meter_u=0.001)
    raw = integrate_power(*device, 7 * S, 31 * S, SENSOR).estimate
    told = integrate_power(
        device[0], found.correct(device[1]), 7 * S, 31 * S, found.applied_to(SENSOR)
    ).estimate
    truth = load_w(np.arange(7 * S, 31 * S, 1000.0) + 20 * S).sum() / 1000
    assert abs(told.value / truth - 1) < 0.005 < abs(raw.value / truth - 1)
    assert told.low <= truth <= told.high
    assert told.high / told.low < raw.high / raw.low
    assert "meter:GPU-1" in told.u_by_source


def test_gain_errs_about_the_power_it_was_fitted_at():
    found = calibrate(*recorded(1.06, 8.0, 80_000), SENSOR, meter_u=0.0)
    sensor = found.applied_to(SENSOR)
    assert sensor.pivot_w == pytest.approx(found.level_w.value)
    steady = [sensor.pivot_w] * 100
    parts = integrate_power([k * TICK_US for k in range(100)], steady, S, 5 * S, sensor).parts_j
    assert parts.get("gain", 0.0) == pytest.approx(0, abs=1e-9)
    assert parts["offset"] == pytest.approx(found.level_w.u_random * 4)


def test_a_lag_that_rests_on_one_change_is_uncertain():
    meter_us = np.arange(0.0, 20 * S, 2000.0)
    meter_w = np.where(meter_us < 10_030_000, 60.0, 300.0)
    device_us = np.arange(0.0, 20 * S, TICK_US)
    told = np.where(device_us < 10_030_000, 60.0, 300.0) + np.random.default_rng(7).normal(
        0, 1, device_us.size
    )
    once = calibrate(
        (device_us.tolist(), told.tolist()), (meter_us.tolist(), meter_w.tolist()), SENSOR, meter_u=0.001
    )
    often = calibrate(*recorded(1.0, 0.0, 0), SENSOR, meter_u=0.001)
    assert once.lag_us.u_random > 3 * often.lag_us.u_random


def test_a_lag_at_which_little_is_known_does_not_win_by_it():
    rng = np.random.default_rng(5)
    starts = tuple(float(t) for t in range(0, 20 * S, TICK_US))
    ends = tuple(t + TICK_US for t in starts)
    true_j = load_w(np.array(starts)) * 0.1
    device = Stretches(starts, ends, tuple(true_j + rng.normal(0, 0.5, true_j.size)))
    reference = Stretches(starts, ends, tuple(true_j))
    # At the last lags three or four updates are left of 200, all of them at one power.
    found = align(device, reference, [lag * TICK_US for lag in range(-197, 198)])
    assert found.lag_us == 0
    assert found.line.gain == pytest.approx(1, abs=0.05)
    # Nor does one that lies on its line by chance leave the best in doubt.
    known = align(device, reference, [lag * TICK_US for lag in range(-20, 21)])
    assert found.u_lag_us == pytest.approx(known.u_lag_us, abs=TICK_US)


def test_failed_readings_stay_failed():
    found = calibrate(*recorded(1.05, 3.0, 0), SENSOR, meter_u=0.001)
    assert found.correct([None, 100.0])[0] is None


def test_a_load_that_beats_with_the_sensor_gives_no_calibration():
    rng = np.random.default_rng(5)
    meter_us = np.arange(0.0, 30 * S, 2000.0)
    meter_w = np.where((meter_us // 52_000) % 2, 190.0, 60.0)
    device_us = np.arange(0.0, 30 * S, TICK_US)
    told = np.where(((device_us - 10_000) // 52_000) % 2, 180.0, 58.0) + rng.normal(0, 1, device_us.size)
    found = calibrate(
        (device_us.tolist(), told.tolist()), (meter_us.tolist(), meter_w.tolist()), SENSOR, meter_u=0.001
    )
    assert not found.usable
    with pytest.raises(MeasurementError, match="GPU-1"):
        found.correct([100.0])
    with pytest.raises(MeasurementError):
        found.applied_to(SENSOR)


def test_traces_that_do_not_meet_are_refused():
    device, meter = recorded(1.0, 0.0, 0)
    elsewhere = ([t + 10**9 for t in meter[0]], meter[1])
    with pytest.raises(MeasurementError, match="no three updates in common"):
        calibrate(device, elsewhere, SENSOR, meter_u=0.001)


def test_line_against_the_textbook():
    rng = np.random.default_rng(6)
    x = rng.uniform(50, 300, 400)
    y = 5 + 1.1 * x + rng.normal(0, 3, x.size)
    line = fit_line(x.tolist(), y.tolist())
    slope, cut = np.polyfit(x, y, 1)
    assert line.gain == pytest.approx(slope)
    assert line.level - line.gain * line.pivot == pytest.approx(cut)
    expected = 3 / math.sqrt(((x - x.mean()) ** 2).sum())
    assert line.u_gain == pytest.approx(expected, rel=0.2)
    assert line.explained == pytest.approx(np.corrcoef(x, y)[0, 1] ** 2)


def test_residuals_that_are_alike_count_for_less():
    rng = np.random.default_rng(8)
    x, noise = rng.uniform(50, 300, 100), rng.normal(0, 3, 100)
    alone = fit_line(x.tolist(), (x + noise).tolist())
    fourfold = fit_line(np.repeat(x, 4).tolist(), np.repeat(x + noise, 4).tolist())
    assert fourfold.n_free < 0.3 * fourfold.n
    assert alone.u_gain <= fourfold.u_gain <= 1.5 * alone.u_gain


def test_no_line_through_one_power():
    assert fit_line([1.0, 1.0, 1.0, 1.0], [1.0, 2.0, 3.0, 4.0]) is None
    assert fit_line([1.0, 2.0], [1.0, 2.0]) is None
