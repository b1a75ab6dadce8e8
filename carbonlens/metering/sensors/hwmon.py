"""Hwmon: power meters that the kernel shows below ``/sys/class/hwmon``.

Only chips whose scope is known are read; the others are named by ``probe`` and left out,
because a rail of unknown place may lie inside another. One sensor a group:

- ``grace``: NVIDIA Grace and Grace Hopper by ``acpi_power_meter`` (grade C, average). The
  module holds GPU and memory, the Grace socket holds its CPU and SysIO rails: of rails
  inside each other one is read (NVIDIA Grace performance tuning guide, "Power and
  Thermals"; alumet's plugin grace-hopper).
- ``machine``: ACPI power meters of whole servers (grade C, average; ACPI 6, section 10.4).
- ``intel_gpu``: energy counters of discrete Intel GPUs, ``i915`` and ``xe`` (grade B;
  kernel documentation, ABI/testing/sysfs-driver-intel-i915-hwmon and -xe-hwmon).
- ``input``: INA monitors of a board, only where the label says it is the board's input.

0 W is no power of a module, socket or board that runs this program: firmware has not
filled the field in, and the reading is none.

``power{n}_average`` and ``power{n}_input`` are in microwatts, ``energy{n}_input`` in
microjoules (kernel documentation, hwmon/sysfs-interface).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Literal, NamedTuple

from carbonlens.domain.grades import COUNTER_GAIN_95
from carbonlens.domain.jetson_rails import module_of
from carbonlens.domain.units import Z_95, Boundary, Grade
from carbonlens.metering.sensors import Channel, Kind, Probe, Scope, SensorInfo, Unit
from carbonlens.metering.sensors.sysfs import (
    folders,
    in_container,
    line,
    number,
    readable_mend,
    why_unreadable,
)

Group = Literal["grace", "machine", "intel_gpu", "input"]

_GRACE: Final = re.compile(r"(module|grace|cpu|sysio) power socket ([0-9]+)", re.IGNORECASE)
_INSIDE: Final = {"module": (), "grace": (), "cpu": ("grace",), "sysio": ("grace",)}
"""Meters that hold another of the same socket and stand in its place."""

_WHOLE_SYSTEM: Final = re.compile(r"LNXSY(STM|BUS)")
"""Names of the ACPI tree's root: a meter of it measures the whole system."""

_ACPI_METER: Final = "ACPI000D"
_GRACE_BOARD: Final = re.compile(r"grace|\bG[HB]200", re.IGNORECASE)

_INPUTS: Final = frozenset({"VIN", "VDD_IN", "POM_5V_IN", "SYSTEM_POWER"})
_INA: Final = re.compile(r"ina2[0-9]{2}|ina2xx")
_INTEL_GPU: Final = frozenset({"i915", "xe"})
_TILE: Final = re.compile(r"i915_gt[0-9]+")
_MOST_METERS: Final = 10

_MICRO: Final = 1e-6
_GAIN_SIGMA: Final = COUNTER_GAIN_95 / Z_95


class _Meter(NamedTuple):
    """One value of a reading: the sum of its files."""

    device: str
    component: str
    files: tuple[Path, ...]
    interval_ms: int | None = None
    rated_w: float | None = None


class _Kindred(NamedTuple):
    """What the meters of a group have in common."""

    kind: Kind
    unit: Unit
    scope: Scope
    boundary: Boundary
    grade: Grade
    update_period_s: float
    method: str


_GROUPS: Final[dict[Group, _Kindred]] = {
    "grace": _Kindred(
        "average", "W", "module", "device", "C", 0.05, "power of the Grace module by its ACPI power meter"
    ),
    "machine": _Kindred(
        "average", "W", "machine", "it", "C", 1.0, "power of the whole machine by its ACPI power meter"
    ),
    "intel_gpu": _Kindred(
        "cumulative", "J", "board", "device", "B", 0.001, "energy counter of the Intel GPU (hwmon)"
    ),
    "input": _Kindred("instant", "W", "board", "device", "C", 0.1, "power of the board's input (INA, hwmon)"),
}


