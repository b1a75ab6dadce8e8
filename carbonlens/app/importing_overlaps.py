"""Traces that tell of the same devices over the same time: energy that would count twice.

Of a device that an id tells from all others, equal times and energies are one log, however each file
is encoded; logs that differ and overlap count once: the later one is refused. Where an index or a name
may be of two machines both count, with a word, and so they do where one fills the other's gaps.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from carbonlens.app.importing_devices import (
    devices_of,
    is_one_in_the_world,
    shared,
    sure_devices,
)
from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.domain.units import US_PER_S
from carbonlens.importers.contract import Measured, RunRecord
from carbonlens.importers.host_names import host_in, is_copy_by_name
from carbonlens.importers.sources import Source

_SMALL_SHARE: Final = 0.1
"""Share of either log that logs which follow one another may share: rows far apart are no excuse."""

_FEWEST_CHANGES: Final = 3
"""Changes of the value from which equal samples are no chance: two idle boards draw one power for long."""

_MEND_REFUSED: Final = (
    "cut from this file the rows of the time that the other tells; if they are of two machines, "
    "name the host of each: --host, or host in a [[place]] of --map; if of two devices, let each log tell "
    "a uuid"
)
_MEND_GAPS: Final = "; if it fills gaps of the other, import both at once into a new ledger"
_MEND_FILLED: Final = "if both are of one log, give one that holds all of it"
_MEND_DOUBT: Final = (
    "if they are of two machines, name the host of each: --host, or host in a [[place]] of --map; "
    "if they are of one, give one log that holds all of it, and let it tell a uuid"
)
_MEND_COPY: Final = "if it is of another host, name the hosts: --host, or host in a [[place]] of --map"
_MEND_HOSTS: Final = "if it is a copy, import one of them, or give both one --host"


_ANYWHERE: Final = ""
"""In place of an importer: ids that are one in the world are looked up among all."""


class Spans:
    """The runs of each importer's traces, found by device and time."""

    def __init__(self) -> None:
        """Start with none."""
        self._waiting: dict[str, list[Run]] = defaultdict(list)
        self._waiting_anywhere: list[Run] = []
        self._timed: dict[tuple[str, str], list[tuple[int, int, Run]]] = defaultdict(list)
        self._timeless: dict[tuple[str, str], list[Run]] = defaultdict(list)
        self._longest_us: dict[tuple[str, str], int] = defaultdict(int)
        self._count = 0
        self._measured: dict[tuple[str | None, str], Measured] = {}

    def samples_of(self, run: Run) -> Measured | None:
        """Return what a run's samples hold; ``None`` where it was not noted with them."""
        return self._measured.get((run.study, run.run_id))

    def add(self, run: Run, measured: Measured | None = None) -> None:
        """Note a run; it is sorted in once a trace of its importer is looked at.

        Args:
            run: The run.
            measured: What its samples hold, where they were read just now.
        """
        if measured is not None:
            self._measured[run.study, run.run_id] = measured
        if run.origin is not None and run.energy:
            self._waiting[run.origin.instrument.partition("/")[0]].append(run)
            if run.origin.source_sha256 is not None:
                self._waiting_anywhere.append(run)

    def near(self, instrument: str, run: Run) -> list[Run]:
        """Return the runs that share a device and time with one; of one without time, all.

        They are those of its importer, and of a device that is one in the world those of all importers.

        Args:
            instrument: Name of the importer, of any version.
            run: A run that is not kept yet.
        """
        for held in self._waiting.pop(instrument, ()):
            for device in devices_of(held):
                self._sort_in((instrument, device), held)
        found: dict[tuple[str | None, str], Run] = {}
        for device in devices_of(run):
            for held in self._of((instrument, device), run):
                found.setdefault((held.study, held.run_id), held)
            if is_one_in_the_world(device):
                self._sort_in_anywhere()
                for held in self._of((_ANYWHERE, device), run):
                    found.setdefault((held.study, held.run_id), held)
        return list(found.values())

    def _sort_in_anywhere(self) -> None:
        for held in self._waiting_anywhere:
            for device in devices_of(held):
                if is_one_in_the_world(device):
                    self._sort_in((_ANYWHERE, device), held)
        self._waiting_anywhere.clear()

    def _of(self, key: tuple[str, str], run: Run) -> Iterator[Run]:
        if run.start_us is None or run.end_us is None:
            yield from self._timeless.get(key, ())
            return
        timed = self._timed.get(key, [])
        first = bisect_left(timed, run.start_us - self._longest_us[key], key=_start)
        for _, _, held in timed[first : bisect_right(timed, run.end_us, key=_start)]:
            if (held.end_us or 0) >= run.start_us:
                yield held

    def _sort_in(self, key: tuple[str, str], run: Run) -> None:
        if run.start_us is None or run.end_us is None:
            self._timeless[key].append(run)
            return
        # A number of its own keeps runs from being compared where starts are equal.
        self._count += 1
        insort(self._timed[key], (run.start_us, self._count, run))
        self._longest_us[key] = max(self._longest_us[key], run.end_us - run.start_us)


