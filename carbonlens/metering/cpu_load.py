"""Full load on every hardware thread of the machine, and how busy it is."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple

STAT: Final = Path("/proc/stat")

# A spinner looks for its parent about every 50 ms: it ends by itself should the parent be killed.
_SPIN: Final = (
    "import os,sys\nparent=int(sys.argv[1])\nwhile os.getppid()==parent:\n for i in range(1000000):\n  i*i\n"
)
_REAP_S: Final = 5.0


class FullLoad:
    """Keeps all hardware threads busy while the block runs, then ends what it started.

    Args:
        threads: How many spinning processes to start; one a hardware thread by default.
    """

    def __init__(self, threads: int | None = None) -> None:
        """Start nothing yet."""
        self._threads = threads or os.cpu_count() or 1
        self._spinners: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> FullLoad:
        """Start the spinners; all of them end again if one cannot be started.

        Raises:
            OSError: If a process cannot be started.
        """
        try:
            for _ in range(self._threads):
                self._spinners.append(
                    subprocess.Popen(
                        [sys.executable, "-I", "-S", "-c", _SPIN, str(os.getpid())],
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                        # Ctrl-C is for us: we end them, and none of them prints a traceback.
                        start_new_session=True,
                    )
                )
        except BaseException:  # put in order, then raised again
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the spinners, whatever ended the block."""
        self._end()

    def _end(self) -> None:
        for spinner in self._spinners:
            spinner.kill()
        for spinner in self._spinners:
            with suppress(subprocess.TimeoutExpired):
                spinner.wait(_REAP_S)
        self._spinners = []


class CpuTime(NamedTuple):
    """Ticks of all hardware threads since boot."""

    busy: int
    total: int


def cpu_time(stat: Path = STAT) -> CpuTime | None:
    """Return how long the machine's threads were busy and how long there was; ``None`` if not told.

    Args:
        stat: proc(5): ``cpu user nice system idle iowait irq softirq steal guest guest_nice``;
            guest time is in user time already.
    """
    try:
        with stat.open("rb") as stream:
            fields = stream.readline().split()
        ticks = [int(f) for f in fields[1:9]]
    except (OSError, ValueError):
        return None
    if len(ticks) < 5 or fields[0] != b"cpu":
        return None
    return CpuTime(busy=sum(ticks) - ticks[3] - ticks[4], total=sum(ticks))


def load_between(before: CpuTime | None, after: CpuTime | None) -> float | None:
    """Return the share of the threads that was busy; ``None`` if nobody knows."""
    if before is None or after is None or after.total <= before.total:
        return None
    return min(max((after.busy - before.busy) / (after.total - before.total), 0.0), 1.0)
