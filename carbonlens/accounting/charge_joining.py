"""Charges joined to runs: by resource, else by tags, else by time at the same place.

A charge is shared once, over the runs that match it in the first of these ways; by time at a
place alone it never falls on runs that name other resources than it does. What no run carries
stays on a line of its own (``run_id`` of ``None``). The shares of each of its costs and that
line sum to the cost exactly.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_DOWN, Decimal, localcontext
from fractions import Fraction
from itertools import accumulate
from typing import Final, Literal

import msgspec

from carbonlens.accounting.focus_identity import summed
from carbonlens.domain.charge import Charge
from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.money import Money

How = Literal["resource", "tags", "time", "none"]

COSTS: Final = ("billed", "effective", "list_cost", "contracted")
TAG_KEYS: Final = ("run_id", "job_id", "study", "workload", "model", "team")
"""Tags by which a charge finds its runs, where the caller names no others."""

_DIGITS: Final = 60
_PARTS: Final = 10**18
"""Parts of a microsecond to which runs at one moment share it."""

_LEAST: Final = -12
"""Exponent of the smallest part of a share: the ledger keeps 12 decimals of an amount."""


class Consumer(msgspec.Struct, frozen=True, kw_only=True):
    """A run as bills may know it.

    Attributes:
        run_id: Of the run.
        start_us: When it started, UTC microseconds; ``end_us`` when it ended.
        resources: Ids of what it ran on: instances, nodes, pods.
        tags: Its tags, and its labels (``study``, ``team``) as tags.
        site, region: Where it ran.
        weight: Its measured share, in any one unit (kWh, device hours); ``None`` where nothing
            was measured.
    """

    run_id: str
    start_us: int
    end_us: int
    resources: tuple[str, ...] = ()
    tags: Mapping[str, str] = {}  # a frozen record's default is never mutated
    site: str | None = None
    region: str | None = None
    weight: Decimal | None = None


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One run's part of a charge, or what no run carries.

    Attributes:
        charge_id: The charge.
        run_id: The run; ``None`` for the part that is unallocated.
        how: By what the runs of the charge were found.
        share: Of the charge, 0 to 1.
        billed, effective, list_cost, contracted: The part of each cost the charge states.
    """

    charge_id: str
    run_id: str | None
    how: How
    share: float
    billed: Money | None = None
    effective: Money | None = None
    list_cost: Money | None = None
    contracted: Money | None = None


class Joined(msgspec.Struct, frozen=True, kw_only=True):
    """Parts of all charges, in the order of the charges, and what was found on the way."""

    parts: tuple[Part, ...]
    findings: tuple[Finding, ...] = ()

    def amounts(self, cost: str) -> dict[str, dict[str | None, Money]]:
        """Return the sums of one cost by currency and run; ``None`` is what is unallocated.

        Args:
            cost: One of ``COSTS``.
        """
        groups: dict[tuple[str, str | None], list[Money]] = {}
        for part in self.parts:
            amount: Money | None = getattr(part, cost)
            if amount is not None:
                groups.setdefault((amount.currency, part.run_id), []).append(amount)
        sums: dict[str, dict[str | None, Money]] = {}
        for (currency, run_id), amounts in groups.items():
            total = summed(amounts)
            if total is not None:
                sums.setdefault(currency, {})[run_id] = total
        return sums


def join(
    charges: Iterable[Charge],
    consumers: Sequence[Consumer],
    *,
    tag_keys: Sequence[str] = TAG_KEYS,
    wholes: Mapping[str, Decimal] | None = None,
) -> Joined:
    """Share charges over runs.

    A run carries a charge only for the time in which they overlap. Where all runs of a charge
    state a weight, they share it by weight (spread evenly over a run's time), whole, or as
    parts of ``wholes``. Otherwise they share by time: each moment of the charge's period goes
    to the runs of that moment in equal parts, and what no run covers is unallocated.

    Args:
        charges: Lines of bills.
        consumers: The runs; none is a part of another.
        tag_keys: Tags by which a charge finds runs: all that both state must be equal.
        wholes: Charge id to the weight that its whole is: what a resource could have done.
            Runs that weigh more together share the whole.
    """
    index = _Index(consumers, tag_keys)
    parts: list[Part] = []
    unweighted: set[str] = set()
    for charge in charges:
        how, runs = index.matching(charge)
        if runs and any(r.weight is None for r in runs) and any(r.weight is not None for r in runs):
            unweighted.update(r.run_id for r in runs if r.weight is None)
        parts += _parts(charge, how, runs, (wholes or {}).get(charge.charge_id))
    return Joined(parts=tuple(parts), findings=_said(parts, unweighted))


