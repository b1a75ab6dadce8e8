"""Reading everything a ledger holds, whatever form it lies in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.errors import MissingExtraError, RecordError
from carbonlens.ledger import layout, parquet, redaction
from carbonlens.ledger.migration import NewerSchemaError
from carbonlens.ledger.records import Stored, current, decode, fitting, read_files, unique

_ATTEMPTS: Final = 5
"""How often a folder is listed again when compaction on another host takes files away meanwhile."""


_OF_FIGURES: Final = frozenset({"CL527", "CL529"})
"""Of one record's own figures, with a correction as their mend."""


class Holdings(msgspec.Struct, frozen=True, kw_only=True):
    """All records of a ledger.

    Attributes:
        records: Each run once, redactions applied: live runs, compacted months, imports.
        findings: What could not be read, or is there twice.
        unread_files: Parquet files left unread because DuckDB is missing.
        unredacted: Records as stored of which a tombstone says that a part is gone.
    """

    records: tuple[Stored, ...]
    findings: tuple[Finding, ...] = ()
    unread_files: int = 0
    unredacted: tuple[Stored, ...] = ()


def read_all(ledger: Path) -> Holdings:
    """Read a ledger.

    Live runs are read before the months: compaction writes a month before it
    removes the files, so that a record is met at least once.

    Raises:
        OSError: If the folder itself cannot be read.
    """
    records, findings = read_live(ledger)
    folded, more, unread = read_parquet(ledger)
    stones, bad_stones = redaction.tombstones(ledger)
    # What was folded was there first: a file that claims its id later does not replace it.
    met = [*folded, *records]
    kept, doubles = unique(redaction.applied(met, stones))
    return Holdings(
        records=tuple(kept),
        findings=(*unsettled([*findings, *more], [r.run for r in kept]), *bad_stones, *doubles),
        unread_files=unread,
        unredacted=tuple(r for r in met if r.sha256 in stones) if stones else (),
    )


def read_live(ledger: Path) -> tuple[list[Stored], list[Finding]]:
    """Read the live runs that are files of their own."""
    files, findings = each_folder(layout.folders_in(ledger / layout.RUNS), ".json")
    records, more = read_files(files)
    return records, [*findings, *more]


def read_parquet(ledger: Path) -> tuple[list[Stored], list[Finding], int]:
    """Read compacted months and imports: records, findings, files left unread without DuckDB."""
    files, findings = parquet_files(ledger)
    if not files:
        return [], findings, 0
    try:
        connection = parquet.connect()
    except MissingExtraError:
        return [], findings, len(files)
    try:
        for _ in range(_ATTEMPTS):
            records: list[Stored] = []
            more: list[Finding] = []
            try:
                for file in files:
                    _read_into(records, more, file, lambda f: parquet.texts(connection, f))
                break
            except FileNotFoundError as error:
                more = [
                    _left_out("CL506", "file went away while it was read", Path(error.filename), "try again")
                ]
                files, findings = parquet_files(ledger)
    finally:
        connection.close()
    return records, [*findings, *more], 0


def read_files_of(files: Sequence[Path]) -> tuple[list[Stored], list[Finding]]:
    """Read just these files as stored: what lies in Parquet, then live runs.

    Raises:
        MissingExtraError: If one is Parquet and DuckDB is not installed.
        FileNotFoundError: If a Parquet file is gone.
    """
    live, findings = read_files([f for f in files if f.suffix == ".json"])
    records: list[Stored] = []
    whole = [f for f in files if f.suffix == ".parquet"]
    if whole:
        connection = parquet.connect()
        try:
            for file in whole:
                _read_into(records, findings, file, lambda f: parquet.texts(connection, f))
        finally:
            connection.close()
    return [*records, *live], findings


def unsettled(findings: Iterable[Finding], runs: Sequence[Run]) -> list[Finding]:
    """Return Findings without those of figures that a correction has set right since.

    Args:
        findings: Of reading records.
        runs: Those records, each once, corrected ones too.
    """
    said = list(findings)
    if any(f.code in _OF_FIGURES for f in said):
        ids = {run.run_id for run in current(runs)[0]}
        said = [f for f in said if f.code not in _OF_FIGURES or f.subject in ids]
    return said


def errors_of(findings: Iterable[Finding]) -> list[Finding]:
    """Return what says that something was left out; a warning is of a record that was read all the same."""
    return [f for f in findings if f.severity == "error"]


def parquet_files(ledger: Path) -> tuple[list[Path], list[Finding]]:
    """Return the files of compacted months, then of imports, and folders that may not be read."""
    months = layout.folders_in(ledger / layout.MONTHS)
    return each_folder([*months, ledger / layout.IMPORTS], ".parquet")


def each_folder(folders: Sequence[Path], suffix: str) -> tuple[list[Path], list[Finding]]:
    """List folders; one that may not be read is a Finding, the others are listed."""
    files: list[Path] = []
    findings: list[Finding] = []
    for folder in folders:
        try:
            here = layout.months_in(folder) if suffix == ".parquet" else layout.files_in(folder, suffix)
        except OSError as error:
            findings.append(unread_folder(folder, error))
            continue
        # A pipe would keep DuckDB waiting; of live runs the reader says so itself.
        odd = [f for f in here if suffix == ".parquet" and not_regular(f)]
        findings += [unread_file(f) for f in odd]
        files += [f for f in here if f not in odd] if odd else here
    return files, findings


def not_regular(file: Path) -> bool:
    """Tell whether something lies there that is no regular file; what went away is not told."""
    return file.exists() and not file.is_file()


def unread_file(file: Path) -> Finding:
    """Return the Finding of what is no regular file."""
    return _left_out("CL506", "it is no regular file and is left out", file, "remove it")


def unread_folder(folder: Path, error: OSError) -> Finding:
    """Return the Finding of a folder that may not be read."""
    text = f"folder may not be read, its records are left out ({error.strerror})"
    return _left_out("CL506", text, folder, "give yourself the right to read it")


def _read_into(
    records: list[Stored], findings: list[Finding], file: Path, texts: Callable[[Path], list[str]]
) -> None:
    """Add the records of a batch, or the Finding that it is left out: a part of one never counts."""
    try:
        lines = [text.encode() for text in texts(file)]
        found = [Stored(run=decode(line), text=line, file=str(file)) for line in lines]
    except NewerSchemaError as error:
        findings.append(_left_out("CL502", f"{error.what}; the batch is left out", file, error.mend))
    except FileNotFoundError:
        raise
    except PermissionError as error:
        text = f"batch may not be read and is left out ({error.strerror})"
        findings.append(_left_out("CL506", text, file, "give yourself the right to read it"))
    except (parquet.UnreadableParquetError, msgspec.MsgspecError, RecordError, OSError) as error:
        reason = error.what if isinstance(error, RecordError) else str(error)
        text = f"batch cannot be read and is left out: {reason}"
        findings.append(_left_out("CL503", text, file, _mend(file)))
    else:
        fits = [fitting(r) for r in found]
        findings += [said for _, said in fits if said is not None]
        records += [r for r, _ in fits if r is not None]


def _mend(file: Path) -> str:
    if file.parent.name == layout.IMPORTS:
        return "import its source again after removing the file"
    return "restore the file from a copy"


def _left_out(code: str, text: str, file: Path, mend: str) -> Finding:
    return Finding(code=code, severity="error", message=text, file=str(file), mend=mend)