class HwmonSensor:
    """Reads the power meters of one group.

    Args:
        root: The file system; ``/`` on a real machine.
        group: Which meters.
    """

    may_block = True  # a read may wake a device, or ask firmware
    rest_s = 0.0

    def __init__(self, root: Path, group: Group) -> None:
        """List the meters; nothing is opened."""
        self._root = root
        self._group: Group = group
        self._meters, self._left_out = _meters(root, group)

    @property
    def info(self) -> SensorInfo:
        """Describe the readings."""
        kindred = _GROUPS[self._group]
        intervals = [m.interval_ms for m in self._meters if m.interval_ms]
        period_s = max(intervals, default=0) / 1e3 or kindred.update_period_s
        return SensorInfo(
            name=f"hwmon:{self._group}",
            kind=kindred.kind,
            unit=kindred.unit,
            scope=kindred.scope,
            boundary=kindred.boundary,
            grade=kindred.grade,
            update_period_s=period_s,
            window_s=period_s if kindred.kind == "average" else None,
            channels=tuple(
                Channel(device=m.device, component=m.component, rated_w=m.rated_w) for m in self._meters
            ),
            method=f"{kindred.method}; sensor tested on recordings",
            gain_sigma=_GAIN_SIGMA,
            whole_machine=True,
        )

    def probe(self) -> Probe:
        """Read every meter once."""
        left_out = "; ".join(self._left_out)
        if not self._meters:
            return Probe(
                usable=False,
                found=f"not used: {left_out}" if left_out else "no power meter in hwmon",
                reason="no meter whose place is known",
                mend=_driver_mend(self._root),
            )
        found = ", ".join(m.device for m in self._meters) + (f"; not used: {left_out}" if left_out else "")
        kindred = _GROUPS[self._group]
        for meter in self._meters:
            for file in meter.files:
                fault = why_unreadable(file)
                if fault is not None:
                    denied = "root only" in fault
                    files = [f for m in self._meters for f in m.files]
                    mend = readable_mend(self._root, *files) if denied else None
                    return Probe(usable=False, found=found, reason=fault, mend=mend)
            if kindred.unit == "W" and _value(meter, 1) is None:
                return Probe(
                    usable=False,
                    found=found,
                    reason=f"{meter.device} reads 0 W: its firmware has not filled it in",
                )
        return Probe(usable=True, found=f"{found}; tested on recordings")

    def read(self, *, edge: bool) -> tuple[float | None, ...]:
        """Return watts or joules a meter; ``None`` for one that cannot be read now.

        Raises:
            OSError: If none can be read.
        """
        del edge
        # A counter may begin at 0; power is 0 of nothing that runs.
        least = 0 if self.info.unit == "J" else 1
        values = tuple(_value(meter, least) for meter in self._meters)
        if not values or all(v is None for v in values):
            raise OSError("no power meter of hwmon could be read")
        return values

    def close(self) -> None:
        """Nothing is held open."""


def hwmon_sensors(root: Path) -> tuple[HwmonSensor, ...]:
    """Return a sensor for each group that has meters; else one that says why there is none.

    Args:
        root: The file system; ``/`` on a real machine.
    """
    found = tuple(s for s in (HwmonSensor(root, g) for g in _GROUPS) if s.info.channels)
    return found or (HwmonSensor(root, "machine"),)


def _meters(root: Path, group: Group) -> tuple[tuple[_Meter, ...], tuple[str, ...]]:
    """Return a group's meters, and in words the meters that no group reads."""
    # On a Jetson the monitors belong to the module's own sensor, which knows their places.
    is_jetson = module_of(line(root / "proc" / "device-tree" / "model")) is not None
    grace: dict[tuple[str, str], _Meter] = {}
    meters: list[_Meter] = []
    left_out: list[str] = []
    for folder in folders(root / "sys" / "class" / "hwmon", "hwmon*"):
        name = line(folder / "name") or line(folder / "device" / "name") or folder.name
        if name == "power_meter" or (name == folder.name and _acpi_file(folder, 1, "average") is not None):
            _acpi(folder, group, grace, meters, left_out)
        elif name in _INTEL_GPU:
            meters += _intel_gpu(folder, name) if group == "intel_gpu" else []
        elif _INA.fullmatch(name) and not is_jetson:
            _input(folder, name, group, meters, left_out)
        elif not _TILE.fullmatch(name) and not _INA.fullmatch(name) and _has_meter(folder):
            why = "read by amdsmi" if name == "amdgpu" else "its place is not known"
            left_out.append(f"{name} ({why})")
    if group == "grace":
        meters += _of_grace(grace)
    if group == "machine" and len(meters) > 1:
        # Nothing says whether they stand side by side or inside each other.
        left_out.append(f"{len(meters)} power_meter of the whole machine (which one is not known)")
        meters.clear()
    return tuple(meters), tuple(dict.fromkeys(left_out))


def _driver_mend(root: Path) -> str | None:
    """Return what would show a meter that the firmware tells of; ``None`` where it tells of none.

    ACPI lists a power meter by its id, whether its driver is there or not (ACPI 6,
    section 10.4); without that no driver finds one.
    """
    if not folders(root / "sys" / "bus" / "acpi" / "devices", f"{_ACPI_METER}:*"):
        return None
    if not (root / "sys" / "module" / "acpi_power_meter").exists():
        where = " on the host" if in_container(root) else ""
        return f"ask an administrator for{where}: modprobe acpi_power_meter"
    if _GRACE_BOARD.search(line(root / "sys" / "class" / "dmi" / "id" / "product_name") or ""):
        return "boot with acpi_power_meter.force_cap_on=y, which a Grace board needs"
    return None


