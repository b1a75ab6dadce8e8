"""Replay: a recorded trace played back against a clock, and the recorder of such traces.

So a session is tested end to end without the hardware. A trace is a file of JSON
lines: a header ``{"schema": "carbonlens/trace/1", "sensor": {...}}`` with the
sensor's description, then ``[t_us, [value, ...]]`` a reading, with ``null`` for a
value or a whole reading that failed. A CSV file ``t_us,<device>,...`` serves too,
where the description is given beside it; an empty cell is a value that failed. A
file ``t_us,watts`` is taken for a meter at the plug where nothing describes it.
"""

from __future__ import annotations

import bisect
import csv
import io
import math
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.decoding import decode_json, json_decoder
from carbonlens.domain.units import US_PER_S
from carbonlens.errors import InputFileError, UsageError
from carbonlens.ledger.regular_file import read_regular
from carbonlens.metering.sensors import Channel, Probe, Sensor, SensorInfo
from carbonlens.signals.sensor import GAP_PERIODS

SCHEMA: Final = "carbonlens/trace/1"
_MEND: Final = "record it again, or take out the line"
_MOST_BYTES: Final = 64 * 1024 * 1024
"""Some days of readings, ten a second; longer traces would delay the work they are played for."""

PLAIN: Final = SensorInfo(
    name="wall",
    kind="instant",
    unit="W",
    scope="machine",
    boundary="it",
    grade="A",
    update_period_s=0.0,
    channels=(Channel(device="wall", component="wall"),),
    method="watts at the plug",
    width_known=False,
)
"""What a CSV file ``t_us,watts`` without a description is taken for: a meter at the plug.

Nobody stated its accuracy, so its figures have no interval.
"""

Row = tuple[int, tuple[float | None, ...] | None]
"""Microseconds of the trace's clock, and the values; ``None`` for a reading that failed."""


class TraceHeader(msgspec.Struct, frozen=True, kw_only=True):
    """First line of a trace."""

    schema: str
    sensor: SensorInfo


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """A sensor's description and its readings in time order."""

    info: SensorInfo
    rows: tuple[Row, ...]

    @property
    def spacing_us(self) -> float:
        """Median time between two readings; 0 for fewer than two."""
        return median(b[0] - a[0] for a, b in pairwise(self.rows)) if len(self.rows) > 1 else 0.0


