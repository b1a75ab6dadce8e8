"""Machines: hosts that are one machine under several ids, and meters of one machine in one run.

Containers of one machine may tell different host ids. A device whose id no other device
has (a GPU's UUID) cannot be in two machines at one time: hosts that read it in windows
that overlap are one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from msgspec.structs import replace

from carbonlens.accounting.allocation_bounds import apportion
from carbonlens.accounting.allocation_claims import WHOLES, Device, Entry
from carbonlens.domain.run import Run

UUID_PATTERN: Final = "GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_UUID: Final = re.compile(UUID_PATTERN, re.IGNORECASE)
"""NVIDIA's id of a board. Names such as ``0`` or ``package-0`` are on every machine."""

_NO_GRADE: Final = "Z"
_ZERO: Final = Decimal(0)
_BY_ID: Final = ""
"""Stands for the methods by which modules with ids of their own are read."""


class Seen(NamedTuple):
    """A device whose id no other has, as a host saw it over a window."""

    device: str
    start_us: int
    end_us: int
    host_id: str


def one_machine(runs: Iterable[Run]) -> dict[str, str]:
    """Return under which id to divide the devices of a host; its own where it is not named.

    Args:
        runs: All runs that are divided together.
    """
    return joined_hosts(s for run in runs for s in seen_by(run))


def seen_by(run: Run) -> list[Seen]:
    """Return the devices that a run read and that no other machine has.

    Args:
        run: Without host or times it tells nothing.
    """
    if run.host_id is None or run.start_us is None or run.end_us is None or run.end_us <= run.start_us:
        return []
    devices = dict.fromkeys(d for r in run.energy for d in r.devices if is_unique(d))
    return [Seen(d, run.start_us, run.end_us, run.host_id) for d in devices]


def joined_hosts(seen: Iterable[Seen]) -> dict[str, str]:
    """Return hosts that are one machine, each to the id of the first: they saw one device at one time.

    Args:
        seen: In any order.
    """
    by_device: dict[str, list[tuple[int, int, str]]] = {}
    for one in seen:
        by_device.setdefault(one.device, []).append((one.start_us, one.end_us, one.host_id))
    found: dict[str, str] = {}
    for windows in by_device.values():
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
    side (a rail a power supply) has one method, and adds up; so do modules with ids of
    their own, which one library reads by several methods.

    Args:
        entries: Of one host.
    """
    meters: dict[tuple[str, str], dict[str, list[Entry]]] = {}
    kept: list[Entry] = []
    for entry in entries:
        device = entry.device
        if device is None or device.component not in WHOLES:
            kept.append(entry)
            continue
        method = _BY_ID if is_unique(device.device) else entry.run.energy[entry.reading].method
        meters.setdefault((entry.run.run_id, device.component), {}).setdefault(method, []).append(entry)
    others: list[Entry] = []
    for by_method in meters.values():
        best, *rest = sorted(by_method.values(), key=_grade)
        kept += best
        others += [e for m in rest for e in m]
    return kept, others


def one_name_each(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries, all meters of a host's whole under the names of one of them.

    One run by the BMC and one by a meter at the plug read the same machine. What one run
    read side by side (two rails) is one meter, and so are modules with ids of their own:
    a reading by a coarser meter is spread over them as they drew.

    Args:
        entries: Of one host, with one meter a run and whole.
    """
    onto: dict[Device, dict[Device, Decimal]] = {}
    for component in WHOLES:
        mine = [e for e in entries if e.device is not None and e.device.component == component]
        meters = sorted(_meters(mine), key=lambda m: (-len(m), m))
        drawn = dict.fromkeys((d for m in meters for d in m), _ZERO)
        for entry in mine:
            if entry.device is not None:
                drawn[entry.device] += entry.claim.energy_j
        for meter in meters[1:]:
            for place, device in enumerate(meter):
                # In the order of their names, as nobody says which rail is in which socket.
                first, end = (k * len(meters[0]) // len(meter) for k in (place, place + 1))
                onto[device] = {d: drawn[d] for d in meters[0][first:end]}
    return [spread for entry in entries for spread in _spread(entry, onto)]


def _meters(entries: Sequence[Entry]) -> list[list[Device]]:
    """Return the devices that one meter reads side by side, for each meter, in the order of their names."""
    sides: dict[str, list[Device]] = {}
    for entry in entries:
        if entry.device is not None:
            unique = is_unique(entry.device.device)
            sides.setdefault(_BY_ID if unique else entry.run.run_id, []).append(entry.device)
    meters: list[set[Device]] = []
    for devices in sides.values():
        joined = set(devices)
        apart = [m for m in meters if m.isdisjoint(joined)]
        meters = [*apart, joined.union(*(m for m in meters if m not in apart))]
    return [sorted(m) for m in meters]


def _spread(entry: Entry, onto: Mapping[Device, Mapping[Device, Decimal]]) -> list[Entry]:
    """Return a claim on a meter's device as claims on those of another, its joules by what these drew."""
    weights = None if entry.device is None else onto.get(entry.device)
    if not weights:
        return [entry]
    joules, total = entry.claim.energy_j, sum(weights.values(), _ZERO)
    equal = Decimal(1) / len(weights)
    parts = [joules * (w / total if total else equal) for w in weights.values()]
    shares = [joules] if len(parts) == 1 else apportion(parts, joules)
    return [
        entry._replace(device=device, claim=replace(entry.claim, energy_j=part))
        for device, part in zip(weights, shares, strict=True)
    ]


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