def _acpi_file(folder: Path, index: int, what: str) -> Path | None:
    """Return a file of an ACPI meter, which stands in the chip's folder or its device's."""
    places = (folder / f"power{index}_{what}", folder / "device" / f"power{index}_{what}")
    return next((p for p in places if p.exists()), None)


def _acpi(
    folder: Path,
    group: Group,
    grace: dict[tuple[str, str], _Meter],
    meters: list[_Meter],
    left_out: list[str],
) -> None:
    for index in range(1, _MOST_METERS + 1):
        power = _acpi_file(folder, index, "average")
        if power is None:
            return
        info = line(power.with_name(f"power{index}_oem_info")) or ""
        interval_ms = number(power.with_name(f"power{index}_average_interval"))
        socket = _GRACE.fullmatch(info)
        if socket is not None:
            what = socket[1].lower()
            component = "total" if what == "module" else "cpu"
            grace[what, socket[2]] = _Meter(f"{what}-{socket[2]}", component, (power,), interval_ms)
        elif number(power.with_name(f"power{index}_is_battery")) == 1:
            left_out.append("power_meter (a battery)")
        elif _is_of_the_system(power.parent):
            if group == "machine":
                meters.append(_Meter(f"acpi-{power.parent.name}", "wall", (power,), interval_ms))
        else:
            left_out.append(f"power_meter {info or power.parent.name} (does not say what it measures)")


def _is_of_the_system(folder: Path) -> bool:
    """Tell whether an ACPI meter's ``measures`` names the root of the device tree."""
    places = (folder / "measures", folder / "device" / "measures")
    return any(_WHOLE_SYSTEM.search(entry.name) for place in places for entry in folders(place, "*"))


def _of_grace(found: dict[tuple[str, str], _Meter]) -> list[_Meter]:
    """Return the sockets' meters, each joule once below the module.

    The modules of a machine are one total, because a run has one.
    """
    modules = [m for (what, _), m in sorted(found.items()) if what == "module"]
    parts = [
        meter
        for (what, socket), meter in sorted(found.items())
        if what != "module" and not any((outer, socket) in found for outer in _INSIDE[what])
    ]
    if not modules:
        # A SysIO rail alone is no CPU; beside the CPU's it is.
        return parts
    total = _Meter(
        device="+".join(m.device for m in modules),
        component="total",
        files=tuple(f for m in modules for f in m.files),
        interval_ms=max((m.interval_ms or 0 for m in modules), default=0) or None,
    )
    return [total, *parts]


def _intel_gpu(folder: Path, name: str) -> list[_Meter]:
    """Return one counter of a GPU: the card's, else the package's, which lies inside it."""
    labels = {line(folder / f"energy{n}_label"): n for n in (2, 1) if (folder / f"energy{n}_input").exists()}
    index = labels.get("card", labels.get("pkg", labels.get(None)))
    if index is None:
        return []
    file = folder / f"energy{index}_input"
    if index == 1 and 2 in labels.values() and number(file) == 0:
        index, file = 2, folder / "energy2_input"  # some cards count the package only
    limit = number(folder / f"power{index}_rated_max") or number(folder / f"power{index}_max")
    return [_Meter(f"{name}-{_address(folder)}", "gpu", (file,), rated_w=limit * _MICRO if limit else None)]


def _input(folder: Path, name: str, group: Group, meters: list[_Meter], left_out: list[str]) -> None:
    if not (folder / "power1_input").exists():
        return
    label = line(folder / "power1_label") or line(folder / "in1_label") or line(folder / "device" / "label")
    if label is None or label.upper() not in _INPUTS:
        left_out.append(f"{name} {label or 'without a label'} (its place is not known)")
    elif group == "input":
        meters.append(_Meter(label, "total", (folder / "power1_input",)))


def _has_meter(folder: Path) -> bool:
    patterns = ("power*_average", "power*_input", "energy*_input")
    return any(folders(folder, p) or folders(folder / "device", p) for p in patterns)


def _address(folder: Path) -> str:
    """Return the device's address on the bus, which stays when chips are numbered anew."""
    try:
        return (folder / "device").resolve(strict=True).name
    except (OSError, RuntimeError):
        return folder.name


def _value(meter: _Meter, least: int) -> float | None:
    """Return the sum over a meter's files in watts or joules; ``None`` unless all tell it.

    Args:
        meter: Whose files.
        least: What each file tells at least, in millionths.
    """
    total = 0
    for file in meter.files:
        value = number(file)
        if value is None or value < least:
            return None
        total += value
    return total * _MICRO
