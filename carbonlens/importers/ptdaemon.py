"""PTDaemon's power log: what a bench power analyzer told, a line a second, in named pairs.

A line is a time, then name and value in turn; with several channels or analyzers the first
``Watts`` is that of the whole, and blocks after it are its parts. The mark names the run that
a client asked for: the ranging run sets the meter's range, the testing run is the measurement.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Final

from carbonlens.domain.counting import counted
from carbonlens.errors import InputFileError
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Channel, Facts, Group, Item, Kind, Options, Tally
from carbonlens.importers.device_samples import DeviceSamples
from carbonlens.importers.once import Once
from carbonlens.importers.ptd_line import Block, mark_of, parse
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source
from carbonlens.importers.times import Clock
from carbonlens.importers.unit_checks import LEAST_METER_W

_LINE: Final = re.compile(r"^Time,\d\d-\d\d-\d{4} \d\d:\d\d:\d\d(?:\.\d+)?,(?:Watts|ERROR),")
_TESTING: Final = "testing"
_RANGING: Final = "ranging"
_UNMARKED: Final = "notset"
CHECK_WATTS: Final = "check the unit of Watts, and the meter's wiring"


class PTDaemonImporter:
    """Importer of PTDaemon's power logs."""

    name = "ptdaemon"
    version = 1
    kind: Kind = "trace"
    rank = USUAL
    facts = Facts(
        title="PTDaemon power log (spl.txt)",
        reads="AC and DC, one or several channels (Ch1...), merged analyzers (Analyzer1...)",
        units="watts; local times without a zone, month first",
        grade="A: an external meter at the supply; its width is not in the log and stays unknown",
        traps=(
            "with several channels or analyzers the first Watts is the whole: parts stand beside",
            "where lines bear a testing mark, only those count; a ranging run is no measurement",
            "an ERROR line and -1.0 are failed readings, never 0",
            "Watts are held against Volts x Amps x PF where those are told",
            "local times without a zone: --tz, else UTC, and said",
        ),
        tested_on=("one real log of 611 lines", "a case of two analyzers"),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Return the sources whose first lines are the daemon's."""
        return each(sources, lambda s: any(_LINE.match(line) for line in s.first_lines[:5]))

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield the samples of the whole, and of its parts beside.

        Raises:
            InputFileError: If no line tells a power.
        """
        yield from _Log(group.main, options).items()


IMPORTER: Final = PTDaemonImporter()


class _Log:
    def __init__(self, source: Source, options: Options) -> None:
        self._source = source
        self._clock = Clock(options.tz, source)
        self._once = Once(source)
        self._samples = DeviceSamples()
        self._channels: dict[str, Channel] = {}
        self._marks = _marks_of(source)
        self._has_test = any(_is_testing(mark) for mark in self._marks)

    def items(self) -> Iterator[Item]:
        """Yield everything."""
        rows = rejected = known = 0
        for line, text in self._source.lines():
            if not text.strip():
                continue
            rows += 1
            try:
                known += self._take(text.strip(), line)
            except ValueError as error:
                rejected += 1
                said = f"line {line} {error}; the line is left out"
                yield finding("CL202", "error", said, self._source, line=line, mend="mend the line")
            if self._samples.is_full:
                yield from self._samples.hand_on()
        if not known:
            raise InputFileError(
                "has no power in any line that counts",
                where=self._source.shown,
                mend="check the meter's connection",
            )
        yield from self._samples.hand_on()
        yield from self._said_of_marks()
        yield from self._once.findings()
        yield from self._clock.findings
        yield Tally(rows=rows, rejected=rejected)

    def _take(self, text: str, line: int) -> bool:
        """Take a line; return whether it tells a power that counts."""
        told = parse(text)
        t_us = float(self._clock.us(told.stamp, line))
        if told.is_error:
            self._once.say(
                "CL271", "warning", "the meter told an error", line, "check the meter's connection"
            )
            self._samples.add(self._channel("wall", is_whole=True), t_us, math.nan, line)
            return False
        if self._has_test and not _is_testing(told.mark or _UNMARKED):
            return False
        for block in (told.whole, *told.parts):
            self._say_of(block, line)
            at_us = t_us if block.stamp is None else float(self._clock.us(block.stamp, line))
            channel = self._channel(block.name or "wall", is_whole=not block.name)
            self._samples.add(channel, at_us, block.watts, line)
        return math.isfinite(told.whole.watts)

    def _say_of(self, block: Block, line: int) -> None:
        if math.isnan(block.watts):
            text = "Watts are not measured (-1 or a word): the reading is unknown"
            self._once.say("CL271", "warning", text, line, "check the meter's connection")
        wrong = block.contradiction
        if wrong is not None:
            self._once.say("CL247", "warning", f"{wrong}; the Watts are kept", line, CHECK_WATTS)

    def _channel(self, name: str, *, is_whole: bool) -> Channel:
        found = self._channels.get(name)
        if found is None:
            found = self._channels[name] = Channel(
                name=name,
                component="wall",
                boundary="it",
                counted=is_whole,
                grade="A",
                method="PTDaemon, external power analyzer",
                least_w=LEAST_METER_W if is_whole else 0.0,
            )
        return found

    def _said_of_marks(self) -> Iterator[Item]:
        """Yield what the marks say of what counts."""
        other = {mark: count for mark, count in self._marks.items() if not _is_testing(mark)}
        tests = [mark for mark in self._marks if _is_testing(mark)]
        if self._has_test and other:
            left = counted(sum(other.values()), "line")
            text = f"{left} under other marks than a testing one ({_shown(other)}) are left out"
            yield finding("CL270", "info", text, self._source, mend="nothing")
        if len(tests) > 1:
            text = f"{counted(len(tests), 'testing run')} in one log ({_shown(tests)}) are added up"
            yield finding("CL270", "warning", text, self._source, mend="give one log a testing run")
        if not self._has_test and any(_RANGING in mark for mark in other):
            text = "all of the log counts, and a part of it is a ranging run, which sets the meter's range"
            yield finding("CL270", "warning", text, self._source, mend="import the log of the testing run")


def _marks_of(source: Source) -> dict[str, int]:
    """Return how many lines bear each mark; the source is read once for it."""
    said = len(source.repairs)
    found: dict[str, int] = {}
    for _, text in source.lines():
        if text.strip():
            mark = mark_of(text) or _UNMARKED
            found[mark] = found.get(mark, 0) + 1
    del source.repairs[said:]  # what it had to repair is said by the reading that counts
    return found


def _is_testing(mark: str) -> bool:
    return mark.lower().endswith(_TESTING)


def _shown(marks: Sequence[str] | dict[str, int]) -> str:
    names = list(marks)
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
