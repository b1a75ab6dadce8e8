"""Reading a sensor that may hang, without hanging with it."""

from __future__ import annotations

import queue
import threading
import time
from typing import Final

from carbonlens.metering.sensors import Probe, Sensor, SensorInfo
from carbonlens.metering.threads import start_beside

WAIT_S: Final = 0.05
"""The longest a reading is waited for; law 8 allows 50 ms at the edges of a window."""


class PatientSensor:
    """Reads another sensor in a thread of its own and gives up waiting after a while.

    A driver can hang for good. Its thread is then left behind, each further reading
    fails at once, and the time counts as not covered. A reading that comes too late
    is dropped, because nobody knows when it was true.

    Args:
        sensor: The sensor that may hang.
        wait_s: The longest to wait.
    """

    may_block = False

    def __init__(self, sensor: Sensor, wait_s: float = WAIT_S) -> None:
        """Wrap; the thread starts with the first reading."""
        self._sensor = sensor
        self.rest_s = sensor.rest_s
        self._wait_s = wait_s
        self._asked: queue.SimpleQueue[tuple[bool, _Answer] | None] = queue.SimpleQueue()
        self._pending: _Answer | None = None
        self._thread: threading.Thread | None = None
        self.stalled = False

    @property
    def info(self) -> SensorInfo:
        """Describe the readings, as the wrapped sensor does."""
        return self._sensor.info

    def probe(self) -> Probe:
        """Look whether the source can be read; may hang."""
        return self._sensor.probe()

    def read(self, *, edge: bool) -> tuple[float | None, ...]:
        """Return a reading taken just now.

        Raises:
            OSError: If there is none in time, or the sensor's own reading failed.
        """
        if self._pending is not None and not self._pending.done.is_set():
            raise TimeoutError("an earlier reading has not come back yet")
        if self._thread is None:
            self._thread = start_beside(self._answer_all, "carbonlens-sensor")
        answer = self._pending = _Answer()
        self._asked.put((edge, answer))
        if not answer.done.wait(self._wait_s):
            self.stalled = True
            raise TimeoutError("no reading in time")
        if answer.values is None:
            raise OSError(answer.fault)
        return answer.values

    def read_here(self) -> tuple[float | None, ...]:
        """Return a reading taken in the calling thread, which must be one of our own.

        The sampler may hang with a driver, the user's thread may not; and a reading
        handed over between threads costs more than the reading itself.

        Raises:
            OSError: If an earlier reading hangs still, or the sensor's own reading failed.
        """
        if self._pending is not None and not self._pending.done.is_set():
            raise TimeoutError("an earlier reading has not come back yet")
        begin = time.monotonic()
        values = self._sensor.read(edge=False)
        if time.monotonic() - begin > self._wait_s:
            self.stalled = True
        return values

    def close(self) -> None:
        """Have the thread close the sensor, once it is free."""
        if self._thread is None:
            self._sensor.close()
        else:
            self._asked.put(None)
            self._thread = None

    def _answer_all(self) -> None:
        while (request := self._asked.get()) is not None:
            edge, answer = request
            try:
                answer.values = self._sensor.read(edge=edge)
            except Exception as error:  # noqa: BLE001  # law 8: whatever a driver raises is a gap
                answer.fault = f"{type(error).__name__}: {error}"
            answer.done.set()
        self._sensor.close()


class _Answer:
    """A reading that may be still to come."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.values: tuple[float | None, ...] | None = None
        self.fault = ""
