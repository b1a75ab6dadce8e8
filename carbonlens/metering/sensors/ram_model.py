"""RAM model: watts of the memory that the work holds (grade D).

Of the figures in use none is of this machine's modules: Cloud Carbon Footprint's
0.392 W a GB (0.000392 kWh per GB-hour, from makers' 3 W for an 8 GB module and its
like) is taken; codecarbon's 3 W per 8 GB was 0.375, and its later 5 W a module is
0.16 W a GB for modules of 32 GB. A factor of 3 to either side holds these and the
largest and smallest modules in use (0.13 to 1.18 W a GB).

Held memory is the resident memory of the process and its descendants. Pages that
forked workers share with their parent stand in each one's figure, so the sum is
capped by what the control group holds, where the work runs in one, and by what the
whole machine has in use.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from carbonlens.domain.units import Z_95
from carbonlens.metering import process_time
from carbonlens.metering.childless import is_childless
from carbonlens.metering.own_memory import OwnMemory, resident_bytes
from carbonlens.metering.sensors import Channel, Probe, SensorInfo

W_PER_GB: Final = 0.392
FACTOR_95: Final = 3.0
BYTES_PER_GB: Final = 1e9

_PROC: Final = Path("/proc")
_LONGEST_REST_S: Final = 1.0
_WALK_SHARE: Final = 0.01
"""A walk over the processes is not repeated before a hundred times its own duration has passed."""

_KIB: Final = 1024
_GROUP_FILES: Final = ("memory.current", "memory/memory.usage_in_bytes")


class RamModelSensor:
    """Reads resident memory and tells watts.

    Args:
        include_self: False for a wrapper that only watches its children.
        proc: The process file system.
        cgroup: Where control groups are mounted.
        clock: Monotonic seconds, by which walks over the processes are spaced.
    """

    may_block = False
    rest_s = 0.0

    def __init__(
        self,
        *,
        include_self: bool = True,
        proc: Path = _PROC,
        cgroup: Path = Path("/sys/fs/cgroup"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Keep the places; nothing is opened."""
        self._include_self = include_self
        self._proc = proc
        self._cgroup = cgroup
        self._clock = clock
        self._pid = os.getpid()
        self._own = OwnMemory(proc)
        # Elsewhere than in its own place the file system tells of other processes.
        self._is_real = proc == _PROC
        self._closed = False
        self._lock = threading.Lock()
        self._next_walk_s = -math.inf
        self._others_bytes = 0
        self._cap_bytes = math.inf

    @property
    def info(self) -> SensorInfo:
        """Describe the readings."""
        return SensorInfo(
            name="ram_model",
            kind="instant",
            unit="W",
            scope="process",
            boundary="device",
            grade="D",
            update_period_s=0.0,
            channels=(Channel(device="memory-held", component="ram"),),
            method=f"memory held by the work x {W_PER_GB:g} W/GB (Cloud Carbon Footprint)",
            gain_sigma=math.log(FACTOR_95) / Z_95,
            offset_sigma_w=0.0,
            lag_sigma_s=0.0,
            slow=True,
        )

    def probe(self) -> Probe:
        """Read the memory held now."""
        try:
            held_bytes = self._held_bytes()
        except OSError as error:
            return Probe(
                usable=False,
                found="memory held",
                reason=f"the process file system cannot be read ({error.strerror or error})",
                mend="use Linux, or a meter of the whole machine",
            )
        return Probe(usable=True, found=f"memory held: {held_bytes / BYTES_PER_GB:.3g} GB now")

    def read(self, *, edge: bool) -> tuple[float | None, ...]:
        """Return watts.

        Raises:
            OSError: If the memory held cannot be read, or the sensor is closed.
        """
        del edge  # memory changes slowly: a walk a second does at the edges too
        return (self._held_bytes() / BYTES_PER_GB * W_PER_GB,)

    def close(self) -> None:
        """Read no more."""
        with self._lock:
            self._closed = True

    def _held_bytes(self) -> float:
        with self._lock:
            if self._closed:
                raise OSError("the sensor is closed")
            return self._looked_up_bytes()

    def _looked_up_bytes(self) -> float:
        own_bytes = self._own.bytes() if self._include_self else 0
        now_s = self._clock()
        if now_s >= self._next_walk_s:
            others = () if self._is_real and is_childless() else self._descendants()
            self._others_bytes = sum(map(self._bytes_of, others))
            if self._others_bytes:
                self._cap_bytes = min(self._group_bytes(), self._machine_bytes())
            end_s = self._clock()
            self._next_walk_s = now_s + max((end_s - now_s) / _WALK_SHARE, _LONGEST_REST_S)
        # Memory that was taken since the last walk is in no cap that was read then.
        return max(min(own_bytes + self._others_bytes, self._cap_bytes), own_bytes)

    def _descendants(self) -> set[int]:
        found: set[int] = set()
        waiting = [self._pid]
        while waiting:
            children = set(process_time.children(waiting.pop(), self._proc)) - found
            found |= children
            waiting += children
        return found

    def _bytes_of(self, pid: int) -> int:
        try:
            return resident_bytes((self._proc / str(pid) / "statm").read_bytes())
        except OSError:
            return 0  # it has ended since it was listed, and holds nothing

    def _group_bytes(self) -> float:
        """Return what the control group holds; infinite where there is none that tells."""
        for line in (_text(self._proc / "self" / "cgroup") or "").splitlines():
            kind, _, path = line.partition(":")[2].partition(":")
            name = _GROUP_FILES[0] if not kind else _GROUP_FILES[1] if "memory" in kind.split(",") else None
            if name is None:
                continue
            root, _, file = name.rpartition("/")
            text = _text(self._cgroup / root / path.strip("/") / file)
            if text is not None and text.isdecimal():
                return float(text)
        return math.inf

    def _machine_bytes(self) -> float:
        """Return the memory in use on the machine; infinite where it is not told."""
        told = {}
        for line in (_text(self._proc / "meminfo") or "").splitlines()[:4]:
            name, _, figure = line.partition(":")
            told[name] = figure.split()[:1]
        total, available = told.get("MemTotal"), told.get("MemAvailable")
        if not total or not available:
            return math.inf
        return float((int(total[0]) - int(available[0])) * _KIB)


def _text(path: Path) -> str | None:
    try:
        return path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
