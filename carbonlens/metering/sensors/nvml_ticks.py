"""When a GPU's energy counter moves, so that a reading can be carried on to its own moment.

On an H100 the counter moves every 0.1 s, at a phase that holds to 2 ms over 25 s, and
then tells what was drawn until about 10 ms before (measured by this project,
2026-11-28). A reading is therefore up to 0.1 s old: 2 % of a window of 5 s. Whoever
knows when the last move was adds the power of the moment times the age.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from carbonlens.metering.threads import start_beside

PERIOD_S: Final = 0.1
"""The one period that is used: a measured one would drift over a window."""

_CLOSE: Final = 0.015
"""Two moves this near to a period apart confirm it, in seconds."""

_LONGEST_SEARCH_S: Final = 0.35
_MOST_READS: Final = 350
FRESH_S: Final = 120.0
"""Age up to which a phase is believed; longer windows do not need it."""

_REST_S: Final = 0.001
_BEGIN_AFTER_S: Final = 0.06
"""A search begins after the edge of a window that asked for it has been read."""

_in_turn = threading.Lock()
"""One counter at a time: reads of several hold each other up in the driver."""


class Ticks:
    """The phase of one GPU's counter, looked for in a thread of its own.

    Args:
        read_j: Reads the counter; raises ``OSError`` for a fault.
        clock: Seconds of a monotonic clock.
        sleep: Waits.
    """

    def __init__(
        self,
        read_j: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Prepare; nothing is read."""
        self._read_j = read_j
        self._clock = clock
        self._sleep = sleep
        self._moved_at: float | None = None
        self._has_none = False
        self._lock = threading.Lock()

    def age_s(self) -> float | None:
        """Return how long ago the counter moved last; ``None`` when that is not known."""
        moved_at, now = self._moved_at, self._clock()
        if moved_at is None or now - moved_at > FRESH_S:
            return None
        return (now - moved_at) % PERIOD_S

    @property
    def known(self) -> bool:
        """Whether the phase is known, and fresh."""
        return self.age_s() is not None

    def look_beside(self) -> None:
        """Look for the phase in a thread, unless it is known, looked for, or known not to be there."""
        if not self.known and not self._has_none and self._lock.acquire(blocking=False):
            start_beside(self._search_and_release, "carbonlens-ticks")

    def _search_and_release(self) -> None:
        try:
            self._sleep(_BEGIN_AFTER_S)
            with _in_turn:
                self.search()
        finally:
            self._lock.release()

    def search(self) -> None:
        """Read the counter until it has moved twice, a period apart; give up after a while."""
        end = self._clock() + _LONGEST_SEARCH_S
        moves: list[float] = []
        try:
            last = self._read_j()
            before = self._clock()
            for _ in range(_MOST_READS):
                self._sleep(_REST_S)
                if self._clock() > end:
                    break
                begin = self._clock()
                joules = self._read_j()
                if joules != last:
                    # It moved between the last call and this one.
                    moves.append((before + begin) / 2)
                    last = joules
                if len(moves) > 1 and abs(moves[-1] - moves[-2] - PERIOD_S) < _CLOSE:
                    self._moved_at = moves[-1]
                    return
                before = self._clock()
        except OSError:
            return
        # A counter that moves otherwise is not asked again: each search costs as much as it reads.
        self._has_none = True
