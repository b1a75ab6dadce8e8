"""Which sensors can be read here: the CPU model always, counters where there are any."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from carbonlens.metering import accelerators
from carbonlens.metering.process_time import TreeClock
from carbonlens.metering.sensors import Sensor
from carbonlens.metering.sensors.cpu_model import CpuModelSensor

POWERCAP: Final = Path("/sys/class/powercap")


class Watch(NamedTuple):
    """What a session looks at.

    Attributes:
        sensors: Sources to read; the session closes them.
        unmeasured: Accelerators present that no sensor reads.
        of_children: True when child processes alone do the work.
    """

    sensors: tuple[Sensor, ...]
    unmeasured: tuple[str, ...] = ()
    of_children: bool = False


def watch(*, of_children: bool = False) -> Watch:
    """Return everything that can be looked at here.

    Args:
        of_children: True to leave this process's own CPU time out.
    """
    clock = TreeClock(include_self=not of_children)
    return Watch(usable_sensors(clock), accelerators.present(), of_children)


def usable_sensors(clock: TreeClock, *, powercap: Path = POWERCAP) -> tuple[Sensor, ...]:
    """Return the sensors to read in a window.

    The CPU model is always among them, because a run's CPU time is wanted whatever
    else measures its energy.

    Args:
        clock: Whose CPU time is read.
        powercap: Tree in which RAPL counters are looked for.
    """
    found: list[Sensor] = [CpuModelSensor(clock)]
    # The folder is missing on virtual machines: one look spares the probe.
    if powercap.is_dir():
        from carbonlens.metering.sensors.rapl import RaplSensor

        rapl = RaplSensor(powercap)
        if rapl.probe().usable:
            found.append(rapl)
    return tuple(found)
