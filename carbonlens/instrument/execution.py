"""One execution of a command in a series: its output goes to a file, its end is waited for.

The command has a process group of its own, so that Ctrl-C at the terminal reaches the
series and not the command that is being measured.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Final

from carbonlens.errors import MeasurementError

_GRACE_S: Final = 5.0
_TAIL_BYTES: Final = 4096
_MORE: Final = 16


def start(
    argv: Sequence[str],
    *,
    folder: str,
    environ: Mapping[str, str],
    log: Path,
    printed: Path | None = None,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a command without a shell; its output is appended to a file.

    Args:
        argv: Program and arguments.
        folder: Working folder.
        environ: The whole environment.
        log: Gets stdout and stderr.
        printed: Gets stdout alone, from its beginning, where that is wanted apart.
        pass_fds: Open files that it inherits.

    Raises:
        MeasurementError: If it cannot be started.
    """
    try:
        with log.open("ab") as output, nullcontext(output) if printed is None else printed.open("wb") as out:
            return subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=output,
                cwd=folder,
                env=dict(environ),
                process_group=0,
                pass_fds=tuple(pass_fds),
            )
    except (OSError, ValueError) as error:
        raise not_started(argv[0], error) from error


def not_started(program: str, error: OSError | ValueError) -> MeasurementError:
    """Return the error for a program that the system does not start, with the exit code of a shell.

    Args:
        program: As it was named.
        error: What the system, or Python before it, says.
    """
    if isinstance(error, ValueError):
        return MeasurementError(f"cannot be started ({error})", where=repr(program), mend="mend the command")
    code = 127 if isinstance(error, FileNotFoundError) else 126
    return MeasurementError(
        f"cannot be started ({error.strerror or type(error).__name__}, exit code {code})",
        where=program,
        mend="name a program that exists and can be executed, or write its full path",
    )


def execute(
    argv: Sequence[str],
    *,
    folder: str,
    environ: Mapping[str, str],
    log: Path,
    printed: Path | None = None,
    timeout_s: float | None = None,
) -> None:
    """Run a command to its end.

    Args:
        argv: Program and arguments.
        folder: Working folder.
        environ: The whole environment.
        log: Gets stdout and stderr.
        printed: Gets stdout alone, where that is wanted apart.
        timeout_s: Longest it may take.

    Raises:
        MeasurementError: If it cannot be started, takes too long or fails; the text
            has the last line it printed.
    """
    before = _size(log)
    child = start(argv, folder=folder, environ=environ, log=log, printed=printed)
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
        said = last_line(log, before)
        if said is None and printed is not None:
            said = last_line(printed)
        told = _told(code, said)
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


def last_line(log: Path, start: int = 0, *, whole: bool = False) -> str | None:
    """Return the last line with text that was written to a log after a place in it.

    Args:
        log: The log.
        start: The place.
        whole: True for all of the line, however long it is; else its last 4 kB do.
    """
    end, tail = _size(log), _TAIL_BYTES
    while True:
        begin = max(start, end - tail)
        try:
            with log.open("rb") as file:
                file.seek(begin)
                text = file.read(end - begin).decode("utf-8", "replace")
        except OSError:
            return None
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        # The first of the lines may have begun before what was read.
        if len(lines) > 1 or begin == start or not whole:
            return lines[-1] if lines else None
        tail *= _MORE


def clear(log: Path, *, beyond: int = 0) -> None:
    """Empty a log that has grown: nobody asks any more what was printed before.

    Args:
        log: The log; who writes to it goes on at its new end.
        beyond: Size up to which it is left as it is.
    """
    if _size(log) > beyond:
        with suppress(OSError):
            os.truncate(log, 0)


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
