"""Sensors: one module each, all of one shape, found by ``probe``.

A sensor only reads. What its readings mean (kind, unit, channels, wrap) stands in
its ``SensorInfo``, which the journal keeps: a killed run is turned into energy
later, by another process, from the readings and this description alone.
"""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

import msgspec

from carbonlens.domain.units import Boundary, Grade
from carbonlens.signals.cpu_model import CpuCurve

Kind = Literal["cumulative", "average", "instant", "utilisation"]
"""What one reading is: a rising counter, averaged or instantaneous power, or time in use."""

Unit = Literal["J", "W", "s"]

Scope = Literal["process", "package", "board", "module", "machine", "wall"]
"""What the reading includes; ``process`` is the measured work alone."""


class Channel(msgspec.Struct, frozen=True, kw_only=True):
    """One value of a sensor's reading.

    Attributes:
        device: Stable id of what is read, for example ``package-0``.
        component: ``cpu``, ``gpu``, ``ram``, ``npu`` or ``wall``.
        max_range: Where a counter wraps, in the sensor's unit; ``None`` when it
            does not or does not say.
    """

    device: str
    component: str
    max_range: float | None = None


class SensorInfo(msgspec.Struct, frozen=True, kw_only=True):
    """All that is needed to turn a sensor's readings into energy.

    Attributes:
        name: Of the sensor module, unique within a run.
        update_period_s: How often the value changes.
        gain_sigma: One sigma of the relative gain error.
        curve: Power per thread, for a sensor that reads CPU time.
        method: How a figure from it was made, as printed.
    """

    name: str
    kind: Kind
    unit: Unit
    scope: Scope
    boundary: Boundary
    grade: Grade
    update_period_s: float
    channels: tuple[Channel, ...]
    method: str
    gain_sigma: float = 0.0
    curve: CpuCurve | None = None


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """What a sensor found when it looked for its source.

    Attributes:
        usable: Whether it can be read here and now.
        found: What is there, in words.
        reason: Why it cannot be used.
        mend: One safe thing that would make it usable.
    """

    usable: bool
    found: str
    reason: str | None = None
    mend: str | None = None


@runtime_checkable
class Sensor(Protocol):
    """A source of readings.

    ``may_block`` tells that a read can hang in a driver; it is then read by a
    thread of its own and never by the user's.
    """

    may_block: bool

    @property
    def info(self) -> SensorInfo:
        """Describe the readings."""
        ...

    def probe(self) -> Probe:
        """Look whether the source can be read, without changing anything."""
        ...

    def read(self, *, edge: bool) -> tuple[float | None, ...]:
        """Return one value a channel; ``None`` for a channel that gave none.

        Args:
            edge: True at the start and end of a window.

        Raises:
            OSError: If nothing can be read now; the time counts as not covered.
        """
        ...

    def close(self) -> None:
        """Give back what was opened; safe to call twice."""
        ...
