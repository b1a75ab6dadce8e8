"""Tables of others: which format a CSV file has, and its rows as ours.

Read are carbonlens's own table, downloads of Electricity Maps, Ember's yearly files and the
energy table of Our World in Data. A value keeps its own decimals; only the unit changes.
"""

from __future__ import annotations

import csv
import io
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from typing import NamedTuple

from carbonlens.domain.counting import counted
from carbonlens.domain.factor_row import FactorRow
from carbonlens.errors import ConfigError, InputFileError
from carbonlens.factors.table_file import FIELDS, Table, read_csv


class Line(NamedTuple):
    """A line of a file: its number, and its cells by plain column name."""

    number: int
    cells: Mapping[str, str]


class Taken(NamedTuple):
    """What a file gave.

    Attributes:
        format: Name of the format.
        table: Its rows as ours.
        left_out: Why lines were not taken, to how many.
    """

    format: str
    table: Table
    left_out: Mapping[str, int]


class Placed(NamedTuple):
    """A row of ours, and the line it comes from."""

    line: int
    row: FactorRow


class Reading(NamedTuple):
    """What a format's reader is told beside the lines.

    Attributes:
        file: The file; its name may tell what its lines do not.
        since: First year that is taken.
        left_out: Counts what is not taken, by its reason.
    """

    file: Path
    since: int
    left_out: Counter[str]

    def place(self, line: Line) -> str:
        """Return a line as messages name it."""
        return f"{self.file}, line {line.number}"


class Format(NamedTuple):
    """A foreign format: how it is known by its plain column names, and how it is read."""

    name: str
    claims: Callable[[Sequence[str]], bool]
    rows: Callable[[Sequence[Line], Reading], list[Placed]]


def read(file: Path, *, since: int) -> Taken:
    """Return the rows of a file of any known format.

    Args:
        file: The file.
        since: First year that is taken from tables of many years.

    Raises:
        ConfigError: If no format fits, or a line cannot be read; the text names it.
        InputFileError: If the file cannot be read.
    """
    from carbonlens.factors import country_tables, electricity_maps_csv

    content = _content(file)
    columns, lines = _lines(content, where=str(file))
    if set(columns) <= set(FIELDS) and "factor_id" in columns:
        return Taken("carbonlens table", read_csv(content, where=str(file)), {})
    for known in (electricity_maps_csv.FORMAT, *country_tables.FORMATS):
        if known.claims(columns):
            reading = Reading(file, since, Counter())
            found = known.rows(lines, reading)
            places = tuple(f"line {p.line}" for p in found)
            table = Table(where=str(file), rows=tuple(p.row for p in found), places=places)
            return Taken(known.name, table, reading.left_out)
    raise ConfigError(
        "is no table of factors that is known",
        where=str(file),
        mend="give carbonlens's own columns, or a CSV of Electricity Maps, Ember (yearly) or OWID (energy)",
    )


def kg_per_kwh(cell: str, where: str) -> Decimal:
    """Return a cell of grams per kWh in kilograms.

    Raises:
        ConfigError: If it is no number.
    """
    try:
        return Decimal(cell.strip()) / 1000
    except InvalidOperation as error:
        raise ConfigError(f"{cell!r} is no number", where=where, mend="mend that cell") from error


@cache
def zones_by_alpha3() -> Mapping[str, str]:
    """Return the zones of countries by ISO 3166-1 alpha-3 code."""
    from carbonlens.factors.places_file import bundled_places

    zones = bundled_places().zones.values()
    return {zone.alpha3: zone.zone for zone in zones if zone.kind == "country" and zone.alpha3}


def plain(column: str) -> str:
    """Return a column's name in lower case with plain digits: a subscript 2 is a 2."""
    return " ".join(unicodedata.normalize("NFKC", column).lower().split())


def _content(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputFileError(
            f"cannot be read ({error.strerror or error})", where=str(file), mend="check the path"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError("is not UTF-8 text", where=str(file), mend="save it as UTF-8") from error


def _lines(content: str, *, where: str) -> tuple[list[str], list[Line]]:
    reader = csv.reader(io.StringIO(content, newline=""))
    columns = [plain(name) for name in next(reader, [])]
    lines = []
    for cells in reader:
        if not any(cells):
            continue
        if len(cells) != len(columns):
            raise ConfigError(
                f"has {counted(len(cells), 'cell')} where the first line names "
                f"{counted(len(columns), 'column')}",
                where=f"{where}, line {reader.line_num}",
                mend="download the file again, or mend that line",
            )
        lines.append(Line(reader.line_num, dict(zip(columns, cells, strict=True))))
    return columns, lines
