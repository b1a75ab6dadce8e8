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
        runs: All records that could be read, in the order in which they came.
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
        # A folder of the user's own (a project, say) must stay visible to git.
        if not any(self.path.iterdir()):
            write_atomically(self.path / ".gitignore", b"*\n")

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
        from carbonlens.ledger import batches

        file = self.batch_file(source_sha256, importer)
        if file.exists():
            return file
        try:
            self._make()
            file.parent.mkdir(parents=True, exist_ok=True)
            batches.write(file, runs)
            sync_folder(file.parent)
        except OSError as error:
            raise _unwritable(file, error) from error
        return file

    def batch_file(self, source_sha256: str, importer: str) -> Path:
        """Return the file a batch of this content and importer has or would have."""
        return self.path / "imports" / f"{source_sha256[:32]}-{importer}.parquet"

    def add_outcomes(self, outcomes: Sequence[int]) -> str:
        """Store per-example outcomes (0 or 1) and return their hash.

        Args:
            outcomes: One number an example, in the order of the test set.

        Raises:
            UnwritableError: If the ledger cannot be written.
        """
        content = msgspec.json.encode([int(x) for x in outcomes])
        name = sha256_hex(content)
        file = self.path / "outcomes" / f"{name}.json"
        if file.exists():
            return name
        try:
            self._make()
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, content)
        except OSError as error:
            raise _unwritable(file, error) from error
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
        """Read every record in the order in which they came: by start, or by import and line.

        Damaged records become Findings; superseded ones stay, for the queries
        to leave out.

        Raises:
            RecordError: If the folder itself cannot be read.
        """
        try:
            runs, findings = _read_json(sorted((self.path / "runs").glob("*/*.json")))
            files = sorted((self.path / "imports").glob("*.parquet"))
        except OSError as error:
            raise RecordError(
                f"the ledger cannot be read ({error.strerror or error})",
                where=str(self.path),
                mend="check the path and its permissions",
            ) from error
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
        runs.sort(key=lambda r: r.recorded_us)
        return LedgerView(runs=tuple(runs), findings=tuple(findings), unread_batches=unread)

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
            raise _unwritable(file, error) from error
        return file

    def study_file(self, name: str) -> Path:
        """Return the file in which a study of this name is or would be kept."""
        return self.path / "studies" / f"{sha256_hex(name.encode())[:16]}.toml"


def _month(run: Run) -> str:
    if run.start_us is None:
        return _UNDATED
    try:
        return datetime.fromtimestamp(run.start_us / US_PER_S, tz=UTC).strftime("%Y%m")
    except (ValueError, OverflowError, OSError):
        # A clock that was never set: the record is kept all the same.
        return _UNDATED


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
        elif file.stem != run.run_id:
            findings.append(_misnamed(file, run.run_id))
        else:
            runs.append(run)
    return runs, findings


def _damaged(file: Path, reason: str) -> Finding:
    text = f"record cannot be read and is left out: {reason}"
    return _left_out("CL501", text, file, "restore the file from a copy")


def _misnamed(file: Path, run_id: str) -> Finding:
    text = f"a copy of run {run_id} under another name is left out, so that it counts once"
    return _left_out("CL504", text, file, "remove the copy")


def _newer(file: Path, version: int) -> Finding:
    text = f"record has schema version {version}, newer than {SCHEMA_VERSION}; it is left out"
    return _left_out("CL502", text, file, "upgrade carbonlens")


def _left_out(code: str, text: str, file: Path, mend: str) -> Finding:
    return Finding(code=code, severity="error", message=text, file=str(file), mend=mend)


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
    sync_folder(file.parent)


def sync_folder(path: Path) -> None:
    """Make a rename in the folder durable.

    Raises:
        OSError: If the folder cannot be opened.
    """
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
