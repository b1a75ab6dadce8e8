"""A run's phases as they are shown: each with its share, and a line for what lies in none."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

import msgspec

from carbonlens.domain.estimate import Estimate, add, unknown
from carbonlens.domain.run import Run
from carbonlens.domain.tokens import units_of
from carbonlens.domain.units import US_PER_S
from carbonlens.reporting import format as fmt

_SHARE_PLACES: Final = 1


class PhaseLine(msgspec.Struct, frozen=True, kw_only=True):
    """One phase, or without a name what lies in none.

    Attributes:
        units: Functional units done in it; ``None`` where none were counted, or where tokens are
            the units: those are known of the run as a whole.
        share: Percent of the run's energy, to one decimal; the shares of all lines sum to
            100.0. ``None`` where an energy is not known or is a bound.
    """

    name: str | None
    entries: int | None
    duration_s: float
    energy: Estimate
    units: Decimal | None
    share: float | None


def phase_lines(run: Run) -> tuple[PhaseLine, ...]:
    """Return a run's phases in the order of their first entry, and the rest of the run.

    The rest is the run without its phases, so that time and energy sum to the run's. It
    holds the energy of phases whose own is not known.
    """
    rest = [] if not run.phases else _rest(run)
    energies = [*(p.energy for p in run.phases), *(line.energy for line in rest)]
    shares = _shares(energies, run.total_energy)
    named = [
        PhaseLine(
            name=p.name, entries=p.entries, duration_s=p.duration_s, energy=p.energy, units=p.units, share=s
        )
        for p, s in zip(run.phases, shares, strict=False)
    ]
    return (*named, *(msgspec.structs.replace(line, share=shares[-1]) for line in rest))


def _rest(run: Run) -> list[PhaseLine]:
    seconds = max((run.duration_s or 0.0) - sum(p.duration_s for p in run.phases), 0.0)
    known = [p for p in run.phases if p.energy_j is not None]
    if round(seconds * US_PER_S) == 0 and len(known) == len(run.phases):
        return []
    energy = run.total_energy
    if known:
        energy = energy.minus(add((p.energy for p in known), "J"))
        if energy.low is not None and energy.high is not None:
            # A difference that is an energy: it is not negative.
            energy = msgspec.structs.replace(energy, bounds=(max(energy.low, 0.0), energy.high))
    if energy.state == "unknown" or energy.value is None or energy.value <= 0:
        energy = unknown("J")
    told = [p.units for p in run.phases if p.units is not None]
    units = None if run.units is None or _are_tokens(run) else run.units - sum(told, Decimal(0))
    return [
        PhaseLine(name=None, entries=None, duration_s=seconds, energy=energy, units=units or None, share=None)
    ]


def _are_tokens(run: Run) -> bool:
    """Tell whether a run's units are its tokens, which are counted for it as a whole: none is the rest's."""
    counted = units_of(run.tokens, run.unit)
    return counted is not None and counted == run.units and all(p.units is None for p in run.phases)


def _shares(energies: Sequence[Estimate], total: Estimate) -> Sequence[float | None]:
    known = [e.value for e in energies if e.value is not None and e.state == "known"]
    whole = sum(known)
    if not whole or total.state != "known":
        return [None] * len(energies)
    rounded = iter(fmt.apportion([100.0 * v / whole for v in known], _SHARE_PLACES))
    return [next(rounded) if e.value is not None and e.state == "known" else None for e in energies]
