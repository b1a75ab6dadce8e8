"""Looking: what is due is read, what is not leaves nothing behind."""

import math
import time

import msgspec
import pytest

from carbonlens.metering.looking import STEADY_S, Looking, beside_counters, easy_from_s, is_easy
from carbonlens.metering.pace import SLOW_S
from carbonlens.metering.records import new_run
from carbonlens.metering.sensors.discovery import Watch
from carbonlens.metering.sensors.ram_model import RamModelSensor
from carbonlens.metering.session import Session
from carbonlens.metering.tally import signal_sensor
from tests.metering.sensors import CounterSensor

S = 1_000_000_000


class PowerSensor(CounterSensor):
    """Tells 10 W more a reading."""

    def __init__(self, rest_s=0.0, **more):
        super().__init__(**more)
        self.rest_s = rest_s

    @property
    def info(self):
        return msgspec.structs.replace(super().info, name="power", kind="instant", unit="W")


def looking(*sensors, **more):
    return Looking(sensors, [s.info for s in sensors], **more)


def reads_at(one, ages_s):
    """Return how many readings each sensor gave, looked at by a clock that runs ahead of the real one."""
    seen = []
    base_ns = time.monotonic_ns()
    for age_s in ages_s:
        told = one.between(base_ns + round(age_s * S), age_s)
        seen.append(None if told is None else tuple(bool(v) for v in told[0]))
    return seen


def test_power_is_read_at_every_look_and_a_counter_once_a_second_when_the_run_is_old():
    one = looking(CounterSensor(), PowerSensor())
    one.edge(first=True)
    assert not one.is_easy_at(0)
    seen = reads_at(one, [100 + k / 10 for k in range(21)])
    assert all(power for _, power in seen)
    assert sum(counter for counter, _ in seen) <= 3


def test_in_the_first_second_everything_is_read_at_every_look():
    one = looking(CounterSensor(), PowerSensor())
    one.edge(first=True)
    assert reads_at(one, [0.1, 0.2, 0.206, 0.9]) == [(True, True)] * 4


def test_a_trace_has_every_sensor_at_every_look():
    one = looking(CounterSensor(), PowerSensor(), all_at_once=True)
    assert not one.is_easy_at(0)
    assert reads_at(one, [100.0, 100.1, 100.2]) == [(True, True)] * 3


def test_a_look_that_finds_nothing_due_reads_nothing():
    sensor = PowerSensor(rest_s=math.inf)
    one = looking(sensor)
    one.edge(first=True)
    assert reads_at(one, [100, 100.3, 100.6, 100.9]) == [(False,), None, None, None]
    assert sensor.reads == 1


def test_how_far_a_run_came_is_known_though_nothing_was_due():
    """Else one that is killed would have no length."""
    one = looking(PowerSensor(rest_s=math.inf))
    one.edge(first=True)
    assert reads_at(one, [0.1, 0.2, 20, 20.5, 21.1]) == [(False,), (False,), (False,), None, (False,)]


def test_a_beat_that_comes_a_little_early_still_reads_what_is_due():
    one = looking(PowerSensor(rest_s=0.2))
    one.edge(first=True)
    assert reads_at(one, [0.1, 0.198, 0.3, 0.396]) == [(False,), (True,), (False,), (True,)]


def test_what_raises_between_the_edges_is_a_failed_reading():
    one = looking(CounterSensor(faults={0}), PowerSensor())
    assert one.between(time.monotonic_ns(), 0.1)[0][0] is None


@pytest.mark.parametrize("sensor", [CounterSensor(), RamModelSensor()])
def test_counters_and_what_changes_slowly_lose_nothing_by_waiting(sensor):
    assert is_easy(sensor.info)
    assert not is_easy(PowerSensor().info)


def test_a_reading_of_what_changes_slowly_stands_until_the_next_second():
    info = RamModelSensor().info
    sensor = signal_sensor(info, info.channels[0], 0.1)
    assert sensor.gap_us >= 2 * SLOW_S * 1e6
    assert sensor.update_period_us is None


def test_a_run_whose_memory_is_read_once_a_second_is_covered(tmp_path):
    watch = Watch((RamModelSensor(),))
    one = Session(new_run("test"), watch, tmp_path / "ledger", journal_folder=tmp_path / "journal")
    one.start()
    time.sleep(2.5)
    run = one.finish().run
    assert run.coverage == pytest.approx(1.0)
    assert run.energy[0].state == "known"
    assert one.is_easy


def beside(counter, power):
    """Return the two with power described as it is beside a counter of the same devices."""
    info = msgspec.structs.replace(power.info, channels=counter.info.channels, slow=True)
    return Looking([counter, power], [counter.info, info])


def test_power_beside_a_counter_is_read_at_every_look_of_a_young_run_and_once_a_second_of_an_old_one():
    one = beside(CounterSensor(), PowerSensor())
    one.edge(first=True)
    young = reads_at(one, [2 + k / 10 for k in range(21)])
    assert all(power for _, power in young)
    assert not one.is_easy_at(STEADY_S - 0.1)
    assert one.is_easy_at(STEADY_S)
    old = reads_at(one, [100 + k / 10 for k in range(21)])
    assert sum(told is not None and told[1] for told in old) <= 3
    assert sum(told is not None and told[1] for told in old) >= 2


@pytest.mark.parametrize("dies_at", [0, 3])
def test_power_beside_a_counter_that_stands_still_is_read_at_every_look(dies_at):
    """Or that has failed: power has the energy then, and each look counts."""
    counter, power = CounterSensor(), PowerSensor()
    alive, asked = counter.read, []

    def read(*, edge):
        asked.append(edge)
        return alive(edge=edge) if len(asked) <= dies_at else (None if dies_at else 5.0,)

    counter.read = read
    one = beside(counter, power)
    one.edge(first=True)
    assert all(told is not None and told[1] for told in reads_at(one, [2 + k / 10 for k in range(21)]))
    assert not one.is_easy_at(100)
    assert all(told is not None and told[1] for told in reads_at(one, [100 + k / 10 for k in range(21)]))


def test_power_whose_devices_no_counter_counts_is_read_at_every_look():
    counter, power = CounterSensor(), PowerSensor()
    other = msgspec.structs.replace(
        power.info, channels=(msgspec.structs.replace(power.info.channels[0], device="another"),)
    )
    assert beside_counters(
        msgspec.structs.replace(power.info, channels=counter.info.channels), [counter.info]
    )
    assert not beside_counters(other, [counter.info])
    assert easy_from_s(other, [counter.info, other]) == math.inf
    assert easy_from_s(counter.info, [counter.info, other]) == 0.0


def test_a_trace_has_power_beside_a_counter_at_every_look():
    counter, power = CounterSensor(), PowerSensor()
    info = msgspec.structs.replace(power.info, channels=counter.info.channels, slow=True)
    one = Looking([counter, power], [counter.info, info], all_at_once=True)
    assert not one.is_easy_at(1e6)
    assert reads_at(one, [100.0, 100.1, 100.2]) == [(True, True)] * 3
