"""nvidia-smi --query-gpu: CSV of any set of columns, one row a GPU and moment.

``timestamp`` is local time without a zone. A power cell is ``56.12 W``, or ``56.12`` with
``nounits``; what cannot be read is ``[N/A]``, ``[Not Supported]`` or the like. Which power
``power.draw`` is depends on the board (a mean of 1 s on Ampere and later, but not on GA100);
``power.draw.instant`` says what it is, so it counts where it is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain, product
from typing import Final

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.errors import InputFileError
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import (
    USUAL,
    Channel,
    Chunk,
    Facts,
    Group,
    Item,
    Kind,
    Named,
    Options,
    Tally,
)
from carbonlens.importers.device_samples import DeviceSamples
from carbonlens.importers.nvidia_smi_columns import (
    LASTING,
    LIMITS,
    NAMES,
    POWER,
    STAMP,
    WATTS,
    Column,
    columns_of,
    is_bare,
    is_mine,
)
from carbonlens.importers.nvidia_smi_looks import (
    Counts,
    Row,
    begins_header,
    counted_columns,
    id_places,
    is_header,
    is_told,
    not_told_apart,
    nothing_told,
)
from carbonlens.importers.nvidia_smi_rows import Joining, Places, are_mixed, bursts_of, resolution_us
from carbonlens.importers.once import Once
from carbonlens.importers.records import finding
from carbonlens.importers.rewritten import Headed
from carbonlens.importers.sources import Source, delimiter_of
from carbonlens.importers.tables import exact, other_header, split, with_unit
from carbonlens.importers.times import Clock
from carbonlens.importers.unit_checks import LEAST_DEVICE_W

_PLAIN_WATTS: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)( W)?")
"""A cell of which nothing is in doubt, as nearly all are."""

_LOOK_AHEAD: Final = 4096
"""Rows that tell which columns hold something, before the first sample is handed on."""


class NvidiaSmiImporter:
    """Importer of the CSV that ``nvidia-smi --query-gpu=... --format=csv`` writes."""

    name = "nvidia-smi"
    version = 1
    kind: Kind = "trace"
    rank = USUAL
    facts = Facts(
        title="nvidia-smi --query-gpu, CSV",
        reads="any set of columns, with or without units; without a header where one cell holds watts",
        units="W, as the header or the cell states; local time without a zone",
        grade="C: power, integrated",
        traps=(
            "times are local and bear no zone: --tz",
            "power.draw.instant counts where a GPU tells it as a rule, else power.draw, else "
            "power.draw.average; the others stand beside",
            "a row whose id (uuid, bus id, index) failed is left out where the others tell theirs",
            "no power column: refused, for no energy can be computed",
            "[N/A], [Not Supported] and the like are failed readings, never 0",
            "a last cell that was cut off (22.8 for 22.89 W) is known by its missing unit, and left out",
            "rows of several GPUs that no column tells apart are told apart by their place in each burst, "
            "where rows are closer than a loop's or each place has a board of its own; refused where bursts "
            "are not of one size, or may be of one GPU whose log pauses, and where a GPU joins or leaves",
            "a second header of other columns, units or order (two logs joined): refused, with its line",
        ),
        tested_on=("three real logs (RTX 4090, laptop GPU) and one without power; samples typed here",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Return the sources whose first line names its columns, or holds a stamp and watts."""
        return each(sources, is_mine)

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield the samples of each GPU.

        Raises:
            InputFileError: If there is no power column, no power in it, or another header follows, or
                if GPUs cannot be told apart.
        """
        if is_bare(group.main.first_lines[0]):
            from carbonlens.importers import nvidia_smi_bare

            group = nvidia_smi_bare.with_header(group.main, options)
        yield from _Log(group.main, options).items()


IMPORTER: Final = NvidiaSmiImporter()


def _first(rows: Iterator[Row | Chunk | Finding]) -> tuple[list[Row | Chunk | Finding], list[Row]]:
    """Return what comes up to the last row that is looked ahead at, and those rows.

    However many lines before them are none: a driver that was down for hours tells nothing of its columns.
    """
    met: list[Row | Chunk | Finding] = []
    ahead: list[Row] = []
    for row in rows:
        met.append(row)
        if isinstance(row, Row):
            ahead.append(row)
            if len(ahead) == _LOOK_AHEAD:
                break
    return met, ahead


class _Log:
    def __init__(self, source: Source, options: Options) -> None:
        self._source = source
        self._clock = Clock(options.tz, source)
        self._once = Once(source)
        self._rows = self._rejected = 0
        self._said: list[Item] = []
        self._why = ""
        self._channels: dict[tuple[str, str], Channel] = {}
        self._shown: dict[str, str] = {}
        self._counts: dict[str, str] = {}
        first = source.first_lines[0]
        self._delimiter = delimiter_of(first)
        self._columns = columns_of(first)
        by_name = {c.name: c for c in reversed(self._columns)}
        # A column that was asked for twice tells the same twice.
        self._power = [by_name[name] for name in POWER if name in by_name]
        self._time = next((c.place for c in self._columns if c.name == "timestamp"), None)
        self._bears_units = False
        self._line = 0
        self._cut_header = 0
        self._is_twice = False
        self._joining: Joining | None = None
        self._later: list[tuple[float, ...]] = []

    def items(self) -> Iterator[Item]:
        """Yield everything."""
        if not self._power:
            raise InputFileError(
                "has no power column: energy cannot be computed",
                where=self._source.shown,
                mend="log power.draw too, and index where there are several GPUs",
            )
        rows: Iterator[Row | Chunk | Finding] = self._parsed(self._source.lines())
        met, ahead = _first(rows)
        self._bears_units = any(with_unit(r.cells[c.place])[1] for r in ahead for c in self._power)
        ids = id_places(self._columns, ahead)
        self._counts = counted_columns(self._power, ahead, ids)
        names = {c.name: c.place for c in self._columns}
        hardware = dict.fromkeys(r.cells[names[n]] for n in NAMES if n in names for r in ahead)
        if hardware:
            yield Named(hardware=", ".join(hardware))
        places = self._places(ahead, ids)
        samples = DeviceSamples(has_times=self._time is not None)
        if len(ahead) == _LOOK_AHEAD and self._may_be_plain(places):
            rows = self._by_blocks(self._line, ids, samples)
        yield from self._said
        yield from self._taken(chain(met, rows), ids, places, samples)
        self._look_for_joined()
        if not samples.is_known:
            told = Counts(rows=self._rows, rejected=self._rejected, why=self._why)
            raise nothing_told(self._source.shown, ", ".join(c.name for c in self._power), told)
        yield from samples.hand_on()
        yield from self._once.findings()
        yield from self._clock.findings
        yield Tally(rows=self._rows, rejected=self._rejected)

    def _taken(
        self,
        rows: Iterable[Row | Chunk | Finding],
        ids: list[int],
        places: Places | None,
        samples: DeviceSamples,
    ) -> Iterator[Item]:
        """Yield the samples of rows, those of blocks as they come, and what is wrong, by its line."""
        for row in rows:
            if isinstance(row, Finding):
                yield row
                continue
            if isinstance(row, Chunk):
                yield from samples.hand_on()
                yield row
                continue
            wrong = self._take(row, ids, places, samples)
            if wrong is not None:
                yield wrong
            if samples.is_full:
                yield from samples.hand_on()

    def _may_be_plain(self, places: Places | None) -> bool:
        """Whether blocks of further rows may be read by columns."""
        units = {c.unit.lower() for c in self._power}
        is_csv = self._delimiter == "," and self._time == 0 and len(self._columns) > 1
        return is_csv and places is None and units <= {"", "w"} and type(self._source) in {Source, Headed}

    def _by_blocks(
        self, last: int, ids: list[int], samples: DeviceSamples
    ) -> Iterator[Row | Chunk | Finding]:
        """Yield the rows after a line: samples of plain blocks, others one by one."""
        from carbonlens.importers import nvidia_smi_blocks as blocks

        layout = blocks.Layout(
            width=len(self._columns),
            device=ids[0] if ids else None,
            powers=[c.place for c in self._power],
            bears_units=self._bears_units,
        )
        for first, text, found in blocks.each(self._source, last, layout, self._clock):
            met = product((d if ids else "GPU 0" for d in found.rows), self._power) if found else ()
            if found is None or any((device, c.name) not in self._channels for device, c in met):
                lines = text.decode(errors="replace").removesuffix("\n").split("\n")
                yield from self._parsed(enumerate(lines, first))
                continue
            self._refuse_below_cut_header()
            if self._joining is not None and self._joining.is_told_by(found.t_us, list(found.watts.values())):
                raise not_told_apart(self._source.shown, first)
            self._rows += len(found.t_us)
            for (device, rows), column in product(found.rows.items(), self._power):
                channel = self._channels[device if ids else "GPU 0", column.name]
                values, line = found.watts[column.place][rows], first + int(rows[0])
                samples.is_known = True
                yield Chunk(channel=channel, t_us=found.t_us[rows], values=values, line=line)

    def _parsed(self, lines: Iterable[tuple[int, str]]) -> Iterator[Row | Finding]:
        width = len(self._columns)
        is_first = not self._rows
        for line, text in lines:
            self._line = line
            if not text.strip():
                continue
            if is_first or is_header(text, self._columns, self._source, line):
                is_first = False
                self._cut_header = 0
                continue
            if begins_header(text, self._source):
                self._cut_header = line
            elif text[:1].isdigit():
                self._refuse_below_cut_header()
            self._rows += 1
            cells = split(text, self._delimiter)
            while len(cells) > width and not cells[-1]:
                cells.pop()
            try:
                if len(cells) != width:
                    size = "more" if len(cells) > width else "fewer"
                    raise ValueError(f"has not as many cells as there are columns, but {size}")
                yield Row(line, self._t_us(cells, line), cells)
            except ValueError as error:
                yield self._reject(line, error)

    def _t_us(self, cells: list[str], line: int) -> float | None:
        if self._time is None:
            return None
        text = cells[self._time]
        if not STAMP.match(text):
            raise ValueError(f"has timestamp {text!r}, which is no date and time")
        return self._clock.us(datetime.fromisoformat(text.replace("/", "-")), line)

    def _take(
        self, row: Row, ids: list[int], places: Places | None, samples: DeviceSamples
    ) -> Finding | None:
        """Take a row's samples, or say why it has none."""
        try:
            device, shown = self._device(row, ids, places)
            values = [(c, self._watts(row, c)) for c in self._power]
        except ValueError as error:
            return self._reject(row.line, error)
        if self._joining is not None and row.t_us is not None:
            self._later.append((row.t_us, *(watts for _, watts in values)))
            if len(self._later) >= _LOOK_AHEAD:
                self._look_for_joined()
        for column, watts in values:
            channel = self._channels.get((device, column.name)) or self._channel(device, shown, column)
            samples.add(channel, row.t_us, watts, row.line)
        return None

    def _channel(self, device: str, shown: str, column: Column) -> Channel:
        # Of a GPU that joined later the first one's counts.
        is_counted = column.name == self._counts.get(device, next(iter(self._counts.values()), ""))
        if self._shown.setdefault(shown, device) != device:
            # A log of two machines, or of a board that was changed: two GPUs of one index.
            shown = f"{shown} ({device})"
        made = self._channels[device, column.name] = Channel(
            name=shown if is_counted else f"{shown} {column.name}",
            component="soc" if column.name.startswith("module.") else "gpu",
            device=device,
            kind="average" if column.name.endswith(".average") else "instant",
            counted=is_counted,
            method=f"nvidia-smi {column.name}",
            unit=column.unit or "W",
            least_w=LEAST_DEVICE_W,
            is_least=self._is_twice,
        )
        return made

    def _watts(self, row: Row, column: Column) -> float:
        """Return the watts of a cell; NaN for a reading that failed.

        Raises:
            ValueError: If it is neither, or was cut off.
        """
        cell = row.cells[column.place]
        plain = _PLAIN_WATTS.fullmatch(cell)
        if plain and bool(plain[2]) == self._bears_units and column.unit.lower() in {"", "w"}:
            return float(plain[1])
        if not is_told(cell):
            return float("nan")
        text, unit = with_unit(cell)
        if self._bears_units and not unit:
            raise ValueError(f"has {column.name} {cell!r} without its unit: it was cut off")
        size = WATTS.get((unit or column.unit).lower())
        value = exact(text, delimiter=self._delimiter)
        if size is None or value is None:
            raise ValueError(f"has {column.name} {cell!r}, which is no power")
        if value < 0:
            raise ValueError(f"has {column.name} {cell!r}, below zero")
        if unit and column.unit and unit.lower() != column.unit.lower():
            text = f"cells state {unit} under a header of {column.unit}; the cells are believed"
            self._once.say("CL268", "warning", text, row.line, "let the tool write the file anew")
        return float(value) * size

    def _device(self, row: Row, ids: list[int], places: Places | None) -> tuple[str, str]:
        """Return a GPU's id, and how it is shown."""
        if not ids:
            place = 0 if places is None or row.t_us is None else places.of(row.t_us)
            if places is not None and places.is_lost:
                raise not_told_apart(self._source.shown, row.line)
            return f"GPU {place}", f"GPU {place}"
        device = row.cells[ids[0]]
        if not is_told(device):
            raise ValueError(f"does not tell its GPU ({device!r})")
        index = next((c.place for c in self._columns if c.name == "index"), None)
        if index is not None and index in ids and is_told(row.cells[index]):
            return device, f"GPU {row.cells[index]}"
        return device, device if device.upper().startswith("GPU") else f"GPU {device}"

    def _places(self, rows: list[Row], ids: list[int]) -> Places | None:
        """Return how rows are told apart where no column does it, and say so."""
        if ids:
            return None
        timed = [r for r in rows if r.t_us is not None]
        times, cells = [r.t_us for r in timed if r.t_us is not None], [r.cells for r in timed]
        told_in_us = 1.0 if self._time is None else resolution_us([c[self._time] for c in cells])
        lasting = [c.place for c in self._columns if c.name in LASTING or c.name in LIMITS]
        found = bursts_of(times, cells, time=self._time, told_in_us=told_in_us, lasting=lasting)
        boards = [c.place for c in self._columns if c.name in LASTING]
        if found is None and are_mixed(times, cells, told_in_us=told_in_us, lasting=boards):
            raise not_told_apart(self._source.shown, rows[0].line)
        if found is not None and found.told == "unclear":
            raise not_told_apart(self._source.shown, rows[0].line, found.size)
        if found is None or found.told == "one row":
            self._joining = Joining(times, told_in_us=told_in_us)
            if found is not None:
                self._say_twice(rows[0].line)
            return None
        count = counted(found.size, "row")
        gpus = counted(found.size, "GPU")
        text = f"no column tells GPUs apart: {count} at a time are taken as {gpus} in their order"
        mend = "log index or uuid too"
        self._said.append(finding("CL265", "warning", text, self._source, line=rows[0].line, mend=mend))
        return Places(found)

    def _say_twice(self, line: int) -> None:
        """Say that rows are equal: one GPU's, written several times, or those of GPUs that draw the same."""
        self._is_twice = True
        text = "each row is there several times, and no column tells whose: taken as one GPU, the least"
        mend = "log index or uuid too"
        self._said.append(finding("CL298", "warning", text, self._source, line=line, mend=mend))

    def _refuse_below_cut_header(self) -> None:
        """Refuse a row below a header that is shorter than the first: it was not cut off, but is another."""
        if self._cut_header:
            raise other_header(self._source.shown, self._cut_header)

    def _look_for_joined(self) -> None:
        """Look at rows that were taken as one GPU's; they are refused if nobody can tell that they are."""
        import numpy as np

        if self._joining is None or not self._later:
            return
        t_us, *values = np.array(self._later).T
        self._later.clear()
        if self._joining.is_told_by(t_us, values):
            raise not_told_apart(self._source.shown, self._line)

    def _reject(self, line: int, error: ValueError) -> Finding:
        self._rejected += 1
        self._why = self._why or str(error)
        text = f"line {line} {error}; the row is left out"
        return finding("CL202", "error", text, self._source, line=line, mend="mend the row")
