"""CPU time and memory of a process tree, and what else the machine was doing.

A tree's CPU time is that of the process, of the children it has waited for
(``RUSAGE_CHILDREN``) and of the descendants still alive, read from ``/proc``. A
grandchild whose parent died without waiting for it is in none of these; only a
subreaper, as ``carbonlens run`` is, gets to see it.
"""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_TICK_S: Final = 1.0 / os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_RSS_UNIT: Final = 1 if os.uname().sysname == "Darwin" else 1024
_WALK_SHARE: Final = 0.01
"""A walk is not repeated before a hundred times its own duration has passed."""


class TreeClock:
    """CPU seconds of this process and its descendants, or of the descendants alone.

    The value never falls: a child that is reaped between the two readings of one
    look would otherwise be missing from it.

    Args:
        include_self: False for a wrapper that only watches its children.
    """

    def __init__(self, *, include_self: bool = True) -> None:
        """Start without having looked."""
        self._include_self = include_self
        self._pid = os.getpid()
        self._highest = 0.0
        self._next_walk = 0.0

    def read(self, *, edge: bool = True) -> float:
        """Return CPU seconds so far, of a clock whose zero is of no meaning.

        Args:
            edge: False between the edges of a window: the walk over the living
                descendants may then be skipped where it was dear, which shifts
                their time to a later look.
        """
        # Reaped children first: one that ends in between is missed until the next
        # look, where the other order would count it twice for ever. For the same
        # reason an old walk is never added to a new reading.
        used = _rusage_s(resource.RUSAGE_CHILDREN)
        if self._include_self:
            used += _rusage_s(resource.RUSAGE_SELF)
        begin = time.monotonic()
        if edge or begin >= self._next_walk:
            used += living_descendants_s(self._pid)
            end = time.monotonic()
            self._next_walk = end + (end - begin) / _WALK_SHARE
        self._highest = max(self._highest, used)
        return self._highest


def living_descendants_s(pid: int, proc: Path = _PROC) -> float:
    """Return the CPU seconds of all living descendants and of the children they waited for.

    Also counts dead children nobody has waited for yet. Processes that vanish
    meanwhile are left out.

    Args:
        pid: The ancestor, itself not counted.
        proc: The process file system.
    """
    # Without the kernel's own lists, one pass over all processes gives every parent.
    by_parent = None if _lists_children(proc) else _by_parent(proc)
    total = 0.0
    seen = {pid}
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        found = _listed_children(parent, proc) if by_parent is None else by_parent.get(parent, [])
        for child in found:
            if child not in seen:
                seen.add(child)
                total += process_cpu_s(child, proc) or 0.0
                waiting.append(child)
    return total


def children(pid: int, proc: Path = _PROC) -> list[int]:
    """Return the direct children of a process, dead ones nobody has waited for included.

    Args:
        pid: The parent.
        proc: The process file system.
    """
    return _listed_children(pid, proc) if _lists_children(proc) else _by_parent(proc).get(pid, [])


def process_cpu_s(pid: int, proc: Path = _PROC) -> float | None:
    """Return user and system seconds of a process and of the children it waited for.

    Returns:
        ``None`` when there is no such process.
    """
    fields = _stat_fields(pid, proc)
    # Fields 14 to 17 of proc(5): utime, stime, cutime, cstime.
    return None if fields is None else sum(int(ticks) for ticks in fields[11:15]) * _TICK_S


def _lists_children(proc: Path) -> bool:
    """Tell whether the kernel was built with ``CONFIG_PROC_CHILDREN`` (gVisor, for one, is not)."""
    me = os.getpid()
    return (proc / str(me) / "task" / str(me) / "children").exists()


def _listed_children(pid: int, proc: Path) -> list[int]:
    found: list[int] = []
    tasks = proc / str(pid) / "task"
    try:
        names = [entry.name for entry in os.scandir(tasks)]
    except OSError:
        return found
    for name in names:
        try:
            found += map(int, (tasks / name / "children").read_bytes().split())
        except OSError:
            continue
    return found


def _by_parent(proc: Path) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    try:
        names = [entry.name for entry in os.scandir(proc)]
    except OSError:
        return found
    for name in names:
        fields = _stat_fields(int(name), proc) if name.isdecimal() else None
        if fields is not None:
            found.setdefault(int(fields[1]), []).append(int(name))
    return found


def _stat_fields(pid: int, proc: Path) -> list[bytes] | None:
    """Return the fields of a process's ``stat`` from the third on (state, parent, ...)."""
    try:
        stat = (proc / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    # The name stands in parentheses and may hold spaces and parentheses itself.
    return stat[stat.rfind(b")") + 2 :].split()


def peak_rss_bytes(*, of_children: bool = False) -> int:
    """Return the largest resident memory of this process, or of one reaped child, so far."""
    who = resource.RUSAGE_CHILDREN if of_children else resource.RUSAGE_SELF
    return resource.getrusage(who).ru_maxrss * _RSS_UNIT


def rss_bytes() -> int | None:
    """Return this process's resident memory now; ``None`` where it cannot be read."""
    try:
        return int((_PROC / "self" / "statm").read_bytes().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return None


def load_1m() -> float | None:
    """Return the load average over one minute; ``None`` where the system has none."""
    try:
        return os.getloadavg()[0]
    except OSError:
        return None


def steal_s(path: Path = _PROC / "stat") -> float | None:
    """Return CPU seconds taken by the hypervisor since boot, over all CPUs.

    Returns:
        ``None`` where the kernel does not tell.
    """
    try:
        with path.open("rb") as stream:
            fields = stream.readline().split()
    except OSError:
        return None
    # proc(5): cpu user nice system idle iowait irq softirq steal ...
    if len(fields) < 9 or fields[0] != b"cpu":
        return None
    return int(fields[8]) * _TICK_S


def _rusage_s(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime
