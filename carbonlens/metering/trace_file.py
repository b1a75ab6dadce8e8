"""Trace files: every reading of every sensor of a run, as plain text.

Lines that begin with ``# `` are the head, each a JSON object: one that says what the
file is and of which run, then one a column with the sensor's description (the fields
of ``SensorInfo``, one channel), then one a stretch of a phase, where the run had any, on the
clock of the rows. CSV follows: ``t_us`` (UTC microseconds) and one raw
value a column. An empty cell is no reading: one that failed, or a sensor that was not
asked at that time. Sensors that were read more than a millisecond apart have rows of
their own. A name that ends in ``.gz`` is compressed::

    # {"schema":"carbonlens/run-trace/2","run_id":"0192...","start_us":1700000000000000}
    # {"column":"nvml_power/GPU-1","sensor":{"name":"nvml_power","unit":"W",...}}
    # {"phase":"load","start_us":1700000000000000,"end_us":1700000000100000}
    t_us,nvml_power/GPU-1
    1700000000000000,61.5
    1700000000100000,
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import heapq
import math
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Final, NamedTuple

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.decoding import decode_json
from carbonlens.errors import InputFileError
from carbonlens.ledger.atomic import sync_folder
from carbonlens.metering.sealing import Sample, Values
from carbonlens.metering.sensors import Channel, SensorInfo

SCHEMA: Final = "carbonlens/run-trace/1"
"""Not ``carbonlens/trace/1``, which is one sensor's recording to be played (``sensors.replay``)."""

WITH_PHASES: Final = "carbonlens/run-trace/2"
"""Of a trace whose head holds phases. One without them is of the first version, which an older
carbonlens reads too."""

_FAMILY: Final = SCHEMA.rpartition("/")[0]
_LONGEST_HEAD: Final = 4096
_GZ: Final = ".gz"
_GZ_LEVEL: Final = 6
_APART_US: Final = 1000
"""Readings of one look that lie nearer to it share its row, as in the session's own samples."""

_WAITING: Final = 64
"""Rows held back until later ones cannot come before them any more."""

_MEND: Final = "give a trace that `carbonlens run --trace` wrote"
_UNNAMEABLE: Final = re.compile(r"[^A-Za-z0-9._:/@+-]+")
_COMPRESSION_FAULTS: Final = (gzip.BadGzipFile, zlib.error, EOFError)


