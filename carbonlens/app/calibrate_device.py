"""Use case: calibrate the power readings of a device against a meter of the same supply."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from carbonlens.app.calibrate import assumes, external_meter, unstated_accuracy
from carbonlens.domain.finding import Finding
from carbonlens.domain.grades import COUNTER_GAIN_95
from carbonlens.domain.sources import ExternalMeter, Sources
from carbonlens.domain.units import Z_95
from carbonlens.errors import MeasurementError, SelectionError, UsageError
from carbonlens.metering import calibration_files as files
from carbonlens.metering.calibration_files import Stored
from carbonlens.metering.calibrations import driver_version
from carbonlens.metering.host import this_host
from carbonlens.metering.process_time import TreeClock
from carbonlens.metering.sensors import Channel, Sensor
from carbonlens.metering.tally import signal_sensor
from carbonlens.metering.trace_pair import Trace, look_s, read_trace, record
from carbonlens.signals.calibrate import Calibration, calibrate
from carbonlens.signals.sensor import Sensor as SignalSensor

LEAST_RANGE: Final = 0.2
"""Share of the highest reading that a load must move the device by."""

TRACE: Final = "trace"
"""Sensor name of a calibration made from files: its lag is that of no sensor here."""

_WHOLES: Final = frozenset({"wall", "total"})
_SHORTEST_ID: Final = 4
_METER: Final = "external:"


class DeviceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to calibrate, and against what.

    Attributes:
        device: Id of a device, its beginning, or the number of a GPU.
        against: ``external`` or ``external:NAME``; ``None`` with traces.
        seconds: How long both are read.
        device_trace, meter_trace: Files of ``t_us,watts`` lines instead.
        meter_95: Relative 95 % accuracy of the meter of a trace.
        meter: Its name.
    """

    device: str
    against: str | None = None
    seconds: float = 60.0
    device_trace: Path | None = None
    meter_trace: Path | None = None
    meter_95: float | None = None
    meter: str | None = None


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


class _Target(NamedTuple):
    sensor: Sensor
    channel: int

    @property
    def device(self) -> Channel:
        return self.sensor.info.channels[self.channel]


def calibrate_device(
    request: DeviceRequest,
    sources: Sources,
    *,
    sensors: Callable[[], Iterator[Sensor]] | None = None,
    progress: Callable[[str], None],
) -> DeviceOutcome:
    """Fit gain, offset and lag of a device's power readings, and keep them.

    Args:
        request: Device and meter.
        sources: What the user declared.
        sensors: Where the device's sensor is sought; what can be read here by default.
        progress: Told what happens now.

    Raises:
        UsageError: If the request names no meter there is.
        SelectionError: If no device, or more than one, bears the name.
        InputFileError: If a trace cannot be read.
        MeasurementError: If device and meter do not give a calibration.
        UnwritableError: If it cannot be kept.
    """
    if request.device_trace is not None or request.meter_trace is not None:
        return _from_traces(request, sensors or (lambda: _sensors(sources)))
    meter = _external(request, sources)
    with _target(request.device, sensors or (lambda: _sensors(sources))) as target:
        _check_supply(meter, target.device)
        info = target.sensor.info
        progress(
            f"reading {target.device.device} and {meter.name} for {request.seconds:g} s: "
            "run a load that holds idle and full power for 5 s each"
        )
        told = record(target.sensor, target.channel, meter, request.seconds)
        known = signal_sensor(info, target.device, look_s(info))
        meter_u = (COUNTER_GAIN_95 if meter.gain_95 is None else meter.gain_95) / Z_95
        found = _fitted(told, known, meter_u)
        return _kept(found, target.device.device, info.name, meter.name, stated=meter.gain_95 is not None)


def _from_traces(request: DeviceRequest, sensors: Callable[[], Iterator[Sensor]]) -> DeviceOutcome:
    if request.device_trace is None or request.meter_trace is None or request.against is not None:
        raise UsageError(
            "--device-trace and --meter-trace belong together, without --against",
            mend="give both files, and nothing else to compare with",
        )
    if request.device.isdecimal():
        raise UsageError(
            f"{request.device} is a device of some machine, and traces may be of another",
            mend="give the device's whole id, for a GPU its UUID (nvidia-smi -L)",
        )
    told = (read_trace(request.device_trace), read_trace(request.meter_trace))
    meter_u = (COUNTER_GAIN_95 if request.meter_95 is None else request.meter_95) / Z_95
    sensor = SignalSensor(kind="instant", source=f"{TRACE}:{request.device}")
    name = request.meter or f"the meter of {request.meter_trace.name}"
    kept = _kept(
        _fitted(told, sensor, meter_u), request.device, TRACE, name, stated=request.meter_95 is not None
    )
    here = _devices(sensors)
    if request.device in here:
        return kept
    note = assumes(
        f"a device {request.device!r} will be read here; now there is none "
        f"({', '.join(here) or 'no power of a device is read'})",
        "check its id with: carbonlens doctor --json",
    )
    return msgspec.structs.replace(kept, findings=(*kept.findings, note), is_here=False)


