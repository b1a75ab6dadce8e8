"""How samples lie: the same whatever blocks they come in."""

import numpy as np
import pytest

from carbonlens.importers.sample_shape import SampleShape

HELD_US = 3e6
"""Of samples a second apart: each one's power is counted for so long."""


def shape(t_us, values, size):
    found = SampleShape()
    for at in range(0, len(values), size):
        found.take(None if t_us is None else t_us[at : at + size], values[at : at + size])
    return found


@pytest.mark.parametrize("size", [7, 50, 1000])
def test_gaps_and_changes_do_not_depend_on_blocks(size):
    t_us = np.array([*range(100), *range(400, 500), *range(504, 600)], dtype=float) * 1e6
    values = np.where(np.arange(len(t_us)) % 10 < 5, 100.0, 120.0)
    values[150:200] = np.nan  # failed: nothing is told of 449 to 504 s
    found = shape(t_us, values, size)
    assert found.gaps_us == ((99e6 + HELD_US, 400e6), (449e6 + HELD_US, 504e6))
    told = values[np.isfinite(values)]
    assert found.changes == np.count_nonzero(told[1:] != told[:-1])


def test_gaps_are_not_known_where_a_clock_went_back():
    assert shape(np.array([0, 1, 2, 90, 91, 2, 3, 4]) * 1e6, np.ones(8), 3).gaps_us is None


def test_the_longest_gaps_are_kept():
    t_us = np.cumsum([0, *[1] * 2000, *[10 + n for n in range(500)]]) * 1e6
    gaps = shape(t_us, np.ones(len(t_us)), 700).gaps_us
    assert min(end - begin for begin, end in gaps) == (10 + 500 - 64) * 1e6 - HELD_US


def test_samples_without_times_have_no_gaps():
    found = shape(None, np.array([9.0, 9.0, np.nan, 9.0]), 2)
    assert (found.changes, found.gaps_us) == (0, ())


@pytest.mark.parametrize("size", [40, 150, 1000])
def test_a_gap_begins_where_the_last_power_is_no_longer_held(size):
    """What is counted after a sample is told: of steps of a slower driver little is a gap."""
    t_us = np.array([*range(200), *(200 + 3.25 * n for n in range(60))]) * 1e6
    gaps = shape(t_us, np.ones(len(t_us)), size).gaps_us
    assert len(gaps) == 59
    assert [end - begin for begin, end in gaps] == [0.25e6] * 59
    assert gaps[0] == (203e6, 203.25e6)


@pytest.mark.parametrize("size", [40, 1000])
def test_what_is_usual_is_told_by_all_steps(size):
    """Power is held by the usual step of the log, not by that of its begin."""
    t_us = np.array([*(0.1 * n for n in range(100)), *range(10, 400), *range(500, 600)]) * 1e6
    assert shape(t_us, np.ones(len(t_us)), size).gaps_us == ((402e6, 500e6),)
