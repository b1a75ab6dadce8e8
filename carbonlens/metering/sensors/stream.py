"""Streams: bytes from a program or a pipe, read beside the work, and counters made of them.

A program runs in a session of its own: it has no terminal to ask for a password in,
Ctrl-C does not reach it, and it reads nothing of what the user types. It ends with
the sensor. Should this process be killed, its pipe closes, and the program ends
with the next line it prints; where nothing but measuring is done (``carbonlens run``),
Linux ends it at once.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from carbonlens.metering.process_time import leave_out, wait_left_out
from carbonlens.metering.threads import start_beside

EARLY_END_S: Final = 0.03
"""How long the start of a run waits for a program that ends at once (law 8 allows 50 ms)."""

_GRACE_S: Final = 0.04
_REAP_S: Final = 5.0
_LOOK_S: Final = 0.1
_CHUNK: Final = 65536
_WAIT_STEP_S: Final = 0.005
_MS_PER_S: Final = 1000
_PR_SET_PDEATHSIG: Final = 1


class ByteSource(Protocol):
    """Where bytes come from; ``end`` may be called by any thread, the rest by one."""

    def open(self) -> None:
        """Start or open it; raises OSError."""
        ...

    def read(self, wait_s: float) -> bytes | None:
        """Return what came; ``None`` for nothing yet, and nothing more for an end."""
        ...

    def end(self) -> None:
        """Have it end; waits a moment at most."""
        ...

    def close(self) -> None:
        """Give back what was opened."""
        ...


class Program:
    """A program that prints. Its CPU time is no part of the work.

    Args:
        command: Program and arguments; no shell reads them.
        tied: True to have it end when this process is killed, though it prints nothing.
            Takes effect on Linux, in the main thread: a child is tied to the thread that
            starts it. It runs code in the child before the program, which a process
            with threads of its own had better not do.
    """

    def __init__(self, command: Sequence[str], *, tied: bool = False) -> None:
        """Keep the command; nothing is started."""
        self._command = tuple(command)
        self._tied = tied
        self._process: subprocess.Popen[bytes] | None = None
        self._waiting = threading.Lock()

    @property
    def exit_code(self) -> int | None:
        """What it ended with; ``None`` while it runs."""
        return self._wait(0.0)

    def open(self) -> None:
        """Start it.

        Raises:
            OSError: If it cannot be started.
        """
        if not self._command:
            raise OSError("no command is declared")
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,
                # Only where nothing but measuring is done: one call, of what is looked up before.
                preexec_fn=_dying_with(os.getpid()) if self._tied else None,  # noqa: PLW1509  # the child calls prctl alone before exec; only `run` asks for it, which has no threads then
            )
        except (ValueError, subprocess.SubprocessError) as error:
            raise OSError(f"the command cannot be started ({error})") from error
        leave_out(self._process.pid)

    def read(self, wait_s: float) -> bytes | None:
        """Return what it printed."""
        return _read(self._stdout(), wait_s)

    def end(self) -> None:
        """Ask it to end, then kill it and what it started in its process group."""
        if self._process is None or self._wait(0.0) is not None:
            return
        # A program run by sudo is not ours to signal: the closing pipe ends it.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGTERM)
            self._wait(_GRACE_S)
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Close the pipe and reap the program."""
        if self._process is None or self._process.stdout is None:
            return
        self._process.stdout.close()
        self._wait(_REAP_S)

    def _wait(self, wait_s: float) -> int | None:
        """Return the exit code; ``None`` if it runs still after that time."""
        process = self._process
        if process is None:
            return None
        deadline_s = time.monotonic() + wait_s
        while True:
            with self._waiting:
                if process.returncode is None:
                    process.returncode = wait_left_out(process.pid)
            if process.returncode is not None or time.monotonic() >= deadline_s:
                return process.returncode
            time.sleep(_WAIT_STEP_S)

    def _stdout(self) -> int:
        if self._process is None or self._process.stdout is None:
            raise OSError("the program was not started")
        return self._process.stdout.fileno()


def _dying_with(parent: int) -> Callable[[], None] | None:
    """Return what a child does to end with this process; ``None`` where it cannot."""
    if threading.current_thread() is not threading.main_thread():
        return None
    prctl = getattr(ctypes.PyDLL(None), "prctl", None)
    if prctl is None:
        return None

    def tie() -> None:
        # The wrapper holds signals back, and a child inherits that.
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)  # it died before the signal was asked for

    return tie


