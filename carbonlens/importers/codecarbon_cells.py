"""Columns of codecarbon's emissions.csv through its eras, and rows whose cells slid to the left.

Columns were inserted in the middle at each change, so that they are read by name. Releases
3.2.9 and 3.3.0 wrote rows without their empty cells: such a row is put right by the kinds of
its other cells, where only one way fits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from typing import Final

ESSENTIAL: Final = frozenset({"timestamp", "duration", "emissions", "energy_consumed"})
"""In every era, from 11 columns to 38."""

_MAY_LACK: Final = (
    *("region", "longitude", "latitude", "cloud_provider", "cloud_region"),
    *("gpu_count", "gpu_model", "experiment_id", "cpu_model", "country_name", "country_iso_code"),
)
"""Columns whose empty cells those releases left out; the likely ones first."""

_USUAL_LACK: Final = frozenset({"region", "longitude", "latitude", "cloud_provider", "cloud_region"})
_MOST_LACK: Final = 6

_NUMBERS: Final = frozenset(
    {
        *("duration", "emissions", "emissions_rate", "cpu_power", "gpu_power", "ram_power"),
        *("cpu_energy", "gpu_energy", "ram_energy", "energy_consumed", "water_consumed", "cpu_count"),
        *("ram_total_size", "cpu_utilization_percent", "gpu_utilization_percent"),
        *("ram_utilization_percent", "ram_used_gb", "pue", "wue"),
    }
)
_MAYBE_NUMBERS: Final = frozenset({"longitude", "latitude", "gpu_count"})
_NUMBER: Final = re.compile(r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
_KINDS: Final = {
    "timestamp": re.compile(r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"),
    "country_iso_code": re.compile(r"^([A-Z]{3})?$"),
    "tracking_mode": re.compile(r"^(machine|process)$"),
    "on_cloud": re.compile(r"^[YN]$"),
    "python_version": re.compile(r"^\d+\.\d+"),
    "codecarbon_version": re.compile(r"^\d+\.\d+"),
    "run_id": re.compile(r"^\S+$"),
    "experiment_id": re.compile(r"^\S*$"),
    "os": re.compile(r"^[A-Za-z].*"),
    "cpu_model": re.compile(r"^(?!\d+(\.\d+)?$)"),
    "gpu_model": re.compile(r"^(\d+ x .*|(?!\d+(\.\d+)?$).*)$"),
    "region": re.compile(r"^(?![NY]$)(?!-?\d+(\.\d+)?$).*"),
    "country_name": re.compile(r"^(?!\d)(?![A-Z]{3}$).*"),
    "cloud_provider": re.compile(r"^(?!\d).*(?<!-bit)$"),
}


def fits(header: Sequence[str], cells: Sequence[str]) -> bool:
    """Whether every cell is of its column's kind."""
    return all(_fits(name, cell) for name, cell in zip(header, cells, strict=True))


def realigned(header: Sequence[str], cells: Sequence[str]) -> list[str] | None:
    """Return a short row with its missing cells empty, where it can be told which they are.

    Args:
        header: Names of the columns.
        cells: Fewer cells than that.
    """
    lacking = len(header) - len(cells)
    places = [header.index(name) for name in _MAY_LACK if name in header]
    if not 0 < lacking <= min(_MOST_LACK, len(places)):
        return None
    found: list[tuple[int, list[str]]] = []
    for chosen in combinations(places, lacking):
        row = _with_gaps(cells, set(chosen), len(header))
        if fits(header, row):
            found.append((sum(header[i] in _USUAL_LACK for i in chosen), row))
    if not found:
        return None
    best = max(usual for usual, _ in found)
    ways = [row for usual, row in found if usual == best]
    return ways[0] if all(_says_alike(header, ways[0], way) for way in ways[1:]) else None


def _says_alike(header: Sequence[str], one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two ways differ only in cells from which no figure is made."""
    return all(a == b for name, a, b in zip(header, one, other, strict=True) if name not in _MAY_LACK)


def _with_gaps(cells: Sequence[str], gaps: set[int], width: int) -> list[str]:
    given = iter(cells)
    return ["" if i in gaps else next(given) for i in range(width)]


def _fits(name: str, cell: str) -> bool:
    if name in _NUMBERS:
        return _NUMBER.match(cell) is not None or cell == ""
    if name in _MAYBE_NUMBERS:
        return cell == "" or _NUMBER.match(cell) is not None
    kind = _KINDS.get(name)
    return kind is None or kind.match(cell) is not None
