"""Polling: a source that takes its time to answer is asked beside the work.

A management controller needs 0.1 to several seconds for an answer; the work waits
for none of them. The last answer stands until it is too old.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Final

from carbonlens.metering.threads import start_beside
from carbonlens.signals.sensor import GAP_PERIODS

PERIOD_S: Final = 1.0
"""Controllers seldom have a new figure more often than once a second."""


_ODD_ANSWERS: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What code raises at text and numbers of a shape that it was not written for."""


class Poll:
    """Asks again and again from ``start`` to ``stop``.

    Args:
        ask: Returns watts; raises OSError where there is no figure now. What it raises
            at an answer that nobody foresaw is a fault of that one answer.
        clock: Monotonic seconds.
    """

    def __init__(self, ask: Callable[[], float], clock: Callable[[], float] = time.monotonic) -> None:
        """Keep both; nothing is asked yet."""
        self._ask = ask
        self._clock = clock
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._answered = threading.Event()
        self._started = False
        self._watts: float | None = None
        self._at_s = 0.0
        self._fault = "no answer yet"

    def start(self) -> None:
        """Begin to ask; a second call does nothing.

        Raises:
            OSError: If it was stopped.
        """
        with self._lock:
            if self._stop.is_set():
                raise OSError("the sensor is closed")
            if not self._started:
                self._started = True
                start_beside(self._run, "carbonlens-poll")

    def stop(self) -> None:
        """Ask no more; a question under way ends by its own time limit."""
        self._stop.set()

    def wait(self, wait_s: float) -> bool:
        """Wait for the first answer or fault; tell whether there is one."""
        return self._answered.wait(wait_s)

    def latest(self) -> float:
        """Return the last watts.

        Raises:
            OSError: If the last question failed, the last answer is too old, or the
                poll was stopped.
        """
        if self._stop.is_set():
            raise OSError("the sensor is closed")
        with self._lock:
            if self._watts is None:
                raise OSError(self._fault)
            if self._clock() - self._at_s > GAP_PERIODS * PERIOD_S:
                raise TimeoutError("the last answer is too old")
            return self._watts

    def _run(self) -> None:
        while not self._stop.is_set():
            began_s = self._clock()
            watts: float | None = None
            fault = ""
            try:
                watts = self._ask()
            except OSError as error:
                fault = str(error) or type(error).__name__
            except _ODD_ANSWERS as error:
                # Its text may quote what was sent.
                fault = f"an answer that is not understood ({type(error).__name__})"
            if watts is not None and not 0 <= watts < math.inf:
                watts, fault = None, f"an answer that is no power: {watts:g} W"
            with self._lock:
                self._watts, self._at_s, self._fault = watts, self._clock(), fault
            self._answered.set()
            self._stop.wait(max(PERIOD_S - (self._clock() - began_s), 0.0))
