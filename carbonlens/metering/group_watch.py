"""What a control group counted beside the process tree, and whose that is.

The tree's CPU time misses a descendant that left it unseen, or that the kernel reaped for a
parent which ignores its children. The group counts both, and everything else in it too.
Two looks do not tell who came and went between them (``docker exec``, a health check), so
its figure is taken for the work's only in the group of a SLURM task, which none but the
task's own processes enter, and only where the tree was alone there: at the start, and at
the end but for what the tree can have started. Everywhere else it is an upper bound, and a
check: what neither the tree nor the others in the group explain is told and not billed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.patterns import later
from carbonlens.metering import process_time
from carbonlens.metering.control_group import ControlGroup, this_group
from carbonlens.metering.process_time import Process, TreeClock

_ROOT: Final = Path("/")
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")

_TASK: Final = later(r"/job_\d+/step_\d+(/user)?/task_\d+")
"""Where SLURM puts a task of a step (version 1 and 2); logins are adopted by ``step_extern``."""

_SEEN_S: Final = 0.05
"""The two ways to count differ by less than this, read at slightly different times ..."""

_SEEN_SHARE: Final = 0.02
"""... by less than this share, and by the clock's ticks a living process."""

_TICKS_A_PROCESS: Final = 0.04
_MARKED_S: Final = 1.0
_MARKED_SHARE: Final = 0.1
"""What others in the group did is known less well: less than this is not worth a word."""


class Standing(msgspec.Struct, frozen=True):
    """A group and the tree in it, at one moment.

    Attributes:
        group: Whose account it is.
        counted_s: CPU seconds that the group has counted.
        tree_s: Those of the work's process tree.
        apart_s: Those of the meter itself, which is no part of the work.
        tree: The tree's processes, this one included.
        others: Who else is in the group.
        hidden: Whether it holds processes that are not visible from here, or too many to list.
        ticks: The time, in clock ticks since boot.
    """

    group: ControlGroup
    counted_s: float
    tree_s: float
    apart_s: float
    tree: frozenset[int]
    others: Mapping[int, Process]
    hidden: bool
    ticks: float


class Missed(msgspec.Struct, frozen=True):
    """CPU seconds that the group counted and the tree did not.

    Attributes:
        ours_s: Of the work, surely.
        unexplained_s: Perhaps of the work.
    """

    ours_s: float = 0.0
    unexplained_s: float = 0.0


def missed(before: Standing, after: Standing) -> Missed:
    """Compare what the group counted in a window with what is known of who did it.

    Args:
        before: At the start of the window.
        after: At its end.
    """
    counted_s = after.counted_s - before.counted_s
    tree_s = after.tree_s - before.tree_s
    # A process that was moved counts elsewhere; a group made anew begins at 0.
    if after.group != before.group or counted_s < 0 or before.hidden or after.hidden:
        return Missed()
    excess_s = counted_s - tree_s - (after.apart_s - before.apart_s)
    if excess_s <= _SEEN_S + _SEEN_SHARE * tree_s + _TICKS_A_PROCESS * len(before.tree | after.tree):
        return Missed()
    alone = not before.others and all(_can_be_ours(p, pid, before) for pid, p in after.others.items())
    if alone and _TASK.search(str(before.group.folder)):
        return Missed(ours_s=excess_s)
    if not before.others and not after.others:
        return Missed(unexplained_s=excess_s)
    left_s = excess_s - sum(_gain_s(p, before.others.get(pid)) for pid, p in after.others.items())
    return Missed(unexplained_s=left_s) if left_s > _MARKED_S + _MARKED_SHARE * tree_s else Missed()


def _can_be_ours(process: Process, pid: int, before: Standing) -> bool:
    """Tell whether a process outside the tree was in it once: nobody else was there to start it."""
    if process.parent == 0 and pid != 1:
        return False  # Somebody entered the container from outside.
    return pid in before.tree or int(process.start) >= int(before.ticks)


def _gain_s(now: Process, before: Process | None) -> float:
    known = before is not None and before.start == now.start
    return max(0.0, now.used_s - before.used_s) if known and before is not None else now.used_s


class GroupWatch:
    """Looks at this process's control group beside its tree, at the edges of one window.

    Args:
        clock: The tree.
        root: The file system.
    """

    def __init__(self, clock: TreeClock, root: Path = _ROOT) -> None:
        """Keep what to look at; nothing is read."""
        self._clock = clock
        self._root = root
        self._begun = False
        self._before: Standing | None = None
        self._missed = Missed()

    def missed_s(self, tree_s: float) -> float:
        """Return CPU seconds of the work that the tree did not count since the first look.

        Args:
            tree_s: What the clock has just told, at an edge.
        """
        if not self._begun:
            self._begun = True
            self._before = self._standing(tree_s)
        elif self._before is not None:
            after = self._standing(tree_s)
            found = Missed() if after is None else missed(self._before, after)
            # What was counted once stays counted: the clock never falls.
            self._missed = Missed(max(found.ours_s, self._missed.ours_s), found.unexplained_s)
        return self._missed.ours_s

    def notes(self) -> tuple[Finding, ...]:
        """Return what must be said of the last look."""
        if self._missed.ours_s:
            return (counted_by_group(self._missed.ours_s),)
        if self._missed.unexplained_s:
            return (unexplained_in_group(self._missed.unexplained_s),)
        return ()

    def _standing(self, tree_s: float) -> Standing | None:
        group = this_group(self._root)
        counted_s = None if group is None else group.used_s()
        if group is None or counted_s is None:
            return None
        members = group.members()
        apart = process_time.left_out()
        apart_s = process_time.left_out_s()
        if not self._clock.include_self:
            apart_s += process_time.own_s()
        others: dict[int, Process] = {}
        tree = self._clock.pids
        for pid in (members or frozenset()) - tree:
            process = process_time.process_at(pid, self._root / "proc")
            if process is None:
                continue
            if pid in apart or process.session in apart:
                apart_s += process.used_s
            else:
                others[pid] = process
        return Standing(
            group=group,
            counted_s=counted_s,
            tree_s=tree_s,
            apart_s=apart_s,
            tree=tree,
            others=others,
            hidden=members is None or 0 in members,
            ticks=time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS_PER_S,
        )


def counted_by_group(seconds: float) -> Finding:
    """Processes left the tree unseen, and the control group that they share with nobody counted them."""
    return Finding(
        code="CL164",
        severity="info",
        message=f"{seconds:.3g} s of CPU time are of processes that left the process tree: "
        "the control group of their SLURM task, which holds this work alone, counted them",
        mend="wait for the processes you start, and their time is seen while they run",
        subject="energy.cpu",
    )


def unexplained_in_group(seconds: float) -> Finding:
    """The control group counted more than the tree and the others in it account for."""
    return Finding(
        code="CL165",
        severity="info",
        message=f"the control group counted {seconds:.3g} s of CPU time more than this work's process tree "
        "and the others in the group account for: not in the figure, which may be low by so much",
        mend="wait for the processes you start, or run the work by `carbonlens run`",
        subject="energy.cpu",
    )
