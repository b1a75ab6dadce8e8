"""Columns of nvidia-smi's CSV: which hold power, which tell GPUs apart, and by which a log is known."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from carbonlens.importers.sources import Source, delimiter_of
from carbonlens.importers.tables import split

POWER: Final = (
    "power.draw.instant",
    "power.draw",
    "power.draw.average",
    "module.power.draw.instant",
    "module.power.draw.average",
)
"""Columns of power; the first that a GPU tells counts, the others stand beside it."""

WATTS: Final = {"": 1.0, "w": 1.0, "mw": 1e-3, "kw": 1e3}
"""Watts in one of each unit that a header or a cell may state."""

IDS: Final = (
    ("uuid", "gpu_uuid"),
    ("pci.bus_id", "gpu_bus_id"),
    ("index",),
    ("serial", "gpu_serial"),
)
"""Columns that tell GPUs apart, the best first; ``name`` does not: equal boards share it."""

NAMES: Final = ("name", "gpu_name")
"""Columns of the board's name."""

LASTING: Final = frozenset(
    {
        *NAMES,
        *("memory.total", "power.default_limit", "power.min_limit", "power.max_limit", "vbios_version"),
        *("clocks.max.sm", "clocks.max.memory", "clocks.max.graphics", "clocks.max.gr", "clocks.max.mem"),
        *("pci.bus", "pci.device", "pci.device_id", "pci.sub_device_id"),
    }
)
"""Columns that tell of a board, and do not change at all."""

LIMITS: Final = ("power.limit",)
"""Columns that do not change with a board's work, but by who looks after it."""

OTHERS: Final = frozenset(
    {
        *("utilization.gpu", "utilization.memory", "memory.used", "memory.free", "memory.total"),
        *("temperature.gpu", "temperature.memory", "clocks.sm", "clocks.current.sm", "clocks.gr"),
        *("clocks.current.graphics", "clocks.current.memory", "clocks.mem", "fan.speed"),
        *("power.limit", "pstate", "enforced.power.limit", "pcie.link.gen.current"),
        *("utilization.encoder", "utilization.decoder"),
    }
)
_NAME: Final = re.compile(r"^([a-z0-9_.]+)\s*(?:\[\s*([^\]]*)\s*\])?$")
STAMP: Final = re.compile(r"^\d{4}[/-]\d\d[/-]\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?$")
BARE_WATTS: Final = re.compile(r"^\d+(?:\.\d+)? W$")


class Column(msgspec.Struct, frozen=True):
    """A column: its place, its name without unit, and that unit."""

    place: int
    name: str
    unit: str


def is_mine(source: Source) -> bool:
    """Tell whether a file's first line names columns of nvidia-smi, or is a row of it."""
    if not source.first_lines:
        return False
    names = {c.name for c in columns_of(source.first_lines[0])}
    if names & set(POWER) or (names & {"timestamp"} and names & OTHERS):
        return True
    return len(names & OTHERS) > 1 or is_bare(source.first_lines[0])


def is_bare(line: str) -> bool:
    """Tell whether a line is a row of a log without a header whose power can be told."""
    cells = split(line, ",")
    return bool(STAMP.match(cells[0])) and sum(bool(BARE_WATTS.match(c)) for c in cells[1:]) == 1


def columns_of(line: str) -> list[Column]:
    """Return the columns that a header names."""
    cells = split(line, delimiter_of(line))
    found = []
    for place, cell in enumerate(cells):
        told = _NAME.match(cell.strip('"').strip().lower())
        found.append(Column(place, told[1], told[2] or "") if told else Column(place, cell.lower(), ""))
    return found
