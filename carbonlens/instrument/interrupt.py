"""Ctrl-C during a series of measurements: the first ends it in order, a second one at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupt_noted() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into an event; a second one interrupts as usual."""
    noted = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    in_main = threading.current_thread() is threading.main_thread()
    # A job in the background ignores Ctrl-C and shall go on doing so.
    if not in_main or before is None or before is signal.SIG_IGN:
        yield noted
        return

    def note(_signal: int, _frame: FrameType | None) -> None:
        noted.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)
