"""Verification of files: hashes of batches and months, and what does not belong there."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.units import US_PER_S
from carbonlens.ledger import atomic, compaction, footers, layout, parquet, schema
from carbonlens.ledger.holdings import each_folder, parquet_files, read_files_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_FRESH_S: Final = 3600
"""A temporary file younger than this may belong to a writer at work."""

_PLACES: Final[Mapping[str, str]] = {
    layout.RUNS: ".json",
    layout.MONTHS: f".parquet .json {layout.RETIRED}",
    layout.IMPORTS: ".parquet",
    layout.SAMPLES: ".parquet .json",
    "readings": ".parquet",
    "charges": ".parquet",
    "snapshots": ".parquet",
    layout.REDACTIONS: ".json",
    layout.CLOSES: ".json",
    layout.RESTATEMENTS: ".json",
    layout.OUTCOMES: ".json",
    layout.STUDIES: ".toml .lock",  # a bench holds one while it measures
}
"""Folder to the endings of what lies in it."""

_NESTED: Final = frozenset({layout.RUNS, layout.MONTHS, layout.SAMPLES})
"""Folders with one more level, a month or a day."""


def batch_faults(ledger: Path) -> list[Finding]:
    """Return batches and months whose columns or hashes are not those of their records.

    Raises:
        MissingExtraError: If there are any and DuckDB is not installed.
    """
    files, _ = parquet_files(ledger)
    if not files:
        return []
    connection = parquet.connect()
    faults: list[Finding] = []
    try:
        for file in files:
            reason = _batch_fault(connection, file)
            if reason is not None:
                faults.append(
                    _error(reason, file, "restore the file from a copy, or import its source again")
                )
    finally:
        connection.close()
    return faults


def _batch_fault(connection: DuckDBPyConnection, file: Path) -> str | None:
    records, unreadable = read_files_of([file])
    if unreadable:
        return None  # Said already, by reading the ledger.
    if "row_schema" not in parquet.columns_of(connection, file):
        return None  # Of the first release: nothing in it but the records is used.
    version = _version(connection, file)
    names = ", ".join(schema.COLUMNS)
    with tempfile.TemporaryDirectory() as folder:
        expected = schema.rows_of(records, version=version)
        again = parquet.rows_source(Path(folder) / "rows.json", schema.COLUMNS, expected)
        stored = f"SELECT {names} FROM read_parquet({parquet.quoted(file)})"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
        made = f"SELECT {names} FROM {again}"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
        try:
            differing = _count(
                connection, f"({stored} EXCEPT ALL {made}) UNION ALL ({made} EXCEPT ALL {stored})"
            )
        except parquet.UnreadableParquetError as error:
            return f"its columns cannot be read: {error}"
    if differing:
        rows = counted(differing, "row differs", "rows differ")
        return f"{rows} from what the records give: the file was altered"
    return None


def _version(connection: DuckDBPyConnection, file: Path) -> int:
    """Return the version of a file's columns; this one's where they do not tell a known one."""
    told, _ = footers.read(connection, [file])
    return (told[0].version if told else None) or schema.VERSION


def _count(connection: DuckDBPyConnection, query: str) -> int:
    import duckdb

    try:
        row = connection.execute(f"SELECT count(*) FROM ({query})").fetchone()  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
    except duckdb.Error as error:
        raise parquet.UnreadableParquetError(str(error).splitlines()[0]) from error
    return int(row[0]) if row else 0


def month_faults(ledger: Path) -> list[Finding]:
    """Return compacted months that do not match their manifest; needs no DuckDB."""
    files, _ = each_folder(layout.folders_in(ledger / layout.MONTHS), ".parquet")
    faults: list[Finding] = []
    for file in files:
        try:
            manifest = compaction.read_manifest(file)
            with file.open("rb") as stream:
                sha = hashlib.file_digest(stream, "sha256").hexdigest()
        except FileNotFoundError:
            faults.append(
                _half_done(f"month {file.parent.name} has no manifest: its compaction was cut off", file)
            )
        except (msgspec.MsgspecError, OSError) as error:
            faults.append(_error(f"the month's manifest cannot be read: {error}", file, "compact again"))
        else:
            if manifest.file_sha256 != sha:
                text = "the month's file does not match the hash in its manifest"
                faults.append(_error(text, file, "restore the file from a copy"))
            elif compaction.name_of(manifest.records.values()) != file.stem:
                faults.append(_error("the manifest's records do not give its name", file, "restore it"))
    return faults


def strange_files(ledger: Path, *, now_us: int) -> list[Finding]:
    """Return files that no part of a ledger reads, and what cut-off work left behind."""
    findings: list[Finding] = []
    for file in _all_files(ledger):
        place = file.relative_to(ledger).parts
        if any(atomic.is_temporary(part) for part in place):
            findings += _leftover(file, now_us)
        elif any(part.startswith(".") for part in place):
            continue  # The user's own: a ledger may lie in a folder that holds more.
        elif not _belongs(place):
            findings.append(_foreign(file))
    return findings + _folded_twice(ledger)


def _belongs(place: tuple[str, ...]) -> bool:
    suffixes = _PLACES.get(place[0])
    depth = 3 if place[0] in _NESTED else 2
    return suffixes is not None and len(place) == depth and Path(place[-1]).suffix in suffixes.split()


def _leftover(file: Path, now_us: int) -> list[Finding]:
    try:
        age_s = now_us / US_PER_S - file.stat().st_mtime
    except FileNotFoundError:
        return []
    if age_s < _FRESH_S:
        return []
    return [_half_done("temporary file of a writer that was cut off; nothing acknowledged is in it", file)]


def _folded_twice(ledger: Path) -> list[Finding]:
    """Return months whose folding was cut off: harmless, as each run counts once."""
    findings: list[Finding] = []
    corrections, _ = each_folder([ledger / layout.RUNS / layout.CORRECTIONS], ".json")
    for folder in layout.folders_in(ledger / layout.MONTHS):
        try:
            parts = layout.months_in(folder)
            named = {run_id for f in parts for run_id in compaction.read_manifest(f).records}
        except (OSError, msgspec.MsgspecError):
            continue  # Said by another check.
        live = layout.files_in(ledger / layout.RUNS / folder.name, ".json")
        again = sum(f.stem in named for f in (*live, *corrections))
        if again or len(parts) > 1:
            lying = counted(again, "run lies", "runs lie")
            text = f"month {folder.name} is half folded ({lying} there twice); each counts once"
            findings.append(_half_done(text, folder))
    return findings


def _all_files(ledger: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(ledger):
        yield from (Path(folder) / name for name in sorted(names))


def _foreign(file: Path) -> Finding:
    return Finding(
        code="CL518",
        severity="info",
        message="not a ledger's file; it is not read",
        file=str(file),
        mend="move it elsewhere",
    )


def _half_done(text: str, file: Path) -> Finding:
    return Finding(
        code="CL515",
        severity="info",
        message=text,
        file=str(file),
        mend="run: carbonlens ledger compact",
    )


def _error(text: str, file: Path, mend: str) -> Finding:
    return Finding(code="CL510", severity="error", message=text, file=str(file), mend=mend)
