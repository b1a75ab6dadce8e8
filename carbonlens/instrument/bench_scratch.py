"""The scratch folder of a bench, and the guard that outlives a bench that is killed."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from carbonlens.instrument import bench_guard, bench_result
from carbonlens.metering.process_time import leave_out, wait_left_out

_END_S: Final = 2.0
_LOOK_S: Final = 0.005


@contextmanager
def guarded_scratch() -> Iterator[Path]:
    """Give an empty folder within the block; should this process be killed, a guard clears up.

    It ends whatever has a result file in the folder in its environment, as all processes of
    a bench have, and removes the folder. Without a guard, where none can be started, a bench
    goes on.
    """
    with tempfile.TemporaryDirectory(prefix="carbonlens-bench-") as folder:
        guard = _started(folder)
        try:
            yield Path(folder)
        finally:
            if guard is not None:
                _dismiss(guard)


def _started(folder: str) -> subprocess.Popen[bytes] | None:
    mark = f"{bench_result.VARIABLE}={folder}/"
    try:
        guard = subprocess.Popen(
            [sys.executable, "-I", "-S", bench_guard.__file__, folder, mark],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            # Out of reach of what a terminal or a killer of groups sends to the bench.
            start_new_session=True,
        )
    except OSError:
        return None
    leave_out(guard.pid)
    return guard


def _dismiss(guard: subprocess.Popen[bytes]) -> None:
    """Say that all ended in order, and wait for the guard."""
    if guard.stdin is not None:
        with suppress(OSError):
            guard.stdin.write(b".")
        with suppress(OSError):
            guard.stdin.close()
    deadline = time.monotonic() + _END_S
    while guard.returncode is None and time.monotonic() < deadline:
        guard.returncode = wait_left_out(guard.pid)
        if guard.returncode is None:
            time.sleep(_LOOK_S)
