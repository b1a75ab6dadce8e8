"""Sharing: one amount of a shared machine or service, divided over those who used it.

An amount is energy, kg CO2e or money. Parts are exact decimals; with idle and what rounding
leaves, each on a line of its own, they sum to the amount to its last digit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_DOWN, Decimal, localcontext
from fractions import Fraction
from itertools import accumulate
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from carbonlens.accounting.formulas import Quantity
from carbonlens.accounting.propagation import exactly, through
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate, add, unknown
from carbonlens.domain.finding import Finding
from carbonlens.domain.grades import MODEL_FACTOR_95
from carbonlens.domain.service import IdleRule
from carbonlens.domain.units import Z_95
from carbonlens.errors import UsageError

LineKind = Literal["consumer", "idle", "undivided", "rounding"]

_DIGITS: Final = 60
_LEAST: Final = -12
"""Exponent of the smallest part of a share: the ledger keeps 12 decimals of an amount."""

_SUMMED: Final = 26
"""Digits of an amount below which its parts add up without rounding (28 by default)."""

_NAMED: Final = 5
_BY_ACTIVITY: Final = math.log(MODEL_FACTOR_95) / Z_95
"""One relative sigma of a share of activity taken for a share of energy (ADR 7)."""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What one consumer used.

    Attributes:
        name: Of the consumer.
        weight: Its use, in the one unit of all claims; ``None`` when unknown.
        estimate: The same with its errors; ``None`` for an exact count.
    """

    name: str
    weight: Decimal | None
    estimate: Estimate | None = None


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One part of an amount.

    Attributes:
        name: Consumer, or what the line is.
        kind: ``undivided`` holds consumers whose use is unknown, and idle with them.
        exact: The part; ``None`` where the amount is unknown.
        of_idle: How much of ``exact`` is shared idle.
        share: Of the amount, 0 to 1; ``None`` where it is unknown.
        estimate: The part with its interval.
    """

    name: str
    kind: LineKind
    exact: Decimal | None
    of_idle: Decimal = Decimal(0)
    share: float | None = None
    estimate: Estimate


class Division(msgspec.Struct, frozen=True, kw_only=True):
    """An amount and its lines, consumers in the order of their claims, then the others."""

    exact: Decimal | None
    lines: tuple[Line, ...]
    findings: tuple[Finding, ...] = ()

    def of(self, name: str) -> Line:
        """Return the line of a consumer.

        Raises:
            KeyError: If there is none.
        """
        found = next((x for x in self.lines if x.kind == "consumer" and x.name == name), None)
        if found is None:
            raise KeyError(name)
        return found

    def part(self, kind: LineKind) -> Decimal:
        """Return what lines of a kind hold together."""
        return sum((x.exact for x in self.lines if x.kind == kind and x.exact is not None), Decimal(0))


def part_of(amount: Quantity, weight: Quantity, whole: Quantity) -> Quantity:
    """Return the part of an amount that a weight of a whole has."""
    return amount * weight / whole


def part_among(amount: Quantity, weight: Quantity, others: Quantity) -> Quantity:
    """Return the part of an amount that a weight among others has."""
    return amount * weight / (weight + others)


def idle_part(amount: Quantity, used: Quantity, whole: Quantity) -> Quantity:
    """Return the part of an amount that belongs to what of the whole was not used."""
    return amount * (whole - used) / whole


def reserved(request: Decimal | None, used: Decimal | None) -> Decimal | None:
    """Return what a workload is charged: the larger of request and use (OpenCost 0.1).

    Args:
        request: What it reserved; ``None`` when it reserved nothing.
        used: What it used; ``None`` when unknown, and then the larger one is unknown.
    """
    if used is None:
        return None
    return used if request is None else max(request, used)


def by_activity(name: str, share: Decimal | None) -> Claim:
    """Return the claim of an activity share: of a MIG device, or of a process on a GPU.

    What is active longer need not draw more: the share has an error of its own, grade D.

    Args:
        name: Of the consumer.
        share: Its share of activity, any unit; ``None`` when unknown.
    """
    if share is None:
        return Claim(name=name, weight=None)
    value = float(share)
    errors = {f"activity:{name}": value * _BY_ACTIVITY} if value else {}
    estimate = Estimate(value=value, unit="1", grade="D", u_by_source=errors)
    return Claim(name=name, weight=share, estimate=estimate)


def divide(
    exact: Decimal | None,
    estimate: Estimate,
    claims: Sequence[Claim],
    *,
    whole: Decimal | None = None,
    idle: IdleRule = "own line",
) -> Division:
    """Divide an amount over consumers.

    Where a claim is unknown, known claims get their part of the whole and the rest is not
    divided; without a whole nothing can be. Claims that exceed the whole share it all.

    Args:
        exact: The amount; ``None`` when unknown.
        estimate: The same with its interval.
        claims: What each consumer used.
        whole: What could have been used, in the unit of the claims; without it there is no idle.
        idle: Whether idle is a line of its own or is shared by weight.

    Raises:
        UsageError: If a claim or the whole is negative, or no finite number.
    """
    _refuse_negative(claims, whole)
    known = [c for c in claims if c.weight is not None]
    used = sum((Fraction(c.weight or 0) for c in known), Fraction(0))
    base = used if whole is None else max(Fraction(whole), used)
    is_complete = len(known) == len(claims)
    findings = _said(claims, whole, used, base)
    if base == 0 or (whole is None and not is_complete):
        kind: LineKind = "idle" if is_complete else "undivided"
        nothing = Decimal(0) if is_complete and exact is not None else None
        lines = [
            Line(name=c.name, kind="consumer", exact=nothing, estimate=_valued(estimate, nothing))
            for c in claims
        ]
        rest = Line(name=kind, kind=kind, exact=exact, share=1.0, estimate=estimate)
        return Division(exact=exact, lines=(*lines, rest), findings=findings)
    is_shared = idle == "shared" and is_complete and used > 0
    shares = [None if c.weight is None else Fraction(c.weight) / base for c in claims]
    spread = Fraction(0) if not is_shared else base / used - 1
    estimates = _estimates(estimate, claims, None if whole is None or is_shared or base == used else base)
    lines = [
        _line(c, exact, share, spread, made) for c, share, made in zip(claims, shares, estimates, strict=True)
    ]
    left = Fraction(0) if is_shared else 1 - used / base
    return Division(
        exact=exact,
        lines=(*lines, *_others(exact, estimate, claims, lines, left, base, is_complete=is_complete)),
        findings=findings,
    )


def _line(
    claim: Claim, exact: Decimal | None, share: Fraction | None, spread: Fraction, made: Estimate
) -> Line:
    if share is None:
        return Line(name=claim.name, kind="consumer", exact=None, estimate=unknown(made.unit))
    own, of_idle = _times(exact, share), _times(exact, share * spread)
    part = None if own is None else own + (of_idle or 0)
    return Line(
        name=claim.name,
        kind="consumer",
        exact=part,
        of_idle=of_idle or Decimal(0),
        share=float(share * (1 + spread)),
        estimate=_valued(made, part),
    )


def _others(  # noqa: PLR0913 - each is a fact of the division
    exact: Decimal | None,
    estimate: Estimate,
    claims: Sequence[Claim],
    lines: Sequence[Line],
    left: Fraction,
    base: Fraction,
    *,
    is_complete: bool,
) -> list[Line]:
    """Return the line of what nobody used, or that is not divided, and that of rounding."""
    found: list[Line] = []
    if left:
        kind: LineKind = "idle" if is_complete else "undivided"
        used = add([_weight(c) for c in claims if c.weight is not None] or [exactly(0.0)], "1")
        made = through(idle_part, estimate, used, float(base), unit=estimate.unit)
        part = _times(exact, left)
        found.append(Line(name=kind, kind=kind, exact=part, share=float(left), estimate=_valued(made, part)))
    if exact is None:
        return found
    with localcontext(prec=_DIGITS):
        rest = exact - sum((x.exact for x in (*lines, *found) if x.exact is not None), Decimal(0))
    if rest:
        value = Estimate(value=float(rest), unit=estimate.unit, signed=rest < 0)
        found.append(Line(name="rounding", kind="rounding", exact=rest, share=0.0, estimate=value))
    return found


def _estimates(estimate: Estimate, claims: Sequence[Claim], base: Fraction | None) -> list[Estimate]:
    """Return the parts with their errors: of a whole that is exact, or among the other claims."""
    unit = estimate.unit
    weights = [_weight(c) for c in claims]
    if base is not None:
        return [through(part_of, estimate, w, float(base), unit=unit) for w in weights]
    if not any(c.estimate for c in claims):
        total = math.fsum(w.value or 0.0 for w in weights)
        return [through(part_of, estimate, w, total, unit=unit) for w in weights]
    nobody = exactly(0.0)
    before = [*accumulate(weights, _sum, initial=nobody)][:-1]
    after = [*accumulate(reversed(weights), _sum, initial=nobody)][-2::-1]
    return [
        through(part_among, estimate, w, _sum(a, b), unit=unit)
        for w, a, b in zip(weights, before, after, strict=True)
    ]


def _sum(a: Estimate, b: Estimate) -> Estimate:
    return add([a, b], "1")


def _weight(claim: Claim) -> Estimate:
    if claim.weight is None:
        return unknown("1")
    made = claim.estimate or exactly(float(claim.weight))
    return replace(made, value=float(claim.weight), unit="1")


def _valued(estimate: Estimate, exact: Decimal | None) -> Estimate:
    """Return the estimate with the exact part as its value; a part of nothing has no error."""
    if exact is None or estimate.value is None:
        return unknown(estimate.unit)
    if exact == 0:
        return Estimate(value=0.0, unit=estimate.unit, state=estimate.state, bounds=(0.0, 0.0))
    return replace(estimate, value=float(exact))


def _times(amount: Decimal | None, share: Fraction) -> Decimal | None:
    """Return a part, cut after the last digit that is kept."""
    if amount is None:
        return None
    exponent = amount.as_tuple().exponent
    # Large amounts keep fewer decimals, so that sums of parts fit a plain Decimal context.
    least = max(_LEAST, amount.adjusted() - _SUMMED)
    least = min(least, exponent) if isinstance(exponent, int) else least
    with localcontext(prec=_DIGITS):
        part = amount * share.numerator / share.denominator
        return part.quantize(Decimal(1).scaleb(least), ROUND_DOWN)


def _refuse_negative(claims: Sequence[Claim], whole: Decimal | None) -> None:
    every = [(c.name, c.weight) for c in claims if c.weight is not None]
    every += [] if whole is None else [("the whole", whole)]
    for name, weight in every:
        if not weight.is_finite() or weight < 0:
            raise UsageError(
                f"{weight} is no share of anything", where=name, mend="state uses as numbers, 0 or more"
            )


def _said(
    claims: Sequence[Claim], whole: Decimal | None, used: Fraction, base: Fraction
) -> tuple[Finding, ...]:
    found = []
    silent = [c.name for c in claims if c.weight is None]
    if silent:
        names = ", ".join(silent[:_NAMED]) + (" and more" if len(silent) > _NAMED else "")
        text = (
            f"the use of {counted(len(silent), 'consumer')} is unknown ({names}): what is left for "
            f"{'it' if len(silent) == 1 else 'them'} is not divided"
        )
        found.append(Finding(code="CL472", severity="warning", message=text, mend="state each one's use"))
    if whole is not None and used > whole:
        text = f"consumers used {float(used):.6g} of a whole of {whole:.6g}: they share it, with no idle"
        mend = "check the capacity and the uses"
        found.append(Finding(code="CL470", severity="warning", message=text, mend=mend))
    if base == 0 or (used == 0 and not silent):
        text = "nobody used it: all of it is idle"
        found.append(Finding(code="CL471", severity="info", message=text, mend="check the uses"))
    return tuple(found)
