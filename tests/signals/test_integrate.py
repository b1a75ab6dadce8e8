"""Windows, edges, gaps and findings of the two integrators, on small examples."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from carbonlens.signals.integrate import (
    counter_energy,
    integrate_counter,
    integrate_power,
    power_energy,
)
from carbonlens.signals.sensor import Sensor

S = 1_000_000
COUNTER = Sensor(kind="counter", update_period_us=100_000)
INSTANT = Sensor(kind="instant", update_period_us=100_000)


def codes(found) -> list[str]:
    return [f.code for f in found.findings]


def test_difference_cut_by_an_edge_counts_by_its_share():
    readings = [(0, 0.0), (S, 100.0), (2 * S, 300.0)]
    assert counter_energy(readings, S // 2, 3 * S // 2).value == pytest.approx(150)


def test_counter_outside_its_readings_is_not_covered():
    found = integrate_counter([(S, 0.0), (2 * S, 100.0)], 0, 4 * S, COUNTER)
    assert found.estimate.value == 100
    assert (found.covered_s, found.uncovered_s) == (1, 3)
    assert found.estimate.state == "unbounded"
    assert codes(found) == ["CL121"]


def test_one_reading_tells_nothing():
    assert counter_energy([(0, 5.0)], 0, S).value is None
    assert power_energy([0], [100.0], 0, S, kind="instant").value is None


def test_one_sample_of_a_known_period_holds_for_its_gap():
    found = integrate_power([0], [100.0], 0, S, INSTANT)
    assert found.covered_s == pytest.approx(0.3)
    assert found.estimate.value == pytest.approx(30)


def test_no_reading_at_all():
    found = integrate_power([], [], 0, S, INSTANT)
    assert found.estimate.state == "unknown"
    assert found.uncovered_s == 1
    assert codes(found) == ["CL120"]


def test_window_of_no_length_has_no_energy():
    assert power_energy([0, S], [100.0, 100.0], S, S, kind="instant").value == 0
    assert integrate_power([0, S], [100.0, 100.0], S, S, INSTANT).coverage == 1


def test_window_that_ends_before_it_starts_is_refused():
    with pytest.raises(ValueError, match="before its start"):
        power_energy([0, S], [1.0, 1.0], S, 0, kind="instant")
    with pytest.raises(ValueError, match="before its start"):
        counter_energy([(0, 1.0), (S, 2.0)], S, 0)


def test_lengths_that_differ_are_refused():
    with pytest.raises(ValueError, match="1 value, 2 times"):
        power_energy([0, S], [1.0], 0, S, kind="instant")


def test_default_gap_is_three_median_spacings():
    t = [k * S for k in range(5)] + [14 * S]
    found = integrate_power(t, [100.0] * 6, 0, 15 * S, Sensor(kind="instant"))
    assert found.covered_s == 4 + 3 + 1
    assert found.estimate.value == pytest.approx(800)


def test_before_the_first_sample_nothing_is_known():
    found = integrate_power([S, 2 * S], [100.0, 100.0], 0, 3 * S, Sensor(kind="instant"))
    assert (found.covered_s, found.uncovered_s) == (2, 1)


def test_a_sample_before_the_window_holds_into_it():
    found = integrate_power([0, S], [100.0, 200.0], S // 2, 2 * S, Sensor(kind="instant"))
    assert found.estimate.value == pytest.approx(250)
    assert found.uncovered_s == 0


def test_a_moment_without_reading_widens_the_interval_and_no_more():
    t = [30_000 + k * 100_000 for k in range(20)]
    found = integrate_power(t, [100.0] * 20, 0, 2 * S, INSTANT)
    assert found.estimate.state == "known"
    assert found.estimate.value == pytest.approx(197)
    assert found.parts_j["gaps"] == pytest.approx(100 * 0.03 * 2 / 3**0.5)
    assert codes(found) == []


def test_lag_takes_what_was_read_later():
    t = [k * 100_000 for k in range(20)]
    w = [50.0] * 10 + [250.0] * 10
    early = integrate_power(t, w, 900_000, 1_900_000, Sensor(kind="instant", lag_us=100_000))
    assert early.estimate.value == pytest.approx(250)


def test_mean_over_a_longer_window_is_shifted_by_half_of_both():
    # A step at 5 s, as a mean over the last second told every 0.1 s: a ramp from 5 to 6 s.
    t = [k * 100_000 for k in range(101)]
    w = [100 + 200 * min(max(x / S - 5, 0), 1) for x in t]
    sensor = Sensor(kind="average", update_period_us=100_000, window_us=S)
    found = integrate_power(t, w, 3 * S, 7 * S, sensor)
    assert found.estimate.value == pytest.approx(800, rel=0.001)


def test_disordered_samples_give_the_same_energy_and_are_told():
    t, w = [0, 2 * S, S, 3 * S], [10.0, 30.0, 20.0, 40.0]
    found = integrate_power(t, w, 0, 3 * S, Sensor(kind="instant"))
    assert found.estimate.value == pytest.approx(60)
    assert codes(found) == ["CL126"]


def test_counters_reset_within_a_covered_hour_is_a_finding_not_a_bound():
    readings = [(k * 100_000, 10.0 * k) for k in range(18_000)]
    readings += [(t + 1_800_000_000, j) for t, j in readings]
    found = integrate_counter(readings, 0, readings[-1][0], COUNTER)
    assert found.uncovered_s == pytest.approx(0.1)
    assert found.estimate.state == "known"
    assert codes(found) == ["CL123"]


def test_a_staircase_polled_too_often_tells_its_own_period_in_arrays_too():
    # Moves 90 to 110 ms apart, one of them early, and one pause; polled every 7 ms.
    moves = np.cumsum([0, 21_000, *[90_000, 95_000, 100_000, 105_000, 110_000] * 4, 700_000])
    t = np.arange(0, moves[-1], 7000)
    w = 100.0 + (np.searchsorted(moves, t, "right") * 37) % 11
    plain = integrate_power(t.tolist(), w.tolist(), 0, S, Sensor(kind="instant"))
    fast = integrate_power(t, w, 0, S, Sensor(kind="instant"))
    assert plain.update_period_us == fast.update_period_us == pytest.approx(90_000, abs=7000)


def test_a_long_window_of_a_quick_sensor_is_affordable():
    found = integrate_power(
        [0, 1, 2, 3], [100.0, 200.0, 100.0, 200.0], 0, 10**9, Sensor(kind="instant", gap_us=10**9)
    )
    assert found.parts_j["duty"] > 0


def test_the_core_needs_no_numpy():
    script = (
        "import sys; from carbonlens.signals.integrate import power_energy, counter_energy;"
        "power_energy([0, 1000000], [1.0, 1.0], 0, 1000000, kind='instant');"
        "counter_energy([(0, 1.0), (1000000, 2.0)], 0, 1000000);"
        "from carbonlens.signals import calibrate, cpu_curve, agreement;"
        "sys.exit('numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_period_without_end_is_refused_and_not_met_halfway():
    with pytest.raises(ValueError, match="update_period_us is inf"):
        power_energy([0, S], [1.0, 1.0], 0, S, kind="instant", update_period_us=float("inf"))
