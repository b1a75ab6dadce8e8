"""Number columns of tables with millions of rows: read in blocks, as arrays.

A block whose cells are all plain numbers is parsed at once; one that holds anything else is
parsed line by line, and what cannot be read is said. Memory holds one block at a time.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.errors import InputFileError, MissingExtraError
from carbonlens.importers.cells import UNKNOWN_WORDS
from carbonlens.importers.once import Once
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source, delimiter_of
from carbonlens.importers.tables import (
    MOST_DIGITS,
    OtherHeaders,
    exact,
    is_of_either,
    is_with_comma,
    names_of,
    split,
)

if TYPE_CHECKING:
    from carbonlens.importers.contract import Array

_WORDS: Final = sorted(UNKNOWN_WORDS - {""})
_OF_NUMBERS: Final = b"0123456789.+-eE"
_TRUTH: Final = re.compile(rb"true|false", re.IGNORECASE)
"""Words that pandas reads as numbers."""


class Numbers(msgspec.Struct, frozen=True, kw_only=True):
    """A block of rows.

    Attributes:
        line: Line of its first row.
        columns: Name to numbers, NaN where a cell holds none; all of one length.
    """

    line: int
    columns: Mapping[str, Array]


class NumberTable:
    """Number columns of one source.

    Args:
        source: The source.
        wanted: Names of the columns, lower case; those that the header lacks are left out.
        aliases: Other spellings of columns, lower case, to the names they are read by.
        header: Names of the columns of a table that has no header line.
        comment: What lines before the header begin with that are no header.
    """

    def __init__(
        self,
        source: Source,
        wanted: Sequence[str],
        *,
        aliases: Mapping[str, str] | None = None,
        header: Sequence[str] | None = None,
        comment: str | None = None,
    ) -> None:
        """Point at the source; nothing is read before the blocks are."""
        self.source = source
        self.header: list[str] = list(header or ())
        self.delimiter = ","
        self.rows = 0
        self.rejected = 0
        self.repeated_headers = 0
        self._wanted = tuple(wanted)
        self._aliases = aliases or {}
        self._others = OtherHeaders(source, self._aliases)
        self._comment = None if comment is None else comment.encode()
        self._has_header = header is None
        self._is_ready = False
        self._once = Once(source)
        self._has_commas = False
        self._points: tuple[str, int, int] | None = None

    def findings(self) -> Iterator[Finding]:
        """Yield what was wrong with rows, one Finding a kind, once all blocks were read."""
        yield from self._once.findings()
        if self._points is not None and self._has_commas:
            text, line, count = self._points
            told = (
                f"{counted(count, 'number')} such as {text!r} may have thousands: others have a decimal comma"
            )
            mend = "write such numbers with a comma, or without thousands"
            yield finding("CL218", "warning", f"{told}; read as decimals", self.source, line=line, mend=mend)

    def blocks(self) -> Iterator[Numbers]:
        """Yield the rows in blocks of some 4 MiB of text.

        Raises:
            InputFileError: If the source cannot be read, a wanted column stands twice, or another
                header follows.
            MissingExtraError: If pandas is not installed.
        """
        for first, raw in self.source.blocks():
            line, text = self._without_header(first, raw) if not self._is_ready else (first, raw)
            if not self._is_ready or not text.strip():
                continue
            places = {name: self.header.index(name) for name in self._wanted if name in self.header}
            if not places:
                return
            columns = self._at_once(text, places)
            if columns is not None and self.delimiter != ",":
                self._has_commas = self._has_commas or b"," in text
            if columns is not None:
                self._others.rows_follow()
            else:
                columns = self._by_lines(line, text, places)
            count = len(next(iter(columns.values())))
            self.rows += count
            if count:
                yield Numbers(line=line, columns=columns)

    def _without_header(self, first: int, text: bytes) -> tuple[int, bytes]:
        """Take the header from the begin of a block, and return the rest."""
        line = first
        rest = text
        while rest:
            head, _, rest = rest.partition(b"\n")
            line += 1
            plain = head.decode(errors="replace")
            if not plain.strip() or (self._comment and head.startswith(self._comment)):
                continue
            self.delimiter = delimiter_of(plain)
            self._is_ready = True
            if not self._has_header:
                return line - 1, head + b"\n" + rest
            self.header = names_of(plain, self.delimiter, self._aliases)
            while self.header and not self.header[-1]:
                self.header.pop()  # a delimiter at the end of each line
            double = [n for n in self._wanted if self.header.count(n) > 1]
            if double:
                raise InputFileError(
                    f"has the column {double[0]!r} twice", where=self.source.shown, mend="keep one of them"
                )
            return line, rest
        return line, b""

    def _at_once(self, text: bytes, places: Mapping[str, int]) -> dict[str, Array] | None:
        """Return the columns of a block of plain rows; ``None`` where it holds anything else."""
        try:
            import pandas  # type: ignore[import-untyped]  # it brings no types
        except ImportError as error:
            raise MissingExtraError("analysis", "pandas") from error
        is_plain = self._is_even(text, text.translate(None, self._of_numbers))
        if not is_plain and (_TRUTH.search(text) or not self._is_even(text, self._separators_of(text))):
            return None
        order = sorted(places.items(), key=lambda item: item[1])
        # Looking for words that mean unknown, and for blanks, takes longer than reading the numbers.
        looking = {"na_filter": False} if is_plain else {"na_values": _WORDS, "skipinitialspace": True}
        try:
            table = pandas.read_csv(
                io.BytesIO(text),
                sep=self.delimiter,
                header=None,
                usecols=[place for _, place in order],
                names=range(max(len(self.header), order[-1][1] + 1)),
                index_col=False,
                dtype="float64",
                decimal="," if self.delimiter != "," else ".",
                quoting=3,
                **looking,
            )
        except (ValueError, pandas.errors.ParserError):
            return None
        found = {name: table[place].to_numpy() for name, place in order}
        return found if not any(_is_beyond(values) for values in found.values()) else None

    @property
    def _of_numbers(self) -> bytes:
        """Bytes that plain numbers are made of."""
        return _OF_NUMBERS + (b"," if self.delimiter != "," else b"")

    def _separators_of(self, text: bytes) -> bytes:
        ours = {ord("\n"), ord(self.delimiter)}
        return text.translate(None, bytes(b for b in range(256) if b not in ours))

    def _is_even(self, text: bytes, separators: bytes) -> bool:
        """Whether each line of a block has a cell a column: a line that was cut off has fewer.

        Args:
            text: The block.
            separators: What is left of it without its cells.
        """
        mark, width = self.delimiter.encode(), len(self.header) - 1
        line = mark * width + b"\n"
        if separators == line * (len(separators) // len(line)):
            return True
        # A delimiter at the end of each line makes one more.
        line = mark + line
        count = len(separators) // len(line)
        return separators == line * count and text.count(mark + b"\n") == count

    def _by_lines(self, first: int, text: bytes, places: Mapping[str, int]) -> dict[str, Array]:
        import numpy as np

        found: dict[str, list[float]] = {name: [] for name in places}
        width = len(self.header)
        for line, raw in enumerate(text.decode(errors="replace").split("\n"), first):
            if not raw.strip() or (self._comment and raw.encode().startswith(self._comment)):
                continue
            cells = split(raw, self.delimiter)
            while len(cells) > width and not cells[-1]:
                cells.pop()
            if self._has_header and self._is_header(cells):
                self.repeated_headers += 1
                self._others.forget()
                continue
            self._others.look(line, cells, self.header)
            try:
                if len(cells) != width:
                    raise ValueError("has not as many cells as the header has columns")
                row = {name: self._number(cells[place], line) for name, place in places.items()}
            except ValueError as error:
                self.rows += 1
                self.rejected += 1
                why = str(error) if str(error).startswith("has") else "holds a cell that is no number"
                self._once.say("CL202", "error", f"a row is left out: it {why}", line, "mend the row")
                continue
            for name, value in row.items():
                found[name].append(value)
        return {name: np.array(values, dtype=np.float64) for name, values in found.items()}

    def _number(self, cell: str, line: int) -> float:
        value = exact(cell, delimiter=self.delimiter)
        if self.delimiter != ",":
            self._has_commas = self._has_commas or is_with_comma(cell)
            if is_of_either(cell):
                text, first, count = self._points or (cell, line, 0)
                self._points = text, first, count + 1
        return math.nan if value is None else float(value)

    def _is_header(self, cells: Sequence[str]) -> bool:
        return names_of(self.delimiter.join(cells), self.delimiter, self._aliases)[: len(self.header)] == (
            self.header
        )


def _is_beyond(values: Array) -> bool:
    """Whether any number is one that ``exact`` refuses."""
    import numpy as np

    return bool((np.abs(values) >= 10.0**MOST_DIGITS).any())
