"""Use case: calibrate this machine's CPU curve, and list and remove calibrations."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.grades import COUNTER_GAIN_95
from carbonlens.domain.sources import ExternalMeter, Sources
from carbonlens.errors import ConfigError, MeasurementError, SelectionError, UsageError
from carbonlens.metering import calibration_files as files
from carbonlens.metering import cpu_calibration
from carbonlens.metering.calibration_files import MachineCurve, Stored
from carbonlens.metering.calibrations import applied, doubts
from carbonlens.metering.cpu_calibration import Setting, by_hand, measured_component
from carbonlens.metering.cpu_families import this_processor
from carbonlens.metering.host import this_host
from carbonlens.metering.plausible import MACHINE_W
from carbonlens.metering.sensors import Sensor, SensorInfo
from carbonlens.metering.sensors.cpu_model import CpuModelSensor
from carbonlens.signals.cpu_model import CpuCurve

POWERCAP: Final = Path("/sys/class/powercap")
WAIT_S: Final = 5.0
"""How long a meter may take for its first reading."""

LATEST: Final = "latest"
"""Names the latest run that kept a trace."""

_RUN: Final = re.compile(r"[0-9a-f-]{4,36}", re.IGNORECASE)

METERS: Final = "rapl, external, external:NAME, ipmi, redfish or watts:IDLE,FULL"


class CpuRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to calibrate the CPU model against.

    Attributes:
        against: One of ``METERS``; ``None`` takes the first that can be read.
        seconds: Length of the idle and of the loaded phase.
        idle_w, full_w: Read off a meter at the plug by hand, instead of measuring.
        meter_95: Relative 95 % accuracy of that meter.
        meter: Its name.
    """

    against: str | None = None
    seconds: float = 5.0
    idle_w: float | None = None
    full_w: float | None = None
    meter_95: float | None = None
    meter: str | None = None


class CpuOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """A new curve of this machine, and what it takes the place of."""

    measured: MachineCurve
    before: CpuCurve
    after: CpuCurve
    path: Path
    findings: tuple[Finding, ...] = ()


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """One calibration that is kept, and what must be said of it."""

    path: Path
    stored: Stored | None
    here: bool
    findings: tuple[Finding, ...] = ()


def declared_sources() -> Sources:
    """Return what the user declared for work in this folder.

    Raises:
        InputFileError: If the declared file cannot be read.
        ConfigError: If it is malformed, or the working folder is gone.
    """
    from carbonlens.inventory.sources_file import find

    try:
        here = Path.cwd()
    except FileNotFoundError as error:
        raise ConfigError("the working folder is gone", where=".", mend="change to another") from error
    return find(here).sources


def calibrate_cpu(
    request: CpuRequest,
    sources: Sources,
    *,
    powercap: Path = POWERCAP,
    setting: Setting | None = None,
    progress: Callable[[str], None],
) -> CpuOutcome:
    """Measure idle and full power of this machine and keep the curve.

    Args:
        request: What to measure with.
        sources: What the user declared.
        powercap: Tree of RAPL counters.
        setting: What is measured on.
        progress: Told what happens now.

    Raises:
        UsageError: If the request names no meter there is.
        MeasurementError: If nothing can be read here, or the result is no curve.
        UnwritableError: If it cannot be kept.
    """
    watts = _watts_by_hand(request)
    if watts is not None:
        name = request.meter or "watts given by hand"
        measured = by_hand(*watts, meter=name, meter_95=request.meter_95)
        return _kept(measured, accuracy_known=request.meter_95 is not None)
    if not 1 <= request.seconds <= 600:
        raise UsageError(f"--seconds {request.seconds:g} is not between 1 and 600", mend="give 5 to 60")
    with _open_meter(request.against, sources, powercap) as (meter, name):
        measured = cpu_calibration.measure(
            meter, request.seconds, name=name, setting=setting, progress=progress
        )
        return _kept(measured, accuracy_known=meter.info.width_known)


