"""Candidates: every sensor that could be read on a machine, the best first.

Looking must cost next to nothing on a machine without any: a module is imported only
where files show that its hardware may be there. What lies inside each other is offered
all the same; ``discovery`` and ``metering.choice`` see to it that no joule counts twice.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from carbonlens.domain.sources import Sources
from carbonlens.metering.process_time import TreeClock
from carbonlens.metering.sensors import Sensor, SensorInfo
from carbonlens.metering.sensors.cpu_model import CpuModelSensor

if TYPE_CHECKING:
    from carbonlens.metering.devices.nvidia import VisibleGpus

REPLAY: Final = "CARBONLENS_REPLAY"
"""Variable that names a recorded trace to play instead of reading this machine."""

NPU_DEVICE: Final = "intel_npu"
"""Name under which a datasheet figure of an Intel NPU is declared."""

_ROOT: Final = Path("/")
_NVIDIA: Final = ("dev/nvidiactl", "dev/nvidia0", "dev/dxg", "proc/driver/nvidia")
_AMD: Final = ("dev/kfd",)
_METERS: Final = ("power_meter", "i915", "xe", "ina2")
"""What the names of hwmon chips begin with that a sensor reads."""


class Place(NamedTuple):
    """Where is looked.

    Attributes:
        root: The file system.
        platform: Name of the operating system, as ``sys.platform`` has it.
        environ: The work's environment; this process's when ``None``.
        gpus: The NVIDIA GPUs of the work; those of this process when ``None``.
        calibrations: Folder of calibrations; this user's when ``None``.
    """

    root: Path = _ROOT
    platform: str = sys.platform
    environ: Mapping[str, str] | None = None
    gpus: VisibleGpus | None = None
    calibrations: Path | None = None

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment."""
        return os.environ if self.environ is None else self.environ

    def nvidia(self) -> VisibleGpus:
        """Return the NVIDIA GPUs of the work; the driver is not asked yet."""
        from carbonlens.metering.devices.nvidia import process_gpus

        return self.gpus or process_gpus()


HERE: Final = Place()


def candidates(
    sources: Sources,
    clock: TreeClock,
    place: Place = HERE,
    *,
    of_children: bool = False,
    wait_s: float | None = None,
    everywhere: bool = False,
) -> Iterator[Sensor]:
    """Yield every sensor that could be read here, the best first, without opening any.

    Args:
        sources: What the user declared.
        clock: Whose CPU time is read.
        place: Where to look.
        of_children: True for a process that only watches its children: its own memory is
            left out, and a meter's program ends with it.
        wait_s: How long the probe of a declared source waits for it to tell something;
            ``None`` is for the start of a run, which waits for nothing.
        everywhere: True to yield also those whose hardware does not show, so that their
            probes say why.
    """
    trace = place.variables.get(REPLAY)
    if trace:
        from carbonlens.metering.sensors.replay import PLAIN, ReplaySensor

        path = Path(trace)
        yield ReplaySensor(path, PLAIN if path.suffix == ".csv" else None)
        return
    left_out = set(sources.leave_out)
    of_devices = False
    for found in (
        _declared_meters(sources, wait_s, tied=of_children),
        _counters(place, everywhere=everywhere),
        _boards(place, everywhere=everywhere),
        _declared_programs(sources, wait_s),
        _models(sources, clock, place, everywhere=everywhere),
    ):
        for sensor in found:
            info = sensor.info
            if not {info.name, head_of(info)} & left_out:
                of_devices = of_devices or info.boundary == "device"
                yield sensor
    if of_devices and "ram_model" not in left_out:
        from carbonlens.metering.sensors.ram_model import RamModelSensor

        yield RamModelSensor(include_self=not of_children, proc=place.root / "proc")


def _declared_meters(sources: Sources, wait_s: float | None, *, tied: bool) -> Iterator[Sensor]:
    for meter in sources.external:
        from carbonlens.metering.sensors.external import ExternalSensor

        yield ExternalSensor(meter, wait_s=wait_s, tied=tied)


