"""Parquet files, written whole or not at all, and the records they hold, read back by DuckDB."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from carbonlens.errors import CarbonlensError, MissingExtraError, RecordError, UnwritableError
from carbonlens.ledger.atomic import NEW, ROWS, sync_folder, temporary_folder

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class UnreadableParquetError(Exception):
    """A file is no Parquet file that DuckDB can read; for the caller to turn into a Finding."""


def write(file: Path, columns: Mapping[str, str], rows: Iterable[object]) -> None:
    """Write rows, in their order; the file appears whole or not at all.

    Args:
        file: Where; the folder is made if need be.
        columns: Name to DuckDB type.
        rows: Records or mappings with these fields, as JSON can hold them.

    Raises:
        MissingExtraError: If DuckDB is not installed.
        RecordError: If a value does not fit its column.
        UnwritableError: If DuckDB cannot write the file.
        OSError: If the folder cannot be written.
    """
    with whole(file, connect_to_one) as (connection, folder):
        source = rows_source(folder / ROWS, columns, rows)
        connection.execute(copied(f"SELECT * FROM {source}", folder))  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there


def merge(files: Sequence[Path], file: Path, *, order: Sequence[str]) -> None:
    """Put files of the same columns into one, sorted; it appears whole or not at all.

    Raises:
        MissingExtraError: If DuckDB is not installed.
        UnwritableError: If DuckDB cannot write the file, or read one of the files.
        OSError: If the folder cannot be written.
    """
    listed = ", ".join(quoted(f) for f in files)
    query = f"SELECT * FROM read_parquet([{listed}]) ORDER BY {', '.join(order)}"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
    with whole(file) as (connection, folder):
        connection.execute(copied(query, folder))


def copied(query: str, folder: Path, *options: str) -> str:
    """Return the SQL that writes what a query gives to the file of a folder that ``whole`` lends."""
    said = ", ".join(("FORMAT parquet", "COMPRESSION zstd", *options))
    return f"COPY ({query}) TO {quoted(folder / NEW)} ({said})"


@contextmanager
def whole(
    file: Path, connecting: Callable[[], DuckDBPyConnection] | None = None
) -> Iterator[tuple[DuckDBPyConnection, Path]]:
    """Lend a DuckDB and a folder; what is written there under ``NEW`` then becomes the file.

    Args:
        file: To be written.
        connecting: Opens the DuckDB, which is one of its own when ``None``.

    Raises:
        MissingExtraError: If DuckDB is not installed.
        UnwritableError: If DuckDB cannot write there.
        RecordError: If a value does not fit its column.
        OSError: If the folder cannot be written.
    """
    connection = (connecting or connect)()
    import duckdb

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with temporary_folder(file) as folder:
            yield connection, folder
            new = folder / NEW
            with new.open("rb") as written:
                os.fsync(written.fileno())
            new.replace(file)
        sync_folder(file.parent)
    except duckdb.Error as error:
        raise _fault(file, error) from error
    finally:
        connection.close()


def _fault(file: Path, error: Exception) -> CarbonlensError:
    """Return what DuckDB's own error comes down to; it hides the system's."""
    import duckdb

    said = str(error).splitlines()[0]
    unfit = isinstance(error, duckdb.ConversionException | duckdb.OutOfRangeException)
    if unfit or "JSON transform error" in said:
        return RecordError(
            f"a value does not fit its column ({said})",
            where=str(file),
            mend="check the figures and their units; nothing was written",
        )
    what = "there is not enough memory" if isinstance(error, duckdb.OutOfMemoryException) else None
    return UnwritableError(
        f"{what or 'the file cannot be written'} ({said})",
        where=str(file),
        mend="free memory" if what else "free space, or give another folder with --ledger",
    )


def rows_source(lines: Path, columns: Mapping[str, str], rows: Iterable[object]) -> str:
    """Write rows as lines of JSON and return the SQL that reads them with these types.

    Raises:
        OSError: If the file cannot be written.
    """
    with lines.open("wb") as stream:
        for row in rows:
            stream.write(msgspec.json.encode(row) + b"\n")
    fields = ", ".join(f"{quoted(name)}: {quoted(kind)}" for name, kind in columns.items())
    return f"read_json({quoted(lines)}, format='newline_delimited', columns={{{fields}}})"


def load(
    connection: DuckDBPyConnection, name: str, columns: Mapping[str, str], rows: Iterable[object]
) -> None:
    """Load rows into a temporary table, in the place of one of that name.

    Args:
        connection: Whose it is.
        name: Of the table.
        columns: Name to DuckDB type.
        rows: Records or mappings that JSON can hold.
    """
    import tempfile

    held = iter(rows)
    first = next(held, None)
    if first is None:
        # Mostly there are none: then no file is written to be read.
        fields = ", ".join(f'"{n}" {kind}' for n, kind in columns.items())
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} ({fields})")
        return
    with tempfile.TemporaryDirectory() as folder:
        source = rows_source(Path(folder) / "rows.json", columns, chain((first,), held))
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM {source}")  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there


def _said(error: Exception, file: Path) -> str:
    """Return what DuckDB says, with the file's name alone: its place is told beside it."""
    return str(error).splitlines()[0].replace(str(file), file.name)


