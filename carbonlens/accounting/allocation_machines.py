"""Machines: hosts that are one machine under several ids, and meters of one machine in one run.

Containers of one machine may tell different host ids. A device whose id no other device
has (a GPU's UUID) cannot be in two machines at one time: hosts that read it in windows
that overlap are one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from carbonlens.accounting.allocation_claims import WHOLES, Entry
from carbonlens.domain.run import Run

_UUID: Final = re.compile(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
"""NVIDIA's id of a board. Names such as ``0`` or ``package-0`` are on every machine."""

_NO_GRADE: Final = "Z"


def one_machine(runs: Iterable[Run]) -> Mapping[str, str]:
    """Return under which id to divide the devices of a host; its own where it is not named.

    Args:
        runs: All runs that are divided together.
    """
    seen: dict[str, list[tuple[int, int, str]]] = {}
    for run in runs:
        if run.host_id is None or run.start_us is None or run.end_us is None or run.end_us <= run.start_us:
            continue
        for device in {d for r in run.energy for d in r.devices if is_unique(d)}:
            seen.setdefault(device, []).append((run.start_us, run.end_us, run.host_id))
    found: dict[str, str] = {}
    for windows in seen.values():
        if len({host for _, _, host in windows}) > 1:
            _join(windows, found)
    return {host: _first(found, host) for host in found}


def is_unique(device: str) -> bool:
    """Tell whether an id names one device of all there are.

    Args:
        device: As a reading names it.
    """
    return _UUID.fullmatch(device) is not None


def one_meter_each(entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Return the entries with one meter a run and whole, and those of its other meters.

    A plug and a management controller read one machine. What one sensor reads side by
    side (a rail a power supply) has one method, and adds up; so do devices with ids of
    their own.

    Args:
        entries: Of one host.
    """
    meters: dict[tuple[str, str], dict[str, list[Entry]]] = {}
    kept: list[Entry] = []
    for entry in entries:
        device = entry.device
        if device is None or device.component not in WHOLES or is_unique(device.device):
            kept.append(entry)
            continue
        method = entry.run.energy[entry.reading].method
        meters.setdefault((entry.run.run_id, device.component), {}).setdefault(method, []).append(entry)
    others: list[Entry] = []
    for by_method in meters.values():
        best, *rest = sorted(by_method.values(), key=_grade)
        kept += best
        others += [e for m in rest for e in m]
    return kept, others


def _grade(mine: Sequence[Entry]) -> str:
    return max(e.run.energy[e.reading].grade or _NO_GRADE for e in mine)


def _join(windows: Sequence[tuple[int, int, str]], found: dict[str, str]) -> None:
    """Note hosts as one where a window of each overlaps a window of the other."""
    end, host = 0, ""
    for start_us, end_us, mine in sorted(windows):
        if host and start_us < end and mine != host:
            one, other = sorted((_first(found, host), _first(found, mine)))
            found[other] = found[one] = one
        if not host or end_us > end:
            end, host = end_us, mine


def _first(found: Mapping[str, str], host: str) -> str:
    while found.get(host, host) != host:
        host = found[host]
    return host
