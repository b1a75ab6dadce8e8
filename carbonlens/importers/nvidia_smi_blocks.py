"""Rows of nvidia-smi's CSV by columns: blocks of lines that are plain in every respect.

A block of which any line is out of the ordinary goes by the row path, whole: numpy reads the
others from their bytes. A number of few digits is a whole number over a power of ten, and that
division rounds as the decimal does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import msgspec

from carbonlens.importers.eight_letters import LETTERS, Letters, apart, are_digits, even_numbers
from carbonlens.importers.sources import Source
from carbonlens.importers.times import FIRST_YEAR, LAST_YEAR, Clock

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from carbonlens.importers.contract import Array

    Bytes = npt.NDArray[np.uint8]
    Whole = npt.NDArray[np.int64]

BLOCK_BYTES: Final = 1 << 20
"""The columns of such a block stay in a processor's cache."""

_FORM: Final = "dddd/dd/dd dd:dd:dd.ddd"
_MINUTE: Final = _FORM[:16].encode()
_REST: Final = _FORM[-LETTERS:].replace("d", "0").encode()
_REST_MARKS: Final = int.from_bytes(bytes(0 if c == "d" else 0xFF for c in _FORM[-LETTERS:]), "little")
_MOST_DIGITS: Final = 12
_LONGEST_ID: Final = 64
_MOST_GPUS: Final = 256
_QUARTER_S: Final = 900
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001  # times of the file are local, without a zone
_SPACE, _POINT, _ZERO, _COMMA, _END = (ord(c) for c in " .0,\n")


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """What the row path found out of a log.

    Attributes:
        width: Cells of a row.
        device: Place of the cell that tells its GPU; ``None`` where there is only one.
        powers: Places of cells of power.
        bears_units: Whether those end in `` W``.
    """

    width: int
    device: int | None
    powers: Sequence[int]
    bears_units: bool


class Plain(msgspec.Struct, frozen=True, kw_only=True):
    """A block of plain rows.

    Attributes:
        t_us: UTC microseconds.
        rows: Of each GPU, by its cell: its rows, in order.
        watts: Of each cell of power.
    """

    t_us: Array
    rows: Mapping[str, Whole]
    watts: Mapping[int, Array]


def each(
    source: Source, last: int, layout: Layout, clock: Clock
) -> Iterator[tuple[int, bytes, Plain | None]]:
    """Yield the lines after one, in blocks: the first line's number, the text, and its columns if plain.

    Args:
        source: The log.
        last: The line.
        layout: What the row path found out.
        clock: Of the file.

    Raises:
        InputFileError: If the log cannot be read.
    """
    bad = 0
    for begin, whole in source.blocks(BLOCK_BYTES):
        bad += _count_bad(whole)
        skipped = min(last + 1 - begin, whole.count(b"\n")) if begin <= last else 0
        text = whole.split(b"\n", skipped)[-1] if skipped else whole
        if text:
            yield begin + skipped, text, plain(text, layout, clock)
    source.say_bad(bad)


def _count_bad(text: bytes) -> int:
    """Return how many lines hold bytes that are no letters."""
    if text.isascii():
        return 0
    plain = text.decode(errors="replace")
    return sum("\ufffd" in line for line in plain.split("\n")) if "\ufffd" in plain else 0


def plain(text: bytes, layout: Layout, clock: Clock) -> Plain | None:
    """Return a block of whole lines as columns; ``None`` where a row of it is not plain.

    Args:
        text: The lines, each with its end.
        layout: What the row path found out.
        clock: Of the file; it is told of the last time.
    """
    import numpy as np

    if not text.isascii() or any(strange in text for strange in (b'"', b"[", b"\t", b"\0")):
        return None
    # A cell at the end is looked at as far as the longest one reaches.
    letters = Letters(text + bytes(_LONGEST_ID))
    marks = np.flatnonzero((letters.bytes == _COMMA) | (letters.bytes == _END))
    if len(marks) % layout.width or not len(marks):
        return None
    ends: Whole = marks.reshape(-1, layout.width)
    is_line_end = letters.bytes[ends] == _END
    if is_line_end[:, :-1].any() or not is_line_end[:, -1].all():
        return None
    watts = {place: _numbers(letters, *_cell(letters, ends, place), layout) for place in layout.powers}
    if any(values is None for values in watts.values()):
        return None
    rows = _rows_of(letters, ends, layout)
    t_us = _times(letters, *_cell(letters, ends, 0), clock) if rows is not None else None
    if rows is None or t_us is None:
        return None
    return Plain(t_us=t_us, rows=rows, watts={p: v for p, v in watts.items() if v is not None})


def _cell(letters: Letters, ends: Whole, place: int) -> tuple[Whole, Whole]:
    """Return where the cells of a column begin and end."""
    import numpy as np

    end = np.ascontiguousarray(ends[:, place])
    if not place:
        return np.concatenate(([0], ends[:-1, -1] + 1)), end
    start = ends[:, place - 1] + 1
    # One blank after a comma, as the tool writes it; a further one is no digit and no known GPU.
    start += letters.bytes[start] == _SPACE
    return start, end