def texts(connection: DuckDBPyConnection, file: Path, column: str = "record") -> list[str]:
    """Return one text column of a file, in the order of its rows, without empty cells.

    Raises:
        FileNotFoundError: If the file is gone.
        UnreadableParquetError: If it cannot be read as Parquet, or lacks the column.
        OSError: If it may not be read.
    """
    import duckdb

    with file.open("rb"):
        pass  # The system's own error says more than DuckDB's.
    try:
        query = f"SELECT {column} FROM read_parquet({quoted(file)}) WHERE {column} IS NOT NULL"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
        return [text for (text,) in connection.execute(query).fetchall()]
    except duckdb.Error as error:
        raise UnreadableParquetError(_said(error, file)) from error


def columns_of(connection: DuckDBPyConnection, file: Path) -> Sequence[str]:
    """Return the names of a file's columns.

    Raises:
        UnreadableParquetError: If it cannot be read as Parquet.
    """
    import duckdb

    try:
        found = connection.execute(f"DESCRIBE SELECT * FROM read_parquet({quoted(file)})")  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
        return [name for name, *_ in found.fetchall()]
    except duckdb.Error as error:
        raise UnreadableParquetError(_said(error, file)) from error


def quoted(value: Path | str) -> str:
    """Return a text as an SQL literal.

    DuckDB takes no parameter for a file in COPY or for a column's type.
    """
    return "'" + str(value).replace("'", "''") + "'"


_ENGINE: Final[ContextVar[list[DuckDBPyConnection] | None]] = ContextVar("one engine", default=None)


@contextmanager
def one_engine() -> Iterator[None]:
    """Have all that call ``connect_to_one`` within share one DuckDB, which starts with the first of them.

    It takes far longer to start than what is asked of it about a quarter without runs.
    """
    engine: list[DuckDBPyConnection] = []
    token = _ENGINE.set(engine)
    try:
        yield
    finally:
        _ENGINE.reset(token)
        for connection in engine:
            connection.close()


def connect() -> DuckDBPyConnection:
    """Open an empty DuckDB.

    Raises:
        MissingExtraError: If it is not installed.
    """
    try:
        import duckdb
    except ImportError as error:
        raise MissingExtraError("analysis", "duckdb") from error
    connection = duckdb.connect()
    # A slow query would draw a bar into what a command prints.
    connection.execute("SET enable_progress_bar = false")
    return connection


def connect_to_one() -> DuckDBPyConnection:
    """Open a connection to the DuckDB that ``one_engine`` shares, else to one of its own.

    For who makes nothing there but what is temporary, which is that of one connection.

    Raises:
        MissingExtraError: As ``connect``.
    """
    engine = _ENGINE.get()
    if engine is None:
        return connect()
    if not engine:
        engine.append(connect())
    connection = engine[0].cursor()
    connection.execute("SET enable_progress_bar = false")
    return connection
