"""Threads of our own beside the user's work."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Final

_GIVEN_UP: Final[list[threading.Thread]] = []


def start_beside(work: Callable[[], object], name: str) -> threading.Thread:
    """Start a daemon thread that takes no signals.

    A signal sent to the process must reach the thread the user's program expects
    it in, or the one that ``carbonlens run`` waits for it in. A fault ends the
    thread and nothing else: what it would have done is missing from the record.

    Args:
        work: What the thread does.
        name: Shown in debuggers.
    """

    def quiet() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            work()
        except Exception:  # noqa: BLE001  # law 8: a fault beside the work prints nothing into it
            return

    thread = threading.Thread(target=quiet, name=name, daemon=True)
    thread.start()
    return thread


def give_up_on(thread: threading.Thread) -> None:
    """Remember a thread that nobody waits for any longer, though it may still be at work."""
    _GIVEN_UP.append(thread)


def holds_given_up() -> bool:
    """Return whether a thread that was given up on is still at work."""
    return any(thread.is_alive() for thread in _GIVEN_UP)
