"""Conditions: how devices were set and how they fared in a window, to explain its pace.

Clock, temperature, power cap and memory in use are looked at beside the sensors: at the
edges of a window and at most once a second between. GPUs are asked in a thread of their
own, because a driver may hang; the kernel's files on processors are read where they are
wanted. What nothing tells is ``None``.

Files and units are those of the Linux kernel's documentation: ``scaling_cur_freq`` in
kilohertz (admin-guide/pm/cpufreq), ``temp*_input`` in thousandths of a degree
(hwmon/sysfs-interface), ``constraint_0_power_limit_uw`` in microwatts (power/powercap).
A highest clock is no power cap: only the latter is one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.run import DeviceConditions
from carbonlens.metering.devices.throttling import Throttling
from carbonlens.metering.sensors import Sensor, SensorInfo, sysfs

SYS: Final = Path("/sys")

NS_PER_S: Final = 1_000_000_000
REST_NS: Final = NS_PER_S
"""Between the edges devices are looked at this seldom: the work shares the machine."""

EARLY_S: Final = 0.05
"""Looks are made at beats of a tenth of a second; one that comes a little early is taken."""

MOST_CLOCKS: Final = 4
"""Clocks read of one package at most: a file takes 10 to 25 us, at the edges of the work's own time."""

NOTE_US: Final = 60_000_000
"""The journal notes what was seen this seldom: a line of it is some hundred bytes a device."""

_MICRO: Final = 1e-6
_MOST_W: Final = 2_000.0
"""Firmware writes limits of kilowatts to mean none."""


class Told(msgspec.Struct, frozen=True):
    """What one look at one device told; ``None`` for what it does not tell."""

    clock_mhz: float | None = None
    temperature_c: float | None = None
    power_cap_w: float | None = None
    memory_bytes: float | None = None


class Package(msgspec.Struct, frozen=True):
    """Where the kernel tells of one processor package.

    Attributes:
        device: ``package-0`` and so on, as the energy counters are named.
        clocks: Frequency files by the processor they are of.
        heat: File of its temperature.
        cap: File of its long-term power limit.
    """

    device: str
    clocks: tuple[tuple[int, Path], ...] = ()
    heat: Path | None = None
    cap: Path | None = None


class Fared(msgspec.Struct, frozen=True):
    """How the devices of a window fared.

    Attributes:
        throttled_s: As ``throttling.Slowed`` tells.
        devices: Those that told something.
        findings: What must be said beside it.
    """

    throttled_s: float | None = None
    devices: tuple[DeviceConditions, ...] = ()
    findings: tuple[Finding, ...] = ()


class Surroundings:
    """All that a session looks at beside its sensors: throttling and the state of devices.

    Args:
        infos: The window's sensors.
    """

    def __init__(self, infos: Sequence[SensorInfo]) -> None:
        """Prepare; nothing is looked at yet."""
        self._throttling = Throttling(infos)
        self._looks = DeviceLooks(infos)

    def begin(self) -> None:
        """Look for the first time; GPUs are not waited for."""
        self._throttling.begin()
        self._looks.begin()

    def between(self) -> None:
        """Look again where a look is due; nothing is waited for."""
        self._looks.between(time.monotonic_ns())

    def to_note(self, t_us: int) -> tuple[DeviceConditions, ...]:
        """Return how devices fared so far where the journal should note it; nothing where it need not.

        Args:
            t_us: Microseconds since the window began.
        """
        return self._looks.to_note(t_us)

    def ask(self) -> None:
        """Have the last looks at GPUs begin, before others are waited for."""
        self._throttling.ask()
        self._looks.ask()

    def end(self) -> Fared:
        """Return what the window came to; call it once."""
        slowed = self._throttling.end()
        return Fared(slowed.seconds, self._looks.end(), slowed.findings)

    def close(self) -> None:
        """Let the threads that ask GPUs end; safe to call twice."""
        self._throttling.close()
        self._looks.close()


