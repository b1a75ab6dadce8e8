"""RAPL: energy counters of CPU packages and memory, by Linux powercap (grade B).

Counters are of the whole machine, whoever used it. Package zones hold their cores
and graphics; ``dram`` zones stand beside them; ``psys`` holds everything again and
is never added (kernel documentation, power/powercap).

The dies of a package may show one counter each, or the package's counter several times;
and two packages may carry one name. What they read tells them apart, not their names:
zones whose readings are the same at one moment are one counter.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from carbonlens.domain.grades import COUNTER_GAIN_95
from carbonlens.domain.units import Z_95
from carbonlens.metering.sensors import Channel, Probe, SensorInfo
from carbonlens.metering.sensors.sysfs import folders, number, readable_mend

_ZONE: Final = re.compile(r"^intel-rapl:\d+(:\d+)?$")
_PACKAGE: Final = re.compile(r"package-(\d+)")
"""Zones of two numbers are two packages, however alike they read."""

_MICRO: Final = 1e-6
_LIMIT_TIMES: Final = 2
_CLASS_W: Final = 2_000.0
"""What no package draws (``metering.plausible``): a higher limit tells less."""

_GAIN_SIGMA: Final = COUNTER_GAIN_95 / Z_95


class _Zone:
    """One counter file and what it stands for."""

    def __init__(self, folder: Path, name: str, component: str) -> None:
        self.folder = folder
        self.name = name
        self.component = component
        self.max_range_j = _max_range_j(folder)
        self.most_w = _most_w(folder) if component == "cpu" else None
        self.handle: int | None = None


class RaplSensor:
    """Reads all package and memory counters of a powercap tree.

    Args:
        root: The tree, ``/sys/class/powercap`` on a real machine.
    """

    may_block = False
    rest_s = 0.0

    def __init__(self, root: Path) -> None:
        """List the zones; counters are opened at the first read."""
        self._root = root
        self._zones = _zones(root)

    @property
    def info(self) -> SensorInfo:
        """Describe the readings."""
        return SensorInfo(
            name="rapl",
            kind="cumulative",
            unit="J",
            scope="machine",
            boundary="device",
            grade="B",
            update_period_s=0.001,
            channels=tuple(
                Channel(device=z.name, component=z.component, max_range=z.max_range_j, most_w=z.most_w)
                for z in self._zones
            ),
            method="RAPL counters of the whole machine (powercap)",
            gain_sigma=_GAIN_SIGMA,
        )

    def probe(self) -> Probe:
        """Try each package's counter."""
        if not self._zones:
            return Probe(
                usable=False,
                found="no RAPL zones",
                reason="virtual machines and most ARM servers show none",
            )
        names = ", ".join(z.name for z in self._zones)
        for zone in self._zones:
            counter = zone.folder / "energy_uj"
            try:
                told = counter.read_bytes()
            except PermissionError:
                return Probe(
                    usable=False,
                    found=names,
                    reason=f"{counter} can be read by root only (CVE-2020-8694)",
                    mend=self._mend(),
                )
            except OSError as error:
                return Probe(usable=False, found=names, reason=f"{counter} cannot be read ({error.strerror})")
            if not told.strip().isdigit():
                return Probe(usable=False, found=names, reason=f"{counter} tells no number")
        return Probe(usable=True, found=names)

    def _mend(self) -> str:
        """Return one command for all counters: those of packages, and of the memory beside them."""
        # The tree is sys/class/powercap of a file system.
        root = self._root.parents[min(2, len(self._root.parents) - 1)]
        return readable_mend(root, f"{self._root}/intel-rapl:*/energy_uj")

    def read(self, *, edge: bool) -> tuple[float | None, ...]:
        """Return joules a zone; ``None`` for a zone that cannot be read now.

        Raises:
            OSError: If no zone can be read.
        """
        del edge  # a read costs microseconds: no need to spare it between edges
        values = tuple(_read_j(zone) for zone in self._zones)
        if all(v is None for v in values):
            raise OSError("no RAPL counter could be read")
        return values

    def close(self) -> None:
        """Close the counters."""
        for zone in self._zones:
            if zone.handle is not None:
                os.close(zone.handle)
                zone.handle = None


def _zones(root: Path) -> tuple[_Zone, ...]:
    """Return packages and memory, each physical counter once."""
    try:
        folders = sorted((f for f in root.iterdir() if _ZONE.match(f.name)), key=_place)
    except OSError:
        return ()
    alike: dict[tuple[str, str], list[_Zone]] = {}
    for folder in folders:
        zone = _zone(root, folder)
        if zone is not None:
            number = _PACKAGE.search(zone.name)
            alike.setdefault((zone.component, number[1] if number else zone.name), []).append(zone)
    apart = [zone for zones in alike.values() for zone in _apart(zones)]
    names: dict[str, int] = {}
    for zone in apart:
        names[zone.name] = names.get(zone.name, 0) + 1
        if names[zone.name] > 1:
            zone.name = f"{zone.name} ({zone.folder.name})"
    return tuple(sorted(apart, key=lambda z: _place(z.folder)))


def _zone(root: Path, folder: Path) -> _Zone | None:
    name = _text(folder / "name")
    if name is None or not (folder / "energy_uj").exists():
        return None
    if name.startswith("package-"):
        return _Zone(folder, name, "cpu")
    if name != "dram":
        return None
    parent = _text(root / folder.name.rpartition(":")[0] / "name") or folder.name
    return _Zone(folder, f"dram of {parent}", "ram")


def _place(folder: Path) -> list[int]:
    return [int(part) for part in folder.name.split(":")[1:]]


def _apart(zones: Sequence[_Zone]) -> list[_Zone]:
    """Return the zones without those that show a counter that another one shows."""
    apart: list[_Zone] = []
    for zone in zones:
        if not any(_is_mirror(zone, other) for other in apart):
            apart.append(zone)
    return apart


def _is_mirror(zone: _Zone, other: _Zone) -> bool:
    """Tell whether two zones show one counter: the one reads between two looks at the other.

    Counters of a package each have readings of their own, apart by more than they move in
    the microseconds of three looks. Those that nobody may read are told apart by their names.
    """
    before, between, after = (_now_uj(z) for z in (other, zone, other))
    if before is None or between is None or after is None:
        return zone.name == other.name
    if after < before:  # it wrapped
        return between >= before or between <= after
    return before <= between <= after


def _now_uj(zone: _Zone) -> int | None:
    try:
        return int((zone.folder / "energy_uj").read_bytes())
    except (OSError, ValueError):
        return None


def _max_range_j(folder: Path) -> float | None:
    value = number(folder / "max_energy_range_uj")
    return value * _MICRO if value is not None and value > 0 else None


def _most_w(folder: Path) -> float | None:
    """Return twice the highest power limit the zone tells; ``None`` where that bounds nothing.

    A package may exceed its limit for as long as the turbo lasts. Firmware writes limits
    of kilowatts to mean none (kernel documentation, power/powercap: ``constraint_*``).
    """
    limits = [
        number(path)
        for name in ("max_power_uw", "power_limit_uw")
        for path in folders(folder, f"constraint_*_{name}")
    ]
    most_w = max((_LIMIT_TIMES * limit * _MICRO for limit in limits if limit is not None), default=0.0)
    return most_w if 0 < most_w < _CLASS_W else None


def _read_j(zone: _Zone) -> float | None:
    try:
        if zone.handle is None:
            zone.handle = os.open(zone.folder / "energy_uj", os.O_RDONLY | os.O_CLOEXEC)
        return int(os.pread(zone.handle, 32, 0)) * _MICRO
    except (OSError, ValueError):
        return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text("ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
