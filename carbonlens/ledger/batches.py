"""Parquet batches of imported runs, written and read by DuckDB.

A batch holds the columns that queries filter and sum by, and the whole record
as JSON, from which it is read back without loss.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.run import SCHEMA_VERSION, Run
from carbonlens.errors import MissingExtraError, UnwritableError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_COLUMNS: Final = {
    "run_id": "VARCHAR",
    "study": "VARCHAR",
    "step": "VARCHAR",
    "role": "VARCHAR",
    "start_us": "BIGINT",
    "duration_s": "DOUBLE",
    "energy_j": "DECIMAL(24,6)",
    "boundary": "VARCHAR",
    "units": "VARCHAR",
    "unit": "VARCHAR",
    "record": "VARCHAR",
}


class _Row(msgspec.Struct, frozen=True):
    run_id: str
    study: str | None
    step: str | None
    role: str
    start_us: int | None
    duration_s: float | None
    energy_j: Decimal | None
    boundary: str | None
    units: Decimal | None
    unit: str | None
    record: str


def write(file: Path, runs: Sequence[Run]) -> None:
    """Write one batch; the file appears whole or not at all.

    Raises:
        MissingExtraError: If DuckDB is not installed.
        UnwritableError: If DuckDB cannot write the file.
        OSError: If the folder cannot be written.
    """
    import tempfile

    connection = _connect()
    import duckdb

    fields = ", ".join(f"'{name}': '{kind}'" for name, kind in _COLUMNS.items())
    try:
        with tempfile.TemporaryDirectory(dir=file.parent, prefix=".") as folder:
            lines = Path(folder) / "rows.json"
            lines.write_bytes(b"\n".join(msgspec.json.encode(_row(run)) for run in runs))
            whole = Path(folder) / "batch.parquet"
            source = f"read_json({_quote(lines)}, format='newline_delimited', columns={{{fields}}})"
            copy = f"COPY (SELECT * FROM {source}) TO {_quote(whole)} (FORMAT parquet)"  # noqa: S608
            connection.execute(copy)
            with whole.open("rb") as stream:
                os.fsync(stream.fileno())
            whole.replace(file)
    except duckdb.Error as error:
        # DuckDB's own error hides the system's; a full disk looks like this.
        raise UnwritableError(
            f"the batch cannot be written ({str(error).splitlines()[0]})",
            where=str(file),
            mend="free space, or give another folder with --ledger",
        ) from error
    finally:
        connection.close()


def read(files: Sequence[Path]) -> tuple[list[Run], list[Finding]]:
    """Read the records of the batches given.

    Raises:
        MissingExtraError: If DuckDB is not installed.
    """
    connection = _connect()
    import duckdb

    decoder = msgspec.json.Decoder(Run)
    runs: list[Run] = []
    findings: list[Finding] = []
    try:
        for file in files:
            try:
                query = f"SELECT record FROM read_parquet({_quote(file)})"  # noqa: S608
                rows = connection.execute(query).fetchall()
                read_here = [decoder.decode(record) for (record,) in rows]
            except (duckdb.Error, msgspec.MsgspecError) as error:
                findings.append(_damaged(file, str(error).splitlines()[0]))
                continue
            newer = [r for r in read_here if r.schema_version > SCHEMA_VERSION]
            if newer:
                findings.append(_damaged(file, "written by a newer carbonlens"))
                continue
            runs += read_here
    finally:
        connection.close()
    return runs, findings


def _row(run: Run) -> _Row:
    total = run.energy[0].energy_j if len(run.energy) == 1 else None
    return _Row(
        run_id=run.run_id,
        study=run.study,
        step=run.step,
        role=run.role,
        start_us=run.start_us,
        duration_s=run.duration_s,
        energy_j=total,
        boundary=run.boundary,
        units=run.units,
        unit=run.unit,
        record=msgspec.json.encode(run).decode(),
    )


def _damaged(file: Path, reason: str) -> Finding:
    return Finding(
        code="CL503",
        severity="error",
        message=f"batch cannot be read and is left out: {reason}",
        file=str(file),
        mend="import its source again after removing the file",
    )


def _quote(path: Path) -> str:
    # DuckDB takes no parameter for a file in COPY: our own paths, quoted as SQL text.
    return "'" + str(path).replace("'", "''") + "'"


def _connect() -> DuckDBPyConnection:
    try:
        import duckdb
    except ImportError as error:
        raise MissingExtraError("analysis", "duckdb") from error
    return duckdb.connect()
