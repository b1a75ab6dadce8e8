"""tegrastats: one line a moment, from the Jetson Nano to Thor.

The oldest releases write no time and no unit (``POM_5V_IN 933/933``, milliwatts now and
on average), later ones a local time of whole seconds and ``mW``, the newest a third value.
Which rail is the module's input, and which are parts of it, is told by the rails' names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import chain, islice
from statistics import median
from typing import Final

import msgspec

from carbonlens.errors import InputFileError
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Facts, Group, Item, Kind, Named, Options, Tally
from carbonlens.importers.device_samples import DeviceSamples
from carbonlens.importers.jetson_channels import channels_of
from carbonlens.importers.once import Once
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source
from carbonlens.importers.times import Clock

_RAM: Final = re.compile(r"\bRAM \d+/\d+MB \(lfb ")
_STAMP: Final = re.compile(r"^(\d\d)-(\d\d)-(\d{4}) (\d\d:\d\d:\d\d)\s")
_WITH_UNIT: Final = re.compile(r"(?<=\s)([A-Za-z]\w*) (\d+)mW/\d+mW(?:/\d+mW)?(?=\s|$)")
_WITHOUT: Final = re.compile(r"(?<=\s)([A-Za-z]\w*) (\d+)/\d+(?=\s|$)")
_LOOK_AHEAD: Final = 4096
_US: Final = 1_000_000
_MEND: Final = "let tegrastats run as root, or log at the wall"


class TegrastatsImporter:
    """Importer of what NVIDIA's ``tegrastats`` prints on Jetson modules."""

    name = "tegrastats"
    version = 1
    kind: Kind = "trace"
    rank = USUAL
    facts = Facts(
        title="tegrastats of NVIDIA Jetson",
        reads="Nano, TX1, TX2, Xavier NX, AGX Xavier, Orin Nano, Orin NX, AGX Orin, Thor; "
        "with and without times and units; two or three values a rail",
        units="mW, also where no unit is written; local time MM-DD-YYYY without a zone",
        grade="C: power, integrated",
        traps=(
            "the input rail (VDD_IN, POM_5V_IN, VIN) holds all others and alone counts; they stand beside",
            "the AGX modules have no input rail: the sum of their rails counts, NC rails dropped, "
            "and VIN_SYS_5V0 or SYS5V is one of them and not the total",
            "releases without times: --interval gives the energy, --start its hour",
            "times are whole seconds: lines that share one are spread over it",
            "of the two or three values the first is power now, the others are means",
        ),
        tested_on=("one real log (Xavier NX); lines typed here after those of all other generations",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Return the sources whose first lines tell memory as tegrastats does."""
        return each(sources, lambda s: any(_RAM.search(line) for line in s.first_lines[:5]))

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield the samples of each rail.

        Raises:
            InputFileError: If no line tells the power of a rail.
        """
        yield from _Log(group.main, options).items()


IMPORTER: Final = TegrastatsImporter()


class Row(msgspec.Struct, frozen=True):
    """A line: its number, text, time and rails in watts."""

    line: int
    text: str
    t_us: float | None
    watts: dict[str, float]


def rails_of(text: str) -> dict[str, float]:
    """Return the power of each rail of a line, in watts; of a name that stands twice the first."""
    found: dict[str, float] = {}
    for name, milliwatts in _WITH_UNIT.findall(" " + text) or _WITHOUT.findall(" " + text):
        found.setdefault(name, float(milliwatts) * 1e-3)
    return found


class _Log:
    def __init__(self, source: Source, options: Options) -> None:
        self._source = source
        self._clock = Clock(options.tz, source)
        self._rows = self._rejected = self._repeated = 0
        self._once = Once(source)
        self._tells_rails = False
        self._said: list[Item] = []
        self._has_times = any(_STAMP.match(line) for line in source.first_lines[:5])

    def items(self) -> Iterator[Item]:
        """Yield everything."""
        rows = self._parsed()
        ahead = list(islice(rows, _LOOK_AHEAD))
        names = list(dict.fromkeys(name for row in ahead for name in row.watts))
        if not names:
            raise InputFileError(
                "tells the power of no rail: energy cannot be computed", where=self._source.shown, mend=_MEND
            )
        layout, channels, said = channels_of(names, "tegrastats", self._source)
        yield from said
        if layout.title != "unknown module":
            yield Named(hardware=layout.title)
        samples = DeviceSamples(has_times=self._has_times)
        for row in self._spread(ahead, rows):
            for name, channel in channels.items():
                samples.add(channel, row.t_us, row.watts.get(name, float("nan")), row.line)
            if samples.is_full:
                yield from samples.hand_on()
            yield from self._drained()
        yield from samples.hand_on()
        yield from self._drained()
        yield from self._once.findings()
        yield from self._clock.findings
        yield Tally(rows=self._rows, rejected=self._rejected, repeated=self._repeated)

    def _drained(self) -> Iterator[Item]:
        said, self._said = self._said, []
        return iter(said)

    def _parsed(self) -> Iterator[Row]:
        for line, text in self._source.lines():
            if not text.strip():
                continue
            self._rows += 1
            try:
                if not _RAM.search(text):
                    raise ValueError("is no line of tegrastats")
                watts = rails_of(text)
                if not watts and self._tells_rails:
                    raise ValueError("tells the power of no rail")
                self._tells_rails = bool(watts)
                yield Row(line, text, self._t_us(text, line), watts)
            except ValueError as error:
                self._rejected += 1
                said = f"line {line} {error}; it is left out"
                self._said.append(
                    finding("CL202", "error", said, self._source, line=line, mend="mend the line")
                )

    def _t_us(self, text: str, line: int) -> float | None:
        if not self._has_times:
            return None
        told = _STAMP.match(text)
        if told is None:
            raise ValueError("has no time, as others have")
        month, day, year, clock = told.groups()
        return self._clock.us(datetime.fromisoformat(f"{year}-{month}-{day} {clock}"), line)

    def _spread(self, ahead: list[Row], rows: Iterator[Row]) -> Iterator[Row]:
        """Yield rows with those that share a second spread over it.

        Only where most seconds have several: else two in one are a line that came late.
        """
        runs = list(_runs(iter(ahead))) if self._has_times else []
        usual = median(len(run) for run in runs) if runs else 1
        several = [run for run in runs if len(run) > 1]
        if several and all(row.text == run[0].text for run in several for row in run):
            yield from self._once_each(chain(ahead, rows))
            return
        if usual < 2:
            yield from chain(ahead, rows)
            return
        is_first = True
        for run in _runs(chain(ahead, rows)):
            # A log begins within a second: the lines of the first one stand at its end.
            missing = max(usual - len(run), 0) if is_first else 0
            is_first = False
            whole = max(usual, len(run))
            for place, row in enumerate(run):
                offset_us = (missing + place) / whole * _US
                yield msgspec.structs.replace(row, t_us=(row.t_us or 0.0) + offset_us)

    def _once_each(self, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield rows without those that repeat the one before to the letter."""
        last = None
        for row in rows:
            if row.text == last:
                self._repeated += 1
                text = "lines repeat the one before exactly; counted once"
                self._once.say("CL201", "info", text, row.line)
                continue
            last = row.text
            yield row


def _runs(rows: Iterator[Row]) -> Iterator[list[Row]]:
    """Yield rows that share a time together."""
    run: list[Row] = []
    for row in rows:
        if run and row.t_us != run[0].t_us:
            yield run
            run = []
        run.append(row)
    if run:
        yield run
