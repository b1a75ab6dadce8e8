"""Use case: look up a CPU's thermal design power in codecarbon's table, where that is installed.

Importing codecarbon takes a good part of a second: this is for ``doctor``, which says
what to declare, and the recovery of runs, never for the start or end of a user's work.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

from carbonlens.metering.cpu_device import Tdp, better_curve
from carbonlens.metering.cpu_families import Processor, this_processor
from carbonlens.metering.cpu_names import TdpTable
from carbonlens.metering.sensors import SensorInfo


class TdpMatch(NamedTuple):
    """Watts of one package, and the row of the table that has the CPU's whole name."""

    watts: float
    name: str
    source: str


def tdp_of(cpu_name: str | None) -> TdpMatch | None:
    """Return the TDP of a CPU by its whole name.

    Likeness does not count: a name that is not in the table, or stands there with
    several powers, gives nothing.

    Args:
        cpu_name: As the kernel has it; ``None`` gives nothing.

    Returns:
        ``None`` without a match, and without the extra ``codecarbon``.
    """
    if cpu_name is None:
        return None
    loaded = _table()
    found = loaded[0].look_up(cpu_name) if loaded else None
    return TdpMatch(found[0], found[1], loaded[1]) if loaded and found else None


def better_info(info: SensorInfo, processor: Processor | None = None) -> SensorInfo:
    """Return the CPU model's description with the TDP of this machine's CPU, where it is found.

    Args:
        info: Description of a sensor; any but the CPU model of an unknown family stays.
        processor: The machine's; this one's by default.
    """
    if info.name != "cpu_model" or info.curve is None or info.curve.known:
        return info
    cpu = processor or this_processor()
    found = tdp_of(cpu.name)
    if found is None:
        return info
    tdp = Tdp(watts=found.watts, name=found.name, source=f"{found.name}, {found.source}")
    return better_curve(info, tdp, cpu)


@cache
def _table() -> tuple[TdpTable, str] | None:
    try:
        from codecarbon import __version__
        from codecarbon.input import DataSource
    except ImportError:
        return None
    path = Path(DataSource().cpu_power_path)
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            rows = [(row.get("Name") or "", row.get("TDP") or "") for row in csv.DictReader(stream)]
    except (OSError, UnicodeDecodeError, csv.Error):
        # Another version may keep it elsewhere: no table is no match, never a guess.
        return None
    return TdpTable(rows), f"codecarbon {__version__}"
