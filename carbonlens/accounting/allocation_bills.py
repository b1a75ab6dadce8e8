"""Bills: what runs are billed of devices, and what devices drew besides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

import msgspec
from msgspec.structs import replace

from carbonlens.accounting.allocation_claims import Device
from carbonlens.accounting.allocation_contents import Held
from carbonlens.accounting.allocation_share import Share
from carbonlens.accounting.allocation_slices import joined
from carbonlens.accounting.allocation_sweep import Basis
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Reading, Run

_ZERO = Decimal(0)


class BilledSlice(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a part of a run is billed, which lies in the same runs throughout.

    Attributes:
        run: The run with the window of the part, and the energy that it is billed.
        places: Where its readings stand in the energy of the whole run.
        inside: Ids of the runs that it lies in, the nearest first; none where it counts itself.
        shares: As of a bill; ``reading`` is a place in the energy of ``run``.
    """

    run: Run
    places: tuple[int, ...]
    inside: tuple[str, ...]
    shares: tuple[Share, ...]


class RunBill(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one run is billed.

    Attributes:
        readings: The run's readings with their billed energy; widths scale with
            it, and the error of dividing is not in them (it cancels in a total).
        shares: One per reading and device that could be shared; of a run in slices, one a slice.
        slices: What of it lies in which other runs; none of a run that counts for itself.
    """

    run_id: str
    readings: tuple[Reading, ...]
    shares: tuple[Share, ...]
    slices: tuple[BilledSlice, ...] = ()

    @property
    def root(self) -> bool:
        """Whether it counts in totals, in part at least; other runs lie wholly in others."""
        return not self.slices or any(not part.inside for part in self.slices)


class Stretch(msgspec.Struct, frozen=True, kw_only=True):
    """A device over windows of root runs that hang together, where it was divided.

    Attributes:
        energy_j: The device's own energy; billed, unattributed and elsewhere sum to it.
        measured_j: Sum of what the runs read.
        unattributed_j: Idle, or the work of what no run recorded.
        elsewhere_j: On other lines: what devices inside this one are billed, or idle
            that lies in the energy of a device that holds this one.
        run_ids: In time order.
        held: What of ``elsewhere_j`` is billed as that of devices inside.
    """

    device: Device
    start_us: int
    end_us: int
    energy_j: Decimal
    measured_j: Decimal
    unattributed_j: Decimal
    basis: Basis
    run_ids: tuple[str, ...]
    elsewhere_j: Decimal = _ZERO
    held: Held | None = None


class Allocation(msgspec.Struct, frozen=True, kw_only=True):
    """What every run is billed, and what devices drew besides."""

    bills: Mapping[str, RunBill]
    stretches: tuple[Stretch, ...]
    findings: tuple[Finding, ...]


def bill_of(run: Run, parts: Sequence[BilledSlice]) -> RunBill:
    """Return what a run is billed: its slices, together and apart.

    Args:
        run: As measured.
        parts: Its slices in their order, billed.
    """
    if len(parts) == 1:
        (one,) = parts
        slices = (one,) if one.inside or run.parent_run_id else ()
        return RunBill(run_id=run.run_id, readings=one.run.energy, shares=one.shares, slices=slices)
    return RunBill(
        run_id=run.run_id,
        readings=readings_of(run, parts),
        shares=tuple(replace(s, reading=p.places[s.reading]) for p in parts for s in p.shares),
        slices=tuple(replace(p, run=replace(p.run, run_id=run.run_id)) for p in parts),
    )


def by_name(stretch: Stretch, names: Mapping[str, str]) -> Stretch:
    """Return a stretch with the runs' own names, each once, in the place of their slices'."""
    held = stretch.held
    return replace(
        stretch,
        run_ids=tuple(dict.fromkeys(names[i] for i in stretch.run_ids)),
        held=None
        if held is None
        else held._replace(run_ids=tuple(dict.fromkeys(names[i] for i in held.run_ids))),
    )


def readings_of(run: Run, parts: Iterable[BilledSlice]) -> tuple[Reading, ...]:
    """Return the readings of some slices of a run together; those that no slice has are left out.

    Args:
        run: As measured.
        parts: Of its slices.
    """
    mine: dict[int, list[Reading]] = {}
    for part in parts:
        for place, reading in zip(part.places, part.run.energy, strict=True):
            mine.setdefault(place, []).append(reading)
    return tuple(joined(run.energy[place], mine[place]) for place in sorted(mine))
