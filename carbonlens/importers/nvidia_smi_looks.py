"""What the first rows of nvidia-smi's CSV tell of the others: who their GPUs are, and which power counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from carbonlens.errors import InputFileError
from carbonlens.importers.cells import UNKNOWN_WORDS
from carbonlens.importers.nvidia_smi_columns import IDS, NAMES, OTHERS, POWER, WATTS, Column, columns_of
from carbonlens.importers.sources import Source
from carbonlens.importers.tables import is_other_header, other_header

_MOST: Final = 0.5
"""Share of rows, or of the readings of the best column, from which a column is told and not a mishap."""

_READ: Final = ("timestamp", *POWER, *(name for names in IDS for name in names), *NAMES)
_KNOWN: Final = (*_READ, *sorted(OTHERS))


class Row(msgspec.Struct, frozen=True):
    """A row: its line, time and cells."""

    line: int
    t_us: float | None
    cells: list[str]


def is_told(cell: str) -> bool:
    """Tell whether a cell holds something."""
    return cell.lower() not in UNKNOWN_WORDS and not cell.startswith("[")


def is_header(text: str, columns: Sequence[Column], source: Source, line: int) -> bool:
    """Tell whether a line is the header again.

    Args:
        text: The line.
        columns: Of the header.
        source: The log, which begins with it.
        line: Number of the line.

    Raises:
        InputFileError: If it is another header: of other columns, another order or other units.
    """
    low = text.lower()
    if text[:1].isdigit() or (columns[0].name not in low and "power" not in low):
        return False
    found = columns_of(text)
    if len(found) == len(columns) and all(map(_is_alike, columns, found)):
        return True
    own = [c.name for c in columns]
    names = [c.name for c in found]
    is_cut = source.first_lines[0].startswith(text.strip())
    if not is_cut and (names == own or is_other_header(names, [*own, *_KNOWN])):
        raise other_header(source.shown, line)
    return False


def _is_alike(column: Column, other: Column) -> bool:
    """Whether two headers mean the same by a column, as far as it is read: drivers rename others.

    A column of a log without a header may have no name.
    """
    if column.name.startswith("column "):
        return other.name not in POWER
    if column.name not in _READ and other.name not in _READ:
        return True
    sizes = [WATTS.get(c.unit.lower()) for c in (column, other)]
    return column.name == other.name and (column.name not in POWER or sizes[0] == sizes[1])


def id_places(columns: Sequence[Column], rows: Sequence[Row]) -> list[int]:
    """Return the columns that tell GPUs apart: those that hold something in each row.

    Where there is none, the first that holds something in most of them: of the other rows it is not
    known whose they are, but of these it is.
    """
    found = [c for names in IDS for c in columns if c.name in names]
    told = {c.place: sum(is_told(r.cells[c.place]) for r in rows) for c in found}
    whole = [c.place for c in found if told[c.place] == len(rows)]
    return whole or [c.place for c in found if told[c.place] > _MOST * len(rows)][:1]


def counted_columns(powers: Sequence[Column], rows: Sequence[Row], ids: Sequence[int]) -> dict[str, str]:
    """Return which column of power counts, by GPU: the first that it tells, and not only now and then.

    Args:
        powers: Columns of power, the best first.
        rows: The first rows.
        ids: Columns that tell GPUs apart.
    """
    told: dict[str, Counter[int]] = {}
    for row in rows:
        if ids and not is_told(row.cells[ids[0]]):
            continue
        of = told.setdefault(row.cells[ids[0]] if ids else "", Counter())
        of.update(rank for rank, column in enumerate(powers) if is_told(row.cells[column.place]))
    best = {
        device: min(rank for rank, count in of.items() if count >= _MOST * max(of.values()))
        for device, of in told.items()
        if of
    }
    return {device: powers[rank].name for device, rank in best.items()}


def not_told_apart(where: str) -> InputFileError:
    """Return the error of a log of several GPUs of whose rows nobody can tell which is whose."""
    return InputFileError(
        "has rows of several GPUs at a time, not always as many, and no column tells whose they are",
        where=where,
        mend="log index or uuid too",
    )