def _counters(place: Place, *, everywhere: bool) -> Iterator[Sensor]:
    powercap = place.root / "sys" / "class" / "powercap"
    # The folder is missing on virtual machines: one look spares the probe.
    if everywhere or powercap.is_dir():
        from carbonlens.metering.sensors.rapl import RaplSensor

        yield RaplSensor(powercap)
    if everywhere or shows_nvidia(place.root):
        from carbonlens.metering.sensors.nvml_sensors import nvidia_sensors

        yield from nvidia_sensors(place.nvidia())
    if everywhere or shows_amd(place.root):
        from carbonlens.metering.sensors.amd import AmdEnergySensor, AmdPowerSensor

        yield AmdEnergySensor(environ=place.variables, root=place.root)
        yield AmdPowerSensor(environ=place.variables, root=place.root)


def shows_nvidia(root: Path) -> bool:
    """Tell whether some file says that an NVIDIA GPU may be here; ``/dev`` is not listed for it.

    Args:
        root: The file system.
    """
    return any(map(os.path.exists, _below(root, _NVIDIA)))


def shows_amd(root: Path) -> bool:
    """Tell whether the driver of AMD's compute devices is here.

    Args:
        root: The file system.
    """
    return any(map(os.path.exists, _below(root, _AMD)))


@cache
def _below(root: Path, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return places below a root as texts, which are quicker to look at than paths."""
    return tuple(str(root / name) for name in names)


def _boards(place: Place, *, everywhere: bool) -> Iterator[Sensor]:
    if everywhere or is_nvidia_board(place.root):
        from carbonlens.metering.sensors.jetson import JetsonSensor

        yield JetsonSensor(place.root)
    if everywhere or _has_meter_chip(place.root):
        from carbonlens.metering.sensors.hwmon import hwmon_sensors

        yield from hwmon_sensors(place.root)


def is_nvidia_board(root: Path) -> bool:
    """Tell whether the device tree names a board of NVIDIA.

    Args:
        root: The file system.
    """
    folder = root / "proc" / "device-tree"
    try:
        told = (folder / "compatible").read_bytes() + (folder / "model").read_bytes()
    except OSError:
        return False
    return b"nvidia" in told.lower()


@cache
def _has_meter_chip(root: Path) -> bool:
    """Tell whether hwmon shows a chip that a sensor reads; looked at once a process."""
    for name in (root / "sys" / "class" / "hwmon").glob("hwmon*/name"):
        try:
            if name.read_text("ascii", "replace").startswith(_METERS):
                return True
        except OSError:
            continue
    # Old kernels keep the name of an ACPI meter one folder further down.
    return any((root / "sys" / "class" / "hwmon").glob("hwmon*/device/power1_average"))


def _declared_programs(sources: Sources, wait_s: float | None) -> Iterator[Sensor]:
    if sources.controller is not None and sources.controller.kind == "ipmi":
        from carbonlens.metering.sensors.ipmi import IpmiSensor

        yield IpmiSensor(wait_s=wait_s)
    elif sources.controller is not None:
        from carbonlens.metering.sensors.redfish import RedfishSensor

        yield RedfishSensor(sources.controller, wait_s=wait_s)
    if sources.powermetrics:
        from carbonlens.metering.sensors.powermetrics import PowermetricsSensor

        yield PowermetricsSensor(wait_s=wait_s)


def _models(sources: Sources, clock: TreeClock, place: Place, *, everywhere: bool) -> Iterator[Sensor]:
    yield _cpu_model(sources, clock)
    npu = next((d for d in sources.datasheet if d.device == NPU_DEVICE), None)
    has_npu = (place.root / "sys" / "class" / "accel").is_dir()
    if has_npu or everywhere:
        from carbonlens.metering.sensors.intel_npu import IntelNpuSensor

        yield IntelNpuSensor(place.root, npu)
    for device in sources.datasheet:
        if device is not npu or not has_npu:
            from carbonlens.metering.sensors.datasheet import DatasheetSensor

            yield DatasheetSensor(device)


def _cpu_model(sources: Sources, clock: TreeClock) -> Sensor:
    if sources.cpu_tdp_w is None:
        return CpuModelSensor(clock)
    from carbonlens.metering.cpu_device import Tdp

    tdp = Tdp(watts=sources.cpu_tdp_w, source="declared by the user", threads=sources.cpu_threads)
    return CpuModelSensor(clock, tdp=tdp)


def head_of(info: SensorInfo) -> str:
    """Return a sensor's name without the device or group behind its colon."""
    return info.name.partition(":")[0]
