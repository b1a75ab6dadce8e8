"""The error that dividing a device adds to one run's part of it (docs/adr/0007-shared-devices.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from carbonlens.accounting.allocation_bills import Allocation, BilledSlice
from carbonlens.accounting.allocation_share import Share
from carbonlens.domain.estimate import worst_grade
from carbonlens.domain.grades import DATASHEET_FACTOR_95, MODEL_FACTOR_95
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.units import Z_95, Grade

_BY_EVIDENCE: Final = math.log(MODEL_FACTOR_95) / Z_95
_BY_HEADS: Final = math.log(DATASHEET_FACTOR_95) / Z_95
_HEADS: Final = frozenset({"equal", "ranks"})
_GRADE_SHARE: Final = 0.10
"""A part of the figure this large gives it its grade (DESIGN law 2)."""


def billed_run(run: Run, allocation: Allocation) -> Run:
    """Return the run with its part of shared devices, and the error of dividing them.

    Args:
        run: One of the runs that the allocation was made of.
        allocation: What each run is billed.
    """
    bill = allocation.bills[run.run_id]
    energy = list(bill.readings)
    for place, reading in enumerate(energy):
        mine = [s for s in bill.shares if s.reading == place]
        if reading is not run.energy[place]:
            energy[place] = _widened(reading, mine, f"allocation:{run.run_id}")
    return replace(run, energy=tuple(energy))


def billed_slice(part: BilledSlice) -> Run:
    """Return a part of a run with what it is billed, and the error of dividing.

    Args:
        part: Of a run's bill.
    """
    energy = list(part.run.energy)
    for place, reading in enumerate(energy):
        mine = [s for s in part.shares if s.reading == place]
        if any(s.billed_j != s.measured_j for s in mine):
            energy[place] = _widened(reading, mine, f"allocation:{part.run.run_id}")
    return replace(part.run, energy=tuple(energy))


def _widened(reading: Reading, shares: Sequence[Share], source: str) -> Reading:
    """Add the error of the division as a source of this run's own, and lower the grade by it."""
    billed = float(reading.energy_j or 0)
    u = math.hypot(*(_sigma(s) for s in shares))
    split = {s.basis: 0.0 for s in shares}
    for share in shares:
        split[share.basis] += float(share.split_j)
    grades: list[Grade | None] = [reading.grade]
    grades += ["E" if b in _HEADS else "D" for b, j in split.items() if j >= _GRADE_SHARE * billed and j]
    spread = math.exp(Z_95 * u / billed) if billed > 0 else 1.0
    return replace(
        reading,
        grade=worst_grade(grades),
        u_by_source_j={**reading.u_by_source_j, source: u} if u else reading.u_by_source_j,
        low_j=None if reading.low_j is None else reading.low_j / spread,
        high_j=None if reading.high_j is None else reading.high_j * spread,
    )


def _sigma(share: Share) -> float:
    """Return one sigma of the division: none where the run had the whole device anyway."""
    split, billed, measured = float(share.split_j), float(share.billed_j), float(share.measured_j)
    if share.held is not None:
        measured -= float(share.held.joules)
    if share.basis in _HEADS:
        return split * _BY_HEADS
    return split * _BY_EVIDENCE * max(1 - billed / measured, 0.0) if measured > 0 else 0.0
