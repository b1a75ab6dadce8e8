"""Findings of dividing shared devices, one function a code."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from carbonlens.accounting.allocation_sweep import Basis
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.domain.units import J_PER_KWH

WEAKEST_FIRST: Final[tuple[Basis, ...]] = ("equal", "ranks", "cpu_time", "activity")
SPLIT_BY: Final[Mapping[Basis, str]] = {
    "whole": "undivided",
    "activity": "by its activity",
    "cpu_time": "by CPU time",
    "ranks": "equally by rank",
    "equal": "in equal parts",
}
_MOST_NAMES: Final = 3
_WHOLES: Final = frozenset({"wall", "total"})


def billed_once(
    *, where: str, run_ids: Sequence[str], measured_j: Decimal | int, energy_j: Decimal | int, basis: Basis
) -> Finding:
    """Runs that overlapped read more of a device than it drew; it is billed once.

    Args:
        where: The device.
        run_ids: Runs that overlapped, a run once or more.
        measured_j: Sum of what they read.
        energy_j: What the device drew.
        basis: What divided it; equal heads are a warning, evidence is not.
    """
    ratio = float(energy_j / measured_j) if measured_j else 1.0
    return Finding(
        code="CL320",
        severity="warning" if basis == "equal" else "info",
        message=(
            f"{where} was read by runs that overlap ({named(run_ids)}): together {_kwh(measured_j)}, "
            f"its own {_kwh(energy_j)}; scaled by {ratio:.3g}, {SPLIT_BY[basis]}"
        ),
        mend=(
            "keep the device to one run, or record own shares (NVML process utilisation); "
            "leave host out of a table whose energies are each run's own"
            if basis == "equal"
            else None
        ),
        subject=where,
    )


def whole_beside_parts(runs: Sequence[Run]) -> list[Finding]:
    """On one host some runs count the whole machine while others count parts of it.

    Args:
        runs: Root runs.
    """
    wholes: dict[str, list[Run]] = {}
    parts: dict[str, list[Run]] = {}
    for run in runs:
        if run.host_id is None or run.start_us is None or run.end_us is None:
            continue
        components = {r.component for r in run.energy if r.devices or r.component in _WHOLES}
        if components & _WHOLES:
            wholes.setdefault(run.host_id, []).append(run)
        elif components:
            parts.setdefault(run.host_id, []).append(run)
    found: list[Finding] = []
    for host in sorted(wholes.keys() & parts.keys()):
        doubled = _overlapped(parts[host], wholes[host])
        if doubled:
            found.append(_whole_beside_parts(host, doubled))
    return found


def _whole_beside_parts(host: str, doubled: Sequence[str]) -> Finding:
    return Finding(
        code="CL324",
        severity="warning",
        message=f"runs that read devices of host {host} ({named(doubled)}) overlap others that read the "
        "whole machine: their joules stand in both, and a total over them counts them twice",
        mend="measure all runs of a host with the same sensors",
        subject=host,
    )


def named(run_ids: Sequence[str]) -> str:
    """Return a few ids and how many more there are.

    Args:
        run_ids: At least one; repeats count once.
    """
    once = list(dict.fromkeys(run_ids))
    shown = ", ".join(once[:_MOST_NAMES])
    return shown if len(once) <= _MOST_NAMES else f"{shown} and {len(once) - _MOST_NAMES} more"


def _overlapped(parts: Sequence[Run], wholes: Sequence[Run]) -> list[str]:
    """Return the runs of ``parts`` whose window overlaps one of ``wholes``."""
    merged: list[list[int]] = []
    for start, end in sorted((r.start_us or 0, r.end_us or 0) for r in wholes):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    starts = [m[0] for m in merged]
    found = []
    for run in parts:
        before = bisect_left(starts, run.end_us or 0) - 1
        if before >= 0 and merged[before][1] > (run.start_us or 0):
            found.append(run.run_id)
    return sorted(found)


def _kwh(joules: Decimal | int) -> str:
    value = float(joules)
    return f"{value / J_PER_KWH:.3g} kWh" if value >= J_PER_KWH / 1000 else f"{value:.4g} J"
