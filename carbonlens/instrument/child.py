"""Running a child process as if the wrapper were not there.

No shell. The child has the wrapper's standard streams, working directory,
environment and signal mask. Signals sent to the wrapper go on to it; its exit
code and the signal it dies by come back. What a terminal sends to the whole
foreground group is not sent on, since the child has it already; its hang-up goes to the
leader of the session alone, and is sent on by a wrapper that leads it. What a process
sends to the group (``kill -TERM -PGID``) arrives at the child twice, because
nothing tells it from a signal meant for the wrapper alone. The wrapper is a child subreaper
meanwhile (prctl(2)): processes whose parent ends become its children, so that the
CPU time of all of them is counted when they end.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.metering.ending import SIGNAL_BASE
from carbonlens.metering.process_time import children

NOT_EXECUTABLE: Final = 126
NOT_FOUND: Final = 127

_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_GET_CHILD_SUBREAPER: Final = 37
_SENT_BY_KERNEL: Final = 0x80
_LOOK_S: Final = 1.0
"""A lost SIGCHLD delays the end by this much at most."""

_SHORT_S: Final = 0.1
"""Beside a command that ends sooner nothing is loaded: its end would be seen late."""

_LATE_SHARE: Final = 0.05
"""Of the time of a command that the loading of one module may take beside it."""

_GRACE_S: Final = 0.2
"""Time that a process left behind has to end by itself."""

_LOOKS: Final = 50
"""At an environment that is empty, a millisecond apart."""

_KEPT: Final = frozenset({"SIGKILL", "SIGSTOP", "SIGCHLD", "SIGCONT", "SIGTSTP", "SIGTTIN", "SIGTTOU"})
"""Not forwarded: what nobody can catch, the wait itself, and job control."""

_TIMERS: Final = frozenset({signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF})
"""Timers outlive exec(2): one that the caller set before it is meant for the command."""


def _forwarded() -> frozenset[int]:
    """Return every signal that would end the wrapper, or that a command may want to be told."""
    kept = {getattr(signal, name) for name in _KEPT if hasattr(signal, name)}
    return frozenset(signal.valid_signals() - kept)


# Python ignores these for itself; the child gets them as a shell would give them.
_RESTORED: Final = tuple(getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name))


class ChildEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a child ended.

    Attributes:
        exit_code: As a shell would give it: 128 + n after signal n, 126 or 127
            when it could not be started.
        signal: Signal it died by.
        message: Why it could not be started.
    """

    exit_code: int
    signal: int | None = None
    message: str | None = None


class HeldSignals(msgspec.Struct, frozen=True, kw_only=True):
    """Signals that wait to be forwarded.

    Attributes:
        waited_for: Blocked here, SIGCHLD among them; empty outside the main thread.
        child_mask: Signal mask that the child is to have.
    """

    waited_for: frozenset[int]
    child_mask: frozenset[int]


def run_child(
    argv: Sequence[str],
    environ: Mapping[str, str],
    held: HeldSignals,
    *,
    make_room: Callable[[], object] | None = None,
    meanwhile: Sequence[str] = (),
) -> ChildEnd:
    """Run a command and wait for it, passing signals on.

    Args:
        argv: Program and arguments; the program is searched for in ``PATH``.
        environ: The child's environment.
        held: Signals to pass on.
        make_room: Called where the system lets no further process start. The command then
            takes this process's place, and nothing returns; ``None`` where it must not.
        meanwhile: Names of modules to load while the command works, one after the other as long as
            it does, and not beside one that is soon over.
    """
    others = frozenset(children(os.getpid()))
    try:
        pid = _spawn(argv, environ, held.child_mask)
    except OSError as error:
        if error.errno == errno.EAGAIN and make_room is not None:
            make_room()
            error = _take_place(argv, environ, held.child_mask)
        return _not_started(argv[0], error)
    status = _wait(pid, held.waited_for, others, meanwhile)
    reap_orphans(others)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return ChildEnd(exit_code=SIGNAL_BASE + number, signal=number)
    return ChildEnd(exit_code=os.WEXITSTATUS(status))


@contextmanager
def subreaper() -> Iterator[None]:
    """Adopt orphaned descendants within the block, where the system can."""
    prctl = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)
    if prctl is None:
        yield
        return
    before = ctypes.c_int(0)
    prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(_PR_SET_CHILD_SUBREAPER, before.value, 0, 0, 0)


@contextmanager
def held_signals() -> Iterator[HeldSignals]:
    """Hold the signals to be forwarded within the block, so that they can be waited for.

    A signal that is ignored (``nohup``) stays so, here and in the child. What
    still waits at the end of the block was meant for a child that has ended, and
    is dropped: it must not end the wrapper before the run is recorded. Outside
    the main thread signals belong to somebody else's program and are left alone.
    """
    before = frozenset(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "sigtimedwait"):
        yield HeldSignals(waited_for=frozenset(), child_mask=before)
        return
    ignored_children = signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN
    if ignored_children:
        # The kernel would reap the child itself, and its exit code would be lost.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    wanted = {s for s in _forwarded() if signal.getsignal(s) != signal.SIG_IGN} | {signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
    try:
        yield HeldSignals(waited_for=frozenset(wanted), child_mask=before)
    finally:
        while signal.sigtimedwait(wanted, 0) is not None:
            continue
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if ignored_children:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def _spawn(argv: Sequence[str], environ: Mapping[str, str], mask: frozenset[int]) -> int:
    """Start the child.

    Raises:
        OSError: If it cannot be started.
    """
    if not argv[0]:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), argv[0])
    restored = [s for s in _RESTORED if signal.getsignal(s) == signal.SIG_IGN]
    try:
        return os.posix_spawnp(argv[0], list(argv), environ, setsigmask=mask, setsigdef=restored)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
    # A script without an interpreter line: run by sh, as execvp(3) and shells do.
    import shutil

    script = shutil.which(argv[0]) or argv[0]
    shell = ["/bin/sh", script, *argv[1:]]
    return os.posix_spawn(shell[0], shell, environ, setsigmask=mask, setsigdef=restored)


