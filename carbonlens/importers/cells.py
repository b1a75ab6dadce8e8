"""Cells of tables that people type: encodings, delimiters, numbers, words and times."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Final

from carbonlens.domain.finding import Finding
from carbonlens.domain.units import US_PER_S

UNKNOWN_WORDS: Final = frozenset(
    {
        *("", "n/a", "na", "n.a.", "nan", "null", "none", "unknown", "-", "--", "[n/a]", "not available"),
        *("[not supported]", "not supported", "[unknown error]"),
    }
)
_GROUPS_OF_COMMAS: Final = re.compile(r"[+-]?[1-9]\d{0,2}(?:(?:,\d{3})+\.\d*|(?:,\d{3}){2,})", re.ASCII)
_GROUPS_OF_POINTS: Final = re.compile(r"[+-]?[1-9]\d{0,2}(?:(?:\.\d{3})+,\d*|(?:\.\d{3}){2,})", re.ASCII)
"""Numbers with thousands apart, of which only one reading is possible."""

_OPEN: Final = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}", re.ASCII)
"""A number of decimals or of thousands."""

_DECIMAL: Final = re.compile(r"[+-]?(?:\d+[.,]\d*|[.,]\d+)(?:[eE][+-]?\d+)?", re.ASCII)

_FIRST_YEAR: Final = 1971
_LAST_YEAR: Final = 2200

Row = Mapping[str, str]


class RowError(Exception):
    """One row cannot become a record; the text says why."""


def decode(content: bytes, *, whole: bool) -> str:
    """Return UTF-8 or UTF-16 text; bad bytes are let pass in a head that was cut off.

    Raises:
        UnicodeDecodeError: If the whole content is neither.
    """
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", errors="strict" if whole else "ignore")
    return content.decode("utf-8-sig", errors="strict" if whole else "ignore")


def delimiter_of(line: str) -> str:
    """Return what separates the cells of a header line: comma, semicolon or tab."""
    return max(",;\t", key=line.count)


def text_of(row: Row, column: str) -> str | None:
    """Return the cell's text; ``None`` where it is empty or a word for unknown."""
    value = row.get(column, "").strip()
    return None if value.lower() in UNKNOWN_WORDS else value


def stated(row: Row) -> dict[str, str]:
    """Return the cells that say something, without blanks around them."""
    return {
        name: bare
        for name, value in row.items()
        if value and (bare := value.strip()).lower() not in UNKNOWN_WORDS
    }


def number_of(row: Row, column: str, *, minimum: Decimal | None = None) -> Decimal | None:
    """Return the cell's exact number; ``None`` where it is unknown.

    Raises:
        RowError: If it is no finite number, too small or beyond any plausible size.
    """
    text = text_of(row, column)
    if text is None:
        return None
    try:
        if "_" in text:
            raise InvalidOperation
        value = Decimal(text)
    except InvalidOperation:
        raise RowError(f"has {column} {text!r}, which is no number") from None
    if not value.is_finite():
        raise RowError(f"has {column} {text!r}, which is not finite")
    if minimum is not None and value < minimum:
        raise RowError(f"has {column} {text}, which is below {minimum}")
    if value and not -12 <= value.adjusted() <= 17:
        raise RowError(f"has {column} {text}, beyond any plausible figure")
    return value


def integer_of(row: Row, column: str) -> int | None:
    """Return the cell's whole number.

    Raises:
        RowError: If it is none.
    """
    value = number_of(row, column, minimum=Decimal(0))
    if value is None:
        return None
    if value != value.to_integral_value():
        raise RowError(f"has {column} {value}, which is no whole number")
    return int(value)


def word_of(row: Row, column: str, allowed: tuple[str, ...]) -> str | None:
    """Return the cell's word of a closed list, in the list's spelling.

    Raises:
        RowError: If it is not in the list.
    """
    text = text_of(row, column)
    if text is None:
        return None
    for word in allowed:
        if text.lower() == word.lower():
            return word
    raise RowError(f"has {column} {text!r}; known are {', '.join(allowed)}")


