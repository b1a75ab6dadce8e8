"""Slices: a run cut where what it lies in changes, and put together again.

Slices of a run sum to it exactly. Where rows of hours do not tell when it used its
energy, that is taken as even, and a source of its own says how unsure that is; it
cancels where the slices are put together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from itertools import pairwise
from typing import Final, NamedTuple

from msgspec.structs import replace

from carbonlens.accounting.allocation_bounds import MICROJOULE
from carbonlens.accounting.allocation_claims import claim_of, is_storable
from carbonlens.accounting.allocation_course import within
from carbonlens.accounting.allocation_sweep import pieces_of
from carbonlens.domain.estimate import worst_grade
from carbonlens.domain.money import Money
from carbonlens.domain.run import Conditions, HourEnergy, Reading, Run
from carbonlens.domain.units import US_PER_HOUR, US_PER_S, Z_95

_EXACT: Final = Context(prec=50)
_ZERO: Final = Decimal(0)
_ONE: Final = Decimal(1)
_LEAST: Final = Decimal("1E-6")
"""Smallest part of units, money and kilograms that is kept."""


class Stay(NamedTuple):
    """Some readings of a run, by their places, while they lie in the same runs, nearest first."""

    start_us: int
    end_us: int
    places: tuple[int, ...]
    inside: tuple[str, ...]


class Slice(NamedTuple):
    """A part of a run.

    Attributes:
        run: The run with the window and the energy of the part.
        places: Where its readings stand in the energy of the whole.
        inside: Ids of the runs that it lies in, the nearest first; none where it counts itself.
    """

    run: Run
    places: tuple[int, ...]
    inside: tuple[str, ...]


def cut(run: Run, stays: Sequence[Stay]) -> tuple[Slice, ...]:
    """Return a run cut into its stays, in their order; together they are the run.

    Args:
        run: Of a known window.
        stays: Each reading once at each moment.
    """
    if len(stays) == 1:
        return (Slice(run, stays[0].places, stays[0].inside),)
    with localcontext(_EXACT):
        parts = {place: _parts(run, place, stays) for place in range(len(run.energy))}
        whole = _portions(run, stays, parts)
        made = []
        for k, stay in enumerate(stays):
            first, last = stay.start_us, stay.end_us
            made.append(
                replace(
                    run,
                    start_us=first,
                    end_us=last,
                    duration_s=(last - first) / US_PER_S,
                    energy=tuple(parts[p][k] for p in stay.places),
                    energy_by_hour=_hours(run, stays, k),
                    units=_share(run.units, whole, k),
                    emissions_reported_kg=_share(run.emissions_reported_kg, whole, k),
                    cost=_cost(run.cost, whole, k),
                    conditions=_conditions(run, stay),
                )
            )
    return tuple(Slice(r, s.places, s.inside) for r, s in zip(made, stays, strict=True))


def joined(whole: Reading, parts: Sequence[Reading]) -> Reading:
    """Return a reading made of what its slices are billed; as it was where that is all of it.

    Args:
        whole: As measured.
        parts: Of its slices.
    """
    if len(parts) == 1:
        return parts[0]
    known = [p.energy_j for p in parts if p.energy_j is not None]
    energy = sum(known, _ZERO) if len(known) == len(parts) else None
    if energy is None or energy == whole.energy_j:
        return whole
    sources: dict[str, float] = {}
    for part in parts:
        for name, u in part.u_by_source_j.items():
            sources[name] = sources.get(name, 0.0) + u
    changed = next((p for p in parts if p.divided != whole.divided), parts[0])
    return replace(
        whole,
        energy_j=energy,
        method=changed.method,
        grade=worst_grade([p.grade for p in parts]),
        u_random_j=math.hypot(*(p.u_random_j for p in parts)),
        u_by_source_j={n: u for n, u in sources.items() if abs(u) > 1e-9 * float(energy)},
        low_j=_sum([p.low_j for p in parts]),
        high_j=_sum([p.high_j for p in parts]),
        dynamic_j=_exact_sum([p.dynamic_j for p in parts]),
        divided=True,
    )


def _sum(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return math.fsum(known) if len(known) == len(values) else None


def _exact_sum(values: Sequence[Decimal | None]) -> Decimal | None:
    known = [v for v in values if v is not None]
    return sum(known, _ZERO) if len(known) == len(values) else None


def _parts(run: Run, place: int, stays: Sequence[Stay]) -> dict[int, Reading]:
    """Return a reading in each stay that has it; running sums are rounded, so that they sum to it."""
    reading = run.energy[place]
    mine = [k for k, stay in enumerate(stays) if place in stay.places]
    if len(mine) == 1:
        return {mine[0]: reading}
    window = (run.end_us or 0) - (run.start_us or 0)
    times = [Decimal(stays[k].end_us - stays[k].start_us) / window for k in mine]
    if reading.energy_j is None or not is_storable(reading.energy_j):
        # What is unknown is unknown in each; what no ledger could hold is in one.
        first, *rest = mine
        kept = replace(reading, covered_s=_times(reading.covered_s, times[0]))
        return {first: kept} | {k: replace(reading, energy_j=None, state="unknown") for k in rest}
    energy = reading.energy_j
    pieces = pieces_of(claim_of(run, reading, energy))
    found = [within(pieces, stays[k].start_us, stays[k].end_us) for k in mine]
    made: dict[int, Reading] = {}
    given = seen = _ZERO
    for k, one, time in zip(mine, found, times, strict=True):
        seen += one.joules
        upto = energy if k == mine[-1] else min(_floored(seen), energy)
        made[k] = _part(run, reading, upto - given, time, -one.u_j if stays[k].inside else one.u_j)
        given = upto
    return made


def _part(run: Run, reading: Reading, energy: Decimal, time: Decimal, where_j: float) -> Reading:
    """Return a part of a reading; ``where_j`` is one sigma of how much of it lies there, signed."""
    whole = reading.energy_j or _ZERO
    share = energy / whole if whole else time
    part = float(share)
    sources = {name: u * part for name, u in reading.u_by_source_j.items()}
    low, high = (None if end is None else end * part for end in (reading.low_j, reading.high_j))
    if where_j and (sources or reading.u_random_j or low is not None or high is not None):
        sources[f"nested:{run.run_id}"] = where_j
        spread = math.exp(Z_95 * abs(where_j) / float(energy)) if energy else 1.0
        low, high = (None if low is None else low / spread), (None if high is None else high * spread)
    return replace(
        reading,
        energy_j=energy,
        u_random_j=reading.u_random_j * math.sqrt(part),
        u_by_source_j=sources,
        low_j=low,
        high_j=high,
        covered_s=_times(reading.covered_s, time),
        dynamic_j=None if reading.dynamic_j is None else _floored(reading.dynamic_j * share),
    )


def _portions(run: Run, stays: Sequence[Stay], parts: dict[int, dict[int, Reading]]) -> dict[int, Decimal]:
    """Return which share of what is counted of the whole run falls into each stay, summing to 1.

    As its first reading does, with which units are split over hours too; by time without one.
    Of stays side by side the one that counts itself has all of it: what is done is in a sum
    where any of its energy is.
    """
    whole = run.energy[0].energy_j if run.energy else None
    weights: dict[int, Decimal] = {}
    for start, end in pairwise(sorted({t for s in stays for t in (s.start_us, s.end_us)})):
        here = [k for k, s in enumerate(stays) if s.start_us <= start and s.end_us >= end]
        first = next((k for k in here if 0 in stays[k].places), here[0])
        bearer = first if not stays[first].inside else next((k for k in here if not stays[k].inside), first)
        time = Decimal(end - start)
        if whole:
            length = stays[first].end_us - stays[first].start_us
            time = (parts[0][first].energy_j or _ZERO) * time / length
        weights[bearer] = weights.get(bearer, _ZERO) + time
    total = sum(weights.values(), _ZERO)
    return {k: w / total for k, w in sorted(weights.items())} if total else {min(weights): _ONE}


def _share(amount: Decimal | None, portions: dict[int, Decimal], k: int) -> Decimal | None:
    """Return the part of an exact amount in one stay; the parts sum to it."""
    if amount is None:
        return None
    if k not in portions:
        return None if not portions else amount * 0
    before = [j for j in portions if j < k]
    upto = sum((portions[j] for j in before), _ZERO)
    start = (amount * upto).quantize(_LEAST) if before else _ZERO
    end = amount if k == max(portions) else (amount * (upto + portions[k])).quantize(_LEAST)
    return end - start


def _cost(cost: Money | None, portions: dict[int, Decimal], k: int) -> Money | None:
    part = None if cost is None else _share(cost.amount, portions, k)
    return None if cost is None or part is None else replace(cost, amount=part)


def _hours(run: Run, stays: Sequence[Stay], k: int) -> tuple[HourEnergy, ...]:
    """Return the rows of hours in one stay: what of each hour's energy lies there."""
    start, end = run.start_us or 0, run.end_us or 0
    rows = []
    for row in run.energy_by_hour:
        first, last = max(start, row.hour_utc * US_PER_HOUR), min(end, (row.hour_utc + 1) * US_PER_HOUR)
        a, b = max(first, stays[k].start_us), min(last, stays[k].end_us)
        if b <= a:
            continue
        upto, before = (_floored(row.energy_j * (t - first) / (last - first)) for t in (b, a))
        rows.append(replace(row, energy_j=(row.energy_j if b == last else upto) - before))
    return tuple(rows)


def _conditions(run: Run, stay: Stay) -> Conditions | None:
    seen = run.conditions
    if seen is None or seen.cpu_s is None:
        return seen
    share = (stay.end_us - stay.start_us) / ((run.end_us or 0) - (run.start_us or 0))
    return replace(seen, cpu_s=seen.cpu_s * share, wall_s=(stay.end_us - stay.start_us) / US_PER_S)


def _times(seconds: float | None, share: Decimal) -> float | None:
    return None if seconds is None else seconds * float(share)


def _floored(joules: Decimal) -> Decimal:
    return joules.quantize(MICROJOULE, rounding=ROUND_FLOOR)
