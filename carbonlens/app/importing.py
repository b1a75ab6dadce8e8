"""Use case: read other tools' files into the ledger, each content once."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Literal

import msgspec

from carbonlens.accounting.cost import StatedCosts, stated_costs
from carbonlens.app.importing_charges import ChargeKeeper, CostTotals, cost_totals
from carbonlens.app.importing_readings import NAME as READINGS_FORMAT
from carbonlens.app.importing_readings import ReadingKeeper, claims_readings
from carbonlens.domain.charge import Charge
from carbonlens.domain.finding import Finding
from carbonlens.domain.limits import MOST_HOURS, misfit, stands_in_one_hour
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.domain.run import Run
from carbonlens.domain.units import J_PER_KWH
from carbonlens.errors import InputFileError
from carbonlens.importers.claiming import HEAD_BYTES, Extract, Importer, claim, importers
from carbonlens.ledger.opening import open_ledger
from carbonlens.ledger.store import Ledger

_RUN_TABLE = "make it a run table: columns run_id, study, energy_j, units, and step or on"

FileStatus = Literal["imported", "duplicate", "refused"]


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over what was imported; ``None`` where a part is unknown.

    Attributes:
        energy_kwh: Energy as the sources state it, at their own boundary.
        emissions_reported_kg: The sources' own emissions, kept as evidence.
        charges: Lines of bills.
        readings: Spans that meters counted.
        cost: Of the bills, by currency; ``None`` without a bill.
        cost_stated: What runs themselves say they cost, by currency: of those that say it.
    """

    runs: int = 0
    rows: int = 0
    rows_rejected: int = 0
    energy_kwh: float | None = None
    emissions_reported_kg: float | None = None
    duration_s: float | None = None
    charges: int = 0
    readings: int = 0
    cost: dict[str, CostTotals] | None = None
    cost_stated: dict[str, Decimal] | None = None


class FileResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one file."""

    path: str
    format: str | None
    status: FileStatus
    totals: Totals
    findings: tuple[Finding, ...] = ()
    named: bool = True


class ImportResult(msgspec.Struct, frozen=True, kw_only=True):
    """What an import did."""

    totals: Totals
    files: tuple[FileResult, ...]
    ledger: str

    @property
    def refused(self) -> tuple[FileResult, ...]:
        """Explicitly named files that could not be read."""
        return tuple(f for f in self.files if f.status == "refused" and f.named)


def import_files(
    paths: Sequence[Path],
    *,
    ledger: str | Path | None = None,
    tags: dict[str, str] | None = None,
    site: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ImportResult:
    """Import files and folders.

    Args:
        paths: Files, and folders to walk.
        ledger: The ledger's folder or address; found as the command line finds it when ``None``.
        tags: Tags to put on every run.
        site: Site of the runs that state none.
        progress: Called with (files done, files in all).

    Raises:
        UnwritableError: If the ledger cannot be written; of a folder before any file is read.
        RecordError: If an address cannot be read.
        MissingExtraError: If an address needs a package that is not installed.
    """
    with open_ledger(ledger) as store:
        store.ensure_writable()
        return _import_into(store, paths, tags or {}, site, progress)


def _import_into(
    store: Ledger,
    paths: Sequence[Path],
    tags: dict[str, str],
    site: str | None,
    progress: Callable[[int, int], None] | None,
) -> ImportResult:
    readers = importers()
    session = _Session(store, tags, site)
    files = list(_walk(paths))
    results: list[FileResult] = []
    for done, (file, named) in enumerate(files):
        if progress is not None:
            progress(done, len(files))
        results.append(session.take(file, named, readers))
    if progress is not None:
        progress(len(files), len(files))
    return ImportResult(totals=session.totals(), files=tuple(results), ledger=store.shown)


class _Session:
    """Knows what the ledger holds already, and sums what is new."""

    def __init__(self, store: Ledger, tags: dict[str, str], site: str | None) -> None:
        self.store = store
        self.tags = tags
        self.site = site
        self.new: list[Run] = []
        self.rows = 0
        self.rejected = 0
        self._known = {(r.study, r.run_id): r for r in store.view().runs}
        self._charges = ChargeKeeper(store, tags, site)
        self._readings = ReadingKeeper(store, site)
        self._now_us = time.time_ns() // 1000

    def take(self, file: Path, named: bool, readers: Sequence[Importer]) -> FileResult:
        if file.exists() and not file.is_file():
            # A pipe can be read only once, and a source must be readable again.
            return _refused(file, named, "is no regular file", "save it to a file first")
        try:
            with file.open("rb") as stream:
                head = stream.read(HEAD_BYTES)
                reader = claim(head, readers)
                metered = reader is None and claims_readings(head)
                stream.seek(0)
                # Only what is claimed is read whole: a folder may hold model weights.
                sha = hashlib.file_digest(stream, "sha256").hexdigest() if reader or metered else ""
        except OSError as error:
            return _refused(file, named, f"cannot be read ({error.strerror or error})", "check the path")
        if metered:
            return self._take_readings(file, named, sha)
        if reader is None:
            known = ", ".join([*(r.name for r in readers), READINGS_FORMAT])
            return _refused(file, named, f"is of no known format (known: {known})", _RUN_TABLE)
        if self._holds(sha, _label(reader)):
            return _duplicate(file, named, reader.name)
        try:
            extract = reader.read(file)
        except InputFileError as error:
            return _refused(file, named, error.what, error.mend, reader.name)
        return self._store(file, named, reader, sha, extract)

    def _store(self, file: Path, named: bool, reader: Importer, sha: str, extract: Extract) -> FileResult:
        clashes = [(run, self._clash(run, file)) for run in extract.runs]
        fresh = [self._marked(run) for run, clash in clashes if clash is None]
        findings = [*extract.findings, *(clash for _, clash in clashes if clash is not None)]
        findings += [f for run in fresh for f in self._overlong(run, file)]
        rejected = extract.rows_rejected + sum(
            c is not None and c.code in {"CL213", "CL217"} for _, c in clashes
        )
        self.rows += extract.rows
        self.rejected += rejected
        self._now_us += 1
        if fresh:
            self.store.add_batch(fresh, source_sha256=sha, importer=_label(reader))
            self.new += fresh
            self._known.update({(r.study, r.run_id): r for r in fresh})
        charges: list[Charge] = []
        if extract.charges:
            charges, said = self._charges.keep(
                extract.charges, file, sha256=sha, importer=_label(reader), now_us=self._now_us
            )
            findings += said
        if not (fresh or charges or findings):
            findings.append(_finding("CL211", "warning", "holds no runs", file, "check the file"))
        totals = totals_of(fresh, extract.rows, rejected, charges)
        findings += [msgspec.structs.replace(f, file=str(file)) for f in _stated(fresh).findings]
        status = _status([*fresh, *charges], findings)
        return _result(file, named, reader.name, status, totals, tuple(findings))

    def _take_readings(self, file: Path, named: bool, sha: str) -> FileResult:
        if self._readings.holds_file(sha):
            return _duplicate(file, named, READINGS_FORMAT)
        self._now_us += 1
        try:
            fresh, rows, findings = self._readings.keep(file, sha256=sha, now_us=self._now_us)
        except InputFileError as error:
            return _refused(file, named, error.what, error.mend, READINGS_FORMAT)
        self.rows += rows
        totals = Totals(rows=rows, readings=len(fresh))
        return _result(file, named, READINGS_FORMAT, _status(fresh, findings), totals, findings)

    def _holds(self, sha: str, importer: str) -> bool:
        return self.store.batch_file(sha, importer).exists() or self._charges.holds_file(sha, importer)

    def _clash(self, run: Run, file: Path) -> Finding | None:
        unfit = misfit(run)
        if unfit is not None:
            line = run.origin.source_line if run.origin else None
            text = f"run {run.run_id!r} is not imported: {unfit}"
            return _finding("CL217", "error", text, file, "check the figure and its unit", line)
        earlier = self._known.get((run.study, run.run_id))
        if earlier is None:
            return None
        line = run.origin.source_line if run.origin else None
        # Tags and site may come from the command line: they make no other run of it.
        if _untagged(earlier).says_the_same(_untagged(run)):
            text = f"run {run.run_id!r} is in the ledger already; counted once"
            return _finding("CL212", "info", text, file, line=line)
        text = f"run {run.run_id!r} of study {run.study!r} is in the ledger with other content; not imported"
        return _finding("CL213", "error", text, file, "give the row a run_id of its own", line)

    def _overlong(self, run: Run, file: Path) -> list[Finding]:
        if not stands_in_one_hour(run):
            return []
        text = (
            f"run {run.run_id!r} takes more than {MOST_HOURS // 24} days: "
            "its energy stands in the hour of its start"
        )
        line = run.origin.source_line if run.origin else None
        return [_finding("CL216", "warning", text, file, "check the unit of its duration and times", line)]

    def _marked(self, run: Run) -> Run:
        origin = run.origin
        if origin is not None:
            origin = msgspec.structs.replace(origin, imported_us=self._now_us)
        tags = {**run.tags, **self.tags}
        return msgspec.structs.replace(run, tags=tags, site=run.site or self.site, origin=origin)

    def totals(self) -> Totals:
        found = totals_of(self.new, self.rows, self.rejected, self._charges.new)
        return msgspec.structs.replace(found, readings=len(self._readings.new))


def _hidden(file: Path, folder: Path) -> bool:
    """Whether the file lies in a hidden folder, such as a ledger or a repository's own."""
    return any(part.startswith(".") for part in file.relative_to(folder).parts)


