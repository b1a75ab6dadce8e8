"""Money over time: present value, internal rate of return, payback. Pure arithmetic on flows.

A flow list begins with what is paid now; each further flow comes at the end of its period
(a month unless told otherwise), negative when money goes out. Rates are effective a year, so
that a period of 1/12 year is discounted by ``(1 + rate) ** (1/12)``, not by ``rate / 12``.
Formulas: Brealey, Myers, Allen, *Principles of Corporate Finance*, ch. 2 (present value), ch. 5
(internal rate, payback). All figures are of one currency and one price level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Final

from carbonlens.domain.business_result import InternalRates

MONTHLY: Final = 12
"""Periods a year."""

LEAST_RATE: Final = -0.9999
MOST_RATE: Final = 1e6
"""Rates a year between which internal rates are looked for."""

_STEPS: Final = 4_000
_HALVINGS: Final = 200
_THIRDS: Final = 80
_TOUCHES: Final = 1e-12
"""Share of the flows' absolute sum below which a value that does not change sign is a root: a
double one, at which the value only touches zero."""

_NEAR: Final = 0.1
"""Share within which a value between two points of the grid may touch zero."""


def discount_factor(rate: float, years: float) -> float:
    """Return what one unit of money in some years is worth now: ``(1 + rate) ** -years``.

    Args:
        rate: Effective a year, above -1.
        years: From now.
    """
    return math.exp(-years * math.log1p(rate))


def net_present_value(rate: float, flows: Sequence[float], per_year: int = MONTHLY) -> float:
    """Return the sum of all flows, each discounted to now.

    Args:
        rate: Effective a year, above -1.
        flows: What is paid now, then one flow at the end of each period.
        per_year: Periods a year.
    """
    return math.fsum(flow * discount_factor(rate, n / per_year) for n, flow in enumerate(flows))


def discounted(rate: float, flows: Sequence[float], per_year: int = MONTHLY) -> list[float]:
    """Return each flow at its worth now."""
    return [flow * discount_factor(rate, n / per_year) for n, flow in enumerate(flows)]


def payback(flows: Sequence[float], per_year: int = MONTHLY) -> float | None:
    """Return after how many years the money is back for good, linear within a period.

    That is the last time at which the running sum rises to zero: a case that later falls below
    it again has not paid back before. ``None`` where the sum ends below zero.

    Args:
        flows: What is paid now, then one flow at the end of each period.
        per_year: Periods a year.
    """
    sums = list(accumulate(flows))
    rounding = _TOUCHES * sum(map(abs, flows))
    if not sums or sums[-1] < -rounding:
        return None
    for n in range(len(sums) - 1, 0, -1):
        if sums[n - 1] < -rounding:
            return (n - 1 + min(-sums[n - 1] / flows[n], 1.0)) / per_year
    return 0.0


def discounted_payback(rate: float, flows: Sequence[float], per_year: int = MONTHLY) -> float | None:
    """Return the payback of the flows at their worth now.

    Args:
        rate: Effective a year, above -1.
        flows: As of ``payback``.
        per_year: Periods a year.
    """
    return payback(discounted(rate, flows, per_year), per_year)


def year_end(flows: Sequence[float], per_year: int = MONTHLY) -> list[float]:
    """Return the flows by year, each year's at its end, as spreadsheets often have them.

    A begun year's flows stand at its end too.
    """
    later = flows[1:]
    years = [math.fsum(later[n : n + per_year]) for n in range(0, len(later), per_year)]
    return [*flows[:1], *years]


def sign_changes(flows: Sequence[float]) -> int:
    """Return how often the sign changes: no more internal rates than that exist (Descartes)."""
    signs = [flow > 0 for flow in flows if flow]
    return sum(a != b for a, b in pairwise(signs))


def internal_rates(flows: Sequence[float], per_year: int = MONTHLY) -> InternalRates:
    """Return every rate at which the net present value is zero.

    The value is looked at on a fine grid of rates; every change of sign is halved down to the
    last digit, and where it only touches zero the extremum is sought. A conventional list (one
    change of sign) has at most one rate.

    Args:
        flows: What is paid now, then one flow at the end of each period.
        per_year: Periods a year.
    """
    if sign_changes(flows) == 0:
        gains = any(flow > 0 for flow in flows)
        reason = "nothing is paid, so there is no rate of return" if gains else "no money comes back"
        return InternalRates(rates=(), outcome="none", reason=reason)
    value = _value_of(flows, per_year)
    roots = _roots(value, _grid() if sign_changes(flows) > 1 else _ENDS)
    rates = tuple(math.expm1(y) for y in roots)
    if len(rates) == 1:
        return InternalRates(rates=rates, outcome="one")
    if rates:
        reason = "the flows change sign more than once; none of the rates alone is the return"
        return InternalRates(rates=rates, outcome="several", reason=reason)
    return InternalRates(rates=(), outcome="none", reason="at no rate are the flows worth nothing")


def _value_of(flows: Sequence[float], per_year: int) -> Callable[[float], float]:
    """Return the net present value over ``ln(1 + rate)``, as a share of the absolute flows."""

    def value(y: float) -> float:
        # Horner's scheme in the factor of one period; the absolute sum keeps it within -1 and 1.
        factor = math.exp(-y / per_year)
        total = size = 0.0
        for flow in reversed(flows):
            total, size = total * factor + flow, size * factor + abs(flow)
            if size > 1e250:
                total, size = total / size, 1.0
        return total / size if size else 0.0

    return value


_ENDS: Final = (math.log1p(LEAST_RATE), math.log1p(MOST_RATE))
"""Between which a list of one change of sign has its only root, if it has one there."""


def _grid() -> list[float]:
    low, high = _ENDS
    return sorted({0.0, *(low + (high - low) * n / _STEPS for n in range(_STEPS + 1))})


def _roots(value: Callable[[float], float], grid: Sequence[float]) -> list[float]:
    heights = [value(y) for y in grid]
    found = [y for y, h in zip(grid, heights, strict=True) if h == 0]
    for (a, of_a), (b, of_b) in pairwise(zip(grid, heights, strict=True)):
        if of_a * of_b < 0:
            found.append(_halved(value, a, b, of_a))
    for n in range(1, len(grid) - 1):
        before, here, after = (abs(h) for h in heights[n - 1 : n + 2])
        same_side = heights[n - 1] * heights[n] > 0 and heights[n] * heights[n + 1] > 0
        if same_side and here < _NEAR and here <= min(before, after) < max(before, after):
            place = _lowest(value, grid[n - 1], grid[n + 1])
            if abs(value(place)) <= _TOUCHES:
                found.append(place)
    return sorted(found)


def _halved(value: Callable[[float], float], a: float, b: float, of_a: float) -> float:
    for _ in range(_HALVINGS):
        middle = (a + b) / 2
        if middle in (a, b):
            break
        if (value(middle) < 0) == (of_a < 0):
            a = middle
        else:
            b = middle
    return (a + b) / 2


def _lowest(value: Callable[[float], float], a: float, b: float) -> float:
    """Return where the absolute value is least, by thirds."""
    for _ in range(_THIRDS):
        one, two = a + (b - a) / 3, b - (b - a) / 3
        if abs(value(one)) < abs(value(two)):
            b = two
        else:
            a = one
    return (a + b) / 2
