"""Sensors that behave as badly as real ones, for the sessions under test."""

import time

from carbonlens.metering.sensors import Channel, Probe, SensorInfo


class CounterSensor:
    """A package counter that rises 10 J a reading.

    Args:
        faults: Readings, by number from 0, at which ``fault`` happens.
        hang_s: How long a faulty reading takes; it raises when 0.
    """

    rest_s = 0.0

    def __init__(self, faults=(), *, hang_s=0.0, may_block=False, error=None):
        self.may_block = may_block
        self.closed = False
        self.reads = 0
        self._faults = set(faults)
        self._hang_s = hang_s
        self._error = error or OSError("lost")

    @property
    def info(self):
        return SensorInfo(
            name="counter",
            kind="cumulative",
            unit="J",
            scope="package",
            boundary="it",
            grade="B",
            update_period_s=0.001,
            channels=(Channel(device="package-0", component="cpu"),),
            method="test counter",
        )

    def probe(self):
        return Probe(usable=True, found="package-0")

    def read(self, *, edge):
        number = self.reads
        self.reads += 1
        if number in self._faults:
            if self._hang_s:
                time.sleep(self._hang_s)
            else:
                raise self._error
        return (10.0 * number,)

    def close(self):
        self.closed = True