def _numbers(letters: Letters, start: Whole, end: Whole, layout: Layout) -> Array | None:
    """Return the plain numbers of a column, without their unit."""
    if layout.bears_units:
        end = end - 2
        at = letters.bytes
        if (end <= start).any() or (at[end] != _SPACE).any() or (at[end + 1] != ord("W")).any():
            return None
    told = even_numbers(letters, start, end)
    return _uneven_numbers(letters.bytes, start, end) if told is None else told


def _uneven_numbers(letters: Bytes, start: Whole, end: Whole) -> Array | None:
    """Return plain numbers of any decimals, letter by letter."""
    import numpy as np

    length = end - start
    if int(length.min()) < 1 or int(length.max()) > _MOST_DIGITS:
        return None
    whole = np.zeros(len(start), dtype=np.int64)
    points = np.zeros(len(start), dtype=np.int64)
    decimals = np.zeros(len(start), dtype=np.int64)
    for place in range(int(length.max())):
        is_in = place < length
        letter = letters[start + place]
        is_point = is_in & (letter == _POINT)
        digit = letter - np.uint8(_ZERO)
        is_digit = is_in & (digit <= 9)
        if not (is_digit | is_point | ~is_in).all():
            return None
        whole = np.where(is_digit, whole * 10 + digit, whole)
        decimals += is_digit & (points > 0)
        points += is_point
    first, last = letters[start], letters[end - 1]
    if (points > 1).any() or (first == _POINT).any() or (last == _POINT).any():
        return None
    told: Array = whole / (10.0 ** np.arange(_MOST_DIGITS))[decimals]
    return told


def _rows_of(letters: Letters, ends: Whole, layout: Layout) -> dict[str, Whole] | None:
    """Return the rows of each GPU, by the text of its cell."""
    import numpy as np

    if layout.device is None:
        return {"": np.arange(len(ends))}
    start, end = _cell(letters, ends, layout.device)
    length = end - start
    if int(length.min()) < 1 or int(length.max()) > _LONGEST_ID or (letters.bytes[end - 1] == _SPACE).any():
        return None
    return apart(letters, start, end, _MOST_GPUS)


def _times(letters: Letters, start: Whole, end: Whole, clock: Clock) -> Array | None:
    """Return UTC microseconds; ``None`` where a stamp is of another form, or its hour not sure."""
    import numpy as np

    if (end - start != len(_FORM)).any():
        return None
    day, minute = letters.at(start), letters.at(start + LETTERS)
    is_new = np.ones(len(start), dtype=bool)
    is_new[1:] = (day[1:] != day[:-1]) | (minute[1:] != minute[:-1])
    first = np.flatnonzero(is_new)
    minutes_us = _minutes(letters.bytes, start[first], clock)
    rest = letters.at(start + len(_FORM) - LETTERS) ^ np.uint64(int.from_bytes(_REST, "little"))
    if minutes_us is None or not are_digits(rest) or (rest & np.uint64(_REST_MARKS)).any():
        return None

    def digit(place: int) -> Whole:
        return ((rest >> np.uint64(8 * place)) & np.uint64(0xFF)).astype(np.int64)

    second = digit(2) * 10 + digit(3)
    if int(second.max()) > 59:
        return None
    milli = (digit(5) * 10 + digit(6)) * 10 + digit(7)
    t_us = np.repeat(minutes_us, np.diff(np.append(first, len(start)))) + second * 1_000_000 + milli * 1000
    clock.pass_by(int(t_us[-1]))
    told: Array = t_us.astype(np.float64)
    return told


def _minutes(letters: Bytes, start: Whole, clock: Clock) -> Whole | None:
    """Return the UTC microseconds of minutes; ``None`` where one is of another form, or not sure."""
    import numpy as np

    stamps = np.lib.stride_tricks.sliding_window_view(letters, len(_MINUTE))[start]
    forms = np.frombuffer(_MINUTE, dtype=np.uint8)
    is_digit = forms == ord("d")
    digits = stamps - np.uint8(_ZERO)
    if (digits[:, is_digit] > 9).any() or (stamps[:, ~is_digit] != forms[~is_digit]).any():
        return None

    def number(first: int, count: int) -> Whole:
        value: Whole = digits[:, first].astype(np.int64)
        for place in range(first + 1, first + count):
            value = value * 10 + digits[:, place]
        return value

    year, month, day = number(0, 4), number(5, 2), number(8, 2)
    hour, minute = number(11, 2), number(14, 2)
    if ((year < FIRST_YEAR) | (year > LAST_YEAR) | (month < 1) | (month > 12) | (day < 1)).any():
        return None
    if ((hour > 23) | (minute > 59)).any():
        return None
    months = (year - 1970) * 12 + month - 1
    begin = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    following = (months + 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    if (day > following - begin).any():
        return None
    local_s = (begin + day - 1) * 86_400 + hour * 3600 + minute * 60
    quarters, where = np.unique(local_s // _QUARTER_S, return_inverse=True)
    offsets = [clock.sure_offset_us(_EPOCH + timedelta(seconds=q * _QUARTER_S)) for q in quarters.tolist()]
    known = [offset for offset in offsets if offset is not None]
    if len(known) < len(offsets):
        return None
    told: Whole = local_s * 1_000_000 - np.array(known, dtype=np.int64)[where]
    return told
