"""Hours of use of an asset's pieces, told by the hosts and devices that runs name.

A piece that is used in part is used by that part: a run on two of a server's eight GPUs uses a
quarter of the server. Time that several runs spend on one device, or on one host that is a
piece, is that device's time once; a run that names no device uses all of its host.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from carbonlens.domain.asset import Asset
from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.units import US_PER_HOUR

_LEAST_PREFIX: Final = 4
"""Characters from which on the begin of a device's id stands for it."""

_NAMED: Final = 5

_WHOLE: Final = ""
"""Stands for all of a piece, where devices of it have their names."""


class Occupied(msgspec.Struct, frozen=True, kw_only=True):
    """Time of one run on hardware, UTC microseconds.

    Attributes:
        run: Names it among the others.
        hosts: Ids of the host: of its boot, and of the machine.
        hardware, site: As the run states them.
        devices: Ids of the accelerators that it used, as it records them.
    """

    run: str
    hosts: tuple[str, ...] = ()
    hardware: str | None = None
    site: str | None = None
    devices: tuple[str, ...] = ()
    start_us: int
    end_us: int


class AssetHours(msgspec.Struct, frozen=True, kw_only=True):
    """Piece hours of use of an asset; ``None`` where no run is on it."""

    hours: float | None
    findings: tuple[Finding, ...] = ()


class _Use(NamedTuple):
    """A part of a piece, and when it was used."""

    part: float
    spans: list[tuple[int, int]]


def asset_hours(asset: Asset, occupied: Iterable[Occupied]) -> AssetHours:
    """Return the piece hours for which runs used an asset.

    Args:
        asset: Whose ``devices`` name hosts and devices; without any, runs of its hardware at its
            site are on it.
        occupied: Times of runs, on this and other hardware.
    """
    times = list(occupied)
    hosts = {h for t in times for h in t.hosts} & set(asset.devices)
    devices, findings = _matched([d for d in asset.devices if d not in hosts], times, asset)
    pieces: dict[str, dict[str, _Use]] = {}
    whole = 0
    for time in times:
        for piece, name, part in _parts(asset, time, hosts, devices):
            use = pieces.setdefault(piece, {}).setdefault(name, _Use(part, []))
            use.spans.append((time.start_us, time.end_us))
        whole += _is_guess(asset, time, hosts, devices)
    if whole:
        findings.append(_part_unknown(asset, whole))
    if not pieces:
        return AssetHours(hours=None, findings=tuple(findings))
    hours = sum(_piece_us(uses) for uses in pieces.values()) / US_PER_HOUR
    return AssetHours(hours=hours, findings=tuple(findings))


def device_part(asset: Asset, named: int) -> float:
    """Return which part of a piece one of the asset's devices is, at most a whole one.

    Args:
        asset: Which may say how many devices a piece has.
        named: How many devices the asset names.
    """
    if asset.devices_each is not None:
        return 1 / asset.devices_each
    return min(1.0, asset.count / named) if named else 1.0


def _parts(
    asset: Asset, time: Occupied, hosts: set[str], devices: Mapping[str, str]
) -> list[tuple[str, str, float]]:
    """Return what of the asset a run is on: piece, name in it and part, under which time counts once."""
    own = [d for d in time.devices if d in devices]
    is_on = _is_on(asset, time, hosts)
    host = next((h for h in time.hosts if h in hosts), None)
    # A host is a piece where as many are named as there are pieces.
    piece = f"host:{host}" if host is not None and len(hosts) == asset.count else None
    if is_on and asset.devices_each is not None and time.devices:
        return [(piece or f"device:{d}", d, 1 / asset.devices_each) for d in time.devices]
    if own:
        part = device_part(asset, len(asset.devices) - len(hosts))
        return [(f"device:{d}", d, part) for d in own]
    return [(piece or f"run:{time.run}", _WHOLE, 1.0)] if is_on else []


def _piece_us(uses: Mapping[str, _Use]) -> float:
    """Return for how long a piece was used: whole, and by its parts in the time beside that."""
    every = uses[_WHOLE].spans if _WHOLE in uses else []
    whole = _length(every)
    return whole + sum(
        use.part * (_length([*use.spans, *every]) - whole) for name, use in uses.items() if name != _WHOLE
    )


def _is_on(asset: Asset, time: Occupied, hosts: set[str]) -> bool:
    if asset.devices:
        return not hosts.isdisjoint(time.hosts)
    return (time.hardware, time.site) == (asset.hardware, asset.site)


def _is_guess(asset: Asset, time: Occupied, hosts: set[str], devices: Mapping[str, str]) -> bool:
    """Tell whether a run names devices, and nobody says which part of a piece they are."""
    unsaid = asset.devices_each is None and bool(time.devices)
    return unsaid and devices.keys().isdisjoint(time.devices) and _is_on(asset, time, hosts)


def _matched(
    named: Sequence[str], times: Sequence[Occupied], asset: Asset
) -> tuple[dict[str, str], list[Finding]]:
    """Return the devices of runs that an asset names, each with its name there.

    A name is a device's id, or the begin of one alone.
    """
    seen = sorted({d for t in times for d in t.devices})
    found: dict[str, str] = {}
    unmet = []
    for name in named:
        same = [d for d in seen if d.casefold() == name.casefold()]
        if not same and len(name) >= _LEAST_PREFIX:
            same = [d for d in seen if d.casefold().startswith(name.casefold())]
        if len(same) == 1:
            found[same[0]] = name
        else:
            unmet.append(f"{name} (begin of {len(same)})" if same else name)
    some = bool(found) or len(named) < len(asset.devices)
    return found, [_unmet(asset, unmet, some=some)] if unmet else []


def _length(spans: Iterable[tuple[int, int]]) -> int:
    """Return the time that spans cover together, what they share once."""
    covered, at = 0, None
    for start, end in sorted(spans):
        begin = start if at is None else max(start, at)
        if end > begin:
            covered += end - begin
            at = end
    return covered


def _unmet(asset: Asset, names: Sequence[str], *, some: bool) -> Finding:
    """Return the Finding of names that no run has; where others are met these may just be idle."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return Finding(
        code="CL492",
        severity="info" if some else "warning",
        message=f"no run of the period names {', '.join(names[:_NAMED])}{more} of asset {asset.asset_id} as "
        "a host or one device: hours on them are not told",
        mend="write them as runs record them (runs show RUN --json): a host id, a device's id, or its begin",
        subject=asset.asset_id,
    )


def _part_unknown(asset: Asset, runs: int) -> Finding:
    return Finding(
        code="CL491",
        severity="warning",
        message=f"asset {asset.asset_id} does not say how many devices a piece has: a whole piece is "
        f"counted for each of {counted(runs, 'run')} on named devices",
        mend="state devices_each of the asset: how many devices one piece has, 1 if it is one itself",
        subject=asset.asset_id,
    )
