"""Estimates through a formula: the value it gives, and how each input's errors move it.

A formula uses ``+ - * /`` only, so a number that carries its slopes goes through the very
line that floats and columns go through, and no formula is written a second time for its
errors. The slopes are exact; errors are passed on to first order (JCGM 100:2008, 5.1.2),
and an input that stands twice in a formula is one input.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from carbonlens.domain.estimate import Estimate, combined_grade, unknown, worst_grade
from carbonlens.domain.units import Grade, State

_NO_WIDTH: Final = (None, None)


class _Sloped:
    """A number with its slope over each input."""

    __slots__ = ("grade", "slopes", "value")

    def __init__(self, value: float, slopes: Mapping[int, float], grade: Grade | None) -> None:
        self.value = value
        self.slopes = slopes
        self.grade = grade

    def __add__(self, other: Any) -> _Sloped:  # noqa: ANN401  # any kind of number
        b = _sloped(other)
        return _Sloped(self.value + b.value, _mixed(self, 1.0, b, 1.0), _summed(self, b))

    def __sub__(self, other: Any) -> _Sloped:  # noqa: ANN401  # any kind of number
        b = _sloped(other)
        return _Sloped(self.value - b.value, _mixed(self, 1.0, b, -1.0), _summed(self, b))

    def __mul__(self, other: Any) -> _Sloped:  # noqa: ANN401  # any kind of number
        if not isinstance(other, _Sloped):
            # An exact number is the common case, and this the common operation.
            factor = float(other)
            return _Sloped(self.value * factor, _times(self.slopes, factor), self.grade)
        b = other
        slopes = _mixed(self, b.value, b, self.value)
        return _Sloped(self.value * b.value, slopes, _worst(self.grade, b.grade))

    def __truediv__(self, other: Any) -> _Sloped:  # noqa: ANN401  # any kind of number
        b = _sloped(other)
        ratio = self.value / b.value
        slopes = _mixed(self, 1.0 / b.value, b, -ratio / b.value)
        return _Sloped(ratio, slopes, _worst(self.grade, b.grade))

    def __rsub__(self, other: Any) -> _Sloped:  # noqa: ANN401  # any kind of number
        return _sloped(other) - self

    def __rtruediv__(self, other: Any) -> _Sloped:  # noqa: ANN401  # any kind of number
        return _sloped(other) / self

    __radd__ = __add__
    __rmul__ = __mul__


def through(
    formula: Callable[..., Any], *inputs: Estimate | float, unit: str, signed: bool = False
) -> Estimate:
    """Apply a formula of ``+ - * /`` to estimates.

    An unknown input, or a division by zero, gives unknown. An input that is a lower bound
    gives a lower bound where the result grows with it, and else a result that bounds
    nothing (``unknown``, its value kept). An input without an interval leaves the result
    without one.

    Args:
        formula: Takes the inputs in their order.
        inputs: Estimates, or exact numbers. Two of them that share a source share its
            error; their random parts are independent.
        unit: Unit of the result.
        signed: Whether the result may be negative: a difference.
    """
    numbers: list[Any] = []
    is_known = True
    for place, given in enumerate(inputs):
        if not isinstance(given, Estimate):
            numbers.append(given)
            continue
        signed = signed or given.signed
        is_known = is_known and given.value is not None
        numbers.append(_entered(place, given))
    if not is_known:
        return unknown(unit, signed=signed)
    try:
        result = _sloped(formula(*numbers))
    except ZeroDivisionError:
        return unknown(unit, signed=signed)
    # Only estimates enter with a slope.
    return _moved(result, [(inputs[i], s) for i, s in result.slopes.items()], unit, signed=signed)  # type: ignore[misc]  # a slope stands for an Estimate alone


def _moved(result: _Sloped, moved: list[tuple[Estimate, float]], unit: str, *, signed: bool) -> Estimate:
    """Return a result with the errors of the inputs that move it, each by its slope."""
    state: State = "known"
    is_wide = False
    random: list[float] = []
    sources: dict[str, float] = {}
    for estimate, slope in moved:
        if estimate.state == "unknown" or (estimate.state == "unbounded" and slope < 0):
            # What shrinks as a lower bound grows is bounded by nothing.
            state = "unknown"
        elif estimate.state == "unbounded" and state == "known":
            state = "unbounded"
        if estimate.bounds is not None and slope and estimate.has_unknown_width:
            is_wide = True
        random.append(estimate.u_random * slope)
        for name, u in estimate.u_by_source.items():
            sources[name] = sources.get(name, 0.0) + u * slope
    return Estimate(
        value=result.value,
        unit=unit,
        state=state,
        grade=result.grade,
        u_random=math.hypot(*random),
        u_by_source=sources,
        signed=signed,
        bounds=_NO_WIDTH if is_wide else None,
    )


def exactly(value: float, unit: str = "1") -> Estimate:
    """Return a number that has no error: a count, or a value exact by definition."""
    return Estimate(value=float(value), unit=unit)


def stated(value: float, u_relative: float | None, source: str, unit: str) -> Estimate:
    """Return a figure of a source as an estimate whose one error is named after it.

    Args:
        value: The figure; a zero has no error that a relative width could tell.
        u_relative: One relative sigma; ``None`` when nobody states one: the width is then
            unknown, and nothing made from it has an interval.
        source: Name of the error.
        unit: Unit of the figure.
    """
    if u_relative is None and value != 0:
        return Estimate(value=value, unit=unit, bounds=_NO_WIDTH)
    sources = {source: value * u_relative} if u_relative else {}
    return Estimate(value=value, unit=unit, u_by_source=sources)


def _entered(place: int, estimate: Estimate) -> _Sloped:
    """Return an input as a number; one without any error moves nothing, and has no slope."""
    exact = (
        not estimate.u_random
        and estimate.bounds is None
        and estimate.state == "known"
        and not any(estimate.u_by_source.values())
    )
    return _Sloped(estimate.value or 0.0, {} if exact else {place: 1.0}, estimate.grade)


def _sloped(number: Any) -> _Sloped:  # noqa: ANN401  # any kind of number
    return number if isinstance(number, _Sloped) else _Sloped(float(number), {}, None)


def _mixed(a: _Sloped, of_a: float, b: _Sloped, of_b: float) -> dict[int, float]:
    """Return the slopes of a result that changes by ``of_a`` with a and by ``of_b`` with b."""
    slopes = _times(a.slopes, of_a)
    for i, slope in b.slopes.items():
        slopes[i] = slopes.get(i, 0.0) + slope * of_b
    return slopes


def _times(slopes: Mapping[int, float], factor: float) -> dict[int, float]:
    times: dict[int, float] = {}
    for i, slope in slopes.items():
        times[i] = slope * factor
    return times


def _worst(a: Grade | None, b: Grade | None) -> Grade | None:
    return worst_grade((a, b)) if a and b else a or b


def _summed(a: _Sloped, b: _Sloped) -> Grade | None:
    """Return the grade of a sum or a difference; an exact number has none to give."""
    if not a.slopes and a.grade is None:
        return b.grade
    if not b.slopes and b.grade is None:
        return a.grade
    return combined_grade([(a.grade, a.value), (b.grade, b.value)])