def list_calibrations() -> tuple[Listed, ...]:
    """Return all calibrations of this user, those of other machines too."""
    now_us = time.time_ns() // 1000
    found = []
    for path, (stored, fault) in files.kept():
        notes = [fault] if fault else []
        here = stored is not None and path == files.path_of(stored.device)
        if stored is not None and here:
            notes += doubts(stored, now_us)
        found.append(Listed(path=path, stored=stored, here=here, findings=tuple(notes)))
    return tuple(found)


def remove_calibration(device: str) -> Path:
    """Delete the calibration of a device of this machine; return its file.

    Args:
        device: Its id, the beginning of it, or ``cpu``.

    Raises:
        SelectionError: If there is none, or more than one.
        UnwritableError: If it cannot be deleted.
    """
    mine = [each for each in list_calibrations() if each.here and each.stored is not None]
    named = [(each.stored.device.lower(), each.path) for each in mine if each.stored is not None]
    wanted = device.lower()
    found = [p for n, p in named if n == wanted] or [p for n, p in named if n.startswith(wanted)]
    damaged = files.path_of(device)
    if not found and damaged.exists():
        found = [damaged]
    if len(found) != 1:
        raise SelectionError(
            f"{len(found) or 'no'} calibration{'s' if len(found) > 1 else ''} of {device!r}",
            mend="see what there is: carbonlens calibrate --list",
        )
    files.remove(found[0])
    return found[0]


def assumes(what: str, mend: str) -> Finding:
    """A calibration assumes something that nobody stated."""
    return Finding(
        code="CL154", severity="warning", message=f"the calibration assumes that {what}", mend=mend
    )


def unstated_accuracy(meter: str) -> Finding:
    """The usual width of a sensor is taken for a meter whose accuracy is not stated."""
    return assumes(
        f"{meter} is good to {COUNTER_GAIN_95:.0%}: its accuracy is not stated",
        "state it: --meter-95, or gain_95 in the sources file",
    )


def external_meter(against: str, sources: Sources) -> ExternalMeter:
    """Return the declared meter that ``external`` or ``external:NAME`` means.

    Args:
        against: The option's value.
        sources: What the user declared.

    Raises:
        UsageError: If there is none, or more than one.
    """
    _, _, name = against.partition(":")
    found = [m for m in sources.external if not name or m.name == name]
    if len(found) == 1:
        return found[0]
    declared = ", ".join(m.name for m in sources.external) or "none"
    raise UsageError(
        f"{len(found) or 'no'} external meter{'s' if len(found) > 1 else ''} "
        f"{'named ' + repr(name) if name else 'to choose from'} (declared: {declared})",
        where=f"--against {against}",
        mend="declare a meter in the sources file, and name it: external:NAME",
    )


def _watts_by_hand(request: CpuRequest) -> tuple[float, float] | None:
    given = (request.idle_w, request.full_w)
    if request.against is not None and request.against.lower().startswith("watts:"):
        try:
            idle_w, full_w = map(float, request.against.partition(":")[2].split(","))
        except ValueError as error:
            raise UsageError(
                "two numbers are wanted", where=f"--against {request.against}", mend="write watts:IDLE,FULL"
            ) from error
        return _sensible(idle_w, full_w)
    if given == (None, None):
        return None
    if given[0] is None or given[1] is None or request.against is not None:
        raise UsageError(
            "--idle-w and --full-w belong together, without --against", mend="give both, and nothing else"
        )
    return _sensible(given[0], given[1])


def _sensible(idle_w: float, full_w: float) -> tuple[float, float]:
    """Return watts that a machine can draw.

    Raises:
        UsageError: If they are no such numbers.
    """
    for name, watts in (("idle", idle_w), ("full", full_w)):
        if not 0 < watts <= MACHINE_W:
            raise UsageError(
                f"{watts:g} W {name} is no power of a machine",
                mend=f"give watts above 0, and {MACHINE_W:g} at most",
            )
    return idle_w, full_w