class DeviceLooks:
    """Looks at the devices of one window.

    Args:
        infos: The window's sensors: the GPUs that they read are looked at.
        sys: Where the kernel tells of processors.
        gpus: Looks at GPUs instead of their drivers; four values a channel, as in ``Told``.
    """

    def __init__(
        self, infos: Sequence[SensorInfo], *, sys: Path = SYS, gpus: Sequence[Sensor] | None = None
    ) -> None:
        """Prepare; nothing is looked at yet."""
        self._infos = infos
        self._sys = sys
        self._given = gpus
        self._asked: list[_Gpus] = []
        self._packages: tuple[Package, ...] = ()
        self._seen: dict[str, _Seen] = {}
        self._last_ns = 0
        self._noted = 0
        self._noted_us = 0

    def begin(self) -> None:
        """Look for the first time; GPUs are not waited for."""
        self._packages = tuple(_mine(p) for p in packages(self._sys))
        sensors = _drivers(self._infos) if self._given is None else self._given
        self._asked = [_Gpus(sensor) for sensor in sensors]
        self._read_packages()

    def between(self, now_ns: int) -> None:
        """Look again if the last look is a second old; nothing is waited for.

        Args:
            now_ns: The monotonic clock.
        """
        if self._last_ns == 0:
            self._last_ns = now_ns
        if now_ns - self._last_ns < REST_NS:
            return
        self._last_ns = now_ns
        for gpus in self._asked:
            if gpus.due_ns <= now_ns:
                self._take(gpus.told_and_asked(edge=False))
                gpus.due_ns = now_ns + gpus.rest_ns
        self._read_packages()

    def ask(self) -> None:
        """Have the last look at GPUs begin, before others are waited for."""
        for gpus in self._asked:
            self._take(gpus.told_and_asked(edge=True))

    def to_note(self, t_us: int) -> tuple[DeviceConditions, ...]:
        """Return what was seen so far, once a minute and when a device told something first.

        Args:
            t_us: Microseconds since the window began.
        """
        if len(self._seen) == self._noted and t_us - self._noted_us < NOTE_US:
            return ()
        self._noted, self._noted_us = len(self._seen), t_us
        return self._conditions()

    def end(self) -> tuple[DeviceConditions, ...]:
        """Return what was seen of each device that told something; call it once, after ``ask``."""
        for gpus in self._asked:
            self._take(gpus.told())
        self._read_packages()
        self.close()
        return self._conditions()

    def _conditions(self) -> tuple[DeviceConditions, ...]:
        # Both threads may be at it when the window ends without the sampler.
        return tuple(seen.conditions(device) for device, seen in tuple(self._seen.items()) if seen.tells)

    def close(self) -> None:
        """Let the threads that ask GPUs end; safe to call twice."""
        for gpus in self._asked:
            gpus.close()
        self._asked = []

    def _read_packages(self) -> None:
        self._take([(package.device, _look(package)) for package in self._packages])

    def _take(self, told: Sequence[tuple[str, Told]]) -> None:
        for device, look in told:
            self._seen.setdefault(device, _Seen()).take(look)


class _Seen:
    """All looks at one device so far; a run of days keeps no list of them."""

    def __init__(self) -> None:
        self._clocks = 0
        self._sum_mhz = 0.0
        self._lowest_mhz: float | None = None
        self._heat_c: float | None = None
        self._cap_w: float | None = None
        self._earlier_w: float | None = None
        self._bytes: float | None = None

    def take(self, look: Told) -> None:
        if look.clock_mhz is not None:
            self._clocks += 1
            self._sum_mhz += look.clock_mhz
            self._lowest_mhz = min(look.clock_mhz, self._lowest_mhz or look.clock_mhz)
        if look.power_cap_w is not None:
            if self._cap_w is not None and self._cap_w != look.power_cap_w:
                self._earlier_w = self._cap_w
            self._cap_w = look.power_cap_w
        self._heat_c = _highest(self._heat_c, look.temperature_c)
        self._bytes = _highest(self._bytes, look.memory_bytes)

    @property
    def tells(self) -> bool:
        return bool(self._clocks) or any(
            value is not None for value in (self._heat_c, self._cap_w, self._bytes)
        )

    def conditions(self, device: str) -> DeviceConditions:
        return DeviceConditions(
            device=device,
            clock_mhz=round(self._sum_mhz / self._clocks, 1) if self._clocks else None,
            lowest_clock_mhz=self._lowest_mhz,
            temperature_c=self._heat_c,
            power_cap_w=self._cap_w,
            earlier_power_cap_w=self._earlier_w,
            memory_bytes=None if self._bytes is None else int(self._bytes),
        )


class _Gpus:
    """Looks at GPUs in a thread of its own; a look under way is fetched with the next."""

    def __init__(self, sensor: Sensor) -> None:
        from carbonlens.metering.patience import PatientSensor  # needs threads that most runs do without

        self._devices = tuple(channel.device for channel in sensor.info.channels)
        self._driver = sensor
        self._sensor = PatientSensor(sensor)
        self._sensor.ask(edge=True)
        self.due_ns = 0.0

    @property
    def rest_ns(self) -> float:
        """How long the driver is left alone after a look: a dear one longer."""
        return (self._driver.rest_s - EARLY_S) * NS_PER_S

    def told_and_asked(self, *, edge: bool) -> list[tuple[str, Told]]:
        told = self.told()
        self._sensor.ask(edge=edge)
        return told

    def told(self) -> list[tuple[str, Told]]:
        try:
            values = self._sensor.read(edge=True)
        except OSError:
            return []
        size = len(Told.__struct_fields__)
        return [(device, Told(*values[size * k : size * (k + 1)])) for k, device in enumerate(self._devices)]

    def close(self) -> None:
        self._sensor.close()