def _untagged(run: Run) -> Run:
    return msgspec.structs.replace(run, tags={}, site=None)


def _duplicate(file: Path, named: bool, name: str) -> FileResult:
    text = "the same content was imported before; counted once"
    return _result(file, named, name, "duplicate", Totals(), (_finding("CL210", "info", text, file),))


def _status(fresh: Sequence[Run | Charge | MeterReading], findings: Sequence[Finding]) -> FileStatus:
    """Return what became of a file that could be read."""
    if fresh:
        return "imported"
    if any(f.code in {"CL212", "CL236"} for f in findings):
        return "duplicate"
    return "refused" if any(f.severity == "error" for f in findings) else "imported"


def totals_of(runs: Sequence[Run], rows: int, rejected: int, charges: Sequence[Charge] = ()) -> Totals:
    """Sum what runs and bills state; a sum with an unknown part is ``None``."""
    energy = _complete([r.energy[0].energy_j if len(r.energy) == 1 else None for r in runs])
    reported = _complete([r.emissions_reported_kg for r in runs])
    durations = _complete([None if r.duration_s is None else Decimal(repr(r.duration_s)) for r in runs])
    stated = {currency: money.amount for currency, money in _stated(runs).totals.items()}
    return Totals(
        runs=len(runs),
        rows=rows,
        rows_rejected=rejected,
        energy_kwh=None if energy is None else float(energy / J_PER_KWH),
        emissions_reported_kg=None if reported is None else float(reported),
        duration_s=None if durations is None else float(durations),
        charges=len(charges),
        cost=cost_totals(charges) if charges else None,
        cost_stated=stated or None,
    )


def _stated(runs: Sequence[Run]) -> StatedCosts:
    """Return what runs say they cost, each once whatever study has another of its name."""
    return stated_costs({f"{r.study}/{r.run_id}": r.cost for r in runs})


def _label(reader: Importer) -> str:
    return f"{reader.name}-{reader.version}"


def _complete(values: Sequence[Decimal | None]) -> Decimal | None:
    known = [v for v in values if v is not None]
    return sum(known, Decimal(0)) if known and len(known) == len(values) else None


def _walk(paths: Iterable[Path]) -> Iterable[tuple[Path, bool]]:
    for path in paths:
        if path.is_dir():
            yield from ((f, False) for f in sorted(path.rglob("*")) if f.is_file() and not _hidden(f, path))
        else:
            yield path, True


def _refused(file: Path, named: bool, text: str, mend: str, name: str | None = None) -> FileResult:
    return _result(file, named, name, "refused", Totals(), (_finding("CL214", "error", text, file, mend),))


def _result(
    file: Path,
    named: bool,
    name: str | None,
    status: FileStatus,
    totals: Totals,
    findings: tuple[Finding, ...],
) -> FileResult:
    return FileResult(
        path=str(file), format=name, status=status, totals=totals, findings=findings, named=named
    )


def _finding(
    code: str,
    severity: Literal["error", "warning", "info"],
    text: str,
    file: Path,
    mend: str | None = None,
    line: int | None = None,
) -> Finding:
    return Finding(code=code, severity=severity, message=text, file=str(file), line=line, mend=mend)
