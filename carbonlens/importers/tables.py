"""Tables of other tools: delimiters, decimal commas, headers that repeat, rows that are torn.

Each line is parsed by itself, so that a torn one with an open quote cannot swallow those after
it. Formats whose cells hold line breaks read with ``csv`` themselves.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Final

from carbonlens.errors import InputFileError
from carbonlens.importers.cells import UNKNOWN_WORDS
from carbonlens.importers.sources import Source, delimiter_of

_COMMA: Final = re.compile(r"^\s*[+-]?\d+,\d+(?:[eE][+-]?\d+)?\s*$")
_THOUSANDS: Final = re.compile(r"^[+-]?\d{1,3}(?:[ \u00a0\u202f'’]\d{3})+(?:[.,]\d+)?$")
_PLAIN: Final = re.compile(r"[0-9]{1,30}(?:\.[0-9]+)?")
"""A number of which nothing is in doubt, as nearly all cells hold: of no more than ``MOST_DIGITS``."""

_NUMBER: Final = re.compile(r"[+-]?\d[\d.,]*(?:[eE][+-]?\d+)?")
_EITHER: Final = re.compile(r"^[+-]?\d{1,3},\d{3}$")
_POINT: Final = re.compile(r"^[+-]?[1-9]\d{0,2}\.\d{3}$")
"""A number of decimals or of thousands, by what marks decimals in others."""

_UNIT: Final = re.compile(r"^([+-]?[\d.,]+(?:[eE][+-]?\d+)?)(?![\d.,]|[eE][+-]?\d)\s*([^\d\s].*)$")

MOST_DIGITS: Final = 30
"""Digits before the point from which no figure of this world is."""


class Table:
    """Rows of one source, by the names of its columns.

    Args:
        source: The source.
        aliases: Other spellings of columns, lower case, to the names they are read by.
        comment: What lines begin with that are no rows.
    """

    def __init__(
        self, source: Source, *, aliases: Mapping[str, str] | None = None, comment: str | None = None
    ) -> None:
        """Point at the source; nothing is read before the rows are."""
        self.source = source
        self.header: list[str] = []
        self.header_line = 0
        self.repeated_headers = 0
        self.delimiter = ","
        self._aliases = aliases or {}
        self._others = OtherHeaders(source, self._aliases)
        self._comment = comment

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield line number and stripped cells of each row that is neither blank nor the header again.

        A row may have fewer or more cells than the header has columns.

        Raises:
            InputFileError: If the source cannot be read, a column stands twice, or another header follows.
        """
        for line, text in self.source.lines():
            cells = self.cells_of(line, text)
            if cells is not None:
                yield line, cells

    def cells_of(self, line: int, text: str) -> list[str] | None:
        """Return the stripped cells of a line; ``None`` of a blank one, and of the header, which is kept.

        Raises:
            InputFileError: If a column stands twice, or the line is another header.
        """
        if not text.strip() or (self._comment and text.startswith(self._comment)):
            return None
        if not self.header:
            self._take_header(line, text)
            return None
        cells = split(text, self.delimiter)
        if self._is_header(cells):
            self.repeated_headers += 1
            self._others.forget()
            return None
        self._others.look(line, cells, self.header)
        return cells if any(cells) else None

    def dicts(self) -> Iterator[tuple[int, dict[str, str] | list[str]]]:
        """Yield each row as a mapping of columns to cells; one whose size is wrong as its cells.

        Raises:
            InputFileError: As of ``rows``.
        """
        for line, cells in self.rows():
            yield line, self.named(cells)

    def named(self, cells: list[str]) -> dict[str, str] | list[str]:
        """Return the cells of a row by their columns; those of a row whose size is wrong as they are."""
        while len(cells) > len(self.header) and not cells[-1]:
            cells.pop()  # a delimiter at the end of a line makes an empty cell
        return dict(zip(self.header, cells, strict=True)) if len(cells) == len(self.header) else cells

    def _take_header(self, line: int, text: str) -> None:
        self.delimiter = delimiter_of(text)
        self.header = names_of(text, self.delimiter, self._aliases)
        self.header_line = line
        while self.header and not self.header[-1]:
            self.header.pop()
        double = sorted({name for name in self.header if name and self.header.count(name) > 1})
        if double:
            raise InputFileError(
                f"has the column {double[0]!r} twice",
                where=f"{self.source.shown}:{line}",
                mend="keep one of them, or rename it",
            )

    def _is_header(self, cells: Sequence[str]) -> bool:
        first = cells[0].strip('"').lower()
        if self._aliases.get(first, first) != self.header[0]:
            return False
        plain = [self._aliases.get(c.strip('"').lower(), c.strip('"').lower()) for c in cells]
        return plain[: len(self.header)] == self.header


class OtherHeaders:
    """Looks for other headers below the one of a table: of two tables that were joined.

    The begin of the header may be one that was cut off where its log ended, or that of a table of fewer
    columns: rows below it tell.

    Args:
        source: The table.
        aliases: Other spellings of its columns.
    """

    def __init__(self, source: Source, aliases: Mapping[str, str]) -> None:
        """Start with none."""
        self._source = source
        self._aliases = aliases
        self._begun = 0

    def look(self, line: int, cells: Sequence[str], header: Sequence[str]) -> None:
        """Look at a line that is not the header again.

        Raises:
            InputFileError: If it is another one, or a row below what is not cut off, but is another one.
        """
        if is_other_header(cells, header, self._aliases):
            raise other_header(self._source.shown, line)
        if names_columns(cells, header, self._aliases):
            self._begun = line
        elif any(cells):
            self.rows_follow()

    def rows_follow(self) -> None:
        """Say that rows follow.

        Raises:
            InputFileError: If they stand below the begin of a header.
        """
        if self._begun:
            raise other_header(self._source.shown, self._begun)

    def forget(self) -> None:
        """The header came again, whole."""
        self._begun = 0


