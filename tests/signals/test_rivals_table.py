"""Readings that other tools turn into wrong joules, each with its true answer.

The first part is the table of research notes on zeus, perun and carbontracker
(their own code run on synthetic data), the second one problem reports of users.
Reports about devices, permissions and sharing belong to the tests of metering.
"""

from __future__ import annotations

import pytest

from carbonlens.domain.estimate import Estimate
from carbonlens.signals.agreement import disagreement, implausible
from carbonlens.signals.integrate import (
    counter_energy,
    integrate_counter,
    integrate_power,
    power_energy,
    without_idle_tail,
)
from carbonlens.signals.sensor import Sensor

RAPL_RANGE_J = 262_143.328850
S = 1_000_000
RAPL = Sensor(kind="counter", max_range=RAPL_RANGE_J, update_period_us=1000)


def at_10_hz(*levels: tuple[float, float]) -> tuple[list[int], list[float]]:
    """Samples every 0.1 s of a signal given as pairs of seconds and watts."""
    watts = [w for seconds, w in levels for _ in range(round(seconds * 10))]
    return [i * 100_000 for i in range(len(watts))], watts


def codes(findings) -> set[str]:
    return {f.code for f in findings}


# What zeus's PowerMonitor says: 0 J, 1850 J, 30.05 J, 0 J.


def test_zeus_constant_power_is_not_zero():
    t, w = at_10_hz((10, 70.0))
    assert power_energy(t, w, 0, 10 * S, kind="instant").value == pytest.approx(700, abs=1e-9)


def test_zeus_step_does_not_become_a_ramp():
    t, w = at_10_hz((10, 70.0), (1, 300.0))
    assert power_energy(t, w, 0, 11 * S, kind="instant").value == pytest.approx(1000, abs=1e-9)


def test_zeus_quarter_second_keeps_its_edges():
    t, w = at_10_hz((2, 300.5))
    energy = power_energy(t, w, 730_000, 980_000, kind="instant")
    assert energy.value == pytest.approx(75.125, abs=1e-9)


def test_zeus_window_shorter_than_an_update():
    t, w = at_10_hz((2, 300.5))
    energy = power_energy(t, w, 730_000, 770_000, kind="instant")
    assert energy.value == pytest.approx(12.02, abs=1e-9)
    assert energy.high > 12.02 > energy.low > 0


# What perun's processEnergyData says: 300 J, 153.5 J, 261 843 J.


def test_perun_first_difference_counts():
    energy = counter_energy([(0, 0.0), (S, 100.0), (2 * S, 400.0)], 0, 2 * S)
    assert energy.value == 400


def test_perun_burst_in_the_last_second():
    readings = [(0, 0.0), (S, 1.0), (2 * S, 2.0), (3 * S, 3.0), (4 * S, 303.0)]
    assert counter_energy(readings, 0, 4 * S).value == 303


@pytest.mark.parametrize("failed", [None, float("nan")])
def test_perun_failed_read_is_no_wrap(failed):
    readings = [(0, 1000.0), (S, 1100.0), (2 * S, failed), (3 * S, 1300.0)]
    found = integrate_counter(readings, 0, 3 * S, RAPL)
    assert found.estimate.value == pytest.approx(300, abs=1e-9)
    assert found.coverage == 1
    assert "CL125" in codes(found.findings)


# What carbontracker's IntelCPU says across a wrap: 0 W.


def test_carbontracker_wrap_keeps_its_power():
    readings = [(0, RAPL_RANGE_J - 30), (S, 70.0)]
    assert counter_energy(readings, 0, S, max_range=RAPL_RANGE_J).value == pytest.approx(100, abs=1e-6)


# Problem reports.


def test_zeus_181_methods_that_disagree_are_both_told():
    counter = Estimate(value=187.443, unit="J", grade="B", u_by_source={"gain:a": 187.443 * 0.0255})
    polled = Estimate(value=326.883, unit="J", grade="C", u_by_source={"gain:b": 326.883 * 0.0255})
    told = disagreement(("energy counter", counter), ("polled power", polled))
    assert told is not None
    assert "187.443 J" in told.message
    assert "326.883 J" in told.message
    assert "+74.4%" in told.message
    assert disagreement(("energy counter", counter), ("itself", counter)) is None


def test_pyjoules_17_window_shorter_than_the_refresh_is_not_zero():
    found = integrate_counter([(0, 500.0), (40_000, 500.0)], 0, 40_000, Sensor(kind="counter"))
    assert found.estimate.value is None
    assert found.estimate.state == "unknown"
    assert {"CL120", "CL124"} <= codes(found.findings)


