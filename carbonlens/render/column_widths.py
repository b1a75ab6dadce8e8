"""Column widths: those that a layout engine would find for a table, computed from the texts alone.

To find them it sets every cell twice more, once word by word, which takes a quarter of the time of a
report. The widths of our own fonts' letters give the same to within a hair, and what is said of the
style sheets here is what they say of tables on paper.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from carbonlens.render.environment import need, template_file
from carbonlens.reporting.content import Column, Part, Phrase, Row, Table

_MM: Final = 72 / 25.4
_PAGE: Final = (210 - 2 * 14) * _MM
"""Room between the margins, points (``@page`` in print.css)."""

_SIZE: Final = 7.5
"""Size of a table's text on paper, points; as the paddings, by print.css and sustainability.css."""

_RIGHT: Final = 2 * _MM
_LEFT: Final = 0.9 * _SIZE
_HEAD_ROOM: Final = 8.5 * 8.5
"""Least width of what a row's head holds, points: 8.5 rem."""

_KERNED: Final = 0.991
"""Set text beside the sum of its letters: kerning draws these closer. What it may be off by lies in the
padding of a cell, which is ten times as wide."""

_REGULAR: Final = "Inter-Regular"
_BOLD: Final = "Inter-SemiBold"
_UNKNOWN_EM: Final = 1.2
"""Width of a letter of another font; hardly one is wider."""

_SPACES: Final = re.compile("[ \n\t]+")
"""Where a line may break for sure."""

_ROUND: Final = 4

Extent = tuple[float, float]
"""The narrowest and the widest that a cell may be, points."""


def column_widths(table: Table) -> tuple[float, ...] | None:
    """Return the widths of a table's columns in percent, the first one's that of the heads of rows.

    They are those of CSS 2.1, 17.5.2.2: no column narrower than its longest word, and the rest of the
    room by what each would take on one line. ``None`` where they do not fit: then a layout engine, which
    knows more places to break a word at, must find them.

    Args:
        table: What the columns hold.

    Raises:
        MissingExtraError: If fontTools, which comes with WeasyPrint, is not installed.
    """
    extents = [_head_column(table)]
    extents += [_column(table, at, column) for at, column in enumerate(table.columns)]
    least, most = sum(low for low, _ in extents), sum(high for _, high in extents)
    if least > _PAGE:
        return None
    if most <= _PAGE:
        widths = [high / most for _, high in extents]
    else:
        share = (_PAGE - least) / (most - least)
        widths = [(low + (high - low) * share) / _PAGE for low, high in extents]
    rounded = [round(100 * width, _ROUND) for width in widths[:-1]]
    return (*rounded, round(100 - sum(rounded), _ROUND))


def _head_column(table: Table) -> Extent:
    cells = [_extent([_words(table.head, _BOLD)])]
    cells += [_extent([_pieces(row.head, _weight(row, head=True))]) for row in table.rows]
    low, high = _widest(cells)
    low = max(low, _HEAD_ROOM)
    return low + _RIGHT, max(low, high) + _RIGHT


def _column(table: Table, at: int, column: Column) -> Extent:
    head = [_pieces(column.name, _BOLD)]
    if column.unit:
        head.append(iter([(column.unit, True, _REGULAR)]))
    cells = [_extent(head)]
    for row in table.rows:
        weight = _weight(row, head=False)
        cells.append(_extent([_pieces(line, weight) for line in row.cells[at]]))
    low, high = _widest(cells)
    padding = _RIGHT if column.numeric else _RIGHT + _LEFT
    return low + padding, high + padding


def _weight(row: Row, *, head: bool) -> str:
    if head:
        return _REGULAR if row.mark in ("bad", "open") else _BOLD
    return _BOLD if row.total else _REGULAR


def _widest(cells: Sequence[Extent]) -> Extent:
    return max(low for low, _ in cells), max(high for _, high in cells)


Piece = tuple[str, bool, str]
"""Text, whether it stays on one line, and its font."""


def _words(text: str, font: str) -> Iterator[Piece]:
    yield text, False, font


def _pieces(line: Phrase, font: str) -> Iterator[Piece]:
    for part in line:
        yield part.text, _stays(part), font


def _stays(part: Part) -> bool:
    return part.figure_id is not None


def _extent(lines: Sequence[Iterator[Piece]]) -> Extent:
    low = high = 0.0
    for line in lines:
        whole = word = 0.0
        for text, stays, font in line:
            if stays:
                width = _width(text, font)
                word += width
                whole += width
                low = max(low, word)
                continue
            for n, piece in enumerate(_SPACES.split(text)):
                if n:
                    whole += _width(" ", font)
                    word = 0.0
                width = _width(piece, font)
                word += width
                whole += width
                low = max(low, word)
        high = max(high, whole)
    return low * _KERNED, high * _KERNED


def _width(text: str, font: str) -> float:
    known = _advances(font)
    return _SIZE * sum(known.get(letter, _UNKNOWN_EM) for letter in text)


@cache
def _advances(font: str) -> dict[str, float]:
    """Return the widths of a font's letters in em; figures as wide as those that stand in columns."""
    read = need("fontTools.ttLib").TTFont(template_file(f"fonts/{font}.ttf"), lazy=True)
    em, widths = read["head"].unitsPerEm, read["hmtx"].metrics
    tabular: dict[str, str] = {}
    features = read["GSUB"].table
    for record in features.FeatureList.FeatureRecord:
        if record.FeatureTag == "tnum":
            for index in record.Feature.LookupListIndex:
                for table in features.LookupList.Lookup[index].SubTable:
                    tabular |= getattr(table, "mapping", {})
    return {
        chr(code): max(widths[glyph][0], widths[tabular.get(glyph, glyph)][0]) / em
        for code, glyph in read.getBestCmap().items()
    }
