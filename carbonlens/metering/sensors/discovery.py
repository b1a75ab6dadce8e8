"""Discovery: which sensors can be read here, the best first.

A driver is asked only where files show its hardware, and not waited for when it hangs. Of
what lies inside each other (a processor's NPU in its package) one is taken here; what
measures a device in two ways is read beside each other, and ``metering.choice`` decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.sources import Sources
from carbonlens.metering import accelerators
from carbonlens.metering.process_time import TreeClock
from carbonlens.metering.sensors import Probe, Sensor, SensorInfo
from carbonlens.metering.sensors.candidates import (
    HERE,
    REPLAY,
    Place,
    candidates,
    head_of,
    shows_amd,
    shows_nvidia,
)
from carbonlens.metering.sensors.cpu_model import CpuModelSensor
from carbonlens.metering.sensors.probing import PROCESS_PROBES, DriverProbes, probed
from carbonlens.metering.wording import error_text

__all__ = [
    "HERE",
    "REPLAY",
    "Found",
    "Place",
    "Watch",
    "calibrated",
    "calibrations_of",
    "candidates",
    "driver_of",
    "head_of",
    "not_read",
    "probe_all",
    "replayed",
    "unread",
    "usable_sensors",
    "watch",
]


class Watch(msgspec.Struct, frozen=True):
    """What a session looks at.

    Attributes:
        sensors: Sources to read; the session closes them.
        unmeasured: Accelerators present that no sensor reads.
        of_children: True when child processes alone do the work.
        findings: What must be said of the sources.
    """

    sensors: tuple[Sensor, ...]
    unmeasured: tuple[str, ...] = ()
    of_children: bool = False
    findings: tuple[Finding, ...] = ()


class Found(msgspec.Struct, frozen=True):
    """Sensors that were probed.

    Attributes:
        probes: Each candidate with what it found; ``None`` for one that did not answer.
    """

    probes: tuple[tuple[Sensor, Probe | None], ...]

    @property
    def usable(self) -> tuple[Sensor, ...]:
        """Those that can be read and are needed."""
        can = [sensor for sensor, probe in self.probes if probe is not None and probe.usable]
        return tuple(s for s in can if _is_needed(s.info, [c.info for c in can]))


def watch(
    *,
    of_children: bool = False,
    sources: Sources | None = None,
    place: Place = HERE,
    drivers: DriverProbes = PROCESS_PROBES,
) -> Watch:
    """Return everything that can be looked at here.

    Args:
        of_children: True to leave this process's own CPU time out.
        sources: What the user declared.
        place: Where to look.
        drivers: Asks those that may hang.
    """
    clock = TreeClock(include_self=not of_children)
    notes: list[Finding] = []
    offered: tuple[Sensor, ...]
    try:
        offered = tuple(candidates(sources or Sources(), clock, place, of_children=of_children))
    except Exception as error:  # noqa: BLE001  # law 8: an odd file tree or library costs no more than its sensors
        offered = (CpuModelSensor(clock),)
        notes.append(not_read("sensors", f"looking for them failed ({error_text(error)})", None))
    found = probe_all(offered, place, drivers)
    notes += [note for sensor, probe in found.probes for note in unread(sensor, probe)]
    sensors: list[Sensor] = []
    folder = calibrations_of(place)
    for sensor in found.usable:
        described, said = calibrated(sensor, folder)
        sensors.append(described)
        notes += said
        if described.info.name.startswith("replay"):
            notes.append(replayed(described.info))
    sensors = _steadied(sensors)
    unmeasured, more = _unmeasured(found, [s.info for s in sensors], place)
    return Watch(tuple(sensors), unmeasured, of_children, (*dict.fromkeys(notes), *more))


def usable_sensors(
    clock: TreeClock,
    sources: Sources | None = None,
    *,
    place: Place = HERE,
    drivers: DriverProbes = PROCESS_PROBES,
) -> tuple[Sensor, ...]:
    """Return the sensors to read in a window, probed.

    The CPU model is always among them, because a run's CPU time is wanted whatever
    else measures its energy.

    Args:
        clock: Whose CPU time is read.
        sources: What the user declared.
        place: Where to look.
        drivers: Asks those that may hang.
    """
    return probe_all(tuple(candidates(sources or Sources(), clock, place)), place, drivers).usable


def probe_all(sensors: Sequence[Sensor], place: Place, drivers: DriverProbes) -> Found:
    """Probe sensors, those of one driver together and without hanging with it.

    Args:
        sensors: As ``candidates`` yields them.
        place: Where they look.
        drivers: Asks those that may hang.
    """
    groups: dict[str, list[Sensor]] = {}
    for sensor in sensors:
        if sensor.may_block:
            groups.setdefault(driver_of(sensor), []).append(sensor)
    surroundings = (str(place.root), id(place.gpus), *_visible_variables(place)) if groups else ()
    asked = {
        name: drivers.begin((name, len(group), *surroundings), group, keep=name == "amd")
        for name, group in groups.items()
    }
    answers = {name: driver.answer() for name, driver in asked.items()}
    found: list[tuple[Sensor, Probe | None]] = []
    for sensor in sensors:
        if not sensor.may_block:
            found.append((sensor, probed(sensor)))
            continue
        group, answer = groups[driver_of(sensor)], answers[driver_of(sensor)]
        if answer is None:
            found.append((sensor, None))
        else:
            # An earlier session's sensor may stand in, where its probe takes long.
            at = next(k for k, one in enumerate(group) if one is sensor)
            found.append((answer.sensors[at], answer.probes[at]))
    return Found(tuple(found))


def driver_of(sensor: Sensor) -> str:
    """Return what a sensor asks: the beginning of its name, such as ``nvml``."""
    return head_of(sensor.info).partition("_")[0]


def _visible_variables(place: Place) -> tuple[str | None, ...]:
    from carbonlens.metering.devices.visibility import HIP, ROCM, VARIABLES

    return tuple(place.variables.get(name) for name in (*VARIABLES, ROCM, *HIP))


def _is_needed(info: SensorInfo, usable: Sequence[SensorInfo]) -> bool:
    """Tell whether a usable sensor adds something to the others."""
    others = [i for i in usable if i.name != info.name and i.kind != "use"]
    parts = {c.component for i in others for c in i.channels}
    if info.name == "ram_model":
        # The CPU model's own figure is a whole server's, its memory included.
        return "ram" not in parts and any(i.boundary == "device" for i in others)
    if info.name == "intel_npu":
        return not any(i.name == "rapl" for i in others)  # its package holds the NPU
    if info.kind == "use":
        return bool(parts & {"gpu", "total"})
    return True


def calibrations_of(place: Place) -> Path | None:
    """Return the folder of calibrations; ``None`` where there are none.

    Args:
        place: May name another folder than this user's.
    """
    from carbonlens.ledger.location import state_dir

    try:
        folder = place.calibrations or state_dir() / "calibrations"
        return folder if folder.is_dir() else None
    except OSError:
        return None  # no folder of this user can be made: there is nothing in it either


def calibrated(sensor: Sensor, folder: Path | None) -> tuple[Sensor, tuple[Finding, ...]]:
    """Return a sensor described with the calibrations of its devices, and what is said of them.

    Args:
        sensor: Probed already.
        folder: Where calibrations lie.
    """
    if folder is None:
        return sensor, ()
    from carbonlens.metering.calibrations import applied

    found = applied(sensor.info, folder=folder)
    return (sensor if found.info == sensor.info else _Described(sensor, found.info)), found.findings


def _steadied(sensors: Sequence[Sensor]) -> list[Sensor]:
    """Return the sensors, those of power that only stand beside counters described as such.

    One that is read seldom stands for the time until it is read again.
    """
    from carbonlens.metering.looking import beside_counters

    infos = [sensor.info for sensor in sensors]
    return [
        _Described(sensor, msgspec.structs.replace(info, slow=True))
        if not info.slow and beside_counters(info, infos)
        else sensor
        for sensor, info in zip(sensors, infos, strict=True)
    ]


class _Described:
    """A sensor with another description of its readings."""

    def __init__(self, sensor: Sensor, info: SensorInfo) -> None:
        self._sensor = sensor
        self.info = info
        self.may_block = sensor.may_block
        self.rest_s = sensor.rest_s

    def probe(self) -> Probe:
        return self._sensor.probe()

    def read(self, *, edge: bool) -> tuple[float | None, ...]:
        return self._sensor.read(edge=edge)

    def close(self) -> None:
        self._sensor.close()

    @property
    def seen_period_s(self) -> float | None:
        told: float | None = getattr(self._sensor, "seen_period_s", None)
        return told

    def notes(self) -> tuple[Finding, ...]:
        said = getattr(self._sensor, "notes", None)
        return said() if said is not None else ()


_DRIVERS: Final = {"nvml": "the NVIDIA driver", "amd": "the AMD driver", "intel": "the NPU driver"}
_DECLARED: Final = ("external", "datasheet", "ipmi", "redfish", "powermetrics")


def unread(sensor: Sensor, probe: Probe | None) -> tuple[Finding, ...]:
    """Return what a run must say of a source that cannot be read.

    Sources that no one declared and that simply are not there are no news; ``doctor``
    tells why.

    Args:
        sensor: The candidate.
        probe: What it found; ``None`` when it did not answer.
    """
    if probe is None:
        name = driver_of(sensor)
        what = _DRIVERS.get(name, name)
        return (not_read(name, f"{what} did not answer in time", "look into dmesg: its driver may hang"),)
    if probe.usable:
        return ()
    # A recording that cannot be read has no description either.
    name = "replay" if _is_replay(sensor) else sensor.info.name
    if name == "replay" or head_of(sensor.info) in _DECLARED:
        return (not_read(name, f"{probe.found}: {probe.reason or 'not usable'}", probe.mend),)
    return ()


def _is_replay(sensor: Sensor) -> bool:
    return type(sensor).__name__ == "ReplaySensor"


def _unmeasured(
    found: Found, infos: Sequence[SensorInfo], place: Place
) -> tuple[tuple[str, ...], tuple[Finding, ...]]:
    """Return the accelerators that nothing reads, and what is said of those of NVIDIA."""
    if place.variables.get(REPLAY) or not (shows_nvidia(place.root) or shows_amd(place.root)):
        return (), ()
    visible: list[tuple[str, str]] | None = None
    notes: tuple[Finding, ...] = ()
    if any(driver_of(sensor) == "nvml" and probe is not None for sensor, probe in found.probes):
        try:
            selection = place.nvidia().look()  # remembered by the probe: the driver is not asked
        except OSError:
            pass
        else:
            visible = [(gpu.uuid, gpu.label) for gpu in selection.gpus]
            notes = selection.findings
    if any(i.kind != "use" and _reads_every_gpu(i) for i in infos):
        return (), notes
    left = accelerators.unread(infos, visible=visible, root=place.root, environ=place.variables)
    return left, notes


def _reads_every_gpu(info: SensorInfo) -> bool:
    """Tell whether what is read holds the GPUs, whatever their drivers call them."""
    parts = {c.component for c in info.channels}
    return (head_of(info) == "external" and bool(parts & {"gpu", "total"})) or info.name == "jetson"


def not_read(name: str, reason: str, mend: str | None) -> Finding:
    """A source that is there, or was declared, could not be read."""
    return Finding(
        code="CL155",
        severity="warning",
        message=f"{name} is not read: {reason}",
        mend=mend or "`carbonlens doctor` says more",
        subject=name,
    )


def replayed(info: SensorInfo) -> Finding:
    """The figures come from a recording: nothing was measured on this machine."""
    return Finding(
        code="CL157",
        severity="warning",
        message=f"{info.name}: its figures are played from a recording, nothing was measured here",
        mend=f"unset {REPLAY} to measure this machine",
        subject=info.name,
    )