def with_decimal_point(value: str) -> str:
    """Turn the decimal comma of a number into a point; other text stays as it is."""
    if value.count(",") != 1 or "." in value:
        return value
    bare = value.strip().lstrip("+-").replace(",", "").lower().replace("e", "").replace("-", "")
    return value.replace(",", ".") if bare.isdigit() else value


class Decimals:
    """How the numbers of a table mark decimals, as told by those that can be read in one way only.

    ``1.234`` is a number of thousands in a table that has ``100,5``, or may be one: nobody can tell.
    """

    def __init__(self) -> None:
        """Start without a number."""
        self._marks: set[str] = set()
        self._open: dict[str, tuple[str, str, int]] = {}

    def see(self, column: str, value: str, line: int) -> None:
        """Take a number into account; other text tells nothing."""
        text = value.strip()
        if _GROUPS_OF_COMMAS.fullmatch(text):
            self._marks.add(".")
        elif _GROUPS_OF_POINTS.fullmatch(text):
            self._marks.add(",")
        elif _OPEN.fullmatch(text):
            self._open.setdefault("." if "." in text else ",", (column, text, line))
        elif _DECIMAL.fullmatch(text):
            self._marks.add("." if "." in text else ",")

    def undecided(self, file: str, delimiter: str) -> Finding | None:
        """Return what is said of numbers that no other one decides on; they are read as decimals.

        Semicolons part cells where commas mark decimals: there a comma is sure, and a point is not.

        Args:
            file: The table.
            delimiter: What parts its cells.
        """
        unsure = [mark for mark in (".", ",") if mark == "." or delimiter != ";"]
        mark = next((m for m in unsure if m in self._open), None)
        if mark is None or self._marks or len(self._open) > 1:
            return None
        column, text, line = self._open[mark]
        decimal, thousands = text.replace(",", "."), text.replace(mark, "")
        told = (
            f"{column} {text!r} may be {decimal} or {thousands}, and no other number of the table tells: "
            f"read as {decimal}, and all like it as decimals"
        )
        mend = f"write {decimal}0 if it is right, {thousands} if not; or let commas part the cells"
        return Finding(
            code="CL218", severity="warning", message=told, file=file, line=line or None, mend=mend
        )

    def plain(self, column: str, value: str) -> str:
        """Return a number with a decimal point and no thousands; other text as it is.

        Raises:
            RowError: If it may be one of two numbers.
        """
        text = value.strip()
        if _OPEN.fullmatch(text):
            own, other = ".," if "." in text else ",."
            if other in self._marks or (own not in self._marks and other in self._open):
                either = f"{text.replace(',', '.')} or {text.replace(own, '')}"
                beside = "a decimal comma" if other == "," else "a decimal point"
                raise RowError(f"has {column} {text!r}, which may be {either}: others have {beside}")
        if _GROUPS_OF_COMMAS.fullmatch(text):
            return text.replace(",", "")
        if _GROUPS_OF_POINTS.fullmatch(text):
            return text.replace(".", "").replace(",", ".")
        return with_decimal_point(value)


def start_us_of(row: Row) -> int | None:
    """Return ``start_utc`` in UTC microseconds.

    Raises:
        RowError: If it is no ISO 8601 time of this age.
    """
    text = text_of(row, "start_utc")
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise RowError(f"has start_utc {text!r}, which is no ISO 8601 time") from None
    if not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
        raise RowError(f"has start_utc {text!r}, outside the years {_FIRST_YEAR} to {_LAST_YEAR}")
    offset = moment.utcoffset()
    # The column is UTC by its name; a stated offset is honoured.
    epoch = datetime(1970, 1, 1, tzinfo=moment.tzinfo)
    delta = moment - epoch
    shift = 0 if offset is None else round(offset.total_seconds() * US_PER_S)
    return (delta.days * 86_400 + delta.seconds) * US_PER_S + delta.microseconds - shift
