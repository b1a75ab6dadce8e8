"""Calibrations put on sensors: looked up by device, named in the method of each figure.

Where they are kept is told in ``calibration_files``.
"""

from __future__ import annotations

import math
import re
import time
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from carbonlens.domain.estimate import Estimate
from carbonlens.domain.finding import Finding
from carbonlens.domain.units import US_PER_S
from carbonlens.metering.calibration_files import CPU, Found, Stored, against, calibrations_folder, read
from carbonlens.metering.cpu_device import method_of
from carbonlens.metering.sensors import Channel, SensorInfo
from carbonlens.signals.calibrate import Calibration

VALID_DAYS: Final = 365
"""Age from which a calibration is said to be old: the usual interval of electrical meters."""

_DRIVER: Final = Path("/proc/driver/nvidia/version")
_VERSION: Final = re.compile(r"\b\d+\.\d+(\.\d+)?\b")


class Applied(NamedTuple):
    """A sensor's description with its calibrations, and what must be said of them."""

    info: SensorInfo
    findings: tuple[Finding, ...] = ()


def apply(info: SensorInfo, *, folder: Path | None = None) -> SensorInfo:
    """Return a sensor's description with the calibrations of its devices; see ``applied``."""
    return applied(info, folder=folder).info


def applied(
    info: SensorInfo, *, folder: Path | None = None, now_us: int | None = None, driver: Path = _DRIVER
) -> Applied:
    """Return a sensor's description with the calibrations of its devices, named in its method.

    Power readings get line and lag, of the sensor that was calibrated; other readings
    of that device err by the same line, with their own lag. A counter gets a gain alone.
    The CPU model gets the machine's own curves.

    Args:
        info: Description after the probe.
        folder: Where calibrations lie; this user's by default.
        now_us: Present time, UTC.
        driver: File in which the NVIDIA driver tells its version.
    """
    place = folder or calibrations_folder()
    if not place.is_dir():
        return Applied(info)
    now_us = time.time_ns() // 1000 if now_us is None else now_us
    if info.kind == "utilisation" and any(c.component == "cpu" for c in info.channels):
        return _with_curves(info, read(CPU, folder=place), now_us)
    if info.unit == "s":
        return Applied(info)
    channels, notes, named = [], [], []
    for channel in info.channels:
        found = read(channel.device, folder=place)
        notes += [found.finding] if found.finding else []
        stored = found.stored
        if stored is None or stored.calibration is None or not stored.calibration.usable:
            channels.append(channel)
            continue
        notes += doubts(stored, now_us, driver)
        named.append((channel.device, against(stored.taken_us, stored.meter, stored.run_id)))
        channels.append(_calibrated(info, channel, stored, stored.calibration))
    said = [text if len(info.channels) == 1 else f"{device} {text}" for device, text in named]
    method = "; ".join((info.method, *said))
    return Applied(msgspec.structs.replace(info, channels=tuple(channels), method=method), tuple(notes))


def load(device: str, *, folder: Path | None = None) -> Calibration | None:
    """Return a device's line and lag; ``None`` without a usable one.

    Args:
        device: Its id.
        folder: Where calibrations lie; this user's by default.
    """
    place = folder or calibrations_folder()
    stored = read(device, folder=place).stored if place.is_dir() else None
    found = None if stored is None else stored.calibration
    return found if found is not None and found.usable else None


def doubts(stored: Stored, now_us: int, driver: Path = _DRIVER) -> list[Finding]:
    """Return why a calibration may no longer hold; it is applied all the same.

    Args:
        stored: The calibration.
        now_us: Present time, UTC.
        driver: File in which the NVIDIA driver tells its version.
    """
    found = []
    oldest_us = min((curve.taken_us for curve in stored.curves), default=stored.taken_us)
    days = (now_us - oldest_us) / (86_400 * US_PER_S)
    if days > VALID_DAYS:
        found.append(
            Finding(
                code="CL151",
                severity="warning",
                message=f"the calibration of {stored.device} against {stored.meter} is {days:.0f} days old",
                mend=f"calibrate it again: carbonlens calibrate {stored.device}",
                subject=stored.device,
            )
        )
    now = driver_version(stored.device, driver) if stored.driver else stored.driver
    if now != stored.driver:
        found.append(
            Finding(
                code="CL152",
                severity="warning",
                message=f"{stored.device} was calibrated under driver {stored.driver}, now it is "
                f"{now or 'unknown'}: what its sensor tells may have changed",
                mend=f"calibrate it again: carbonlens calibrate {stored.device}",
                subject=stored.device,
            )
        )
    return found


def driver_version(device: str, file: Path = _DRIVER) -> str | None:
    """Return the version of the driver that reads a device; ``None`` where nothing tells it.

    Args:
        device: Its id; only NVIDIA devices have a driver that tells.
        file: Where it tells.
    """
    if not device.upper().startswith(("GPU-", "MIG-")):
        return None
    try:
        found = _VERSION.search(file.read_text("ascii", "replace").partition("\n")[0])
    except OSError:
        return None
    return found.group(0) if found else None


def _with_curves(info: SensorInfo, found: Found, now_us: int) -> Applied:
    stored = found.stored
    if stored is None:
        return Applied(info, (found.finding,) if found.finding else ())
    for measured in stored.curves:
        curve = measured.curve(stored.machine)
        if measured.boundary == info.boundary:
            info = msgspec.structs.replace(info, curve=curve, method=method_of(curve))
        elif measured.boundary == "device":
            info = msgspec.structs.replace(info, device_curve=curve)
    return Applied(info, tuple(doubts(stored, now_us)))


def _calibrated(info: SensorInfo, channel: Channel, stored: Stored, line: Calibration) -> Channel:
    if info.kind == "cumulative":
        line = gain_alone(line)
    elif info.name != stored.sensor:
        own_us = info.lag_s if info.lag_sigma_s is None else info.lag_sigma_s
        unsure_us = max(own_us, info.update_period_s) * US_PER_S
        lag = Estimate(value=info.lag_s * US_PER_S, unit="us", u_random=unsure_us, signed=True)
        line = msgspec.structs.replace(line, lag_us=lag)
    return msgspec.structs.replace(channel, calibration=line)


def gain_alone(line: Calibration) -> Calibration:
    """Return the calibration of a counter: one factor, true at the mean reading.

    A counter says nothing of power, so an offset cannot be taken off it. What the
    factor misses at both ends of the calibrated range is its uncertainty (even over
    that range: its half over the root of 3).

    Args:
        line: Of the same device's power.
    """
    level_w, slope = line.level_w.value, line.gain.value
    if level_w is None or slope is None or line.pivot_w <= 0:
        return line
    factor = level_w / line.pivot_w
    ends = [abs(level_w + slope * (w - line.pivot_w) - factor * w) / w for w in line.read_w if w > 0]
    u = math.hypot(line.level_w.u_random / line.pivot_w, max(ends, default=0.0) / math.sqrt(3))
    nothing = Estimate(value=0.0, unit="W", signed=True)
    late_us = abs(line.lag_us.value or 0.0) + line.lag_us.u_random
    return msgspec.structs.replace(
        line,
        gain=Estimate(value=factor, unit="1", u_random=u, signed=True),
        offset_w=nothing,
        level_w=nothing,
        pivot_w=0.0,
        lag_us=Estimate(value=0.0, unit="us", u_random=late_us, signed=True),
    )
