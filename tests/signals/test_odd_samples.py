"""Samples and times that are no numbers: left out, by lists and arrays alike; nothing infinite is known."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.signals.integrate import counter_energy, integrate_power, power_energy
from carbonlens.signals.sensor import Sensor

NAN, INF = math.nan, math.inf
KINDS = pytest.mark.parametrize("kind", ["instant", "average"])
ODD = st.sampled_from([NAN, INF, -INF, 0.0, 1e308, -1e308, 1e-308])
numbers = st.one_of(st.floats(0, 1e4), ODD)
times = st.one_of(st.integers(0, 10**7).map(float), ODD.filter(lambda t: not 1e-300 < abs(t) < 1e300))


def both(t_us, power_w, kind, **more):
    """Integrate lists and arrays; return both estimates."""
    window = (0.0, 3e6)
    listed = power_energy(t_us, power_w, *window, kind=kind, **more)
    array = power_energy(np.array(t_us, float), np.array(power_w, float), *window, kind=kind, **more)
    return listed, array


def is_sound(found):
    """Tell whether an estimate is unknown, or a finite number with a finite width."""
    if found.state == "unknown":
        return found.value is None
    sources = found.u_by_source.values()
    return all(map(math.isfinite, (found.value, found.u_random, *sources)))


@KINDS
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("odd", [NAN, INF, -INF])
@pytest.mark.parametrize("place", range(4))
def test_a_sample_whose_time_is_no_number_is_as_if_it_were_not_there(kind, odd, place):
    t_us = [0.0, 1e6, 2e6, 3e6]
    without = [t for k, t in enumerate(t_us) if k != place]
    expected = power_energy(without, [100.0] * 3, 0.0, 3e6, kind=kind)
    t_us[place] = odd
    for found in both(t_us, [100.0] * 4, kind):
        assert (found.value, found.state) == (pytest.approx(expected.value), expected.state)
        assert is_sound(found)
    sensor = Sensor(kind=kind)
    said = integrate_power(t_us, [100.0] * 4, 0.0, 3e6, sensor).findings
    assert "CL125" in [f.code for f in said]


@pytest.mark.parametrize("odd", [NAN, INF, -INF])
@pytest.mark.parametrize("place", range(4))
def test_a_counter_reading_whose_time_is_no_number_is_left_out(odd, place):
    readings = [(1e6 * k, 100.0 * k) for k in range(4)]
    expected = counter_energy([r for k, r in enumerate(readings) if k != place], 0.0, 3e6)
    readings[place] = (odd, readings[place][1])
    found = counter_energy(readings, 0.0, 3e6)
    assert (found.value, found.state) == (expected.value, expected.state)


@KINDS
@pytest.mark.filterwarnings("error")
def test_a_sample_that_holds_for_ever_holds_until_the_end(kind):
    for found in both([0.0, 1e6], [100.0, 100.0], kind, gap_us=INF):
        assert (found.value, found.state) == (pytest.approx(300), "known")
        assert is_sound(found)


@KINDS
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("watts", [[1e308] * 4, [1e308, 100.0, 100.0, 100.0], [1e308, -1e308, 1e308, 0.0]])
def test_what_is_more_than_a_number_holds_is_unknown(kind, watts):
    t_us = [0.0, 1e9, 2e9, 3e9]
    for given_t, given_w in ((t_us, watts), (np.array(t_us), np.array(watts))):
        found = integrate_power(given_t, given_w, 0.0, 3e9, Sensor(kind=kind))
        assert found.estimate.state == "unknown"
        assert (found.covered_s, found.uncovered_s) == (0.0, 3000.0)
        assert "CL144" in [f.code for f in found.findings]


@KINDS
@given(samples=st.lists(st.tuples(times, numbers), max_size=6), gap_us=st.sampled_from([None, 0, 1e5, INF]))
def test_whatever_the_samples_lists_and_arrays_agree_and_nothing_infinite_is_known(kind, samples, gap_us):
    listed, array = both([t for t, _ in samples], [w for _, w in samples], kind, gap_us=gap_us)
    assert is_sound(listed)
    assert is_sound(array)
    if all(abs(w) < 1e300 for _, w in samples if math.isfinite(w)):
        assert listed.state == array.state
        assert (array.value is None) == (listed.value is None)
        assert (array.value or 0.0) == pytest.approx(listed.value or 0.0, rel=1e-9, abs=1e-9)


@KINDS
@pytest.mark.parametrize(
    "wrong",
    [
        {"gap_us": NAN},
        {"gap_us": -1.0},
        {"update_period_us": NAN},
        {"update_period_us": -1e6},
        {"lag_us": NAN},
        {"lag_us": INF},
    ],
)
def test_parts_of_a_sensor_that_are_no_times_are_refused(kind, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        power_energy([0.0, 1e6], [1.0, 1.0], 0.0, 1e6, kind=kind, **wrong)


@KINDS
@pytest.mark.parametrize("window", [(NAN, 1e6), (0.0, NAN), (0.0, INF), (-INF, 0.0)])
def test_a_window_whose_edges_are_no_times_is_refused(kind, window):
    with pytest.raises(ValueError, match="no length"):
        power_energy([0.0, 1e6], [1.0, 1.0], *window, kind=kind)
    with pytest.raises(ValueError, match="no length"):
        counter_energy([(0.0, 1.0), (1e6, 2.0)], *window)


@KINDS
def test_samples_of_0_w_are_0_j_of_a_device_that_may_sleep(kind):
    """Whether a device can draw nothing is its sensor's to say; the integral of 0 is 0."""
    t_us = [1e5 * k for k in range(31)]
    for found in both(t_us, [0.0] * 31, kind):
        assert (found.value, found.state) == (0.0, "known")
    rated = integrate_power(t_us, [0.0] * 31, 0.0, 3e6, Sensor(kind=kind, rated_w=300.0)).estimate
    assert rated.u_total > 0


