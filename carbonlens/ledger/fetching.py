"""Fetching: the rows of a query, exact decimals among them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from carbonlens.errors import RecordError

if TYPE_CHECKING:
    import narwhals as nw
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

    from carbonlens.ledger.frames import View


def fetch(relation: DuckDBPyRelation, files: Sequence[Path], ledger: Path) -> list[tuple[Any, ...]]:
    """Run a query and return its rows as DuckDB gives them.

    Args:
        relation: The query.
        files: Those that it may read.
        ledger: The ledger's folder, for messages.

    Raises:
        RecordError: If a file went away since it was listed, or is damaged.
    """
    import duckdb

    try:
        found: list[tuple[Any, ...]] = relation.fetchall()
    except duckdb.Error as error:
        raise unread(error, files, ledger) from error
    return found


def run(
    connection: DuckDBPyConnection, query: str, files: Sequence[Path], ledger: Path
) -> list[tuple[Any, ...]]:
    """Run an SQL query of our own and return its rows; further arguments as of ``fetch``.

    Raises:
        RecordError: As of ``fetch``.
    """
    import duckdb

    try:
        found: list[tuple[Any, ...]] = connection.execute(query).fetchall()
    except duckdb.Error as error:
        raise unread(error, files, ledger) from error
    return found


@contextmanager
def asking(view: View) -> Iterator[None]:
    """Make DuckDB's errors within ours: it may look at files of a view as soon as a query is put together.

    Args:
        view: Of which is asked.

    Raises:
        RecordError: As of ``fetch``.
    """
    try:
        yield
    except Exception as error:  # which of them are DuckDB's is told below, and that is imported late
        told_of_it = told_of(error, view.files, view.ledger)
        if told_of_it is None:
            raise
        raise told_of_it from error


def told_of(error: BaseException | None, files: Sequence[Path], ledger: Path) -> RecordError | None:
    """Return our error for one of DuckDB's about files, ``None`` for any other; arguments as of ``fetch``."""
    duckdb = sys.modules.get("duckdb")
    if duckdb is None or not isinstance(error, duckdb.IOException):
        return None
    return unread(error, files, ledger)


def unread(error: Exception, files: Sequence[Path], ledger: Path) -> RecordError:
    """Return the error for files that DuckDB could not read; arguments as of ``fetch``."""
    gone = [f for f in files if not f.exists()]
    if gone:
        return RecordError("the file went away while it was read", where=str(gone[0]), mend="run it again")
    return RecordError(
        f"a file of the ledger cannot be read ({str(error).splitlines()[0]})",
        where=str(ledger),
        mend="carbonlens ledger verify names what is damaged",
    )


def sql_of(frame: nw.LazyFrame[Any]) -> str:
    """Return a query as text."""
    query: str = frame.to_native().sql_query()
    return query


class Columns(NamedTuple):
    """Columns of a query, and which of them are decimals: those come as texts.

    DuckDB takes three times as long to make decimals of them itself.
    """

    names: tuple[str, ...]
    exact: tuple[bool, ...]

    def rows(self, found: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
        """Return rows by column, decimals exact.

        Args:
            found: As DuckDB gives them.
        """
        columns: list[Sequence[Any]] = list(zip(*found, strict=True))
        columns = [_decimals(c) if is_exact else c for c, is_exact in zip(columns, self.exact, strict=False)]
        return [dict(zip(self.names, row, strict=True)) for row in zip(*columns, strict=True)]


def told(relation: DuckDBPyRelation) -> tuple[DuckDBPyRelation, Columns]:
    """Return a query whose decimals are texts, and its columns."""
    names = tuple(relation.columns)
    exact = tuple(str(kind).startswith("DECIMAL") for kind in relation.types)
    each = (_as_text(n) if is_exact else _name(n) for n, is_exact in zip(names, exact, strict=True))
    return relation.project(", ".join(each)), Columns(names, exact)


def rows(relation: DuckDBPyRelation, files: Sequence[Path], ledger: Path) -> list[dict[str, Any]]:
    """Run a query and return its rows by column, decimals exact; arguments as of ``fetch``.

    Raises:
        RecordError: As of ``fetch``.
    """
    query, columns = told(relation)
    return columns.rows(fetch(query, files, ledger))


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _as_text(column: str) -> str:
    return f"{_name(column)}::VARCHAR AS {_name(column)}"


def _decimals(texts: Sequence[str | None]) -> Sequence[Decimal | None]:
    if None not in texts:
        return list(map(Decimal, texts))  # type: ignore[arg-type]  # none of them is None
    return [None if text is None else Decimal(text) for text in texts]