class _Spans:
    """Runs in order of their start, to find those that overlap a period."""

    def __init__(self, runs: Iterable[Consumer]) -> None:
        self.runs = sorted(runs, key=lambda r: (r.start_us, r.run_id))
        self._starts = [r.start_us for r in self.runs]
        # The latest end so far never falls, so that it can be searched.
        self._ends = list(accumulate((r.end_us for r in self.runs), max))

    def within(self, charge: Charge) -> list[Consumer]:
        first = bisect_right(self._ends, charge.start_us)
        last = bisect_left(self._starts, charge.end_us)
        return [r for r in self.runs[first:last] if _overlap_us(charge, r) > 0]


class _Index:
    """Runs by what a charge may know of them."""

    def __init__(self, consumers: Sequence[Consumer], tag_keys: Sequence[str]) -> None:
        self._tag_keys = tag_keys
        self._resources = _grouped((name, c) for c in consumers for name in c.resources)
        self._tags = _grouped(((k, c.tags[k]), c) for c in consumers for k in tag_keys if k in c.tags)
        places = [(("site", c.site), c) for c in consumers if c.site is not None]
        places += [(("region", c.region), c) for c in consumers if c.region is not None]
        self._places = _grouped(places)

    def matching(self, charge: Charge) -> tuple[How, list[Consumer]]:
        """Return the runs of the first way that finds any."""
        for name in (charge.resource_id, charge.tags.get("AllocatedResourceId")):
            if name is not None and name in self._resources:
                found = self._resources[name].within(charge)
                if found:
                    return "resource", found
        found = self._by_tags(charge)
        if found:
            return "tags", found
        for place in (("site", charge.site), ("region", charge.region)):
            if place[1] is not None and place in self._places:
                found = [r for r in self._places[place].within(charge) if not _ran_elsewhere(r, charge)]
                if found:
                    return "time", found
        return "none", []

    def _by_tags(self, charge: Charge) -> list[Consumer]:
        stated = [(k, charge.tags[k]) for k in self._tag_keys if k in charge.tags]
        pairs = [pair for pair in stated if pair in self._tags]
        found = {r.run_id: r for pair in pairs for r in self._tags[pair].within(charge)}
        return [r for r in found.values() if all(r.tags.get(k, v) == v for k, v in stated)]


def _ran_elsewhere(run: Consumer, charge: Charge) -> bool:
    """Tell whether charge and run both name resources, and no common one."""
    named = {charge.resource_id, charge.tags.get("AllocatedResourceId")} - {None}
    return bool(named and run.resources) and named.isdisjoint(run.resources)


def _grouped(pairs: Iterable[tuple[object, Consumer]]) -> dict[object, _Spans]:
    groups: dict[object, list[Consumer]] = {}
    for key, consumer in pairs:
        groups.setdefault(key, []).append(consumer)
    return {key: _Spans(runs) for key, runs in groups.items()}


def _overlap_us(charge: Charge, run: Consumer) -> int:
    return min(charge.end_us, run.end_us) - max(charge.start_us, run.start_us)


