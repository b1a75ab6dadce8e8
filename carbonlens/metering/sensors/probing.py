"""Probing: asking whether a source can be read, where the answer may never come.

A driver can hang in its first call, and the start of the user's work must not hang
with it. Such sensors are probed in a thread of their own. A driver is waited for once
a process; what came of it is known to later sessions.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from carbonlens.metering.sensors import Probe, Sensor
from carbonlens.metering.threads import start_beside

WAIT_S: Final = 2.0
"""The longest that the first answer of a driver is waited for."""

AGAIN_S: Final = 0.05
"""The same, of a driver that did not answer in time before (law 8 allows 50 ms)."""

RETRY_S: Final = 60.0
"""A driver that offered nothing is not asked again before."""


class Answer(msgspec.Struct, frozen=True):
    """The sensors of one driver, and what each found, in the same order."""

    sensors: tuple[Sensor, ...]
    probes: tuple[Probe, ...]

    @property
    def is_of_use(self) -> bool:
        """Whether any of them can be read."""
        return any(probe.usable for probe in self.probes)


class Asked(msgspec.Struct, frozen=True):
    """A driver that was asked.

    Attributes:
        answer: Waits for what is left of the driver's time and returns what came of it;
            ``None`` when there was no answer in time.
    """

    answer: Callable[[], Answer | None]


class DriverProbes:
    """Asks drivers, and remembers which of them to wait for.

    Args:
        wait_s: The longest to wait for a first answer.
        clock: Monotonic seconds.
    """

    def __init__(self, wait_s: float = WAIT_S, clock: Callable[[], float] = time.monotonic) -> None:
        """Start without having asked any."""
        self._wait_s = wait_s
        self._clock = clock
        self._lock = threading.Lock()
        self._hung: dict[tuple[object, ...], threading.Event] = {}
        self._refused: dict[tuple[object, ...], tuple[float, Answer]] = {}
        self._kept: dict[tuple[object, ...], Answer] = {}

    def ask(self, key: Sequence[object], sensors: Sequence[Sensor], *, keep: bool = False) -> Answer | None:
        """Probe the sensors of one driver; arguments and result as of ``begin`` and ``Asked.answer``."""
        return self.begin(key, sensors, keep=keep).answer()

    def begin(self, key: Sequence[object], sensors: Sequence[Sensor], *, keep: bool = False) -> Asked:
        """Begin to probe the sensors of one driver.

        Several drivers are begun before the first is waited for, so that together they
        are waited for no longer than one.

        Args:
            key: The driver, and what its answer depends on.
            sensors: Probed one after the other, in one thread.
            keep: True to use the same sensors again in later sessions, for a probe that
                takes long and a sensor that several sessions may read at a time.
        """
        # A forked child has none of its parent's threads, and asks for itself.
        place = (os.getpid(), *key)
        with self._lock:
            known = self._known(place)
            hung = self._hung.get(place)
        if known is not None:
            return Asked(lambda: known)
        if hung is not None and not hung.is_set():
            return Asked(lambda: None)  # the thread that asked before is still waiting
        wait = self._asked(place, sensors, self._wait_s if hung is None else AGAIN_S)

        def answer() -> Answer | None:
            found = wait()
            if found is not None:
                with self._lock:
                    if not found.is_of_use:
                        self._refused[place] = (self._clock(), found)
                    elif keep:
                        self._kept[place] = found
            return found

        return Asked(answer)

    def _known(self, place: tuple[object, ...]) -> Answer | None:
        kept = self._kept.get(place)
        if kept is not None:
            return kept
        at_s, refused = self._refused.get(place, (0.0, None))
        return refused if self._clock() - at_s < RETRY_S else None

    def _asked(
        self, place: tuple[object, ...], sensors: Sequence[Sensor], wait_s: float
    ) -> Callable[[], Answer | None]:
        found: list[Probe] = []
        done = threading.Event()

        def ask() -> None:
            try:
                found.extend(probed(sensor) for sensor in sensors)
            finally:
                done.set()

        end_s = time.monotonic() + wait_s
        start_beside(ask, "carbonlens-probe")

        def wait() -> Answer | None:
            if not done.wait(max(end_s - time.monotonic(), 0.0)):
                with self._lock:
                    self._hung[place] = done
                return None
            return Answer(tuple(sensors), tuple(found))

        return wait


def probed(sensor: Sensor) -> Probe:
    """Probe a sensor; one that breaks is one that cannot be used."""
    try:
        return sensor.probe()
    except Exception as error:  # noqa: BLE001  # law 8: whatever a driver's library raises is a missing source
        return Probe(
            usable=False,
            found=type(sensor).__name__,
            reason=f"its probe failed: {error or type(error).__name__}",
        )


PROCESS_PROBES: Final = DriverProbes()
"""Of this process: all its sessions share what was found."""
