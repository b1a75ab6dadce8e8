"""NVML use: who used each GPU meanwhile (no energy; grade D where a share is billed by it).

Of a whole GPU the activity of processes is read, of a divided one (MIG) that of its
instances, which Hopper and newer GPUs tell. Channels come in pairs, the work's own
and everybody's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from carbonlens.metering.devices.nvidia import Gpu, VisibleGpus
from carbonlens.metering.devices.processes import InstanceMeter, OwnProcesses, ProcessMeter, Used
from carbonlens.metering.sensors import Channel, Probe, SensorInfo
from carbonlens.metering.sensors.nvml import rest_s
from carbonlens.metering.sensors.nvml_device import DeviceLine
from carbonlens.metering.sensors.nvml_faults import NvmlError

_LEAST_REST_S: Final = 1.0
"""The process tree is walked at most once a second, and the driver samples no faster."""


class NvmlUseSensor:
    """Reads seconds of activity on each GPU since the first look.

    Args:
        gpus: The GPUs of the work.
        own: The work's processes.
        clock: Seconds of a monotonic clock.
    """

    may_block = True

    def __init__(
        self,
        gpus: VisibleGpus,
        own: OwnProcesses | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; nothing is asked yet."""
        self.rest_s = _LEAST_REST_S
        self.unread: dict[str, OSError] = {}
        """Why a GPU does not tell who uses it, by UUID."""
        self._gpus = gpus
        self._own = own or OwnProcesses()
        self._clock = clock
        self._read: list[tuple[Gpu, ProcessMeter | InstanceMeter]] = []
        self._lines: list[DeviceLine[Used]] = []

    @property
    def info(self) -> SensorInfo:
        """Describe the readings."""
        return SensorInfo(
            name="nvml_use",
            kind="use",
            unit="s",
            scope="board",
            boundary="device",
            grade="D",
            update_period_s=_LEAST_REST_S,
            channels=tuple(
                channel
                for gpu, _ in self._read
                for channel in (
                    Channel(device=gpu.uuid, component="gpu", part=gpu.part, who="own"),
                    Channel(device=gpu.uuid, component="gpu", part=gpu.part, who="all"),
                )
            ),
            method="activity of processes and MIG instances (NVML): who used a GPU, no energy",
        )

    def probe(self) -> Probe:
        """Look once at each GPU."""
        self.close()
        self._read, self._lines, self.unread = [], [], {}
        try:
            gpus = self._gpus.look().gpus
        except OSError as error:
            return Probe(usable=False, found="no NVIDIA GPU", reason=str(error))
        begin = time.perf_counter()
        self._own.look()
        for gpu in gpus:
            try:
                self._add(gpu)
            except OSError as error:
                self.unread[gpu.uuid] = error
        self.rest_s = max(_LEAST_REST_S, rest_s(time.perf_counter() - begin))
        reasons = "; ".join(f"{uuid[:12]}: {error}" for uuid, error in self.unread.items())
        if not self._read:
            return Probe(usable=False, found="no GPU that tells who uses it", reason=reasons or "no GPU")
        found = f"activity on {', '.join(gpu.label for gpu, _ in self._read)}"
        return Probe(usable=True, found=found, reason=reasons or self._numbers_unsure())

    def read(self, *, edge: bool) -> tuple[float | None, ...]:
        """Return the work's own and everybody's seconds of each GPU.

        Raises:
            OSError: If no GPU tells.
        """
        self._own.look()
        looks = [line.read(edge=edge) for line in self._lines]
        if all(look is None for look in looks):
            fault = next((line.fault for line in self._lines if line.fault is not None), None)
            raise OSError(str(fault or "no GPU to read"))
        return tuple(value for look in looks for value in (look or Used(None, None)))

    def close(self) -> None:
        """Give performance samples back."""
        for _, meter in self._read:
            if isinstance(meter, InstanceMeter):
                meter.close()

    def _add(self, gpu: Gpu) -> None:
        library = self._gpus.library
        meter: ProcessMeter | InstanceMeter
        if gpu.divided:
            meter = InstanceMeter(library, gpu, self._clock)
        else:
            meter = ProcessMeter(library, self._own, self._clock)
        line = DeviceLine(library, gpu.uuid, meter, self._clock)
        if line.read(edge=True) is None:
            raise line.fault or NvmlError(0, "activity")
        self._read.append((gpu, meter))
        self._lines.append(line)

    def _numbers_unsure(self) -> str | None:
        if self._own.in_initial_namespace:
            return None
        return (
            "in a container the driver may number processes as the host does: "
            "the work's own share is known once one of its processes is seen on the GPU"
        )
