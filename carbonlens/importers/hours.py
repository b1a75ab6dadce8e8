"""Which UTC hours the energy of a trace fell into, so that an hour's own factor meets its own joules."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from carbonlens.domain.limits import MOST_HOURS
from carbonlens.domain.run import HourEnergy
from carbonlens.domain.units import US_PER_HOUR, US_PER_S
from carbonlens.importers.records import MICRO

if TYPE_CHECKING:
    from carbonlens.importers.contract import Array, SampleKind


def split(
    t_us: Array, values: Array, window: tuple[float, float], hold_us: float, *, kind: SampleKind
) -> dict[int, float]:
    """Return the share of each hour in the energy of samples, in joules that need not sum to it.

    Args:
        t_us: Times, UTC microseconds.
        values: Watts, or joules as the kind says.
        window: Start and end of what is integrated.
        hold_us: Longest time that a power sample stands for.
        kind: What the values are.
    """
    import numpy as np

    good = np.isfinite(t_us) & np.isfinite(values)
    times, told = (t_us, values) if good.all() else (t_us[good], values[good])
    if (np.diff(times) < 0).any():
        order = np.argsort(times, kind="stable")
        times, told = times[order], told[order]
    if not len(times):
        return {}
    if kind == "delta":
        places = (times // US_PER_HOUR).astype(np.int64)
        names, where = np.unique(places, return_inverse=True)
        return dict(zip(names.tolist(), np.bincount(where, weights=told).tolist(), strict=True))
    first, last = int(window[0] // US_PER_HOUR), int(max(window[1] - 1, window[0]) // US_PER_HOUR)
    if first == last or last - first > MOST_HOURS:
        # A span beyond a year is a time that was damaged: the ledger takes the hour of the start too.
        return {first: 1.0}
    edges = np.array([window[0], *(h * US_PER_HOUR for h in range(first + 1, last + 1)), window[1]])
    if kind == "counter":
        sums = np.concatenate(([0.0], np.cumsum(np.maximum(np.diff(told), 0.0))))
        at_edges = np.interp(edges, times, sums)
    else:
        ends = times + (hold_us or np.inf)
        np.minimum(ends[:-1], times[1:], out=ends[:-1])
        ends[-1] = max(min(ends[-1], window[1]), times[-1])
        parts = ends - times
        parts *= told
        parts /= US_PER_S
        sums = np.zeros(len(times) + 1)
        np.cumsum(parts, out=sums[1:])
        # Only the samples beside an edge tell what lies before it.
        found = np.searchsorted(times, edges, side="right")
        near = np.unique(np.clip(np.concatenate((found - 1, found)), 0, len(times) - 1))
        corners = np.column_stack((times[near], ends[near])).ravel()
        at_edges = np.interp(edges, corners, np.column_stack((sums[near], sums[near + 1])).ravel())
    shares = np.diff(at_edges).tolist()
    return {first + i: share for i, share in enumerate(shares) if share}


def add(sums: dict[int, float], shares: Mapping[int, float], energy_j: float) -> None:
    """Add an energy to the sums of its hours, by their shares."""
    whole = sum(shares.values())
    if not whole:
        return
    for hour, share in shares.items():
        sums[hour] = sums.get(hour, 0.0) + energy_j * share / whole


def rows(component: str, sums: Mapping[int, float], energy_j: Decimal) -> tuple[HourEnergy, ...]:
    """Return rows that sum to a component's energy exactly; none where all of it is in one hour.

    Args:
        component: Whose energy it is.
        sums: Hour to joules.
        energy_j: What the rows have to sum to.
    """
    whole = sum(sums.values())
    if len(sums) < 2 or not whole:
        return ()
    made, given, seen = [], Decimal(0), 0.0
    last = max(sums)
    for hour in sorted(sums):
        seen += sums[hour]
        # Running sums are rounded, not the parts, so that nothing is lost.
        upto = energy_j if hour == last else (energy_j * Decimal(repr(seen / whole))).quantize(MICRO)
        made.append(HourEnergy(hour_utc=hour, component=component, energy_j=upto - given))
        given = upto
    return tuple(made)
