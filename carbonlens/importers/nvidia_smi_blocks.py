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

from carbonlens.importers.sources import Source
from carbonlens.importers.times import FIRST_YEAR, LAST_YEAR, Clock

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from carbonlens.importers.contract import Array

    Bytes = npt.NDArray[np.uint8]
    Whole = npt.NDArray[np.int64]

BLOCK_BYTES: Final = 1 << 22
_FORM: Final = "dddd/dd/dd dd:dd:dd.ddd"
_MOST_DIGITS: Final = 12
_LONGEST_ID: Final = 64
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
        skipped = min(max(last + 1 - begin, 0), whole.count(b"\n"))
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
    letters = np.frombuffer(text + bytes(_LONGEST_ID), dtype=np.uint8)
    marks = np.flatnonzero((letters == _COMMA) | (letters == _END))
    if len(marks) % layout.width or not len(marks):
        return None
    ends: Whole = marks.reshape(-1, layout.width)
    is_line_end = letters[ends] == _END
    if is_line_end[:, :-1].any() or not is_line_end[:, -1].all():
        return None
    starts: Whole = np.empty_like(ends)
    starts[0, 0] = 0
    starts[1:, 0] = ends[:-1, -1] + 1
    starts[:, 1:] = ends[:, :-1] + 1
    # One blank after a comma, as the tool writes it; a further one is no digit and no known GPU.
    starts[:, 1:] += letters[starts[:, 1:]] == _SPACE
    watts = {place: _numbers(letters, starts[:, place], ends[:, place], layout) for place in layout.powers}
    if any(values is None for values in watts.values()):
        return None
    rows = _rows_of(letters, starts, ends, layout)
    t_us = _times(letters, starts[:, 0], ends[:, 0], clock) if rows is not None else None
    if rows is None or t_us is None:
        return None
    return Plain(t_us=t_us, rows=rows, watts={p: v for p, v in watts.items() if v is not None})


def _numbers(letters: Bytes, start: Whole, end: Whole, layout: Layout) -> Array | None:
    """Return the plain numbers of a column, without their unit."""
    import numpy as np

    if layout.bears_units:
        end = end - 2
        if (end <= start).any() or (letters[end] != _SPACE).any() or (letters[end + 1] != ord("W")).any():
            return None
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


def _rows_of(letters: Bytes, starts: Whole, ends: Whole, layout: Layout) -> dict[str, Whole] | None:
    """Return the rows of each GPU, by the text of its cell."""
    import numpy as np

    count = len(starts)
    if layout.device is None:
        return {"": np.arange(count)}
    start, end = starts[:, layout.device], ends[:, layout.device]
    length = end - start
    longest = int(length.max())
    if int(length.min()) < 1 or longest > _LONGEST_ID or (letters[end - 1] == _SPACE).any():
        return None
    cells = np.lib.stride_tricks.sliding_window_view(letters, longest)[start]
    if int(length.min()) < longest:
        cells = np.where(np.arange(longest) < length[:, None], cells, 0).astype(np.uint8)
    if longest == 1:
        _, first, of = np.unique(cells[:, 0], return_index=True, return_inverse=True)
    else:
        # A sum of letters by odd weights tells cells apart; that it does is looked at.
        weights = np.cumprod(np.full(longest, 1_000_003, dtype=np.uint64))
        sums = (cells * weights).sum(axis=1, dtype=np.uint64)
        _, first, of = np.unique(sums, return_index=True, return_inverse=True)
        if (cells != cells[first][of]).any():
            return None
    names = [bytes(letters[start[i] : end[i]]).decode() for i in first.tolist()]
    return {name: np.flatnonzero(of == number) for number, name in enumerate(names)}


def _times(letters: Bytes, start: Whole, end: Whole, clock: Clock) -> Array | None:
    """Return UTC microseconds; ``None`` where a stamp is of another form, or its hour not sure."""
    import numpy as np

    if (end - start != len(_FORM)).any():
        return None
    stamps = np.lib.stride_tricks.sliding_window_view(letters, len(_FORM))[start]
    forms = np.frombuffer(_FORM.encode(), dtype=np.uint8)
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
    hour, minute, second = number(11, 2), number(14, 2), number(17, 2)
    if ((year < FIRST_YEAR) | (year > LAST_YEAR) | (month < 1) | (month > 12) | (day < 1)).any():
        return None
    if ((hour > 23) | (minute > 59) | (second > 59)).any():
        return None
    months = (year - 1970) * 12 + month - 1
    begin = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    following = (months + 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    if (day > following - begin).any():
        return None
    local_s = (begin + day - 1) * 86_400 + hour * 3600 + minute * 60 + second
    quarters, where = np.unique(local_s // _QUARTER_S, return_inverse=True)
    offsets = [clock.sure_offset_us(_EPOCH + timedelta(seconds=q * _QUARTER_S)) for q in quarters.tolist()]
    known = [offset for offset in offsets if offset is not None]
    if len(known) < len(offsets):
        return None
    t_us = local_s * 1_000_000 + number(20, 3) * 1000 - np.array(known, dtype=np.int64)[where]
    clock.pass_by(int(t_us[-1]))
    told: Array = t_us.astype(np.float64)
    return told
