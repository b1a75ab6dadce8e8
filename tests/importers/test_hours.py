"""Energy by hour: what the samples beside an edge tell is what all of them do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.domain.units import US_PER_HOUR, US_PER_S
from carbonlens.importers import hours

MINUTE_US = 60 * US_PER_S


def by_all_corners(times, watts, window, hold_us):
    """Return the same by a line through every sample."""
    order = np.argsort(times, kind="stable")
    times, watts = times[order], watts[order]
    first, last = int(window[0] // US_PER_HOUR), int(max(window[1] - 1, window[0]) // US_PER_HOUR)
    edges = np.array([window[0], *(h * US_PER_HOUR for h in range(first + 1, last + 1)), window[1]])
    ends = np.maximum(np.minimum(np.append(times[1:], window[1]), times + hold_us), times)
    sums = np.concatenate(([0.0], np.cumsum(watts * (ends - times) / US_PER_S)))
    corners = np.column_stack((times, ends)).ravel()
    at_edges = np.interp(edges, corners, np.column_stack((sums[:-1], sums[1:])).ravel())
    return {first + n: part for n, part in enumerate(np.diff(at_edges).tolist()) if part}


@given(
    minutes=st.lists(st.integers(0, 600), min_size=2, max_size=60),
    hold_minutes=st.sampled_from([1, 30, 10_000]),
    seed=st.integers(0, 99),
)
def test_hours_are_told_by_the_samples_beside_their_edges(minutes, hold_minutes, seed):
    times = np.array(minutes, dtype=float) * MINUTE_US
    watts = np.random.default_rng(seed).uniform(0, 500, len(times))
    window = (float(times.min()), float(times.max()))
    got = hours.split(times, watts, window, hold_minutes * MINUTE_US, kind="instant")
    if int(window[0] // US_PER_HOUR) == int(max(window[1] - 1, window[0]) // US_PER_HOUR):
        assert list(got.values()) == [1.0]
    else:
        assert got == by_all_corners(times, watts, window, hold_minutes * MINUTE_US)


def test_failed_samples_tell_of_no_hour():
    times = np.arange(0, 5) * US_PER_HOUR / 2
    told = hours.split(times, np.array([1.0, np.nan, 1.0, 1.0, 1.0]), (0.0, times[-1]), 0.0, kind="instant")
    assert told == {0: pytest.approx(3600), 1: pytest.approx(3600)}
