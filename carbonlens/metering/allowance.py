"""What the machine lets this work use: CPU affinity, cpusets, quotas and memory limits.

Read once, as a run begins. A control group is bound by its own limits and by those of every
group above it; those that lie above what can be seen from here (the host's, in a container)
are not known. Files are those of cgroup-v2 (``cpu.max``, ``cpuset.cpus.effective``,
``memory.max``) and cgroup-v1 (``cpu.cfs_quota_us``, ``cpuset.cpus``,
``memory.limit_in_bytes``) of the kernel's documentation. A limit that is there and cannot be
read makes what may be used unknown.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Final

from carbonlens.domain.allowance import Allowance
from carbonlens.metering.control_group import V2, Branch, branches

_ROOT: Final = Path("/")
_TASKS: Final = Path("/proc/self/task")
_NO_LIMIT: Final = 1 << 62
"""From here on a limit of version 1 is none: it is the most pages a counter holds, in bytes."""

_KIB: Final = 1024
_MOST_CPUS: Final = 1 << 16
_MOST_THREADS: Final = 64
_MOST_BYTES: Final = 4096
_NO_QUOTA: Final = "-1"

_Count = float | None
"""A limit: infinite where there is none, ``None`` where one cannot be read."""


def allowance(root: Path = _ROOT, affinity: Callable[[], int | None] | None = None) -> Allowance:
    """Return what this process may use of its machine; never raises, what is not told is ``None``.

    Args:
        root: The file system.
        affinity: Tells how many CPUs the process may run on, ``None`` if it cannot; by default
            the kernel, where the file system is the real one.
    """
    if affinity is None and root == _ROOT:
        affinity = own_cpus
    machine_cpus, machine_bytes = _machine(root)
    try:
        found = branches(root)
    except FileNotFoundError:
        found = {}  # a system without control groups
    except OSError:
        return Allowance(machine_cpus=machine_cpus, machine_memory_bytes=machine_bytes)
    held = _least((_told(_bytes, found), _or_none(machine_bytes)))
    return Allowance(
        cpus=_least((_told(_quotas, found), _named(affinity, found), _or_none(machine_cpus))),
        machine_cpus=machine_cpus,
        memory_bytes=None if held is None else int(held),
        machine_memory_bytes=machine_bytes,
    )


def own_cpus() -> int | None:
    """Return how many CPUs the threads of this process may run on; ``None`` where nobody tells.

    A library may have bound this thread alone to one of them (``OMP_PROC_BIND``), so that the
    others are asked too unless this one may run anywhere.
    """
    try:
        mine = os.sched_getaffinity(0)
        if len(mine) < (os.cpu_count() or 1):
            for thread in islice(_TASKS.iterdir(), _MOST_THREADS):
                try:
                    mine |= os.sched_getaffinity(int(thread.name))
                except ProcessLookupError:  # it has ended since it was listed
                    continue
    except AttributeError:
        return os.cpu_count()  # a system that binds no process
    except (OSError, ValueError):
        return None
    return len(mine)


def _told(read: Callable[[Mapping[str, Branch]], Iterator[float]], found: Mapping[str, Branch]) -> _Count:
    try:
        return min(read(found), default=math.inf)
    except (OSError, ValueError):
        return None


def _named(affinity: Callable[[], int | None] | None, found: Mapping[str, Branch]) -> _Count:
    """Return how many CPUs the process may run on.

    The kernel keeps its affinity inside its cpuset, which is read where that is not told.
    """
    bound = None if affinity is None else affinity()
    if bound is not None:
        return bound
    named = _told(_cpusets, found)
    return None if affinity is not None and named == math.inf else named


def _cpusets(found: Mapping[str, Branch]) -> Iterator[float]:
    for kind, name in ((V2, "cpuset.cpus.effective"), ("cpuset", "cpuset.cpus")):
        # What is effective holds the groups above already; the nearest that tells is ours.
        nearest = next(filter(None, _lines(found, kind, name)), None)
        if nearest is not None:
            yield count_of(nearest)


def _quotas(found: Mapping[str, Branch]) -> Iterator[float]:
    for text in _lines(found, V2, "cpu.max"):
        quota, _, period = text.partition(" ")
        yield math.inf if quota == "max" else _ratio(quota, period)
    periods = _files(found.get("cpu"), "cpu.cfs_period_us")
    for file, period_file in zip(_files(found.get("cpu"), "cpu.cfs_quota_us"), periods, strict=True):
        told = _line(file)
        if told not in {None, _NO_QUOTA}:
            yield _ratio(told or "", _line(period_file) or "")


def _bytes(found: Mapping[str, Branch]) -> Iterator[float]:
    for kind, name in ((V2, "memory.max"), ("memory", "memory.limit_in_bytes")):
        for text in _lines(found, kind, name):
            most = math.inf if text == "max" else _whole(text)
            yield math.inf if most >= _NO_LIMIT else most


def _lines(found: Mapping[str, Branch], kind: str, name: str) -> Iterator[str]:
    """Yield what the groups of a hierarchy say in a file, from our own upward; some have none."""
    texts = map(_line, _files(found.get(kind), name))
    return (text for text in texts if text is not None)


@lru_cache(maxsize=32)
def _files(branch: Branch | None, name: str) -> tuple[str, ...]:
    return () if branch is None else tuple(str(folder / name) for folder in branch.upward())


def _ratio(quota: str, period: str) -> float:
    """Return the CPUs of a quota: microseconds of CPU time a period of microseconds."""
    whole, part = _whole(period), _whole(quota)
    if whole == 0 or part == 0:
        raise ValueError("a quota or period of zero")
    return part / whole


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 20):
        raise ValueError("no whole number")
    return int(text)


def count_of(text: str) -> int:
    """Return how many CPUs a list names, such as ``0-3,8`` (cpuset(7), list format).

    Raises:
        ValueError: If it is no such list.
    """
    named: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        low = _whole(first)
        high = _whole(last) if dash else low
        if not low <= high < _MOST_CPUS:
            raise ValueError("no range of CPUs")
        named.update(range(low, high + 1))
    return len(named)


@lru_cache(maxsize=8)
def _machine(root: Path) -> tuple[int | None, int | None]:
    """Return the machine's hardware threads and the bytes of its memory, as far as they are told."""
    try:
        cpus: int | None = count_of(_line(str(root / "sys/devices/system/cpu/online")) or "")
    except (OSError, ValueError):
        cpus = os.cpu_count()
    try:
        name, _, rest = (_line(str(root / "proc/meminfo")) or "").partition(":")
        return cpus, _whole(rest.split()[0]) * _KIB if name == "MemTotal" else None
    except (OSError, ValueError, IndexError):
        return cpus, None


def _line(file: str) -> str | None:
    """Return the first line of a file, without pathlib's share of a run's start; ``None`` if there is none.

    Raises:
        OSError: If it is there and cannot be read.
    """
    try:
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        data = os.read(handle, _MOST_BYTES)
    finally:
        os.close(handle)
    return data.decode("utf-8", "replace").partition("\n")[0].strip()


def _or_none(known: int | None) -> float:
    """Return a machine's own measure as a limit: none where it is not known."""
    return math.inf if known is None else known


def _least(limits: tuple[_Count, ...]) -> float | None:
    """Return the lowest of some limits; ``None`` where one is unknown, or there is none."""
    known = [x for x in limits if x is not None]
    least = min(known, default=math.inf)
    return None if len(known) < len(limits) or math.isinf(least) else float(least)
