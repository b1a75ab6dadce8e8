"""Sensors: one module each, all of one shape, found by ``probe``.

A sensor only reads. What its readings mean (kind, unit, channels, wrap) stands in
its ``SensorInfo``, which the journal keeps: a killed run is turned into energy
later, by another process, from the readings and this description alone.
"""

from __future__ import annotations

from typing import Final, Literal, Protocol, runtime_checkable

import msgspec

from carbonlens.domain.units import Boundary, Grade
from carbonlens.signals.calibrate import Calibration
from carbonlens.signals.cpu_model import CpuCurve

Kind = Literal["cumulative", "average", "instant", "utilisation", "use"]
"""What one reading is: a rising counter, averaged or instantaneous power, time in
use that a model turns into energy, or ``use``: activity seconds that only tell who
used a device (channels ``own`` and ``all`` of it)."""

Unit = Literal["J", "W", "s"]

Scope = Literal["process", "package", "rail", "board", "module", "machine", "wall"]
"""What the reading includes; ``process`` is the measured work alone."""

Who = Literal["own", "all"]

VOID: Final = -1e15
"""What a counter tells instead of joules when nothing it told in this window is true.

No failed reading looks like it, and the journal keeps it: a run that is recovered
leaves the counter out as well.
"""


class Channel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One value of a sensor's reading.

    Attributes:
        device: Stable id of what is read: a UUID, ``package-0``, a rail's name.
        component: ``cpu``, ``gpu``, ``ram``, ``npu``, ``total`` (holds all of
            these, as a module's input rail) or ``wall`` (holds the whole machine).
        max_range: Where a counter wraps, in the sensor's unit; ``None`` when it
            does not or does not say.
        rated_w: Highest power of the device; ``None`` when it does not say.
        most_w: More than this it cannot draw, not even for a moment; ``None`` takes
            the bound of its class (``metering.plausible``).
        calibration: Of this device against a meter; applied when sealing.
        part: Share of the device that is the work's by size (MIG slices); the
            work is then billed its share of activity, or this share without one.
        who: Of a ``use`` reading: the work's own activity, or everybody's.
    """

    device: str
    component: str
    max_range: float | None = None
    rated_w: float | None = None
    calibration: Calibration | None = None
    part: float | None = None
    who: Who = "all"
    most_w: float | None = None


class SensorInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that is needed to turn a sensor's readings into energy.

    Attributes:
        name: Of the sensor, unique within a run.
        update_period_s: How often the value changes; 0 when it is never stale.
        method: How a figure from it was made, as printed.
        gain_sigma: One sigma of the relative gain error.
        offset_sigma_w: One sigma of an offset in watts; ``None`` takes the default
            of ``signals.sensor``.
        window_s: Time before it that an averaged reading is the mean of.
        lag_s: How long ago a reading was true when it was read.
        lag_sigma_s: One sigma of the lag; ``None`` when it is not known.
        duty: Share of each update period that an instantaneous reading looks at.
        curve: Power per thread or unit of utilisation, for a sensor that reads
            seconds in use; at this sensor's boundary.
        device_curve: The same at boundary ``device``, used when it is added to
            readings of devices.
        whole_machine: Whether the reading includes what others did on the machine.
        width_known: False where nobody states the source's accuracy: its figure
            then has no interval, which is not an interval of zero.
        slow: Whether a reading of power a second tells enough: it changes slowly, or a
            counter stands beside it.
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
    offset_sigma_w: float | None = None
    window_s: float | None = None
    lag_s: float = 0.0
    lag_sigma_s: float | None = None
    duty: float | None = None
    curve: CpuCurve | None = None
    device_curve: CpuCurve | None = None
    whole_machine: bool = False
    width_known: bool = True
    slow: bool = False


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
    thread of its own and never by the user's. ``rest_s`` is the shortest time
    between two reads inside a window, for a sensor whose reads cost much; 0 reads
    at every look. The edges of a window are always read.
    """

    may_block: bool
    rest_s: float

    @property
    def info(self) -> SensorInfo:
        """Describe the readings; fixed once the sensor was probed."""
        ...

    def probe(self) -> Probe:
        """Look whether the source can be read by reading it, changing nothing."""
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
