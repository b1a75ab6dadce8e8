"""What the first rows of nvidia-smi's CSV tell of the others: who their GPUs are, and which power counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.errors import InputFileError
from carbonlens.importers.cells import UNKNOWN_WORDS
from carbonlens.importers.nvidia_smi_columns import IDS, NAMES, OTHERS, POWER, WATTS, Column, columns_of
from carbonlens.importers.sources import Source
from carbonlens.importers.tables import names_columns, other_header

_MOST: Final = 0.5
"""Share of rows, or of the readings of the best column, from which a column is told and not a mishap."""

_STAMP: Final = "timestamp"
_READ: Final = (_STAMP, *POWER, *(name for names in IDS for name in names), *NAMES)
_KNOWN: Final = (*_READ, *sorted(OTHERS))


class Row(msgspec.Struct, frozen=True):
    """A row: its line, time and cells."""

    line: int
    t_us: float | None
    cells: list[str]


def is_told(cell: str) -> bool:
    """Tell whether a cell holds something: one that failed does not, in whatever words."""
    return not (cell.lower() in UNKNOWN_WORDS or cell.startswith("[") or cell.upper().startswith("ERR"))


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
    words = (columns[0].name, "power", _STAMP)
    if text[:1].isdigit() or not any(word in low for word in words):
        return False
    found = columns_of(text)
    if len(found) == len(columns) and all(map(_is_alike, columns, found)):
        return True
    own = [c.name for c in columns]
    names = [c.name for c in found]
    # No cell of a row is the word that its column is called by.
    is_header = names == own or _STAMP in names or names_columns(names, [*own, *_KNOWN])
    if is_header and not begins_header(text, source):
        raise other_header(source.shown, line)
    return False


def begins_header(text: str, source: Source) -> bool:
    """Tell whether a line is the begin of the header: cut off, if no row stands below it."""
    return source.first_lines[0].startswith(text.strip())


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
        for rank, column in enumerate(powers):
            if is_told(row.cells[column.place]):
                of[rank] += 1
    best = {
        device: min(rank for rank, count in of.items() if count >= _MOST * max(of.values()))
        for device, of in told.items()
        if of
    }
    return {device: powers[rank].name for device, rank in best.items()}


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of a log, those that cannot be read, and why the first of them cannot."""

    rows: int
    rejected: int
    why: str


def nothing_told(where: str, names: str, told: Counts) -> InputFileError:
    """Return the error of a log without any power.

    Args:
        where: The log.
        names: Its columns of power.
        told: Its rows.
    """
    if told.rows and told.rejected == told.rows:
        return InputFileError(
            f"has no row that can be read: the first {told.why}",
            where=where,
            mend="give the file as nvidia-smi writes it",
        )
    if not told.rows:
        return InputFileError("has a header and no row", where=where, mend="let the log run longer")
    return InputFileError(
        f"has no power in any of its {counted(told.rows, 'row')} ({names})",
        where=where,
        mend="measure by a sensor that the board has; an external meter, say",
    )


def not_told_apart(where: str, line: int, size: int | None = None) -> InputFileError:
    """Return the error of a log of whose rows nobody can tell whether they are of several GPUs, or whose.

    Args:
        where: The log.
        line: Where such rows begin, or were found.
        size: Rows at a time; ``None`` where they are not always as many.
    """
    often = "not always as many" if size is None else f"{counted(size, 'row')} each"
    return InputFileError(
        f"has rows of several GPUs at a time, {often}, or of one that was read at steps of two lengths in "
        "turn, or more often at times: no column tells whose they are",
        where=f"{where}:{line}",
        mend="log index or uuid too; of this log add such a column by hand, if you know whose each row is",
    )
