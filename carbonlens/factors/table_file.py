"""The factor table as a file: CSV, one row a figure, the header naming FactorRow's fields.

Columns may stand in any order, and those of fields with a default may be left out. An
empty cell is a field that is not stated. One column is no field: ``pedigree`` gives the
row's ``u_relative`` (``factors.pedigree``). There are no comments: a table says everything
in its rows.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec

from carbonlens.domain import decoding
from carbonlens.domain.counting import counted
from carbonlens.domain.factor_row import FactorRow
from carbonlens.errors import ConfigError
from carbonlens.factors import pedigree

FIELDS: Final[tuple[str, ...]] = FactorRow.__struct_fields__
"""Columns of a table, in the order they are written."""

COLUMNS: Final[tuple[str, ...]] = (*FIELDS, pedigree.COLUMN)
"""Columns that a table is read with."""

REQUIRED: Final[tuple[str, ...]] = tuple(f.name for f in msgspec.structs.fields(FactorRow) if f.required)
"""Columns no table can be without."""


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of one file, with the place each was read from.

    Attributes:
        where: File, as messages name it.
        rows: The rows, in the order of the file.
        places: Of each row: ``line 7``, or ``factor 3`` in TOML.
    """

    where: str
    rows: tuple[FactorRow, ...]
    places: tuple[str, ...]

    def placed(self) -> Iterator[tuple[str, FactorRow]]:
        """Yield each row with its place as a message names it."""
        for place, row in zip(self.places, self.rows, strict=True):
            yield f"{self.where}, {place}", row


def read_csv(content: str | bytes, *, where: str) -> Table:
    """Return the rows of a table.

    Args:
        content: The file; bytes are UTF-8, with or without a byte order mark.
        where: File, as errors are to name it.

    Raises:
        ConfigError: If it is no such table; the text names the line and the column.
    """
    reader = csv.reader(io.StringIO(_text(content, where), newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(header, where)
        lines: list[int] = []
        plain: list[dict[str, str]] = []
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                raise _cells_fault(len(cells), len(header), f"{where}, line {reader.line_num}")
            lines.append(reader.line_num)
            row = dict(zip(header, cells, strict=True))
            plain.append({name: cell for name, cell in row.items() if cell} if "" in cells else row)
    except csv.Error as error:
        raise ConfigError(
            f"is no CSV: {error}", where=f"{where}, line {reader.line_num}", mend="mend that line"
        ) from error
    return records(plain, where=where, places=[f"line {n}" for n in lines])


def records(plain: Sequence[dict[str, Any]], *, where: str, places: Sequence[str]) -> Table:
    """Return plain rows as records.

    Args:
        plain: Of each row its fields, as texts or as TOML's values.
        where: File, as errors are to name it.
        places: Of each row its place in the file.

    Raises:
        ConfigError: If a row is none; the text names its place and the field.
    """
    plain = [
        pedigree.with_sigma(row, f"{where}, {place}") if pedigree.COLUMN in row else row
        for row, place in zip(plain, places, strict=True)
    ]
    try:
        rows = decoding.convert(plain, tuple[FactorRow, ...], strict=False)
    except (msgspec.ValidationError, ArithmeticError):
        # Row by row, because only then is the place of the fault known.
        rows = tuple(_record(row, f"{where}, {place}") for row, place in zip(plain, places, strict=True))
    return Table(where=where, rows=rows, places=tuple(places))


def write_csv(rows: Iterable[FactorRow]) -> str:
    """Return rows as a table that ``read_csv`` reads back the same; columns nobody fills are left out."""
    held = list(rows)
    names = [n for n in FIELDS if n in REQUIRED or any(getattr(row, n) not in {None, ""} for row in held)]
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_cell(getattr(row, name)) for name in names] for row in held)
    return text.getvalue()


def _text(content: str | bytes, where: str) -> str:
    if isinstance(content, str):
        return content.removeprefix("\ufeff")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError("is not UTF-8 text", where=where, mend="save it as UTF-8") from error


def _check_header(header: Sequence[str], where: str) -> None:
    place, listed = f"{where}, line 1", ", ".join(COLUMNS)
    missing = [name for name in REQUIRED if name not in header]
    if missing:
        raise ConfigError(
            f"lacks the column {missing[0]}",
            where=place,
            mend=f"the first line names columns out of {listed}",
        )
    for name in header:
        if name not in COLUMNS:
            raise ConfigError(f"unknown column {name!r}", where=place, mend=f"use columns out of {listed}")
        if header.count(name) > 1:
            raise ConfigError(f"names the column {name} twice", where=place, mend="leave one of them out")


def _cells_fault(found: int, wanted: int, place: str) -> ConfigError:
    return ConfigError(
        f"has {counted(found, 'cell')} where the first line names {counted(wanted, 'column')}",
        where=place,
        mend="quote a cell that holds a comma, and leave unknown ones empty",
    )


def _record(plain: dict[str, Any], place: str) -> FactorRow:
    try:
        return decoding.convert(plain, FactorRow, strict=False)
    except (msgspec.ValidationError, ArithmeticError) as error:
        raise ConfigError(str(error), where=place, mend="mend that cell") from error


def _cell(value: object) -> str:
    if value is None:
        return ""
    # No exponent: 0.00001 stays as a reader would write it.
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
