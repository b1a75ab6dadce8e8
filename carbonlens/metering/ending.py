"""A process that is ended by a signal: its open runs are sealed before it dies.

Law 8 sets the terms. A handler is installed where nobody else has one (the default
action is in place, also behind Python's back), by the main thread, while a run is open,
and the process still dies by the signal, so that whoever waits for it sees no difference.
A handler that comes later replaces this one. Should it call this one in turn, nothing is
done: what happens then is its decision.

Sealing goes on in a thread of its own, because the work was interrupted anywhere: whatever
lock it holds, the wait has an end, and a run that is not sealed by then has its journal.
The handler runs when the main thread next executes bytecode; where a long call into C
comes first, a thread does its work (``ending_watch``).
"""

from __future__ import annotations

import _thread
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import FrameType
from typing import Final

import msgspec

from carbonlens.metering.ending_watch import EndingWatch, default_action

LIMIT_S: Final = 2.0
"""The longest a process lives on to be sealed: SLURM and Kubernetes kill after 30 s, Docker after 10 s."""

SIGNAL_BASE: Final = 128
"""A shell gives 128 + n as the exit code of what died by signal n."""

_TOLD_S: Final = 0.05
_ENDING: Final = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
_STATUS: Final = Path("/proc/self/status")
_INIT: Final = 1


class OpenRun(msgspec.Struct, frozen=True):
    """An open run, as far as its end by a signal goes.

    Attributes:
        seal: Seals it, given the signal; waits where another thread is sealing it.
        tell: Says what must be said of where it went.
    """

    seal: Callable[[int], None]
    tell: Callable[[], None]


def killed_by(number: int) -> tuple[str, int]:
    """Return the error and the exit code, as a shell gives it, of what died by a signal."""
    return f"killed by signal {number}", SIGNAL_BASE + number


class _Undisturbed(AbstractContextManager[None]):
    """A block that signals wait for; no generator, whose end may come at any time after a Ctrl-C."""

    def __init__(self, ending: Ending) -> None:
        self._ending = ending
        self._holds = False

    def __enter__(self) -> None:
        if _in_main_thread():
            self._holds = True
            self._ending.hold()

    def __exit__(self, *_: object) -> None:
        if self._holds:
            self._ending.let_go()


