"""Lines of an external meter: ``t_us,watts[,rail]``, and the counters made of them.

A header may name other units (``t_ms``, ``t_s``, ``milliwatts``). Comments, blank
lines and lines that are torn or hold no power are left out and counted.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final, NamedTuple

from carbonlens.domain.units import US_PER_S
from carbonlens.metering.sensors.stream import TellingCounter
from carbonlens.signals.sensor import GAP_PERIODS

DEFAULT_PERIOD_S: Final = 1.0
"""Spacing of lines as long as none was seen and none is declared."""

CLOCK_SHARE: Final = 0.05
"""A meter's clock that is this much faster or slower than this machine's is at fault."""

_LATE_S: Final = 0.1
"""What a line may be late without any that came later still: scheduling."""

_HEAP_S: Final = 0.005
"""Lines that arrive closer than this were printed together."""

_LEAST_JUMPS: Final = 5
_JUMP_SHARE: Final = 0.2
_SOON_S: Final = 60.0

_LONGEST_LINE: Final = 4096
_SPACINGS: Final = 15

_TIMES_US: Final = {"t_us": 1.0, "t_ms": 1e3, "t_s": 1e6}
_POWERS_W: Final = {
    "watts": 1.0,
    "power_w": 1.0,
    "w": 1.0,
    "milliwatts": 1e-3,
    "power_mw": 1e-3,
    "mw": 1e-3,
}


class MeterLine(NamedTuple):
    """One line: microseconds of the meter's own clock, watts, and the rail it names."""

    t_us: float
    watts: float
    rail: str | None = None


class LineParser:
    """Cuts bytes into lines and reads them.

    Args:
        rails: Rails that were declared. A number that was not is no rail's name: the
            line has a decimal comma.
        is_whole: Whether a line without a rail is all of a machine or module, whose power
            is never 0 while it runs this program.

    Attributes:
        skipped: Comments, blank lines and headers.
        refused: Lines that are torn, or hold no finite time and power that can be.
        last_refused: The last of these, for messages.
    """

    def __init__(self, rails: Sequence[str] = (), *, is_whole: bool = False) -> None:
        """Start with the units that stand without a header."""
        self._declared = frozenset(rails)
        self._is_whole = is_whole
        self.skipped = 0
        self.refused = 0
        self.last_refused: str | None = None
        self._rest = b""
        self._units: tuple[float, float] | None = (1.0, 1.0)

    def feed(self, data: bytes) -> list[MeterLine]:
        """Return what whole lines hold; the rest waits for more."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _LONGEST_LINE:
            self._refuse(self._rest[:_LONGEST_LINE].decode("utf-8", "replace"))
            self._rest = b""
        found = (self._line(raw.decode("utf-8", "replace").strip(" \t\r\ufeff")) for raw in whole)
        return [line for line in found if line is not None]

    def _line(self, text: str) -> MeterLine | None:
        if not text or text.startswith("#"):
            self.skipped += 1
            return None
        cells = [cell.strip() for cell in text.split(",")]
        if len(cells) > 1 and cells[0][:1].isalpha() and cells[1][:1].isalpha():
            self.skipped += 1
            self._units = _units(cells)
            return None
        line = None if self._units is None else _values(cells, *self._units)
        if line is None or not self._can_be(line):
            self._refuse(text)
            return None
        return line

    def _can_be(self, line: MeterLine) -> bool:
        if line.rail is None:
            return line.watts > 0 or not self._is_whole
        return line.rail in self._declared or not _is_number(line.rail)

    def _refuse(self, text: str) -> None:
        self.refused += 1
        self.last_refused = text


def _units(cells: list[str]) -> tuple[float, float] | None:
    """Return what a header's columns are multiplied by; ``None`` for units nobody knows."""
    time_us, power_w = _TIMES_US.get(cells[0].lower()), _POWERS_W.get(cells[1].lower())
    return None if time_us is None or power_w is None else (time_us, power_w)


def _values(cells: list[str], time_us: float, power_w: float) -> MeterLine | None:
    if not 2 <= len(cells) <= 3:
        return None
    try:
        t_us, watts = float(cells[0]) * time_us, float(cells[1]) * power_w
    except ValueError:
        return None
    if not (math.isfinite(t_us) and math.isfinite(watts) and watts >= 0):
        return None
    return MeterLine(t_us, watts, cells[2] or None if len(cells) == 3 else None)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class ClockCheck:
    """Compares a meter's clock with the times at which its lines arrive.

    A line arrives later than it was measured, by a delay that changes: both clocks
    may differ by as much as lines were ever apart (a program may print them in heaps),
    and by ``CLOCK_SHARE``. A clock that was set is a jump, after which it is compared
    anew; one that jumps again and again is at fault.

    Attributes:
        fault: What is wrong with it, in words; ``None`` as long as nothing is.
    """

    def __init__(self) -> None:
        """Start without a line."""
        self.fault: str | None = None
        self._first: tuple[float, float] | None = None
        self._last = (0.0, 0.0)
        self._widest_s = 0.0
        self._lines = 0
        self._jumps: deque[float] = deque(maxlen=_LEAST_JUMPS)

    def take(self, t_us: float, arrived_s: float) -> bool:
        """Compare one line; tell whether the clock went on since the last one, without a jump."""
        t_s = t_us / US_PER_S
        self._lines += 1
        if self._first is None:
            self._first = self._last = (t_s, arrived_s)
            return False
        step_s, waited_s = t_s - self._last[0], arrived_s - self._last[1]
        self._widest_s = max(self._widest_s, waited_s)
        self._last = (t_s, arrived_s)
        ahead_s = (t_s - self._first[0]) - (arrived_s - self._first[1])
        allowed_s = CLOCK_SHARE * max(t_s - self._first[0], arrived_s - self._first[1])
        allowed_s += self._widest_s + _LATE_S
        # Lines printed together run ahead where they tell of the time before they were listened to.
        early = ahead_s > allowed_s and waited_s <= _HEAP_S
        if early or step_s < 0 or step_s > waited_s + self._widest_s + _LATE_S:
            self._first = self._last
            self._jump(arrived_s)
            return False
        if abs(ahead_s) > allowed_s:
            passed_s = arrived_s - self._first[1]
            self._say(f"went on {passed_s + ahead_s:.3g} s in {passed_s:.3g} s")
        return True

    def _jump(self, arrived_s: float) -> None:
        if self._jumps and arrived_s - self._jumps[-1] <= _HEAP_S:
            return  # of one heap
        self._jumps.append(arrived_s)
        often = arrived_s - self._jumps[0] <= _SOON_S or len(self._jumps) >= _JUMP_SHARE * self._lines
        if len(self._jumps) == _LEAST_JUMPS and often:
            self._say(f"jumped {_LEAST_JUMPS} times in {arrived_s - self._jumps[0]:.3g} s")

    def _say(self, what: str) -> None:
        if self.fault is None:
            self.fault = what


