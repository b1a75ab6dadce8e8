"""What importers of tables of runs share: numbers of cells, ids made of content, rows left out."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from carbonlens.domain.finding import Finding
from carbonlens.domain.identity import sha256_hex
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source
from carbonlens.importers.tables import exact


def number_in(row: Mapping[str, str], column: str, delimiter: str = ";") -> Decimal | None:
    """Return the exact number of a cell; ``None`` where it is unknown or there is no such column.

    Raises:
        ValueError: If it is no number, or below zero; it names the column.
    """
    text = row.get(column)
    if text is None:
        return None
    try:
        value = exact(text, delimiter=delimiter)
    except ValueError as error:
        raise ValueError(f"has {column}: {error}") from None
    if value is not None and value < 0:
        raise ValueError(f"has {column} {value}, below zero")
    return value


def whole_row(cells: Mapping[str, str] | list[str]) -> Mapping[str, str]:
    """Return a row that has a cell for every column.

    Raises:
        ValueError: If it has more or fewer.
    """
    if isinstance(cells, list):
        raise ValueError("has not as many cells as the header has columns: a torn line?")
    return cells


def content_id(prefix: str, row: Mapping[str, str]) -> str:
    """Return an id for a run that its source gives none: made of all that it says."""
    content = "\x1f".join(f"{name}={value}" for name, value in sorted(row.items()))
    return f"{prefix}-{sha256_hex(content.encode())[:24]}"


def left_out(error: ValueError, source: Source, line: int) -> Finding:
    """Return the Finding of a row that gives no run."""
    text = f"line {line} {error}; the row is left out"
    return finding("CL202", "error", text, source, line=line, mend="mend the row")
