"""A meter's own clock is believed only as long as it goes like this machine's."""

import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.domain.run import Run
from carbonlens.errors import MeasurementError
from carbonlens.metering.sealing import Sample, seal
from carbonlens.metering.sensors import VOID
from carbonlens.metering.sensors.external import ExternalSensor
from carbonlens.metering.sensors.meter_lines import ClockCheck, HoldCounter, MeterLine, clock_fault
from tests.instrument.wrapper import wait_until
from tests.metering.meters import collected, meter, printing

STEP_S = 0.05

CLOCKS = {
    "stands still": lambda t_s: 5.0,
    "far in the future": lambda t_s: 1e30,
    "twice too fast": lambda t_s: 2e6 * t_s,
    "a third too slow": lambda t_s: 1e6 * t_s / 1.5,
    "ms instead of us": lambda t_s: 1e3 * t_s,
    "s instead of us": lambda t_s: t_s,
    "ns instead of us": lambda t_s: 1e9 * t_s,
    "jumps about": lambda t_s: 1e6 * t_s + 1e9 * (round(t_s / STEP_S) % 2),
}


def fed(clock, *, seconds=4.0, period_s=None):
    """Return the counter after lines of 50 W, and what it told at each."""
    counter, told = HoldCounter(period_s), []
    for k in range(round(seconds / STEP_S)):
        now_s = k * STEP_S
        counter.take(MeterLine(clock(now_s), 50.0), now_s)
        told.append(counter.tell(now_s))
    return counter, told


@pytest.mark.parametrize("name", CLOCKS)
@pytest.mark.parametrize("period_s", [None, STEP_S])
def test_a_clock_unlike_this_machines_is_found_whatever_the_fault(name, period_s):
    counter, _ = fed(CLOCKS[name], period_s=period_s)
    assert counter.clock_fault is not None


@given(
    st.floats(0.97, 1.03),
    st.floats(-1e12, 1e12),
    st.lists(st.floats(0.0, 0.09), min_size=50, max_size=200),
)
def test_a_true_clock_is_believed_however_its_lines_are_late(rate, zero_us, delays):
    """Whatever its zero, at most 3 % off, with lines late by less than a step or two."""
    check, arrived_s = ClockCheck(), 0.0
    for k, delay_s in enumerate(delays):
        arrived_s = max(arrived_s, k * STEP_S + delay_s)
        check.take(zero_us + rate * k * STEP_S * 1e6, arrived_s)
    assert check.fault is None


def test_lines_in_heaps_a_history_and_a_clock_that_is_set_once_are_no_fault():
    heaps = [(MeterLine(k * 1e5, 50.0), (k // 20 + 1) * 2.0) for k in range(200)]
    assert clock_fault(heaps) is None
    history = [(MeterLine(k * 1e6, 50.0), 100.0) for k in range(100)]
    live = [(MeterLine(k * 1e6, 50.0), float(k)) for k in range(100, 140)]
    assert clock_fault(history + live) is None
    once = [(MeterLine(k * 1e6 + (3.6e9 if k > 20 else 0.0), 50.0), float(k)) for k in range(60)]
    assert clock_fault(once) is None


def printing_clock(expression):
    """Return a meter of 50 W that prints this time of its own."""
    code = f"import time\nwhile True:\n    print(f'{{{expression}}},50', flush=True)\n    time.sleep(0.02)\n"
    return (sys.executable, "-u", "-c", code)


def sealed_of(sensor, seconds):
    """Return what is sealed after that time, and after more where the program started late."""
    samples, start = [], time.monotonic()
    while (t_s := time.monotonic() - start) < seconds or (not sensor.notes() and t_s < 60):
        try:
            values = sensor.read(edge=True)
        except OSError:
            values = None
        samples.append(Sample(t_us=round(t_s * 1e6), values=(values,)))
        time.sleep(0.05)
    return seal([sensor.info], samples, start_us=0, window_us=samples[-1].t_us)


@pytest.mark.parametrize("expression", ["5", "time.monotonic_ns() // 500", "time.monotonic_ns() // 1000000"])
def test_the_figure_of_a_false_clock_is_left_out_and_said(expression):
    sensor = ExternalSensor(meter(printing_clock(expression)))
    try:
        sensor.probe()
        result = sealed_of(sensor, 1.2)
        assert sensor.read(edge=True) == (VOID,)
        assert [f.code for f in sensor.notes()] == ["CL148"]
    finally:
        sensor.close()
    assert Run(run_id="r", energy=result.readings).total_energy.value is None
    assert all(r.energy_j is None for r in (*result.readings, *result.beside))


def test_the_doctor_and_a_calibration_refuse_a_false_clock():
    sensor = ExternalSensor(meter(printing_clock("time.monotonic_ns() // 1000000")), wait_s=60)
    try:
        sensor.probe()
        wait_until(lambda: not sensor.probe().usable, 60)
        probe = sensor.probe()
        assert not probe.usable
        assert "clock" in probe.reason
        assert probe.mend
    finally:
        sensor.close()
    with pytest.raises(MeasurementError, match="clock"):
        collected(meter(printing_clock("7")), enough=1000)


def test_the_spacing_that_was_seen_is_told_unless_one_is_declared():
    sensor = ExternalSensor(meter(printing()))
    begin_s = time.monotonic()
    try:
        sensor.probe()
        wait_until(lambda: sensor.seen_period_s, 60)
        assert 0.015 < sensor.seen_period_s < time.monotonic() - begin_s
    finally:
        sensor.close()
    declared = ExternalSensor(meter(printing(), period_s=1.0))
    assert declared.seen_period_s is None
    declared.close()
