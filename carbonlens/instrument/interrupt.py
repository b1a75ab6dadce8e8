"""Signals during a series of measurements: it ends in order, and leaves nothing running."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_ENDING: Final = tuple(getattr(signal, n) for n in ("SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, n))


class Terminated(KeyboardInterrupt):  # like the one it is a kind of, no fault of the work
    """A signal asks the process to end; work at hand did not end, as with Ctrl-C."""

    def __init__(self, number: int) -> None:
        """Keep which signal."""
        super().__init__(f"signal {number}")
        self.number = number


@contextmanager
def interrupt_noted() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into an event; a second one interrupts as usual."""
    noted = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    # A job in the background ignores Ctrl-C and shall go on doing so.
    if not _in_main_thread() or before is None or before is signal.SIG_IGN:
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


@contextmanager
def ended_in_order() -> Iterator[None]:
    """Have a signal that asks for the end unwind the block, and the process die by it after that.

    SIGTERM, SIGHUP and SIGQUIT raise ``Terminated``, so that what was started is ended; a
    second one ends the process at once. One that somebody handles or ignores (nohup) stays so.
    """
    ours = [n for n in _ENDING if _in_main_thread() and signal.getsignal(n) is signal.SIG_DFL]

    def restore() -> None:
        for number in ours:
            if signal.getsignal(number) is unwind:
                signal.signal(number, signal.SIG_DFL)

    def unwind(number: int, _frame: FrameType | None) -> None:
        restore()
        raise Terminated(number)

    for number in ours:
        signal.signal(number, unwind)
    try:
        yield
    except Terminated as end:
        os.kill(os.getpid(), end.number)
        raise
    finally:
        if _in_main_thread():
            restore()


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
