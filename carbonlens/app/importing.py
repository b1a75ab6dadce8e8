"""Use case: read other tools' files into the ledger, each content once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.app.importing_again import (
    Again,
    Before,
    is_by,
    kept_of,
    same_before,
    table_before,
    trace_before,
)
from carbonlens.app.importing_charges import ChargeKeeper
from carbonlens.app.importing_kept import reason_first
from carbonlens.app.importing_moved import Anew, Moved
from carbonlens.app.importing_overlaps import Apart, apart, without
from carbonlens.app.importing_places import Places
from carbonlens.app.importing_placing import Placing
from carbonlens.app.importing_readings import NAME as READINGS_FORMAT
from carbonlens.app.importing_readings import ReadingKeeper, claims_readings
from carbonlens.app.importing_rest import leave_out, rest, rest_in, say_repaired
from carbonlens.app.importing_results import file_among, finding_on, status_of
from carbonlens.app.importing_runs import RunKeeper
from carbonlens.app.importing_told import options_of, said_of
from carbonlens.app.importing_totals import FileResult, FileStatus, ImportResult, Sums, Totals
from carbonlens.app.importing_twins import Twin, named, of_host, twin_of
from carbonlens.app.importing_versions import Marks
from carbonlens.app.importing_walk import files_of
from carbonlens.domain.charge import Charge
from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.identity import sha256_hex
from carbonlens.domain.import_map import TableRule
from carbonlens.errors import InputFileError
from carbonlens.importers.claiming import Claim, claims, importers
from carbonlens.importers.contract import Group, Importer
from carbonlens.importers.harvest import Harvest, group_sha256, harvest
from carbonlens.importers.mapped_table import IMPORTER as MAPPED_TABLE
from carbonlens.importers.records import instrument_of, label_of
from carbonlens.importers.sources import Source, sources_of
from carbonlens.ledger.opening import open_ledger
from carbonlens.ledger.parquet import one_engine
from carbonlens.ledger.store import Ledger

__all__ = ["FileResult", "ImportResult", "Placing", "Totals", "import_files"]

_MAKE_READABLE: Final = (
    "docs/importers.md lists them; name the columns of a table of your own by --map, or make it a "
    "run table: run_id, study, energy_j, units, and step or on"
)


def import_files(
    paths: Sequence[Path],
    *,
    ledger: str | Path | None = None,
    tags: Mapping[str, str] | None = None,
    site: str | None = None,
    placing: Placing | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ImportResult:
    """Import files and folders.

    Args:
        paths: Files, and folders to walk.
        ledger: The ledger's folder or address; found as the command line finds it when ``None``.
        tags: Tags to put on every run.
        site: Site of the runs that state none.
        placing: The same and more; ``tags`` and ``site`` go before it.
        progress: Called with (files done, files in all).

    Raises:
        UnwritableError: If the ledger cannot be written; of a folder before any file is read.
        RecordError: If an address cannot be read.
        MissingExtraError: If an address needs a package that is not installed.
        UsageError: If there is no such time zone.
    """
    said = placing or Placing()
    told = msgspec.structs.replace(said, tags={**said.tags, **(tags or {})}, site=site or said.site)
    # Each batch is written by DuckDB, which takes longer to start than to write a run.
    with one_engine(), open_ledger(ledger) as store:
        store.ensure_writable()
        session = _Session(store, told)
        results = session.run(list(files_of(paths)), progress or _silent)
        return ImportResult(totals=session.totals(), files=tuple(results), ledger=store.shown)


class _Session:
    """Knows what the ledger holds already, and sums what is new."""

    def __init__(self, store: Ledger, placing: Placing) -> None:
        self.store = store
        self.placing = placing
        self.readers = importers()
        self._runs = RunKeeper(store)
        self._places = Places(placing.map, dict(placing.tags), placing.site, placing.in_study)
        self._charges = ChargeKeeper(store, placing.tags, placing.site)
        self._readings = ReadingKeeper(store, placing.site)
        self._seen: set[tuple[str, str]] = set()
        self._named: dict[Path, bool] = {}
        self._rows = self._rejected = 0
        self._moved = Moved(self._runs)
        self._marks = Marks(tags=placing.tags, site=placing.site, **placing.in_study.told)
        self._now_us = self._runs.now_us

    def run(self, files: list[tuple[Path, bool]], progress: Callable[[int, int], None]) -> list[FileResult]:
        """Import files, and return what became of each, in their order."""
        self._named = dict(reversed(files))
        found: dict[str, FileResult] = {}
        order = list(dict.fromkeys(path for path, _ in files))
        sources = [s for path in order for s in self._sources(path, found)]
        mapped = [s for s in sources if self._table_of(s) is not None]
        claimed, left = claims([s for s in sources if self._table_of(s) is None], self.readers)
        claimed += [Claim(MAPPED_TABLE, Group((s,))) for s in mapped]
        # What gets other times makes room for what has grown.
        claimed.sort(key=lambda c: not self._may_move(c))
        done, whole = len(found), len(sources) + len(found)
        for claim in claimed:
            progress(done, whole)
            for result in self._take(claim):
                found[result.path] = result
            done += len(claim.group.sources)
        for source in left:
            progress(done, whole)
            found[source.shown] = self._take_unclaimed(source)
            done += 1
        progress(whole, whole)
        for said in self._moved.doubled():
            file = found[said.file or ""]
            found[file.path] = msgspec.structs.replace(file, findings=(*file.findings, said))
        place = {Source(path).shown: i for i, path in enumerate(order)}
        return sorted(found.values(), key=lambda r: (place[file_among(r.path, place)], r.path))

    def _sources(self, path: Path, found: dict[str, FileResult]) -> list[Source]:
        """Return what a file holds to be read; what holds nothing is refused at once."""
        if path.exists() and not path.is_file():
            # A pipe can be read only once, and a source must be readable again.
            text, mend = "is no regular file", "save it to a file first"
            if path.is_dir():
                text, mend = "is a folder that cannot be opened", "check its rights"
            found[Source(path).shown] = self._refused(Source(path), text, mend)
            return []
        readable = []
        for source in sources_of(path):
            if source.fault is not None:
                found[source.shown] = self._refused(source, *source.fault)
            else:
                readable.append(source)
        return readable

    def _may_move(self, claim: Claim) -> bool:
        """Whether a trace is in the ledger, and something is said now that may give it other times."""
        main = claim.group.main
        if claim.importer.kind != "trace" or not said_of(self.placing, str(main.path)):
            return False
        try:
            return bool(self._runs.of_content(main.sha256))
        except InputFileError:
            return False

    def _take(self, claim: Claim) -> list[FileResult]:
        reader, group = claim.importer, claim.group
        said = said_of(self.placing, str(group.main.path))
        try:
            twin = self._twin(reader, group)
            before = self._before(reader, group, twin)
            if not twin.counts and not self._says_more(group, before, said):
                return [self._duplicate(s, reader.name, twin.finding) for s in group.sources]
            table = self._table_of(group.main)
            anew = Anew(claim, before.told, said, table)
            lacks = before.lacks(said, self._marks)
            began = anew.begin_of(before, twin.host, self._given(said) if lacks else ())
            if began is not None:
                return [self._duplicate(s, reader.name, began) for s in group.sources]
            before = anew.checked(before, self._runs.cut_beside)
            options = options_of({**before.told, **said}, table)
            options = msgspec.structs.replace(options, kept_us=rest_in(before.told))
            harvested = harvest(reader, group, options)
            say_repaired(harvested, anew.met)
        except InputFileError as error:
            return [self._refused(s, error.what, error.mend, reader.name) for s in group.sources]
        if twin.counts and twin.host and twin.finding and any(r.run.host_id for r in harvested.singles):
            # The content names its hosts itself: whatever the file is called, it is a copy.
            return [self._duplicate(s, reader.name) for s in group.sources]
        if twin.host is not None:
            harvested.singles = [of_host(r, twin.host) for r in harvested.singles]
        sha = twin.sha256
        beside: frozenset[str] = frozenset()
        if twin.counts and reader.kind == "trace":
            found = self._apart(claim, before, harvested)
            less = rest(
                claim, before, options, twin.host, found, harvested, partial(self._apart, claim, before)
            )
            if less is not None:
                before, harvested, found, beside = less.before, less.harvested, less.apart, less.beside
            if found.findings and not found.records:
                status: FileStatus = "refused" if found.refused else "duplicate"
                # What it is refused for goes first.
                said_now = (*found.findings, *harvested.findings)
                whole = self._result(group.main, reader.name, status, Totals(), said_now)
                return [whole, *self._parts(group, whole)]
            harvested.singles = found.records
            harvested.findings += found.findings
        if twin.counts:
            harvested.findings += [f for f in (twin.finding, before.finding) if f]
        else:
            # A batch of the content is there; what is told of it now makes another.
            sha = sha256_hex(f"{sha}\n{self._runs.now_us}".encode())
        self._seen.add((sha, label_of(reader)))
        again = self._again(claim, twin, before, said, beside)
        if not twin.counts and reader.kind == "trace":
            ids = {run.run_id for s in group.sources for run in self._runs.of_content(s.sha256)}
            leave_out(harvested, ids, again, partial(self._apart, claim, before))
        results = self._store(group, reader, sha, harvested, again)
        self._moved.note(claim, before)
        return results if twin.counts else [self._told_in_vain(r, said) for r in results]

    def _apart(self, claim: Claim, before: Before, harvested: Harvest) -> Apart:
        """Return what of a trace counts beside others of the same devices and time."""
        contents = {s.sha256 for s in claim.group.sources}
        runs = [record.run for record in harvested.singles]
        held = [
            without(self._runs.beside(claim.importer.name, run), contents, before.held, run.run_id)
            for run in runs
        ]
        return apart(harvested.singles, claim.group.main, held, self._runs.samples_of)

    def _before(self, reader: Importer, group: Group, twin: Twin) -> Before:
        """Return what was imported before of a group's content, or of its begin."""
        main = group.main
        if not twin.counts:
            of = [r for s in group.sources for r in self._runs.of_content(s.sha256)]
            runs = self._runs.latest(r for r in of if is_by(r, reader.name))
            is_trace = reader.kind == "trace" and len(group.sources) == 1
            return same_before(runs, self._runs.latest(twin.same), main, is_trace=is_trace)
        if len(group.sources) == 1 and reader.kind == "trace":
            host = self.placing.map.place_of(str(main.path), None).host or self.placing.host
            return trace_before(main, host, self._runs.near(reader.name, main.hashes))
        if len(group.sources) == 1 and reader.kind == "runs":
            return table_before(main, self._runs.tables(reader.name))
        return Before()

    def _says_more(self, group: Group, before: Before, said: Mapping[str, str]) -> bool:
        """Whether something is said that the runs of a content do not bear, or rules that must be tried."""
        if self.placing.map.place or before.lacks(said, self._marks):
            return bool(before.runs) or any(self._charges.holds_content(s.sha256) for s in group.sources)
        return False

    def _again(
        self, claim: Claim, twin: Twin, before: Before, said: Mapping[str, str], beside: frozenset[str]
    ) -> Again:
        group, is_trace = claim.group, claim.importer.kind == "trace"
        told = {**before.told, **said}
        return Again(
            held=before.held,
            grown=before.grown,
            contents=frozenset() if twin.counts else frozenset(s.sha256 for s in group.sources),
            imported=kept_of(group.main, told, is_trace=is_trace and len(group.sources) == 1),
            beside=beside,
            said=said,
            marks=self._places.marks_of(str(group.main.path)),
        )

    def _twin(self, reader: Importer, group: Group) -> Twin:
        """Return whether a group is to be read, beside what was imported of the same content."""
        sha, label = group_sha256(group), label_of(reader)
        is_held = (sha, label) in self._seen or self._holds(sha, label)
        if reader.kind != "trace" or len(group.sources) > 1:
            return Twin(counts=not is_held, sha256=sha)
        host = self.placing.map.place_of(str(group.main.path), None).host or self.placing.host
        held = self._runs.of_content(sha)
        if not (is_held or host):
            # Its batch may be named for the host that was told then; another version reads it anew.
            held = [run for run in held if run.origin and run.origin.instrument == instrument_of(reader)]
        if not held:
            return Twin(counts=False, sha256=sha) if is_held else named(sha, host)
        twin = twin_of(group.main, host, held)
        if twin.counts and ((twin.sha256, label) in self._seen or self._holds(twin.sha256, label)):
            return Twin(counts=False, sha256=sha)
        return twin

    def _table_of(self, source: Source) -> TableRule | None:
        """Return how the user says that a table is read, which goes before all formats."""
        return next((t for t in self.placing.map.table if t.matches(str(source.path))), None)

    def _store(
        self, group: Group, reader: Importer, sha: str, got: Harvest, again: Again
    ) -> list[FileResult]:
        main, label = group.main, label_of(reader)
        kept = self._runs.keep(got.singles, main.shown, self._places.of(str(main.path)), got.alike, again)
        findings = [*got.findings, *kept.findings]
        is_fresh = bool(kept.fresh or kept.alike)
        if is_fresh:
            runs, alike = [record.run for record in kept.fresh], [told.runs for told in kept.alike]
            self.store.add_batch(runs, alike, source_sha256=sha, importer=label)
        self._now_us += 1
        charges: list[Charge] = []
        if got.charges:
            charges, said = self._charges.keep(
                got.charges, main.shown, sha256=sha, importer=label, now_us=self._now_us
            )
            findings += said
        sums = Sums()
        for record in kept.fresh:
            sums.add(record)
        sums.include(kept.alike_sums)
        sums.rows, sums.rejected = got.rows, got.rejected + kept.rejected
        sums.known, sums.replaced = kept.known, kept.replaced
        self._runs.sums.known += kept.known
        self._runs.sums.replaced += kept.replaced
        self._rows += sums.rows
        self._rejected += sums.rejected
        if not (is_fresh or charges or got.profiles or findings):
            findings.append(finding_on("CL211", "warning", "holds no runs", main, "check the file"))
        findings += [msgspec.structs.replace(f, file=main.shown) for f in sums.costs.findings]
        status = status_of(bool(is_fresh or charges or got.profiles), findings)
        if status == "refused":
            findings = reason_first(findings)
        totals = sums.totals(charges, got.profiles)
        whole = self._result(main, reader.name, status, totals, tuple(findings))
        if got.profiles:
            whole = msgspec.structs.replace(whole, operators=got.profiles[0].operators)
        return [whole, *self._parts(group, whole)]

    def _parts(self, group: Group, whole: FileResult) -> list[FileResult]:
        """Return what became of the further files of a set."""
        return [
            self._result(s, whole.format, whole.status, Totals(), (), part_of=whole.path)
            for s in group.sources[1:]
        ]

    def _take_unclaimed(self, source: Source) -> FileResult:
        if source.member is None and claims_readings(source.start):
            return self._take_readings(source)
        known = counted(len(self.readers) + 1, "format")
        return self._refused(source, f"is of no known format ({known} are read)", _MAKE_READABLE)

    def _take_readings(self, source: Source) -> FileResult:
        try:
            sha = source.sha256
            if self._readings.holds_file(sha) and self.placing.site is None:
                return self._duplicate(source, READINGS_FORMAT)
            self._now_us += 1
            fresh, rows, findings = self._readings.keep(source.path, sha256=sha, now_us=self._now_us)
        except InputFileError as error:
            return self._refused(source, error.what, error.mend, READINGS_FORMAT)
        self._rows += rows
        totals = Totals(rows=rows, readings=len(fresh))
        return self._result(source, READINGS_FORMAT, status_of(bool(fresh), findings), totals, findings)

    def _holds(self, sha: str, importer: str) -> bool:
        return self.store.batch_file(sha, importer).exists() or self._charges.holds_file(sha, importer)

    def _duplicate(self, source: Source, name: str, said: Finding | None = None) -> FileResult:
        text = "the same content was imported before; counted once"
        found = said or finding_on("CL210", "info", text, source)
        return self._result(source, name, "duplicate", Totals(), (found,))

    def _told_in_vain(self, result: FileResult, said: Mapping[str, str]) -> FileResult:
        """Return what became of content that was imported before: say so where nothing said changes it."""
        if result.status != "duplicate" or any(f.code in {"CL236", "CL293"} for f in result.findings):
            return result
        options = ", ".join(self._given(said))
        text = f"the same content was imported before; counted once, and {options} changes nothing in it"
        found = Finding(code="CL210", severity="info", message=text, file=result.path)
        return msgspec.structs.replace(result, findings=(found,))

    def _given(self, said: Mapping[str, str]) -> list[str]:
        """Return the options of which something stands on a run or a source."""
        placing = self.placing
        is_given = {"tag": placing.tags, "site": placing.site, "map": placing.map.place}
        given = [*(name for name, is_told in is_given.items() if is_told), *placing.in_study.told]
        return [f"--{name}" for name in (*(n for n in said if " " not in n), *given)]

    def _refused(self, source: Source, text: str, mend: str, name: str | None = None) -> FileResult:
        said = (finding_on("CL214", "error", text, source, mend),)
        return self._result(source, name, "refused", Totals(), said)

    def _result(
        self,
        source: Source,
        name: str | None,
        status: FileStatus,
        totals: Totals,
        findings: tuple[Finding, ...],
        *,
        part_of: str | None = None,
    ) -> FileResult:
        return FileResult(
            path=source.shown,
            format=name,
            status=status,
            totals=totals,
            findings=findings,
            named=self._named.get(source.path, True),
            part_of=part_of,
        )

    def totals(self) -> Totals:
        """Return the sums over all that is new."""
        self._runs.hold_children()
        self._runs.sums.rows, self._runs.sums.rejected = self._rows, self._rejected
        found = self._runs.sums.totals(self._charges.new, whole=True)
        return msgspec.structs.replace(found, readings=len(self._readings.new))


def _silent(done: int, whole: int) -> None:
    """Show no progress."""