class Overlapped(msgspec.Struct, frozen=True, kw_only=True):
    """A run that counts, and of which devices it tells what a trace tells too.

    Attributes:
        run: The run.
        devices: Those that are one for sure.
    """

    run: Run
    devices: frozenset[str]


class Apart:
    """What of a trace counts beside those that were imported before; filled run by run.

    Attributes:
        records: Its runs that count.
        copies: How many repeat one that is there.
        refused: How many are left out since they overlap one that is there.
        overlapped: Those that they overlap.
        findings: What is to be said.
    """

    def __init__(self) -> None:
        """Start with none."""
        self.records: list[RunRecord] = []
        self.copies = 0
        self.refused = 0
        self.overlapped: list[Overlapped] = []
        self.findings: list[Finding] = []


def apart(
    records: Iterable[RunRecord],
    source: Source,
    held: Sequence[Sequence[Run]],
    samples_of: Callable[[Run], Measured | None],
) -> Apart:
    """Return which runs of a trace count beside those that tell of the same devices and time.

    Args:
        records: Runs of the trace.
        source: The trace.
        held: For each of them the runs that it shares devices and time with.
        samples_of: Gives what a held run's samples hold, where it is known.
    """
    found = Apart()
    for record, near in zip(records, held, strict=True):
        every = [Beside(record, h, samples_of(h)) for h in near]
        others = [o for o in every if not o.is_another_hosts]
        same = next((o.held for o in others if o.is_same), None)
        if same is not None and not _is_named_for_another(record.run, same, source):
            found.copies += 1
            found.findings.append(_say_copy(source, same))
            continue
        sure = [o for o in others if same is None and o.is_sure]
        if sure:
            found.refused += 1
            found.findings.append(_say_refused(source, sure))
            found.overlapped += [Overlapped(run=o.held, devices=frozenset(o.devices)) for o in sure]
            continue
        found.findings += [_say_hosts(source, same)] if same is not None else _said_of(others, source)
        found.records.append(record)
    return found


def _said_of(others: Sequence[Beside], source: Source) -> list[Finding]:
    """Return what is to be said of a record beside runs that may overlap it, and not for sure."""
    met = met_most(others, source)
    if met is not None:
        return [say_met(source, *met)]
    unsure = [o for o in others if not _is_named_for_another(o.record.run, o.held, source)]
    return [_say_alike(source, o) for o in unsure if o.is_alike][:1]


def met_most(others: Sequence[Beside], source: Source) -> tuple[Beside, int] | None:
    """Return the run whose time a record stands on most, and how many further ones there are."""
    unsure = [o for o in others if not _is_named_for_another(o.record.run, o.held, source)]
    met = [o for o in unsure if o.overlap_s > o.allowed_s]
    return (max(met, key=lambda o: o.overlap_s), len(met) - 1) if met else None


def say_met(source: Source, most: Beside, more: int) -> Finding:
    """Return what is said of a record that may tell of the same as others, and counts beside them."""
    return _say_filled(source, most) if most.devices else _say_doubt(source, most, more=more)


