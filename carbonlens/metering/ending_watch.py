"""What is done about a signal whose handler Python cannot run, because the main thread is deep in C.

A job that hangs in a collective of its GPUs must end by SIGTERM as it always did. Python's
own handler waits there for the next bytecode; the byte that the interpreter writes for
every signal (``signal.set_wakeup_fd``) does not. A thread waits for it, gives the handler
time, and then does the handler's work itself. Where somebody else uses that byte (asyncio,
Trio), it is left to them.
"""

from __future__ import annotations

import _thread
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

PATIENCE_S: Final = 0.5
"""Time that the main thread gets to run the handler."""

_NONE: Final = -1
_kept: list[object] = []
"""What the interpreter may call later still."""


class EndingWatch:
    """Watches over the handlers of one process.

    Args:
        is_handled: Tells whether the handler of a signal has begun.
        instead: Does its work, in another thread than the main one.
        patience_s: Time that the handler gets.
    """

    def __init__(
        self, is_handled: Callable[[], bool], instead: Callable[[int], None], patience_s: float = PATIENCE_S
    ) -> None:
        """Start without a thread."""
        self._is_handled = is_handled
        self._instead = instead
        self._patience_s = patience_s
        self._write = _NONE
        self._wanted: frozenset[int] = frozenset()

    def begin(self, numbers: frozenset[int]) -> None:
        """Watch over the handlers of these signals; to be called by the main thread.

        Nothing is watched where another has taken the byte, or no thread can be had.
        """
        self._wanted |= numbers
        try:
            if self._write == _NONE:
                read, self._write = os.pipe()
                os.set_blocking(self._write, False)
                _thread.start_new_thread(self._loop, (read,))
            before = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
            if before not in (_NONE, self._write):
                signal.set_wakeup_fd(before, warn_on_full_buffer=False)
        except (OSError, RuntimeError, ValueError):
            return

    def end(self) -> None:
        """Watch no more, and leave the byte to others; to be called by the main thread."""
        self._wanted = frozenset()
        if self._write == _NONE:
            return
        with suppress(OSError, ValueError):
            before = signal.set_wakeup_fd(_NONE)
            if before not in (_NONE, self._write):
                signal.set_wakeup_fd(before, warn_on_full_buffer=False)

    def _loop(self, read: int) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while True:
            try:
                told = os.read(read, 1)
            except OSError:
                return
            if not told:
                return
            if told[0] in self._wanted and not self._soon_handled():
                self._instead(told[0])

    def _soon_handled(self) -> bool:
        """Return whether the handler has begun, or the signal was not for this process.

        A child that a library forked shares the byte's pipe. Where the main thread runs
        bytecode, and so would have run the handler, the signal was the child's.
        """
        turns = _turns_of_the_main_thread()
        deadline = time.monotonic() + self._patience_s
        while time.monotonic() < deadline and not self._is_handled():
            time.sleep(0.01)
        return self._is_handled() or bool(turns)


def _turns_of_the_main_thread() -> list[bool]:
    """Return a list that gets an entry as soon as the main thread runs bytecode (Py_AddPendingCall)."""
    import ctypes  # only a signal needs it

    turns: list[bool] = []

    def note(_: object) -> int:
        turns.append(True)
        return 0

    noted = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(note)
    _kept.append(noted)
    ctypes.pythonapi.Py_AddPendingCall(noted, None)
    return turns


def default_action(number: int) -> None:
    """Put a signal's default action in place from any thread, which Python does only from its main one."""
    import ctypes  # as above

    ctypes.CDLL(None).signal(number, None)
