"""CPU model: CPU time of the process tree on its family's power curve (grade D)."""

from __future__ import annotations

from functools import cache

from carbonlens.domain.finding import Finding
from carbonlens.metering import cpu_device, cpu_families
from carbonlens.metering.cpu_device import Tdp
from carbonlens.metering.group_watch import GroupWatch
from carbonlens.metering.process_time import TreeClock
from carbonlens.metering.sensors import Channel, Probe, SensorInfo
from carbonlens.signals.cpu_model import CpuCurve


class CpuModelSensor:
    """Reads CPU seconds; always there, so that a run always has its CPU time.

    SPECpower watts are those of a whole server at the plug, hence the boundary
    ``it`` and no model of memory beside it. The package's own curve goes along for
    runs whose energy is a sum over devices.

    Args:
        clock: Whose CPU time to read; this process's tree by default.
        curve: Power curve; that of this machine's CPU family by default.
        tdp: Thermal design power that the user declared.
    """

    may_block = False
    rest_s = 0.0

    def __init__(
        self, clock: TreeClock | None = None, curve: CpuCurve | None = None, tdp: Tdp | None = None
    ) -> None:
        """Look up the machine's curves; nothing is opened."""
        self._clock = clock or TreeClock()
        self._group = GroupWatch(self._clock)
        info = _info(curve or this_curve(), this_device_curve())
        self._info = info if tdp is None else cpu_device.better_curve(info, tdp)
        self._unusable = None if tdp is None else cpu_device.unusable_tdp(tdp)

    @property
    def info(self) -> SensorInfo:
        """Describe the readings."""
        return self._info

    def probe(self) -> Probe:
        """Name the family that was recognised, or say that none was, or why a declared TDP is no use."""
        curve = self._info.curve or this_curve()
        if self._unusable is not None:
            found = curve.family if curve.known else "CPU time"
            return Probe(usable=True, found=found, reason=self._unusable.message, mend=self._unusable.mend)
        if curve.known:
            return Probe(usable=True, found=f"{curve.family}, {curve.n} published servers")
        return Probe(
            usable=True,
            found="CPU time",
            reason="this CPU family is not in the table; the average over all servers is used",
        )

    def read(self, *, edge: bool) -> tuple[float | None, ...]:
        """Return CPU seconds of the process tree, and at an edge of what left it, where that is known."""
        tree_s = self._clock.read(edge=edge)
        return (tree_s + (self._group.missed_s(tree_s) if edge else 0.0),)

    def notes(self) -> tuple[Finding, ...]:
        """Return what must be said of processes that left the tree, and of a TDP that is no use."""
        return (*(() if self._unusable is None else (self._unusable,)), *self._group.notes())

    def close(self) -> None:
        """Nothing is held open."""


@cache
def this_curve() -> CpuCurve:
    """Return the power curve of this machine's CPU family, looked up once a process."""
    return cpu_families.curve_for(cpu_families.this_processor())


@cache
def this_device_curve() -> CpuCurve:
    """Return the curve of this machine's CPU package alone, looked up once a process."""
    return cpu_device.family_curve(cpu_families.this_processor())


def _info(curve: CpuCurve, device_curve: CpuCurve) -> SensorInfo:
    return SensorInfo(
        name="cpu_model",
        kind="utilisation",
        unit="s",
        scope="process",
        boundary="it",
        grade="D",
        update_period_s=0.0,
        channels=(Channel(device="cpu-time", component="cpu"),),
        method=cpu_device.method_of(curve),
        curve=curve,
        device_curve=device_curve,
    )