class Beside:
    """A record beside a run that may tell of the same.

    Attributes:
        record, held: The two.
        devices: Those of both that are one for sure.
        overlap_s: Seconds that both reach over.
    """

    def __init__(self, record: RunRecord, held: Run, measured: Measured | None) -> None:
        self.record, self.held = record, held
        self.devices = list(sure_devices(record.run, held))
        self.overlap_s = _overlap_s(record.run, held)
        self._told = [m for m in (record.measured, measured) if m is not None]
        self.is_held_known = measured is not None

    @property
    def is_another_hosts(self) -> bool:
        """Whether somebody tells that two runs are of two machines."""
        mine, theirs = self.record.run.host_id, self.held.host_id
        return mine is not None and theirs is not None and mine != theirs

    @property
    def allowed_s(self) -> float:
        """Seconds that logs which follow one another may share: a step, and a small part of either."""
        runs = (self.record.run, self.held)
        lengths = [((r.end_us or 0) - (r.start_us or 0)) / US_PER_S for r in runs]
        steps = [step_s(self.record)]
        if self.is_held_known:
            steps.append(_step_s(self.held, self._told[-1]))
        return min(*steps, *(_SMALL_SHARE * s for s in lengths))

    @property
    def is_sure(self) -> bool:
        """Whether energy of a device that is one for sure would count twice."""
        return self.overlap_s > self.allowed_s and any(self._both_s(d) > self.allowed_s for d in self.devices)

    def _both_s(self, device: str) -> float:
        """Return the seconds that both tell of a device, as far as their gaps are known."""
        start_us = max(self.record.run.start_us or 0, self.held.start_us or 0)
        end_us = min(self.record.run.end_us or 0, self.held.end_us or 0)
        gaps = sorted(g for told in self._told for g in told.gaps_us.get(device, ()))
        both_us, at_us = 0.0, float(start_us)
        for first_us, last_us in gaps:
            both_us += max(min(first_us, end_us) - at_us, 0.0)
            at_us = max(at_us, last_us)
        return (both_us + max(end_us - at_us, 0.0)) / US_PER_S

    @property
    def is_alike(self) -> bool:
        """Whether both hold equal samples, as far as they were read just now."""
        hashes = [told.samples_sha256 for told in self._told]
        return len(hashes) == 2 and hashes[0] is not None and hashes[0] == hashes[1]

    @property
    def is_same(self) -> bool:
        """Whether two runs are of the same samples for sure.

        Two idle boards draw as many whole watts: of equal samples two of three must speak for one log, an
        id that tells that the device is one, times, and values that change. Of those that were read by an
        earlier import or in another format only times and energies are known.
        """
        run, held = self.record.run, self.held
        if self.is_alike:
            changes = self._told[0].changes >= _FEWEST_CHANGES
            return bool(self.devices) + (run.start_us is not None) + changes >= 2
        if run.start_us is None or not self.devices or (self.is_held_known and _tool(run) == _tool(held)):
            return False
        return (run.start_us, run.end_us) == (held.start_us, held.end_us) and _figures(run) == _figures(held)


def _start(entry: tuple[int, int, Run]) -> int:
    return entry[0]


def _is_named_for_another(run: Run, held: Run, source: Source) -> bool:
    """Whether files are named for two machines; a device that is one in the world goes before names."""
    if any(is_one_in_the_world(d) for d in shared(run, held)):
        return False
    mine, theirs = run.host_id or host_in(source.name), held.host_id or host_in(file_of(held))
    return mine is not None and theirs is not None and mine != theirs


def _figures(run: Run) -> list[tuple[str, ...]]:
    seconds = "" if run.duration_s is None else f"{run.duration_s:.6f}"
    return sorted((r.component, *r.devices, str(r.energy_j), seconds) for r in run.energy)


def _overlap_s(run: Run, held: Run) -> float:
    if None in (run.start_us, run.end_us, held.start_us, held.end_us):
        return 0.0
    end_us = min(run.end_us or 0, held.end_us or 0)
    return (end_us - max(run.start_us or 0, held.start_us or 0)) / US_PER_S


