"""Qoitech's Otii: current, voltage, power or energy of the supply, as CSV, each column with its unit.

The application measures in amperes, volts, watts and joules; which unit a table is in, its header
says, as ``Main Current (A)`` or ``current_A``. A header without units is refused: nothing tells
whether someone scaled the column.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from carbonlens.errors import InputFileError
from carbonlens.importers.claiming import each
from carbonlens.importers.columns import NumberTable
from carbonlens.importers.contract import USUAL, Channel, Chunk, Facts, Group, Item, Kind, Options, Tally
from carbonlens.importers.sources import Source, first_names

if TYPE_CHECKING:
    from carbonlens.importers.columns import Numbers
    from carbonlens.importers.contract import Array

_UNIT: Final = r"(?:\s*[(\[]\s*([a-zµμ]+)\s*[)\]]|_([a-zµμ]+))?"
_TIME: Final = re.compile(rf"^time(?:stamp)?{_UNIT}$")
_MAIN: Final = re.compile(rf"^(?:(.+?) - )?main[ _]?(current|voltage|power|energy){_UNIT}$")
_BARE: Final = re.compile(rf"^(current|voltage|power|energy){_UNIT}$")
_DATE: Final = frozenset({"datetime", "date", "date time"})
_SECONDS: Final = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6}
_SIZES: Final = {
    "current": {"a": 1.0, "ma": 1e-3, "ua": 1e-6, "µa": 1e-6, "μa": 1e-6, "na": 1e-9},
    "voltage": {"v": 1.0, "mv": 1e-3},
    "power": {"w": 1.0, "mw": 1e-3, "uw": 1e-6, "µw": 1e-6, "μw": 1e-6},
    "energy": {"j": 1.0, "mj": 1e-3, "uj": 1e-6, "µj": 1e-6, "μj": 1e-6, "wh": 3.6e3, "mwh": 3.6},
}
_US_PER_S: Final = 1e6


class OtiiImporter:
    """Importer of Otii's CSV tables."""

    name = "otii"
    version = 1
    kind: Kind = "trace"
    rank = USUAL
    facts = Facts(
        title="Qoitech Otii (CSV)",
        reads="a time and main current, voltage, power or energy, of one or several supplies; tables of "
        "timestamp_s, datetime, current_A",
        units="as each header states: A, mA, uA, nA; V, mV; W, mW, uW; J, mJ, uJ, Wh, mWh; s, ms, us",
        grade="A: an external meter; its width is not in the file and stays unknown",
        traps=(
            "a header without units is refused: the table may hold amperes or milliamperes",
            "current alone has no voltage: --voltage",
            "power counts before current x voltage, and that before energy so far: the others stand beside",
            "times count from the begin of the recording: --start; a datetime column's zone is not told "
            "and it is not read",
            "decimal commas with semicolons are read",
        ),
        tested_on=(
            "samples written after the channels of the application's own interface; one header of a "
            "third-party export. No file of the application itself was to be had",
        ),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Return the tables of a time and main channels, or of the one bare form that is known."""
        return each(sources, lambda s: _is_mine(first_names(s)))

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield the samples of each supply.

        Raises:
            InputFileError: If a unit is not told, or there is current alone and no voltage.
        """
        yield from _Log(group.main, options).items()


IMPORTER: Final = OtiiImporter()


class _Column(msgspec.Struct, frozen=True):
    """A column: its name, supply, quantity and what its numbers are multiplied by."""

    name: str
    supply: str
    quantity: str
    size: float


def _is_mine(names: Sequence[str]) -> bool:
    if not any(map(_TIME.match, names)):
        return False
    if any(map(_MAIN.match, names)):
        return True
    # The bare form has nothing of the tool's own, so it is known whole or not at all.
    return set(names) == {"timestamp_s", "datetime", "current_a"}


class _Log:
    def __init__(self, source: Source, options: Options) -> None:
        self._source = source
        self._options = options
        names = [n for n in first_names(source) if n]
        time = next(n for n in names if _TIME.match(n))
        self._time = time
        self._time_size = self._size(time, _TIME.match(time), _SECONDS)
        self._columns = [c for n in names if (c := self._column(n)) is not None]

    def items(self) -> Iterator[Item]:
        """Yield everything."""
        supplies = dict.fromkeys(c.supply for c in self._columns)
        channels = {
            (supply, how): self._channel(supply, how, is_counted=place == 0)
            for supply in supplies
            for place, how in enumerate(self._ways(supply))
        }
        yield from channels.values()
        table = NumberTable(self._source, (self._time, *(c.name for c in self._columns)))
        for block in table.blocks():
            if self._time not in block.columns:
                continue
            t_us = block.columns[self._time] * (self._time_size * _US_PER_S)
            for (supply, how), channel in channels.items():
                values = self._values(block, supply, how)
                yield Chunk(channel=channel, t_us=t_us, values=values, line=block.line, relative=True)
        yield from table.findings()
        yield Tally(rows=table.rows, rejected=table.rejected)

    def _column(self, name: str) -> _Column | None:
        main, bare = _MAIN.match(name), _BARE.match(name)
        if main is not None:
            size = self._size(name, main, _SIZES[main[2]])
            return _Column(name, main[1] or "supply", main[2], size)
        return (
            None
            if bare is None
            else _Column(name, "supply", bare[1], self._size(name, bare, _SIZES[bare[1]]))
        )

    def _size(self, name: str, found: re.Match[str] | None, sizes: dict[str, float]) -> float:
        """Return what a unit is worth.

        Raises:
            InputFileError: If there is none, or none that is known.
        """
        unit = "" if found is None else next((g for g in found.groups()[-2:] if g), "")
        if unit not in sizes:
            what = (
                f"states the column {name!r} in {unit!r}" if unit else f"does not state the unit of {name!r}"
            )
            raise InputFileError(
                what,
                where=self._source.shown,
                mend="write it into the header, such as Main Current (A), if you know it",
            )
        return sizes[unit]

    def _of(self, supply: str, quantity: str) -> _Column | None:
        return next((c for c in self._columns if c.supply == supply and c.quantity == quantity), None)

    def _ways(self, supply: str) -> list[str]:
        """Return how the energy of a supply may be had, the best first.

        Raises:
            InputFileError: If there is current alone, and nobody states a voltage.
        """
        told = {c.quantity for c in self._columns if c.supply == supply}
        ways = ["power"] if "power" in told else []
        if "current" in told and ("voltage" in told or self._options.voltage_v is not None) and not ways:
            ways.append("current")
        if "energy" in told:
            ways.append("energy")
        if ways:
            return ways
        raise InputFileError(
            "tells current alone: without the voltage there is no energy"
            if "current" in told
            else "tells voltage alone: there is no energy in that",
            where=self._source.shown,
            mend="export the main voltage too, or give --voltage with the volts of the supply",
        )

    def _channel(self, supply: str, how: str, *, is_counted: bool) -> Channel:
        volts = self._options.voltage_v
        at = "measured voltage" if self._of(supply, "voltage") else f"{volts:g} V, as given" if volts else ""
        method = {
            "power": "Otii main power",
            "current": f"Otii main current at {at}",
            "energy": "Otii main energy so far",
        }[how]
        return Channel(
            name=supply if is_counted else f"{supply} {how}",
            component="total",
            boundary=self._options.boundary or "device",
            grade="A",
            kind="counter" if how == "energy" else "instant",
            counted=is_counted,
            method=method,
            unit="J" if how == "energy" else "W",
        )

    def _values(self, block: Numbers, supply: str, how: str) -> Array:
        column = self._of(supply, how)
        assert column is not None  # noqa: S101  # ways are of columns that are there
        values = block.columns[column.name] * column.size
        if how != "current":
            return values
        voltage = self._of(supply, "voltage")
        volts = (
            block.columns[voltage.name] * voltage.size
            if voltage is not None
            else (self._options.voltage_v or math.nan)
        )
        made: Array = values * volts
        return made
