"""Monsoon power monitors, as PyMonsoon writes them: milliamperes and volts at up to 5 kHz.

Its header has said ``Time(ms)`` over seconds for years; with NumPy 2 its cells are
``np.float64(1.25)``; samples that came in one packet bear one time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from carbonlens.errors import InputFileError
from carbonlens.importers.claiming import each
from carbonlens.importers.columns import NumberTable
from carbonlens.importers.contract import USUAL, Channel, Chunk, Facts, Group, Item, Kind, Options, Tally
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source, first_names

if TYPE_CHECKING:
    from carbonlens.importers.contract import Array

_US_PER: Final = {"s": 1e6, "ms": 1e3}
_TIMES: Final = {f"time({unit})": us for unit, us in _US_PER.items()}
"""Time columns and microseconds in one of theirs."""

_SUPPLIES: Final = {"main(ma)": "main voltage(v)", "usb(ma)": "usb voltage(v)", "aux(ma)": None}
"""Currents, and where the voltage of each stands."""

_A_PER_MA: Final = 1e-3
_FASTEST_HZ: Final = 6000.0
"""The monitor takes 5000 samples a second."""

_WRAPPED: Final = re.compile(rb"np\.float\d+\(([^()]*)\)")
_SMALL_SHARE: Final = 0.01
_LONGEST_PACKET: Final = 1000
"""Samples with one time that are taken together, though a block ends amid them."""


class MonsoonImporter:
    """Importer of PyMonsoon's CSV files."""

    name = "monsoon"
    version = 1
    kind: Kind = "trace"
    rank = USUAL
    facts = Facts(
        title="Monsoon Power Monitor (PyMonsoon CSV)",
        reads="Time in ms or s, Main(mA), USB(mA) and their voltages, in any set",
        units="milliamperes, volts, seconds from the begin",
        grade="A: an external meter; its width is not in the file and stays unknown",
        traps=(
            "Time(ms) over seconds: told by more samples a millisecond than the monitor takes",
            "cells such as np.float64(1.25), as NumPy 2 prints them",
            "an empty column at the end of each line",
            "samples of one packet bear one time: their mean counts",
            "no voltage column: --voltage, else it is refused",
            "Main counts; what USB takes stands beside, and is said",
        ),
        tested_on=("samples written after the documentation and the library's source code",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Return the tables of a time and a supply's current."""
        return each(sources, _is_mine)

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield the samples of each supply.

        Raises:
            InputFileError: If there is no supply's current, or nobody tells its voltage.
        """
        yield from _Log(group.main, options).items()


IMPORTER: Final = MonsoonImporter()


def _is_mine(source: Source) -> bool:
    names = set(first_names(source))
    return bool(names & set(_TIMES)) and bool(names & set(_SUPPLIES))


class _Plain(Source):
    """The source with its cells as bare numbers."""

    def __init__(self, source: Source) -> None:
        super().__init__(source.path, source.member)
        self.repairs = source.repairs

    def blocks(self, size: int = 1 << 22) -> Iterator[tuple[int, bytes]]:
        for line, block in super().blocks(size):
            yield line, _WRAPPED.sub(rb"\1", block) if b"np.float" in block else block


class _Log:
    def __init__(self, source: Source, options: Options) -> None:
        self._source = source
        self._voltage_v = options.voltage_v
        self._names = set(first_names(source))
        self._us_per = 0.0
        self._sums: dict[str, float] = {}
        self._rest: dict[str, tuple[Array, Array]] = {}

    def items(self) -> Iterator[Item]:
        """Yield everything."""
        import numpy as np

        channels = self._channels()
        yield from channels.values()
        time = next(name for name in _TIMES if name in self._names)
        volts = [v for v in _SUPPLIES.values() if v is not None]
        table = NumberTable(_Plain(self._source), (time, *channels, *volts))
        for block in table.blocks():
            told = block.columns[time]
            if not self._us_per:
                self._us_per = _TIMES[time]
                if self._is_too_fast(told):
                    self._us_per = _US_PER["s"]
                    text = "times are under a header of ms, and can only be seconds: no monitor is that fast"
                    mend = "update the tool that wrote it: later ones name the column of seconds so"
                    yield finding("CL272", "warning", text, self._source, line=block.line, mend=mend)
            for name, channel in channels.items():
                watts = self._watts(name, block.columns)
                self._sums[name] = self._sums.get(name, 0.0) + float(np.nansum(watts))
                yield self._chunk(name, channel, (told * self._us_per, watts), block.line)
        for name, channel in channels.items():
            if name in self._rest:
                t_us, means = _merged(*self._rest[name])
                yield Chunk(channel=channel, t_us=t_us, values=means, relative=True)
        yield from self._said_beside(channels, table.rows - table.rejected)
        yield from table.findings()
        yield Tally(rows=table.rows, rejected=table.rejected)

    def _chunk(self, name: str, channel: Channel, samples: tuple[Array, Array], line: int) -> Chunk:
        """Return samples with one a time; those of the last time wait, for more of them may follow."""
        import numpy as np

        earlier = self._rest.get(name)
        if earlier is not None:
            samples = np.concatenate([earlier[0], samples[0]]), np.concatenate([earlier[1], samples[1]])
        t_us, watts = samples
        waits = int(np.argmax(t_us == t_us[-1])) if math.isfinite(t_us[-1]) else len(t_us)
        waits = max(waits, len(t_us) - _LONGEST_PACKET)
        self._rest[name] = t_us[waits:], watts[waits:]
        t_us, watts = _merged(t_us[:waits], watts[:waits])
        return Chunk(channel=channel, t_us=t_us, values=watts, line=line, relative=True)

    def _channels(self) -> dict[str, Channel]:
        """Return the supplies whose power can be told; the first of them counts."""
        found: dict[str, Channel] = {}
        for current, voltage in _SUPPLIES.items():
            if current not in self._names or (voltage not in self._names and self._voltage_v is None):
                continue
            if found and voltage not in self._names:
                continue  # the stated voltage is that of the supply that counts
            name = current.partition("(")[0].capitalize().replace("Usb", "USB")
            found[current] = Channel(
                name=name, component="total", counted=not found, grade="A", method=f"Monsoon {name}", unit="W"
            )
        if not found:
            raise InputFileError(
                "tells current alone: without the voltage there is no energy",
                where=self._source.shown,
                mend="give --voltage with the volts of the supply",
            )
        return found

    def _watts(self, name: str, columns: Mapping[str, Array]) -> Array:
        amperes: Array = columns[name] * _A_PER_MA
        told = columns.get(_SUPPLIES[name] or "")
        if told is not None:
            return amperes * told
        return amperes * (math.nan if self._voltage_v is None else self._voltage_v)

    def _is_too_fast(self, told: Array) -> bool:
        import numpy as np

        good = told[np.isfinite(told)]
        span_s = float(good.max() - good.min()) * self._us_per * 1e-6 if len(good) > 1 else 0.0
        return bool(span_s) and (len(good) - 1) / span_s > _FASTEST_HZ

    def _said_beside(self, channels: dict[str, Channel], rows: int) -> Iterator[Item]:
        whole = next(iter(channels))
        for name, channel in channels.items():
            if channel.counted or not rows:
                continue
            mean_w = self._sums[name] / rows
            if abs(mean_w) > _SMALL_SHARE * abs(self._sums[whole] / rows):
                text = f"{channel.name} takes {mean_w:.3g} W beside {channels[whole].name}: it is not added"
                mend = "where both supplied the device, add it yourself"
                yield finding("CL273", "info", text, self._source, mend=mend)


def _merged(t_us: Array, watts: Array) -> tuple[Array, Array]:
    """Return the mean of samples that follow one another with one time."""
    import numpy as np

    if len(t_us) < 2 or not (np.diff(t_us) == 0).any():
        return t_us, watts
    starts = np.flatnonzero(np.diff(t_us, prepend=np.nan) != 0)
    counts = np.diff(np.append(starts, len(t_us)))
    return t_us[starts], np.add.reduceat(watts, starts) / counts
