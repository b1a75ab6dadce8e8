"""Device settings: clocks, heat and power caps that differ between arms, or were changed meanwhile.

A clock or a temperature that differs explains a change and spoils nothing: a lighter
variant runs cooler and faster. A power cap that differs between arms may be the step
itself. One that changed among the rounds of one arm measured two machines in one: no
verdict rests on that arm.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from carbonlens.compare.arms import Arm
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import DeviceConditions, Run

CLOCK_GAP: Final = 0.03
"""Relative difference of the arms' median clocks from which it is worth a line."""

HEAT_GAP_C: Final = 5.0
"""The same for temperatures, in degrees: sensors tell whole degrees and rise with each round."""

CAP_GAP_W: Final = 1.0
"""Caps closer than this are one setting: drivers round."""

_LEAST_TO_SPREAD: Final = 4
_SHOWN: Final = 8

_Device = tuple[str | None, str]
"""The machine, as far as known, and the device's name on it."""


def settled_arms(arms: Sequence[Arm]) -> tuple[tuple[Arm, ...], tuple[Finding, ...]]:
    """Return the arms, those under a changing power cap marked, and what must be said of devices.

    Args:
        arms: The usable arms, baseline first.
    """
    kept: list[Arm] = []
    findings: list[Finding] = []
    for arm in arms:
        changed = _changed_caps(arm)
        findings += changed
        kept.append(replace(arm, is_disturbed=True) if changed else arm)
    for device in dict.fromkeys(device for a in arms for device, _ in _of(a.runs)):
        findings += _differing(device, arms)
    return tuple(kept), tuple(findings)


def _changed_caps(arm: Arm) -> list[Finding]:
    caps: dict[_Device, list[float]] = {}
    for device, seen in _of(arm.runs):
        told = caps.setdefault(device, [])
        told += [c for c in (seen.earlier_power_cap_w, seen.power_cap_w) if c is not None]
    return [
        Finding(
            code="CL170",
            severity="warning",
            message=f"the power cap of {_named(device, caps)} was changed while step {arm.name!r} was "
            f"measured (from {min(told):g} to {max(told):g} W among its rounds): there is no verdict on it",
            subject=arm.name,
            mend="set the cap before the series, or in a variant's prepare, and measure again",
        )
        for device, told in caps.items()
        if told and max(told) - min(told) > CAP_GAP_W
    ]


def _differing(device: _Device, arms: Sequence[Arm]) -> Iterator[Finding]:
    """Say which settings of a device differ between arms, each with its numbers."""
    name = _named(device, [one for a in arms for one, _ in _of(a.runs)])
    clocks = _by_arm(device, arms, lambda seen: seen.clock_mhz)
    heat = _by_arm(device, arms, lambda seen: seen.temperature_c)
    caps = _by_arm(device, arms, lambda seen: seen.power_cap_w)
    if _gap(clocks) > max(CLOCK_GAP * _least(clocks), _spread(clocks)):
        yield _finding(f"the clock of {name}", "MHz", clocks, "lock the clocks, or repeat")
    if _gap(heat) > max(HEAT_GAP_C, _spread(heat)):
        yield _finding(f"the temperature of {name}", "°C", heat, "warm all variants up, or repeat")
    if _gap(caps) > CAP_GAP_W:
        mend = "measure all variants under one cap, unless the cap is the step"
        yield _finding(f"the power cap of {name}", "W", caps, mend, severity="warning")


_Series = dict[str, list[float]]


def _by_arm(
    device: _Device, arms: Sequence[Arm], read: Callable[[DeviceConditions], float | None]
) -> _Series:
    """Return what every run of each arm tells of a device; arms that tell nothing are left out."""
    told = {
        a.name: [x for one, d in _of(a.runs) if one == device and (x := read(d)) is not None] for a in arms
    }
    return {name: values for name, values in told.items() if values}


def _of(runs: Sequence[Run]) -> Iterator[tuple[_Device, DeviceConditions]]:
    """Return what runs tell of devices, each with its machine: every one has a ``package-0``."""
    return (
        ((r.machine_id or r.host_id, seen.device), seen)
        for r in runs
        if r.conditions is not None
        for seen in r.conditions.devices
    )


def _named(device: _Device, all_devices: Iterable[_Device]) -> str:
    """Return the device's name, with its machine where another machine has one of that name."""
    machine, name = device
    if len({m for m, n in all_devices if n == name}) == 1 or machine is None:
        return name
    return f"{name} of machine {machine[:_SHOWN]}"


def _least(series: _Series) -> float:
    return min(map(statistics.median, series.values()), default=0.0)


def _gap(series: _Series) -> float:
    return max(map(statistics.median, series.values()), default=0.0) - _least(series)


def _spread(series: _Series) -> float:
    """Return the widest middle half of an arm's values: a gap within it may be chance."""
    enough = [v for v in series.values() if len(v) >= _LEAST_TO_SPREAD]
    quartiles = [statistics.quantiles(v, n=4) for v in enough]
    return max((high - low for low, _, high in quartiles), default=0.0)


def _finding(what: str, unit: str, series: _Series, mend: str, *, severity: str = "info") -> Finding:
    told = ", ".join(f"{name} {statistics.median(values):.4g}" for name, values in series.items())
    return Finding(
        code="CL169",
        severity="warning" if severity == "warning" else "info",
        message=f"{what} differed between variants (medians, {unit}: {told})",
        subject="conditions.devices",
        mend=mend,
    )