class Ending:
    """The open runs of one process, and the handlers that seal them.

    Args:
        limit_s: The longest that sealing may take.
        process_status: The kernel's account of this process (proc(5)).
    """

    def __init__(self, limit_s: float = LIMIT_S, process_status: Path = _STATUS) -> None:
        """Start without a run; no handler is installed."""
        self._limit_s = limit_s
        self._status = process_status
        self._pid = os.getpid()
        # No lock: the main thread may be interrupted while it holds one.
        self._open: dict[int, OpenRun] = {}
        self._handler = self._on_signal
        self._watch = EndingWatch(lambda: self._is_handled, self._beside)
        self._is_handled = False
        self._sealing = False
        self._busy = 0
        self._waiting: int | None = None
        self._waiting_since = 0.0

    def opened(self, run: OpenRun) -> None:
        """Seal a run from now on should a signal end the process."""
        self._open[id(run)] = run
        if _in_main_thread():
            self._install()

    def closed(self, run: OpenRun) -> None:
        """Forget a run; with the last one the handlers go, where they are ours still.

        Only the main thread can take them away. Left behind by another thread, they let
        the process die at once.
        """
        self._open.pop(id(run), None)
        if not self._open and _in_main_thread():
            self.restore()

    def undisturbed(self) -> AbstractContextManager[None]:
        """Have a signal wait for the end of the block, which opens or seals a run itself."""
        return _Undisturbed(self)

    def hold(self) -> None:
        """Have signals wait for ``let_go``; called by the main thread."""
        self._busy += 1

    def let_go(self) -> None:
        """Have signals wait no longer, and send one that did."""
        # Never below none: ``calm`` ends the blocks around it too, each of which comes here all the same.
        self._busy = max(self._busy - 1, 0)
        number = self._waiting
        if number is not None and not self._busy:
            self._waiting = None
            os.kill(os.getpid(), number)

    def calm(self) -> None:
        """Have signals wait no longer: a Ctrl-C cut who made them wait, and took the end of it along."""
        if _in_main_thread():
            self._busy = 0

    def restore(self) -> None:
        """Put the default action back where our handler is in place."""
        self._watch.end()
        for number in _ENDING:
            if signal.getsignal(number) == self._handler:
                signal.signal(number, signal.SIG_DFL)

    def _install(self) -> None:
        # For the first process of a container the default action of a signal is none at
        # all: it does not die by it, and must not be sealed as if it did.
        if os.getpid() == _INIT:
            return
        caught = None
        for number in _ENDING:
            if signal.getsignal(number) != signal.SIG_DFL:
                continue
            caught = _caught_signals(self._status) if caught is None else caught
            if caught >> (number - 1) & 1:
                continue  # A library has put a handler there that Python does not know of.
            with suppress(ValueError):  # a sub-interpreter may not
                signal.signal(number, self._handler)
        ours = frozenset(n for n in _ENDING if signal.getsignal(n) == self._handler)
        if ours:
            self._watch.begin(ours)

    def _beside(self, number: int) -> None:
        """Seal and die in another thread, since the main one does not come to it."""
        if signal.getsignal(number) != self._handler or self._sealing or os.getpid() != self._pid:
            return
        self._sealing = True
        try:
            default_action(number)
            if not self._busy:
                self._seal_all(number)
        except BaseException:  # noqa: BLE001, S110  # law 8, as in the handler
            pass
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
            os.kill(os.getpid(), number)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._is_handled = True
        if signal.getsignal(number) != self._handler or self._sealing:
            return
        if os.getpid() != self._pid:
            _die(number)
            return
        if self._busy and not self._waited_enough(number):
            return
        try:
            self._sealing = True
            if not self._busy:
                self._seal_all(number)
        except BaseException:  # noqa: BLE001, S110  # law 8: a Ctrl-C meanwhile, no thread to be had: it dies all the same
            pass
        finally:
            _die(number)

    def _waited_enough(self, number: int) -> bool:
        """Note that a signal waits for ``undisturbed`` to end; true once it has waited for long."""
        if self._waiting is not None:
            return time.monotonic() - self._waiting_since >= self._limit_s
        self._waiting, self._waiting_since = number, time.monotonic()
        try:
            _thread.start_new_thread(self._send_again, (number,))
        except RuntimeError:
            return True
        return False

    def _send_again(self, number: int) -> None:
        """Beside the work: see to it that it is not waited for longer than the limit."""
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        time.sleep(self._limit_s)
        if self._waiting == number:
            os.kill(os.getpid(), number)

    def _seal_all(self, number: int) -> None:
        runs = tuple(reversed(self._open.values()))
        if not runs:
            return
        sealed, told = _thread.allocate_lock(), _thread.allocate_lock()
        sealed.acquire()
        told.acquire()

        def seal() -> None:
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            try:
                _each(runs, number)
            finally:
                sealed.release()
            for run in runs:
                with suppress(BaseException):  # law 8, as above
                    run.tell()
            told.release()

        # Not by ``threading``, whose own locks the interrupted work may hold.
        _thread.start_new_thread(seal, ())
        if sealed.acquire(timeout=self._limit_s):
            told.acquire(timeout=_TOLD_S)


def _each(runs: tuple[OpenRun, ...], number: int) -> None:
    for run in runs:
        with suppress(BaseException):  # law 8: a run that cannot be sealed has its journal
            run.seal(number)


def _die(number: int) -> None:
    """End this process by the signal's default action."""
    signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)


def _in_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident


def _caught_signals(status: Path) -> int:
    """Return the signals that have a handler, one bit each; 0 where the system does not tell."""
    try:
        for line in status.read_bytes().splitlines():
            if line.startswith(b"SigCgt:"):
                return int(line.split()[1], 16)
    except (OSError, ValueError, IndexError):
        pass
    return 0


def process_ending() -> Ending:
    """Return the open runs of this process."""
    return _current


def _after_fork() -> None:
    """Have a forked child die as any other: the runs are its parent's."""
    global _current  # one a process is the point of this module
    inherited, _current = _current, Ending()
    with suppress(ValueError):  # a sub-interpreter has no handlers, and none of ours
        inherited.restore()


_current = Ending()
os.register_at_fork(after_in_child=_after_fork)
