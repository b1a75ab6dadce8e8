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
        self._asked_ahead: _Answer | None = None
        self._here_since: float | None = None
        self.read_at_ns: int | None = None
        """Middle of the last reading's time, by the monotonic clock."""
        self._thread: threading.Thread | None = None
        self.stalled = False

    @property
    def info(self) -> SensorInfo:
        """Describe the readings, as the wrapped sensor does."""
        return self._sensor.info

    def probe(self) -> Probe:
        """Look whether the source can be read; may hang."""
        return self._sensor.probe()

    def ask(self, *, edge: bool) -> None:
        """Have the reading begin that ``read`` waits for.

        Of several sensors each is asked before the first is waited for, so that
        together they hold nobody longer than one.
        """
        if self._asked_ahead is None and not self._is_held:
            self._asked_ahead = self._put(edge)

    def read(self, *, edge: bool) -> tuple[float | None, ...]:
        """Return a reading taken just now.

        Raises:
            OSError: If there is none in time, or the sensor's own reading failed.
        """
        answer, self._asked_ahead = self._asked_ahead, None
        if answer is None:
            self._refuse_if_held()
            answer = self._put(edge)
        if not answer.done.wait(max(answer.until_s - time.monotonic(), 0.0)):
            self.stalled = True
            raise TimeoutError("no reading in time")
        if answer.values is None:
            raise OSError(answer.fault)
        self.read_at_ns = answer.at_ns
        return answer.values

    @property
    def _is_held(self) -> bool:
        """Whether an earlier reading hangs still, in either thread."""
        if self._pending is not None and not self._pending.done.is_set():
            return True
        since = self._here_since
        return since is not None and time.monotonic() - since > self._wait_s

    def _refuse_if_held(self) -> None:
        if self._is_held:
            self.stalled = True
            raise TimeoutError("an earlier reading has not come back yet")

    def _put(self, edge: bool) -> _Answer:
        if self._thread is None:
            self._thread = start_beside(self._answer_all, "carbonlens-sensor")
        answer = self._pending = _Answer(time.monotonic() + self._wait_s)
        self._asked.put((edge, answer))
        return answer

    def read_here(self) -> tuple[float | None, ...]:
        """Return a reading taken in the calling thread, which must be one of our own.

        The sampler may hang with a driver, the user's thread may not; and a reading
        handed over between threads costs more than the reading itself.

        Raises:
            OSError: If an earlier reading hangs still, or the sensor's own reading failed.
        """
        pending = self._pending
        if self._here_since is not None or (pending is not None and not pending.done.is_set()):
            self._refuse_if_held()
        begin_ns = time.monotonic_ns()
        self._here_since = begin_ns / 1e9
        try:
            values = self._sensor.read(edge=False)
        finally:
            self._here_since = None
            end_ns = time.monotonic_ns()
            if end_ns - begin_ns > self._wait_s * 1e9:
                self.stalled = True
        self.read_at_ns = (begin_ns + end_ns) // 2
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
            begin_ns = time.monotonic_ns()
            try:
                answer.values = self._sensor.read(edge=edge)
            except Exception as error:  # noqa: BLE001  # law 8: whatever a driver raises is a gap
                answer.fault = f"{type(error).__name__}: {error}"
            answer.at_ns = (begin_ns + time.monotonic_ns()) // 2
            answer.done.set()
        self._sensor.close()


class _Answer:
    """A reading that may be still to come, and is waited for until some time."""

    def __init__(self, until_s: float) -> None:
        self.until_s = until_s
        self.at_ns: int | None = None
        self.done = threading.Event()
        self.values: tuple[float | None, ...] | None = None
        self.fault = ""
