"""XLSX: one sheet a table, numbers as numbers in their base unit, every figure with its id.

A cell that prints one figure becomes value, low and high in columns of their own; whatever
else a cell says stays text. No text is ever taken for a formula or a link.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from carbonlens.domain.estimate import Estimate
from carbonlens.render.environment import need
from carbonlens.reporting.content import Phrase, PrintedFigure, Table, plain_text
from carbonlens.reporting.document import (
    Bullets,
    Document,
    Heading,
    Paragraph,
    Picture,
    PowerSeries,
    TableBlock,
    Tiles,
)

if TYPE_CHECKING:
    from xlsxwriter import Workbook  # type: ignore[import-untyped]  # it ships no types
    from xlsxwriter.worksheet import Worksheet  # type: ignore[import-untyped]  # likewise

_UNDATED: Final = datetime(1980, 1, 1, tzinfo=UTC)
"""A workbook must say when it was made; without a date that belongs to the report it says this one."""

_LONGEST: Final = 32_767
_SHEET: Final = 31
_UNFIT: Final = re.compile(r"[\x00-\x08\x0b-\x1f\[\]:*?/\\]")
_WIDEST: Final = 60
_TEXT_WIDTH: Final = 110
_STILL: Final = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}


class _Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a sheet: its head and its cells, each a text, an estimate's number or nothing."""

    head: str
    cells: tuple[str | float | None, ...]
    form: str = ""
    """Number format; empty for texts."""


def render_xlsx(
    document: Document, figures: Mapping[str, PrintedFigure], *, made_us: int | None = None
) -> bytes:
    """Return the workbook, the same bytes every time.

    Args:
        document: The report.
        figures: Every printed figure by its id.
        made_us: What the report is dated with, in UTC microseconds; 1980 when ``None``.

    Raises:
        MissingExtraError: If xlsxwriter is not installed.
    """
    made = io.BytesIO()
    book: Workbook = need("xlsxwriter").Workbook(made, {"in_memory": True, **_STILL})
    created = _UNDATED if made_us is None else datetime.fromtimestamp(made_us / 1e6, tz=UTC)
    book.set_properties(
        {"title": _fit(document.title)[:255], "created": created.replace(tzinfo=None, microsecond=0)}
    )
    sheets = _Sheets(book)
    _cover(sheets, document)
    for section in document.sections:
        for block in section.tables:
            note = plain_text(block.table.note)
            sheets.add(
                block.name, plain_text(block.table.caption), list(_columns(block.table, figures)), note
            )
        for series in section.blocks:
            if isinstance(series, PowerSeries):
                caption = "Power over time of the runs that are drawn; an empty cell was not measured"
                sheets.add(series.name, caption, list(_power(series)), "")
    sheets.add("Figures", "Every printed number by its id, in base units", list(_index(figures)), "")
    book.close()
    return made.getvalue()


class _Sheets:
    """Writes sheets; their names stay unique and within the format's limits."""

    def __init__(self, book: Workbook) -> None:
        self.book = book
        self._names: set[str] = set()
        self._forms: dict[str, Any] = {}

    def form(self, number: str = "", **more: Any) -> Any:  # noqa: ANN401  # xlsxwriter's format
        """Return a cell format, made once."""
        wanted: dict[str, object] = {**({"num_format": number} if number else {}), **more}
        key = repr(sorted(wanted.items(), key=str))
        if key not in self._forms:
            self._forms[key] = self.book.add_format({"font_name": "Calibri", "valign": "top", **wanted})
        return self._forms[key]

    def sheet(self, name: str) -> Worksheet:
        """Return a new sheet."""
        clean = (_UNFIT.sub(" ", name).strip(" '") or "Table")[:_SHEET]
        chosen, count = clean, 2
        while chosen.lower() in self._names:
            tail = f" {count}"
            chosen, count = clean[: _SHEET - len(tail)] + tail, count + 1
        self._names.add(chosen.lower())
        return self.book.add_worksheet(chosen)

    def add(self, name: str, caption: str, columns: list[_Column], note: str) -> None:
        """Write a table: caption, heads, rows; sortable, its head staying in view."""
        sheet = self.sheet(name)
        sheet.write_string(0, 0, _fit(caption), self.form(bold=True, font_size=13))
        length = max((len(c.cells) for c in columns), default=0)
        for place, column in enumerate(columns):
            sheet.write_string(2, place, _fit(column.head), self.form(bold=True, text_wrap=True, bottom=1))
            for row, cell in enumerate(column.cells, 3):
                self._write(sheet, row, place, cell, column.form)
            sheet.set_column(place, place, _width(column))
        if columns and length:
            sheet.autofilter(2, 0, 2 + length, len(columns) - 1)
        sheet.freeze_panes(3, 1)
        if note:
            sheet.write_string(4 + length, 0, _fit(note), self.form(italic=True))
        sheet.set_landscape()
        sheet.fit_to_pages(1, 0)
        sheet.repeat_rows(2)

    def _write(self, sheet: Worksheet, row: int, place: int, cell: str | float | None, form: str) -> None:
        if isinstance(cell, str):
            sheet.write_string(row, place, _fit(cell), self.form(text_wrap=True))
        elif cell is not None:
            sheet.write_number(row, place, cell, self.form(form or _form(cell)))


