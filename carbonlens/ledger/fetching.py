"""Fetching: the rows of a query, exact decimals among them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from carbonlens.ledger.went_away import unread

if TYPE_CHECKING:
    import narwhals as nw
    from duckdb import DuckDBPyConnection, DuckDBPyRelation


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