def load_trace(path: Path, info: SensorInfo | None = None) -> Trace:
    """Read a trace; a torn last line is left out.

    Args:
        path: JSON lines, or CSV if its name ends in ``.csv``.
        info: Description of the sensor, which a CSV file does not hold.

    Raises:
        InputFileError: If the file cannot be read or a line makes no sense.
        UsageError: If a CSV file's sensor is not described, or has other devices.
    """
    try:
        text = read_regular(path, at_most=_MOST_BYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputFileError(f"the trace cannot be read ({error})", where=str(path), mend=_MEND) from error
    if path.suffix == ".csv":
        return Trace(info=_described(path, info), rows=_in_order(path, _csv_rows(path, text, info)))
    lines = text.splitlines()
    try:
        header = decode_json(lines[0] if lines else "", TraceHeader)
    except msgspec.MsgspecError as error:
        raise InputFileError(f"no trace header ({error})", where=f"{path}:1", mend=_MEND) from error
    if header.schema != SCHEMA:
        raise InputFileError(f"a trace of schema {header.schema}", where=f"{path}:1", mend=f"use {SCHEMA}")
    whole = lines[1:] if text.endswith("\n") else lines[1:-1]
    return Trace(info=header.sensor, rows=_in_order(path, _json_rows(path, whole, header.sensor)))


class TraceWriter:
    """Writes a trace, line by line.

    Args:
        path: New file; one that is there is not overwritten.
        info: Description of the sensor that is recorded.

    Raises:
        OSError: If the file is there or cannot be made.
    """

    def __init__(self, path: Path, info: SensorInfo) -> None:
        """Write the header."""
        self._stream = path.open("xb")
        self._write(TraceHeader(schema=SCHEMA, sensor=info))

    def append(self, t_us: int, values: tuple[float | None, ...] | None) -> None:
        """Write one reading; ``None`` for one that failed.

        Raises:
            OSError: If the disk is full or gone.
        """
        self._write((t_us, values))

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def _write(self, record: object) -> None:
        self._stream.write(msgspec.json.encode(record) + b"\n")


def record(
    sensor: Sensor,
    path: Path,
    seconds: float,
    *,
    period_s: float = 0.1,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Record a sensor's raw readings to a new trace; return how many.

    Args:
        sensor: Probed already; the caller closes it.
        path: New file.
        seconds: How long to read.
        period_s: Time between two readings.
        clock: Monotonic seconds.
        sleep: Waits for seconds.

    Raises:
        OSError: If the file cannot be written.
    """
    writer = TraceWriter(path, sensor.info)
    start_s = clock()
    count = 0
    try:
        while (now_s := clock()) - start_s <= seconds:
            try:
                values: tuple[float | None, ...] | None = sensor.read(edge=False)
            except OSError:
                values = None
            writer.append(round((now_s - start_s) * US_PER_S), values)
            count += 1
            sleep(max(start_s + count * period_s - clock(), 0.0))
    finally:
        writer.close()
    return count


class ReplaySensor:
    """Tells what a trace told at the same time after its first reading.

    Args:
        path: The trace.
        info: Description of the sensor, for a CSV file.
        clock: Monotonic seconds; the first reading starts the trace.
    """

    may_block = False
    rest_s = 0.0

    def __init__(
        self,
        path: Path,
        info: SensorInfo | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Keep the path; nothing is opened."""
        self._path = path
        self._given = info
        self._clock = clock
        self._trace: Trace | None = None
        self._start_s: float | None = None
        self._closed = False

    @property
    def info(self) -> SensorInfo:
        """Describe the readings as the recorded sensor did, under the name of a replay.

        Raises:
            InputFileError, UsageError: If the trace cannot be read.
        """
        told = self._loaded().info
        return msgspec.structs.replace(
            told, name=f"replay:{told.name}", method=f"replayed from a recording: {told.method}"
        )

    def probe(self) -> Probe:
        """Read the trace."""
        found = f"trace {self._path.name}"
        try:
            rows = self._loaded().rows
        except (InputFileError, UsageError) as error:
            return Probe(usable=False, found=found, reason=error.what, mend=error.mend)
        if not rows:
            return Probe(usable=False, found=found, reason="it holds no reading", mend=_MEND)
        length_s = (rows[-1][0] - rows[0][0]) / US_PER_S
        return Probe(usable=True, found=f"{found}: {counted(len(rows), 'reading')} over {length_s:.4g} s")

    def read(self, *, edge: bool) -> tuple[float | None, ...]:
        """Return the values of the trace at this time.

        Raises:
            OSError: If the reading failed when it was recorded, none is recent, the
                trace is over or cannot be read, or the sensor is closed.
        """
        del edge  # the trace has its own times
        if self._closed:
            raise OSError("the sensor is closed")
        try:
            trace = self._loaded()
        except (InputFileError, UsageError) as error:
            raise OSError(error.what) from error
        if not trace.rows:
            raise OSError("the trace holds no reading")
        now_s = self._clock()
        if self._start_s is None:
            self._start_s = now_s
        t_us = trace.rows[0][0] + (now_s - self._start_s) * US_PER_S
        place = bisect.bisect_right(trace.rows, t_us, key=lambda row: row[0]) - 1
        at_us, values = trace.rows[max(place, 0)]
        hold_us = GAP_PERIODS * max(trace.spacing_us, trace.info.update_period_s * US_PER_S)
        if values is None:
            raise OSError("the reading failed when it was recorded")
        if len(trace.rows) > 1 and t_us - at_us > hold_us:
            raise OSError("the trace has no reading of this time")
        return values

    def close(self) -> None:
        """Tell no more."""
        self._closed = True

    def _loaded(self) -> Trace:
        if self._trace is None:
            self._trace = load_trace(self._path, self._given)
        return self._trace


def _described(path: Path, info: SensorInfo | None) -> SensorInfo:
    if info is None:
        raise UsageError(
            "a CSV trace does not describe its sensor", where=str(path), mend="give its SensorInfo"
        )
    return info


def _csv_rows(path: Path, text: str, info: SensorInfo | None) -> Iterator[Row]:
    devices = [c.device for c in _described(path, info).channels]
    whole = text if text.endswith("\n") else text[: text.rfind("\n") + 1]
    rows = csv.reader(io.StringIO(whole))
    header = next(rows, [])
    wanted = ["t_us", *devices]
    if header != wanted and not (len(devices) == 1 and header == ["t_us", "watts"]):
        raise UsageError(
            f"the columns are {','.join(header)}" if header else "there is no line in it",
            where=f"{path}:1",
            mend=f"name the columns t_us,{','.join(devices)}",
        )
    for number, cells in enumerate(rows, start=2):
        try:
            values = tuple(float(cell) if cell.strip() else None for cell in cells[1:])
            yield _row(path, number, int(cells[0]), values, len(devices))
        except (ValueError, IndexError) as error:
            raise InputFileError(
                f"a line that is no reading ({error})", where=f"{path}:{number}", mend=_MEND
            ) from error


def _json_rows(path: Path, lines: list[str], info: SensorInfo) -> Iterator[Row]:
    decoder = json_decoder(Row)
    for number, line in enumerate(lines, start=2):
        if not line.strip():
            continue
        try:
            t_us, values = decoder.decode(line)
        except msgspec.MsgspecError as error:
            raise InputFileError(
                f"a line that is no reading ({error})", where=f"{path}:{number}", mend=_MEND
            ) from error
        yield _row(path, number, t_us, values, len(info.channels))


def _row(path: Path, number: int, t_us: int, values: tuple[float | None, ...] | None, channels: int) -> Row:
    if values is not None and (
        len(values) != channels or any(v is not None and not math.isfinite(v) for v in values)
    ):
        raise InputFileError(f"not {counted(channels, 'finite value')}", where=f"{path}:{number}", mend=_MEND)
    return t_us, values


def _in_order(path: Path, rows: Iterator[Row]) -> tuple[Row, ...]:
    held = tuple(rows)
    if any(b[0] < a[0] for a, b in pairwise(held)):
        raise InputFileError("its times go back", where=str(path), mend=_MEND)
    return held
