"""NVML sensors: all of them, in order of preference."""

from __future__ import annotations

from carbonlens.metering.devices.nvidia import VisibleGpus, process_gpus
from carbonlens.metering.sensors.nvml import NvmlAverageSensor, NvmlEnergySensor, NvmlPowerSensor
from carbonlens.metering.sensors.nvml_use import NvmlUseSensor


def nvidia_sensors(
    gpus: VisibleGpus | None = None,
) -> tuple[NvmlEnergySensor, NvmlPowerSensor, NvmlAverageSensor, NvmlUseSensor]:
    """Return all NVML sensors, in order of preference, not yet probed.

    Args:
        gpus: The GPUs of the work; those of this process by default.
    """
    seen = gpus or process_gpus()
    return NvmlEnergySensor(seen), NvmlPowerSensor(seen), NvmlAverageSensor(seen), NvmlUseSensor(seen)