def _take_place(argv: Sequence[str], environ: Mapping[str, str], mask: frozenset[int]) -> OSError:
    """Become the command, threads and all; return why that is not possible."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)  # it would outlive the exec
    for number in _RESTORED:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        os.execvpe(argv[0], list(argv), environ)  # noqa: S606  # as the child would have been started
    except OSError as error:
        return error


def _wait(pid: int, held: frozenset[int], others: frozenset[int], meanwhile: Sequence[str] = ()) -> int:
    """Return the child's wait status, forwarding signals and reaping orphans meanwhile."""
    if not held:
        return os.waitpid(pid, 0)[1]
    to_load = list(reversed(meanwhile))
    begin_s, longest_s = time.monotonic(), _LATE_SHARE * _SHORT_S
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended == pid:
            return status
        look_s = _LOOK_S
        if to_load:
            # The end is seen when a module is loaded: late by a small share of what has passed.
            now_s = time.monotonic()
            look_s = min(begin_s + longest_s / _LATE_SHARE - now_s, _LOOK_S)
            if look_s <= 0:
                with suppress(Exception):  # whoever needs it is told why it cannot be had
                    import_module(to_load.pop())
                longest_s, look_s = max(longest_s, time.monotonic() - now_s), 0
        else:
            reap_orphans(others | {pid})
        news = signal.sigtimedwait(held, look_s)
        if news is not None and news.si_signo != signal.SIGCHLD and _is_meant_for_child(news):
            # A child of another user (sudo) may refuse it: it is waited for all the same.
            with suppress(OSError):
                os.kill(pid, news.si_signo)


def _is_meant_for_child(news: signal.struct_siginfo) -> bool:
    """Tell whether the child lacks a signal that the wrapper got.

    The kernel sends what is typed at a terminal to the whole foreground group, the child
    included, and a limit on processor time (SIGXCPU) to whom it concerns; a hang-up to the
    leader of the session alone, as tty_ioctl(4) and setsid(2) have it.
    """
    if news.si_code != _SENT_BY_KERNEL or news.si_signo in _TIMERS:
        return True
    return news.si_signo == signal.SIGHUP and os.getsid(0) == os.getpid()


def reap_orphans(others: frozenset[int]) -> None:
    """Wait for adopted processes that have ended; children of the caller's own stay."""
    for pid in children(os.getpid()):
        if pid not in others:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                continue


class LeftBehind(msgspec.Struct, frozen=True, kw_only=True):
    """Programs that a command left running, by name.

    Attributes:
        ended: Those that have ended since.
        running: Those that nothing could end.
    """

    ended: tuple[str, ...] = ()
    running: tuple[str, ...] = ()


def end_adopted(others: frozenset[int], mark: str) -> LeftBehind:
    """End the processes that a command left behind, by SIGTERM and soon by SIGKILL.

    One that ends while it is looked for leaves its own children here: it is over when two
    looks in turn find the same children, and none of the command's among them.

    Args:
        others: The caller's children from before, which stay.
        mark: ``NAME=value`` in the environment that tells the command's processes from those
            that a sensor of ours starts meanwhile.
    """
    names: dict[int, str] = {}
    left: list[int] = []
    before: set[int] | None = None
    deadline = time.monotonic() + _GRACE_S
    while time.monotonic() < deadline + _GRACE_S:
        found = {pid for pid in children(os.getpid()) if pid not in others}
        left = [pid for pid in found if _bears(pid, mark)]
        if not left and found == before:
            break
        before = found
        for pid in left:
            # One that ended meanwhile is only waited for.
            with suppress(ChildProcessError, ProcessLookupError, PermissionError):
                if os.waitpid(pid, os.WNOHANG)[0] == 0:
                    names[pid] = _name_of(pid)
                    os.kill(pid, signal.SIGKILL if time.monotonic() > deadline else signal.SIGTERM)
        if left:
            time.sleep(0.005)
    ended = {name for pid, name in names.items() if pid not in left}
    return LeftBehind(
        ended=tuple(sorted(ended)), running=tuple(sorted({names.get(p, "a process") for p in left}))
    )


def _bears(pid: int, mark: str) -> bool:
    for _ in range(_LOOKS):
        try:
            environ = Path(f"/proc/{pid}/environ").read_bytes()
            if environ or Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return os.fsencode(mark) in environ.split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            return False
        except OSError:
            pass
        # Within exec(2) a process shows none for a moment.
        time.sleep(0.001)
    return False


def _name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return "a process"


def _not_started(program: str, error: OSError) -> ChildEnd:
    if isinstance(error, FileNotFoundError):
        return ChildEnd(exit_code=NOT_FOUND, message=f"{program}: command not found")
    reason = error.strerror or type(error).__name__
    return ChildEnd(exit_code=NOT_EXECUTABLE, message=f"{program}: {reason}")
