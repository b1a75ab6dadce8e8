"""The price table as a file: CSV, one row a price, the header naming PriceRow's fields.

The columns are those of ``prices.csv`` of an inventory: ``amount`` and ``currency`` stand
apart, and ``id`` may stand for ``price_id``. Those of fields with a default may be left out.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import date
from functools import cache
from typing import Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.currencies import CURRENCIES
from carbonlens.domain.decoding import convert
from carbonlens.domain.pricing import PriceRow
from carbonlens.errors import ConfigError

FIELDS: Final = tuple(
    name
    for field in PriceRow.__struct_fields__
    for name in (("amount", "currency") if field == "amount" else (field,))
)
"""Columns of a table."""

_REQUIRED: Final = (
    *(f.name for f in msgspec.structs.fields(PriceRow) if f.required),
    "currency",
)


class PriceTable(msgspec.Struct, frozen=True, kw_only=True):
    """Prices of one file.

    Attributes:
        where: File, as messages name it.
        rows: In the order of the file.
    """

    where: str
    rows: tuple[PriceRow, ...]


@cache
def bundled_prices() -> tuple[PriceRow, ...]:
    """Return the prices that come with carbonlens: few, typed in by hand, each with its source."""
    from importlib import resources

    file = resources.files("carbonlens.factors") / "data" / "prices" / "prices.csv"
    return read_prices(file.read_bytes(), where="prices.csv").rows


def read_prices(content: bytes, *, where: str) -> PriceTable:
    """Return the prices of a table.

    Args:
        content: The file: UTF-8, with or without a byte order mark.
        where: File, as errors are to name it.

    Raises:
        ConfigError: If it is no such table, or a price cannot be one; the text names the line.
    """
    try:
        # Notes to readers stand behind #, as in an inventory.
        text = "".join(
            "\n" if line.startswith("#") else line
            for line in content.decode("utf-8-sig").splitlines(keepends=True)
        )
        lines = list(_lines(text, where))
    except UnicodeDecodeError as error:
        raise ConfigError("is not UTF-8 text", where=where, mend="save it as UTF-8") from error
    except csv.Error as error:
        raise ConfigError(f"is no CSV: {error}", where=where, mend="check quotes and line ends") from error
    met: dict[str, str] = {}
    rows = []
    for place, cells in lines:
        row = _row(cells, place)
        if row.price_id in met:
            raise _fault(f"has the id {row.price_id!r} of {met[row.price_id]}", place, "give each its own")
        met[row.price_id] = place
        rows.append(row)
    return PriceTable(where=where, rows=tuple(rows))


def _lines(text: str, where: str) -> Iterator[tuple[str, dict[str, str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] = []
    for values in reader:
        if not any(v.strip() for v in values):
            continue
        place = f"{where}:{reader.line_num}"
        if not header:
            header = ["price_id" if name.strip() == "id" else name.strip() for name in values]
            _check_header(header, place)
        elif len(values) != len(header):
            text = (
                f"has {counted(len(values), 'cell')} where the header names {counted(len(header), 'column')}"
            )
            raise _fault(text, place, "quote a cell that holds a comma")
        else:
            yield place, {k: v.strip() for k, v in zip(header, values, strict=True) if v.strip()}
    if not header:
        raise _fault("is empty", where, f"the first line names columns out of {', '.join(FIELDS)}")


def _check_header(header: list[str], place: str) -> None:
    listed = ", ".join(FIELDS)
    for name in _REQUIRED:
        if name not in header:
            raise _fault(f"lacks the column {name}", place, f"columns: {listed}")
    for name in header:
        if name not in FIELDS:
            raise _fault(f"unknown column {name!r}", place, f"use columns out of {listed}")
        if header.count(name) > 1:
            raise _fault(f"names the column {name} twice", place, "leave one of them out")


def _row(cells: dict[str, str], place: str) -> PriceRow:
    lacking = [name for name in _REQUIRED if name not in cells]
    if lacking:
        raise _fault(f"has no {lacking[0]}", place, "fill the cell, or leave the row out")
    plain: dict[str, object] = {k: v for k, v in cells.items() if k != "currency"}
    plain["amount"] = {"amount": cells["amount"], "currency": cells["currency"]}
    try:
        row = convert(plain, PriceRow, strict=False)
    except (msgspec.ValidationError, ArithmeticError) as error:
        raise _fault(str(error), place, "mend that cell") from error
    for what, mend in _wrong(row):
        raise _fault(what, place, mend)
    return row


def _wrong(row: PriceRow) -> Iterator[tuple[str, str]]:
    """Yield what a price cannot be, with the mend."""
    amount = row.amount.amount
    if row.amount.currency not in CURRENCIES:
        yield f"has the currency {row.amount.currency!r}", "write the ISO 4217 code: EUR"
    if not amount.is_finite() or amount < 0:
        yield f"has the amount {amount}", "write a number, 0 or more"
    for name in ("valid_from", "valid_to", "read_on"):
        text = getattr(row, name)
        if text is not None and not _is_day(text):
            yield f"has {name} {text!r}", "write a date: 2026-01-15"
    if row.valid_to is not None and row.valid_to <= row.valid_from:
        yield f"ends {row.valid_to}, not after it begins", "valid_to is the first day without it"


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _fault(what: str, place: str, mend: str) -> ConfigError:
    return ConfigError(what, where=place, mend=mend)
