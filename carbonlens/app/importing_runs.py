"""The runs that an import keeps: each once, whichever files, copies and ranks tell of it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Final

import msgspec

from carbonlens.app.importing_alike import AlikeKept, Before, Key, each_in_order, parted
from carbonlens.app.importing_totals import Sums, stated_j, sums_of
from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding, Severity
from carbonlens.domain.limits import MOST_HOURS, misfit, stands_in_one_hour
from carbonlens.domain.run import Run
from carbonlens.domain.units import US_PER_S
from carbonlens.importers.contract import AlikeRecords, RunRecord
from carbonlens.ledger.store import Ledger

SAME_TIME_US: Final = 2 * US_PER_S
"""Machine-scope records of one machine that start and end this near are one measurement."""

SURE_S: Final = 3.0
"""Runs shorter than this may have followed each other, by times that are whole seconds."""

Mark = Callable[[RunRecord], tuple[Run, list[Finding]]]


class Kept:
    """What one group of sources adds.

    Attributes:
        fresh: Records to write.
        alike: Further ones, as columns.
        alike_sums: Sums over those.
        rejected: Records that no ledger takes.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self.fresh: list[RunRecord] = []
        self.alike: list[AlikeRecords] = []
        self.alike_sums = Sums()
        self.findings: list[Finding] = []
        self.rejected = 0


