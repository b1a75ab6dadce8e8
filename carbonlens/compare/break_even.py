"""Break-even: after how many units an effort is earned back.

The quotient of two uncertain figures has Fieller's interval (Fieller 1954),
which is open towards "never" when the saving may be none.
"""

from __future__ import annotations

import math
from typing import Final

from msgspec.structs import replace

from carbonlens.compare.arms import Measure
from carbonlens.domain.comparison import Amounts, BreakEven
from carbonlens.domain.estimate import Estimate, not_applicable, unknown, worst_grade
from carbonlens.domain.units import Z_95

_MEASURES: Final[tuple[tuple[str, Measure], ...]] = (
    ("energy", "energy_j"),
    ("carbon_location", "emissions_location_kg"),
    ("carbon_market", "emissions_market_kg"),
    ("cost", "cost"),
)


def break_evens(
    effort: Amounts | None, saving: Amounts, unit: str, per_day: float | None = None
) -> tuple[BreakEven, ...]:
    """Return the break-even in energy, carbon and cost.

    Args:
        effort: What making the steps took; ``None`` when not recorded.
        saving: What one unit saves afterwards, at the serving site.
        unit: Functional unit.
        per_day: Expected units a day.
    """
    return tuple(
        break_even(
            name,
            unknown(getattr(saving, m).unit) if effort is None else getattr(effort, m),
            getattr(saving, m),
            unit,
            per_day,
        )
        for name, m in _MEASURES
    )


def break_even(
    measure: str, effort: Estimate, saving: Estimate, unit: str, per_day: float | None = None
) -> BreakEven:
    """Return effort over saving per unit, with Fieller's interval.

    An error source named in both (the CPU model, a factor) moves both by the
    same share and cancels; what it moves one of them more is kept.

    Args:
        measure: Name of the measure.
        effort: What making the steps took.
        saving: What one unit saves, negative when it takes more.
        unit: Functional unit.
        per_day: Expected units a day, without an error of its own.
    """
    units, outcome = _quotient(effort, saving, unit)
    return BreakEven(
        measure=measure,
        effort=effort,
        saving_per_unit=saving,
        units=units,
        outcome=outcome,
        days=None if per_day is None else units.scale(1 / per_day, "day"),
    )


def _quotient(effort: Estimate, saving: Estimate, unit: str) -> tuple[Estimate, str]:
    f, s = effort.value, saving.value
    if f is None or s is None or saving.state != "known" or effort.unit != saving.unit:
        return unknown(unit), "unknown"
    grade = worst_grade([effort.grade, saving.grade])
    if saving.bounds == (None, None):
        # One round: a saving without an interval earns nothing back for sure.
        if s <= 0:
            return unknown(unit), "may_never"
        return Estimate(value=f / s, unit=unit, grade=grade, bounds=(None, None)), "may_never"
    var_f, var_s = _own_variances(effort, saving, f, s)
    if s > 0 and effort.has_unknown_width:
        # Nobody knows how sure the effort is, and so not when it is earned back.
        return Estimate(value=f / s, unit=unit, grade=grade, bounds=(None, None)), "may_never"
    if s + Z_95 * math.sqrt(var_s) <= 0:
        return not_applicable(unit), "never"
    low, high = fieller(f, var_f, s, var_s)
    if s <= 0:
        return Estimate(value=low, unit=unit, grade=grade, state="unbounded", bounds=(low, None)), "may_never"
    units = Estimate(value=f / s, unit=unit, grade=grade, bounds=(low, high))
    if effort.state == "unbounded":
        # A part of the effort is not recorded, so it takes at least that many.
        return replace(units, state="unbounded"), "may_never"
    return units, "reached" if high is not None else "may_never"


def fieller(f: float, var_f: float, s: float, var_s: float) -> tuple[float, float | None]:
    """Return the positive part of Fieller's 95 % interval of ``f / s``.

    All ``r`` with ``(f - r s)^2 <= z^2 (var_f + r^2 var_s)``.

    Args:
        f: Numerator, not negative.
        var_f: Its variance.
        s: Denominator, which may still be negative.
        var_s: Its variance; the two are independent.

    Returns:
        Lower end, and upper end or ``None`` when there is none.
    """
    z2 = Z_95 * Z_95
    a, b, c = s * s - z2 * var_s, f * s, f * f - z2 * var_f
    root = math.sqrt(max(0.0, b * b - a * c))
    if a > 0 and s > 0:
        return max(0.0, (b - root) / a), (b + root) / a
    if c <= 0:
        return 0.0, None
    # Open interval. The stable form of the positive root: no division by an ``a`` near zero.
    return c / (b + root), None


def _own_variances(effort: Estimate, saving: Estimate, f: float, s: float) -> tuple[float, float]:
    """Return the variances that do not cancel in the quotient."""
    var_f, var_s = effort.u_random**2, saving.u_random**2
    for name in {*effort.u_by_source, *saving.u_by_source}:
        of_f, of_s = effort.u_by_source.get(name), saving.u_by_source.get(name)
        if of_s is None:
            var_f += (of_f or 0.0) ** 2
        elif of_f is None or s == 0:
            var_s += of_s**2
        else:
            var_f += (of_f - of_s * f / s) ** 2
    return var_f, var_s
