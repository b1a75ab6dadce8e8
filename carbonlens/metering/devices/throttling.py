"""Throttling: for how long heat slowed a device within a window.

Read at the two edges of a window only, from counters that the drivers keep: those of
NVIDIA GPUs that the window's sensors read (``sensors.nvml_throttle``) and those of
Intel processors on Linux. What no counter tells is unknown, never zero.

The kernel counts per package how often and how long its temperature signal (PROCHOT)
was on; a core that is too hot sets the signal of its package too (Intel, Software
Developer's Manual, volume 3, thermal monitoring). Older kernels count how often and
not how long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.metering.sensors import Sensor, SensorInfo, sysfs

CPUS: Final = Path("/sys/devices/system/cpu")

_MOST_CPUS: Final = 65_536
"""A list of CPUs with more in it is no list of CPUs."""


class Slowed(msgspec.Struct, frozen=True):
    """What heat did within a window.

    Attributes:
        seconds: Of the device that was slowed longest, as far as told; ``None`` where none
            tells, or where those that tell were not slowed and another does not tell.
        findings: What must be said beside it.
    """

    seconds: float | None
    findings: tuple[Finding, ...] = ()


class Throttling:
    """Looks at a window's two edges for how long devices were slowed.

    Args:
        infos: The window's sensors: their NVIDIA GPUs are asked.
        cpus: Where the kernel lists processors.
        gpus: Reads GPUs instead of NVML.
    """

    def __init__(self, infos: Sequence[SensorInfo], *, cpus: Path = CPUS, gpus: Sensor | None = None) -> None:
        """Prepare; nothing is read yet."""
        self._cpus = cpus
        self._uuids = () if gpus is not None else _gpus_of(infos)
        self._given = gpus
        self._asked: _Gpus | None = None
        self._packages: tuple[_Package, ...] = ()

    def begin(self) -> None:
        """Take the first readings; those of GPUs are not waited for."""
        self._packages = tuple(map(_read, _packages(self._cpus)))
        sensor = self._given or _nvml(self._uuids)
        if sensor is not None:
            self._asked = _Gpus(sensor)

    def ask(self) -> None:
        """Have the last readings of GPUs begin, before others are waited for."""
        if self._asked is not None:
            self._asked.ask()

    def end(self) -> Slowed:
        """Return what the window came to; call it once."""
        told = self._asked.told() if self._asked is not None else []
        self.close()
        findings: tuple[Finding, ...] = ()
        for before in self._packages:
            now = _read(before.folder)
            times = _gain(before.times, now.times)
            if before.total_ms is not None and now.total_ms is not None:
                gained_ms = _gain(before.total_ms, now.total_ms)
                told.append(None if gained_ms is None else gained_ms / 1000)
            elif times:
                findings = (_slowed_some_time(int(times)),)
                told.append(None)
            else:
                told.append(None if times is None else 0.0)
        longest = max((seconds for seconds in told if seconds is not None), default=None)
        if None not in told:
            return Slowed(longest, findings)
        # What one device does not tell may be more than what the others do.
        if not longest:
            return Slowed(None, findings)
        return Slowed(longest, findings or (_slowed_at_least(longest, told.count(None)),))

    def close(self) -> None:
        """Let the thread that asks GPUs end; safe to call twice."""
        if self._asked is not None:
            self._asked.close()
            self._asked = None


class _Gpus:
    """Reads GPUs in a thread of its own, because a driver may hang."""

    def __init__(self, sensor: Sensor) -> None:
        from carbonlens.metering.patience import PatientSensor  # needs threads that most runs do without

        self._sensor = PatientSensor(sensor)
        self._first: tuple[float | None, ...] = ()
        self._sensor.ask(edge=True)

    def ask(self) -> None:
        self._first = self._read()
        if self._first:
            self._sensor.ask(edge=True)

    def told(self) -> list[float | None]:
        last = self._read() if self._first else ()
        return [_gain(a, b) for a, b in zip(self._first, last, strict=False)] or [None]

    def close(self) -> None:
        self._sensor.close()

    def _read(self) -> tuple[float | None, ...]:
        try:
            return self._sensor.read(edge=True)
        except OSError:
            return ()


class _Package(msgspec.Struct, frozen=True):
    folder: Path
    total_ms: int | None
    times: int | None


def _gain(first: float | None, last: float | None) -> float | None:
    """Return what a counter gained; one that was set back says nothing."""
    return None if first is None or last is None or last < first else last - first


def _gpus_of(infos: Sequence[SensorInfo]) -> tuple[str, ...]:
    """Return the NVIDIA GPUs that sensors read; none where a recording is played."""
    found = (c.device for i in infos if i.name.startswith("nvml") for c in i.channels if c.component == "gpu")
    return tuple(dict.fromkeys(found))


def _nvml(uuids: Sequence[str]) -> Sensor | None:
    if not uuids:
        return None
    from carbonlens.metering.sensors.nvml_throttle import NvmlThrottleSensor

    return NvmlThrottleSensor(uuids)


def _read(folder: Path) -> _Package:
    total_ms, count = (
        sysfs.number(folder / name) for name in ("package_throttle_total_time_ms", "package_throttle_count")
    )
    return _Package(folder, total_ms, count)


@lru_cache(maxsize=4)
def _packages(cpus: Path) -> tuple[Path, ...]:
    """Return where each package counts: below its first processor. Other makers' have none."""
    if not (cpus / "cpu0" / "thermal_throttle").is_dir():
        return ()
    left = set(_listed(cpus / "online")) or {0}
    found: list[Path] = []
    while left:
        first = min(left)
        folder = cpus / f"cpu{first}"
        mates = _listed(folder / "topology" / "package_cpus_list") or _listed(
            folder / "topology" / "core_siblings_list"
        )
        left -= {first, *mates}
        if (folder / "thermal_throttle").is_dir():
            found.append(folder / "thermal_throttle")
        if not mates:
            break  # Which of the others share its package is not told: they would count it again.
    return tuple(found)


def _listed(path: Path) -> list[int]:
    """Return the numbers of a list such as ``0-3,8``; none where it is not there or is no list."""
    try:
        return list(_spread(sysfs.line(path) or ""))
    except ValueError:
        return []


def _spread(text: str) -> Iterator[int]:
    for part in text.split(",") if text else ():
        low, _, high = part.partition("-")
        last = int(high or low)
        if last > _MOST_CPUS:
            raise ValueError(part)
        yield from range(int(low), last + 1)


def _slowed_some_time(times: int) -> Finding:
    return Finding(
        code="CL160",
        severity="warning",
        message=f"heat slowed the processor {times} times in the window; this kernel does not tell how long",
        mend="let the machine cool down; a newer Linux kernel tells how long",
        subject="conditions.throttled_s",
    )


def _slowed_at_least(seconds: float, silent: int) -> Finding:
    return Finding(
        code="CL162",
        severity="info",
        message=f"heat slowed a device for {seconds:.3g} s or more in the window: "
        f"{counted(silent, 'other source')} did not tell",
        mend="let the machine cool down",
        subject="conditions.throttled_s",
    )
