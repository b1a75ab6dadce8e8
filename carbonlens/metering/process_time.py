"""CPU time and memory of a process tree, and what else the machine was doing.

A tree's CPU time is that of the process, of the children it has waited for
(``RUSAGE_CHILDREN``) and of the descendants still alive, read from ``/proc``. A
descendant whose parent ends without waiting for it leaves the tree: it is followed
by its pid while it lives, and what it had used at the last look stays counted when
it is gone. One that nobody looked at before it left is not seen; only a subreaper,
as ``carbonlens run`` is, gets to see it.
"""

from __future__ import annotations

import math
import os
import resource
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.metering.childless import is_childless
from carbonlens.metering.host import START_FIELD, stat_fields

_PROC: Final = Path("/proc")
_TICK_S: Final = 1.0 / os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_RSS_UNIT: Final = 1 if os.uname().sysname == "Darwin" else 1024
_WALK_REST_S: Final = 1.0
"""Shortest time between two walks inside a window, in the user's own process."""

_WALK_SHARE: Final = 0.005
"""A walk is not repeated before two hundred times its own duration has passed."""

_PARENT_FIELD: Final = 1
_SESSION_FIELD: Final = 3


class Process(msgspec.Struct, frozen=True):
    """A process as it was seen.

    Attributes:
        start: When it started, in clock ticks since boot; with the pid it names a process.
        parent: Pid of its parent; 0 for one that is not visible from here.
        used_s: CPU seconds of its own and of the children it has waited for.
        waited_s: Those of the children alone.
        session: Pid of its session's leader.
    """

    start: bytes
    parent: int
    used_s: float
    waited_s: float
    session: int = 0


class _LeftOut:
    """Children that are no part of the work, such as a meter's program, and what they used.

    The lock keeps the seconds of one that is being waited for from being seen twice
    or not at all.
    """

    def __init__(self) -> None:
        self.pids: set[int] = set()
        self.ranks: dict[int, Process] = {}
        self.used_s = 0.0
        self.lock = threading.Lock()

    def lost_ranks(self) -> bool:
        """Look at the ranks that others wait for; tell whether one has been waited for since."""
        lost = False
        for pid, before in tuple(self.ranks.items()):
            now = process_at(pid)
            if now is not None and _is_same(now, before):
                self.ranks[pid] = now
            else:
                del self.ranks[pid]
                self.pids.discard(pid)
                self.used_s += before.used_s
                lost = True
        return lost

    def after_fork(self) -> None:
        # They are the parent's children, and its thread may have held the lock.
        self.__init__()  # type: ignore[misc]  # begins anew in a forked child, as a fresh one would


_LEFT_OUT: Final = _LeftOut()
os.register_at_fork(after_in_child=_LEFT_OUT.after_fork)


def leave_out(pid: int) -> None:
    """Say that a child, with all it starts in its session, is no part of the work.

    Whoever started it waits for it by ``wait_left_out``, and in no other way.

    Args:
        pid: The child, which leads a session of its own.
    """
    _LEFT_OUT.pids.add(pid)


def leave_out_rank(pid: int) -> None:
    """Say that a child is a rank of the same job, which records its own part; its parent waits for it.

    Of its last second, what it used after it was seen last counts here too: it is known
    only from what waiting for it adds to this process.

    Args:
        pid: The child.
    """
    process = process_at(pid)
    if process is not None:
        with _LEFT_OUT.lock:
            _LEFT_OUT.ranks[pid] = process
            _LEFT_OUT.pids.add(pid)


def wait_left_out(pid: int) -> int | None:
    """Return the exit code of a child that was left out, as ``subprocess`` gives it.

    Returns:
        ``None`` while it runs; 0 if somebody else has waited for it.
    """
    with _LEFT_OUT.lock:
        try:
            ended, status, usage = os.wait4(pid, os.WNOHANG)
        except ChildProcessError:
            _LEFT_OUT.pids.discard(pid)
            return 0
        if ended != pid:
            return None
        _LEFT_OUT.pids.discard(pid)
        _LEFT_OUT.used_s += usage.ru_utime + usage.ru_stime
    return os.waitstatus_to_exitcode(status)


def left_out() -> frozenset[int]:
    """Return the children that are no part of the work and live; each leads a session of its own."""
    return frozenset(_LEFT_OUT.pids)


def left_out_s() -> float:
    """Return CPU seconds of the children that were no part of the work and were waited for."""
    return _LEFT_OUT.used_s


def own_s() -> float:
    """Return CPU seconds of this process without its children."""
    return _rusage_s(resource.RUSAGE_SELF)


def _waited_for_s() -> float:
    """Return CPU seconds of the children that were waited for and that do the work."""
    with _LEFT_OUT.lock:
        waited_s = _rusage_s(resource.RUSAGE_CHILDREN)
        while _LEFT_OUT.ranks and _LEFT_OUT.lost_ranks():
            waited_s = _rusage_s(resource.RUSAGE_CHILDREN)
        return waited_s - _LEFT_OUT.used_s


