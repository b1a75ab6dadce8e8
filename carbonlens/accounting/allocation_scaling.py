"""The reading of a part of a device: its energy, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from msgspec.structs import replace

from carbonlens.accounting import allocation_findings as findings
from carbonlens.accounting.allocation_bounds import MICROJOULE
from carbonlens.accounting.allocation_contents import Evidence, Held
from carbonlens.accounting.allocation_share import Share
from carbonlens.domain.estimate import worst_grade
from carbonlens.domain.run import Reading
from carbonlens.domain.units import Z_95

_WORTH_GRADING: Final = 0.10
"""A part of the reading this large passes its grade on (DESIGN law 2)."""


def evidence_of(reading: Reading, factor: float) -> Evidence:
    """Return how sure a reading times ``factor`` is.

    Args:
        reading: Of known energy.
        factor: Not negative.
    """
    estimate = reading.estimate
    known = not estimate.has_unknown_width and estimate.bounds is None
    return Evidence(reading.u_random_j, reading.u_by_source_j, reading.grade, known).scaled(factor)


def scaled(reading: Reading, shares: Sequence[Share], billed: Decimal) -> Reading:
    """Return a reading of part of a device; ``divided``, so that it is not divided again.

    Its width scales with it. Of a device that holds others, what those are billed is
    a difference: their errors come with the opposite sign, so that they cancel in a
    total over all, and a width of its own says what is not known of it.

    Args:
        reading: Of the whole.
        shares: The run's shares of the devices of the reading.
        billed: Their sum.
    """
    measured = reading.energy_j or Decimal(0)
    held = [s.held for s in shares if s.held is not None]
    held_j = sum((h.joules for h in held), Decimal(0))
    factor = billed / measured if measured else Decimal(0)
    gross = float((billed + held_j) / measured) if measured else 0.0
    bases = [s.basis for s in shares]
    basis = next(b for b in (*findings.WEAKEST_FIRST, "whole") if b in bases)
    how = [f"{float(factor):.1%} of a shared device ({findings.SPLIT_BY[basis]})"] if basis != "whole" else []
    how += ["less what runs on devices inside it are billed"] if held_j else []
    how = how or [f"{float(factor):.1%} of a shared device ({findings.SPLIT_BY[basis]})"]
    low, high = (None if end is None else end * gross for end in (reading.low_j, reading.high_j))
    part = replace(
        reading,
        energy_j=billed,
        method=f"{reading.method}; {', '.join(how)}",
        u_random_j=reading.u_random_j * gross,
        u_by_source_j={name: u * gross for name, u in reading.u_by_source_j.items()},
        low_j=None if low is None else max(low - float(held_j), 0.0),
        high_j=None if high is None else max(high - float(held_j), 0.0),
        dynamic_j=None if reading.dynamic_j is None else (reading.dynamic_j * factor).quantize(MICROJOULE),
        divided=True,
    )
    for one in held:
        part = _less(part, one, shares[0].device.host_id)
    return part


def _less(part: Reading, held: Held, host: str) -> Reading:
    """Return a difference with the errors of what was taken off it."""
    left, taken = float(part.energy_j or 0), float(held.joules)
    grade = part.grade
    if taken >= _WORTH_GRADING * (left + taken):
        grade = worst_grade([part.grade, held.evidence.grade])
    if not held.evidence.known and part.low_j is None:
        # What was taken off has no interval, so that the rest has none either.
        return replace(part, grade=grade, u_random_j=0.0, u_by_source_j={})
    sources = dict(part.u_by_source_j)
    for name, u in held.evidence.by_source_j.items():
        sources[name] = sources.get(name, 0.0) - u
    if held.where_j:
        sources[f"inside:{host}:{','.join(held.run_ids)}"] = held.where_j
    if not held.sure and taken > 0:
        # Up to what was read: perhaps nothing of it lies inside.
        u = left * math.log1p(taken / left) / Z_95 if left > 0 else taken / Z_95
        sources[f"contents:{host}"] = u
    low, high = part.low_j, part.high_j
    if not held.sure and high is not None:
        high += taken
    return replace(
        part,
        grade=grade,
        u_random_j=math.hypot(part.u_random_j, held.evidence.random_j),
        u_by_source_j=sources,
        low_j=low,
        high_j=high,
    )
