"""Live figures: power of the moment, energy so far and the rate of a run that goes on.

Each figure says so where a part of it is not known; nothing unknown is shown as zero.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

import msgspec

from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.run import Run
from carbonlens.domain.units import US_PER_S
from carbonlens.metering.parts import Part
from carbonlens.metering.sealing import Sealed
from carbonlens.reporting import format as fmt

_SPAN_US: Final = 2 * US_PER_S
"""Power is the mean of at least this time: some sources are read once a second."""

_RATE_SPAN_S: Final = 3.0

_Device = tuple[str, str]
"""Sensor and device."""


class LiveFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown of a run that goes on.

    Attributes:
        power_w: Mean of the last seconds; ``None`` while it is not known.
        power_whole: False where something that draws power is not in it.
        energy: Energy so far, in joules.
        quiet: True where every source reads, and none has seen any use since the start: the energy
            is less than they tell, hence unknown.
        rate: Units a second over the last seconds; ``None`` where nobody counts them.
        elapsed_s: Since the command was started.
    """

    power_w: float | None
    power_whole: bool
    energy: Estimate
    elapsed_s: float
    quiet: bool = False
    rate: float | None = None
    unit: str | None = None

    def text(self) -> str:
        """Return the figures as one line of plain text."""
        said = [self._power(), self._energy()]
        if self.rate is not None:
            said.append(f"{_digits(self.rate)} {self.unit or 'unit'}/s")
        line = "   ".join([*said, clock(self.elapsed_s)])
        return line.replace("\N{NO-BREAK SPACE}", " ").replace(fmt.GROUP, "")

    def _power(self) -> str:
        if self.power_w is None or (self.power_w == 0 and not self.power_whole):
            return "power unknown"  # "at least idle" would say nothing
        return ("" if self.power_whole else "at least ") + _watts(self.power_w)

    def _energy(self) -> str:
        printed = fmt.energy(self.energy)
        if self.energy.value is None:
            return "no use seen yet" if self.quiet else "energy unknown"
        return f"{printed.text} {printed.interval}".strip()


class Watcher:
    """Turns what a session has so far into live figures; keeps a few seconds of what it saw."""

    def __init__(self) -> None:
        """Start without having seen anything."""
        self._seen: dict[_Device, deque[tuple[int, float]]] = {}
        self._counts: deque[tuple[float, Decimal]] = deque()

    def figures(
        self,
        sealed: Sealed | None,
        elapsed_s: float,
        units: Decimal | None = None,
        unit: str | None = None,
    ) -> LiveFigures:
        """Return the figures of the moment.

        Args:
            sealed: What the session has; ``None`` while it has nothing.
            elapsed_s: Since the command was started.
            units: Counted so far.
            unit: Their name.
        """
        energy = unknown("J") if sealed is None else _total(sealed)
        power = self._power(sealed)
        return LiveFigures(
            power_w=power,
            power_whole=sealed is not None and _is_whole(sealed),
            energy=energy,
            quiet=sealed is not None and energy.value is None and _is_whole(sealed),
            rate=self._rate(elapsed_s, units),
            unit=unit,
            elapsed_s=elapsed_s,
        )

    def _power(self, sealed: Sealed | None) -> float | None:
        """Return the sum over the devices in the total, each by its own times of reading."""
        if sealed is None:
            return None
        now = _told(sealed)
        for gone in self._seen.keys() - now.keys():
            del self._seen[gone]
        watts = [self._mean(device, *told) for device, told in now.items()]
        known = [w for w in watts if w is not None]
        return math.fsum(known) if known and len(known) == len(watts) else None

    def _mean(self, device: _Device, at_us: int, joules: float) -> float | None:
        seen = self._seen.setdefault(device, deque([(0, 0.0)]))
        if joules < seen[-1][1] or at_us < seen[-1][0]:
            # The figure was made anew, of another source or by a better description.
            seen.clear()
        if not seen or at_us > seen[-1][0]:
            seen.append((at_us, joules))
        while len(seen) > 2 and seen[1][0] <= at_us - _SPAN_US:
            seen.popleft()
        (from_us, before), (to_us, after) = seen[0], seen[-1]
        return (after - before) / (to_us - from_us) * US_PER_S if to_us > from_us else None

    def _rate(self, elapsed_s: float, units: Decimal | None) -> float | None:
        if units is None:
            return None
        counts = self._counts
        if not counts or units < counts[-1][1]:
            counts.clear()
        counts.append((elapsed_s, units))
        while len(counts) > 2 and counts[1][0] <= elapsed_s - _RATE_SPAN_S:
            counts.popleft()
        (from_s, before), (to_s, after) = counts[0], counts[-1]
        return float(after - before) / (to_s - from_s) if to_s > from_s else None


def clock(seconds: float) -> str:
    """Return a time as a clock shows it: ``0:42``, ``1:02:03``."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _total(sealed: Sealed) -> Estimate:
    return Run(run_id="", energy=sealed.readings).total_energy


def _told(sealed: Sealed) -> Mapping[_Device, tuple[int, float]]:
    """Return time and energy of the last reading of each device in the total."""
    return {
        (part.info.name, part.device): (part.steps[-1][1], float(reading.energy_j or 0))
        for part, reading in zip(sealed.parts, sealed.readings, strict=False)
        if part.steps and (reading.energy_j is not None or _is_quiet(part))
    }


def _is_quiet(part: Part) -> bool:
    """Tell whether a clock of CPU time was read and has not moved: the work slept, or used less than a tick.

    What it used by then is unknown and not nothing; its power since is none that the clock sees.
    """
    clock_reads = part.info.unit == "s" and part.info.scope == "process" and part.info.curve is not None
    return clock_reads and bool(part.steps) and not any(gain for _, _, gain in part.steps)


def _is_whole(sealed: Sealed) -> bool:
    """Tell whether all that draws power is read, be it that it saw no use."""
    quiet = [_is_quiet(part) for part in sealed.parts]
    quiet += [False] * (len(sealed.readings) - len(quiet))
    return all(
        silent or (reading.energy_j is not None and reading.state == "known")
        for reading, silent in zip(sealed.readings, quiet, strict=True)
    )


def _watts(watts: float) -> str:
    if watts == 0:
        return "idle"  # nothing was used in these seconds, as far as the source tells
    if watts >= 1000:
        return f"{_digits(watts / 1000)} kW"
    return f"{_digits(watts)} W" if watts >= 1 else f"{_digits(watts * 1000)} mW"


def _digits(value: float) -> str:
    """Return a number with three digits at most, without an exponent."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
