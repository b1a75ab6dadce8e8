"""Worker: renders in a process of its own, with limits, that lives as long as this one at most.

Layout engines keep the memory they took and can be made to take any amount: in a child they cost
the caller nothing but the wait. The child is started once and kept warm, so that a second report
is made without loading anything; it ends with its parent, however that ends, and by itself when
nothing was asked of it for a while.
"""

from __future__ import annotations

import atexit
import json
import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any, Final

import msgspec

from carbonlens import errors
from carbonlens.errors import CarbonlensError, MissingExtraError, RenderError
from carbonlens.render.worker_main import ALONE, BROKEN, DONE, FAILED, FOLLOWED, HEAD, STAGE

MEMORY_MB: Final = 1024
SECONDS: Final = 300.0
_IDLE_S: Final = 300.0
_TOLD_EVERY_S: Final = 0.2
_ENDS_WITHIN_S: Final = 2.0

_START: Final = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from carbonlens.render.worker_main import main; main(float(sys.argv[2]))"
)

_GIVEN_UP: Final[list[threading.Thread]] = []

Progress = Callable[[str, float], None]
"""Takes what is being done and for how many seconds the report has been in the making."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What making one file of a report may take.

    Attributes:
        memory_mb: Memory beyond that of the loaded tools, in 2**20 bytes.
        seconds: Time.
    """

    memory_mb: int = MEMORY_MB
    seconds: float = SECONDS


class Later(msgspec.Struct, frozen=True, kw_only=True):
    """An argument that is computed while the function already runs; it gets a function that waits for it.

    Attributes:
        name: Name of the argument.
        compute: Returns its value, which must pickle. It runs in a thread.
    """

    name: str
    compute: Callable[[], object]


class Worker:
    """A rendering process and the pipes to it."""

    def __init__(self, *, idle_s: float = _IDLE_S) -> None:
        """Start the process; it loads its tools while the caller goes on.

        Args:
            idle_s: After how many seconds without a request it ends.
        """
        self._lock = threading.Lock()
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the process
        self._process = _started(self._said, idle_s)

    @property
    def pid(self) -> int:
        """Id of the process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    def render(
        self,
        function: str,
        *args: object,
        limits: Limits = Limits(),  # noqa: B008  # frozen
        progress: Progress | None = None,
        later: Later | None = None,
        **kwargs: object,
    ) -> bytes:
        """Call a function of ours in the process and return the bytes it makes.

        Args:
            function: ``module:name``; it returns text or bytes.
            *args: Its arguments, which must pickle.
            limits: What it may take.
            progress: Is told what is being done.
            later: An argument that is computed here while the function runs there.
            **kwargs: Its named arguments.

        Raises:
            RenderError: If it took more than it may, or the process died.
            CarbonlensError: Whatever the function raised on purpose.
        """
        named = None if later is None else later.name
        request = pickle.dumps((limits.memory_mb, function, args, kwargs, named))
        with self._lock:
            try:
                return self._asked(_Sending(request, later), limits, progress)
            except CarbonlensError:
                raise
            except (
                BaseException
            ):  # raised again: an answer that still comes would be taken for the next one's
                self.kill()
                raise

    def _asked(self, sending: _Sending, limits: Limits, progress: Progress | None) -> bytes:
        began = time.monotonic()
        writer = threading.Thread(target=sending.write_to, args=(self._process.stdin,), daemon=True)
        writer.start()
        try:
            return self._answer(writer, sending, began, limits, progress)
        finally:
            if writer.is_alive():  # it computes what nobody waits for any longer, and cannot be ended
                _GIVEN_UP[:] = [*filter(threading.Thread.is_alive, _GIVEN_UP), writer]

    def _answer(
        self,
        writer: threading.Thread,
        sending: _Sending,
        began: float,
        limits: Limits,
        progress: Progress | None,
    ) -> bytes:
        words = "starting"
        while True:
            kind, content = self._frame(began, limits, words, progress)
            if kind == STAGE:
                words = content.decode("utf-8", "replace")
                continue
            writer.join()
            if sending.error is not None:
                raise sending.error
            if kind == DONE:
                return content
            if kind == FAILED:
                raise _error(content)
            assert kind == BROKEN  # noqa: S101  # there is no other
            raise RenderError(
                f"the renderer failed: {content.decode('utf-8', 'replace').strip()}",
                mend="this is a fault of carbonlens, not of your data; please report it",
            )

    def _frame(
        self, began: float, limits: Limits, words: str, progress: Progress | None
    ) -> tuple[int, bytes]:
        told = _Told(began, limits, words, progress)
        length, kind = HEAD.unpack(self._bytes(HEAD.size, told))
        return kind, self._bytes(length, told)

    def _bytes(self, wanted: int, told: _Told) -> bytes:
        assert self._process.stdout is not None  # noqa: S101  # a pipe was asked for
        answers = self._process.stdout.fileno()
        parts: list[bytes] = []
        while wanted:
            ready, _, _ = select.select([answers], [], [], _TOLD_EVERY_S)
            if not told.goes_on():
                self.kill()
                raise told.too_late()
            if not ready:
                continue
            part = os.read(answers, min(wanted, 1 << 20))
            if not part:
                raise self._died(told.limits)
            parts.append(part)
            wanted -= len(part)
        return b"".join(parts)

    def _died(self, limits: Limits) -> RenderError:
        self._process.wait()
        code = self._process.returncode
        if code == 0:
            self.kill()
            return _GoneError("the renderer had ended", mend="try again")
        how = f"with code {code}" if code >= 0 else f"of {signal.Signals(-code).name}"
        said = self._last_words()
        self.kill()
        what = f"the renderer died {how}"
        if code == -signal.SIGKILL or "memory" in said.lower():
            what += f": most likely it needed more than the {limits.memory_mb} MB of memory it may take"
        return RenderError(
            f"{what}{f' ({said})' if said else ''}",
            mend="allow it more with --memory-mb, or report fewer steps and runs",
        )

    def _last_words(self) -> str:
        self._said.seek(0, os.SEEK_END)
        self._said.seek(max(self._said.tell() - 2000, 0))
        lines = [line.strip() for line in self._said.read().decode("utf-8", "replace").splitlines()]
        telling = [line for line in lines if "memory" in line.lower()] or [line for line in lines if line]
        return telling[-1][:200] if telling else ""

    def close(self) -> None:
        """End the process; by force where it does not end at once."""
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_ENDS_WITHIN_S)
        self.kill()

    def kill(self) -> None:
        """End the process by force."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._said):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()


