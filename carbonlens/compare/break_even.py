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
from carbonlens.domain.units import Z_95, State

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

    An error source named in both (the CPU model, a factor) cancels as far as it
    moves both by the same share; what is left of it is kept. Where the saving's
    own interval holds a loss, the effort may never be earned back, whatever
    cancels.

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
    if saving.has_unknown_width and s <= 0:
        return unknown(unit), "may_never"
    if saving.has_unknown_width or (s > 0 and effort.has_unknown_width):
        # Nobody knows how sure one of them is (one round, a source without a width), and so not
        # when the effort is earned back: the best value, and no end to it on either side.
        state: State = "unbounded" if effort.state == "unbounded" else "known"
        return Estimate(value=f / s, unit=unit, grade=grade, state=state, bounds=(None, None)), "may_never"
    if s <= 0 and saving.high is not None and saving.high <= 0:
        return not_applicable(unit), "never"
    low, high = fieller(f, s, *_variances(effort, saving, f, s))
    if saving.low is None or saving.low <= 0:
        # What cancels in the quotient may still turn the saving into a loss.
        high = None
    if s <= 0:
        return Estimate(value=low, unit=unit, grade=grade, state="unbounded", bounds=(low, None)), "may_never"
    units = Estimate(value=f / s, unit=unit, grade=grade, bounds=(low, high))
    if effort.state == "unbounded":
        # A part of the effort is not recorded, so it takes at least that many.
        return replace(units, state="unbounded"), "may_never"
    return units, "reached" if high is not None else "may_never"


def fieller(
    f: float, s: float, var_f: float, var_s: float, covariance: float = 0.0
) -> tuple[float, float | None]:
    """Return the positive part of Fieller's 95 % interval of ``f / s``.

    All ``r`` with ``(f - r s)^2 <= z^2 (var_f - 2 r covariance + r^2 var_s)``.

    Args:
        f: Numerator, not negative.
        s: Denominator, which may still be negative.
        var_f: Variance of the numerator.
        var_s: Variance of the denominator.
        covariance: Of the two.

    Returns:
        Lower end, and upper end or ``None`` when there is none.
    """
    z2 = Z_95 * Z_95
    a, b, c = s * s - z2 * var_s, f * s - z2 * covariance, f * f - z2 * var_f
    root = math.sqrt(max(0.0, b * b - a * c))
    if a > 0 and s > 0:
        return max(0.0, (b - root) / a), (b + root) / a
    if c <= 0:
        return 0.0, None
    # Open interval. The stable form of the positive root: no division by an ``a`` near zero.
    return c / (b + root), None


def _variances(effort: Estimate, saving: Estimate, f: float, s: float) -> tuple[float, float, float]:
    """Return the variances of effort and saving and their covariance, less what cancels.

    A source that moves both by the same share (a price, a factor, the CPU model)
    cancels in the quotient as far as the share is common. What is left of it
    moves the effort alone, the saving alone, or both in opposite directions, and
    goes with the quotient as each of them does.
    """
    var_f, var_s, covariance = effort.u_random**2, saving.u_random**2, 0.0
    for name in {*effort.u_by_source, *saving.u_by_source}:
        of_f, of_s = effort.u_by_source.get(name, 0.0), saving.u_by_source.get(name, 0.0)
        if f > 0 and s > 0 and of_f * of_s > 0:
            common = math.copysign(min(abs(of_f) / f, abs(of_s) / s), of_f)
            of_f, of_s = of_f - common * f, of_s - common * s
        var_f += of_f * of_f
        var_s += of_s * of_s
        covariance += of_f * of_s
    return var_f, var_s, covariance
