"""Traces that tell of the same devices over the same time: energy that would count twice.

Of a device that an id tells from all others, equal times and energies are one log, however each file
is encoded; logs that differ and overlap count once: the later one is refused. Where an index or a name
may be of two machines both count, with a word, and so they do where one may fill the other's gaps.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.domain.units import US_PER_S
from carbonlens.importers.contract import RunRecord
from carbonlens.importers.host_names import host_in, is_copy_by_name
from carbonlens.importers.sources import Source

_ONE_IN_THE_WORLD: Final = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<!\d)\d{10,}(?!\d)|\bJS\d{3}-\d{4,}", re.IGNORECASE
)
"""UUIDs, serial numbers of boards and of meters."""

_ONE_IN_A_MACHINE: Final = re.compile(r"\d+|card\d+|(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.\d", re.I)
"""An index that a tool gives, or a place on a bus."""

_MEND_REFUSED: Final = (
    "cut from this file the rows of the time that the other tells; if they are of two machines, "
    "name the host of each: --host, or host in a [[place]] of --map"
)
_MEND_DOUBT: Final = (
    "if they are of two machines, name the host of each: --host, or host in a [[place]] of --map; "
    "if they are of one, give one log that holds all of it, and let it tell a uuid"
)
_MEND_COPY: Final = "if it is of another host, name the hosts: --host, or host in a [[place]] of --map"
_MEND_HOSTS: Final = "if it is a copy, import one of them, or give both one --host"


class Spans:
    """The runs of each importer's traces, found by device and time."""

    def __init__(self) -> None:
        """Start with none."""
        self._waiting: dict[str, list[Run]] = defaultdict(list)
        self._timed: dict[tuple[str, str], list[tuple[int, int, Run]]] = defaultdict(list)
        self._timeless: dict[tuple[str, str], list[Run]] = defaultdict(list)
        self._longest_us: dict[tuple[str, str], int] = defaultdict(int)
        self._count = 0
        self._samples: dict[tuple[str | None, str], str] = {}

    def samples_of(self, run: Run) -> str | None:
        """Return the hash of a run's samples; ``None`` where it was not noted with one."""
        return self._samples.get((run.study, run.run_id))

    def add(self, run: Run, samples_sha256: str | None = None) -> None:
        """Note a run; it is sorted in once a trace of its importer is looked at.

        Args:
            run: The run.
            samples_sha256: Of its samples, where they were read just now.
        """
        if samples_sha256 is not None:
            self._samples[run.study, run.run_id] = samples_sha256
        if run.origin is not None and run.energy:
            self._waiting[run.origin.instrument.partition("/")[0]].append(run)

    def near(self, instrument: str, run: Run) -> list[Run]:
        """Return the runs of an importer that share a device and time with one; of one without, all.

        Args:
            instrument: Name of the importer, of any version.
            run: A run that is not kept yet.
        """
        for held in self._waiting.pop(instrument, ()):
            self._sort_in(instrument, held)
        found: dict[tuple[str | None, str], Run] = {}
        for device in _devices(run):
            for held in self._of(instrument, device, run):
                found.setdefault((held.study, held.run_id), held)
        return list(found.values())

    def _of(self, instrument: str, device: str, run: Run) -> Iterator[Run]:
        key = (instrument, device)
        if run.start_us is None or run.end_us is None:
            yield from self._timeless.get(key, ())
            return
        timed = self._timed.get(key, [])
        first = bisect_left(timed, run.start_us - self._longest_us[key], key=_start)
        for _, _, held in timed[first : bisect_right(timed, run.end_us, key=_start)]:
            if (held.end_us or 0) >= run.start_us:
                yield held

    def _sort_in(self, instrument: str, run: Run) -> None:
        for device in _devices(run):
            key = (instrument, device)
            if run.start_us is None or run.end_us is None:
                self._timeless[key].append(run)
                continue
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
    samples_of: Callable[[Run], str | None],
) -> Apart:
    """Return which runs of a trace count beside those that tell of the same devices and time.

    Args:
        records: Runs of the trace.
        source: The trace.
        held: For each of them the runs that it shares devices and time with.
        samples_of: Gives the hash of a held run's samples, where it is known.
    """
    found = Apart()
    for record, near in zip(records, held, strict=True):
        others = [h for h in near if not _is_another_hosts(record.run, h)]
        same = next((h for h in others if _is_same(record, h, samples_of(h))), None)
        if same is not None and not _is_named_for_another(record.run, same, source):
            found.copies += 1
            found.findings.append(_say_copy(source, same))
            continue
        sure = [] if same is not None else _sure_of(record, others)
        told = [_say_refused(source, *max(sure, key=lambda m: m[1]), more=len(sure) - 1)] if sure else []
        found.findings += told or _said_of(record, others, source, same)[:1]
        if sure:
            found.refused += 1
            found.overlapped += [
                Overlapped(run=h, devices=frozenset(_sure_devices(record.run, h))) for h, _, _ in sure
            ]
        else:
            found.records.append(record)
    return found


def _said_of(record: RunRecord, others: Sequence[Run], source: Source, same: Run | None) -> list[Finding]:
    """Return what is to be said of a record beside runs that may overlap it, and not for sure."""
    if same is not None:
        return [_say_hosts(source, same)]
    run = record.run
    unsure = [(h, s) for h, s in _met(record, others) if not _is_named_for_another(run, h, source)]
    return [_say_doubt(source, run, *max(unsure, key=lambda m: m[1]), more=len(unsure) - 1)] if unsure else []


