"""Entries of a TOML file: the ``[[table]]`` blocks of one kind, each key with its line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NamedTuple

from carbonlens.inventory.faults import Fault, nearest, shown

_AT_LINE: Final = re.compile(r"\(at line (\d+), column \d+\)")
_HEADER: Final = re.compile(r"\s*\[\[\s*([\w.-]+)\s*\]\]")
_KEY: Final = re.compile(r"\s*[\"']?([\w-]+)[\"']?\s*=")
_SUBTABLE: Final = re.compile(r"\s*\[+\s*[\w-]+\.([\w.-]+)\s*\]")

LONGEST_NUMBER: Final = 60
"""Characters of a number; what is longer is none that was meant."""

INVALID: Final = object()
"""Stands in an entry for a value whose fault has been told."""


class Entry(NamedTuple):
    """One block or row, before it becomes a record.

    Attributes:
        values: Key to value: as TOML gives it, or the text of a cell.
        file: Name of the file.
        line: Where it begins.
        lines: Key to its line; a key that is not in it stands on ``line``.
    """

    values: dict[str, Any]
    file: str
    line: int
    lines: Mapping[str, int]

    def fault(self, what: str, mend: str, key: str = "") -> Fault:
        """Return a fault of this entry, at the line of a key."""
        return Fault(file=self.file, line=self.lines.get(key, self.line), what=what, mend=mend)


def tables(text: str, file: str, faults: list[Fault]) -> dict[str, Any]:
    """Return a file's tables, numbers as exact decimals and dates as ISO text; none if it is malformed.

    Args:
        text: Its content.
        file: Its name.
        faults: Takes what is wrong.
    """
    try:
        return {k: _plain(v) for k, v in tomllib.loads(text, parse_float=exact).items()}
    except tomllib.TOMLDecodeError as error:
        at = _AT_LINE.search(str(error))
        what = _AT_LINE.sub("", str(error)).strip()
        line = int(at[1]) if at else 0
        faults.append(Fault(file=file, line=line, what=f"is not valid TOML: {what}", mend="mend that line"))
    except ValueError:
        faults.append(Fault(file=file, what="holds a number of no plausible size", mend="check its numbers"))
    except RecursionError:
        faults.append(Fault(file=file, what="is nested too deeply", mend="write plain tables"))
    return {}


def exact(text: str) -> Decimal:
    """Return the number that a text states, every digit of it.

    Raises:
        ValueError: If it is longer or larger than any number of an inventory.
    """
    try:
        if len(text) <= LONGEST_NUMBER:
            return Decimal(text)
    except InvalidOperation:
        pass
    raise ValueError(text)


def entries(text: str, file: str, table: str, faults: list[Fault]) -> list[Entry]:
    """Return the ``[[table]]`` blocks of a file.

    Args:
        text: Its content.
        file: Its name.
        table: Name of the blocks.
        faults: Takes what is wrong.
    """
    stated = tables(text, file, faults)
    lines = key_lines(text)
    for key in stated:
        if key != table:
            what, mend = f"unknown key {shown(key)}", f"every block begins with a line [[{table}]]"
            faults.append(Fault(file=file, line=lines.get(key, 0), what=what, mend=mend))
    blocks = stated.get(table, [])
    if not isinstance(blocks, list) or not all(isinstance(b, dict) for b in blocks):
        what, mend = f"{table} is no list of blocks", f"begin each with a line [[{table}]]"
        faults.append(Fault(file=file, line=lines.get(table, 0), what=what, mend=mend))
        return []
    places = _places(text, table)
    if len(places) != len(blocks):
        # Written in another way, such as an inline list: only the file can be named.
        places = [(0, {})] * len(blocks)
    return [Entry(b, file, line, keys) for b, (line, keys) in zip(blocks, places, strict=True)]


def key_lines(text: str) -> dict[str, int]:
    """Return the first line of each key and table of a text."""
    found: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        match = _KEY.match(line) or _HEADER.match(line) or re.match(r"\s*\[\s*([\w-]+)", line)
        if match:
            found.setdefault(match[1], number)
    return found


def unknown_key(entry: Entry, key: str, known: list[str]) -> Fault:
    """Return the fault of a key or column that nobody reads."""
    return entry.fault(f"unknown key {shown(key)}", nearest(key, known), key)


def _places(text: str, table: str) -> list[tuple[int, dict[str, int]]]:
    """Return the line of each block, with the lines of its keys."""
    found: list[tuple[int, dict[str, int]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        header = _HEADER.match(line)
        if header and header[1] == table:
            found.append((number, {}))
        elif found:
            match = _KEY.match(line) or _SUBTABLE.match(line)
            if match:
                found[-1][1].setdefault(match[1].partition(".")[0], number)
    return found


def _plain(value: Any) -> Any:  # noqa: ANN401  # what TOML holds
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    return value
