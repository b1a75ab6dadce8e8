"""The sampler: one background thread a process that looks at all open sessions.

How often is a matter of ``pace``: ten times a second at first, because power has to
be sampled, later less often. The edges of a window are read by the caller itself.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

from carbonlens.metering.locks import Bell
from carbonlens.metering.pace import FAST_S, period_s
from carbonlens.metering.threads import start_beside

SYNC_S: Final = 5.0
"""Every so often a journal is put on the disk, for the machine that loses power."""

_IDLE_S: Final = 10.0
_SHORTEST_WAIT_S: Final = 0.005
_LONGEST_WAIT_S: Final = 0.5


class Sampled(Protocol):
    """What the sampler needs of a session.

    ``reads_power`` asks for a steady pace; ``is_easy`` tells that nothing is lost by waiting.
    """

    reads_power: bool

    @property
    def is_easy(self) -> bool:
        """Whether so at this age of the session."""
        ...

    def sample(self) -> None:
        """Look at the sensors and write the journal; raises nothing."""
        ...

    def sync(self) -> None:
        """Put the journal on the disk; raises nothing."""
        ...

    def abandon(self) -> None:
        """Forget everything: this process is a fork of the one that measures."""
        ...


class _Entry:
    """A session with its times of the next look and the next sync."""

    def __init__(self, session: Sampled, now: float) -> None:
        self.session = session
        self.since = now
        self.due = now + FAST_S
        self.sync_due = now + SYNC_S


class Sampler:
    """Looks at sessions in a daemon thread, which ends when there are none."""

    def __init__(self) -> None:
        """Start without a thread."""
        self._lock = threading.Lock()
        self._entries: dict[int, _Entry] = {}
        self._thread: threading.Thread | None = None
        self._added = Bell()
        self._wakes_s = 0.0
        """When the thread looks next by itself, or a time that has passed while it does."""

    def add(self, session: Sampled) -> None:
        """Look at a session from now on."""
        with self._lock:
            entry = self._entries[id(session)] = _Entry(session, time.monotonic())
            if self._thread is None or not self._thread.is_alive():
                self._thread = start_beside(self._loop, "carbonlens-sampler")
            sleeps_on = self._wakes_s > entry.due
        # One that slept on would leave the start of the window without power readings. Where it
        # comes in time it is let alone: woken, it works while the user's work begins.
        if sleeps_on:
            self._added.ring()

    def remove(self, session: Sampled) -> None:
        """Look at a session no more; one look may still be under way."""
        with self._lock:
            self._entries.pop(id(session), None)

    def abandon(self) -> None:
        """Drop all sessions without closing them (in a forked child)."""
        entries, self._entries = self._entries, {}
        for entry in entries.values():
            entry.session.abandon()

    def _loop(self) -> None:
        idle_since = time.monotonic()
        while True:
            now = time.monotonic()
            with self._lock:
                entries = list(self._entries.values())
                if entries:
                    idle_since = now
                elif now - idle_since > _IDLE_S:
                    self._thread = None
                    return
            for entry in entries:
                if entry.due <= now:
                    entry.due = self._next(entry, now)
                    _alone(entry.session.sample)
                if entry.sync_due <= now:
                    entry.sync_due = now + SYNC_S
                    _alone(entry.session.sync)
            self._added.wait(self._rest_s())

    def _rest_s(self) -> float:
        """Return how long to wait for the next look; a session that is added from now on may cut it short."""
        with self._lock:
            now = time.monotonic()
            dues = [entry.due for entry in self._entries.values()]
            wait_s = min(max(min(dues, default=math.inf) - now, _SHORTEST_WAIT_S), _LONGEST_WAIT_S)
            self._wakes_s = now + wait_s
            return wait_s

    @staticmethod
    def _next(entry: _Entry, now: float) -> float:
        """Return when to look again: on the beat, unless that has been missed already."""
        session = entry.session
        period = period_s(now - entry.since, power=session.reads_power, easy=session.is_easy)
        return max(entry.due + period, now + period / 2)


def _alone(work: Callable[[], None]) -> None:
    """Do one session's part; its fault must not end the others' only sampler."""
    try:
        work()
    except Exception:  # noqa: BLE001  # law 8: a session that fails has a gap, the others go on
        return


def process_sampler() -> Sampler:
    """Return this process's only sampler."""
    return _current


def _after_fork() -> None:
    """Give the child a sampler of its own: the parent's thread did not come along."""
    global _current  # one sampler a process is the point of this module
    inherited, _current = _current, Sampler()
    inherited.abandon()


_current = Sampler()
os.register_at_fork(after_in_child=_after_fork)