def _met(record: RunRecord, others: Sequence[Run]) -> list[tuple[Run, float]]:
    """Return the runs that overlap a record by more than one sample, and by how many seconds."""
    met = [(h, _overlap_s(record.run, h)) for h in others]
    return [(h, s) for h, s in met if s > step_s(record)]


def _sure_of(record: RunRecord, others: Sequence[Run]) -> list[tuple[Run, float, str]]:
    """Return the runs of which it is sure that their energy would count twice, with a device of both."""
    run = record.run
    return [
        (h, s, d)
        for h, s in _met(record, others)
        if s > _gaps_s(run, h) and (d := _one_device(run, h)) is not None
    ]


def _start(entry: tuple[int, int, Run]) -> int:
    return entry[0]


def _devices(run: Run) -> list[str]:
    return list(dict.fromkeys(d for r in run.energy if r.energy_j for d in r.devices))


def _is_another_hosts(run: Run, held: Run) -> bool:
    """Whether somebody tells that two runs are of two machines."""
    return run.host_id is not None and held.host_id is not None and run.host_id != held.host_id


def _is_named_for_another(run: Run, held: Run, source: Source) -> bool:
    """Whether files are named for two machines; a device that is one in the world goes before names."""
    if any(_ONE_IN_THE_WORLD.search(d) for d in _shared(run, held)):
        return False
    mine, theirs = run.host_id or host_in(source.name), held.host_id or host_in(_file(held))
    return mine is not None and theirs is not None and mine != theirs


def _shared(run: Run, held: Run) -> list[str]:
    theirs = _devices(held)
    return [d for d in _devices(run) if d in theirs]


def _one_device(run: Run, held: Run) -> str | None:
    """Return a device of both that is one for sure."""
    return next(iter(_sure_devices(run, held)), None)


def _sure_devices(run: Run, held: Run) -> Iterator[str]:
    """Yield the devices of both that are one for sure."""
    is_one_machine = run.host_id is not None and run.host_id == held.host_id
    for device in _shared(run, held):
        if _ONE_IN_THE_WORLD.search(device) or (is_one_machine and _ONE_IN_A_MACHINE.fullmatch(device)):
            yield device


def _is_same(record: RunRecord, held: Run, samples_sha256: str | None) -> bool:
    """Whether two runs are of the same samples.

    Of those that were read by an earlier import only times and energies are known. Two idle boards
    draw as many whole watts: then an id must tell that the device is one.
    """
    run = record.run
    if record.measured is not None and samples_sha256 is not None:
        return record.measured.samples_sha256 == samples_sha256
    if run.start_us is None or _one_device(run, held) is None:
        return False
    return (run.start_us, run.end_us) == (held.start_us, held.end_us) and _figures(run) == _figures(held)


def _figures(run: Run) -> list[tuple[str, ...]]:
    seconds = "" if run.duration_s is None else f"{run.duration_s:.6f}"
    return sorted((r.component, *r.devices, str(r.energy_j), seconds) for r in run.energy)


def _overlap_s(run: Run, held: Run) -> float:
    if None in (run.start_us, run.end_us, held.start_us, held.end_us):
        return 0.0
    end_us = min(run.end_us or 0, held.end_us or 0)
    return (end_us - max(run.start_us or 0, held.start_us or 0)) / US_PER_S


def _gaps_s(run: Run, held: Run) -> float:
    """Return the seconds that one of two runs tells nothing of, and the other may."""
    return max(run.lost_s or 0.0, held.lost_s or 0.0)


def step_s(record: RunRecord) -> float:
    """Return the seconds between two samples: logs that follow one another may share that much."""
    run, told = record.run, record.measured
    if told is None or told.samples < 2 or run.start_us is None or run.end_us is None:
        return 0.0
    return (run.end_us - run.start_us) / US_PER_S / (told.samples - 1)


def _file(run: Run) -> str:
    return (run.origin.source_file if run.origin else None) or ""


def _more(count: int) -> str:
    return f" (and {counted(count, 'further trace')})" if count else ""


def _say_copy(source: Source, held: Run) -> Finding:
    other = _file(held)
    if is_copy_by_name(source.name, other):
        text = f"holds the same samples as {other}, which was imported before; counted once"
        return Finding(code="CL210", severity="info", message=text, file=source.shown)
    text = f"holds the same samples as {other}, under another name; counted once"
    return Finding(code="CL291", severity="warning", message=text, file=source.shown, mend=_MEND_COPY)


def _say_hosts(source: Source, held: Run) -> Finding:
    text = f"holds the same samples as {_file(held)}, and is named for another host: counted as that host's"
    return Finding(code="CL291", severity="warning", message=text, file=source.shown, mend=_MEND_HOSTS)


def _say_refused(source: Source, held: Run, overlap_s: float, device: str, *, more: int) -> Finding:
    text = (
        f"tells of {overlap_s:.6g} s of {device} that {_file(held)}{_more(more)} tells of too: "
        "left out, for its energy would count twice"
    )
    return Finding(code="CL295", severity="error", message=text, file=source.shown, mend=_MEND_REFUSED)


def _say_doubt(source: Source, run: Run, held: Run, overlap_s: float, *, more: int) -> Finding:
    named = ", ".join(_shared(run, held)[:4])
    text = (
        f"tells of {overlap_s:.6g} s of a device named {named}, as {_file(held)}{_more(more)} does; nobody "
        "can tell whether both tell of the same: both are counted"
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
