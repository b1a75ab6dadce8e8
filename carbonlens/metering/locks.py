"""Locks that nobody waits for without end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

LOCK_WAIT_S: Final = 0.05
"""The longest that a lock is waited for in the user's thread; law 8 allows 50 ms."""


@contextmanager
def patiently(lock: threading.Lock) -> Iterator[None]:
    """Hold a lock, or go on without it where its holder was interrupted by a signal for good.

    Args:
        lock: Held for moments only, so that whoever waits for long waits in vain.
    """
    held = lock.acquire(timeout=LOCK_WAIT_S)
    try:
        yield
    finally:
        if held:
            lock.release()


class Bell:
    """Wakes one thread; ``threading.Event`` with nothing in Python that a Ctrl-C could cut in two.

    An interrupt in the middle of ``Event.set`` leaves its lock locked for ever, and whoever sets
    or waits next with it.
    """

    def __init__(self) -> None:
        """Start silent."""
        self._silent = threading.Lock()
        self._silent.acquire()

    def is_rung(self) -> bool:
        """Return whether it was rung and nobody has heard it yet."""
        return not self._silent.locked()

    def ring(self) -> None:
        """Wake who waits, or who waits next."""
        with suppress(RuntimeError):  # rung already
            self._silent.release()

    def wait(self, seconds: float) -> bool:
        """Wait until it is rung, which is heard once; return whether it was.

        Args:
            seconds: The longest to wait.
        """
        return self._silent.acquire(timeout=seconds)
