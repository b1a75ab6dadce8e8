"""Entries of a CSV file, as spreadsheets and meters write them.

The header names the columns; comma, semicolon or tab separate them; a byte order mark,
CRLF, and lines that begin with ``#`` are taken. With a semicolon or tab, numbers may have
a decimal comma, in all of the file or nowhere: ``1.234`` beside ``5,6`` could be either.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from carbonlens.inventory.faults import Fault, nearest, shown
from carbonlens.inventory.toml_entries import INVALID, LONGEST_NUMBER, Entry

_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_UNKNOWN: Final = frozenset({"n/a", "na", "nan", "null", "none", "unknown", "-"})
"""Words that some tools write into an empty cell of a number column."""


def decoded(content: bytes) -> str:
    """Return UTF-8 or UTF-16 text without its byte order mark.

    Raises:
        UnicodeDecodeError: If it is neither.
    """
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16")
    return content.decode("utf-8-sig")


def entries(
    text: str,
    file: str,
    faults: list[Fault],
    *,
    columns: Collection[str],
    numbers: Collection[str],
    aliases: Mapping[str, str] | None = None,
) -> list[Entry]:
    """Return the rows of a table, without their empty cells.

    Args:
        text: Its content.
        file: Its name.
        faults: Takes what is wrong.
        columns: Those that may stand there.
        numbers: Those of them that hold numbers; their decimal commas become points.
        aliases: Other names of columns.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    lines = ["" if line.startswith("#") else line for line in lines]
    first = next((line for line in lines if line.strip()), "")
    delimiter = max(",;\t", key=first.count)
    try:
        found = _rows(lines, delimiter, file, faults, columns, aliases or {})
    except csv.Error as error:
        faults.append(Fault(file=file, what=f"is no CSV table ({error})", mend="check quotes and line ends"))
        return []
    numeric = frozenset(numbers)
    _check_marks(found, numeric, file, faults)
    for entry in found:
        _numbers(entry, numeric, faults, comma=delimiter != ",")
    return found


def _rows(
    lines: list[str],
    delimiter: str,
    file: str,
    faults: list[Fault],
    columns: Collection[str],
    aliases: Mapping[str, str],
) -> list[Entry]:
    reader = csv.reader(io.StringIO("\n".join(lines)), delimiter=delimiter, strict=True)
    header: list[str] | None = None
    found: list[Entry] = []
    for cells in reader:
        if not any(c.strip() for c in cells):
            continue
        if header is None:
            header = [aliases.get(name, name) for name in (c.strip().lower() for c in cells)]
            faults.extend(_header_faults(header, file, reader.line_num, columns))
            continue
        entry = Entry({}, file, reader.line_num, {})
        fault = _row_fault(entry, cells, header)
        if fault is not None:
            faults.append(fault)
            continue
        stated = {k: c.strip() for k, c in zip(header, cells, strict=False) if k in columns}
        entry.values.update({k: c for k, c in stated.items() if c})
        found.append(entry)
    return found


def _header_faults(header: list[str], file: str, line: int, columns: Collection[str]) -> Iterator[Fault]:
    for name in sorted({n for n in header if n and header.count(n) > 1}):
        yield Fault(file=file, line=line, what=f"has the column {shown(name)} twice", mend="keep one of them")
    for name in dict.fromkeys(header):
        # A misspelt optional column would go unseen: what was exported would count as used.
        if name and name not in columns:
            mend = nearest(name, list(columns))
            yield Fault(file=file, line=line, what=f"unknown column {shown(name)}", mend=mend)


def _row_fault(entry: Entry, cells: list[str], header: list[str]) -> Fault | None:
    if len(cells) > len(header):
        return entry.fault("has more cells than the header has columns", "quote cells that hold a delimiter")
    if any("\n" in c for c in cells):
        return entry.fault("has a line break in a cell", "close the quote that was left open")
    return None


def _check_marks(found: list[Entry], numbers: frozenset[str], file: str, faults: list[Fault]) -> None:
    """Refuse a file in which both comma and point stand before decimals."""
    marks: dict[str, int] = {}
    for entry in found:
        for key in numbers & entry.values.keys():
            if _NUMBER.fullmatch(entry.values[key]):
                for mark in ",.":
                    if mark in entry.values[key]:
                        marks.setdefault(mark, entry.line)
    if len(marks) > 1:
        what = f"has decimal commas (line {marks[',']}) and decimal points (line {marks['.']})"
        mend = "write all numbers in one way, without thousands separators"
        faults.append(Fault(file=file, line=max(marks.values()), what=what, mend=mend))


def _numbers(entry: Entry, numbers: frozenset[str], faults: list[Fault], *, comma: bool) -> None:
    """Bring the numbers of a row into one form; what is none becomes a fault."""
    for key in numbers & entry.values.keys():
        text = entry.values[key]
        if text.lower() in _UNKNOWN:
            del entry.values[key]
        elif len(text) > LONGEST_NUMBER or not _NUMBER.fullmatch(text) or ("," in text and not comma):
            entry.values[key] = INVALID
            mend = "write digits, with a point before decimals and no thousands separator"
            faults.append(entry.fault(f"{key} {shown(text)} is no number", mend, key))
        else:
            entry.values[key] = text.replace(",", ".")
