"""What the ways to calibrate a device share: the request, the choice of device, the fit, the keeping."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.app.calibrate import unstated_accuracy
from carbonlens.domain.finding import Finding
from carbonlens.errors import MeasurementError, UsageError
from carbonlens.metering import calibration_files as files
from carbonlens.metering.calibration_files import Stored
from carbonlens.metering.host import this_host
from carbonlens.metering.sensors import Channel
from carbonlens.metering.trace_pair import Trace
from carbonlens.signals.calibrate import Calibration, calibrate
from carbonlens.signals.sensor import Sensor as SignalSensor

LEAST_RANGE: Final = 0.2
"""Share of the highest reading that a load must move the device by."""

_WHOLES: Final = frozenset({"wall", "total"})
_SHORTEST_ID: Final = 4


class DeviceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to calibrate, and against what.

    Attributes:
        device: Id of a device, its beginning, or the number of a GPU.
        against: ``external`` or ``external:NAME``, which are read now; a run's id or its
            end, ``latest``, or a trace file; ``None`` with two files.
        seconds: How long both are read.
        device_trace, meter_trace: Files of ``t_us,watts`` lines instead.
        meter_95: Relative 95 % accuracy of the meter of a trace.
        meter: Its name; in a run with several meters the one that is meant.
        ledger: Folder that the run is in, else as the command line finds it.
    """

    device: str
    against: str | None = None
    seconds: float = 60.0
    device_trace: Path | None = None
    meter_trace: Path | None = None
    meter_95: float | None = None
    meter: str | None = None
    ledger: Path | None = None


class DeviceOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """A new calibration that is kept.

    Attributes:
        is_here: False for a calibration from files, of a device that cannot be read here.
    """

    stored: Stored
    calibration: Calibration
    path: Path
    findings: tuple[Finding, ...] = ()
    is_here: bool = True


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a calibration comes from; kept with it.

    Attributes:
        sensor: Name of the device's sensor.
        meter: Name of the meter.
        is_stated: Whether somebody stated how accurate the meter is.
        driver: Version of the device's driver then; ``None`` where nothing tells.
        taken_us: When, UTC; now when ``None``.
        machine: Pseudonym of the machine; this one when ``None``.
        run_id: The run whose trace it was made from, if any.
    """

    sensor: str
    meter: str
    is_stated: bool
    driver: str | None = None
    taken_us: int | None = None
    machine: str | None = None
    run_id: str | None = None


def matching(name: str, channels: Sequence[Channel]) -> list[str]:
    """Return the devices that a name means; exactly one is wanted.

    Args:
        name: A device's id, the beginning of it, or the number of a GPU.
        channels: What there is.
    """
    if name.isdecimal():
        gpus = list(dict.fromkeys(c.device for c in channels if c.component == "gpu"))
        return gpus[int(name) : int(name) + 1]
    devices = list(dict.fromkeys(c.device for c in channels))
    plain = name.lower()
    matches = [d for d in devices if d.lower() == plain]
    if not matches and len(plain) >= _SHORTEST_ID:
        matches = [
            d for d in devices if d.lower().removeprefix("gpu-").startswith(plain.removeprefix("gpu-"))
        ]
    return matches


def same_supply(meter: str, device: str) -> bool:
    """Tell whether a meter of one component can tell the power of a device of another.

    Args:
        meter: Component that the meter is declared for.
        device: Component of the device.
    """
    return meter not in _WHOLES or device in _WHOLES


def check_supply(meter: str, component: str, device: Channel) -> None:
    """Refuse a meter of the whole machine for a part of it.

    Args:
        meter: Its name.
        component: What it is declared to meter.
        device: What is to be calibrated.

    Raises:
        UsageError: If the meter tells of more than the device.
    """
    if not same_supply(component, device.component):
        raise UsageError(
            f"the meter {meter} tells the power of all of the machine ({component}), "
            f"not that of {device.device} alone",
            mend=f"measure the device's own supply, and declare that meter with component = "
            f'"{device.component}"',
        )


def fitted(told: tuple[Trace, Trace], sensor: SignalSensor, meter_u: float) -> Calibration:
    """Return line and lag between a device and a meter that can be used.

    Args:
        told: Power of the device, and of the meter.
        sensor: What is known of the device's sensor.
        meter_u: Relative standard uncertainty of the meter.

    Raises:
        MeasurementError: If no calibration comes of them.
    """
    device, meter = told
    found = calibrate((device.t_us, device.power_w), (meter.t_us, meter.power_w), sensor, meter_u=meter_u)
    low_w, high_w = found.read_w
    if high_w - low_w < LEAST_RANGE * high_w:
        raise MeasurementError(
            f"the load moved the device only between {low_w:.4g} and {high_w:.4g} W",
            where=sensor.source,
            mend="run a load that holds idle and full power for 5 s each, several times",
        )
    if not found.usable:
        finding = found.findings[0]
        raise MeasurementError(finding.message, where=sensor.source, mend=finding.mend or "calibrate again")
    return found


def kept(found: Calibration, device: str, origin: Origin) -> DeviceOutcome:
    """Keep a calibration in place of the device's former one.

    Args:
        found: Line and lag.
        device: Whose.
        origin: Where it comes from.

    Raises:
        UnwritableError: If it cannot be kept.
    """
    stored = Stored(
        device=device,
        machine=origin.machine or this_host().machine,
        meter=origin.meter,
        taken_us=time.time_ns() // 1000 if origin.taken_us is None else origin.taken_us,
        sensor=origin.sensor,
        driver=origin.driver,
        calibration=found,
        run_id=origin.run_id,
    )
    return DeviceOutcome(
        stored=stored,
        calibration=found,
        path=files.store(stored),
        findings=() if origin.is_stated else (unstated_accuracy(origin.meter),),
    )