class Followed:
    """A named pipe, or a file that something else appends to.

    Args:
        path: Of a pipe, read from now on, or of a file, whose first line is read for
            its header and then what is added from now on.
    """

    exit_code: int | None = None

    def __init__(self, path: Path) -> None:
        """Keep the path; nothing is opened."""
        self._path = path
        self._handle: int | None = None
        self._header = b""
        self._in_line = False

    def open(self) -> None:
        """Open it, without waiting for somebody to write.

        Raises:
            OSError: If it cannot be opened.
        """
        # Without O_NONBLOCK a pipe that nobody writes to would hold the caller for ever.
        self._handle = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if stat.S_ISREG(os.fstat(self._handle).st_mode):
            head = os.read(self._handle, _CHUNK)
            self._header = head[: head.find(b"\n") + 1]
            size = os.lseek(self._handle, 0, os.SEEK_END)
            # The rest of a line that is half written would be taken for a line of its own.
            self._in_line = size > 0 and os.pread(self._handle, 1, size - 1) != b"\n"

    def read(self, wait_s: float) -> bytes | None:
        """Return what was added; a writer that left may come back."""
        if self._handle is None:
            raise OSError("the pipe was not opened")
        if self._header:
            header, self._header = self._header, b""
            return header
        data = _read(self._handle, wait_s)
        if not data:
            time.sleep(wait_s)
            return None
        if self._in_line:
            _, newline, data = data.partition(b"\n")
            self._in_line = not newline
        return data or None

    def end(self) -> None:
        """Nothing has to be ended."""

    def close(self) -> None:
        """Close the file."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def _read(handle: int, wait_s: float) -> bytes | None:
    # Not select(2), which takes no handle above 1,023: programs may have many files open.
    ready = select.poll()
    ready.register(handle, select.POLLIN)
    if not ready.poll(wait_s * _MS_PER_S):
        return None
    try:
        return os.read(handle, _CHUNK)
    except BlockingIOError:
        return None


class Pump:
    """Reads a source in a thread of its own, from ``start`` until it ends or is stopped.

    Args:
        source: Read by the pump alone.
        feed: Gets each piece, in the pump's thread.
    """

    def __init__(self, source: ByteSource, feed: Callable[[bytes], None]) -> None:
        """Keep both; nothing is started."""
        self._source = source
        self._feed = feed
        self._stopped = False
        self.ended = threading.Event()

    def start(self) -> None:
        """Open the source in the caller's thread, whose signals a program inherits.

        Raises:
            OSError: If it cannot be opened.
        """
        self._source.open()
        start_beside(self._run, "carbonlens-stream")

    def stop(self) -> None:
        """Have the source end; the thread closes it."""
        self._stopped = True
        self._source.end()

    def _run(self) -> None:
        try:
            while not self._stopped:
                data = self._source.read(_LOOK_S)
                if data == b"":
                    break
                if data:
                    self._feed(data)
        finally:
            self.ended.set()
            self._source.close()


ABOVE_J: Final = 1e6
"""Added to what a counter tells: it falls after a gap, and a reading below 0 is one at fault."""


class TellingCounter:
    """A counter of joules that shows its gaps.

    Whoever turns readings into energy sees a reset in a counter that falls, and
    bridges nothing over it. So the first value told after a gap is lower than the
    last one told before, whatever was counted in between.
    """

    def __init__(self) -> None:
        """Start at nothing, in a stretch that nothing was told of."""
        self._joules = 0.0
        self._base = 0.0
        self._told: float | None = None
        self._anew = True

    def add(self, joules: float) -> None:
        """Count more."""
        self._joules += joules

    def begin_anew(self) -> None:
        """Say that something before this moment was not counted."""
        self._anew = True

    def tell(self, held_j: float = 0.0) -> float:
        """Return joules since the stretch's first telling; 0 then, or less after less than 0.

        Args:
            held_j: Joules since the last that were added, by the last power told. What
                is added later may be less: the counter then stands until it is more.
        """
        now_j = self._joules + held_j
        if self._anew or self._told is None:
            first = 0.0 if self._told is None or self._told > 0 else self._told - 1.0
            self._base = now_j - first
            self._anew = False
            self._told = first
        else:
            self._told = max(now_j - self._base, self._told)
        return self._told