def is_other_header(
    cells: Sequence[str], header: Sequence[str], aliases: Mapping[str, str] | None = None
) -> bool:
    """Tell whether a line that is not the header again names columns, and is not the begin of it.

    Args:
        cells: Of the line.
        header: Names of the columns, lower case.
        aliases: Other spellings of them.
    """
    return names_columns(cells, header, aliases) and not _is_begin_of(_plain_names(cells, aliases), header)


def names_columns(
    cells: Sequence[str], header: Sequence[str], aliases: Mapping[str, str] | None = None
) -> bool:
    """Tell whether a line names columns, and holds no number.

    It does where its first cell is that of the header, or half of its cells are of it.

    Args:
        cells: Of the line.
        header: Names of the columns, lower case.
        aliases: Other spellings of them.
    """
    plain = _plain_names(cells, aliases)
    # Names that are no column's are words for a figure that failed.
    if any(map(_NUMBER.fullmatch, cells)) or any(c in UNKNOWN_WORDS and c not in header for c in plain if c):
        return False
    told = [name for name in plain if name]
    is_first = len(told) > 1 and bool(plain[0]) and plain[0] == header[0]
    return is_first or 0 < len(told) <= 2 * sum(name in header for name in told)


def _is_begin_of(names: Sequence[str], header: Sequence[str]) -> bool:
    *whole, last = names
    is_begin = len(whole) < len(header) and whole == list(header[: len(whole)])
    return is_begin and header[len(whole)].startswith(last)


def _plain_names(cells: Sequence[str], aliases: Mapping[str, str] | None) -> list[str]:
    plain = [cell.strip('"').strip().lower() for cell in cells]
    return [aliases.get(name, name) for name in plain] if aliases else plain


def other_header(shown: str, line: int) -> InputFileError:
    """Return the error of a line that names other columns than the header, or in another order.

    Rows after it would be read by the columns before it: figures of another column, and no word of it.

    Args:
        shown: The file.
        line: The line.
    """
    return InputFileError(
        f"has another header on line {line}, of other columns or in another order, so that two tables "
        "were joined",
        where=shown,
        mend="part the file before that line, and import both parts",
    )


def split(text: str, delimiter: str) -> list[str]:
    """Return the stripped cells of one line."""
    if '"' not in text:
        return [cell.strip() for cell in text.split(delimiter)]
    try:
        return [cell.strip() for cell in next(csv.reader([text], delimiter=delimiter, skipinitialspace=True))]
    except csv.Error:
        return [cell.strip() for cell in text.split(delimiter)]


def names_of(text: str, delimiter: str, aliases: Mapping[str, str] | None = None) -> list[str]:
    """Return the column names of a header line, lower case, in the spelling they are read by."""
    plain = [cell.strip('"').strip().lower() for cell in split(text, delimiter)]
    return [(aliases or {}).get(name, name) for name in plain]


def exact(text: str, *, delimiter: str = ";") -> Decimal | None:
    """Return the exact number of a cell: ``1.5``, ``1,5``, ``1 234.5``, ``1,234.5``; ``None`` if unknown.

    One comma alone parts decimals, as where semicolons part cells; a dot after commas tells that
    they part thousands.

    Args:
        text: The cell.
        delimiter: What parts cells. Where that is a comma, ``1,234`` may be either.

    Raises:
        ValueError: If it is no finite number, or may be one of two.
    """
    if _PLAIN.fullmatch(text):
        return Decimal(text)
    bare = text.strip()
    if bare.lower() in UNKNOWN_WORDS:
        return None
    if _THOUSANDS.match(bare):
        bare = re.sub(r"[ \u00a0\u202f'’]", "", bare)
    if "," in bare:
        if delimiter == "," and _EITHER.match(bare):
            raise ValueError(f"{text!r} may have a decimal comma or thousands")
        bare = bare.replace(",", ".") if _COMMA.match(bare) else _without_thousands(bare)
    try:
        if "_" in bare:
            raise InvalidOperation
        value = Decimal(bare)
    except InvalidOperation:
        raise ValueError(f"{text!r} is no number") from None
    if not value.is_finite():
        raise ValueError(f"{text!r} is not finite")
    if value and value.adjusted() >= MOST_DIGITS:
        raise ValueError(f"{text!r} is beyond any plausible figure")
    return value


def is_with_comma(text: str) -> bool:
    """Tell whether a cell has a decimal comma."""
    return bool(_COMMA.match(text))


def is_of_either(text: str) -> bool:
    """Tell whether a cell's point may mark thousands, where others have a decimal comma."""
    return bool(_POINT.match(text))


def with_unit(text: str) -> tuple[str, str]:
    """Return number and unit of a cell such as ``22.89 W``; the unit is empty where there is none."""
    found = _UNIT.match(text.strip())
    return (found[1], found[2].strip()) if found else (text.strip(), "")


def _without_thousands(text: str) -> str:
    if re.match(r"^[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?$", text):
        return text.replace(",", "")
    if re.match(r"^[+-]?\d{1,3}(?:\.\d{3})+,\d+$", text):
        return text.replace(".", "").replace(",", ".")
    return text
