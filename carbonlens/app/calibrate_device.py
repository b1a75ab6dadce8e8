"""Use case: calibrate the power readings of a device against a meter of the same supply."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final, NamedTuple

import msgspec

from carbonlens.app.calibrate import assumes, external_meter
from carbonlens.app.calibrate_fit import (
    DeviceOutcome,
    DeviceRequest,
    Origin,
    check_supply,
    fitted,
    kept,
    matching,
)
from carbonlens.domain.grades import COUNTER_GAIN_95
from carbonlens.domain.sources import ExternalMeter, Sources
from carbonlens.domain.units import Z_95
from carbonlens.errors import SelectionError, UsageError
from carbonlens.metering.calibrations import driver_version
from carbonlens.metering.process_time import TreeClock
from carbonlens.metering.sensors import Channel, Sensor
from carbonlens.metering.tally import signal_sensor
from carbonlens.metering.trace_pair import look_s, read_trace, record
from carbonlens.signals.sensor import Sensor as SignalSensor

TRACE: Final = "trace"
"""Sensor name of a calibration made from files: its lag is that of no sensor here."""

_METER: Final = "external:"
_METERS: Final = frozenset({"external", "rapl", "ipmi", "redfish", "watts"})
"""Beginnings of meters that can be read now; any other name is a run's."""


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
        SelectionError: If no device or run, or more than one, bears the name.
        InputFileError: If a trace cannot be read.
        MeasurementError: If device and meter do not give a calibration.
        UnwritableError: If it cannot be kept.
    """
    if request.device_trace is not None or request.meter_trace is not None:
        return _from_traces(request, sensors or (lambda: _sensors(sources)))
    if request.against is not None and _kind(request.against) not in _METERS:
        from carbonlens.app.calibrate_run import calibrate_against_run

        return calibrate_against_run(request)
    meter = _external(request, sources)
    with _target(request.device, sensors or (lambda: _sensors(sources))) as target:
        check_supply(meter.name, meter.component, target.device)
        info = target.sensor.info
        progress(
            f"reading {target.device.device} and {meter.name} for {request.seconds:g} s: "
            "run a load that holds idle and full power for 5 s each"
        )
        told = record(target.sensor, target.channel, meter, request.seconds)
        known = signal_sensor(info, target.device, look_s(info))
        meter_u = (COUNTER_GAIN_95 if meter.gain_95 is None else meter.gain_95) / Z_95
        device = target.device.device
        origin = Origin(
            sensor=info.name,
            meter=meter.name,
            is_stated=meter.gain_95 is not None,
            driver=driver_version(device),
        )
        return kept(fitted(told, known, meter_u), device, origin)


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
    origin = Origin(sensor=TRACE, meter=name, is_stated=request.meter_95 is not None)
    outcome = kept(fitted(told, sensor, meter_u), request.device, origin)
    here = _devices(sensors)
    if request.device in here:
        return outcome
    note = assumes(
        f"a device {request.device!r} will be read here; now there is none "
        f"({', '.join(here) or 'no power of a device is read'})",
        "check its id with: carbonlens doctor --json",
    )
    return msgspec.structs.replace(outcome, findings=(*outcome.findings, note), is_here=False)


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


def _kind(against: str) -> str:
    return against.partition(":")[0].lower()


def _external(request: DeviceRequest, sources: Sources) -> ExternalMeter:
    against = request.against or "external"
    if _kind(against) != "external":
        raise UsageError(
            f"{against!r} is no meter of a device's own supply",
            where="--against",
            mend="give external or external:NAME, a run that kept a trace, or two files: "
            "--device-trace and --meter-trace",
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
        wanted = _chosen(name, [each.device for each in found])
        yield next(each for each in found if each.device.device == wanted)


def _chosen(name: str, channels: Sequence[Channel]) -> str:
    matches = matching(name, channels)
    if len(matches) == 1:
        return matches[0]
    known = ", ".join(dict.fromkeys(c.device for c in channels)) or "none"
    raise SelectionError(
        f"{len(matches) or 'no'} device{'s' if len(matches) > 1 else ''} {name!r} whose power can be read "
        f"(here: {known})",
        mend="`carbonlens doctor` lists what can be read; traces from elsewhere: "
        "--device-trace and --meter-trace",
    )