def clock_fault(samples: Iterable[tuple[MeterLine, float]]) -> str | None:
    """Return what is wrong with the clock of recorded lines; ``None`` if nothing is.

    Args:
        samples: Lines, each with the monotonic second it arrived at.
    """
    by_rail: dict[str | None, ClockCheck] = {}
    for line, arrived_s in samples:
        by_rail.setdefault(line.rail, ClockCheck()).take(line.t_us, arrived_s)
    return next((check.fault for check in by_rail.values() if check.fault is not None), None)


class _Rail:
    """The last line of a rail, and its clock."""

    def __init__(self, line: MeterLine, arrived_s: float) -> None:
        self.clock = ClockCheck()
        self.clock.take(line.t_us, arrived_s)
        self._keep(line, arrived_s)

    def take(self, line: MeterLine, arrived_s: float) -> bool:
        went_on = self.clock.take(line.t_us, arrived_s)
        self._keep(line, arrived_s)
        return went_on

    def _keep(self, line: MeterLine, arrived_s: float) -> None:
        self.t_us = line.t_us
        self.watts = line.watts
        self.arrived_s = arrived_s


class HoldCounter:
    """Joules of one channel: each line's watts held until the next line of its rail.

    The meter's own clock gives the time between lines, as long as it goes like the clock of
    this machine (``clock_fault``), which tells how long ago the last one came. Nothing is
    held over a gap of more than three periods, nor when the meter's clock goes back: the
    counter then begins anew.

    Args:
        period_s: Seconds between two lines of a rail; ``None`` takes their median.
    """

    def __init__(self, period_s: float | None = None) -> None:
        """Start without a line."""
        self._declared_s = period_s
        self._rails: dict[str | None, _Rail] = {}
        self._spacings_us: deque[float] = deque(maxlen=_SPACINGS)
        self._counter = TellingCounter()
        self.lines = 0

    @property
    def seen_period_s(self) -> float | None:
        """Median time between two lines of a rail; ``None`` before there were two."""
        return median(self._spacings_us) / US_PER_S if self._spacings_us else None

    @property
    def clock_fault(self) -> str | None:
        """What is wrong with the meter's clock: nothing that was told is true then."""
        return next((r.clock.fault for r in self._rails.values() if r.clock.fault is not None), None)

    @property
    def watts(self) -> float | None:
        """Power by the last lines; ``None`` before there was one."""
        return math.fsum(rail.watts for rail in self._rails.values()) if self._rails else None

    @property
    def _gap_s(self) -> float:
        return GAP_PERIODS * (self._declared_s or self.seen_period_s or DEFAULT_PERIOD_S)

    def take(self, line: MeterLine, arrived_s: float) -> None:
        """Count up to a line.

        Args:
            line: As the meter printed it.
            arrived_s: When it came, by this machine's monotonic clock.
        """
        self.lines += 1
        rail = self._rails.get(line.rail)
        if rail is None:
            self._rails[line.rail] = _Rail(line, arrived_s)
            # The sum has a part that it did not have until now.
            self._counter.begin_anew()
            return
        step_us, held_w = line.t_us - rail.t_us, rail.watts
        if not rail.take(line, arrived_s) or step_us > self._gap_s * US_PER_S:
            self._counter.begin_anew()
        else:
            self._counter.add(held_w * step_us / US_PER_S)
        if step_us > 0:
            self._spacings_us.append(step_us)

    def tell(self, now_s: float) -> float | None:
        """Return the joules; ``None`` when a rail's last line is more than three periods old."""
        if not self._rails or any(now_s - rail.arrived_s > self._gap_s for rail in self._rails.values()):
            return None
        held_j = math.fsum(r.watts * max(now_s - r.arrived_s, 0.0) for r in self._rails.values())
        return self._counter.tell(held_j)


def on_host_clock(samples: list[tuple[MeterLine, float]]) -> list[MeterLine]:
    """Return lines with the meter's times moved onto this machine's clock.

    The line that came soonest after it was measured is taken to have come at once:
    every other delay is longer. The meter's clock must not have been set meanwhile.

    Args:
        samples: Lines, each with the monotonic second it arrived at.
    """
    if not samples:
        return []
    shift_us = min(arrived_s * US_PER_S - line.t_us for line, arrived_s in samples)
    return [line._replace(t_us=line.t_us + shift_us) for line, _ in samples]
