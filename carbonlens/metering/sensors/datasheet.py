"""Datasheet: the rated power of a device that has no sensor (grade E)."""

from __future__ import annotations

import math

from carbonlens.domain.grades import DATASHEET_FACTOR_95
from carbonlens.domain.sources import DatasheetDevice
from carbonlens.domain.units import Z_95
from carbonlens.metering.sensors import Channel, Probe, SensorInfo


class DatasheetSensor:
    """Tells a device's rated power for as long as the work lasts.

    Args:
        declared: The device and where its figure stands.
    """

    may_block = False
    rest_s = 0.0

    def __init__(self, declared: DatasheetDevice) -> None:
        """Keep what was declared."""
        self._declared = declared
        self._closed = False
        self._info = SensorInfo(
            name=f"datasheet:{declared.device}",
            kind="instant",
            unit="W",
            scope="board",
            boundary="device",
            grade="E",
            update_period_s=0.0,
            channels=(Channel(device=declared.device, component=declared.component),),
            method=f"{declared.power_w:g} W by its datasheet ({declared.source}), whatever it does",
            gain_sigma=math.log(DATASHEET_FACTOR_95) / Z_95,
            # A constant has neither an offset nor anything between two looks of its own.
            offset_sigma_w=0.0,
            lag_sigma_s=0.0,
            duty=1.0,
        )

    @property
    def info(self) -> SensorInfo:
        """Describe the readings."""
        return self._info

    def probe(self) -> Probe:
        """See whether the figure is a power."""
        found = f"{self._declared.device}: {self._declared.power_w:g} W ({self._declared.source})"
        if self._is_power:
            return Probe(usable=True, found=found)
        return Probe(
            usable=False,
            found=found,
            reason="the power must be a number of watts above 0",
            mend=f"correct power_w of {self._declared.device} in the sources file",
        )

    def read(self, *, edge: bool) -> tuple[float | None, ...]:
        """Return the watts.

        Raises:
            OSError: If the figure is no power, or the sensor is closed.
        """
        del edge  # it is always the same
        if self._closed:
            raise OSError("the sensor is closed")
        if not self._is_power:
            raise OSError(f"{self._declared.power_w} W is not a power")
        return (self._declared.power_w,)

    def close(self) -> None:
        """Tell no more."""
        self._closed = True

    @property
    def _is_power(self) -> bool:
        return math.isfinite(self._declared.power_w) and self._declared.power_w > 0
