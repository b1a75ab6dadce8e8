"""A large file of codecarbon's, block by block: regular rows as columns, the others one by one.

What comes out is what the row path alone gives: the same records, Findings, lines and counts.
The first row of a kind is read by the row path, and is the pattern of the others.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from carbonlens.domain.alike import Alike
from carbonlens.domain.grades import default_relative_sigma
from carbonlens.domain.units import US_PER_S
from carbonlens.errors import MissingExtraError
from carbonlens.importers.contract import AlikeRecords, Item, Options, RunRecord
from carbonlens.importers.once import Once
from carbonlens.importers.sources import HEAD_BYTES, Source
from carbonlens.importers.tables import Table
from carbonlens.importers.times import Clock

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from duckdb import DuckDBPyConnection

    from carbonlens.importers.codecarbon_columns import Block, Lines

WORTH_BYTES: Final = HEAD_BYTES
"""Length of a file from which opening DuckDB pays."""

BLOCK_BYTES: Final = 1 << 23
_AT_ONCE: Final = 2
"""Blocks that are read while what another one holds is looked at."""

FEWEST_ALIKE: Final = 4
"""Rows of one kind in a block from which columns of them pay."""

_QUARTER_S: Final = 900
_DAY_S: Final = 86_400
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001  # times of the file are local, without a zone


class Rows(Protocol):
    """The row path.

    Attributes:
        once: What it says once.
        rows: Rows that it met.
    """

    once: Once
    rows: int

    def row(self, line: int, cells: list[str]) -> Iterator[Item]:
        """Yield the run of a row, after what is wrong in it."""
        ...

    def clock(self, zone: str | None) -> Clock:
        """Return the clock of a zone."""
        ...


class _Ready(msgspec.Struct, frozen=True):
    """What was read of a block: its lines, their columns if any are regular, and how many lines are bad."""

    first: int
    lines: Lines
    block: Block | None
    bad: int


class _Timed(msgspec.Struct, frozen=True):
    """Regular rows of one zone: their places among the lines, and when each ended."""

    zone: str | None
    places: npt.NDArray[np.int64]
    end_us: npt.NDArray[np.int64]


def is_worth_it(source: Source) -> bool:
    """Tell whether a file is long enough."""
    return len(source.head()) >= WORTH_BYTES


class Blocks:
    """Reads one file.

    Args:
        source: The file.
        table: Its table, of which nothing was read.
        options: What the user says.
        rows: The row path, with the same table.
    """

    def __init__(self, source: Source, table: Table, options: Options, rows: Rows) -> None:
        """Open nothing yet."""
        self._source = source
        self._table = table
        self._options = options
        self._rows = rows
        self._clocks: dict[str | None, Clock] = {}
        self._bad = 0

    def items(self) -> Iterator[Item]:
        """Yield runs and Findings.

        Raises:
            InputFileError: If the source cannot be read.
        """
        connection = _connection()
        if connection is None:
            for line, cells in self._table.rows():
                yield from self._rows.row(line, cells)
            return
        try:
            for ready in self._ready(connection):
                yield from self._block(ready)
        finally:
            connection.close()
        self._source.say_bad(self._bad)

    def _ready(self, connection: DuckDBPyConnection) -> Iterator[_Ready]:
        """Yield what was read of each block, in order; further ones are read meanwhile."""
        with ThreadPoolExecutor(_AT_ONCE) as readers:
            waiting: deque[Future[_Ready]] = deque()
            for first, text in self._source.blocks(BLOCK_BYTES):
                line, rest = self._without_header(first, text)
                if rest:
                    waiting.append(readers.submit(self._read, connection, line, rest))
                if len(waiting) > _AT_ONCE:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    def _read(self, connection: DuckDBPyConnection, first: int, text: bytes) -> _Ready:
        from carbonlens.importers.codecarbon_columns import Columns, Lines

        header = self._table.header
        lines = Lines(text, len(header))
        bad = _leave_bad(text, lines)
        with connection.cursor() as cursor:
            columns = Columns(cursor, header)
            block = columns.read(lines) if columns.has_rows else None
        return _Ready(first, lines, block, bad)

    def _without_header(self, first: int, text: bytes) -> tuple[int, bytes]:
        line, rest = first, text
        while rest and not self._table.header:
            head, _, rest = rest.partition(b"\n")
            plain = head.decode(errors="replace")
            self._bad += "\ufffd" in plain
            self._table.cells_of(line, plain.lstrip("\ufeff") if line == 1 else plain)
            line += 1
        return line, rest

    def _block(self, ready: _Ready) -> Iterator[Item]:
        import numpy as np

        first, lines, block = ready.first, ready.lines, ready.block
        self._bad += ready.bad
        kind_of = np.full(len(lines), -1)
        kinds: list[npt.NDArray[np.int64]] = []
        timed: list[_Timed] = []
        end_us = np.zeros(0, dtype=np.int64)
        if block is not None:
            timed, end_us, sure = self._timed(block)
            kinds = _kinds(block, sure)
            for number, rows in enumerate(kinds):
                kind_of[block.places[rows]] = number
        firsts = [] if block is None else [int(block.places[rows[0]]) for rows in kinds]
        # In the order of the file; a kind whose first row does not stand for it is put back.
        waiting = sorted([*np.flatnonzero(kind_of < 0).tolist(), *firsts])
        last = -1
        while waiting:
            place = heapq.heappop(waiting)
            self._pass_by(timed, last, place)
            last = place
            cells = self._table.cells_of(first + place, lines.text(place))
            if cells is None:
                continue
            since = self._rows.once.counts()
            items = list(self._rows.row(first + place, cells))
            number = int(kind_of[place])
            told = None
            if block is not None and number >= 0:
                told = _alike(items, block, kinds[number], end_us, first)
            if told is None:
                yield from items
                if number >= 0 and block is not None:
                    others = block.places[kinds[number][1:]]
                    kind_of[others] = -1
                    for other in others.tolist():
                        heapq.heappush(waiting, other)
                continue
            yield told
            self._rows.once.repeat(since, len(told) - 1)
            self._rows.rows += len(told) - 1
        self._pass_by(timed, last, len(lines))

    def _timed(self, block: Block) -> tuple[list[_Timed], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Return the regular rows by their zones, the end of each, and where its clock is sure."""
        import numpy as np

        zone_of = [self._options.zone_of(name.strip() or None) for name in block.projects]
        zones = list(dict.fromkeys(zone_of))
        of = np.array([zones.index(zone) for zone in zone_of])[block.kinds] if len(zones) > 1 else None
        end_us = block.local_s * US_PER_S
        sure = np.ones(len(end_us), dtype=bool)
        places = []
        for number, zone in enumerate(zones):
            rows = np.arange(len(end_us)) if of is None else np.flatnonzero(of == number)
            offset_us, known = self._offsets(zone, block.local_s[rows])
            end_us[rows] -= offset_us
            sure[rows] = known
            places.append((zone, rows))
        timed = [
            _Timed(zone, block.places[rows[sure[rows]]], end_us[rows[sure[rows]]]) for zone, rows in places
        ]
        return timed, end_us, sure

    def _offsets(
        self, zone: str | None, local_s: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        import numpy as np

        if zone not in self._clocks:
            self._clocks[zone] = Clock(zone, self._source)
        clock = self._clocks[zone]
        # A day that begins and ends by one offset has no other: clocks never change twice in one.
        days, where = np.unique(local_s // _DAY_S, return_inverse=True)
        begins = [_sure_offset_us(clock, d * _DAY_S) for d in days.tolist()]
        ends = [_sure_offset_us(clock, (d + 1) * _DAY_S) for d in days.tolist()]
        even = np.array([a is not None and a == b for a, b in zip(begins, ends, strict=True)], dtype=bool)
        offsets = np.array([o or 0 for o in begins], dtype=np.int64)[where]
        known = even[where]
        rest = np.flatnonzero(~known)
        if len(rest):
            quarters, where = np.unique(local_s[rest] // _QUARTER_S, return_inverse=True)
            found = [_sure_offset_us(clock, q * _QUARTER_S) for q in quarters.tolist()]
            offsets[rest] = np.array([o or 0 for o in found], dtype=np.int64)[where]
            known[rest] = np.array([o is not None for o in found], dtype=bool)[where]
        return offsets, known

    def _pass_by(self, timed: list[_Timed], last: int, place: int) -> None:
        """Tell the clocks of the row path of the regular rows between two others."""
        import numpy as np

        for one in timed:
            before = int(np.searchsorted(one.places, place)) - 1
            if before >= 0 and one.places[before] > last:
                self._rows.clock(one.zone).pass_by(int(one.end_us[before]))


def _sure_offset_us(clock: Clock, local_s: int) -> int | None:
    return clock.sure_offset_us(_EPOCH + timedelta(seconds=local_s))


def _leave_bad(text: bytes, lines: Lines) -> int:
    """Leave lines with bytes that are no UTF-8 to the row path, and count them."""
    bad = 0
    if not (text.isascii() or _is_clean(text)):
        for place in range(len(lines)):
            if "\ufffd" in lines.text(place):
                lines.is_regular[place] = False
                bad += 1
    return bad


def _kinds(block: Block, sure: npt.NDArray[np.bool_]) -> list[npt.NDArray[np.int64]]:
    """Return the rows of each kind, in order; kinds of few rows are left out."""
    import numpy as np

    rows = np.flatnonzero(sure)
    if not len(rows):
        return []
    numbers = block.kinds[rows]
    order = np.argsort(numbers, kind="stable")
    parted = np.split(rows[order], np.flatnonzero(np.diff(numbers[order])) + 1)
    return [part for part in parted if len(part) >= FEWEST_ALIKE]


def _alike(
    items: list[Item],
    block: Block,
    rows: npt.NDArray[np.int64],
    end_us: npt.NDArray[np.int64],
    first: int,
) -> AlikeRecords | None:
    """Return the runs of one kind; ``None`` where its first row is not as the columns have it."""
    if len(items) != 1 or not isinstance(items[0], RunRecord):
        return None
    pattern = items[0]
    run = pattern.run
    columns = [block.energy_uj.get(reading.component) for reading in run.energy]
    energy = [column[rows] for column in columns if column is not None]
    beside = [block.stated_uj[rows] for _ in run.beside]
    readings = (*run.energy, *run.beside)
    sigmas = [s for r in readings if (s := default_relative_sigma(r.grade)) is not None]
    if len(energy) != len(run.energy) or len(sigmas) != len(readings):
        return None
    if any(len(r.u_by_source_j) != 1 for r in readings) or any((c <= 0).any() for c in (*energy, *beside)):
        return None
    chosen = rows.tolist()
    runs = Alike(
        pattern=run,
        run_ids=[block.ids[i] for i in chosen],
        start_us=end_us[rows] - block.duration_us[rows],
        end_us=end_us[rows],
        duration_s=block.duration_s[rows],
        energy_uj=tuple(energy),
        beside_uj=tuple(beside),
        sigmas=tuple(sigmas),
        emissions_kg=[block.kg[i] for i in chosen],
        lines=block.places[rows] + first,
    )
    told = AlikeRecords(pattern=pattern, runs=runs, stated_uj=block.stated_uj[rows])
    return told if told.record(0) == pattern else None


def _connection() -> DuckDBPyConnection | None:
    """Return a DuckDB; ``None`` where it or numpy is not installed: the row path reads all then."""
    from carbonlens.ledger.parquet import connect

    try:
        import numpy  # noqa: F401 - only to see whether it is there

        connection = connect()
    except (ImportError, MissingExtraError):
        return None
    # A block is one piece of work: blocks are read beside each other, and a second thread only waits.
    connection.execute("SET threads = 1")
    return connection


def _is_clean(text: bytes) -> bool:
    try:
        return "\ufffd" not in text.decode()
    except UnicodeDecodeError:
        return False
