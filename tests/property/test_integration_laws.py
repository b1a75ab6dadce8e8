"""Laws of integration: exact where the readings say all, silent where they say nothing."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.signals.integrate import (
    counter_energy,
    integrate_counter,
    integrate_power,
    power_energy,
)
from carbonlens.signals.sensor import Sensor

RANGE_J = 1000.0
MILLIJOULE = 1e-3
FOREVER_US = 10**12

steps_us = st.integers(min_value=1, max_value=5_000_000)
watts = st.floats(min_value=0.01, max_value=1500.0)


@dataclass(frozen=True)
class History:
    """A counter's readings, and what truly passed between those that can be told."""

    readings: list[tuple[int, float | None]]
    joules: float
    lost_s: float


@st.composite
def histories(draw, *, wraps: bool) -> History:
    """A counter read at uneven times: wraps, resets and failed reads in any order.

    No more than half a range passes between two good reads, and a reset is seen at
    once as a fall by less than half: what sensors promise. Without a range a wrap is
    a reset too.
    """
    n = draw(st.integers(min_value=2, max_value=30))
    t, place = draw(st.integers(min_value=0, max_value=2**51)), draw(st.floats(0, RANGE_J - 1))
    told: list[tuple[int, float, float, bool, bool]] = [(t, place, 0.0, False, False)]
    for _ in range(n - 1):
        t += draw(steps_us)
        passed = draw(st.floats(min_value=0.001, max_value=10))
        fall = draw(st.floats(min_value=301, max_value=499))
        reset = draw(st.integers(0, 9)) == 0 and place >= fall and not told[-1][4]
        wrapped = not reset and place + passed >= RANGE_J
        place = place - fall if reset else (place + passed) % RANGE_J
        failed = draw(st.integers(0, 4)) == 0 and not reset
        told.append((t, place, passed, reset or (wrapped and not wraps), failed))
    joules, lost_us, since, broken, last_t = 0.0, 0, 0.0, False, told[0][0]
    for at, _, passed, is_reset, failed in told[1:]:
        since, broken = since + passed, broken or is_reset
        if failed:
            continue
        joules, lost_us = joules + (0.0 if broken else since), lost_us + (at - last_t if broken else 0)
        since, broken, last_t = 0.0, False, at
    return History([(at, None if failed else p) for at, p, _, _, failed in told], joules, lost_us / 1e6)


@pytest.mark.parametrize("wraps", [True, False])
@given(data=st.data())
def test_counter_is_the_sum_of_true_differences(wraps, data):
    history = data.draw(histories(wraps=wraps))
    good = [t for t, j in history.readings if j is not None]
    sensor = Sensor(kind="counter", max_range=RANGE_J if wraps else None)
    found = integrate_counter(history.readings, good[0], good[-1], sensor)
    if history.joules:
        assert abs(found.estimate.value - history.joules) <= MILLIJOULE
        assert math.isclose(found.uncovered_s, history.lost_s, abs_tol=1e-6)
    elif len(good) > 1:
        assert found.estimate.value is None


@given(histories(wraps=True), st.data())
def test_counter_windows_add_up(history, data):
    good = [t for t, j in history.readings if j is not None]
    cut = data.draw(st.integers(min_value=good[0], max_value=good[-1]))
    ends = [good[0], cut, good[-1]]
    parts = [
        counter_energy(history.readings, a, b, max_range=RANGE_J).value for a, b in itertools.pairwise(ends)
    ]
    whole = counter_energy(history.readings, good[0], good[-1], max_range=RANGE_J).value
    assert abs(sum(p or 0.0 for p in parts) - (whole or 0.0)) <= MILLIJOULE


@st.composite
def signals(draw) -> tuple[list[int], list[float]]:
    """A piecewise-constant signal: the times of its changes, and its power from each on."""
    steps = draw(st.lists(steps_us, min_size=1, max_size=40))
    start = draw(st.integers(min_value=0, max_value=2**51))
    t = [start + s for s in itertools.accumulate(steps, initial=0)]
    return t, draw(st.lists(watts, min_size=len(t), max_size=len(t)))


def truth(t: list[int], w: list[float], start: int, end: int) -> float:
    """Integrate the signal microsecond by microsecond range, in exact fractions."""
    ends = [*t[1:], max(end, t[-1])]
    spans = [(max(a, start), min(b, end), p) for a, b, p in zip(t, ends, w, strict=True)]
    return math.fsum(p * (b - a) / 1e6 for a, b, p in spans if b > a)


@given(signals(), st.data())
def test_power_sampled_at_its_changes_is_exact(signal, data):
    t, w = signal
    start = data.draw(st.integers(min_value=t[0], max_value=t[-1] + 10**6))
    end = data.draw(st.integers(min_value=start + 1, max_value=start + 10**7))
    found = integrate_power(t, w, start, end, Sensor(kind="instant", gap_us=FOREVER_US))
    assert math.isclose(found.estimate.value, truth(t, w, start, end), rel_tol=1e-12)
    assert math.isclose(found.covered_s, (end - start) / 1e6, rel_tol=1e-12)
    assert found.estimate.low <= found.estimate.value <= found.estimate.high


@given(signals(), st.data())
def test_power_windows_add_up(signal, data):
    t, w = signal
    a, b, c = sorted(
        data.draw(st.integers(min_value=t[0] - 10**6, max_value=t[-1] + 10**7)) for _ in range(3)
    )
    sensor = Sensor(kind="instant")
    parts = [integrate_power(t, w, x, y, sensor) for x, y in ((a, b), (b, c))]
    whole = integrate_power(t, w, a, c, sensor)
    joules = sum(p.estimate.value or 0.0 for p in parts)
    assert math.isclose(joules, whole.estimate.value or 0.0, rel_tol=1e-9, abs_tol=1e-9)
    assert math.isclose(sum(p.covered_s for p in parts), whole.covered_s, abs_tol=1e-9)


