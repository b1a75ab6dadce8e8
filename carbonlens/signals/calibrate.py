"""Calibrate: gain, offset and lag of a device's power against an external meter.

True power is ``level + gain (reading - pivot)``, a lag earlier. A calibration
holds for the range of power it saw: idle and load err differently (an RTX 4090
reads 1 % low at full load and 27 % low when idle), and a sensor that looks at a
quarter of the time cannot be calibrated on a load that beats with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import msgspec

from carbonlens.domain.estimate import Estimate
from carbonlens.domain.finding import Finding
from carbonlens.domain.units import US_PER_S
from carbonlens.errors import MeasurementError
from carbonlens.signals.align import Alignment, align
from carbonlens.signals.sensor import GAIN_U, GAP_PERIODS, Sensor
from carbonlens.signals.series import Series, clean

LEAST_EXPLAINED: Final = 0.9
"""Share of the meter's variance that the device's readings must explain."""

PLAUSIBLE_GAIN: Final = (0.7, 1.4)
"""Gains outside are no property of a board (published: 0.90 to 1.07) but of a load that beats."""

LONGEST_LAG_PERIODS: Final = 10
"""Lags are sought up to this many update periods."""

STEPS_A_PERIOD: Final = 20
"""Lags tried in each update period."""


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """Line and lag between a device's power readings and a meter.

    Attributes:
        source: Id of the device's sensor.
        gain: Watts at the meter for one more watt of reading.
        offset_w: Watts at the meter for a reading of none, by the same line.
        lag_us: How long ago a reading was true when it was read.
        level_w: Watts at the meter where the device read ``pivot_w``.
        pivot_w: Mean reading; gain and level err independently about it.
        read_w: Lowest and highest reading it rests on.
        residual_w: Standard deviation of single updates about the line.
        explained: Share of the meter's variance that the line explains.
        n: Updates it rests on.
        meter_u: Relative standard uncertainty of the meter.
        findings: Why it must not be used, if it must not.
    """

    source: str
    gain: Estimate
    offset_w: Estimate
    lag_us: Estimate
    level_w: Estimate
    pivot_w: float
    read_w: tuple[float, float]
    residual_w: float
    explained: float
    n: int
    meter_u: float
    findings: tuple[Finding, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether it is better than not calibrating."""
        return not self.findings

    def _at(self, reading_w: float) -> float:
        if self.gain.value is None or self.level_w.value is None or not self.usable:
            raise MeasurementError(
                f"the calibration of {self.source} cannot be used",
                mend="calibrate again with a load that holds idle and full power for 5 s each",
            )
        return self.level_w.value + self.gain.value * (reading_w - self.pivot_w)

    def correct(self, power_w: Sequence[float | None]) -> list[float | None]:
        """Return readings as the meter would have told them; a failed one stays ``None``.

        Raises:
            MeasurementError: If the calibration cannot be used.
        """
        return [None if reading is None else self._at(reading) for reading in power_w]

    def applied_to(self, sensor: Sensor) -> Sensor:
        """Return the sensor as it errs after ``correct``.

        Raises:
            MeasurementError: If the calibration cannot be used.
        """
        gain_u = self.gain.u_random / (self.gain.value or 1.0)
        return msgspec.structs.replace(
            sensor,
            lag_us=self.lag_us.value or 0.0,
            lag_u_us=self.lag_us.u_random,
            gain_u=gain_u,
            offset_u_w=self.level_w.u_random,
            pivot_w=self._at(self.pivot_w),
            idle_w=None if sensor.idle_w is None else self._at(sensor.idle_w),
            reference_u=self.meter_u,
            valid_w=(self._at(self.read_w[0]), self._at(self.read_w[1])),
        )


def calibrate(
    device: tuple[Sequence[float], Sequence[float | None]],
    meter: tuple[Sequence[float], Sequence[float | None]],
    sensor: Sensor,
    *,
    meter_u: float,
) -> Calibration:
    """Return gain, offset and lag of a device against a meter, with their uncertainties.

    Args:
        device: Times in microseconds and watts as the device told them.
        meter: The same of the meter, on the same clock, over the same supply.
        sensor: What is known about the device's sensor.
        meter_u: Relative standard uncertainty of the meter, from its specification.

    Raises:
        MeasurementError: If the two traces do not overlap, or the device never
            read two different powers.
    """
    told = _updates(clean(*device), sensor)
    metered = clean(*meter)
    period_us = sensor.update_period_us or told.spacing_us or US_PER_S
    step_us = period_us / STEPS_A_PERIOD
    lags_us = [k * step_us for k in range(-STEPS_A_PERIOD, LONGEST_LAG_PERIODS * STEPS_A_PERIOD + 1)]
    found = align(
        told.held(GAP_PERIODS * period_us),
        metered.held(GAP_PERIODS * (metered.spacing_us or 0.0)),
        lags_us,
    )
    if found is None:
        raise MeasurementError(
            "device and meter have no three updates in common, or the device's power never changed",
            where=sensor.source,
            mend="record both over the same minutes, on one clock, with idle and load in them",
        )
    # A change shows at the next update, and a load may keep step with the updates.
    u_lag_us = math.hypot(found.u_lag_us, period_us / math.sqrt(12))
    return _calibration(msgspec.structs.replace(found, u_lag_us=u_lag_us), told, sensor, meter_u)


def _updates(told: Series, sensor: Sensor) -> Series:
    """Return one reading an update, where a sensor was polled faster than it updates."""
    spacing_us = told.spacing_us
    if sensor.update_period_us and spacing_us and spacing_us < sensor.update_period_us / 2:
        return told.moves()
    return told


def _calibration(found: Alignment, told: Series, sensor: Sensor, meter_u: float) -> Calibration:
    line = found.line
    return Calibration(
        source=sensor.source,
        gain=Estimate(value=line.gain, unit="1", u_random=line.u_gain, signed=True),
        offset_w=Estimate(
            value=line.level - line.gain * line.pivot,
            unit="W",
            u_random=math.hypot(line.u_level, line.u_gain * line.pivot),
            signed=True,
        ),
        lag_us=Estimate(value=found.lag_us, unit="us", u_random=found.u_lag_us, signed=True),
        level_w=Estimate(value=line.level, unit="W", u_random=line.u_level),
        pivot_w=line.pivot,
        read_w=(min(told.values), max(told.values)),
        residual_w=line.residual,
        explained=line.explained,
        n=line.n,
        meter_u=meter_u,
        findings=_doubts(found),
    )


def _doubts(found: Alignment) -> tuple[Finding, ...]:
    line = found.line
    plausible = PLAUSIBLE_GAIN[0] <= line.gain <= PLAUSIBLE_GAIN[1]
    if plausible and line.explained >= LEAST_EXPLAINED and line.u_gain <= GAIN_U * line.gain:
        return ()
    return (
        Finding(
            code="CL129",
            severity="error",
            message=f"the readings explain {line.explained:.0%} of what the meter saw and leave the gain "
            f"{line.gain:.3g} +- {2 * line.u_gain:.2g}: no calibration comes of it",
            mend="calibrate with steady loads of 5 s or longer, not one that switches as fast as the sensor",
        ),
    )