class Head(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """First line: of which run the readings are.

    Attributes:
        start_us: UTC microseconds of the window's start.
        host_id, machine_id: As in the run's record.
    """

    schema: str
    run_id: str
    start_us: int
    host_id: str | None = None
    machine_id: str | None = None


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One further line of the head: what a column holds.

    Attributes:
        column: Its name in the CSV.
        sensor: What was read, with this channel alone; values are raw, in its unit.
    """

    column: str
    sensor: SensorInfo

    @property
    def channel(self) -> Channel:
        """The one channel."""
        return self.sensor.channels[0]


class PhaseLine(msgspec.Struct, frozen=True, kw_only=True):
    """One further line of the head: a stretch of a phase, in UTC microseconds as the rows have them."""

    phase: str
    start_us: int
    end_us: int


def schema_of(phases: Sequence[object]) -> str:
    """Return the version of a trace, by the phases that its head holds.

    Args:
        phases: Any; none for a trace without.
    """
    return WITH_PHASES if phases else SCHEMA


Row = tuple[int, tuple[float | None, ...]]
"""UTC microseconds, and one value a column."""


class RunTrace(msgspec.Struct, frozen=True, kw_only=True):
    """A trace as read: rows in order of time, phases in theirs; those of an older trace are not known."""

    head: Head
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    phases: tuple[PhaseLine, ...] = ()

    def readings(self, column: int) -> list[tuple[int, float]]:
        """Return what a column tells: times and values, without the empty cells."""
        told = ((t_us, values[column]) for t_us, values in self.rows)
        return [(t_us, value) for t_us, value in told if value is not None]


def columns_of(infos: Iterable[SensorInfo]) -> tuple[Column, ...]:
    """Return the columns of sensors: one a channel, each under a name of its own.

    Args:
        infos: In the order of each sample's values.
    """
    made: list[Column] = []
    taken: set[str] = set()
    for info in infos:
        for channel in info.channels:
            end = f"/{channel.who}" if info.kind == "use" else ""
            plain = _UNNAMEABLE.sub("_", f"{info.name}/{channel.device}{end}")
            name, count = plain, 1
            while name in taken:
                count += 1
                name = f"{plain}/{count}"
            taken.add(name)
            made.append(Column(column=name, sensor=msgspec.structs.replace(info, channels=(channel,))))
    return tuple(made)


def rows_of(samples: Iterable[Sample], infos: Sequence[SensorInfo], start_us: int) -> Iterator[Row]:
    """Yield the rows of samples, in order of time.

    Args:
        samples: Nearly in order.
        infos: The sensors, in the order of each sample's values.
        start_us: UTC microseconds of the window's start.
    """
    widths = [len(info.channels) for info in infos]
    waiting: list[tuple[int, int, tuple[float | None, ...]]] = []
    count = 0
    for sample in samples:
        for t_us, values in _rows_of_one(sample, widths):
            count += 1
            # The count keeps rows of one time in their order.
            heapq.heappush(waiting, (start_us + t_us, count, values))
        while len(waiting) > _WAITING:
            t_us, _, values = heapq.heappop(waiting)
            yield t_us, values
    while waiting:
        t_us, _, values = heapq.heappop(waiting)
        yield t_us, values


def _rows_of_one(sample: Sample, widths: Sequence[int]) -> Iterator[Row]:
    """Yield the rows of one look: one, unless its sensors were read at times of their own."""
    if sample.values and all(values == () for values in sample.values):
        return
    if not sample.skew_us:
        yield sample.t_us, _cells(sample.values, widths)
        return
    by_time: dict[int, dict[int, Values]] = {}
    for place, (values, skew_us) in enumerate(zip(sample.values, sample.skew_us, strict=False)):
        if values:
            by_time.setdefault(0 if abs(skew_us) <= _APART_US else skew_us, {})[place] = values
    # A look in which every reading failed is a row too: it was tried then.
    for skew_us, told in (by_time or {0: {}}).items():
        yield sample.t_us + skew_us, _cells([told.get(i) for i in range(len(widths))], widths)


def _cells(values: Sequence[Values], widths: Sequence[int]) -> tuple[float | None, ...]:
    cells: list[float | None] = []
    for told, width in zip(values, widths, strict=False):
        # Nothing was told where a reading failed or was not due.
        cells += told if told and len(told) == width else (None,) * width
    return tuple(cells)


def write_trace(
    path: Path,
    head: Head,
    columns: Sequence[Column],
    rows: Iterable[Row],
    phases: Sequence[PhaseLine] = (),
) -> str:
    """Write a trace, whole or not at all, and return the SHA-256 of the file.

    Args:
        path: The file; one that is there is replaced.
        head: Of which run, and of the version that phases ask for (``schema_of``).
        columns: What each value of a row is.
        rows: In order of time.
        phases: When the run's phases were.

    Raises:
        OSError: If it cannot be written.
        TypeError, ValueError, OverflowError: If the head holds what JSON cannot.
    """
    fresh = path.with_name(f".{path.name[:64]}.{os.urandom(8).hex()}.tmp")
    try:
        with fresh.open("xb") as stream:
            hashed = _Hashed(stream)
            with ExitStack() as opened:
                # Without name and time in it, the same readings make the same file.
                target: _Hashed | gzip.GzipFile = (
                    opened.enter_context(gzip.GzipFile("", "wb", _GZ_LEVEL, hashed, mtime=0))
                    if path.name.endswith(_GZ)
                    else hashed
                )
                for block in _blocks(_lines(head, columns, rows, phases)):
                    target.write(block)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(path)
    except BaseException:  # put in order, then raised again
        fresh.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
    return hashed.sha256


class _Hashed:
    """Writes to a stream and hashes what goes there."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._hash = hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def write(self, content: bytes) -> int:
        self._hash.update(content)
        return self._stream.write(content)

    def flush(self) -> None:
        self._stream.flush()


def _lines(
    head: Head, columns: Sequence[Column], rows: Iterable[Row], phases: Sequence[PhaseLine]
) -> Iterator[str]:
    for record in (head, *columns, *phases):
        yield f"# {msgspec.json.encode(record).decode()}\n"
    yield ",".join(("t_us", *(c.column for c in columns))) + "\n"
    for t_us, values in rows:
        yield ",".join((str(t_us), *map(_cell, values))) + "\n"


def _cell(value: float | None) -> str:
    # Neither NaN nor infinity is a reading.
    return repr(value) if value is not None and math.isfinite(value) else ""


def _blocks(lines: Iterable[str]) -> Iterator[bytes]:
    """Yield lines in blocks of some kilobytes: one call a line would cost more than its text."""
    held: list[str] = []
    for line in lines:
        held.append(line)
        if len(held) >= 512:
            yield "".join(held).encode()
            held.clear()
    yield "".join(held).encode()


def traced_run(path: Path) -> str | None:
    """Return the run whose trace a file is; ``None`` where it is no run's trace.

    Raises:
        OSError: If it cannot be read.
    """
    if not path.is_file():
        return None
    try:
        with gzip.open(path, "rb") if path.name.endswith(_GZ) else path.open("rb") as stream:
            first = stream.readline(_LONGEST_HEAD)
        head = decode_json(first.removeprefix(b"# "), Head)
    except (*_COMPRESSION_FAULTS, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return head.run_id if head.schema.startswith(_FAMILY) else None


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file.

    Raises:
        OSError: If it cannot be read.
    """
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_run_trace(path: Path) -> RunTrace:
    """Read a trace.

    Args:
        path: Compressed if its name ends in ``.gz``.

    Raises:
        InputFileError: If it cannot be read, or a line makes no sense.
    """
    try:
        if not path.is_file():
            raise _refused(path, "is no regular file" if path.exists() else "is not there")
        with gzip.open(path, "rb") if path.name.endswith(_GZ) else path.open("rb") as stream:
            return _parsed(path, (line.decode() for line in stream))
    except _COMPRESSION_FAULTS as error:
        raise _refused(path, f"is no whole compressed file ({error})") from error
    except OSError as error:
        raise _refused(path, f"cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise _refused(path, "is no UTF-8 text") from error


class _Place(NamedTuple):
    """Where a fault was found."""

    path: Path
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


def _parsed(path: Path, lines: Iterator[str]) -> RunTrace:
    head: Head | None = None
    columns: list[Column] = []
    phases: list[PhaseLine] = []
    number = 0
    for number, line in enumerate(lines, start=1):
        if not line.startswith("# "):
            break
        place = _Place(path, number)
        try:
            if head is None:
                head = _head(place, line[2:])
            elif head.schema == WITH_PHASES and line.startswith('# {"phase":'):
                phases.append(_phase(place, line[2:]))
            else:
                columns.append(_column(place, line[2:]))
        except msgspec.MsgspecError as error:
            raise _refused(place, f"no line of a trace's head ({error})") from error
    else:
        line = ""
    if head is None:
        raise _refused(path, "is no trace of a run")
    if line.rstrip("\r\n").split(",") != ["t_us", *(c.column for c in columns)]:
        raise _refused(_Place(path, number), "the columns are not those that the head describes")
    rows = list(_read_rows(path, number + 1, lines, len(columns)))
    rows.sort(key=lambda row: row[0])
    return RunTrace(head=head, columns=tuple(columns), rows=tuple(rows), phases=tuple(phases))


def _head(place: _Place, text: str) -> Head:
    head = decode_json(text, Head)
    if head.schema not in (SCHEMA, WITH_PHASES):
        raise _refused(place, f"it is of schema {head.schema}, and {WITH_PHASES} or {SCHEMA} is wanted")
    return head


def _phase(place: _Place, text: str) -> PhaseLine:
    phase = decode_json(text, PhaseLine)
    if phase.end_us < phase.start_us:
        raise _refused(place, f"the phase {phase.phase!r} ends before it begins")
    return phase


def _column(place: _Place, text: str) -> Column:
    column = decode_json(text, Column)
    if len(column.sensor.channels) != 1:
        raise _refused(place, f"the column {column.column} is not of one channel")
    return column


def _read_rows(path: Path, first: int, lines: Iterator[str], width: int) -> Iterator[Row]:
    for number, cells in enumerate(csv.reader(lines), start=first):
        try:
            values = tuple(float(cell) if cell else None for cell in cells[1:])
            t_us = int(cells[0])
        except (ValueError, IndexError) as error:
            raise _refused(_Place(path, number), f"a line that is no reading ({error})") from error
        if len(values) != width or any(v is not None and not math.isfinite(v) for v in values):
            raise _refused(
                _Place(path, number),
                f"not {counted(width, 'finite value or empty cell', 'finite values or empty cells')}",
            )
        yield t_us, values


def _refused(place: Path | _Place, what: str) -> InputFileError:
    return InputFileError(what, where=str(place), mend=_MEND)
