"""Divide one device's energy among the runs that read it, in one sweep over time.

Between two edges of windows the set of runs is fixed. There the device's power is
the weighted mean of what the runs themselves read, and it is divided

1. by own share of activity, where a run knows it; shares above 100 % together are
   scaled to 100 %;
2. the rest among the runs that do not know theirs: by CPU seconds where all of them
   have some to go by, else in equal parts, a job of several ranks being one part that
   its ranks share equally;
3. what is still left is nobody's (idle, or work that no run recorded).

Running integrals make it O(n log n): a run's part is the difference of an integral
between its end and its start.

Of a device that holds others, what runs are billed of those is taken off first
(``allocation_contents``); only the rest is divided.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, Literal, TypeAlias

import msgspec

from carbonlens.accounting.allocation_bounds import Piece, apportion, bounds, exact
from carbonlens.accounting.allocation_course import Course
from carbonlens.domain.units import US_PER_HOUR

Basis: TypeAlias = Literal["whole", "activity", "cpu_time", "ranks", "equal"]
"""What divided a device: nothing (``whole``), own activity, CPU time, ranks, or heads."""

_ZERO: Final = Decimal(0)
_ONE: Final = Decimal(1)
# Kinds of edges, in the order of one moment; the first and the last are signs too.
_END: Final = -1
_NEXT: Final = 0
_START: Final = 1
_MARK: Final = 2


class Claim(msgspec.Struct, frozen=True, gc=False):
    """One run's reading of one device.

    Attributes:
        run_id: The run; also the order among equals.
        start_us, end_us: Its window; ``start_us < end_us``.
        energy_j: What it read of the whole device.
        hours: Hour and joules, for the shape of its energy over time; may be empty.
        coverage: Share of the window that was read, above 0: the weight of the reading.
        complete: Whether the device drew no more than that; a reading of half a window
            bounds nothing from above.
        share: Its own share of the device's activity (0 to 1), ``None`` if unknown.
        cpu_per_us: CPU seconds a microsecond, ``None`` where they divide nothing.
        job: The job whose rank it is, ``None`` for a run that is no rank.
        label: What it measures; equal parts between labels are a guess.
    """

    run_id: str
    start_us: int
    end_us: int
    energy_j: Decimal
    hours: tuple[tuple[int, Decimal], ...]
    coverage: Decimal
    share: Decimal | None
    cpu_per_us: Decimal | None
    job: str | None
    label: Hashable
    complete: bool = True


class Portion(msgspec.Struct, frozen=True, gc=False):
    """What of a device one claim is billed.

    Attributes:
        billed_j: In whole microjoules, unless the run had the device to itself.
        alone_j: Part of it from times without another claim.
        guessed_j: Part of it from equal parts between runs of different labels.
        basis: What divided most of the rest.
    """

    billed_j: Decimal
    alone_j: Decimal
    guessed_j: Decimal
    basis: Basis


class Divided(msgspec.Struct, frozen=True, gc=False):
    """One stretch of time in which windows hang together.

    Attributes:
        claims: In time order.
        portions: One a claim; with ``unattributed_j`` and ``held_j`` their sum is
            ``energy_j``.
        energy_j: The device's own energy in the stretch.
        held_j: Part of it that is billed as that of devices inside it.
        billed, idle: What runs are billed and what they are not, piece by piece in
            time order; empty unless asked for.
    """

    claims: tuple[Claim, ...]
    portions: tuple[Portion, ...]
    energy_j: Decimal
    unattributed_j: Decimal
    held_j: Decimal = _ZERO
    billed: tuple[Piece, ...] = ()
    idle: tuple[Piece, ...] = ()


def divide(
    claims: Sequence[Claim], contents: Course | None = None, *, traced: bool = False
) -> Iterator[Divided]:
    """Yield each stretch of overlapping claims on one device, divided.

    Args:
        claims: All claims on the device, in any order.
        contents: What is billed of devices inside it, over time.
        traced: Whether to tell when energy was billed and when not.
    """
    group: list[Claim] = []
    end = 0
    for claim in sorted(claims, key=lambda c: (c.start_us, c.end_us, c.run_id)):
        if group and claim.start_us >= end:
            yield _divided(group, contents, traced=traced)
            group = []
        end = max(end, claim.end_us) if group else claim.end_us
        group.append(claim)
    if group:
        yield _divided(group, contents, traced=traced)


def pieces_of(claim: Claim) -> list[Piece]:
    """Return a claim's energy over its window: a piece an hour where rows give the shape, else one.

    Args:
        claim: Its rows may be of several devices; only their proportions count.
    """
    first, last = claim.start_us // US_PER_HOUR, (claim.end_us - 1) // US_PER_HOUR
    rows: dict[int, Decimal] = {}
    for hour, joules in claim.hours:
        if first <= hour <= last and joules > 0:
            rows[hour] = rows.get(hour, _ZERO) + joules
    whole = sum(rows.values(), _ZERO)
    if first == last or whole == 0:
        return [(claim.start_us, claim.end_us, claim.energy_j)]
    pieces: list[Piece] = []
    at = claim.start_us
    for hour in sorted(rows):
        start = max(claim.start_us, hour * US_PER_HOUR)
        upto = min(claim.end_us, (hour + 1) * US_PER_HOUR)
        if start > at:
            pieces.append((at, start, _ZERO))  # Hours without energy have no row.
        pieces.append((start, upto, claim.energy_j * rows[hour] / whole))
        at = upto
    if at < claim.end_us:
        pieces.append((at, claim.end_us, _ZERO))
    return pieces


def _divided(claims: Sequence[Claim], contents: Course | None, *, traced: bool) -> Divided:
    first, last = claims[0].start_us, max(c.end_us for c in claims)
    inside = contents if contents is not None and contents.between(first, last) > 0 else None
    pieces = [pieces_of(c) for c in claims]
    if len(claims) == 1 and claims[0].share in (None, 1) and inside is None:
        energy = claims[0].energy_j
        portion = Portion(billed_j=energy, alone_j=energy, guessed_j=_ZERO, basis="whole")
        return Divided(tuple(claims), (portion,), energy, _ZERO, billed=tuple(pieces[0]) if traced else ())
    sweep = _Sweep(claims, pieces)
    sweep.go()
    whole = [p for claim, of_claim in zip(claims, pieces, strict=True) if claim.complete for p in of_claim]
    least, most = bounds([p for of_claim in pieces for p in of_claim], whole)
    energy = max(sweep.energy, least)
    energy = energy if most is None else min(energy, most)
    scale = energy / sweep.energy if sweep.energy else _ZERO
    energy = rest = exact(energy)
    if inside is not None:
        rest = exact(max(energy - inside.between(first, last), _ZERO))
        sweep = _Sweep(claims, pieces, inside=inside, scale=scale)
        sweep.go()
        scale = rest / sweep.energy if sweep.energy else _ZERO
    raw = [t.sum * scale for t in sweep.taken]
    *billed, idle = apportion([*raw, sweep.idle * scale], rest)
    portions = tuple(_portion(c, t, b, scale) for c, t, b in zip(claims, sweep.taken, billed, strict=True))
    return Divided(
        tuple(claims),
        portions,
        energy,
        idle,
        held_j=energy - rest,
        billed=_scaled([(a, b, j - i) for a, b, j, i in sweep.trace], rest - idle) if traced else (),
        idle=_scaled([(a, b, i) for a, b, _, i in sweep.trace], idle) if traced else (),
    )


def _scaled(pieces: Sequence[Piece], total: Decimal) -> tuple[Piece, ...]:
    """Return the pieces that are not empty, with that sum."""
    whole = sum((j for _, _, j in pieces), _ZERO)
    return tuple((a, b, j * total / whole) for a, b, j in pieces if j > 0) if whole > 0 else ()


@dataclass(slots=True)
class _Taken:
    """What one claim took so far, by what divided it."""

    alone: Decimal = _ZERO
    activity: Decimal = _ZERO
    cpu_time: Decimal = _ZERO
    equal: Decimal = _ZERO
    guessed: Decimal = _ZERO

    @property
    def sum(self) -> Decimal:
        return self.alone + self.activity + self.cpu_time + self.equal


def _portion(claim: Claim, taken: _Taken, billed: Decimal, scale: Decimal) -> Portion:
    by: dict[Basis, Decimal] = {"activity": taken.activity, "cpu_time": taken.cpu_time}
    by["ranks" if claim.job is not None and taken.guessed == 0 else "equal"] = taken.equal
    basis = max(by, key=lambda b: by[b])
    if claim.share is not None:
        basis = "activity"
    elif by[basis] == 0:
        basis = "whole"
    return Portion(
        billed_j=billed,
        alone_j=min(exact(taken.alone * scale), billed),
        guessed_j=min(exact(taken.guessed * scale), billed),
        basis=basis,
    )


@dataclass(slots=True)
class _Job:
    """The ranks of one job: together one of those that share in equal parts."""

    ranks: int = 0
    equal: Decimal = _ZERO
    guessed: Decimal = _ZERO
    seen_equal: Decimal = _ZERO
    seen_guessed: Decimal = _ZERO

    def settle(self, equal: Decimal, guessed: Decimal) -> None:
        """Add what one rank took since the number of ranks last changed."""
        if self.ranks:
            self.equal += (equal - self.seen_equal) / self.ranks
            self.guessed += (guessed - self.seen_guessed) / self.ranks
        self.seen_equal, self.seen_guessed = equal, guessed


@dataclass(slots=True)
class _Sweep:
    """The running integrals of one stretch, and who is active.

    ``inside`` is taken off the device's energy times ``scale``, segment by segment.
    ``trace`` is a row a segment: its start and end, energy, and what of it is nobody's.
    """

    claims: Sequence[Claim]
    pieces: Sequence[Sequence[Piece]]
    inside: Course | None = None
    scale: Decimal = _ONE
    trace: list[tuple[int, int, Decimal, Decimal]] = field(default_factory=list)
    energy: Decimal = _ZERO
    idle: Decimal = _ZERO
    taken: list[_Taken] = field(default_factory=list)
    # Sums over the active pieces and claims.
    _weight: Decimal = _ZERO
    _weighted_power: Decimal = _ZERO
    _active: int = 0
    _knowing: int = 0
    _shares: Decimal = _ZERO
    _unknowing: int = 0
    _without_cpu: int = 0
    _with_cpu: int = 0
    _cpu: Decimal = _ZERO
    # Integrals: joules a claim of weight one took since the stretch began.
    _alone_j: Decimal = _ZERO
    _share_j: Decimal = _ZERO
    _cpu_j: Decimal = _ZERO
    _equal_j: Decimal = _ZERO
    _guessed_j: Decimal = _ZERO
    _jobs: dict[str, _Job] = field(default_factory=dict)
    _present: int = 0
    _labels: Counter[Hashable] = field(default_factory=Counter)

    def go(self) -> None:
        """Pass over all edges in time order, ends before starts."""
        self.taken = [_Taken() for _ in self.claims]
        edges: list[tuple[int, int, int, int]] = []
        for i, (claim, parts) in enumerate(zip(self.claims, self.pieces, strict=True)):
            edges += [(claim.end_us, _END, i, 0), (claim.start_us, _START, i, 0)]
            edges += [(parts[k][0], _NEXT, i, k) for k in range(1, len(parts))]
        edges.sort()
        if self.inside is not None:
            # What is left of a device is not even where what lies inside is not.
            edges += [(t, _MARK, 0, 0) for t in self.inside.marks(edges[0][0], edges[-1][0])]
            edges.sort()
        now = edges[0][0]
        for at, kind, i, k in edges:
            if at > now:
                self._advance(now, at)
                now = at
            if kind == _MARK:
                continue
            if kind == _NEXT:
                self._weigh(i, k - 1, -1)
                self._weigh(i, k, 1)
            else:
                self._weigh(i, 0 if kind == _START else -1, kind)
                self._step(i, kind)

    def _advance(self, start_us: int, end_us: int) -> None:
        """Give out the device's energy in one segment."""
        joules = self._weighted_power / self._weight * (end_us - start_us)
        if self.inside is not None:
            joules = max(joules * self.scale - self.inside.between(start_us, end_us), _ZERO)
        self.energy += joules
        before = self.idle
        self._give(joules)
        self.trace.append((start_us, end_us, joules, self.idle - before))

    def _give(self, joules: Decimal) -> None:
        if self._active == 1 and not self._knowing:
            self._alone_j += joules
            return
        over = max(_ONE, self._shares)
        self._share_j += joules / over
        rest = joules - joules * self._shares / over
        if not self._unknowing:
            self.idle += rest
        elif self._with_cpu and not self._without_cpu:
            self._cpu_j += rest / self._cpu
        else:
            self._equal_j += rest / self._present
            if len(self._labels) > 1:
                self._guessed_j += rest / self._present

    def _weigh(self, i: int, k: int, sign: int) -> None:
        """Start or end a piece; a short window says more of a moment than a long one spread over it."""
        start, end, joules = self.pieces[i][k]
        length = end - start
        weight = self.claims[i].coverage * sign / length
        self._weight += weight
        self._weighted_power += weight * joules / length

    def _step(self, i: int, sign: int) -> None:
        """Start or end a claim."""
        claim, taken = self.claims[i], self.taken[i]
        self._active += sign
        taken.alone += self._alone_j * -sign
        if claim.share is not None:
            self._knowing += sign
            self._shares += claim.share * sign
            taken.activity += claim.share * self._share_j * -sign
            return
        self._unknowing += sign
        if claim.cpu_per_us is None:
            self._without_cpu += sign
        else:
            self._with_cpu += sign if claim.cpu_per_us > 0 else 0
            # What rounding leaves of a sum whose terms are all gone is no CPU time to divide by.
            self._cpu = self._cpu + claim.cpu_per_us * sign if self._with_cpu else _ZERO
            taken.cpu_time += claim.cpu_per_us * self._cpu_j * -sign
        self._count(claim, sign)
        if claim.job is None:
            self._present += sign
            taken.equal += self._equal_j * -sign
            taken.guessed += self._guessed_j * -sign
            return
        job = self._jobs.setdefault(claim.job, _Job())
        job.settle(self._equal_j, self._guessed_j)
        taken.equal += job.equal * -sign
        taken.guessed += job.guessed * -sign
        self._present += (job.ranks == 0) if sign > 0 else -(job.ranks == 1)
        job.ranks += sign

    def _count(self, claim: Claim, sign: int) -> None:
        self._labels[claim.label] += sign
        if not self._labels[claim.label]:
            del self._labels[claim.label]
