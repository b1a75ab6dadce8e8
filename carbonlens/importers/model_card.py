"""Model cards and tables of energy and emissions, as claims: Markdown, front matter or CSV.

It yields claims to be audited and no runs: what a card states is no measurement. So it is
no importer of ``carbonlens import``.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from carbonlens.domain.claim import Claim, Stated
from carbonlens.errors import InputFileError
from carbonlens.importers.cells import decode, delimiter_of
from carbonlens.importers.claim_cells import (
    TEXT_FIELDS,
    YEAR_FIELDS,
    Column,
    column_of,
    fault_in,
    number_in,
    plain,
    year_in,
)
from carbonlens.importers.front_matter import emissions_of, end_of
from carbonlens.importers.tables import is_other_header

MOST_BYTES: Final = 20_000_000
_LONGEST_NAME: Final = 60
_RULE: Final = re.compile(r"^\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")
_TOTAL: Final = re.compile(r"^(grand |sub.?)?(total|sum|overall)\b", re.IGNORECASE)
_TO_UNIT: Final = {
    ("watts", "kW"): ("W", Decimal(1000)),
    ("water", "kL"): ("L", Decimal(1000)),
    ("water", "mL"): ("L", Decimal("0.001")),
}
_SCOPE: Final = re.compile(r"^scope\s*", re.IGNORECASE)
_ENERGY_UNITS: Final = frozenset({"J", "Wh", "kWh", "MWh", "GWh"})
_CUMULATIVE: Final = re.compile(
    r"(?:cumulative|total)\b[^.|]{0,40}?(?P<number>\d[\d,.]*\s*(?:k|m|million|thousand)?)\W{0,4}"
    r"(?:gpu|tpu)[- ]?hours",
    re.IGNORECASE,
)
_MASS: Final = (
    r"(?P<number>\d[\d,.]*\d|\d)\s*(?P<scale>thousand|million)?\s*"
    r"(?P<unit>kilograms?|kgs?|grams?|(?-i:g)|(?:metric\s+)?ton(?:ne)?s?|(?-i:t)|pounds?|lbs?)"
)
_MASS_UNITS: Final = {"k": "kg", "g": "g", "m": "t", "t": "t", "p": "lb", "l": "lb"}
"""First letter of a unit in a text to the unit."""

_GAS: Final = r"(?:CO\$?_?\{?2\}?\$?|carbon\s+dioxide|carbon)"
_RATE: Final = r"(?![-\w]*\s*(?:/|per\b))"
_PROSE_CO2: Final = (
    re.compile(rf"{_MASS}\s*(?:of\s*)?{_GAS}{_RATE}", re.IGNORECASE),
    re.compile(
        rf"(?:{_GAS}[-\w]*|emissions?|emitted|footprint)\b[^.;|\d]{{0,60}}?{_MASS}\b{_RATE}", re.IGNORECASE
    ),
)
"""A mass before the gas, and one after it; a mass per kWh is a factor and no emission."""


def read_claims(path: Path, shown: str | None = None) -> tuple[Claim, ...]:
    """Return all that a card or table states, each claim with its line.

    Args:
        path: The file.
        shown: Its name in Findings; the path when ``None``.

    Raises:
        InputFileError: If it cannot be read, is too large, or states nothing of the kind.
    """
    name = shown or str(path)
    text = text_of(path, name)
    try:
        claims = claims_of(text, name)
    except csv.Error as error:
        raise InputFileError(f"is no table ({error})", where=name, mend="save it as CSV") from error
    if not claims:
        raise InputFileError(
            "states no energy or emissions that could be checked",
            where=name,
            mend="give a model card (Markdown), its front matter (YAML) or a table (CSV) with a header",
        )
    return claims


def text_of(path: Path, shown: str | None = None) -> str:
    """Return the text of a file that is to be audited.

    Args:
        path: The file.
        shown: Its name in Findings; the path when ``None``.

    Raises:
        InputFileError: If it cannot be read, is too large, or is no text.
    """
    name = shown or str(path)
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputFileError("is too large for a card or table", where=name, mend="give the table alone")
        content = path.read_bytes()
    except OSError as error:
        text = f"cannot be read ({error.strerror or error})"
        raise InputFileError(text, where=name, mend="check the path and its rights") from error
    try:
        return decode(content, whole=True)
    except UnicodeDecodeError:
        raise InputFileError("is no text", where=name, mend="save it as UTF-8") from None


def claims_of(text: str, file: str) -> tuple[Claim, ...]:
    """Return the claims of a text.

    Args:
        text: The whole content.
        file: Its name in the claims.
    """
    lines = text.splitlines()
    tables = list(_markdown_tables(lines))
    card = _card(lines, file)
    if not tables and card is None and lines and not _is_prose(lines[0]):
        tables = _csv_tables(text)
    claims: list[Claim] = list(card or ())
    for number, rows in enumerate(tables, 1):
        claims += _table(rows, file, number)
    claims += _prose(lines, file, claims)
    return tuple(claims)


def _is_prose(line: str) -> bool:
    return column_of(line) is None or not any(mark in line for mark in ",;\t")


def _markdown_tables(lines: Sequence[str]) -> Iterator[list[tuple[int, list[str]]]]:
    """Yield tables as rows of cells with their lines; the first row is the header."""
    for at in range(1, len(lines)):
        if not _RULE.match(lines[at]) or "|" not in lines[at - 1] or "|" not in lines[at]:
            continue
        rows = [(at, _cells(lines[at - 1]))]
        for number in range(at + 1, len(lines)):
            if "|" not in lines[number]:
                break
            rows.append((number + 1, _cells(lines[number])))
        yield rows


def _cells(line: str) -> list[str]:
    bare = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", bare)]


def _csv_tables(text: str) -> list[list[tuple[int, list[str]]]]:
    """Return the tables of a CSV: another header begins another one."""
    first = text.splitlines()[0]
    reader = csv.reader(text.splitlines(), delimiter=delimiter_of(first))
    tables: list[list[tuple[int, list[str]]]] = []
    header: list[str] = []
    for row in reader:
        if not any(cell.strip() for cell in row):
            continue
        if not tables or is_other_header(row, header):
            header = [cell.strip().lower() for cell in row]
            tables.append([])
        tables[-1].append((reader.line_num, row))
    return tables


def _table(rows: list[tuple[int, list[str]]], file: str, table: int) -> list[Claim]:
    """Return the claims of a table; a total holds the rows before it as its parts."""
    columns = [column_of(cell) for cell in rows[0][1]]
    if not any(
        c is not None and c.field in {"emissions", "market_emissions", "energy", "hours"} for c in columns
    ):
        return []
    claims: list[Claim] = []
    parts: list[Claim] = []
    for line, cells in rows[1:]:
        what = _label(columns, cells)
        fields = _fields(columns, cells)
        if not fields:
            continue
        total = _TOTAL.match(what) is not None
        name = what or f"row {len(claims) + 1}"
        summed = tuple(parts) if total else ()
        made = Claim(what=name, file=file, line=line, table=table, parts=summed, **fields)
        claims.append(made)
        parts = [] if total else [*parts, made]
    return claims


def _label(columns: Sequence[Column | None], cells: Sequence[str]) -> str:
    """Return the name of a row: its cells of columns that hold nothing to check."""
    names = (plain(cell) for column, cell in zip(columns, cells, strict=False) if column is None)
    return " ".join(name for name in names if name)[:_LONGEST_NAME]


def _fields(columns: Sequence[Column | None], cells: Sequence[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    parts: dict[str, Stated] = {}
    unread: list[str] = []
    for column, cell in zip(columns, cells, strict=False):
        if column is None:
            continue
        if column.field not in TEXT_FIELDS | YEAR_FIELDS and (why := fault_in(cell, column.field)):
            what = " ".join(w for w in (column.part, column.field.replace("_", " ")) if w)
            unread.append(f"{what} {plain(cell)!r} {why}")
        elif column.part is None:
            _put(fields, column, cell)
        elif (number := number_in(cell, column.unit)) is not None:
            parts.setdefault(column.part, number)
    if unread:
        fields["unread"] = tuple(unread)
    return {**fields, **_of_parts(fields, parts)}


def _of_parts(fields: dict[str, Any], parts: dict[str, Stated]) -> dict[str, Any]:
    """Return the components of a row, and their sum where it states no energy of the whole."""
    if not parts:
        return {}
    made: dict[str, Any] = {"components": tuple(parts)}
    units = {number.unit for number in parts.values()}
    if "energy" not in fields and len(units) == 1:
        value, half = sum(n.value for n in parts.values()), sum(n.half for n in parts.values())
        made["energy"] = Stated(value=Decimal(value), unit=units.pop(), half=Decimal(half))
    return made


def _put(fields: dict[str, Any], column: Column, cell: str) -> None:
    """Add one cell; a second column of device hours stands beside the first."""
    if column.field in TEXT_FIELDS:
        text = _SCOPE.sub("", plain(cell)) if column.field == "scope" else plain(cell)
        if text and text not in {"-", "N/A"}:
            fields.setdefault(column.field, text)
        return
    if column.field in YEAR_FIELDS:
        year = year_in(cell)
        if year is not None:
            fields.setdefault(column.field, year)
        return
    number = number_in(cell, column.unit)
    if number is None:
        return
    if column.field == "elapsed":
        if "hours" not in fields:
            fields |= {"hours": _unitless(number), "device_hours": False}
        return
    if column.field == "hours" and "hours" in fields:
        fields["other_hours"] = (*fields.get("other_hours", ()), _unitless(number))
        return
    if column.field == "watts" and number.unit in _ENERGY_UNITS:
        # "Total power consumption" is an energy in many tables.
        fields.setdefault("energy", number)
        return
    number = _converted(column.field, number)
    bare = column.field in {"hours", "pue", "wue", "devices", "units"}
    fields.setdefault(column.field, _unitless(number) if bare else number)


def _unitless(number: Stated) -> Stated:
    return Stated(value=number.value, half=number.half)


def _converted(field: str, number: Stated) -> Stated:
    """Return watts and litres of a number in kW, kL or mL."""
    unit, times = _TO_UNIT.get((field, number.unit or ""), (number.unit, Decimal(1)))
    return Stated(value=number.value * times, unit=unit, half=number.half * times)


def _card(lines: list[str], file: str) -> tuple[Claim, ...] | None:
    entry = emissions_of(lines)
    if entry is None:
        return None
    text = entry.texts.get("emissions", "")
    why = fault_in(text, "emissions")
    number = None if why else number_in(text, "g")
    hardware = entry.texts.get("hardware_used")
    return (
        Claim(
            what="co2_eq_emissions",
            file=file,
            line=entry.line,
            emissions=number,
            front_matter=True,
            hardware=hardware,
            region=entry.texts.get("geographical_location"),
            unread=(f"emissions {text!r} {why}",) if why else (),
        ),
    )


def _prose(lines: list[str], file: str, claims: Sequence[Claim]) -> list[Claim]:
    """Return what sentences state: cumulative device hours, and emissions beside a front matter."""
    totals = [c for c in claims if c.parts] or [c for c in claims if c.hours is not None]
    card = next((c for c in claims if c.front_matter), None)
    below = end_of(lines)
    found: list[Claim] = []
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("|"):
            continue
        words = plain(line)
        hours = _CUMULATIVE.search(words)
        stated_hours = number_in(hours["number"], None) if hours else None
        if stated_hours is not None and totals:
            what = f"hours in line {number}"
            parts = tuple(totals)
            found.append(
                Claim(what=what, file=file, line=number, table=-number, hours=stated_hours, parts=parts)
            )
        found += _emissions(words, file, number, card.region) if card and number > below else []
    return found


def _emissions(words: str, file: str, number: int, region: str | None) -> list[Claim]:
    """Return the masses of CO2 that a line of text states, at the place of its card."""
    stated: dict[int, Stated] = {}
    for pattern in _PROSE_CO2:
        for hit in pattern.finditer(words):
            unit = _MASS_UNITS[hit["unit"][0].lower()]
            figure = number_in(f"{hit['number'].rstrip(',.')} {hit['scale'] or ''}", unit)
            if figure is not None:
                stated.setdefault(hit.start("number"), figure)
    what = f"emissions in line {number}"
    return [
        Claim(
            what=what if at == 1 else f"{what}, figure {at}",
            file=file,
            line=number,
            emissions=figure,
            region=region,
        )
        for at, (_, figure) in enumerate(sorted(stated.items()), 1)
    ]
