"""Estimate: a value that carries its interval, its evidence and its sources.

Uncertainty is kept as a random part and one part per named source (a sensor's
gain, a CPU model, a factor). Random parts add in quadrature, the parts of one
source add linearly because they share one error, and sources add in quadrature
(JCGM 100:2008, 5.2.2). A source's part is signed by the direction in which it
moves the value, so that a common error cancels in a difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import msgspec

from carbonlens.domain.units import Z_95, Grade, State

_GRADES: tuple[Grade, ...] = ("A", "B", "C", "D", "E")
_GRADE_SHARE = 0.10


class Estimate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A quantity with its standard uncertainties.

    Attributes:
        value: Best value in ``unit``; ``None`` when unknown.
        unit: Unit of the value and of every ``u_*``.
        state: ``unbounded`` marks a lower bound (a part is unknown).
        grade: Worst evidence grade that holds at least 10 % of the value.
        u_random: One sigma of the independent random part.
        u_by_source: One sigma per named common error, signed.
        signed: True for a difference, whose interval is symmetric; a positive
            quantity has the interval ``value * exp(+-1.96 u / value)``.
        bounds: Interval derived otherwise (t, Fieller, stated by a source);
            replaces the normal-theory one. ``(None, None)`` says that nobody
            knows the width; nothing made from the value has an interval then.
    """

    value: float | None
    unit: str
    state: State = "known"
    grade: Grade | None = None
    u_random: float = 0.0
    u_by_source: Mapping[str, float] = msgspec.field(default_factory=dict)
    signed: bool = False
    bounds: tuple[float | None, float | None] | None = None
    confidence: float = 0.95

    @property
    def u_total(self) -> float:
        """Combined standard uncertainty in ``unit``."""
        return math.hypot(self.u_random, *self.u_by_source.values())

    @property
    def low(self) -> float | None:
        """Lower end of the 95 % interval; ``None`` when there is none."""
        return self._interval()[0]

    @property
    def high(self) -> float | None:
        """Upper end of the 95 % interval; ``None`` when there is none."""
        return self._interval()[1]

    @property
    def has_unknown_width(self) -> bool:
        """Whether the value's width is not told by its ``u_*``, so that none can be passed on.

        That is a value without an interval, and one whose interval was stated
        without saying which errors make it.
        """
        if self.value is None or self.bounds is None:
            return False
        return None in self.bounds or (self.u_total == 0 and self.bounds != (self.value, self.value))

    def _interval(self) -> tuple[float | None, float | None]:
        if self.value is None:
            return None, None
        if self.bounds is not None:
            low, high = self.bounds
        else:
            low, high = normal_interval(self.value, self.u_total, signed=self.signed)
        return low, None if self.state == "unbounded" else high

    def scale(self, factor: float, unit: str) -> Estimate:
        """Return the estimate times an exact number, in ``unit``.

        Args:
            factor: Exact multiplier; a negative one makes the result signed.
            unit: Unit of the result.
        """
        if self.value is None:
            return msgspec.structs.replace(self, unit=unit)
        bounds = self.bounds
        if bounds is not None:
            ends = [None if b is None else b * factor for b in bounds]
            bounds = (ends[0], ends[1]) if factor >= 0 else (ends[1], ends[0])
        return msgspec.structs.replace(
            self,
            value=self.value * factor,
            unit=unit,
            u_random=self.u_random * abs(factor),
            u_by_source={k: v * factor for k, v in self.u_by_source.items()},
            signed=self.signed or factor < 0,
            bounds=bounds,
        )

    def times(self, other: Estimate, unit: str) -> Estimate:
        """Return the product with another estimate, to first order (JCGM 100, 5.1.2).

        Args:
            other: A second quantity; sources of the same name are one error.
            unit: Unit of the product.
        """
        if self.value is None or other.value is None:
            return unknown(unit, signed=self.signed or other.signed)
        a, b = self.value, other.value
        sources = {k: v * b for k, v in self.u_by_source.items()}
        for name, part in other.u_by_source.items():
            sources[name] = sources.get(name, 0.0) + part * a
        unbounded = "unbounded" in (self.state, other.state)
        return Estimate(
            value=a * b,
            unit=unit,
            state="unbounded" if unbounded else "known",
            grade=worst_grade([self.grade, other.grade]),
            u_random=math.hypot(self.u_random * b, other.u_random * a),
            u_by_source=sources,
            signed=self.signed or other.signed,
            bounds=_inherited_bounds(self, other),
        )

    def minus(self, other: Estimate) -> Estimate:
        """Return ``self - other``; a common source cancels as far as it is common."""
        if self.value is None or other.value is None:
            return unknown(self.unit, signed=True)
        sources = dict(self.u_by_source)
        for name, part in other.u_by_source.items():
            sources[name] = sources.get(name, 0.0) - part
        known = self.state == other.state == "known"
        return Estimate(
            value=self.value - other.value,
            unit=self.unit,
            # A difference of lower bounds bounds nothing.
            state="known" if known else "unknown",
            grade=worst_grade([self.grade, other.grade]),
            u_random=math.hypot(self.u_random, other.u_random),
            u_by_source=sources,
            signed=True,
            bounds=_inherited_bounds(self, other),
        )

    def as_json(self) -> dict[str, object]:
        """Return the serialized shape that outside scripts rely on."""
        return {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "unit": self.unit,
            "grade": self.grade,
            "state": self.state,
            "confidence": self.confidence,
        }


