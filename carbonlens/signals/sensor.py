"""Sensor: how a sensor reads and how it errs, with the sources of the defaults.

The default gain and offset are those of boards nobody has calibrated. Yang,
Adamek and Armour (SC24, DOI 10.1109/SC41406.2024.00028) give a straight line
against an external meter for each of 19 GPUs (figure "steady state accuracy", in
their repository GPU_Power_Benchmark). A gain of 5 % at 95 % and an offset with a
standard uncertainty of 2 % of the board's rating hold 18 of these 19 lines at any
load from 10 to 70 % of the rating, and all of them at full load.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from carbonlens.domain.units import Z_95, Grade

Kind = Literal["counter", "instant", "average"]

GAP_PERIODS: Final = 3
"""A sample stands for at most this many update periods unless a sensor says otherwise."""

GAIN_U: Final = 0.05 / Z_95
"""Relative standard uncertainty of an uncalibrated sensor's gain (5 % at 95 %)."""

OFFSET_SHARE_U: Final = 0.02
"""Standard uncertainty of its offset, as a share of the rating or of the highest power seen."""

LEAST_DUTY: Final = 0.25
"""Share of the time that an instantaneous reading looks at, at least.

A100 and H100 average 25 ms of each 100 ms (same paper). A sensor known to see all
of its period (Turing and RTX 3090: 100 of 100 ms) may say 1.
"""

GRADES: Final[dict[Kind, Grade]] = {"counter": "B", "instant": "C", "average": "C"}
"""Evidence grade by kind of reading."""


class Sensor(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about one sensor; the defaults are those of an unknown make.

    Attributes:
        kind: What a reading is: energy so far, power now, or mean power.
        source: Id of the sensor; readings of one source share gain and offset.
        update_period_us: How often the sensor updates; ``None`` takes the median
            spacing of the readings.
        window_us: Time before it that an averaged reading is the mean of;
            ``None`` takes the update period.
        lag_us: How long ago a reading was true when it was read.
        lag_u_us: Standard uncertainty of the lag; ``None`` takes one update
            period, at most 1 s.
        gap_us: Longest time a power sample stands for; ``None`` takes 3 update
            periods.
        max_range: Joules at which a counter wraps; ``None`` if unknown.
        duty: Share of each update period an instantaneous sensor looks at;
            ``None`` takes the least published.
        gain_u: Relative standard uncertainty of the gain.
        offset_u_w: Standard uncertainty of the offset in watts; ``None`` takes a
            share of ``rated_w`` for power, and nothing for a counter, whose
            +-5 % (DESIGN law 2) are all that is known.
        rated_w: The device's highest power; ``None`` takes the highest seen.
        idle_w: Power below which the device does not go; ``None`` takes the
            lowest seen.
        pivot_w: Power at which gain and offset err apart: 0, or the mean power
            of a calibration.
        reference_u: Relative standard uncertainty of the meter a calibration
            rests on; 0 without one.
        valid_w: Range of power that a calibration covers; beyond it the default
            gain holds. ``None`` without a calibration.
    """

    kind: Kind
    source: str = "sensor"
    update_period_us: float | None = None
    window_us: float | None = None
    lag_us: float = 0.0
    lag_u_us: float | None = None
    gap_us: float | None = None
    max_range: float | None = None
    duty: float | None = None
    gain_u: float = GAIN_U
    offset_u_w: float | None = None
    rated_w: float | None = None
    idle_w: float | None = None
    pivot_w: float = 0.0
    reference_u: float = 0.0
    valid_w: tuple[float, float] | None = None
