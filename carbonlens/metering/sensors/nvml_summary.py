"""What can be read of the NVIDIA GPUs here, and why not better: for ``doctor`` and for messages."""

from __future__ import annotations

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.units import Grade
from carbonlens.metering.devices.nvidia import Gpu, VisibleGpus, process_gpus
from carbonlens.metering.sensors.nvml import NvmlAverageSensor, NvmlEnergySensor, NvmlPowerSensor
from carbonlens.metering.sensors.nvml_library import NvmlError
from carbonlens.metering.sensors.nvml_use import NvmlUseSensor

EnergySensor = NvmlEnergySensor | NvmlPowerSensor | NvmlAverageSensor


class GpuSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU of the work.

    Attributes:
        uuid: In full; ``short`` is what is printed.
        sensor: Best sensor that reads its energy; ``None`` when none does.
        scope: ``board`` or ``module``.
        update_period_s: How often the value changes.
        read_cost_s: What one read takes.
        rated_w: Power limit in force.
        part: The work's share by size of a divided GPU.
        others: Further sensors that read it.
        shared_by: Whether it is told who uses it.
        missing: Better or further sensors that do not read it, each with its reason.
        mend: One safe thing that would help.
    """

    uuid: str
    name: str
    sensor: str | None
    grade: Grade | None
    scope: str | None = None
    update_period_s: float | None = None
    read_cost_s: float | None = None
    rated_w: float | None = None
    part: float | None = None
    others: tuple[str, ...] = ()
    shared_by: bool = False
    missing: tuple[tuple[str, str], ...] = ()
    mend: str | None = None

    @property
    def short(self) -> str:
        """Beginning of the UUID."""
        return self.uuid[:12]


class DriverSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The NVIDIA driver and the GPUs of the work.

    Attributes:
        driver: Version; ``None`` without a driver.
        present: How many GPUs the driver lists.
        gpus: Those the work may use.
        findings: What could not be told about which they are.
        reason: Why there is none.
        mend: One safe thing that would help.
    """

    driver: str | None = None
    present: int = 0
    gpus: tuple[GpuSummary, ...] = ()
    findings: tuple[Finding, ...] = ()
    reason: str | None = None
    mend: str | None = None


def nvidia_sensors(
    gpus: VisibleGpus | None = None,
) -> tuple[NvmlEnergySensor, NvmlPowerSensor, NvmlAverageSensor, NvmlUseSensor]:
    """Return all NVML sensors, in order of preference, not yet probed.

    Args:
        gpus: The GPUs of the work; those of this process by default.
    """
    seen = gpus or process_gpus()
    return NvmlEnergySensor(seen), NvmlPowerSensor(seen), NvmlAverageSensor(seen), NvmlUseSensor(seen)


def driver_summary(gpus: VisibleGpus | None = None) -> DriverSummary:
    """Probe all NVML sensors and say what each GPU offers; may block in the driver.

    Args:
        gpus: The GPUs of the work; those of this process by default.
    """
    seen = gpus or process_gpus()
    try:
        selection = seen.look()
    except OSError as error:
        mend = error.mend if isinstance(error, NvmlError) else None
        return DriverSummary(reason=str(error), mend=mend)
    energy, power, average, use = nvidia_sensors(seen)
    reason = None
    for sensor in (energy, power, average, use):
        probe = sensor.probe()
        if not selection.gpus:
            reason = reason or probe.reason
        sensor.close()
    return DriverSummary(
        driver=selection.driver,
        present=selection.present,
        gpus=tuple(_summary(gpu, (energy, power, average), use) for gpu in selection.gpus),
        findings=selection.findings,
        reason=reason,
    )


def _summary(gpu: Gpu, sensors: tuple[EnergySensor, ...], use: NvmlUseSensor) -> GpuSummary:
    reading = [s for s in sensors if gpu.uuid in s.costs_s]
    best = reading[0] if reading else None
    missing = {s.info.name: s.unread[gpu.uuid] for s in (*sensors, use) if gpu.uuid in s.unread}
    mends = (fault.mend for fault in missing.values() if isinstance(fault, NvmlError))
    return GpuSummary(
        uuid=gpu.uuid,
        name=gpu.name,
        sensor=None if best is None else best.info.name,
        grade=None if best is None else best.info.grade,
        scope=None if best is None else best.scopes[gpu.uuid],
        update_period_s=None if best is None else best.info.update_period_s,
        read_cost_s=None if best is None else best.costs_s[gpu.uuid],
        rated_w=gpu.rated_w,
        part=gpu.part,
        others=tuple(s.info.name for s in reading[1:]),
        shared_by=any(c.device == gpu.uuid for c in use.info.channels),
        missing=tuple((name, str(fault)) for name, fault in missing.items()),
        mend=next((mend for mend in mends if mend), None),
    )