class TreeClock:
    """CPU seconds of this process and its descendants, or of the descendants alone.

    The value never falls: a child that is reaped between the two readings of one
    look would otherwise be missing from it, and a descendant that left the tree for
    ever.

    Args:
        include_self: False for a wrapper that only watches its children.
    """

    def __init__(self, *, include_self: bool = True) -> None:
        """Start without having looked."""
        self._include_self = include_self
        self._pid = os.getpid()
        self._highest = 0.0
        self._next_walk = 0.0
        # A wrapper is no part of the work, and knows of it by walking alone.
        self._rest_s = _WALK_REST_S if include_self else 0.0
        self._seen: dict[int, Process] = {}
        self._seen_waited_s = 0.0
        self._left_s = 0.0

    @property
    def include_self(self) -> bool:
        """Whether this process's own time counts."""
        return self._include_self

    @property
    def pids(self) -> frozenset[int]:
        """This process and the descendants that lived at the last walk."""
        return frozenset((self._pid, *self._seen))

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
        waited_s = _waited_for_s()
        used = waited_s
        if self._include_self:
            used += _rusage_s(resource.RUSAGE_SELF)
        begin = time.monotonic()
        if edge or begin >= self._next_walk:
            # Nearly all programs have no child most of the time: one call says so, a walk takes many.
            alone = not self._seen and is_childless()
            living = {} if alone else _descendants(self._pid, _PROC, self._seen)
            self._left_s += self._lost_since(living)
            self._seen, self._seen_waited_s = living, waited_s
            used += sum(p.used_s for p in living.values())
            end = time.monotonic()
            self._next_walk = end + max((end - begin) / _WALK_SHARE, self._rest_s)
        self._highest = max(self._highest, used + self._left_s)
        return self._highest

    def _lost_since(self, living: Mapping[int, Process]) -> float:
        """Return what processes that are gone since the last look had used and passed to nobody.

        A process that is waited for adds its time to its parent's. What the nearest
        ancestor that still lives has not gained so went elsewhere: to init, or to
        nobody where the parent does not wait.
        """
        gone = {pid: p for pid, p in self._seen.items() if not _is_same(living.get(pid), p)}
        by_heir: dict[int | None, float] = {}
        for process in gone.values():
            heir: int | None = process.parent
            while heir in gone:
                heir = gone[heir].parent
            known = heir == self._pid or heir in self._seen
            by_heir[heir if known else None] = by_heir.get(heir if known else None, 0.0) + process.used_s
        return sum(max(0.0, used_s - self._gained_s(heir)) for heir, used_s in by_heir.items())

    def _gained_s(self, heir: int | None) -> float:
        # Read after the walk, and compared with a value from before the last one: what
        # is passed on in between must not be taken for lost, and so counted twice.
        if heir is None:
            return 0.0
        if heir == self._pid:
            return _waited_for_s() - self._seen_waited_s
        before, now = self._seen[heir], process_at(heir, _PROC)
        return now.waited_s - before.waited_s if now is not None and _is_same(now, before) else math.inf


def _descendants(pid: int, proc: Path, known: Mapping[int, Process] | None = None) -> dict[int, Process]:
    """Return the living descendants, and those of ``known`` that live wherever they are now."""
    # Without the kernel's own lists, one pass over all processes gives every parent.
    by_parent = None if _lists_children(proc) else _by_parent(proc)
    found: dict[int, Process] = {}
    waiting: list[int] = [pid]
    looked_for = {pid}
    left_out = frozenset(_LEFT_OUT.pids)

    def take(candidates: Iterable[int], known: Mapping[int, Process]) -> None:
        for child in candidates:
            if child in looked_for or child in left_out:
                continue
            process = process_at(child, proc)
            if process is None or process.session in left_out:
                continue
            if child not in known or _is_same(process, known[child]):
                looked_for.add(child)
                found[child] = process
                waiting.append(child)

    # The tree first: a pid of ``known`` that was given anew counts if it is in the tree.
    for more in ((), tuple(known or ())):
        take(more, known or {})
        while waiting:
            parent = waiting.pop()
            take(_listed_children(parent, proc) if by_parent is None else by_parent.get(parent, []), {})
    return found


def process_at(pid: int, proc: Path = _PROC) -> Process | None:
    """Return a process as it is now; ``None`` when there is none of that id.

    Args:
        pid: The process.
        proc: The process file system.
    """
    fields = stat_fields(pid, proc)
    if fields is None:
        return None
    # Fields 14 to 17 of proc(5): utime, stime, cutime, cstime.
    own, waited = (sum(map(int, part)) * _TICK_S for part in (fields[11:13], fields[13:15]))
    session = int(fields[_SESSION_FIELD])
    return Process(fields[START_FIELD], int(fields[_PARENT_FIELD]), own + waited, waited, session)


def _is_same(one: Process | None, other: Process) -> bool:
    """Tell whether both are one process: a pid is given anew, a start time with it is not."""
    return one is not None and one.start == other.start


def children(pid: int, proc: Path = _PROC) -> list[int]:
    """Return the direct children of a process, dead ones nobody has waited for included.

    Those that are no part of the work (``leave_out``) are not among them.

    Args:
        pid: The parent.
        proc: The process file system.
    """
    found = _listed_children(pid, proc) if _lists_children(proc) else _by_parent(proc).get(pid, [])
    return [child for child in found if child not in _LEFT_OUT.pids]


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
        fields = stat_fields(int(name), proc) if name.isdecimal() else None
        if fields is not None:
            found.setdefault(int(fields[_PARENT_FIELD]), []).append(int(name))
    return found


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