def _parts(charge: Charge, how: How, runs: Sequence[Consumer], whole: Decimal | None) -> list[Part]:
    by_time = any(r.weight is None for r in runs)
    weights = _moments(charge, runs) if by_time else _weights(charge, runs)
    total = sum(weights, Fraction(0))
    base = Fraction(charge.end_us - charge.start_us) if by_time else max(Fraction(whole or 0), total)
    if not runs or base == 0:
        costs = {name: getattr(charge, name) for name in COSTS}
        return [Part(charge_id=charge.charge_id, run_id=None, how=how, share=1.0, **costs)]
    shares = [w / base for w in weights]
    divided = {name: _divided(getattr(charge, name), shares) for name in COSTS}
    names: list[str | None] = [r.run_id for r in runs]
    rest = 1 - sum(shares, Fraction(0))
    every = zip([*names, None], [*shares, rest], strict=True)
    return [
        Part(
            charge_id=charge.charge_id,
            run_id=name,
            how=how,
            share=float(share),
            **{cost: amounts[place] for cost, amounts in divided.items()},
        )
        for place, (name, share) in enumerate(every)
        if name is not None or share
    ]


def _weights(charge: Charge, runs: Sequence[Consumer]) -> list[Fraction]:
    """Return the weight of each run within a charge's period, spread evenly over its time."""
    return [
        max(Fraction(r.weight or 0), Fraction(0)) * Fraction(_overlap_us(charge, r), r.end_us - r.start_us)
        for r in runs
    ]


def _moments(charge: Charge, runs: Sequence[Consumer]) -> list[Fraction]:
    """Return the time of a charge's period that falls to each run; they sum to the time with any run.

    Runs at one moment share it in equal parts: two runs at once do not use an hour twice.
    """
    spans = [(max(charge.start_us, r.start_us), min(charge.end_us, r.end_us)) for r in runs]
    changes: dict[int, int] = {}
    for first, last in spans:
        changes[first] = changes.get(first, 0) + 1
        changes[last] = changes.get(last, 0) - 1
    upto: dict[int, int] = {}
    before = active = covered = done = 0
    for at in sorted(changes):
        if active:
            covered += at - before
            # Whole numbers, because fractions of many runs at once have denominators without end.
            done += (at - before) * _PARTS // active
        upto[at] = done
        before, active = at, active + changes[at]
    parts = [upto[last] - upto[first] for first, last in spans]
    whole = sum(parts)
    return [Fraction(part * covered, whole) if whole else Fraction(0) for part in parts]


def _divided(cost: Money | None, shares: Sequence[Fraction]) -> list[Money | None]:
    """Return the parts of a cost and its rest, which sum to it exactly.

    What the rounding of parts leaves goes to the largest part, and to the rest only where
    there is one.
    """
    if cost is None:
        return [None] * (len(shares) + 1)
    with localcontext(prec=_DIGITS):
        exponent = cost.amount.as_tuple().exponent
        least = Decimal(1).scaleb(min(_LEAST, exponent if isinstance(exponent, int) else _LEAST))
        amounts = [_times(cost.amount, share).quantize(least, ROUND_DOWN) for share in shares]
        rest = cost.amount - sum(amounts, Decimal(0))
        if sum(shares, Fraction(0)) == 1:
            largest = max(range(len(shares)), key=lambda i: (shares[i], -i))
            amounts[largest] += rest
            rest = Decimal(0)
    return [Money(amount, cost.currency) for amount in [*amounts, rest]]


def _times(amount: Decimal, share: Fraction) -> Decimal:
    return amount * share.numerator / share.denominator


def _said(parts: Sequence[Part], unweighted: set[str]) -> tuple[Finding, ...]:
    findings = []
    alone = [p for p in parts if p.how == "none"]
    if alone:
        text = f"{counted(len(alone), 'charge')} matched no run by resource, tag, or time and place"
        mend = "name the resource or a tag of the charge in the runs' tags; until then it is unallocated"
        findings.append(Finding(code="CL317", severity="info", message=text, mend=mend))
    if unweighted:
        text = (
            f"{counted(len(unweighted), 'run')} without a measured weight shared charges with runs that "
            "have one: these charges were shared by time"
        )
        mend = "measure all runs of a resource"
        findings.append(Finding(code="CL318", severity="warning", message=text, mend=mend))
    return tuple(findings)
