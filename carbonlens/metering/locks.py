"""Locks that nobody waits for without end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
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
