"""Times in which the machine stood still: what a test measured through one says nothing.

A window of some milliseconds is held against what was drawn in it. A machine that stops
for ten of them between a reading and the clock beside it makes any such figure wrong, and
so a measurement that fails is made again, but only where a stall is seen.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

BEAT_S = 0.001
TURN_S = 0.0005
"""How long one thread goes on while others wait; 5 ms otherwise, which no beat could be told from."""

STALL_S = 0.003
"""Longest time between two beats of a machine that works, at turns of that length."""


class Heartbeat:
    """The longest time between two beats so far."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def _beat(self) -> None:
        last = time.monotonic()
        while not self._ended.is_set():
            time.sleep(BEAT_S)
            now = time.monotonic()
            self.longest_s = max(self.longest_s, now - last)
            last = now


@contextmanager
def heartbeat() -> Iterator[Heartbeat]:
    """Watch for stalls within the block."""
    beat = Heartbeat()
    turn_s = sys.getswitchinterval()
    sys.setswitchinterval(TURN_S)
    beat._thread.start()
    try:
        yield beat
    finally:
        beat._ended.set()
        beat._thread.join()
        sys.setswitchinterval(turn_s)


def unless_stalled(once: Callable[[int], T], tries: int = 6) -> T:
    """Return what a measurement gives; one that fails while the machine stalls is made again.

    Args:
        once: Measures and checks; gets the number of tries left.
        tries: At most; the last one counts in any case.
    """
    for left in reversed(range(tries)):
        try:
            with heartbeat() as beat:
                return once(left)
        except AssertionError:
            if not left or beat.longest_s <= STALL_S:
                raise
    raise AssertionError("the last try returns or raises")


def waited_s() -> float:
    """Return a clock of this thread's waiting, in seconds: it stands while the thread works or would.

    On a busy machine a thread that is ready to go on is kept from it by others (the second
    figure of ``/proc/thread-self/schedstat``), which is no wait of the program's own. Where the
    kernel does not tell, all time counts; it counts by its ticks, of up to 10 ms.
    """
    try:
        worked_ns, kept_ns = map(int, Path("/proc/thread-self/schedstat").read_bytes().split()[:2])
    except (OSError, ValueError):
        worked_ns = kept_ns = 0
    return time.monotonic() - (worked_ns + kept_ns) / 1e9


def least(once: Callable[[int], float], limit: float, tries: int = 12) -> float:
    """Return the least of some measurements, the last of which is the first one below a limit.

    What a program waits for, it waits for every time; a busy machine adds to it at times only.

    Args:
        once: Measures; gets the number of the try, from 0.
        limit: What is asked.
        tries: At most.
    """
    best = once(0)
    for number in range(1, tries):
        if best < limit:
            break
        best = min(best, once(number))
    return best