@lru_cache(maxsize=4)
def packages(sys: Path) -> tuple[Package, ...]:
    """Return what the kernel tells of each processor package; looked for once a process.

    Args:
        sys: The kernel's tree, ``/sys`` on a real machine.
    """
    clocks: dict[int, list[tuple[int, Path]]] = {}
    cpus = sys / "devices" / "system" / "cpu"
    for policy in sysfs.folders(cpus / "cpufreq", "policy[0-9]*"):
        cpu = int(policy.name.removeprefix("policy"))
        package = sysfs.number(cpus / f"cpu{cpu}" / "topology" / "physical_package_id")
        if package is not None and package >= 0:
            clocks.setdefault(package, []).append((cpu, policy / "scaling_cur_freq"))
    caps = dict(_caps(sys / "class" / "powercap"))
    heat = _heat(sys / "class" / "hwmon", sorted(clocks.keys() | caps.keys()) or [0])
    return tuple(
        Package(f"package-{number}", tuple(clocks.get(number, ())), heat.get(number), caps.get(number))
        for number in sorted(clocks.keys() | caps.keys() | heat.keys())
    )


def _caps(powercap: Path) -> Iterator[tuple[int, Path]]:
    for zone in sysfs.folders(powercap, "intel-rapl:[0-9]*"):
        kind, _, number = (sysfs.line(zone / "name") or "").partition("-")
        is_long = sysfs.line(zone / "constraint_0_name") == "long_term"
        if kind == "package" and number.isdecimal() and is_long:
            yield int(number), zone / "constraint_0_power_limit_uw"


def _heat(hwmon: Path, numbers: Sequence[int]) -> dict[int, Path]:
    """Return the temperature file of each package.

    Intel's driver labels it with the package's number; AMD's has one chip a package, in
    the packages' order, and is left out where their numbers differ.
    """
    found: dict[int, Path] = {}
    chips = []
    for chip in sysfs.folders(hwmon, "hwmon[0-9]*"):
        labels = {sysfs.line(file): file for file in sysfs.folders(chip, "temp[0-9]*_label")}
        name = sysfs.line(chip / "name")
        if name == "coretemp":
            for label, told in labels.items():
                kind, _, number = (label or "").rpartition(" ")
                if kind == "Package id" and number.isdecimal():
                    found[int(number)] = _input(told)
        elif name == "k10temp":
            file = labels.get("Tdie") or labels.get("Tctl")
            chips.append(chip / "temp1_input" if file is None else _input(file))
    return found or (dict(zip(numbers, chips, strict=True)) if len(chips) == len(numbers) else {})


def _input(label: Path) -> Path:
    return label.with_name(label.name.replace("_label", "_input"))


def _mine(package: Package) -> Package:
    """Return the package with the clocks of processors that this process may use, evenly some of many."""
    try:
        allowed = os.sched_getaffinity(0)
    except (AttributeError, OSError):
        allowed = {cpu for cpu, _ in package.clocks}  # not told here: any
    kept = [clock for clock in package.clocks if clock[0] in allowed] or list(package.clocks)
    return msgspec.structs.replace(package, clocks=tuple(kept[:: -(-len(kept) // MOST_CLOCKS) or 1]))


def _look(package: Package) -> Told:
    told = [khz for _, file in package.clocks if (khz := sysfs.number(file)) is not None and khz > 0]
    heat = None if package.heat is None else sysfs.number(package.heat)
    cap_uw = None if package.cap is None else sysfs.number(package.cap)
    cap_w = None if cap_uw is None else cap_uw * _MICRO
    return Told(
        clock_mhz=sum(told) / len(told) / 1000 if told else None,
        temperature_c=None if heat is None else heat / 1000,
        power_cap_w=cap_w if cap_w is not None and 0 < cap_w < _MOST_W else None,
    )


def _drivers(infos: Sequence[SensorInfo]) -> list[Sensor]:
    """Return what looks at the GPUs that sensors read; nothing where a recording is played."""
    found: list[Sensor] = []
    for maker in ("nvml", "amd"):
        uuids = tuple(
            dict.fromkeys(
                c.device
                for i in infos
                if i.name.startswith(maker)
                for c in i.channels
                if c.component in {"gpu", "total"}
            )
        )
        if uuids:
            from carbonlens.metering.sensors.gpu_state import AmdStateSensor, NvmlStateSensor

            found.append(NvmlStateSensor(uuids) if maker == "nvml" else AmdStateSensor(uuids))
    return found


def _highest(a: float | None, b: float | None) -> float | None:
    return b if a is None else a if b is None else max(a, b)
