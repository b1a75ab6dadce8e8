"""The store: one immutable JSON file a live run, one Parquet batch an import.

A record is written to a temporary file, synced, renamed into place, and the
folder is synced: a reader sees a whole record or none.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.identity import sha256_hex
from carbonlens.domain.run import SCHEMA_VERSION, Run
from carbonlens.domain.units import US_PER_S
from carbonlens.errors import MissingExtraError, RecordError, UnwritableError

_UNDATED = "undated"


class LedgerView(msgspec.Struct, frozen=True, kw_only=True):
    """What reading the whole ledger gave.

    Attributes:
        runs: All records that could be read, oldest first.
        findings: Damaged or unreadable records.
        unread_batches: Parquet batches left unread because DuckDB is missing.
    """

    runs: tuple[Run, ...]
    findings: tuple[Finding, ...] = ()
    unread_batches: int = 0


class Ledger:
    """A folder of run records.

    Args:
        path: The ledger's folder; made at the first write.
    """

    def __init__(self, path: str | Path) -> None:
        """Point at the folder without touching it."""
        self.path = Path(path)

    def __repr__(self) -> str:
        """Show the folder."""
        return f"Ledger({str(self.path)!r})"

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
            raise _unwritable(self.path, error) from error

    def _make(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        ignore = self.path / ".gitignore"
        if not ignore.exists():
            write_atomically(ignore, b"*\n")

    def append(self, run: Run) -> Path:
        """Store one record and return its file.

        Args:
            run: The sealed record; an existing one of the same id stays.

        Raises:
            UnwritableError: If the ledger cannot be written.
            RecordError: If a different record has this id already.
        """
        file = self.path / "runs" / _month(run) / f"{run.run_id}.json"
        content = msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n"
        if file.exists():
            if file.read_bytes() == content:
                return file
            raise RecordError(
                "a different record of this id exists", where=str(file), mend="record it under a new id"
            )
        try:
            self._make()
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, content)
        except OSError as error:
            raise _unwritable(file, error) from error
        return file

    def add_batch(self, runs: Sequence[Run], *, source_sha256: str, importer: str) -> Path:
        """Store the records of one imported source as one Parquet batch.

        Args:
            runs: Records of the source.
            source_sha256: Hash of the source's content, the batch's identity.
            importer: Name and version of the importer, part of the identity.

        Raises:
            MissingExtraError: If DuckDB is not installed.
            UnwritableError: If the ledger cannot be written.
        """
        self.ensure_writable()
        file = self.batch_file(source_sha256, importer)
        if not file.exists():
            from carbonlens.ledger import batches

            file.parent.mkdir(parents=True, exist_ok=True)
            batches.write(file, runs)
        return file

    def batch_file(self, source_sha256: str, importer: str) -> Path:
        """Return the file a batch of this content and importer has or would have."""
        return self.path / "imports" / f"{source_sha256[:32]}-{importer}.parquet"

    def add_outcomes(self, outcomes: Sequence[int]) -> str:
        """Store per-example outcomes (0 or 1) and return their hash.

        Args:
            outcomes: One number an example, in the order of the test set.
        """
        content = msgspec.json.encode([int(x) for x in outcomes])
        name = sha256_hex(content)
        file = self.path / "outcomes" / f"{name}.json"
        if not file.exists():
            self.ensure_writable()
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, content)
        return name

    def outcomes(self, sha256: str) -> tuple[int, ...] | None:
        """Return stored outcomes, ``None`` when the ledger has none of this hash.

        Raises:
            RecordError: If the content does not match its hash.
        """
        file = self.path / "outcomes" / f"{sha256}.json"
        if not file.is_file():
            return None
        content = file.read_bytes()
        if sha256_hex(content) != sha256:
            raise RecordError(
                "the outcomes do not match their hash", where=str(file), mend="restore the file from a copy"
            )
        return msgspec.json.decode(content, type=tuple[int, ...])

    def view(self) -> LedgerView:
        """Read every record, each once, oldest first.

        Damaged records become Findings; superseded ones stay, for the queries
        to leave out.
        """
        runs, findings = _read_json(sorted((self.path / "runs").glob("*/*.json")))
        files = sorted((self.path / "imports").glob("*.parquet"))
        unread = 0
        if files:
            from carbonlens.ledger import batches

            try:
                imported, more = batches.read(files)
            except MissingExtraError:
                unread = len(files)
            else:
                runs += imported
                findings += more
        runs.sort(key=lambda r: (r.start_us is not None, r.start_us or 0))
        return LedgerView(runs=tuple(runs), findings=tuple(findings), unread_batches=unread)

    def study_file(self, name: str) -> Path:
        """Return the file in which a study of this name is or would be kept."""
        return self.path / "studies" / f"{sha256_hex(name.encode())[:16]}.toml"


def _month(run: Run) -> str:
    if run.start_us is None:
        return _UNDATED
    return datetime.fromtimestamp(run.start_us / US_PER_S, tz=UTC).strftime("%Y%m")


def _read_json(files: Iterable[Path]) -> tuple[list[Run], list[Finding]]:
    runs: list[Run] = []
    findings: list[Finding] = []
    decoder = msgspec.json.Decoder(Run)
    for file in files:
        try:
            run = decoder.decode(file.read_bytes())
        except (msgspec.MsgspecError, UnicodeDecodeError, OSError) as error:
            findings.append(_damaged(file, str(error)))
            continue
        if run.schema_version > SCHEMA_VERSION:
            findings.append(_newer(file, run.schema_version))
            continue
        runs.append(run)
    return runs, findings


def _damaged(file: Path, reason: str) -> Finding:
    return Finding(
        code="CL501",
        severity="error",
        message=f"record cannot be read and is left out: {reason}",
        file=str(file),
        mend="restore the file from a copy",
    )


def _newer(file: Path, version: int) -> Finding:
    return Finding(
        code="CL502",
        severity="error",
        message=f"record has schema version {version}, newer than {SCHEMA_VERSION}; it is left out",
        file=str(file),
        mend="upgrade carbonlens",
    )


def _unwritable(place: Path, error: OSError) -> UnwritableError:
    return UnwritableError(
        f"the ledger cannot be written ({error.strerror or error})",
        where=str(place),
        mend="free space, or give a writable folder with --ledger or CARBONLENS_LEDGER",
    )


def write_atomically(file: Path, content: bytes) -> None:
    """Write a file so that a reader sees all of it or none, also after a crash.

    Raises:
        OSError: If the folder cannot be written.
    """
    temporary = file.with_name(f".{file.name[:64]}.{os.urandom(8).hex()}.tmp")
    try:
        with temporary.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
