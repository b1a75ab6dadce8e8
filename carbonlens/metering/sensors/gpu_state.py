"""GPU state: clock, temperature, power cap and memory of each GPU (no energy; explains its pace).

These stand in no list of sensors: ``devices.conditions`` looks at them beside the
window's own. Each GPU has four values, in this order; what it does not tell is ``None``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from carbonlens.domain.counting import counted
from carbonlens.metering.sensors import Channel, Probe, SensorInfo
from carbonlens.metering.sensors.amd_library import Amd, AmdError, Gpu
from carbonlens.metering.sensors.nvml import rest_s
from carbonlens.metering.sensors.nvml_device import DeviceLine
from carbonlens.metering.sensors.nvml_faults import NvmlError
from carbonlens.metering.sensors.nvml_library import Handle, Nvml, process_nvml

T = TypeVar("T")

State = tuple[float | None, float | None, float | None, float | None]
"""Megahertz of the cores, degrees Celsius, watts of the cap in force, bytes of memory in use."""

_NOTHING: Final[State] = (None, None, None, None)
_PERIOD_S: Final = 1.0

_SM: Final = 1
"""NVML_CLOCK_SM (nvml.h)."""

_CHIP: Final = 0
"""NVML_TEMPERATURE_GPU (nvml.h)."""


class _StateSensor:
    """What both makers' sensors share: four values a GPU.

    Args:
        uuids: The GPUs of the work.
    """

    may_block = True
    _name = ""

    def __init__(self, uuids: Sequence[str]) -> None:
        """Prepare; nothing is asked yet."""
        self.rest_s = _PERIOD_S
        self._uuids = tuple(uuids)

    @property
    def info(self) -> SensorInfo:
        """Describe the readings."""
        return SensorInfo(
            name=self._name,
            kind="use",
            unit="s",
            scope="board",
            boundary="device",
            grade="B",
            update_period_s=_PERIOD_S,
            channels=tuple(Channel(device=uuid, component="gpu") for uuid in self._uuids),
            method="clock, temperature, power cap and memory, no energy",
        )

    def probe(self) -> Probe:
        """Look once at each GPU."""
        told = sum(state != _NOTHING for state in self._states(edge=True))
        if told:
            return Probe(usable=True, found=f"state of {counted(told, 'GPU')}")
        return Probe(usable=False, found="no GPU that tells its state", reason="the driver does not tell")

    def read(self, *, edge: bool) -> tuple[float | None, ...]:
        """Return four values of each GPU; a driver that works long for them is asked seldom."""
        begin = time.thread_time()
        states = self._states(edge=edge)
        self.rest_s = max(_PERIOD_S, rest_s(time.thread_time() - begin))
        return tuple(value for state in states for value in state)

    def close(self) -> None:
        """Close nothing: the library is the process's."""

    def _states(self, *, edge: bool) -> list[State]:
        raise NotImplementedError


class NvmlStateSensor(_StateSensor):
    """Looks at NVIDIA GPUs.

    Args:
        uuids: The GPUs of the work.
        library: NVML; the process's own by default.
        clock: Seconds of a monotonic clock.
    """

    _name = "nvml_state"

    def __init__(
        self,
        uuids: Sequence[str],
        library: Nvml | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; nothing is asked yet."""
        super().__init__(uuids)
        self._nvml = library or process_nvml()
        self._lines = [DeviceLine(self._nvml, uuid, self._state, clock) for uuid in self._uuids]

    def _states(self, *, edge: bool) -> list[State]:
        return [line.read(edge=edge) or _NOTHING for line in self._lines]

    def _state(self, handle: Handle) -> State:
        """Return what one GPU tells.

        Raises:
            NvmlError: If it tells nothing at all.
        """
        faults: list[NvmlError] = []

        def told(function: str, *which: int) -> Any:  # noqa: ANN401  # the library has no types
            try:
                return self._nvml.state(handle, function, *which)
            except NvmlError as fault:
                faults.append(fault)
                return None

        memory = told("nvmlDeviceGetMemoryInfo")
        state = (
            _number(told("nvmlDeviceGetClockInfo", _SM)),
            _number(told("nvmlDeviceGetTemperature", _CHIP)),
            _number(told("nvmlDeviceGetEnforcedPowerLimit"), 1e-3),
            None if memory is None else float(memory.used),
        )
        if state == _NOTHING:
            raise faults[0]
        return state


class AmdStateSensor(_StateSensor):
    """Looks at AMD GPUs; tested on a fake library, not on a GPU.

    Args:
        uuids: The GPUs of the work.
        library: An object with the functions of the module ``amdsmi``; that module by default.
    """

    _name = "amd_state"

    def __init__(self, uuids: Sequence[str], library: Any = None) -> None:  # noqa: ANN401  # as in amd_library
        """Prepare; the library is loaded by the first look."""
        super().__init__(uuids)
        self._amd = Amd(library)
        self._gpus: dict[str, Gpu] = {}

    def _states(self, *, edge: bool) -> list[State]:
        del edge  # the library keeps no GPU from being asked
        if not self._gpus:
            try:
                self._gpus = {gpu.uuid: gpu for gpu in self._amd.gpus()}
            except AmdError:
                return [_NOTHING] * len(self._uuids)
        return [self._amd.state(self._gpus[u]) if u in self._gpus else _NOTHING for u in self._uuids]


def _number(value: Any, unit: float = 1.0) -> float | None:  # noqa: ANN401  # what the library answers
    return None if value is None else float(value) * unit
