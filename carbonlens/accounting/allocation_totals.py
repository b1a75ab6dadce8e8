"""Totals of runs: what they are billed together, and what their devices drew besides."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from carbonlens.accounting.allocation_bills import Allocation, RunBill, Stretch, readings_of
from carbonlens.domain.estimate import Estimate, add, unknown
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.units import Boundary


class BoundaryTotal(msgspec.Struct, frozen=True, kw_only=True):
    """The total of the runs measured at one boundary.

    Attributes:
        boundary: What the joules include; ``None`` when the runs do not say.
        runs: Number of runs with a known energy.
        billed: Their energy in joules, shared devices counted once.
        unattributed: Joules of their devices that no run is billed, ``None``
            where there are none.
    """

    boundary: Boundary | None
    runs: int
    billed: Estimate
    unattributed: Estimate | None


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """What a selection of runs adds up to.

    Attributes:
        runs: Number of runs that count: those that have a part in no other of the selection.
        nested: Number of runs inside them.
        parts: One per boundary; figures of different boundaries are not summed.
        unknown: Ids of runs that count and whose energy nobody knows.
    """

    runs: int
    nested: int
    parts: tuple[BoundaryTotal, ...]
    unknown: tuple[str, ...]

    @property
    def billed(self) -> Estimate:
        """Energy of all; unknown where runs are of several boundaries."""
        return self.parts[0].billed if len(self.parts) == 1 else unknown("J")

    @property
    def unattributed(self) -> Estimate | None:
        """Energy that no run is billed; unknown where devices are of several boundaries."""
        found = [p.unattributed for p in self.parts if p.unattributed is not None]
        return None if not found else found[0] if len(self.parts) == 1 else unknown("J")


def totals(runs: Sequence[Run], allocation: Allocation, chosen: Collection[str] | None = None) -> Totals:
    """Return what runs add up to, each joule once.

    Args:
        runs: All runs that ``allocation`` was made of.
        allocation: What each is billed.
        chosen: Ids of the runs to sum; all when ``None``.
    """
    known = {r.run_id: r for r in runs}
    selected = [r for r in known.values() if chosen is None or r.run_id in chosen]
    ids = {r.run_id for r in selected}
    billed = {
        r.run_id: own for r in selected if (own := _own(r, allocation.bills[r.run_id], ids)) is not None
    }
    energies = {i: r.total_energy for i, r in billed.items()}
    silent = [r for i, r in billed.items() if energies[i].value is None]
    boundaries = dict.fromkeys(r.boundary for i, r in billed.items() if energies[i].value is not None)
    idle = _idle(allocation.stretches, known, ids)
    parts = []
    for boundary in boundaries:
        mine = [
            energies[i] for i, r in billed.items() if r.boundary == boundary and energies[i].value is not None
        ]
        # A run of unknown energy makes its sum a lower bound; every sum if it has no boundary.
        missing = [unknown("J") for r in silent if r.boundary in (boundary, None)]
        parts.append(
            BoundaryTotal(
                boundary=boundary,
                runs=len(mine),
                billed=add([*mine, *missing], "J"),
                unattributed=idle.get(boundary),
            )
        )
    return Totals(
        runs=len(billed),
        nested=len(selected) - len(billed),
        parts=tuple(parts),
        unknown=tuple(r.run_id for r in silent),
    )


def _own(run: Run, bill: RunBill, ids: Collection[str]) -> Run | None:
    """Return a run with what it is billed beside the selected runs that it lies in; ``None`` of nothing."""
    if not bill.slices:
        return replace(run, energy=bill.readings)
    own = [p for p in bill.slices if not any(i in ids for i in p.inside)]
    if not own:
        return None
    return replace(run, energy=bill.readings if len(own) == len(bill.slices) else readings_of(run, own))


def _idle(
    stretches: Sequence[Stretch], known: Mapping[str, Run], ids: Collection[str]
) -> dict[Boundary | None, Estimate]:
    """Return what nobody is billed of the devices that selected runs used, by boundary."""
    found: dict[Boundary | None, list[Estimate]] = {}
    for stretch in stretches:
        if stretch.unattributed_j and any(i in ids for i in stretch.run_ids):
            reading = _widest_known(stretch, known)
            measured = float(reading.energy_j or 1)
            estimate = reading.estimate.scale(float(stretch.unattributed_j) / measured, "J")
            found.setdefault(reading.boundary, []).append(estimate)
    return {boundary: add(parts, "J") for boundary, parts in found.items()}


def _widest_known(stretch: Stretch, known: Mapping[str, Run]) -> Reading:
    """Return the reading that saw most of a stretch: its relative width is that of the rest too."""
    readings = [
        r
        for i in stretch.run_ids
        for r in known[i].energy
        if r.component == stretch.device.component
        and r.energy_j
        and (stretch.device.device in r.devices or not r.devices)
    ]
    return max(readings, key=lambda r: r.energy_j or 0)
