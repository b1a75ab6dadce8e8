"""nvidia-smi dmon: columns parted by blanks, two header lines that repeat, whole watts.

The first header line names the columns, the second their units. In the default form no
column bears a time; ``-o D`` adds the date, ``-o T`` the time of day. What is not measured
is ``-``. The interval (``-d``) stands in the command line alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from carbonlens.errors import InputFileError
from carbonlens.importers.cells import UNKNOWN_WORDS
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Channel, Facts, Group, Item, Kind, Options, Tally
from carbonlens.importers.device_samples import DeviceSamples
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source
from carbonlens.importers.tables import exact, is_other_header, other_header
from carbonlens.importers.times import Clock, seconds_of
from carbonlens.importers.unit_checks import LEAST_DEVICE_W

_DAY_S: Final = 86_400.0
_US: Final = 1_000_000
_UNITS: Final = {"w": 1.0, "mw": 1e-3}
_CELLS: Final = re.compile(r"[,\s]+")


class NvidiaDmonImporter:
    """Importer of what ``nvidia-smi dmon`` prints."""

    name = "nvidia-smi-dmon"
    version = 1
    kind: Kind = "trace"
    rank = USUAL
    facts = Facts(
        title="nvidia-smi dmon",
        reads="any set of metrics (-s), with and without date and time (-o DT)",
        units="whole watts, as the second header line states; local time without a zone",
        grade="C: power, integrated",
        traps=(
            "no column bears the interval (-d) or, by default, a time: --interval gives the energy",
            "whole watts: half a watt is 8 % of an idle card's 6 W",
            "'-' is a failed reading, never 0",
            "headers repeat within the output and are no rows; one of another order or unit is refused",
            "a time without a date (-o T) runs on over midnight, and its day is unknown: --start",
            "no pwr column (-s without p): refused",
        ),
        tested_on=("one real output of 23 samples; samples typed here after printed examples",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Return the sources that begin with dmon's two header lines."""
        return each(sources, _is_mine)

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield the samples of each GPU.

        Raises:
            InputFileError: If there is no power column, no power in it, or another header follows.
        """
        yield from _Log(group.main, options).items()


IMPORTER: Final = NvidiaDmonImporter()


def _is_mine(source: Source) -> bool:
    names, units = _header_of(source.first_lines)
    # The same tool's pmon has a header alike, of processes.
    return "gpu" in names and "idx" in units and "pid" not in names


def _header_of(lines: Sequence[str]) -> tuple[list[str], list[str]]:
    if len(lines) < 2 or not all(line.startswith("#") for line in lines[:2]):
        return [], []
    return _cells_of(lines[0]), _cells_of(lines[1])


def _cells_of(line: str) -> list[str]:
    return [c.lower() for c in _CELLS.split(line.lstrip("#").strip().rstrip(","))]


class _Log:
    def __init__(self, source: Source, options: Options) -> None:
        self._source = source
        self._names, units = _header_of(source.first_lines)
        self._headers = self._names, units
        self._units = dict(zip(self._names, units, strict=False))
        self._clock = Clock(options.tz, source)
        self._has_date = "date" in self._names and "time" in self._names
        self._has_time = "time" in self._names
        self._first_s: float | None = None
        self._last_s = 0.0
        self._days = 0

    def items(self) -> Iterator[Item]:
        """Yield everything."""
        if "pwr" not in self._names:
            raise InputFileError(
                "has no pwr column: energy cannot be computed",
                where=self._source.shown,
                mend="let dmon log power too (-s p)",
            )
        size = _UNITS.get(self._units.get("pwr", "w"))
        if size is None:
            raise InputFileError(
                f"states pwr in {self._units['pwr']!r}", where=self._source.shown, mend="log watts"
            )
        samples = DeviceSamples(relative=self._has_time and not self._has_date, has_times=self._has_time)
        rows = rejected = 0
        channels: dict[str, Channel] = {}
        for line, text in self._source.lines():
            if not text.strip():
                continue
            if text.lstrip().startswith("#"):
                self._check_header(text, line)
                continue
            rows += 1
            try:
                gpu, t_us, watts = self._row(text, line)
            except ValueError as error:
                rejected += 1
                said = f"line {line} {error}; the row is left out"
                yield finding("CL202", "error", said, self._source, line=line, mend="mend the row")
                continue
            channel = channels.get(gpu)
            if channel is None:
                channel = channels[gpu] = Channel(
                    name=f"GPU {gpu}",
                    component="gpu",
                    device=gpu,
                    method="nvidia-smi dmon pwr",
                    least_w=LEAST_DEVICE_W,
                )
            samples.add(channel, t_us, watts * size, line)
            if samples.is_full:
                yield from samples.hand_on()
        if not samples.is_known:
            raise InputFileError(
                "has no power in any row",
                where=self._source.shown,
                mend="check that the board tells its power",
            )
        yield from samples.hand_on()
        yield from self._clock.findings
        yield Tally(rows=rows, rejected=rejected)

    def _check_header(self, text: str, line: int) -> None:
        """Look at a line of a header that comes again.

        Raises:
            InputFileError: If it is of other columns, or of other units.
        """
        cells = _cells_of(text.lstrip())
        if cells not in self._headers and any(is_other_header(cells, header) for header in self._headers):
            raise other_header(self._source.shown, line)

    def _row(self, text: str, line: int) -> tuple[str, float | None, float]:
        cells = dict(zip(self._names, found := _cells_of(text), strict=False))
        if len(found) != len(self._names):
            size = "more" if len(found) > len(self._names) else "fewer"
            raise ValueError(f"has not as many cells as there are columns, but {size}")
        gpu = cells["gpu"]
        if not gpu.isdigit():
            raise ValueError(f"does not tell its GPU ({gpu!r})")
        cell = cells["pwr"]
        value = None if cell in UNKNOWN_WORDS else exact(cell)
        if value is not None and value < 0:
            raise ValueError(f"has a power of {cell}, below zero")
        return gpu, self._t_us(cells, line), float("nan") if value is None else float(value)

    def _t_us(self, cells: dict[str, str], line: int) -> float | None:
        if not self._has_time:
            return None
        if self._has_date:
            text = f"{cells['date']} {cells['time']}"
            try:
                moment = datetime.fromisoformat(text)
            except ValueError:
                raise ValueError(f"has date and time {text!r}, which are none") from None
            return self._clock.us(moment, line)
        clock = seconds_of(cells["time"])
        if clock is None or clock >= _DAY_S:
            raise ValueError(f"has time {cells['time']!r}, which is none")
        if clock < self._last_s - _DAY_S / 2:
            self._days += 1
        self._last_s = clock
        now_s = self._days * _DAY_S + clock
        if self._first_s is None:
            self._first_s = now_s
        return (now_s - self._first_s) * _US