class _Sending:
    """A request on its way to the process, and after it what is only computed meanwhile."""

    def __init__(self, request: bytes, later: Later | None) -> None:
        self.request, self.later = request, later
        self.error: BaseException | None = None
        """Why what was to come later did not come."""

    def write_to(self, pipe: IO[bytes] | None) -> None:
        assert pipe is not None  # noqa: S101  # a pipe was asked for
        # A child that is gone is seen where its answer is awaited.
        with suppress(OSError, ValueError):
            self._write(pipe, self.request, ALONE if self.later is None else FOLLOWED)
            if self.later is not None:
                self._write(pipe, self._computed(self.later))

    def _computed(self, later: Later) -> bytes:
        try:
            return pickle.dumps(later.compute())
        except BaseException as error:  # noqa: BLE001  # raised again where the answer is awaited
            self.error = error
            return b""  # it does not come

    @staticmethod
    def _write(pipe: IO[bytes], content: bytes, kind: int = ALONE) -> None:
        pipe.write(HEAD.pack(len(content), kind))
        pipe.write(content)
        pipe.flush()


class _GoneError(RenderError):
    """It ended for want of requests while one was on its way."""


class _Told:
    """The wait for an answer: who is told of it, and when it is over."""

    def __init__(self, began: float, limits: Limits, words: str, progress: Progress | None) -> None:
        self.began, self.limits, self.words, self.progress = began, limits, words, progress

    def goes_on(self) -> bool:
        elapsed = time.monotonic() - self.began
        if self.progress is not None:
            self.progress(self.words, elapsed)
        return elapsed <= self.limits.seconds

    def too_late(self) -> RenderError:
        return RenderError(
            f"the report was not made within {self.limits.seconds:g} s ({self.words})",
            mend="give it more time with --timeout, or report fewer steps and runs",
        )


def _started(said: IO[bytes], idle_s: float) -> subprocess.Popen[bytes]:
    if not sys.executable:
        raise RenderError(
            "this process does not know its Python interpreter", mend="run carbonlens from the command line"
        )
    # -P and our own search path: the child finds the very modules that this process finds.
    command = [sys.executable, "-P", "-c", _START, json.dumps(sys.path), str(idle_s)]
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            process_group=0,  # Ctrl-C is for us: we end it
        )
    except OSError as error:
        raise RenderError(
            f"the renderer cannot be started ({error.strerror or error})", mend="check limits of processes"
        ) from error


def _error(content: bytes) -> CarbonlensError:
    shape: dict[str, Any] = msgspec.json.decode(content)
    if shape["family"] == MissingExtraError.__name__:
        return MissingExtraError(shape["extra"], shape["package"])
    family: type[CarbonlensError] = getattr(errors, shape["family"])
    return family(shape["what"], mend=shape["mend"], where=shape["where"])


def holds_given_up() -> bool:
    """Tell whether an argument is still computed for a report that was given up: out of time, interrupted.

    The program need not wait for it: no file comes of it.
    """
    return any(thread.is_alive() for thread in _GIVEN_UP)


class _Shared:
    """The process of this process; a fork of ours starts its own."""

    worker: Worker | None = None
    owner: int = 0
    lock = threading.Lock()


def shared() -> Worker:
    """Return the warm worker of this process, started at the first call.

    Call it early where a report will be made: it loads its tools meanwhile.

    Raises:
        RenderError: If no process can be started.
    """
    with _Shared.lock:
        if _Shared.worker is None or _Shared.owner != os.getpid() or not _Shared.worker.alive:
            if _Shared.owner != os.getpid():
                atexit.register(close)
            elif _Shared.worker is not None:
                _Shared.worker.kill()  # it ended by itself: its pipes are still open
            _Shared.worker, _Shared.owner = Worker(), os.getpid()
        return _Shared.worker


def render(
    function: str,
    *args: object,
    limits: Limits = Limits(),  # noqa: B008  # frozen
    progress: Progress | None = None,
    later: Later | None = None,
    **kwargs: object,
) -> bytes:
    """Call a function of ours in the warm worker and return the bytes it makes; see ``Worker.render``.

    Args:
        function: ``module:name``; it returns text or bytes.
        *args: Its arguments, which must pickle.
        limits: What it may take.
        progress: Is told what is being done.
        later: An argument that is computed here while the function runs there.
        **kwargs: Its named arguments.

    Raises:
        RenderError: If it took more than it may, or the process died.
        CarbonlensError: Whatever the function raised on purpose.
    """
    try:
        return shared().render(function, *args, limits=limits, progress=progress, later=later, **kwargs)
    except _GoneError:
        return shared().render(function, *args, limits=limits, progress=progress, later=later, **kwargs)


def close() -> None:
    """End the worker of this process, if there is one."""
    with _Shared.lock:
        worker, _Shared.worker = _Shared.worker, None
        if worker is not None and _Shared.owner == os.getpid():
            worker.close()
