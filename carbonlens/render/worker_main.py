"""Worker, the child's side: renders what its parent asks for, and ends with its parent.

Started by ``worker``, never by hand. Requests come on standard input, answers go to what was
standard output; a frame is eight bytes of length, one of kind, and the content. The kind of a
request says whether an argument follows it: nobody needs to understand the request to know that.
"""

from __future__ import annotations

import gc
import os
import pickle
import queue
import select
import signal
import struct
import sys
import threading
import traceback
from importlib import import_module
from typing import Any, BinaryIO, Final

import msgspec

from carbonlens import errors
from carbonlens.render.stages import listen

HEAD: Final = struct.Struct(">QB")
STAGE, DONE, FAILED, BROKEN = 1, 2, 3, 4
"""Kinds of frames: what is being done, the bytes, an error of ours, any other error as text."""

ALONE, FOLLOWED = 0, 1
"""Kinds of frames to the child: nothing more belongs to it, the next frame is an argument of it."""

Frame = tuple[int, bytes]
"""Kind and content of a frame to the child."""

_LOOK_S: Final = 1.0
_REST_S: Final = 0.5
_MOST_UNTIDY: Final = 4
_OBJECTS: Final = 20_000
"""So many objects more than before are looked through; memory is limited within a page too."""

_KIB: Final = 1 << 10
_DENIED: Final = ("socket.connect", "socket.getaddrinfo", "socket.bind", "socket.sendto",
                  "socket.sendmsg", "subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty",
                  "os.posix_spawn")  # fmt: skip
"""What no renderer has a need for: it is given all that it takes."""