def _cover(sheets: _Sheets, document: Document) -> None:
    """Write what the report says in words, and its headline figures."""
    sheet = sheets.sheet("Report")
    sheet.set_column(0, 0, _TEXT_WIDTH)
    lines: list[tuple[str, dict[str, Any]]] = [(plain_text(document.subject), {"italic": True})]
    if document.example:
        lines.append(
            ("Example assumptions: some factors or prices are stated for illustration.", {"bold": True})
        )
    for section in document.sections:
        for block in section.blocks:
            lines += _lines(block)
    for row, (text, looks) in enumerate(lines):
        sheet.write_string(row, 0, _fit(text), sheets.form(text_wrap=True, **looks))


def _lines(block: object) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(block, Heading):
        yield "", {}
        yield plain_text(block.text), {"bold": True, "font_size": 16 if block.level == 1 else 12}
    elif isinstance(block, Paragraph):
        yield plain_text(block.text), {"bold": True} if block.strong else {}
    elif isinstance(block, Bullets):
        for item in block.items:
            yield f"• {plain_text(item)}", {"indent": 1}
    elif isinstance(block, Tiles):
        for tile in block.tiles:
            lines = "; ".join(plain_text(line) for line in tile.lines)
            interval = f" {plain_text(tile.interval)}" if tile.interval else ""
            yield f"{tile.label}: {plain_text(tile.value)}{interval} ({lines})", {"indent": 1}
    elif isinstance(block, Picture):
        yield f"{plain_text(block.title)}. {block.alt}", {"italic": True}
    elif isinstance(block, TableBlock):
        yield f"Table: {plain_text(block.table.caption)}", {"indent": 1, "italic": True}


def _columns(table: Table, figures: Mapping[str, PrintedFigure]) -> Iterator[_Column]:
    yield _Column(head=table.head, cells=tuple(plain_text(row.head) for row in table.rows))
    for place, column in enumerate(table.columns):
        cells = [row.cells[place] for row in table.rows]
        name = plain_text(column.name)
        estimates = [_only(cell, figures) for cell in cells]
        if any(e is not None for e in estimates) and column.numeric:
            yield from _typed(name, cells, estimates)
        else:
            head = f"{name} ({column.unit})" if column.unit else name
            yield _Column(head=head, cells=tuple("\n".join(map(plain_text, cell)) for cell in cells))


def _power(series: PowerSeries) -> Iterator[_Column]:
    """Yield a row a stretch of each run: when it begins, and its mean, least and most power."""
    rows = [
        (arm.name, *row)
        for arm in series.arms
        for row in zip(
            arm.trace.time_s, arm.trace.power_w, arm.trace.low_w, arm.trace.high_w, strict=True
        )
    ]  # fmt: skip
    for place, head in enumerate(("Step", "time_s", "power_w", "low_w", "high_w")):
        yield _Column(head=head, cells=tuple(row[place] for row in rows))


