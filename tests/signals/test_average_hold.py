"""A mean tells of all its window, up to its reading; a longer silence is still a hole."""

import pytest

from carbonlens.signals.integrate import integrate_power
from carbonlens.signals.sensor import Sensor

SECOND = Sensor(kind="average", update_period_us=1e5, window_us=1e6, lag_us=5e4, gap_us=3e5)


def steady(until_us):
    times = range(-1_000_000, until_us + 1, 100_000)
    return list(times), [200.0] * len(times)


def test_the_end_of_a_window_is_covered_by_the_mean_that_was_read_there():
    found = integrate_power(*steady(1_000_000), 0, 1e6, SECOND)
    assert found.estimate.state == "known"
    assert found.estimate.value == pytest.approx(200.0)
    assert found.uncovered_s == pytest.approx(0.0)


def test_what_no_mean_tells_of_is_not_covered():
    found = integrate_power(*steady(600_000), 0, 1e6, SECOND)
    assert found.estimate.state == "unbounded"
    assert found.covered_s == pytest.approx(0.6)