def step_s(record: RunRecord) -> float:
    """Return the seconds between two samples: logs that follow one another may share that much."""
    return 0.0 if record.measured is None else _step_s(record.run, record.measured)


def _step_s(run: Run, told: Measured) -> float:
    if told.samples < 2 or run.start_us is None or run.end_us is None:
        return 0.0
    return (run.end_us - run.start_us) / US_PER_S / (told.samples - 1)


def _tool(run: Run) -> str:
    return run.origin.instrument.partition("/")[0] if run.origin else ""


def file_of(run: Run) -> str:
    """Return the name of the file that a run was read from; empty where none is kept."""
    return (run.origin.source_file if run.origin else None) or ""


def further(count: int) -> str:
    """Return how many more there are, behind the name of one; empty where there is none."""
    return f" (and {counted(count, 'further trace')})" if count else ""


def _say_copy(source: Source, held: Run) -> Finding:
    other = file_of(held)
    if is_copy_by_name(source.name, other):
        text = f"holds the same samples as {other}, which was imported before; counted once"
        return Finding(code="CL210", severity="info", message=text, file=source.shown)
    text = f"holds the same samples as {other}, under another name; counted once"
    return Finding(code="CL291", severity="warning", message=text, file=source.shown, mend=_MEND_COPY)


def _say_hosts(source: Source, held: Run) -> Finding:
    text = f"holds the same samples as {file_of(held)}, and is named for another host: counted as that host's"
    return Finding(code="CL291", severity="warning", message=text, file=source.shown, mend=_MEND_HOSTS)


def _say_refused(source: Source, sure: Sequence[Beside]) -> Finding:
    most = max(sure, key=lambda o: o.overlap_s)
    told = {d for o in sure for d in o.devices}
    others = [d for d in devices_of(most.record.run) if d not in told]
    text = (
        f"tells of {most.overlap_s:.6g} s of {most.devices[0]} that {file_of(most.held)}"
        f"{further(len(sure) - 1)} tells of too: left out, for its energy would count twice"
    )
    if others:
        text += f"; what it tells of {', '.join(others[:4])} is left out with it"
    may_fill = not most.is_held_known and bool(most.held.lost_s)
    mend = _MEND_REFUSED + (_MEND_GAPS if may_fill else "")
    return Finding(code="CL295", severity="error", message=text, file=source.shown, mend=mend)


def _say_filled(source: Source, most: Beside) -> Finding:
    text = (
        f"tells of {most.overlap_s:.6g} s of {most.devices[0]} that {file_of(most.held)} reaches over: one"
        " of them has a gap where the other tells, and both are counted"
    )
    return Finding(code="CL296", severity="warning", message=text, file=source.shown, mend=_MEND_FILLED)


def _say_doubt(source: Source, most: Beside, *, more: int) -> Finding:
    named, other = ", ".join(shared(most.record.run, most.held)[:4]), file_of(most.held)
    text = (
        f"tells of {most.overlap_s:.6g} s of a device named {named}, as {other}{further(more)} does; "
        "nobody can tell whether both tell of the same: both are counted"
    )
    return Finding(code="CL296", severity="warning", message=text, file=source.shown, mend=_MEND_DOUBT)


def _say_alike(source: Source, other: Beside) -> Finding:
    text = (
        f"holds the same samples as {file_of(other.held)}; neither their times and values nor an id tell"
        " that they are one log: both are counted"
    )
    return Finding(code="CL296", severity="warning", message=text, file=source.shown, mend=_MEND_DOUBT)


def without(runs: Iterable[Run], contents: Collection[str], held: Iterable[Run], run_id: str) -> list[Run]:
    """Return the runs that are neither of the same content, nor replaced, nor versions of a run.

    Args:
        runs: The runs.
        contents: Hashes of the content: what is of equal bytes is looked at before.
        held: Runs whose place is taken.
        run_id: Id of the run that is written ever further.
    """
    taken = {(run.study, run.run_id) for run in held}
    return [
        run
        for run in runs
        if (run.study, run.run_id) not in taken
        and run.run_id.partition("~")[0] != run_id
        and (run.origin is None or run.origin.source_sha256 not in contents)
    ]
