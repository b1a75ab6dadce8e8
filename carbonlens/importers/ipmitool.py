"""ipmitool: what a server's management controller says of its power, reading after reading.

``dcmi power reading`` prints a paragraph with the controller's own time; ``sdr`` and
``sensor`` print a line a sensor, without any time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from carbonlens.errors import InputFileError
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Channel, Chunk, Facts, Group, Item, Kind, Options, Tally
from carbonlens.importers.once import Once
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source
from carbonlens.importers.times import Clock
from carbonlens.importers.unit_checks import LEAST_SERVER_W

if TYPE_CHECKING:
    from carbonlens.importers.contract import Array

_POWER: Final = re.compile(r"^\s*Instantaneous power reading:\s*(\S+)\s*Watts\s*$")
_TIME: Final = re.compile(r"^\s*IPMI timestamp:\s*(\S.*?)\s*$")
_STATE: Final = re.compile(r"^\s*Power reading state is:\s*(\w+)\s*$")
_SENSOR: Final = re.compile(
    r"^\s*Pwr Consumption\s*\|(?:(?:[^|]*\|){3}\s*(?P<sdr>[\d.]+) Watts\s*$"
    r"|\s*(?P<brief>[\d.]+) Watts\s*\||\s*(?P<sensor>[\d.]+)\s*\|\s*Watts\s*\|)"
)
_NO_READING: Final = re.compile(r"^\s*Pwr Consumption\s*\|")
_FORMATS: Final = ("%a %b %d %H:%M:%S %Y", "%m/%d/%y %H:%M:%S UTC", "%m/%d/%Y %H:%M:%S")
_UNSET_YEAR: Final = 2000
"""A controller whose clock was never set begins at 1970."""


class IpmitoolImporter:
    """Importer of ipmitool's power readings."""

    name = "ipmitool"
    version = 1
    kind: Kind = "trace"
    rank = USUAL
    facts = Facts(
        title="ipmitool (dcmi power reading, sdr, sensor)",
        reads="one or many readings of dcmi; the sensor 'Pwr Consumption' of sdr, sdr elist and sensor",
        units="whole watts; the controller's time without a zone, or no time",
        grade="C: power at the supplies as the controller averages it, integrated",
        traps=(
            "0 W, or a state of deactivated: the controller does not measure; unknown, not zero",
            "a controller's clock that was never set (1970), and sdr and sensor: --interval",
            "a single reading is a power, and no energy",
            "minimum, maximum and average are over the controller's own period and are not read",
        ),
        tested_on=("samples written after the documentation and printed examples",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Return the sources with a power reading in their first lines."""
        return each(sources, lambda s: any(_POWER.match(t) or _SENSOR.match(t) for t in s.first_lines))

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield the readings.

        Raises:
            InputFileError: If none tells a power.
        """
        yield from _Log(group.main, options).items()


IMPORTER: Final = IpmitoolImporter()


class _Log:
    def __init__(self, source: Source, options: Options) -> None:
        self._source = source
        self._clock = Clock(options.tz, source)
        self._once = Once(source)
        self._watts: list[float] = []
        self._t_us: list[float | None] = []
        self._line = 0

    def items(self) -> Iterator[Item]:
        """Yield everything; a reading a second is 86 400 a day, so they are gathered."""
        for line, text in self._source.lines():
            self._take(text, line)
        if not any(map(math.isfinite, self._watts)):
            raise InputFileError(
                "tells no power: the controller does not measure it",
                where=self._source.shown,
                mend="read the power at the PDU, or with a wall meter",
            )
        channel = Channel(
            name="server",
            component="wall",
            boundary="it",
            method="ipmitool, the management controller's power reading",
            least_w=LEAST_SERVER_W,
        )
        yield channel
        yield Chunk(channel=channel, t_us=self._times(), values=_array(self._watts), line=self._line)
        yield from self._once.findings()
        if self._has_times():
            yield from self._clock.findings
        if len(self._watts) == 1:
            text = f"one reading of {self._watts[0]:g} W: no energy comes of it"
            mend = "log it repeatedly, with times"
            yield finding("CL274", "warning", text, self._source, line=self._line, mend=mend)
        yield Tally(rows=len(self._watts))

    def _take(self, text: str, line: int) -> None:
        power = _POWER.match(text)
        sensor = _SENSOR.match(text)
        if power is not None or sensor is not None or _NO_READING.match(text):
            self._line = self._line or line
            cell = power[1] if power else next((g for g in sensor.groups() if g), "") if sensor else ""
            self._watts.append(self._number(cell, line))
            self._t_us.append(None)
        elif self._watts and (time := _TIME.match(text)):
            self._t_us[-1] = self._us(time[1], line)
        elif self._watts and (state := _STATE.match(text)) and state[1] != "activated":
            self._watts[-1] = math.nan
            self._once.say("CL271", "warning", "the controller says it does not measure power", line)

    def _number(self, cell: str, line: int) -> float:
        try:
            watts = float(cell)
        except ValueError:
            watts = math.nan
        if not (0 < watts < math.inf):
            text = "a server that runs takes more than 0 W: the controller tells no power"
            self._once.say("CL271", "warning", text, line, "update the controller, or use a wall meter")
            return math.nan
        return watts

    def _us(self, text: str, line: int) -> float | None:
        for form in _FORMATS:
            try:
                moment = datetime.strptime(text, form)  # noqa: DTZ007  # the clock sets its zone
                return None if moment.year < _UNSET_YEAR else float(self._clock.us(moment, line))
            except ValueError:
                continue
        return None

    def _has_times(self) -> bool:
        """Whether each reading has a time, and they are not all the same."""
        told = [t for t in self._t_us if t is not None]
        return len(told) == len(self._t_us) and (len(told) == 1 or len(set(told)) > 1)

    def _times(self) -> Array | None:
        return _array([t for t in self._t_us if t is not None]) if self._has_times() else None


def _array(values: Sequence[float]) -> Array:
    import numpy as np

    return np.array(values, dtype=np.float64)