def _typed(name: str, cells: list[tuple[Phrase, ...]], estimates: list[Estimate | None]) -> Iterator[_Column]:
    """Yield value, low and high of a column, and state and unit beside it where the rows differ."""
    units = {e.unit for e in estimates if e is not None}
    unit = next(iter(units)) if len(units) == 1 else None
    said = f" ({unit})" if unit not in (None, "1", "") else ""
    form = (
        "0.0#%"
        if unit == "1" and all(_is_percent(c) for c, e in zip(cells, estimates, strict=True) if e)
        else ""
    )
    values: list[str | float | None] = []
    for cell, e in zip(cells, estimates, strict=True):
        # What is no single figure keeps its words: "unknown", "not applicable", a sentence.
        values.append("\n".join(map(plain_text, cell)) if e is None or e.value is None else _number(e.value))
    yield _Column(head=f"{name}{said}", cells=tuple(values), form=form)
    for end in ("low", "high"):
        bounds = tuple(None if e is None else _number(getattr(e, end)) for e in estimates)
        if any(b is not None for b in bounds):
            yield _Column(head=f"{name}, {end}{said}", cells=bounds, form=form)
    if any(e is not None and e.state != "known" for e in estimates):
        # A lower bound is a number like any other in its cell: only here is it told from a value.
        yield _Column(head=f"{name}, state", cells=tuple("" if e is None else _state(e) for e in estimates))
    if len(units) > 1:
        yield _Column(head=f"{name}, unit", cells=tuple("" if e is None else e.unit for e in estimates))


def _state(estimate: Estimate) -> str:
    """Return the state in words; a quantity of which a part is unknown is at least what is known of it."""
    is_bound = estimate.state == "unbounded" and not estimate.signed
    return "at least" if is_bound else estimate.state.replace("_", " ")


def _only(cell: tuple[Phrase, ...], figures: Mapping[str, PrintedFigure]) -> Estimate | None:
    """Return the estimate of a cell that prints one figure and nothing beside it but marks."""
    ids = {part.figure_id for line in cell for part in line if part.figure_id is not None}
    words = "".join(p.text for line in cell for p in line if p.figure_id is None)
    if len(ids) != 1 or re.search(r"\w", words):
        return None
    found = figures.get(next(iter(ids)))
    return None if found is None else found.figure.estimate


def _is_percent(cell: tuple[Phrase, ...]) -> bool:
    return any("%" in part.text for line in cell for part in line)


def _index(figures: Mapping[str, PrintedFigure]) -> Iterator[_Column]:
    rows = [(name, f, f.figure.estimate) for name, f in figures.items()]
    yield _Column(head="Figure", cells=tuple(name for name, _, _ in rows))
    yield _Column(head="What it is", cells=tuple(f.figure.label for _, f, _ in rows))
    yield _Column(head="Value", cells=tuple(_number(e.value) for _, _, e in rows))
    yield _Column(head="Low (95 %)", cells=tuple(_number(e.low) for _, _, e in rows))
    yield _Column(head="High (95 %)", cells=tuple(_number(e.high) for _, _, e in rows))
    yield _Column(head="Unit", cells=tuple(e.unit for _, _, e in rows))
    yield _Column(head="State", cells=tuple(e.state for _, _, e in rows))
    yield _Column(head="Grade", cells=tuple(e.grade or "" for _, _, e in rows))
    yield _Column(head="Printed", cells=tuple(f"{f.text} {f.interval}".strip() for _, f, _ in rows))
    yield _Column(head="Formula", cells=tuple(f.figure.formula for _, f, _ in rows))
    yield _Column(head="Inputs", cells=tuple(", ".join(f.figure.inputs) for _, f, _ in rows))


def _number(value: float | None) -> float | None:
    """Return a number that a cell can hold: it knows no infinity."""
    return value if value is not None and abs(value) < float("inf") else None


def _form(value: float) -> str:
    size = abs(value)
    if value == int(value) and size < 1e6:
        return "#,##0"
    if size < 1e-3 or size >= 1e9:
        return "0.000E+00"
    return "#,##0.00" if size >= 100 else "#,##0.0000"


def _fit(text: str) -> str:
    cut = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return re.sub(r"[\x00-\x08\x0b-\x1f]", "\ufffd", cut)


def _width(column: _Column) -> float:
    longest = max(
        (len(line) for c in column.cells if isinstance(c, str) for line in c.split("\n")), default=10
    )
    return float(min(max(longest, len(column.head) * 0.6, 10) + 2, _WIDEST))