@pytest.mark.parametrize("as_array", [list, np.array])
def test_readings_without_a_time_each_are_refused(as_array):
    with pytest.raises(ValueError, match=r"3 values, 2 times"):
        power_energy(as_array([0.0, 1.0]), as_array([1.0, 2.0, 3.0]), 0, 2, kind="instant")


@pytest.mark.parametrize("kind", ["Instant", "counter", "mean", "", None])
def test_a_kind_that_is_none_is_refused(kind):
    with pytest.raises(ValueError, match="'instant', 'average'"):
        power_energy([0.0, 1.0], [1.0, 2.0], 0, 2, kind=kind)


@pytest.mark.parametrize("failed", [None, NAN])
def test_readings_that_fail_make_no_slower_sensor_of_it(failed):
    """Read each second, told each fourth: three seconds of each four are known, and the fourth is not."""
    watts = [100.0 if k % 4 == 0 else failed for k in range(12)]
    t_us = [k * 1e6 for k in range(12)]
    found = integrate_power(t_us, watts, 0, 12e6, Sensor(kind="instant"))
    assert (found.estimate.value, found.covered_s, found.uncovered_s) == (900.0, 9.0, 3.0)
    assert found.estimate.state == "unbounded"
    once = integrate_power(t_us[:4], watts[:4], 0, 4e6, Sensor(kind="instant"))
    assert (once.estimate.value, once.covered_s) == (300.0, 3.0)


@KINDS
@given(st.lists(st.one_of(st.none(), st.floats(0, 1e4)), min_size=1, max_size=30), st.data())
def test_a_reading_that_fails_covers_nothing_more(kind, watts, data):
    """Of two series of one pace, the one of which more failed is known for no longer."""
    t_us = [k * 1e5 for k in range(len(watts))]
    fewer = [w if w is None or data.draw(st.booleans()) else None for w in watts]
    end = len(watts) * 1e5
    whole, part = (integrate_power(t_us, w, 0, end, Sensor(kind=kind)) for w in (watts, fewer))
    assert part.covered_s <= whole.covered_s + 1e-9
    array = integrate_power(
        np.array(t_us), np.array([NAN if w is None else w for w in fewer]), 0, end, Sensor(kind=kind)
    )
    assert array.covered_s == pytest.approx(part.covered_s)
