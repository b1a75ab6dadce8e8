"""Nesting: in which runs a run lies, at each moment of its window.

A run lies in the one that it names as its parent, and in windows of the processes that
its own process descends from, as far as those measured what it did (``allocation_holding``).
What it uses while none of them goes on, or that none of them read, lies in nothing, and counts
beside them (docs/adr/0007-shared-devices.md, "A run inside another").
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from carbonlens.accounting.allocation_holding import holds, kinship
from carbonlens.accounting.allocation_machines import one_machine
from carbonlens.accounting.allocation_slices import Slice, Stay, cut
from carbonlens.accounting.allocation_windows import Windows
from carbonlens.domain.run import Reading, Run

SLACK_US: Final = 100_000
"""Edges of two windows that are no further apart are one: each process stamps its own."""

SLACK_SHARE: Final = 100
"""Of a short run no more than one part in so many is slack."""

_EVER: Final = 2**63


class _Above(NamedTuple):
    """A run that another may lie in, and how long it goes on.

    Attributes:
        named: Whether the other names it, or names what names it.
        whole: Whether it holds whatever the other read: nothing tells what it did not measure.
        apart: Whether the other's process is none below its own: what it read of processes
            holds nothing of the other, a meter of the whole machine does.
    """

    run: Run
    start_us: int
    end_us: int
    named: bool
    whole: bool
    apart: bool = False

    def holds(self, reading: Reading) -> bool:
        """Tell whether the joules of a reading below it stand in its own readings too."""
        if self.whole:
            return True
        return any(
            holds(own, reading) for own in self.run.energy if not self.apart or own.component == "wall"
        )


class Nested(NamedTuple):
    """What lies in what.

    Attributes:
        slices: Those of each run that may lie in others; other runs stand for themselves.
        stepped: Runs that begin before the one that they name: a clock was set back.
    """

    slices: dict[str, tuple[Slice, ...]]
    stepped: tuple[str, ...]


def nested(known: Mapping[str, Run], machines: Mapping[str, str], heirs: Mapping[str, str]) -> Nested:
    """Return the slices of runs that may lie in others.

    Runs that would lie in each other are damaged: they, and what lies in them, are left out.

    Args:
        known: Runs by their ids.
        machines: Ids of hosts that are one machine, to that under which it is known.
        heirs: Ids of corrected records, to that of the record which counts.
    """
    lines = _Lines(known, machines, heirs)
    above = {i: found for i, run in known.items() if (found := lines.above(run))}
    settled: dict[str, bool] = {}
    for run_id in above:
        _settle(run_id, above, settled)
    return Nested(
        {i: _sliced(known[i], found) for i, found in above.items() if settled[i]}, tuple(lines.stepped)
    )


def counting(runs: Iterable[Run]) -> dict[str, tuple[Run, ...]]:
    """Return of each run the parts that count by themselves; none of one that lies wholly in others.

    Args:
        runs: Current records, all that may lie in each other.
    """
    known = {r.run_id: r for r in runs}
    slices = nested(known, one_machine(known.values()), {}).slices
    return {
        i: tuple(s.run for s in slices[i] if not s.inside) if i in slices else (run,)
        for i, run in known.items()
    }


def _settle(run_id: str, above: Mapping[str, Sequence[_Above]], settled: dict[str, bool]) -> None:
    """Note whether a run is in no circle, and under none; without recursion, as lines may be long."""
    stack = [run_id]
    entered: set[str] = set()
    while stack:
        here = stack[-1]
        over = [a.run.run_id for a in above.get(here, ())]
        waiting = [i for i in over if i not in settled]
        if here in settled:
            pass  # by another way up; where that went round, what is above may be open still
        elif not waiting:
            settled[here] = all(settled[i] for i in over)
        elif here in entered or any(i in entered for i in waiting):
            settled[here] = False
        else:
            entered.add(here)
            stack += waiting
            continue
        stack.pop()


class _Lines:
    """What is above runs: those that they name, and windows of processes that they descend from."""

    def __init__(
        self, known: Mapping[str, Run], machines: Mapping[str, str], heirs: Mapping[str, str]
    ) -> None:
        self._machines = machines
        self._by_id = {older: known[i] for older, i in heirs.items() if i in known} | dict(known)
        for run in known.values():
            for older in () if run.supersedes is None else (run.supersedes, *run.supersedes_also):
                # Who names a corrected run means its correction.
                self._by_id.setdefault(older, run)
        windows: dict[str, list[tuple[int, int, str]]] = {}
        for run in known.values():
            if run.process is not None and _is_timed(run):
                windows.setdefault(run.process, []).append((run.start_us or 0, run.end_us or 0, run.run_id))
        self._windows = {process: Windows(found) for process, found in windows.items()}
        self.stepped: dict[str, None] = {}

    def above(self, run: Run) -> list[_Above]:
        """Return what a run may lie in, the nearest first; nothing for one in a circle of parents."""
        named = self._named(run)
        if named is None:
            return []
        by_id = {r.run_id: self._spans(run, r) for r in named}
        # Where a run does not lie in the one it names, it does not in what that lies in either.
        line = [r for r in named if by_id[r.run_id] is not None]
        for other in self._over(run, line):
            if other.run_id not in by_id:
                by_id[other.run_id] = self._of_process(run, other)
        found = [a for a in by_id.values() if a is not None]
        # Of those that go on at one moment the last to begin is the innermost.
        return sorted(found, key=lambda a: -a.start_us)

    def _named(self, run: Run) -> list[Run] | None:
        """Return the parents of a run; ``None`` where they go in a circle."""
        line: list[Run] = []
        met = {run.run_id}
        here = self._by_id.get(run.parent_run_id or "")
        while here is not None:
            if here.run_id in met:
                return None
            met.add(here.run_id)
            line.append(here)
            here = self._by_id.get(here.parent_run_id or "")
        return line

    def _over(self, run: Run, named: Sequence[Run]) -> Iterable[Run]:
        """Yield windows of processes above a run or its parents that overlap it, and their parents."""
        if not _is_timed(run):
            return
        processes = dict.fromkeys(p for r in (run, *named) for p in r.ancestors or ())
        for process in processes:
            if process == run.process or process not in self._windows:
                continue
            for run_id in self._windows[process].overlapping(run.start_us or 0, run.end_us or 0):
                found = self._by_id[run_id]
                if found.run_id != run.run_id:
                    yield found
                    yield from (r for r in self._named(found) or () if r.run_id != run.run_id)

    def _spans(self, run: Run, parent: Run) -> _Above | None:
        """Return how long a parent goes on, as far as the run below it is concerned."""
        kin = kinship(run, parent)
        apart = kin == "beside"
        if self._is_apart(run, parent) or (apart and not any(r.component == "wall" for r in parent.energy)):
            return None
        start = -_EVER if parent.start_us is None else parent.start_us
        end = _EVER if parent.end_us is None else parent.end_us
        if run.start_us is not None and kin == "below" and start > run.start_us:
            # A run cannot begin before the one it names: it began with that at the earliest.
            if start - run.start_us > SLACK_US:
                self.stepped[run.run_id] = None
            end = end if end == _EVER else run.start_us + end - start
            start = run.start_us
        if not _is_timed(run) or (run.process is not None and run.process == parent.process):
            start = min(start, run.start_us or start)
            # In one process, whatever outlives its parent names what is around that; but a
            # window that nobody closed ends where its last sample does (exec, a kill).
            end = end if parent.status == "recovered" else _EVER
        return _Above(parent, start, end, named=True, whole=kin == "untold", apart=apart)

    def _is_apart(self, run: Run, parent: Run) -> bool:
        """Tell whether two runs were on two machines: no reading of one holds a joule of the other."""
        if run.host_id is None or parent.host_id is None:
            return False
        first, second = (self._machines.get(h, h) for h in (run.host_id, parent.host_id))
        return first != second

    def _of_process(self, run: Run, other: Run) -> _Above | None:
        if not _is_timed(other) or self._is_apart(run, other) or kinship(run, other) == "beside":
            return None
        return _Above(other, other.start_us or 0, other.end_us or 0, named=False, whole=False)


def _is_timed(run: Run) -> bool:
    return run.start_us is not None and run.end_us is not None and run.end_us > run.start_us


def _sliced(run: Run, above: Sequence[_Above]) -> tuple[Slice, ...]:
    """Return a run in slices: in each, what its readings lie in does not change."""
    every = tuple(range(len(run.energy)))
    if not _is_timed(run):
        return (Slice(run, every, tuple(a.run.run_id for a in above if a.named)),)
    start, end = run.start_us or 0, run.end_us or 0
    spans = [s for a in above if (s := _snapped(a, start, end)) is not None]
    edges = sorted({start, end, *(t for s in spans for t in s[:2] if start < t < end)})
    found: list[Stay] = []
    latest: dict[tuple[tuple[int, ...], tuple[str, ...]], int] = {}
    for a, b in pairwise(edges):
        here = [s[2] for s in spans if s[0] <= a and s[1] >= b]
        for inside, places in _by_holder(run, every, here).items():
            last = latest.get((places, inside))
            if last is not None and found[last].end_us == a:
                found[last] = found[last]._replace(end_us=b)
                continue
            latest[places, inside] = len(found)
            found.append(Stay(a, b, places, inside))
    return cut(run, found)


def _by_holder(
    run: Run, every: tuple[int, ...], here: Sequence[_Above]
) -> dict[tuple[str, ...], tuple[int, ...]]:
    """Return what hold the readings of a run at one moment, to the places of those readings."""
    if not every or all(a.whole for a in here):
        return {tuple(a.run.run_id for a in here if every or a.named): every}
    found: dict[tuple[str, ...], tuple[int, ...]] = {}
    for place in every:
        inside = tuple(a.run.run_id for a in here if a.holds(run.energy[place]))
        found[inside] = (*found.get(inside, ()), place)
    return found


def _snapped(above: _Above, start: int, end: int) -> tuple[int, int, _Above] | None:
    """Return the part of a window in which a run above it goes on, its edges cleared of slack."""
    slack = min(SLACK_US, math.ceil((end - start) / SLACK_SHARE))
    first, last = max(above.start_us, start), min(above.end_us, end)
    first = start if first - start <= slack else first
    last = end if end - last <= slack else last
    return None if last - first <= slack and (first, last) != (start, end) else (first, last, above)