def test_pyjoules_17_moves_around_a_short_window_bound_it():
    readings = [(k * 10_000, 10.0 * (k // 10)) for k in range(60)]
    found = integrate_counter(readings, 220_000, 260_000, Sensor(kind="counter"))
    assert found.estimate.value == pytest.approx(4, abs=1e-9)
    assert 0 < found.estimate.low < 4 < found.estimate.high
    assert "CL127" in codes(found.findings)


def test_codecarbon_1316_power_stands_in_for_a_missing_counter():
    t = [k * S for k in range(60)]
    energy = power_energy(t, [200.0] * 60, 0, 60 * S, kind="instant")
    assert energy.value == pytest.approx(12_000)
    assert energy.value / 3.6e6 == pytest.approx(0.00333333, abs=1e-8)
    assert energy.grade == "C"


def test_codecarbon_1309_fall_without_a_range_is_lost_not_negative():
    readings = [(0, 4000.0), (10 * S, 0.01), (20 * S, 60.01)]
    found = integrate_counter(readings, 0, 20 * S, Sensor(kind="counter"))
    assert found.estimate.value == pytest.approx(60, abs=1e-9)
    assert found.estimate.state == "unbounded"
    assert found.estimate.high is None
    assert (found.covered_s, found.uncovered_s, found.coverage) == (10, 10, 0.5)
    assert {"CL121", "CL123"} <= codes(found.findings)


def test_codecarbon_309_wrap_is_exact():
    readings = [(0, 262_100.0), (10 * S, 50.0)]
    found = integrate_counter(readings, 0, 10 * S, RAPL)
    assert found.estimate.value == pytest.approx(93.328850, abs=1e-6)
    assert codes(found.findings) == {"CL122"}


def test_scaphandre_280_no_interval_is_lost_at_a_wrap():
    joules = [(RAPL_RANGE_J - 250 + 100 * k) % RAPL_RANGE_J for k in range(6)]
    readings = [(k * S, j) for k, j in enumerate(joules)]
    found = integrate_counter(readings, 0, 5 * S, RAPL)
    assert found.estimate.value == pytest.approx(500, abs=1e-6)
    assert found.coverage == 1


@pytest.mark.parametrize("max_range", [None, RAPL_RANGE_J])
def test_powerjoular_45_and_energibridge_17_never_negative(max_range):
    readings = [(0, 250_000.0), (S, 250_050.0), (2 * S, 12.0), (3 * S, 70.0), (4 * S, 3.0), (5 * S, 60.0)]
    energy = counter_energy(readings, 0, 5 * S, max_range=max_range)
    assert energy.value > 0


def test_likwid_646_a_reader_fast_enough_loses_no_wrap():
    step_s, watts = 30, 200.0
    readings = [(k * step_s * S, (k * step_s * watts) % RAPL_RANGE_J) for k in range(241)]
    energy = counter_energy(readings, 0, 7200 * S, max_range=RAPL_RANGE_J)
    assert energy.value == pytest.approx(1_440_000, abs=1e-3)


def test_kepler_897_impossible_energy_is_told():
    told = implausible(Estimate(value=9.2e14, unit="J"), covered_s=60, rated_w=350)
    assert told is not None
    assert told.severity == "error"
    assert implausible(Estimate(value=60 * 400.0, unit="J"), covered_s=60, rated_w=350) is None


def test_codecarbon_985_mean_is_weighted_by_time_not_the_last_sample():
    t, w = [0, 9 * S], [100.0, 10.0]
    energy = power_energy(t, w, 0, 10 * S, kind="instant", gap_us=9 * S)
    assert energy.value == pytest.approx(910)


def test_dmlcloud_58_failed_reads_become_a_gap():
    t = [k * S for k in range(10)]
    w = [100.0, 100.0, None, None, None, None, None, 100.0, 100.0, 100.0]
    found = integrate_power(t, w, 0, 10 * S, Sensor(kind="instant", update_period_us=S))
    assert found.covered_s == 7
    assert found.uncovered_s == 3
    assert found.estimate.value == pytest.approx(700)
    assert found.estimate.state == "unbounded"
    assert {"CL121", "CL125"} <= codes(found.findings)


def test_carbontracker_51_a_short_epoch_has_energy():
    t, w = at_10_hz((5, 250.0))
    energy = power_energy(t, w, 2 * S, 2 * S + 3000, kind="instant")
    assert energy.value == pytest.approx(0.75)


def test_kepler_2465_idle_is_a_measured_baseline_taken_off():
    total = Estimate(value=700.0, unit="J", u_by_source={"gain:gpu": 7.0})
    idle = Estimate(value=120.0, unit="W", u_by_source={"gain:gpu": 1.2})
    work = without_idle_tail(total, idle, tail_s=0.5)
    assert work.value == pytest.approx(640)
    # One gain: its error is taken off too.
    assert work.u_total == pytest.approx(6.4)


def test_inferencex_1791_two_hosts_in_one_series_are_told():
    t = [k * S for k in range(11)]
    each = power_energy(t, [100.0] * 11, 0, 10 * S, kind="instant").value
    assert each == pytest.approx(1000)
    merged = integrate_power(sorted(t + t), [100.0] * 22, 0, 10 * S, Sensor(kind="instant"))
    assert "CL126" in codes(merged.findings)


def test_codecarbon_438_steps_of_a_running_total():
    totals = [0.0, 0.000211548, 0.000412762, 0.000613303, 0.000829148, 0.00104987]
    readings = [(k * S, kwh * 3.6e6) for k, kwh in enumerate(totals)]
    steps = [counter_energy(readings, k * S, (k + 1) * S).value / 3.6e6 for k in range(5)]
    expected = [0.000211548, 0.000201214, 0.000200541, 0.000215845, 0.000220722]
    assert steps == pytest.approx(expected, abs=1e-12)