def _devices(sensors: Callable[[], Iterator[Sensor]]) -> tuple[str, ...]:
    """Return the devices that can be read here; meters are not started for it."""
    found: list[str] = []
    with ExitStack() as opened:
        for sensor in sensors():
            opened.callback(sensor.close)
            info = sensor.info
            if info.name.startswith(_METER) or (info.kind != "utilisation" and sensor.probe().usable):
                found += [c.device for c in sensor.info.channels]
    return tuple(dict.fromkeys(found))


def _external(request: DeviceRequest, sources: Sources) -> ExternalMeter:
    against = request.against or "external"
    if against.partition(":")[0].lower() != "external":
        raise UsageError(
            f"{against!r} is no meter of a device; a recorded run keeps its energy, not the power it read",
            where="--against",
            mend="give external or external:NAME, or two files: --device-trace and --meter-trace",
        )
    if not 5 <= request.seconds <= 3600:
        raise UsageError(f"--seconds {request.seconds:g} is not between 5 and 3600", mend="give 60 or more")
    return external_meter(against, sources)


def _sensors(sources: Sources) -> Iterator[Sensor]:
    from carbonlens.metering.sensors.discovery import candidates

    yield from candidates(sources, TreeClock())


@contextmanager
def _target(name: str, sensors: Callable[[], Iterator[Sensor]]) -> Iterator[_Target]:
    """Give the sensor that tells the device's power, probed; close all that were opened."""
    with ExitStack() as opened:
        found: list[_Target] = []
        for sensor in sensors():
            opened.callback(sensor.close)
            # A probe would start the meter's program, which may be able to run once only.
            if sensor.info.name.startswith(_METER):
                continue
            if not sensor.probe().usable or sensor.info.kind not in {"instant", "average"}:
                continue
            found += [_Target(sensor, i) for i in range(len(sensor.info.channels))]
        # Power now has no window of its own to be told apart from the lag.
        found.sort(key=lambda each: each.sensor.info.kind != "instant")
        seen = list(dict.fromkeys(each.device.device for each in found))
        wanted = _chosen(name, seen, [each.device for each in found])
        yield next(each for each in found if each.device.device == wanted)


def _chosen(name: str, devices: Sequence[str], channels: Sequence[Channel]) -> str:
    gpus = list(dict.fromkeys(c.device for c in channels if c.component == "gpu"))
    if name.isdecimal():
        matches = gpus[int(name) : int(name) + 1]
    else:
        plain = name.lower()
        matches = [d for d in devices if d.lower() == plain]
        if not matches and len(plain) >= _SHORTEST_ID:
            matches = [
                d for d in devices if d.lower().removeprefix("gpu-").startswith(plain.removeprefix("gpu-"))
            ]
    if len(matches) == 1:
        return matches[0]
    known = ", ".join(devices) or "none"
    raise SelectionError(
        f"{len(matches) or 'no'} device{'s' if len(matches) > 1 else ''} {name!r} whose power can be read "
        f"(here: {known})",
        mend="`carbonlens doctor` lists what can be read; traces from elsewhere: "
        "--device-trace and --meter-trace",
    )


def _check_supply(meter: ExternalMeter, device: Channel) -> None:
    if meter.component in _WHOLES and device.component not in _WHOLES:
        raise UsageError(
            f"the meter {meter.name} tells the power of all of the machine ({meter.component}), "
            f"not that of {device.device} alone",
            mend=f"measure the device's own supply, and declare that meter with component = "
            f'"{device.component}"',
        )


def _fitted(told: tuple[Trace, Trace], sensor: SignalSensor, meter_u: float) -> Calibration:
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


def _kept(found: Calibration, device: str, sensor: str, meter: str, *, stated: bool) -> DeviceOutcome:
    stored = Stored(
        device=device,
        machine=this_host().machine,
        meter=meter,
        taken_us=time.time_ns() // 1000,
        sensor=sensor,
        driver=driver_version(device) if sensor != TRACE else None,
        calibration=found,
    )
    return DeviceOutcome(
        stored=stored,
        calibration=found,
        path=files.store(stored),
        findings=() if stated else (unstated_accuracy(meter),),
    )