def normal_interval(value: float, u: float, *, signed: bool) -> tuple[float, float]:
    """Return the 95 % interval of a value with standard uncertainty ``u``.

    Args:
        value: Best value.
        u: One sigma, in the value's unit.
        signed: Symmetric interval; otherwise log-symmetric, so ``low`` stays positive.
    """
    if signed or value < 0:
        return value - Z_95 * u, value + Z_95 * u
    if value == 0:
        return 0.0, Z_95 * u
    # Beyond this width the upper end is no number any more, and says nothing.
    spread = math.exp(min(Z_95 * u / value, 300.0))
    return value / spread, value * spread


def unknown(unit: str, *, signed: bool = False) -> Estimate:
    """Return the estimate of a quantity nobody knows: never a zero."""
    return Estimate(value=None, unit=unit, state="unknown", signed=signed)


def not_applicable(unit: str) -> Estimate:
    """Return the estimate of a quantity that does not exist here."""
    return Estimate(value=None, unit=unit, state="not_applicable")


def add(parts: Iterable[Estimate], unit: str) -> Estimate:
    """Sum estimates of one unit.

    A sum over an unknown part is ``unbounded``: the known parts are a lower
    bound. A sum of nothing known is unknown. Parts that are not applicable are
    left out.

    Args:
        parts: Estimates, all in ``unit``.
        unit: Unit of the parts and of the sum.

    Raises:
        ValueError: If a part has another unit.
    """
    items = [p for p in parts if p.state != "not_applicable"]
    for item in items:
        if item.unit != unit:
            raise ValueError(f"cannot add {item.unit} to {unit}")
    known = [(p, p.value) for p in items if p.value is not None]
    if not known:
        return unknown(unit)
    sources: dict[str, float] = {}
    for part, _ in known:
        for name, u in part.u_by_source.items():
            sources[name] = sources.get(name, 0.0) + u
    complete = len(known) == len(items) and all(p.state == "known" for p, _ in known)
    return Estimate(
        value=math.fsum(v for _, v in known),
        unit=unit,
        state="known" if complete else "unbounded",
        grade=combined_grade((p.grade, v) for p, v in known),
        u_random=math.hypot(*(p.u_random for p, _ in known)),
        u_by_source=sources,
        signed=any(p.signed for p, _ in known),
        bounds=_inherited_bounds(*(p for p, _ in known)),
    )


def combined_grade(parts: Iterable[tuple[Grade | None, float]]) -> Grade | None:
    """Return the worst grade that holds at least 10 % of the summed magnitudes.

    ``None`` if no part is graded; beside graded parts, an ungraded one counts as E.
    """
    items = list(parts)
    if len(items) == 1 and math.isfinite(items[0][1]):
        return items[0][0]
    if all(grade is None for grade, _ in items):
        return None
    shares = grade_shares(items)
    held = [g for g in _GRADES if shares.get(g, 0.0) >= _GRADE_SHARE]
    return held[-1] if held else None


def grade_shares(parts: Iterable[tuple[Grade | None, float]]) -> dict[Grade, float]:
    """Return the share of the summed magnitude per grade; ungraded parts count as E."""
    sums: dict[Grade, float] = {}
    for grade, value in parts:
        key: Grade = grade or "E"
        sums[key] = sums.get(key, 0.0) + abs(value)
    total = math.fsum(sums.values())
    if total == 0:
        # Magnitudes give no weights: each grade present counts alike.
        return {g: 1.0 / len(sums) for g in sums}
    return {g: v / total for g, v in sums.items()}


def _inherited_bounds(*parts: Estimate) -> tuple[None, None] | None:
    """Return "no interval" if the width of a part is unknown: a missing width is not a zero one."""
    return (None, None) if any(p.has_unknown_width for p in parts) else None


def worst_grade(grades: Iterable[Grade | None]) -> Grade | None:
    """Return the worst of the grades given, ``None`` when none is stated."""
    stated = [g for g in grades if g is not None]
    return max(stated) if stated else None