def main(idle_s: float) -> None:
    """Serve requests until the parent goes away or nothing was asked for long.

    Args:
        idle_s: How long to wait for a request.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()
    asked, answers = os.dup(0), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.dup2(2, 1)  # what a library prints must not stand between the frames
    requests: queue.Queue[Frame] = queue.Queue()
    threading.Thread(target=_read, args=(asked, parent, requests), daemon=True).start()
    _warm_up()
    if requests.empty():
        _rehearse()
    # What is loaded stays: it need not be looked through again for garbage at every page.
    gc.collect()
    gc.freeze()
    # Nearly all that a page is made of lives until it is written: a tenth of its time went into looking.
    gc.set_threshold(_OBJECTS, 5, 100)
    sys.addaudithook(_deny)
    untidy = 0
    while True:
        try:
            request, untidy = _asked(requests, idle_s, untidy)
        except queue.Empty:
            os._exit(0)
        _serve(request, answers, requests)


def _asked(requests: queue.Queue[Frame], idle_s: float, untidy: int) -> tuple[Frame, int]:
    """Return the next request, and how many were served since garbage was looked for, with this one.

    It is looked for while nobody waits, or after many requests without a rest: memory is limited.
    """
    if untidy:
        try:
            if untidy < _MOST_UNTIDY:
                return requests.get(timeout=_REST_S), untidy + 1
        except queue.Empty:
            pass  # the time has come
        gc.collect()
    return requests.get(timeout=idle_s), 1


def _read(asked: int, parent: int, requests: queue.Queue[Frame]) -> None:
    """Read requests; end the process, whatever it is at, once the parent is gone."""
    held = bytearray()
    while True:
        ready, _, _ = select.select([asked], [], [], _LOOK_S)
        if os.getppid() != parent:
            os._exit(1)
        if not ready:
            continue
        chunk = os.read(asked, 1 << 20)
        if not chunk:
            os._exit(0)
        held += chunk
        while len(held) >= HEAD.size:
            length, kind = HEAD.unpack_from(held)
            if len(held) < HEAD.size + length:
                break
            requests.put((kind, bytes(held[HEAD.size : HEAD.size + length])))
            del held[: HEAD.size + length]


def _warm_up() -> None:
    """Load what every page needs while the parent still computes; drawing starts beside it."""
    drawing = threading.Thread(target=_quietly, args=("carbonlens.render.charts", "warm_up"))
    drawing.start()
    _quietly("carbonlens.render.pdf", "warm_up")
    drawing.join()


def _rehearse() -> None:
    """Make a report of nothing while there is time, so that the first one takes no longer than others."""
    try:
        import_module("carbonlens.render.rehearsal").rehearse()
    except Exception:  # noqa: BLE001  # what fails here fails again, and is told, where it is asked for
        return


def _quietly(module: str, function: str) -> None:
    try:
        getattr(import_module(module), function)()
    except errors.CarbonlensError:
        # An extra or a library is missing: the request that needs it says so.
        return


def _deny(event: str, _: object) -> None:
    if event in _DENIED:
        raise PermissionError(f"a report is made without {event}")


class _Awaited:
    """An argument that the parent still computes; it comes as the next frame."""

    def __init__(self, requests: queue.Queue[Frame]) -> None:
        self._requests = requests
        self._came = False

    def __call__(self) -> Any:  # noqa: ANN401  # whatever the function takes
        self._came = True
        _, content = self._requests.get()
        if not content:
            raise errors.RenderError("what belongs into the report could not be made", mend="see the error")
        return pickle.loads(content)  # noqa: S301  # our parent's, by its pipe

    def pass_over(self) -> None:
        """Take it from the pipe where the function failed before it: it is no request."""
        if not self._came:
            self._requests.get()


def _serve(request: Frame, answers: BinaryIO, requests: queue.Queue[Frame]) -> None:
    kind, asked = request
    awaited = _Awaited(requests) if kind == FOLLOWED else None
    listen(lambda words: _send(answers, STAGE, words.encode("utf-8", "replace")))
    memory_mb = None
    try:
        memory_mb, where, args, kwargs, later = pickle.loads(asked)  # noqa: S301  # our parent's, by its pipe
        if later is not None:
            kwargs[later] = awaited
        _limit(memory_mb)
        module, _, function = where.partition(":")
        made = getattr(import_module(module), function)(*args, **kwargs)
        kind, content = DONE, made.encode("utf-8") if isinstance(made, str) else bytes(made)
    except MemoryError:
        kind, content = FAILED, _shape(_no_memory(memory_mb))
    except errors.CarbonlensError as error:
        kind, content = FAILED, _shape(error)
    except SystemExit as end:
        # The process stays: with its code the parent would take it for idle, or for out of memory.
        kind, content = FAILED, _shape(_told_to_end(end))
    except BaseException:  # noqa: BLE001  # whatever it is, the parent must hear of it
        kind, content = BROKEN, traceback.format_exc().encode("utf-8", "replace")
    _limit(None)
    if awaited is not None:
        awaited.pass_over()
    _send(answers, kind, content)


def _send(answers: BinaryIO, kind: int, content: bytes) -> None:
    answers.write(HEAD.pack(len(content), kind))
    answers.write(content)
    answers.flush()


def _no_memory(memory_mb: int | None) -> errors.RenderError:
    return errors.RenderError(
        f"the report needs more than the {memory_mb} MB of memory it may take",
        mend="allow it more with --memory-mb, or report fewer steps and runs",
    )


def _told_to_end(end: SystemExit) -> errors.RenderError:
    return errors.RenderError(
        f"what makes the report ended the renderer (exit code {end.code!r})",
        mend="this is a fault of carbonlens or a library of it, not of your data; please report it",
    )


def _shape(error: errors.CarbonlensError) -> bytes:
    return msgspec.json.encode(
        {
            "family": type(error).__name__,
            "what": error.what,
            "where": error.where,
            "mend": error.mend,
            "extra": getattr(error, "extra", None),
            "package": getattr(error, "package", None),
        }
    )


def _limit(memory_mb: int | None) -> None:
    """Let the process take so much more memory than it has now; all it wants for ``None``.

    Where the system counts no data segment (macOS) this limits nothing.
    """
    try:
        import resource
    except ImportError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = hard if memory_mb is None else _data_bytes() + memory_mb * _KIB * _KIB
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _data_bytes() -> int:
    """Return the memory that the process has for data; the drawing engine reserves hundreds of MB."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:  # noqa: PTH123  # read at every request
            found = next((line for line in status if line.startswith("VmData:")), "VmData: 0 kB")
    except OSError:
        return 0
    return int(found.split()[1]) * _KIB
