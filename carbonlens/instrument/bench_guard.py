"""The guard of a bench: a process that ends what the bench leaves running where it is killed.

Run as a script of the standard library alone: ``python -I -S bench_guard.py FOLDER MARK``.
It sleeps until its standard input ends. One byte before says that the bench ended in order;
without it every process whose environment has ``MARK`` at the start of a variable is ended
(proc(5)), by SIGTERM and then by SIGKILL, and the scratch folder removed. One with an
emptied environment is not found.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

_GRACE_S = 5.0
_LOOK_S = 0.05


def end_marked(mark: bytes, *, grace_s: float = _GRACE_S, proc: Path = Path("/proc")) -> None:
    """End all processes that bear a mark, until two looks in turn find none.

    Args:
        mark: How a variable of theirs begins, ``NAME=start of value``.
        grace_s: Time that they have to end by themselves after SIGTERM; as long again, and
            what SIGKILL has not ended is given up.
        proc: The kernel's account of all processes.
    """
    begun = time.monotonic()
    told: set[int] = set()
    found_none = 0
    while found_none < 2 and time.monotonic() < begun + 2 * grace_s:
        left = _bearing(mark, proc)
        found_none = 0 if left else found_none + 1
        is_late = time.monotonic() > begun + grace_s
        for pid in left:
            if is_late or pid not in told:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL if is_late else signal.SIGTERM)
                told.add(pid)
        time.sleep(_LOOK_S)


def _bearing(mark: bytes, proc: Path) -> list[int]:
    found = []
    for entry in proc.iterdir() if proc.is_dir() else ():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):  # gone meanwhile, or another user's
                environ = (entry / "environ").read_bytes()
                if any(one.startswith(mark) for one in environ.split(b"\0")):
                    found.append(int(entry.name))
    return found


def main() -> None:
    """Wait for the bench's end, and put in order what it left."""
    folder, mark = sys.argv[1:3]
    if sys.stdin.buffer.read(1):
        return
    end_marked(os.fsencode(mark))
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
