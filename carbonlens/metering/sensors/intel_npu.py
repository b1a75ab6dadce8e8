"""Intel NPU: seconds in use, which a stated power turns into energy (grade D), or nothing does.

The driver ``intel_vpu`` counts the time in which jobs are on the device and tells no power
(kernel documentation, ABI/testing/sysfs-driver-ivpu). It also asks for at most one read a
second, because a read holds up the submission of jobs.

No published figure of what an Intel NPU draws while busy, for the device alone, could be
found: without one that the user declares (with its source), the time in use is recorded and
the energy is unknown. The NPU is on the processor's die: where RAPL counts the package, its
energy is already in there and must not be added.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Final

from carbonlens.domain.grades import DATASHEET_FACTOR_95
from carbonlens.domain.sources import DatasheetDevice
from carbonlens.domain.units import Z_95
from carbonlens.metering.sensors import Channel, Probe, SensorInfo
from carbonlens.metering.sensors.sysfs import folders, number, readable_mend, why_unreadable
from carbonlens.signals.cpu_model import CpuCurve

DRIVER: Final = "intel_vpu"
_COUNTER: Final = "npu_busy_time_us"
_MICRO: Final = 1e-6


class IntelNpuSensor:
    """Reads how long each Intel NPU was in use.

    Args:
        root: The file system; ``/`` on a real machine.
        declared: What the NPU draws while busy, from a datasheet; ``None`` leaves the
            energy unknown.
    """

    may_block = True  # the counter is behind the lock of job submission
    rest_s = 1.0  # as the driver's documentation asks

    def __init__(self, root: Path, declared: DatasheetDevice | None = None) -> None:
        """List the devices; nothing is opened."""
        self._root = root
        self._devices = tuple(
            folder for folder in folders(root / "sys" / "class" / "accel", "accel*") if _is_npu(folder)
        )
        self._declared = declared

    @property
    def info(self) -> SensorInfo:
        """Describe the readings."""
        return SensorInfo(
            name="intel_npu",
            kind="utilisation",
            unit="s",
            scope="package",
            boundary="device",
            grade="D",
            update_period_s=0.0,
            channels=tuple(Channel(device=_id(folder), component="npu") for folder in self._devices),
            method=self._method(),
            curve=None if self._declared is None else _curve(self._declared),
            whole_machine=True,
        )

    def probe(self) -> Probe:
        """Read each counter once."""
        if not self._devices:
            return Probe(usable=False, found="no Intel NPU", reason=f"no device uses the driver {DRIVER}")
        found = ", ".join(_id(folder) for folder in self._devices)
        for folder in self._devices:
            file = folder / "device" / _COUNTER
            fault = why_unreadable(file)
            if fault is not None:
                old = not file.exists()
                return Probe(
                    usable=False,
                    found=found,
                    reason=fault,
                    mend="use Linux 6.11 or newer, whose driver counts the time in use"
                    if old
                    else readable_mend(self._root, file),
                )
        if self._declared is None:
            return Probe(
                usable=True,
                found=f"{found}: time in use only, energy unknown; tested on recordings",
                reason="the NPU tells no power, and no figure for it is published",
                mend="declare its busy power, with its source, as a datasheet device named intel_npu",
            )
        return Probe(usable=True, found=f"{found}: time in use; tested on recordings")

    def read(self, *, edge: bool) -> tuple[float | None, ...]:
        """Return seconds in use a device; ``None`` for one that cannot be read now.

        Raises:
            OSError: If none can be read.
        """
        del edge
        values = tuple(_busy_s(folder) for folder in self._devices)
        if not values or all(v is None for v in values):
            raise OSError("the NPU's time in use could not be read")
        return values

    def close(self) -> None:
        """Nothing is held open."""

    def _method(self) -> str:
        if self._declared is None:
            return "time in use of the NPU (intel_vpu); its power is not known; sensor tested on recordings"
        return (
            f"time in use of the NPU (intel_vpu) x {self._declared.power_w:g} W "
            f"({self._declared.source}); sensor tested on recordings"
        )


def _curve(declared: DatasheetDevice) -> CpuCurve:
    """Return a device that draws the declared power while busy and nothing else.

    What it draws when idle belongs to nobody's jobs; the width is that of a datasheet.
    """
    return CpuCurve(
        family=declared.device,
        idle_w_per_thread=0.0,
        full_w_per_thread=declared.power_w,
        spread=math.log(DATASHEET_FACTOR_95) / Z_95,
        n=0,
        source=declared.source,
        component="npu",
    )


def _is_npu(folder: Path) -> bool:
    driver = folder / "device" / "driver"
    try:
        return driver.resolve(strict=True).name == DRIVER
    except (OSError, RuntimeError):
        return False


def _id(folder: Path) -> str:
    """Return the address on the bus, which stays when devices are numbered anew."""
    try:
        return f"npu-{(folder / 'device').resolve(strict=True).name}"
    except (OSError, RuntimeError):
        return f"npu-{folder.name}"


def _busy_s(folder: Path) -> float | None:
    value = number(folder / "device" / _COUNTER)
    return None if value is None or value < 0 else value * _MICRO
