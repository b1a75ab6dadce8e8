"""Rows by hour sum exactly to the reading, and lie in the hours the work fell into."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.domain.units import US_PER_HOUR
from carbonlens.metering.hours import by_hour

energies = st.decimals(min_value=0, max_value=10**12, places=6, allow_nan=False)
lengths = st.lists(
    st.tuples(
        st.integers(min_value=0, max_value=3 * US_PER_HOUR), st.floats(min_value=0, max_value=1e9, width=32)
    ),
    max_size=20,
)


def steps_from(start_us, parts):
    steps, at = [], start_us
    for length, weight in parts:
        steps.append((at, at + length, weight))
        at += length
    return steps


@given(energies, st.integers(min_value=0, max_value=10**16), lengths)
def test_rows_sum_exactly_and_rise_in_time(energy_j, start_us, parts):
    steps = steps_from(start_us, parts)
    rows = by_hour("cpu", energy_j, steps, start_us)
    assert sum((r.energy_j for r in rows), Decimal(0)) == energy_j
    assert all(r.energy_j >= 0 for r in rows)
    hours = [r.hour_utc for r in rows]
    assert hours == sorted(set(hours))
    end_us = steps[-1][1] if steps else start_us
    assert start_us // US_PER_HOUR <= hours[0]
    assert hours[-1] <= end_us // US_PER_HOUR


def test_a_step_over_an_hour_is_spread_evenly():
    start = 10 * US_PER_HOUR + US_PER_HOUR // 2
    rows = by_hour("cpu", Decimal("8.000000"), [(start, start + 2 * US_PER_HOUR, 5.0)], start)
    assert [(r.hour_utc, r.energy_j) for r in rows] == [
        (10, Decimal("2.000000")),
        (11, Decimal("4.000000")),
        (12, Decimal("2.000000")),
    ]


@pytest.mark.parametrize("steps", [[], [(0, US_PER_HOUR, 0.0)]])
def test_work_without_weight_stands_in_the_first_hour(steps):
    rows = by_hour("cpu", Decimal("1.500000"), steps, 7 * US_PER_HOUR)
    assert [(r.hour_utc, r.energy_j) for r in rows] == [(7, Decimal("1.500000"))]
