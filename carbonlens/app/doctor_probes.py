"""Doctor's look at the sensors: each is probed and read, with more patience than a run has."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from carbonlens.domain.finding import Finding
from carbonlens.domain.sources import Sources
from carbonlens.metering import accelerators
from carbonlens.metering.devices.nvidia import Selection
from carbonlens.metering.process_time import TreeClock
from carbonlens.metering.sensors import Probe, Sensor, SensorInfo
from carbonlens.metering.sensors.discovery import (
    REPLAY,
    Found,
    Place,
    calibrated,
    calibrations_of,
    candidates,
    driver_of,
    head_of,
    probe_all,
    unread,
)
from carbonlens.metering.sensors.probing import DriverProbes
from carbonlens.metering.threads import start_beside

DRIVER_WAIT_S: Final = 5.0
DECLARED_WAIT_S: Final = 3.0
"""How long a declared meter may take to tell something; controllers need a second or two."""

_READS: Final = 9
_READING_S: Final = 0.2
_READ_LIMIT_S: Final = 2.0
_BUSY_S: Final = 0.1
"""Counters of processors move about every millisecond."""

_MARGIN: Final = 1.1
"""A counter that moves once a period is looked at over a little more than one."""

_DECLARED: Final = ("external", "powermetrics")
"""Counters made of what a program prints, now and then."""

_REPLAYED: Final = "replay:"
"""A recording ends and then stands still, whatever this machine does."""

_LONGEST_BUSY_S: Final = 1.2
"""A counter that moves more rarely is not judged: it would take too long to see it move."""

_DISPLAY: Final = ("0x03", "0x12")
"""PCI classes of display controllers and of processing accelerators (PCI ID repository)."""

_VENDORS: Final = {"0x10de": "NVIDIA", "0x1002": "AMD"}


class Seen(NamedTuple):
    """One candidate.

    Attributes:
        name: Of the sensor.
        info: With its calibrations; ``None`` where nothing describes the readings.
        probe: What it found; ``None`` when it did not answer.
        used: Whether a run would read it.
        cost_s: Median time of a read.
        unread: Why a device cannot be read, by its id.
        still: What is wrong with a counter that can be, by its id.
    """

    name: str
    info: SensorInfo | None
    probe: Probe | None
    used: bool
    cost_s: float | None = None
    unread: dict[str, str] = {}  # noqa: RUF012  # never mutated
    still: dict[str, str] = {}  # noqa: RUF012  # never mutated


class Look(NamedTuple):
    """All candidates, and what is known of accelerators.

    Attributes:
        nvidia: GPUs of the work as the driver lists them; ``None`` without a driver.
        unmeasured: Accelerators present that nothing reads.
        on_the_bus: GPUs that the PCI bus shows, in words.
    """

    seen: tuple[Seen, ...]
    nvidia: Selection | None
    unmeasured: tuple[str, ...]
    on_the_bus: tuple[str, ...]
    findings: tuple[Finding, ...]


def look(sources: Sources, place: Place) -> Look:
    """Probe every sensor there is, also those whose hardware does not show, and read the usable.

    Args:
        sources: What the user declared.
        place: Where to look.
    """
    drivers = DriverProbes(DRIVER_WAIT_S)
    offered = tuple(candidates(sources, TreeClock(), place, wait_s=DECLARED_WAIT_S, everywhere=True))
    found = probe_all(offered, place, drivers)
    folder = calibrations_of(place)
    seen: list[Seen] = []
    notes: list[Finding] = []
    for sensor, probe in found.probes:
        used = any(sensor is one for one in found.usable)
        described, said = calibrated(sensor, folder) if used else (sensor, ())
        notes += said
        seen.append(_seen(described, probe, used=used))
        if seen[-1].name == "replay":
            notes += unread(sensor, probe)
        if probe is not None:  # one that hangs is left to its thread
            sensor.close()
    nvidia = _selection(found, place)
    notes += nvidia.findings if nvidia is not None else ()
    infos = [s.info for s in seen if s.used and s.info is not None]
    left = () if place.variables.get(REPLAY) else _unmeasured(infos, nvidia, place)
    return Look(tuple(seen), nvidia, left, on_the_bus(place.root), tuple(dict.fromkeys(notes)))


def _seen(sensor: Sensor, probe: Probe | None, *, used: bool) -> Seen:
    if type(sensor).__name__ == "ReplaySensor" and not used:
        return Seen("replay", None, probe, used=False)  # a broken recording describes nothing
    info = sensor.info
    faults: dict[str, OSError] = getattr(sensor, "unread", {})
    still = _standing_still(sensor, info) if used else {}
    if still and all(c.device in still for c in info.channels if c.component == "cpu"):
        reason = "; ".join(f"{device} {why}" for device, why in still.items())
        found = info.name if probe is None else probe.found
        return Seen(info.name, info, Probe(usable=False, found=found, reason=reason), used=False)
    return Seen(
        name=info.name,
        info=info,
        probe=probe,
        used=used,
        cost_s=_cost_s(sensor) if used else None,
        unread={device: str(error) for device, error in faults.items()},
        still=still,
    )


def _standing_still(sensor: Sensor, info: SensorInfo) -> dict[str, str]:
    """Return the processors' counters that do not move while a processor is busy.

    Some virtual machines and drivers show counters that never do.
    """
    counts = info.kind == "cumulative" and info.unit == "J" and not sensor.may_block
    busy_s = max(_BUSY_S, info.update_period_s * _MARGIN)
    if busy_s > _LONGEST_BUSY_S or info.name.startswith(_REPLAYED):
        return {}
    if not counts or head_of(info) in _DECLARED or not any(c.component == "cpu" for c in info.channels):
        return {}
    try:
        before = sensor.read(edge=True)
        end_s = time.perf_counter() + busy_s
        while time.perf_counter() < end_s:
            pass
        after = sensor.read(edge=True)
    except OSError:
        return {}
    return {
        channel.device: f"stands still at {was:.6g} J while the processor is busy"
        for channel, was, now in zip(info.channels, before, after, strict=True)
        if channel.component == "cpu" and was is not None and was == now
    }


def _cost_s(sensor: Sensor) -> float | None:
    """Return the median time of some reads; ``None`` where none came back in time."""
    times: list[float] = []

    def read() -> None:
        begin_s = time.perf_counter()
        while len(times) < _READS and time.perf_counter() - begin_s < _READING_S:
            started_s = time.perf_counter()
            sensor.read(edge=True)
            times.append(time.perf_counter() - started_s)

    done = threading.Event()

    def read_beside() -> None:
        try:
            read()
        finally:
            done.set()

    start_beside(read_beside, "carbonlens-doctor")
    done.wait(_READ_LIMIT_S)
    return statistics.median(times) if times else None


def _selection(found: Found, place: Place) -> Selection | None:
    answered = any(
        probe is not None and sensor.may_block and driver_of(sensor) == "nvml"
        for sensor, probe in found.probes
    )
    if not answered:
        return None
    try:
        return place.nvidia().look()
    except OSError:
        return None


def _unmeasured(infos: Sequence[SensorInfo], nvidia: Selection | None, place: Place) -> tuple[str, ...]:
    visible = None if nvidia is None else [(gpu.uuid, gpu.label) for gpu in nvidia.gpus]
    left = accelerators.unread(infos, visible=visible, root=place.root, environ=place.variables)
    whole = any(c.component == "total" for i in infos for c in i.channels)
    return () if whole else left


def on_the_bus(root: Path) -> tuple[str, ...]:
    """Return the GPUs that the PCI bus shows, whether or not a driver is there.

    Args:
        root: The file system.
    """
    found = []
    for device in sorted((root / "sys" / "bus" / "pci" / "devices").glob("*")):
        try:
            kind = (device / "class").read_text("ascii").strip()
            vendor = (device / "vendor").read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if kind.startswith(_DISPLAY) and vendor in _VENDORS:
            found.append(f"{_VENDORS[vendor]} GPU at {device.name}")
    return tuple(found)
