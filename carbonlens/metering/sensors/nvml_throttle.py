"""NVML throttling: for how long heat has slowed each GPU (no energy; evidence of noise).

The driver counts the time in which the clocks lay below those asked for because of
heat (``nvmlDeviceGetViolationStatus``, thermal policy). The ordinary power cap is
another policy and does not count: it is how a GPU runs at full load.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from carbonlens.domain.counting import counted
from carbonlens.metering.sensors import Channel, Probe, SensorInfo
from carbonlens.metering.sensors.nvml_device import DeviceLine
from carbonlens.metering.sensors.nvml_library import Nvml, process_nvml

_PERIOD_S: Final = 1.0


class NvmlThrottleSensor:
    """Reads seconds slowed by heat of each GPU, since the driver was loaded.

    It is no source of energy and stands in no list of sensors: ``devices.throttling``
    asks it at the edges of a window.

    Args:
        uuids: The GPUs of the work.
        library: NVML; the process's own by default.
        clock: Seconds of a monotonic clock.
    """

    may_block = True
    rest_s = _PERIOD_S

    def __init__(
        self,
        uuids: Sequence[str],
        library: Nvml | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; nothing is asked yet."""
        nvml = library or process_nvml()
        self._lines = [DeviceLine(nvml, uuid, nvml.slowed_by_heat_s, clock) for uuid in uuids]

    @property
    def info(self) -> SensorInfo:
        """Describe the readings."""
        return SensorInfo(
            name="nvml_throttle",
            kind="use",
            unit="s",
            scope="board",
            boundary="device",
            grade="B",
            update_period_s=_PERIOD_S,
            channels=tuple(Channel(device=line.uuid, component="gpu") for line in self._lines),
            method="time slowed by heat (NVML), no energy",
        )

    def probe(self) -> Probe:
        """Look once at each GPU."""
        told = [line.uuid for line in self._lines if line.read(edge=True) is not None]
        if told:
            return Probe(usable=True, found=f"time slowed by heat of {counted(len(told), 'GPU')}")
        fault = next((str(line.fault) for line in self._lines if line.fault is not None), None)
        return Probe(usable=False, found="no GPU that tells when heat slows it", reason=fault or "no GPU")

    def read(self, *, edge: bool) -> tuple[float | None, ...]:
        """Return seconds of each GPU; ``None`` for one that does not tell."""
        return tuple(line.read(edge=edge) for line in self._lines)

    def close(self) -> None:
        """Close nothing: the library is the process's."""
