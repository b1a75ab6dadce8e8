"""Asking drivers: a hang costs its limit once, and other sessions are not held up by it."""

import threading
import time

from carbonlens.metering.sensors import Probe
from carbonlens.metering.sensors.probing import DriverProbes, probed
from tests.metering.sensors import CounterSensor
from tests.stalls import unless_stalled

WAIT_S = 0.3


class Driver(CounterSensor):
    """Answers a probe when ``gate`` is open."""

    def __init__(self, *, usable=True, hung=False):
        super().__init__()
        self.gate = threading.Event()
        self.usable = usable
        self.probes = 0
        if not hung:
            self.gate.set()

    def probe(self):
        self.probes += 1
        self.gate.wait(30)
        return Probe(usable=self.usable, found="a driver")


class Broken(CounterSensor):
    """Raises what a library may raise."""

    def probe(self):
        raise RuntimeError("segment of a library")


def seconds_of(work):
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


def test_a_driver_that_answers_is_used():
    sensor = Driver()
    answer = DriverProbes(WAIT_S).ask(("x",), [sensor])
    assert answer.sensors == (sensor,)
    assert answer.probes[0].usable


def test_a_hung_driver_is_waited_for_once_and_no_longer_than_the_limit():
    drivers, sensor = DriverProbes(WAIT_S), Driver(hung=True)
    took, answer = seconds_of(lambda: drivers.ask(("x",), [sensor]))
    assert answer is None
    assert WAIT_S * 0.9 < took < WAIT_S + 0.5

    def again(left):
        took, answer = seconds_of(lambda: drivers.ask(("x",), [sensor]))
        assert answer is None
        assert took < WAIT_S / 2

    unless_stalled(again)
    assert sensor.probes == 1
    sensor.gate.set()


def test_several_hung_drivers_are_waited_for_together():
    def once(left):
        drivers, sensors = DriverProbes(WAIT_S), [Driver(hung=True) for _ in range(4)]

        def asked():
            begun = [drivers.begin((str(k),), [sensor]) for k, sensor in enumerate(sensors)]
            return [one.answer() for one in begun]

        took, answers = seconds_of(asked)
        for sensor in sensors:
            sensor.gate.set()
        assert answers == [None] * 4
        assert took < 2 * WAIT_S

    unless_stalled(once)


def test_a_driver_that_came_back_is_used_by_later_sessions():
    drivers, sensor = DriverProbes(WAIT_S), Driver(hung=True)
    assert drivers.ask(("x",), [sensor]) is None
    sensor.gate.set()
    time.sleep(0.1)
    assert drivers.ask(("x",), [sensor]).is_of_use


def test_another_driver_is_asked_while_one_hangs():
    drivers, sensor = DriverProbes(WAIT_S), Driver(hung=True)
    drivers.ask(("x",), [sensor])
    assert drivers.ask(("y",), [Driver()]).is_of_use
    sensor.gate.set()


def test_a_driver_that_offers_nothing_is_asked_again_after_a_minute_only():
    now = [1000.0]
    drivers, sensor = DriverProbes(WAIT_S, lambda: now[0]), Driver(usable=False)
    for _ in range(3):
        assert not drivers.ask(("x",), [sensor]).is_of_use
    assert sensor.probes == 1
    now[0] += 61
    drivers.ask(("x",), [sensor])
    assert sensor.probes == 2


def test_a_slow_probe_is_kept_for_later_sessions_when_asked_for():
    drivers, first, second = DriverProbes(WAIT_S), Driver(), Driver()
    drivers.ask(("x",), [first], keep=True)
    assert drivers.ask(("x",), [second], keep=True).sensors == (first,)
    assert second.probes == 0


def test_a_probe_that_breaks_is_a_source_that_cannot_be_used():
    probe = probed(Broken())
    assert not probe.usable
    assert "segment of a library" in probe.reason
    answer = DriverProbes(WAIT_S).ask(("x",), [Broken(), Driver()])
    assert [p.usable for p in answer.probes] == [False, True]