@contextmanager
def _open_meter(against: str | None, sources: Sources, powercap: Path) -> Iterator[tuple[Sensor, str]]:
    """Give the first meter that can be read, and its name; close it afterwards."""
    reasons = []
    for sensor, name in _candidates(against, sources, powercap):
        try:
            probe = sensor.probe()
            if probe.usable and _measures_the_cpu(sensor.info):
                yield sensor, name
                return
            why = probe.reason or "it does not measure this machine or its CPU"
            reasons.append(f"{name}: {why}" + (f" ({probe.mend})" if probe.mend else ""))
        finally:
            sensor.close()
    raise MeasurementError(
        "nothing here tells the CPU's power: " + "; ".join(reasons),
        mend="read a meter at the plug, and give --idle-w and --full-w; or declare an external meter "
        "in the sources file",
    )


def _candidates(against: str | None, sources: Sources, powercap: Path) -> Iterator[tuple[Sensor, str]]:
    from carbonlens.metering.sensors.external import ExternalSensor
    from carbonlens.metering.sensors.ipmi import IpmiSensor
    from carbonlens.metering.sensors.rapl import RaplSensor
    from carbonlens.metering.sensors.redfish import RedfishSensor

    kind = None if against is None else against.partition(":")[0].lower()
    if against is not None and _names_a_run(against):
        raise UsageError(
            "the trace of a run tells the CPU time of its own work, and the curve of this machine "
            "rests on how busy all of it was",
            where=f"--against {against}",
            mend=f"leave the machine alone for a while and measure it now: --against {METERS}",
        )
    if kind not in {None, "rapl", "external", "ipmi", "redfish"}:
        raise UsageError(f"no meter {against!r}", where="--against", mend=f"give {METERS}")
    controller = sources.controller
    if kind in {None, "rapl"}:
        yield RaplSensor(powercap), "RAPL"
    if against is not None and kind == "external":
        meter = external_meter(against, sources)
        yield ExternalSensor(meter, wait_s=WAIT_S), meter.name
    elif kind is None:
        for meter in sources.external:
            yield ExternalSensor(meter, wait_s=WAIT_S), meter.name
    if kind == "ipmi" or (kind is None and controller is not None and controller.kind == "ipmi"):
        yield IpmiSensor(wait_s=WAIT_S), "IPMI"
    if controller is not None and controller.kind == "redfish" and kind in {None, "redfish"}:
        yield RedfishSensor(controller, wait_s=WAIT_S), "Redfish"
    elif kind == "redfish":
        raise UsageError(
            "no Redfish controller is declared", where="--against", mend="declare one in the sources file"
        )


def _names_a_run(against: str) -> bool:
    return against.lower() == LATEST or _RUN.fullmatch(against) is not None or Path(against).is_file()


def _measures_the_cpu(info: SensorInfo) -> bool:
    return measured_component(info) in {c.component for c in info.channels}


def _kept(measured: MachineCurve, *, accuracy_known: bool) -> CpuOutcome:
    before = _curve_at(measured)
    machine = this_host().machine
    path = files.store(
        Stored(
            device=files.CPU,
            machine=machine,
            meter=measured.meter,
            taken_us=measured.taken_us,
            curves=(measured,),
        )
    )
    notes = [] if accuracy_known else [unstated_accuracy(measured.meter)]
    if this_processor().virtual and measured.boundary == "it":
        what = f"{measured.meter} tells this virtual machine's own power, not its host's"
        notes.append(assumes(what, "else remove it: carbonlens calibrate --remove cpu"))
    return CpuOutcome(
        measured=measured,
        before=before,
        after=measured.curve(machine),
        path=path,
        findings=tuple(notes),
    )


def _curve_at(measured: MachineCurve) -> CpuCurve:
    """Return the curve in use until now, at the same boundary."""
    info = applied(CpuModelSensor().info).info
    used = info.curve if measured.boundary == info.boundary else info.device_curve
    return used or measured.curve(this_host().machine)