@given(signals(), st.integers(min_value=1, max_value=10**7))
def test_a_sample_holds_no_longer_than_the_gap(signal, gap_us):
    t, w = signal
    end = t[-1] + 10**8
    found = integrate_power(t, w, t[0], end, Sensor(kind="instant", gap_us=gap_us))
    held = [min(b - a, gap_us) for a, b in itertools.pairwise([*t, end])]
    assert math.isclose(found.covered_s, sum(held) / 1e6, rel_tol=1e-12)
    assert math.isclose(found.covered_s + found.uncovered_s, (end - t[0]) / 1e6, rel_tol=1e-12)
    assert math.isclose(found.estimate.value, math.fsum(h * p / 1e6 for h, p in zip(held, w, strict=True)))


@given(signals(), st.integers(min_value=0, max_value=10**6))
def test_a_lag_moves_the_window(signal, lag_us):
    t, w = signal
    sensor = Sensor(kind="instant", lag_us=lag_us, gap_us=FOREVER_US)
    late = integrate_power(t, w, t[0] - lag_us, t[-1] - lag_us, sensor)
    plain = power_energy(t, w, t[0], t[-1], kind="instant", gap_us=FOREVER_US)
    assert math.isclose(late.estimate.value, plain.value, rel_tol=1e-9)


@given(signals())
def test_means_over_their_period_are_exact(signal):
    """An averaged reading belongs to the period before it."""
    _, w = signal
    t = [(k + 1) * 1000 for k in range(len(w))]
    energy = power_energy(t, w, 0, t[-1], kind="average", update_period_us=1000)
    assert math.isclose(energy.value, math.fsum(w) / 1000, rel_tol=1e-9)


@given(signals(), st.data())
def test_reading_it_again_changes_nothing(signal, data):
    """Polling faster than the sensor updates repeats samples, and the energy stays."""
    t, w = signal
    again = data.draw(st.lists(st.integers(min_value=t[0], max_value=t[-1]), max_size=20))
    more = sorted({*t, *again})
    held = [w[max(i for i, x in enumerate(t) if x <= y)] for y in more]
    energies = [
        power_energy(a, b, t[0], t[-1], kind="instant", gap_us=FOREVER_US).value
        for a, b in ((t, w), (more, held))
    ]
    assert math.isclose(*energies, rel_tol=1e-9)


@given(signals(), st.floats(min_value=0.01, max_value=100))
def test_energy_and_interval_scale_with_power(signal, factor):
    t, w = signal
    one = power_energy(t, w, t[0], t[-1], kind="instant")
    scaled = power_energy(t, [factor * x for x in w], t[0], t[-1], kind="instant")
    assert math.isclose(scaled.value, factor * one.value, rel_tol=1e-9)
    assert math.isclose(scaled.u_total, factor * one.u_total, rel_tol=1e-6)


@given(signals(), st.data())
def test_unknown_is_never_zero(signal, data):
    t, w = signal
    failed = data.draw(st.lists(st.booleans(), min_size=len(t), max_size=len(t)))
    told = [None if f else x for f, x in zip(failed, w, strict=True)]
    start = data.draw(st.integers(min_value=t[0] - 10**7, max_value=t[-1] + 10**8))
    found = integrate_power(t, told, start, start + data.draw(steps_us), Sensor(kind="instant"))
    assert found.estimate.value is None or found.estimate.value > 0
    assert (found.estimate.state == "unknown") == (found.covered_s == 0)
    assert found.uncovered_s == 0 or found.estimate.state != "known" or found.parts_j["gaps"] > 0


@st.composite
def messy(draw) -> tuple[list[float], list[float]]:
    """Samples out of order, at the same time, failed: as they come from files."""
    n = draw(st.integers(min_value=1, max_value=60))
    t = draw(st.lists(st.integers(min_value=0, max_value=10**7), min_size=n, max_size=n))
    value = st.one_of(watts, st.sampled_from([70.0, 300.0, math.nan, math.inf]))
    return [float(x) for x in t], draw(st.lists(value, min_size=n, max_size=n))


@given(messy(), st.sampled_from(["instant", "average"]), st.data())
def test_arrays_give_what_sequences_give(samples, kind, data):
    t, w = samples
    start, end = sorted(data.draw(st.integers(min_value=-(10**6), max_value=2 * 10**7)) for _ in range(2))
    period_us = data.draw(st.sampled_from([None, 1000, 100_000]))
    sensor = Sensor(kind=kind, update_period_us=period_us, lag_us=data.draw(st.integers(0, 10**5)))
    plain = integrate_power(t, w, start, end, sensor)
    fast = integrate_power(np.array(t), np.array(w), start, end, sensor)
    assert (plain.estimate.value is None) == (fast.estimate.value is None)
    assert [f.code for f in plain.findings] == [f.code for f in fast.findings]
    assert math.isclose(plain.covered_s, fast.covered_s, rel_tol=1e-9, abs_tol=1e-9)
    if plain.estimate.value is not None:
        assert math.isclose(plain.estimate.value, fast.estimate.value, rel_tol=1e-9, abs_tol=1e-9)
        for name in plain.parts_j.keys() | fast.parts_j.keys():
            one, other = plain.parts_j.get(name, 0.0), fast.parts_j.get(name, 0.0)
            assert math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-6), name
