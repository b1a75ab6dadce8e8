"""Imported rows that are no runs: meter readings, bill lines, inventory snapshots.

As with runs, a batch is one Parquet file a source, named by the source's hash;
it holds the columns queries sum by and the whole record as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import msgspec

from carbonlens.domain.charge import Charge
from carbonlens.domain.decoding import decode_json
from carbonlens.domain.finding import Finding
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.domain.money import Money
from carbonlens.domain.snapshot import Snapshot
from carbonlens.ledger import parquet, superseding
from carbonlens.ledger.layout import BatchKind, files_in
from carbonlens.ledger.records import content_sha256

Row = TypeVar("Row", MeterReading, Charge, Snapshot)

_TEXT: Final = "VARCHAR"
_TIME: Final = "BIGINT"
_JOULES: Final = "DECIMAL(24,6)"
_AMOUNT: Final = "DECIMAL(38,12)"
"""Bills state up to 12 decimals of a unit price times a quantity."""

_RECORD: Final = {"record": _TEXT, "record_sha256": _TEXT}


class Kind(msgspec.Struct, Generic[Row], frozen=True, kw_only=True):
    """How one kind of row lies in Parquet.

    Attributes:
        type: The record.
        folder: Folder of its batches.
        id_field: Field that says when two rows are one.
        columns: Column to DuckDB type; a name with a dot in ``fields`` reaches into a record.
        fields: Column to the field it holds.
    """

    type: type[Row]
    folder: BatchKind
    id_field: str
    columns: Mapping[str, str]
    fields: Mapping[str, str]


def _kind(type_: type[Row], folder: BatchKind, id_field: str, columns: Mapping[str, str]) -> Kind[Row]:
    names = {name.replace(".", "_"): name for name in columns}
    types = {name.replace(".", "_"): kind for name, kind in columns.items()}
    return Kind(type=type_, folder=folder, id_field=id_field, columns={**types, **_RECORD}, fields=names)


READINGS: Final = _kind(
    MeterReading,
    "readings",
    "reading_id",
    {
        "reading_id": _TEXT,
        "meter_id": _TEXT,
        "site": _TEXT,
        "start_us": _TIME,
        "end_us": _TIME,
        "energy_j": _JOULES,
        "direction": _TEXT,
        "carrier": _TEXT,
        "boundary": _TEXT,
        "grade": _TEXT,
        "supersedes": _TEXT,
    },
)
CHARGES: Final = _kind(
    Charge,
    "charges",
    "charge_id",
    {
        "charge_id": _TEXT,
        "start_us": _TIME,
        "end_us": _TIME,
        **{
            f"{cost}.{part}": _AMOUNT if part == "amount" else _TEXT
            for cost in ("billed", "effective", "list_cost", "contracted")
            for part in ("amount", "currency")
        },
        "category": _TEXT,
        "provider": _TEXT,
        "invoice_id": _TEXT,
        "service": _TEXT,
        "sku": _TEXT,
        "region": _TEXT,
        "site": _TEXT,
        "meter_id": _TEXT,
        "resource_id": _TEXT,
        "quantity": _AMOUNT,
        "unit": _TEXT,
        "energy_j": _JOULES,
        "supersedes": _TEXT,
    },
)
SNAPSHOTS: Final = _kind(
    Snapshot,
    "snapshots",
    "snapshot_id",
    {"snapshot_id": _TEXT, "name": _TEXT, "taken_us": _TIME, "supersedes": _TEXT},
)
KINDS: Final[Mapping[BatchKind, Kind[Any]]] = {k.folder: k for k in (READINGS, CHARGES, SNAPSHOTS)}


def row(kind: Kind[Row], record: Row) -> dict[str, object]:
    """Return the columns of one record."""
    text = msgspec.json.encode(record)
    columns = {column: _field(record, name) for column, name in kind.fields.items()}
    return {**columns, "record": text.decode(), "record_sha256": content_sha256(text)}


def write(file: Path, kind: Kind[Row], records: Sequence[Row]) -> None:
    """Write one batch; the file appears whole or not at all.

    Raises:
        MissingExtraError: If DuckDB is not installed.
        UnwritableError: If the file cannot be written.
        OSError: If the folder cannot be written.
    """
    parquet.write(file, kind.columns, (row(kind, r) for r in records))


def read(folder: Path, kind: Kind[Row]) -> tuple[list[Row], list[Finding]]:
    """Return the rows that count: each once, without those that a later one supersedes.

    Raises:
        MissingExtraError: If there are batches and DuckDB is not installed.
        OSError: If the folder cannot be read.
    """
    held, findings = read_stored(folder, kind)
    counting, said = superseding.counting((r for r, _ in held), kind.id_field)
    return counting, findings + said


def read_stored(folder: Path, kind: Kind[Row]) -> tuple[list[tuple[Row, str]], list[Finding]]:
    """Return every row once, superseded ones too, each with the hash of its content.

    Raises:
        MissingExtraError: If there are batches and DuckDB is not installed.
        OSError: If the folder cannot be read.
    """
    files = files_in(folder, ".parquet")
    if not files:
        return [], []
    first: dict[str, tuple[Row, str]] = {}
    findings: list[Finding] = []
    connection = parquet.connect()
    try:
        for file in files:
            if file.exists() and not file.is_file():
                # A pipe would keep DuckDB waiting.
                findings.append(_damaged(file, "it is no regular file"))
                continue
            try:
                lines = parquet.texts(connection, file)
                rows = [decode_json(line, kind.type) for line in lines]
            except (parquet.UnreadableParquetError, msgspec.MsgspecError, OSError) as error:
                findings.append(_damaged(file, str(error)))
                continue
            for record, line in zip(rows, lines, strict=True):
                name = str(getattr(record, kind.id_field))
                earlier, _ = first.setdefault(name, (record, content_sha256(line.encode())))
                if earlier is not record and _content(earlier) != _content(record):
                    findings.append(_twice(f"{kind.id_field} {name}", file))
    finally:
        connection.close()
    return list(first.values()), findings


def ids(folder: Path, kind: Kind[Row]) -> set[str]:
    """Return the ids of all rows, superseded ones too; those of a damaged batch are left out.

    Args:
        folder: Folder of the kind's batches.
        kind: Which rows.

    Raises:
        MissingExtraError: If there are batches and DuckDB is not installed.
        OSError: If the folder cannot be read.
    """
    files = files_in(folder, ".parquet")
    found: set[str] = set()
    if not files:
        return found
    connection = parquet.connect()
    try:
        # What cannot be read is told by who reads the rows; a pipe would keep DuckDB waiting.
        for file in filter(Path.is_file, files):
            with suppress(parquet.UnreadableParquetError):
                found.update(parquet.texts(connection, file, kind.id_field))
    finally:
        connection.close()
    return found


def _twice(name: str, file: Path) -> Finding:
    return Finding(
        code="CL505",
        severity="error",
        message=f"{name} is stored twice with different content; only the first counts",
        file=str(file),
        subject=name,
        mend="correct it by a row of its own id that supersedes it",
    )


def _content(record: Row) -> Row:
    """Return the record without where it was read from, and a snapshot without when."""
    if isinstance(record, Snapshot):
        return msgspec.structs.replace(record, origin=None, taken_us=0)
    return msgspec.structs.replace(record, origin=None)


def _field(record: object, name: str) -> object:
    head, _, rest = name.partition(".")
    value: object = getattr(record, head)
    if not rest:
        return value
    return getattr(value, rest) if isinstance(value, Money) else None


def _damaged(file: Path, reason: str) -> Finding:
    return Finding(
        code="CL503",
        severity="error",
        message=f"batch cannot be read and is left out: {reason}",
        file=str(file),
        mend="import its source again after removing the file",
    )


def numbered_ids(contents: Sequence[bytes], digest: Callable[[bytes], str]) -> list[str]:
    """Return an id a line for sources that give none: its content's hash and its place among equal lines.

    Two equal lines of one file stay two; the same file read again, or a longer
    one that holds the lines too, gives the same ids.

    Args:
        contents: The lines.
        digest: Hash in hexadecimal.
    """
    met: dict[bytes, int] = {}
    ids: list[str] = []
    for content in contents:
        met[content] = met.get(content, 0) + 1
        ids.append(f"{digest(content)[:32]}-{met[content]}")
    return ids
