"""The tally: what is kept of a long window gives what all its readings would."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carbonlens.domain.units import US_PER_S
from carbonlens.metering.pace import period_s
from carbonlens.metering.sensors import Channel, SensorInfo
from carbonlens.metering.tally import Tally

RANGE_J = 1000.0


def info(kind, unit, *, max_range=None, **more):
    return SensorInfo(
        name="s",
        kind=kind,
        unit=unit,
        scope="board",
        boundary="device",
        grade="C",
        update_period_s=0.1,
        channels=(Channel(device="d", component="gpu", max_range=max_range),),
        method="m",
        **more,
    )


def finished(sensor, rows, window_us):
    tally = Tally([sensor])
    for t_us, value in rows:
        tally.add(0, t_us, None if value is None else (value,))
    return tally.finish(window_us)[0][0]


deltas = st.lists(
    st.tuples(st.integers(10_000, 40 * US_PER_S), st.integers(1, 120_000_000), st.booleans()),
    min_size=2,
    max_size=200,
)


@given(deltas)
def test_a_counter_that_wraps_gains_the_sum_of_its_true_deltas(steps):
    t_us, true_uj, rows = 0, 0, [(0, 0.0)]
    for number, (dt_us, duj, fails) in enumerate(steps, 1):
        t_us += dt_us
        true_uj += duj
        # Four readings in a row may fail: less than half a range passes meanwhile.
        failed = fails and number % 5 and number != len(steps)
        rows.append((t_us, None if failed else (true_uj % (RANGE_J * 1e6)) / 1e6))
    found = finished(info("cumulative", "J", max_range=RANGE_J), rows, t_us)
    assert found.amount == pytest.approx(true_uj / 1e6, abs=1e-3)
    assert found.covered_s == pytest.approx(t_us / US_PER_S)


@given(
    st.lists(st.floats(1, 500), min_size=3, max_size=60),
    st.integers(1, 58),
    st.sampled_from([1_000, 10_000, US_PER_S]),
)
def test_a_reset_leaves_out_what_nobody_knows_and_no_more(gains, at, step_us):
    at = min(at, len(gains) - 1)
    rows, total, value = [(0, 100_000.0)], 0.0, 100_000.0
    for k, gain in enumerate(gains, 1):
        if k == at:
            value = gain / 10
        else:
            value += gain
            total += gain
        rows.append((k * step_us, value))
    found = finished(info("cumulative", "J"), rows, len(gains) * step_us)
    assert found.amount == pytest.approx(total, rel=1e-9, abs=1e-6)
    # Also where it fell right after the first reading: that one gains nothing, but the time is lost.
    assert found.covered_s == pytest.approx((len(gains) - 1) * step_us / US_PER_S)
    (said,) = (f.message for f in found.findings if f.code == "CL123")
    assert f"the energy of {step_us / US_PER_S:g} s is not known" in said


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0, 700), min_size=1, max_size=20), st.floats(0.5, 40))
def test_power_over_many_stretches_is_exact_for_a_piecewise_constant_signal(levels, hold_s):
    rows, t_s, energy = [], 0.0, 0.0
    for watts in levels:
        end = t_s + hold_s
        while t_s < end - 1e-9:
            rows.append((round(t_s * US_PER_S), watts))
            step = min(period_s(t_s, power=True), end - t_s)
            energy += watts * step
            t_s += step
    window_us = round(t_s * US_PER_S)
    found = finished(info("instant", "W"), rows, window_us)
    assert found.amount == pytest.approx(energy, rel=1e-5, abs=1e-2)
    assert found.covered_s == pytest.approx(t_s, rel=1e-5)


def test_a_week_of_counter_readings_keeps_few_of_them():
    tally = Tally([info("cumulative", "J")])
    step_us = 10 * US_PER_S
    for k in range(7 * 8640):
        tally.add(0, k * step_us, (3000.0 * k,))
    counter = tally._channels[0][0]
    assert len(counter._kept) < 7 * 1440 + 10
    assert tally.finish(7 * 8640 * step_us)[0][0].amount == pytest.approx(3000.0 * (7 * 8640 - 1))


def test_an_hour_of_power_keeps_the_last_minute():
    tally, t_s = Tally([info("instant", "W")]), 0.0
    while t_s < 3600:
        tally.add(0, round(t_s * US_PER_S), (250.0,))
        t_s += period_s(t_s, power=True)
    assert len(tally._channels[0][0]._samples) < 700
    assert tally.finish(3600 * US_PER_S)[0][0].amount == pytest.approx(900_000)


def test_readings_that_come_late_are_dropped():
    found = finished(info("cumulative", "J"), [(0, 1.0), (10, 3.0), (5, 2.0), (20, 4.0)], 20)
    assert found.amount == pytest.approx(3.0)


def test_a_tally_that_is_finished_takes_nothing_more():
    tally = Tally([info("cumulative", "J")])
    tally.add(0, 0, (1.0,))
    tally.add(0, US_PER_S, (2.0,))
    tally.finish(US_PER_S)
    tally.add(0, 2 * US_PER_S, (5.0,))
    assert tally.finish(US_PER_S)[0][0].amount == pytest.approx(1.0)
