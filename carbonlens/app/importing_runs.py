"""The runs that an import keeps: each once, whichever files, copies and ranks tell of it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Final

import msgspec

from carbonlens.app.importing_again import Again, Contents
from carbonlens.app.importing_alike import AlikeKept, Before, Key, each_in_order, parted
from carbonlens.app.importing_further import (
    SAME_TIME_US,
    furthest,
    key_of,
    progress,
    renamed,
    superseded_rows,
    touch,
)
from carbonlens.app.importing_kept import Kept, finding_at
from carbonlens.app.importing_names import Names
from carbonlens.app.importing_overlaps import Spans
from carbonlens.app.importing_rest import may_be_cut_beside
from carbonlens.app.importing_studies import in_study, is_same_source
from carbonlens.app.importing_told import zones_in
from carbonlens.app.importing_totals import Sums, stated_j, sums_of
from carbonlens.app.importing_versions import (
    Marks,
    Versions,
    differs,
    differs_beyond_marks,
    differs_beyond_times,
    remade,
)
from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.limits import MOST_HOURS, misfit, stands_in_one_hour
from carbonlens.domain.run import Run
from carbonlens.importers.contract import AlikeRecords, Measured, RunRecord
from carbonlens.importers.source_hashes import Hashes
from carbonlens.ledger.store import Ledger

SURE_S: Final = 3.0
"""Runs shorter than this may have followed each other, by times that are whole seconds."""

NOTHING_BEFORE: Final = Again()

Mark = Callable[[RunRecord], tuple[Run, list[Finding]]]


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
        self._contents = Contents()
        self._spans = Spans()
        self._versions = Versions(self._run)
        self._machines: dict[tuple[str, int], list[RunRecord]] = defaultdict(list)
        self._alike = AlikeKept(SAME_TIME_US)
        self._names = Names()
        self.now_us = time.time_ns() // 1000
        for run in store.view().runs:
            record = RunRecord(run=run, machine=_machine_of(run))
            self._known[(run.study, run.run_id)] = record
            self._names.add(run.study, (run.run_id,))
            self._place(record)
            self._versions.add(run)
            self._contents.add(run)
            self._spans.add(run)

    def keep(
        self,
        records: Sequence[RunRecord],
        file: str,
        mark: Mark,
        alike: Sequence[AlikeRecords] = (),
        again: Again = NOTHING_BEFORE,
    ) -> Kept:
        """Return what is new of one source.

        Args:
            records: Its records, in order.
            file: Its name, for Findings.
            mark: Puts tags, site and zone on a run, and says what it found on the way.
            alike: Further records, as columns.
            again: What the import is beside earlier ones.
        """
        self.now_us += 1
        kept = Kept(again)
        before = Before(self._names.among, self._has_start, SAME_TIME_US)
        records, alike = parted(*in_study(records, alike, again.marks), before)
        slots: dict[Key, int] = {}
        fresh: dict[Key, RunRecord] = {}
        merged: dict[Key, list[RunRecord]] = defaultdict(list)
        superseded: dict[str, list[int]] = defaultdict(list)
        for slot, record in furthest(records, superseded):
            placed = self._placed(record, file, kept)
            if placed is None:
                continue
            twin = self._twin(placed, fresh)
            if twin is not None:
                self._merge(placed, twin, fresh, merged)
                continue
            fresh[key_of(placed)] = placed
            slots[key_of(placed)] = slot
            self._place(placed)
        kept.say_more_known(file)
        kept.findings += superseded_rows(superseded, file)
        kept.findings += [_merged(key, others, file) for key, others in merged.items()]
        in_order = ((slots.get(key, record.line), record) for key, record in fresh.items())
        for told in each_in_order(in_order, alike) if alike else fresh.values():
            if isinstance(told, AlikeRecords):
                self._keep_alike(told, mark, kept)
                continue
            record = told
            run, said = self._dated(mark, record, kept)
            done = msgspec.structs.replace(record, run=run)
            self._versions.add(run)
            self._take_out(run, kept)
            self._new.add(key_of(record))
            self._names.add(run.study, (run.run_id,))
            kept.fresh.append(done)
            kept.findings += [*said, *_overlong(run, file)]
            self._known[key_of(record)] = done
            self._contents.add(run)
            self._spans.add(run, record.measured)
            self.sums.add(done)
            if run.parent_run_id is not None:
                self._children.append(done)
            kept.note_aside(again.marks(record).aside)
        kept.say_at_end(file)
        return kept

    def latest(self, runs: Iterable[Run]) -> tuple[Run, ...]:
        """Return the versions of runs that count, each once."""
        every = map(self._versions.latest, runs)
        return tuple({(run.study, run.run_id): run for run in every}.values())

    def of_content(self, sha256: str) -> list[Run]:
        """Return the runs that a source of this content gave, by this import or an earlier one."""
        return self._contents.of(sha256)

    def near(self, instrument: str, hashes: Hashes) -> list[Run]:
        """Return the runs of an importer's traces that count and may begin as a content does.

        Args:
            instrument: Name of the importer, of any version.
            hashes: Of the content.
        """
        return [run for run in self._contents.near(instrument, hashes) if self._versions.counts(run)]

    def beside(self, instrument: str, run: Run) -> list[Run]:
        """Return the runs of an importer's traces that count and share a device and time with a new one.

        Args:
            instrument: Name of the importer, of any version.
            run: The new one.
        """
        return [held for held in self._spans.near(instrument, run) if self._versions.counts(held)]

    def cut_beside(self, run: Run) -> list[Run]:
        """Return the runs that count and of which a part is left out, for a version of a run tells of it."""
        versions = self._versions.of(run)
        cut = [c for v in versions for c in self._contents.cut_beside(v.run_id)]
        cut += [c for c in self._contents.cut_of_old() if any(may_be_cut_beside(c, v) for v in versions)]
        return [c for c in cut if self._versions.counts(c)]

    def samples_of(self, run: Run) -> Measured | None:
        """Return what a run's samples hold, where this import read them."""
        return self._spans.samples_of(run)

    def tables(self, instrument: str) -> list[Run]:
        """Return a run of each table of an importer of which something was told."""
        return self._contents.tables(instrument)

    def _take_out(self, run: Run, kept: Kept) -> None:
        """Take a run out of the sums whose place another one takes."""
        if run.supersedes is None:
            return
        kept.replaced += 1
        key = (run.supersedes_study or None, run.supersedes)
        earlier = self._find(key)
        if earlier is not None and earlier.run.units is not None and run.units is None:
            kept.note_uncounted()
        if key in self._new:
            self.sums.drop(self._known[key])

    def _dated(self, mark: Mark, record: RunRecord, kept: Kept) -> tuple[Run, list[Finding]]:
        run, said = mark(record)
        if run.origin is not None:
            dated = msgspec.structs.replace(
                run.origin, imported_us=self.now_us, imported_as=kept.again.imported
            )
            run = msgspec.structs.replace(run, origin=dated)
        return run, said

    def _keep_alike(self, told: AlikeRecords, mark: Mark, kept: Kept) -> None:
        """Keep runs that meet no other: what is put on the first of them is put on all."""
        first = told.record(0)
        run, said = self._dated(mark, first, kept)
        runs = msgspec.structs.replace(told.runs, pattern=run)
        done = msgspec.structs.replace(told, pattern=msgspec.structs.replace(first, run=run), runs=runs)
        kept.findings += said
        kept.alike.append(done)
        kept.note_aside(kept.again.marks(first).aside, len(done))
        self._names.add(run.study, runs.run_ids)
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

    def _run(self, key: Key) -> Run | None:
        found = self._find(key)
        return None if found is None else found.run

    def _is_known(self, key: Key) -> bool:
        return key in self._known or key in self._alike.keys

    def _elsewhere(self, record: RunRecord, marks: Marks) -> RunRecord | None:
        """Return the record of a run whose source names no study, under the study that was told of it."""
        run = record.run
        if run.study != marks.study:
            return None
        for study in self._names.studies(run.run_id):
            found = self._find((study, run.run_id)) if study != run.study else None
            if found is not None and is_same_source(run, found.run, marks, is_one=record.cumulative):
                return found
        return None

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
                finding_at("CL217", "error", text, file, "check the figure and its unit", line)
            )
            kept.rejected += 1
            return None
        held = kept.again.partner(run)
        earlier = self._find(key_of(record)) if held is None else RunRecord(run=held)
        earlier = earlier or self._elsewhere(record, kept.again.marks(record))
        if earlier is None:
            return record
        return self._version(record, self._versions.of(earlier.run), file, kept)

    def _version(self, record: RunRecord, versions: Sequence[Run], file: str, kept: Kept) -> RunRecord | None:
        """Return a record to write beside earlier versions of its run; ``None`` where it is none."""
        run, line, again, last = record.run, record.line, kept.again, versions[-1]
        marks = again.marks(record)
        made = remade(run, marks, versions, grown=again.grown)
        is_told = again.partner(run) is not None or any(again.tells_of(v) for v in versions)
        is_same = not differs_beyond_marks(made, last, marks) and (is_told or _in_zone(run, versions))
        is_known = is_same and not differs(made, last) and again.is_held_by(last)
        if not is_told and not is_same and not differs_beyond_times(made, last):
            # The same row, read in another zone: what is said now counts, not what is left unsaid.
            is_told = bool(zones_in(again.said))
            is_known = not is_told
        if is_known:
            kept.say_known(run, file, line)
            return None
        if is_told or is_same:
            if not again.grown:
                kept.say_known(run, file, line, is_new=True)
            name = run.run_id
            if self._is_known((made.study, name)):
                name = f"{versions[0].run_id}~{line or 1}.{self.now_us % 1_000_000}"
            return renamed(msgspec.structs.replace(record, run=made), name, supersedes=last)
        if not record.cumulative:
            text = (
                f"run {run.run_id!r} of study {run.study!r} is in the ledger with other content; not imported"
            )
            kept.findings.append(finding_at("CL213", "error", text, file, _correct_it(run.run_id), line))
            kept.rejected += 1
            return None
        return self._beside(record, versions, file, kept)

    def _beside(self, record: RunRecord, versions: Sequence[Run], file: str, kept: Kept) -> RunRecord | None:
        """Return a record of a run that was written before, if it is further or another run."""
        run, line, last = record.run, record.line, versions[-1]
        if not touch(run, last):
            name = f"{run.run_id}@{run.start_us}"
            if self._is_known((run.study, name)):
                return None
            text = f"run_id {run.run_id!r} stands for another run at another time too; kept as {name!r}"
            kept.findings.append(finding_at("CL252", "warning", text, file, line=line))
            return renamed(record, name)
        earlier = self._known.get((last.study, last.run_id)) or RunRecord(run=last)
        if progress(record) <= progress(earlier):
            text = f"run {run.run_id!r} is in the ledger, further on; this record of it is superseded"
            kept.findings.append(finding_at("CL252", "info", text, file, line=line))
            return None
        text = f"run {run.run_id!r} is further on here than in the ledger; it replaces that record"
        kept.findings.append(finding_at("CL252", "info", text, file, line=line))
        name = f"{run.run_id}~{line or 1}.{self.now_us % 1_000_000}"
        made = remade(run, kept.again.marks(record), versions, grown=True)
        return renamed(msgspec.structs.replace(record, run=made), name, supersedes=last)

    def _place(self, record: RunRecord) -> None:
        if record.machine is not None and record.run.start_us is not None:
            self._machines[record.machine, record.run.start_us // SAME_TIME_US].append(record)

    def _twin(self, record: RunRecord, fresh: Mapping[Key, RunRecord]) -> RunRecord | None:
        """Return a record of the same machine over the same time; of a new version another fresh one."""
        run = record.run
        if record.machine is None or run.start_us is None or run.end_us is None:
            return None
        if run.duration_s is None or run.duration_s < SURE_S:
            return None
        bucket = run.start_us // SAME_TIME_US
        for near in (bucket - 1, bucket, bucket + 1):
            placed = self._machines.get((record.machine, near), [])
            for other in chain(placed, self._alike.starting(record.machine, near)):
                is_version = run.supersedes is not None
                if is_version and (key_of(other) not in fresh or other.run.supersedes is not None):
                    continue
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
        """Count one of two: a new version, else the one with more energy; unless one is written already."""
        key = key_of(twin)
        is_less = (stated_j(record) or Decimal(0)) <= (stated_j(twin) or Decimal(0))
        is_less = record.run.supersedes is None and (is_less or twin.run.supersedes is not None)
        if key not in fresh or is_less:
            merged[key].append(record)
            return
        del fresh[key]
        fresh[key_of(record)] = record
        merged[key_of(record)] = [*merged.pop(key, []), twin]
        bucket = self._machines[record.machine or "", (twin.run.start_us or 0) // SAME_TIME_US]
        bucket[bucket.index(twin)] = record


def _merged(key: Key, others: Sequence[RunRecord], file: str) -> Finding:
    named = ", ".join(repr(o.run.run_id) for o in others[:8]) + (", ..." if len(others) > 8 else "")
    text = (
        f"{counted(len(others), 'record')} of the whole machine over the same time as run {key[1]!r} "
        f"count once with it: {named}"
    )
    mend = "let one rank measure, or track processes"
    return finding_at("CL251", "warning", text, file, mend, others[0].line)


def _same_time(one: Run, other: Run) -> bool:
    if None in (one.start_us, one.end_us, other.start_us, other.end_us):
        return False
    starts = abs((one.start_us or 0) - (other.start_us or 0))
    return starts <= SAME_TIME_US and abs((one.end_us or 0) - (other.end_us or 0)) <= SAME_TIME_US


def _machine_of(run: Run) -> str | None:
    """Return the machine whose whole energy a run in the ledger is, as its importer named it."""
    return (run.host_id or run.hardware) if run.tags.get("tracking_mode") == "machine" else None


def _in_zone(run: Run, versions: Sequence[Run]) -> bool:
    """Whether the zone that a row states, if any, is one that its run had."""
    return run.zone is None or run.zone in {version.zone for version in versions}


def _overlong(run: Run, file: str) -> list[Finding]:
    if not stands_in_one_hour(run):
        return []
    text = (
        f"run {run.run_id!r} takes more than {MOST_HOURS // 24} days: "
        "its energy stands in the hour of its start"
    )
    line = run.origin.source_line if run.origin else None
    return [finding_at("CL216", "warning", text, file, "check the unit of its duration and times", line)]


def _correct_it(run_id: str) -> str:
    """Return how a row that differs from a run of its id comes into the ledger."""
    return (
        f"to correct that run: carbonlens runs supersede {run_id} --by energy_j=... (or what differs);"
        " another run needs a run_id of its own"
    )