class RunKeeper:
    """Knows which runs the ledger holds, and picks those that are new.

    Args:
        store: The ledger.
    """

    def __init__(self, store: Ledger) -> None:
        """Read what the ledger holds."""
        self.sums = Sums()
        self._new: set[Key] = set()
        self._children: list[RunRecord] = []
        self._known: dict[Key, RunRecord] = {}
        self._by_content: dict[str, list[Run]] | None = None
        self._machines: dict[tuple[str, int], list[RunRecord]] = defaultdict(list)
        self._alike = AlikeKept(SAME_TIME_US)
        self.now_us = time.time_ns() // 1000
        for run in store.view().runs:
            record = RunRecord(run=run, machine=_machine_of(run))
            self._known[(run.study, run.run_id)] = record
            self._place(record)

    def keep(
        self,
        records: Sequence[RunRecord],
        file: str,
        mark: Mark,
        alike: Sequence[AlikeRecords] = (),
    ) -> Kept:
        """Return what is new of one source.

        Args:
            records: Its records, in order.
            file: Its name, for Findings.
            mark: Puts tags, site and zone on a run, and says what it found on the way.
            alike: Further records, as columns.
        """
        self.now_us += 1
        kept = Kept()
        before = Before(self._known_of, self._has_start, SAME_TIME_US)
        records, alike = parted(records, alike, before)
        slots: dict[Key, int] = {}
        fresh: dict[Key, RunRecord] = {}
        merged: dict[Key, list[RunRecord]] = defaultdict(list)
        superseded: dict[str, list[int]] = defaultdict(list)
        for slot, record in _furthest(records, superseded):
            placed = self._placed(record, file, kept)
            if placed is None:
                continue
            twin = self._twin(placed)
            if twin is not None:
                self._merge(placed, twin, fresh, merged)
                continue
            fresh[_key(placed)] = placed
            slots[_key(placed)] = slot
            self._place(placed)
        kept.findings += _superseded(superseded, file)
        kept.findings += [_merged(key, others, file) for key, others in merged.items()]
        in_order = ((slots.get(key, record.line), record) for key, record in fresh.items())
        for told in each_in_order(in_order, alike) if alike else fresh.values():
            if isinstance(told, AlikeRecords):
                self._keep_alike(told, mark, kept)
                continue
            record = told
            run, said = self._dated(mark, record)
            done = msgspec.structs.replace(record, run=run)
            self._new.add(_key(record))
            kept.fresh.append(done)
            kept.findings += [*said, *_overlong(run, file)]
            self._known[_key(record)] = done
            self._note(run)
            self.sums.add(done)
            if run.parent_run_id is not None:
                self._children.append(done)
        return kept

    def of_content(self, sha256: str) -> list[Run]:
        """Return the runs that a source of this content gave, by this import or an earlier one."""
        if self._by_content is None:
            self._by_content = defaultdict(list)
            for record in self._known.values():
                self._note(record.run)
        return self._by_content.get(sha256, [])

    def _note(self, run: Run) -> None:
        if self._by_content is not None and run.origin is not None and run.origin.source_sha256:
            self._by_content[run.origin.source_sha256].append(run)

    def _dated(self, mark: Mark, record: RunRecord) -> tuple[Run, list[Finding]]:
        run, said = mark(record)
        if run.origin is not None:
            dated = msgspec.structs.replace(run.origin, imported_us=self.now_us)
            run = msgspec.structs.replace(run, origin=dated)
        return run, said

    def _keep_alike(self, told: AlikeRecords, mark: Mark, kept: Kept) -> None:
        """Keep runs that meet no other: what is put on the first of them is put on all."""
        first = told.record(0)
        run, said = self._dated(mark, first)
        runs = msgspec.structs.replace(told.runs, pattern=run)
        done = msgspec.structs.replace(told, pattern=msgspec.structs.replace(first, run=run), runs=runs)
        kept.findings += said
        kept.alike.append(done)
        self._alike.add(done)
        sums = sums_of(done)
        kept.alike_sums.include(sums)
        self.sums.include(sums)

    def _find(self, key: Key) -> RunRecord | None:
        """Return the record of a run that was kept."""
        found = self._known.get(key) or self._alike.find(key)
        if found is not None and key not in self._known:
            self._known[key] = found
            self._new.add(key)
        return found

    def _is_known(self, key: Key) -> bool:
        return key in self._known or key in self._alike.keys

    def _known_of(self, study: str | None, names: set[str]) -> set[str]:
        held = [keys for keys in (self._known, self._alike.keys) if keys]
        return {name for name in names if any((study, name) in keys for keys in held)} if held else set()

    def _has_start(self, machine: str, span: int) -> bool:
        return bool(self._machines.get((machine, span))) or self._alike.has_start(machine, span)

    def hold_children(self) -> None:
        """Take out of the sums what is a part of a run that counts, once all files were read."""
        for record in self._children:
            if self._is_known((record.run.study, record.run.parent_run_id or "")):
                self.sums.hold_within(record)
        self._children.clear()

    def _placed(self, record: RunRecord, file: str, kept: Kept) -> RunRecord | None:
        """Return the record to write: itself, or a correction of one that is not as far."""
        run, line = record.run, record.line
        unfit = misfit(run)
        if unfit is not None:
            text = f"run {run.run_id!r} is not imported: {unfit}"
            kept.findings.append(
                _finding("CL217", "error", text, file, "check the figure and its unit", line)
            )
            kept.rejected += 1
            return None
        earlier = self._find(_key(record))
        if earlier is None:
            return record
        if _same(run, earlier.run):
            text = f"run {run.run_id!r} is in the ledger already; counted once"
            kept.findings.append(_finding("CL212", "info", text, file, line=line))
            return None
        if not record.cumulative:
            text = (
                f"run {run.run_id!r} of study {run.study!r} is in the ledger with other content; not imported"
            )
            kept.findings.append(_finding("CL213", "error", text, file, _correct_it(run.run_id), line))
            kept.rejected += 1
            return None
        return self._beside(record, earlier, file, kept)

    def _beside(self, record: RunRecord, earlier: RunRecord, file: str, kept: Kept) -> RunRecord | None:
        """Return a record of a run that was written before, if it is further or another run."""
        run, line = record.run, record.line
        if not _touch(run, earlier.run):
            name = f"{run.run_id}@{run.start_us}"
            if self._is_known((run.study, name)):
                return None
            text = f"run_id {run.run_id!r} stands for another run at another time too; kept as {name!r}"
            kept.findings.append(_finding("CL252", "warning", text, file, line=line))
            return _renamed(record, name)
        if _progress(record) <= _progress(earlier):
            text = f"run {run.run_id!r} is in the ledger, further on; this record of it is superseded"
            kept.findings.append(_finding("CL252", "info", text, file, line=line))
            return None
        text = f"run {run.run_id!r} is further on here than in the ledger; it replaces that record"
        kept.findings.append(_finding("CL252", "info", text, file, line=line))
        if _key(earlier) in self._new:
            self.sums.drop(earlier)
        name = f"{run.run_id}~{line or 1}.{self.now_us % 1_000_000}"
        return _renamed(record, name, supersedes=earlier.run)

    def _place(self, record: RunRecord) -> None:
        if record.machine is not None and record.run.start_us is not None:
            self._machines[record.machine, record.run.start_us // SAME_TIME_US].append(record)

    def _twin(self, record: RunRecord) -> RunRecord | None:
        """Return a record of the same machine over the same time."""
        run = record.run
        if record.machine is None or run.start_us is None or run.end_us is None:
            return None
        if run.duration_s is None or run.duration_s < SURE_S:
            return None
        bucket = run.start_us // SAME_TIME_US
        for near in (bucket - 1, bucket, bucket + 1):
            placed = self._machines.get((record.machine, near), [])
            for other in chain(placed, self._alike.starting(record.machine, near)):
                if _same_time(run, other.run):
                    return other
        return None

    def _merge(
        self,
        record: RunRecord,
        twin: RunRecord,
        fresh: dict[Key, RunRecord],
        merged: dict[Key, list[RunRecord]],
    ) -> None:
        """Count one of two: the one with more energy, unless the other is written already."""
        key = _key(twin)
        if key not in fresh or (stated_j(record) or Decimal(0)) <= (stated_j(twin) or Decimal(0)):
            merged[key].append(record)
            return
        del fresh[key]
        fresh[_key(record)] = record
        merged[_key(record)] = [*merged.pop(key, []), twin]
        bucket = self._machines[record.machine or "", (twin.run.start_us or 0) // SAME_TIME_US]
        bucket[bucket.index(twin)] = record


def _furthest(records: Sequence[RunRecord], superseded: dict[str, list[int]]) -> list[tuple[int, RunRecord]]:
    """Return records and their first lines, of a run that is written several times the furthest alone."""
    best: dict[Key, RunRecord] = {}
    order: list[tuple[Key, RunRecord]] = []
    for record in records:
        if not record.cumulative:
            order.append((_key(record), record))
            continue
        key = _key(record)
        earlier = best.get(key)
        if earlier is not None and not _touch(record.run, earlier.run):
            named = _renamed(record, f"{record.run.run_id}@{record.run.start_us}")
            key, record = _key(named), named  # noqa: PLW2901  # the same record under its own name
            earlier = best.get(key)
        if earlier is None:
            best[key] = record
            order.append((key, record))
        elif _progress(record) >= _progress(earlier):
            superseded[record.run.run_id].append(earlier.line)
            best[key] = record
        else:
            superseded[record.run.run_id].append(record.line)
    return [(record.line, best.get(key, record)) for key, record in order]


def _superseded(found: Mapping[str, list[int]], file: str) -> list[Finding]:
    return [
        _finding(
            "CL252",
            "info",
            f"run {run_id!r} is written {len(lines) + 1} times, ever further: "
            f"{counted(len(lines), 'superseded row was', 'superseded rows were')} dropped",
            file,
            line=lines[0],
        )
        for run_id, lines in found.items()
    ]


def _merged(key: Key, others: Sequence[RunRecord], file: str) -> Finding:
    named = ", ".join(repr(o.run.run_id) for o in others[:8]) + (", ..." if len(others) > 8 else "")
    text = (
        f"{counted(len(others), 'record')} of the whole machine over the same time as run {key[1]!r} "
        f"count once with it: {named}"
    )
    mend = "let one rank measure, or track processes"
    return _finding("CL251", "warning", text, file, mend, others[0].line)


def _touch(one: Run, other: Run) -> bool:
    """Whether two records can be of one run: their times meet, or one has none."""
    if None in (one.start_us, one.end_us, other.start_us, other.end_us):
        return True
    a0, a1, b0, b1 = (t or 0 for t in (one.start_us, one.end_us, other.start_us, other.end_us))
    return a0 <= b1 + SAME_TIME_US and b0 <= a1 + SAME_TIME_US


def _same_time(one: Run, other: Run) -> bool:
    if None in (one.start_us, one.end_us, other.start_us, other.end_us):
        return False
    starts = abs((one.start_us or 0) - (other.start_us or 0))
    return starts <= SAME_TIME_US and abs((one.end_us or 0) - (other.end_us or 0)) <= SAME_TIME_US


def _machine_of(run: Run) -> str | None:
    """Return the machine whose whole energy a run in the ledger is, as its importer named it."""
    return (run.host_id or run.hardware) if run.tags.get("tracking_mode") == "machine" else None


def _progress(record: RunRecord) -> tuple[float, ...]:
    energy = stated_j(record)
    return (float(energy) if energy is not None else 0.0, record.run.duration_s or 0.0)


def _renamed(record: RunRecord, name: str, *, supersedes: Run | None = None) -> RunRecord:
    run = msgspec.structs.replace(record.run, run_id=name)
    if supersedes is not None:
        study = supersedes.study or ""
        run = msgspec.structs.replace(run, supersedes=supersedes.run_id, supersedes_study=study)
    return msgspec.structs.replace(record, run=run)


def _key(record: RunRecord) -> Key:
    return record.run.study, record.run.run_id


def _same(run: Run, earlier: Run) -> bool:
    """Whether a stored run says the same, but for what the command line and a map put on it."""
    zone = earlier.zone if run.zone is not None else None
    plain = msgspec.structs.replace(earlier, tags={}, site=None, zone=zone)
    return plain.says_the_same(msgspec.structs.replace(run, tags={}, site=None))


def _overlong(run: Run, file: str) -> list[Finding]:
    if not stands_in_one_hour(run):
        return []
    text = (
        f"run {run.run_id!r} takes more than {MOST_HOURS // 24} days: "
        "its energy stands in the hour of its start"
    )
    line = run.origin.source_line if run.origin else None
    return [_finding("CL216", "warning", text, file, "check the unit of its duration and times", line)]


def _finding(
    code: str, severity: Severity, text: str, file: str, mend: str | None = None, line: int | None = None
) -> Finding:
    return Finding(code=code, severity=severity, message=text, file=file, line=line or None, mend=mend)


def _correct_it(run_id: str) -> str:
    """Return how a row that differs from a run of its id comes into the ledger."""
    return (
        f"to correct that run: carbonlens runs supersede {run_id} --by energy_j=... (or what differs);"
        " another run needs a run_id of its own"
    )
