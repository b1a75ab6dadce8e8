"""The phase of a counter: found by reading it, believed for a while, and never invented."""

import math
import time

import pytest

from carbonlens.metering.sensors.nvml import NvmlEnergySensor
from carbonlens.metering.sensors.nvml_ticks import FRESH_S, Ticks
from tests.metering.fake_nvml import Clock


class Counter:
    """A counter of steady power that moves at ticks of some period and phase."""

    def __init__(self, clock, *, watts=500.0, period_s=0.1, phase_s=0.037, cost_s=0.003):
        self.clock, self.watts, self.period_s, self.phase_s, self.cost_s = (
            clock,
            watts,
            period_s,
            phase_s,
            cost_s,
        )

    def moved_at(self, t):
        return math.floor((t - self.phase_s) / self.period_s) * self.period_s + self.phase_s

    def __call__(self):
        self.clock.pass_(self.cost_s)
        return self.watts * self.moved_at(self.clock.now)


def ticks_of(counter):
    return Ticks(counter, counter.clock, counter.clock.pass_)


@pytest.mark.parametrize("phase_s", [0.0, 0.011, 0.05, 0.0999])
def test_the_phase_is_found_to_a_few_milliseconds(phase_s):
    clock = Clock()
    counter = Counter(clock, phase_s=phase_s)
    ticks = ticks_of(counter)
    assert ticks.age_s() is None
    ticks.search()
    for later in (0.0, 0.03, 1.234, 60.0):
        clock.pass_(later)
        true = clock.now - counter.moved_at(clock.now)
        error = abs(ticks.age_s() - true)
        assert min(error, 0.1 - error) < 0.004


def test_a_phase_is_not_believed_for_ever():
    counter = Counter(Clock())
    ticks = ticks_of(counter)
    ticks.search()
    counter.clock.pass_(FRESH_S + 1)
    assert ticks.age_s() is None


@pytest.mark.parametrize("period_s", [0.02, 0.07, 0.25, 10.0])
def test_a_counter_of_another_period_has_no_phase(period_s):
    ticks = ticks_of(Counter(Clock(), period_s=period_s))
    ticks.search()
    assert ticks.age_s() is None


def test_a_counter_that_fails_or_stands_still_has_no_phase():
    def lost():
        raise OSError("lost")

    clock = Clock()
    for read in (lost, lambda: 7.0):
        ticks = Ticks(read, clock, clock.pass_)
        ticks.search()
        assert ticks.age_s() is None


def test_a_clock_that_stands_still_does_not_hold_the_search():
    begin = time.monotonic()
    Ticks(lambda: 1.0, lambda: 5.0).search()
    assert time.monotonic() - begin < 5


class Library:
    """Enough of the library for one counter and its power."""

    def __init__(self, counter):
        self.counter = counter

    def handle(self, uuid):
        return uuid

    def energy_j(self, handle):
        return self.counter.watts * self.counter.moved_at(self.counter.clock.now)

    def power_field_w(self, handle, field, scope):
        return self.counter.watts


def carried_on(counter):
    from carbonlens.metering.devices.nvidia import Gpu
    from carbonlens.metering.sensors.nvml import _CarriedOn
    from carbonlens.metering.sensors.nvml_sources import CounterSource, PowerSource

    library = Library(counter)
    ticks = ticks_of(counter)
    known = {
        "ticks": ticks,
        "instant": PowerSource(kind="instant", field=186),
        "counter": CounterSource(cost_s=0.0),
    }

    class Gpus:
        def __init__(self):
            self.library = library

        def remembered(self, what, uuid, find):
            return known[what]

    gpu = Gpu(uuid="GPU-1", rated_w=700.0)
    sensor = NvmlEnergySensor(Gpus(), counter.clock)
    sensor._read = [(gpu, known["counter"])]
    return _CarriedOn(sensor, "GPU-1"), ticks


def test_steady_power_is_read_to_the_moment_and_not_to_the_last_tick():
    counter = Counter(Clock(), watts=700.0)
    read, ticks = carried_on(counter)
    ticks.search()
    start, begin = read(None), counter.clock.now
    counter.clock.pass_(2.0417)
    gained = read(None) - start
    assert gained == pytest.approx(700.0 * (counter.clock.now - begin), rel=0.003)


def test_a_counter_carried_on_too_far_does_not_fall():
    counter = Counter(Clock(), watts=700.0)
    read, ticks = carried_on(counter)
    ticks.search()
    counter.clock.pass_(0.09)
    high = read(None)
    raw = Library(counter).energy_j(None)
    counter.watts = 0.0001  # the load ended: the next tick brings less than was added
    counter.moved_at = lambda t: (raw + 1.0) / 0.0001
    assert read(None) >= high


def test_without_a_phase_the_counter_is_told_as_it_is():
    counter = Counter(Clock(), watts=700.0)
    read, _ = carried_on(counter)
    told = Library(counter).energy_j(None)
    assert read(None) == told


def test_a_counter_is_not_carried_on_at_one_edge_alone():
    counter = Counter(Clock(), watts=700.0)
    read, ticks = carried_on(counter)
    before = read(None)
    ticks.search()
    counter.clock.pass_(1.0)
    raw = Library(counter).energy_j(None)
    assert read(None) == raw
    assert before < raw


def test_a_counter_without_that_period_is_searched_once_in_a_process():
    reads = []

    def read():
        reads.append(1)
        return len(reads) // 5 * 1.0

    ticks = Ticks(read)
    ticks.search()
    seen = len(reads)
    for _ in range(5):
        ticks.look_beside()
    time.sleep(0.2)
    assert len(reads) == seen
