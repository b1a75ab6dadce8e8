"""The store: one immutable JSON file a live run, one Parquet batch an import.

A record is written to a temporary file, synced, renamed into place, and the
folder is synced: a reader sees a whole record or none. Nothing is locked: hosts
that share a folder write under names that no other uses.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.identity import sha256_hex
from carbonlens.domain.run import Run
from carbonlens.errors import RecordError, UnwritableError, UsageError
from carbonlens.ledger import layout
from carbonlens.ledger.atomic import IGNORED, sync_folder, write_atomically
from carbonlens.ledger.location import is_address
from carbonlens.ledger.naming import by_address
from carbonlens.ledger.records import refuse_misfits

if TYPE_CHECKING:
    from carbonlens.domain.alike import Alike
    from carbonlens.ledger.activity import Kind, Row
    from carbonlens.ledger.calendar import Calendar
    from carbonlens.ledger.frames import View
    from carbonlens.ledger.holdings import Holdings
    from carbonlens.ledger.latest import Latest
    from carbonlens.ledger.samples import SampledEnergy, Series

__all__ = ["Ledger", "LedgerView", "sync_folder", "unwritable", "write_atomically"]


class LedgerView(msgspec.Struct, frozen=True, kw_only=True):
    """What reading the whole ledger gave.

    Attributes:
        runs: All records that could be read, each once, in the order in which they came.
        findings: Damaged or unreadable records.
        unread_batches: Parquet files left unread because DuckDB is missing.
    """

    runs: tuple[Run, ...]
    findings: tuple[Finding, ...] = ()
    unread_batches: int = 0


class Ledger:
    """A folder of run records.

    Args:
        path: The ledger's folder; made at the first write.
        address: Where it really lies, when the folder is a copy of it.
        waiting: What must be said of runs that wait to be sent there.
    """

    def __init__(
        self, path: str | Path, *, address: str | None = None, waiting: Sequence[Finding] = ()
    ) -> None:
        """Point at the folder without touching it.

        Raises:
            UsageError: If it is an address; ``opening.open_ledger`` opens those.
        """
        if is_address(path):
            raise UsageError(
                "this command works on a folder only",
                where=str(path),
                mend="give a local folder with --ledger",
            )
        self.path = Path(path)
        self.shown = str(self.path) if address is None else address
        """Where the ledger lies, for messages."""
        self._waiting = tuple(waiting)

    @property
    def exists(self) -> bool:
        """Whether anything is there."""
        if self.shown == str(self.path):
            return self.path.is_dir()
        return any(self.path.iterdir())

    def named(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Return Findings as they are to be printed: by the address where the folder is a copy."""
        return by_address(findings, self.path, self.shown)

    def __repr__(self) -> str:
        """Show the folder."""
        return f"Ledger({self.shown!r})"

    def ensure_writable(self) -> None:
        """Make the folder if need be and check that it can be written.

        Raises:
            UnwritableError: If it cannot; said before any work starts.
        """
        try:
            self._make()
            probe = self.path / f".{os.urandom(8).hex()}.tmp"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise unwritable(self.path, error) from error

    def _make(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        # A folder of the user's own (a project, say) must stay visible to git.
        if not any(self.path.iterdir()):
            write_atomically(self.path / IGNORED, b"*\n")

    def append(self, run: Run) -> Path:
        """Store one record and return its file.

        Args:
            run: The sealed record; an existing one of the same id stays, and where it
                was compacted already, its month's file is returned.

        Raises:
            UnwritableError: If the ledger cannot be written.
            RecordError: If a different record has this id already, no column holds a figure, or
                the id is no file's name.
        """
        refuse_misfits([run])
        layout.refuse_no_name(run.run_id)
        file = self.path / layout.RUNS / layout.folder_of(run) / f"{run.run_id}.json"
        content = msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n"
        if file.exists():
            if file.read_bytes() == content:
                return file
            raise RecordError(
                "a different record of this id exists", where=str(file), mend="record it under a new id"
            )
        month = self.path / layout.MONTHS / layout.month_of(run.start_us)
        if month.is_dir():
            from carbonlens.ledger import compaction

            folded = compaction.folded_file(month, run.run_id, content)
            if folded is not None:
                return folded
        try:
            self._make()
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, content)
        except OSError as error:
            raise unwritable(file, error) from error
        return file

    def add_batch(
        self, runs: Sequence[Run], alike: Sequence[Alike] = (), *, source_sha256: str, importer: str
    ) -> Path:
        """Store the records of one imported source as one Parquet batch.

        Args:
            runs: Records of the source.
            alike: Further ones as columns; each has an id that no other has.
            source_sha256: Hash of the source's content, the batch's identity.
            importer: Name and version of the importer, part of the identity.

        Raises:
            MissingExtraError: If DuckDB or, for columns, pandas is not installed.
            RecordError, UnwritableError: If no column holds a figure, or the ledger cannot be written.
        """
        refuse_misfits(runs)
        file = self.batch_file(source_sha256, importer)
        if file.exists():
            return file
        from carbonlens.ledger import batches

        try:
            self._make()
            batches.write(file, runs, alike)
        except OSError as error:
            raise unwritable(file, error) from error
        return file

    def batch_file(self, source_sha256: str, importer: str) -> Path:
        """Return the file a batch of this content and importer has or would have."""
        return self.path / layout.IMPORTS / layout.batch_name(source_sha256, importer)

    def add_rows(self, kind: Kind[Row], rows: Sequence[Row], *, source_sha256: str, importer: str) -> Path:
        """Store meter readings, bill lines or snapshots of one source as one batch.

        Args:
            kind: ``activity.READINGS``, ``CHARGES`` or ``SNAPSHOTS``.
            rows: Records of the source; their ids say what counts once.
            source_sha256: Hash of the source's content, the batch's identity.
            importer: Name and version of the importer, part of the identity.

        Raises:
            MissingExtraError: If DuckDB is not installed.
            UnwritableError: If the ledger cannot be written.
        """
        from carbonlens.ledger import activity

        file = self.path / kind.folder / layout.batch_name(source_sha256, importer)
        if file.exists():
            return file
        try:
            self._make()
            activity.write(file, kind, rows)
        except OSError as error:
            raise unwritable(file, error) from error
        return file

    def rows(self, kind: Kind[Row]) -> tuple[list[Row], list[Finding]]:
        """Return all rows of one kind that count, each once, without superseded ones.

        Raises:
            MissingExtraError: If there are batches and DuckDB is not installed.
            RecordError: If the folder cannot be read.
        """
        from carbonlens.ledger import activity

        try:
            rows, findings = activity.read(self.path / kind.folder, kind)
        except OSError as error:
            raise self.unreadable(error) from error
        return rows, list(self.named(findings))

    def holds(self, run_id: str) -> bool:
        """Tell whether a live run of this id is recorded, as a file or in a compacted month.

        Needs no DuckDB: the manifest beside a month names its runs.
        """
        if any((self.path / layout.RUNS).glob(f"*/{run_id}.json")):
            return True
        named = f'"{run_id}"'.encode()
        return any(named in file.read_bytes() for file in (self.path / layout.MONTHS).glob("*/*.json"))

    def add_outcomes(self, outcomes: Sequence[int]) -> str:
        """Store per-example outcomes (0 or 1) and return their hash.

        Args:
            outcomes: One number an example, in the order of the test set.

        Raises:
            UnwritableError: If the ledger cannot be written.
        """
        from carbonlens.ledger import outcomes as sidecars

        try:
            self._make()
            return sidecars.write(self.path, outcomes)
        except OSError as error:
            raise unwritable(self.path / layout.OUTCOMES, error) from error

    def outcomes(self, sha256: str) -> tuple[int, ...] | None:
        """Return stored outcomes, ``None`` when the ledger has none of this hash.

        Raises:
            RecordError: If the content does not match its hash.
        """
        from carbonlens.ledger import outcomes as sidecars

        return sidecars.read(self.path, sha256)

    def add_samples(self, run_id: str, series: Mapping[str, Series]) -> list[Path]:
        """Store a run's power samples, by UTC day; the same again changes nothing.

        ``carbonlens ledger compact`` puts a day's files into one, ``verify`` checks
        them; the run's own record, and what is billed by it, stay as they are.

        Args:
            run_id: The run.
            series: Device to its samples: UTC microseconds and watts, in order of time.

        Raises:
            RecordError: If a device's samples are not in order of time.
            MissingExtraError: If DuckDB is not installed.
            UnwritableError: If the ledger cannot be written.
        """
        from carbonlens.ledger import samples

        try:
            self._make()
            return samples.write(self.path, run_id, series)
        except OSError as error:
            raise unwritable(self.path, error) from error

    def sampled_energy(self) -> tuple[list[SampledEnergy], list[Finding]]:
        """Return the energy of each run and device of which samples are stored, by the trapezoid rule.

        Also returned are Findings of files that could not be read.

        Raises:
            MissingExtraError: If DuckDB or narwhals is not installed.
            RecordError: If the folder cannot be read.
        """
        from carbonlens.ledger import samples

        try:
            found, findings = samples.energy(self.path)
        except OSError as error:
            raise self.unreadable(error) from error
        return found, list(self.named(findings))

    def holdings(self) -> Holdings:
        """Read every record as stored: each once, redactions applied, corrected ones too.

        Raises:
            RecordError: If the folder itself cannot be read.
        """
        from carbonlens.ledger.holdings import read_all

        try:
            held = read_all(self.path)
        except OSError as error:
            raise self.unreadable(error) from error
        return msgspec.structs.replace(held, findings=(*self.named(held.findings), *self._waiting))

    def view(self) -> LedgerView:
        """Read every record in the order in which they came: by start, or by import and line.

        Damaged records become Findings; superseded ones stay, for the queries
        to leave out (``records.current``).

        Raises:
            RecordError: If the folder itself cannot be read.
        """
        held = self.holdings()
        runs = sorted((r.run for r in held.records), key=lambda r: r.recorded_us)
        return LedgerView(runs=tuple(runs), findings=held.findings, unread_batches=held.unread_files)

    def latest(self, n: int) -> Latest:
        """Return the last ``n`` runs that were recorded and count, without reading the others.

        Raises:
            RecordError: If the folder itself cannot be read.
        """
        from carbonlens.ledger.latest import latest

        try:
            found = latest(self.path, n)
        except OSError as error:
            raise self.unreadable(error) from error
        return msgspec.structs.replace(found, findings=(*self.named(found.findings), *self._waiting))

    @property
    def is_large(self) -> bool:
        """Whether reading every run would keep a reader waiting.

        Raises:
            RecordError: If the folder itself cannot be read.
        """
        from carbonlens.ledger.latest import is_large

        try:
            return is_large(self.path)
        except OSError as error:
            raise self.unreadable(error) from error

    def query(self, period: str | None = None, calendar: Calendar | None = None) -> View:
        """Open the one view of a period, for the queries; use it in a ``with`` block.

        Args:
            period: For example ``2026Q3``; everything when ``None``.
            calendar: In whose zone and fiscal year the period is meant.

        Raises:
            UsageError: If the text is no period.
            MissingExtraError: If DuckDB or narwhals is not installed.
        """
        from carbonlens.ledger.reading import open_view

        view = open_view(self.path, period, calendar)
        view.findings = [*self.named(view.findings), *self._waiting]
        return view

    def to_pandas(self, period: str | None = None, calendar: Calendar | None = None) -> Any:  # noqa: ANN401  # pandas brings no types
        """Return the runs of a period as a table; arguments as of ``query``.

        Raises:
            MissingExtraError: If pandas, DuckDB or narwhals is not installed.
        """
        from carbonlens.ledger.reading import to_pandas

        table = to_pandas(self.path, period, calendar)
        table.attrs["findings"] = (*self.named(table.attrs["findings"]), *self._waiting)
        return table

    def unreadable(self, error: OSError) -> RecordError:
        """Return the error for a ledger that cannot be read, with the place and the mend."""
        return RecordError(
            f"the ledger cannot be read ({error.strerror or error})",
            where=str(error.filename or self.path),
            mend="check the path and its permissions",
        )

    def keep_study(self, name: str, text: str) -> Path:
        """Keep a study file, so that the study is found by its name.

        Raises:
            UnwritableError: If the ledger cannot be written.
        """
        file = self.study_file(name)
        try:
            self._make()
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, text.encode())
        except OSError as error:
            raise unwritable(file, error) from error
        return file

    def study_file(self, name: str) -> Path:
        """Return the file in which a study of this name is or would be kept."""
        return self.path / layout.STUDIES / f"{sha256_hex(name.encode())[:16]}.toml"


def unwritable(place: Path, error: OSError) -> UnwritableError:
    """Return the error for a ledger that cannot be written, with the place and the mend."""
    return UnwritableError(
        f"the ledger cannot be written ({error.strerror or error})",
        where=str(place),
        mend="free space, or give a writable folder with --ledger or CARBONLENS_LEDGER",
    )
