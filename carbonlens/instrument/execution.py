"""One execution of a command in a series: its output goes to a file, its end is waited for.

The command has a process group of its own, so that Ctrl-C at the terminal reaches the
series and not the command that is being measured.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from carbonlens.errors import MeasurementError

_GRACE_S: Final = 5.0
_TAIL_BYTES: Final = 4096


def start(
    argv: Sequence[str], *, folder: str, environ: Mapping[str, str], log: Path, pass_fds: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start a command without a shell; its output is appended to a file.

    Args:
        argv: Program and arguments.
        folder: Working folder.
        environ: The whole environment.
        log: Gets stdout and stderr.
        pass_fds: Open files that it inherits.

    Raises:
        MeasurementError: If it cannot be started.
    """
    try:
        with log.open("ab") as output:
            return subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=folder,
                env=dict(environ),
                process_group=0,
                pass_fds=tuple(pass_fds),
            )
    except OSError as error:
        code = 127 if isinstance(error, FileNotFoundError) else 126
        raise MeasurementError(
            f"cannot be started ({error.strerror or type(error).__name__}, exit code {code})",
            where=argv[0],
            mend="name a program that exists and can be executed, or write its full path",
        ) from error
    except ValueError as error:
        raise MeasurementError(
            f"cannot be started ({error})", where=repr(argv[0]), mend="mend the command"
        ) from error


def execute(
    argv: Sequence[str],
    *,
    folder: str,
    environ: Mapping[str, str],
    log: Path,
    timeout_s: float | None = None,
) -> None:
    """Run a command to its end.

    Args:
        argv: Program and arguments.
        folder: Working folder.
        environ: The whole environment.
        log: Gets stdout and stderr.
        timeout_s: Longest it may take.

    Raises:
        MeasurementError: If it cannot be started, takes too long or fails; the text
            has the last line it printed.
    """
    before = _size(log)
    child = start(argv, folder=folder, environ=environ, log=log)
    try:
        code = child.wait(timeout_s)
    except subprocess.TimeoutExpired as error:
        end(child)
        raise MeasurementError(
            f"took longer than {timeout_s:g} s", where=argv[0], mend="allow more time, or less work"
        ) from error
    except BaseException:  # put in order, then raised again
        end(child)
        raise
    if code != 0:
        told = _told(code, last_line(log, before))
        # A record keeps the cause alone: the command's own line may hold anything.
        cause = subprocess.CalledProcessError(code, argv[0])
        raise MeasurementError(told, where=argv[0], mend="mend that first") from cause


def end(child: subprocess.Popen[bytes]) -> None:
    """End a command and its process group: by SIGTERM, and by SIGKILL if that does not help.

    Args:
        child: One that leads a process group of its own, as ``start`` makes it.
    """
    if child.poll() is not None:
        return  # its number may be somebody else's by now
    for number, patience_s in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, _GRACE_S)):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, number)
        with suppress(subprocess.TimeoutExpired):
            child.wait(patience_s)
            break
    # What is left of the group had its time: none of it is to work beside the next window.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)


def last_line(log: Path, start: int = 0) -> str | None:
    """Return the last line with text that was written to a log after a place in it."""
    try:
        with log.open("rb") as file:
            file.seek(max(start, _size(log) - _TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return None
    return next((line.strip() for line in reversed(lines) if line.strip()), None)


def _told(code: int, said: str | None) -> str:
    if code < 0:
        try:
            how = f"was ended by {signal.Signals(-code).name}"
        except ValueError:
            how = f"was ended by signal {-code}"
    else:
        how = f"ended with exit code {code}"
    return how if said is None else f"{how}: {said[:160]}"


def _size(log: Path) -> int:
    try:
        return log.stat().st_size
    except OSError:
        return 0
