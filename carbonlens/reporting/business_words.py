"""Words for the figures of a business case, the same in a terminal and in a report."""

from __future__ import annotations

import math
from typing import Final

from carbonlens.domain.business import MONTHS_PER_YEAR, ScenarioName, Trajectory
from carbonlens.domain.business_result import (
    BusinessResult,
    InternalRates,
    MonteCarlo,
    ScenarioResult,
    TornadoBar,
)
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.units import Z_95
from carbonlens.reporting import format as fmt
from carbonlens.reporting.figures import exact

_IN_MONTHS: Final = 2.0

_ENDS: Final[tuple[ScenarioName, ScenarioName]] = ("low", "high")
_MOVED: Final = {"electricity": "electricity_price", "machine": "machine_price"}
_ONE_OFF: Final = "one_off_"

SIGMAS: Final = "σ"
"""In the ends of an error of the measurement, which need no words beside its name."""


def money(estimate: Estimate, *, with_interval: bool = False) -> str:
    """Return an amount with its currency, and with its interval where wanted."""
    printed = fmt.money(estimate)
    return f"{printed.text} {printed.interval}".rstrip() if with_interval else printed.text


def at_most(result: BusinessResult) -> str:
    """Return what stands before an NPV of which a cost is not known."""
    return "at most " if result.is_at_most else ""


def share_above_zero(drawn: MonteCarlo) -> Estimate:
    """Return the share of draws with an NPV above zero, as sure as their number makes it."""
    p = drawn.positive
    sigma = math.sqrt(p * (1.0 - p) / drawn.draws)
    ends = (max(p - Z_95 * sigma, 0.0), min(p + Z_95 * sigma, 1.0))
    return Estimate(value=p, unit="1", u_random=sigma, signed=True, bounds=ends)


def rate_words(rates: InternalRates | None) -> str:
    """Return an internal rate in words: the rate, or that there is none or several."""
    if rates is None:
        return fmt.UNKNOWN
    if rates.rate is None:
        return rates.outcome
    return fmt.percent(exact(rates.rate)).text


def years(value: float) -> fmt.Printed:
    """Return a span of years as it is printed: in months below two years."""
    if value < _IN_MONTHS:
        return fmt.plain(exact(value * MONTHS_PER_YEAR), "months")
    return fmt.plain(exact(value), "years")


def payback_words(value: float | None, one: ScenarioResult) -> str:
    """Return after what time the money is back, in words.

    Args:
        value: Years; ``None`` where it is not back within the horizon, or nobody knows.
        one: The scenario it is of.
    """
    if not one.flows:
        return fmt.UNKNOWN
    if value is None:
        return "none"
    return "at once" if value == 0 else years(value).text


def bar_ends(result: BusinessResult, bar: TornadoBar) -> tuple[str, str]:
    """Return the ends of the input of a bar, in words and as all numbers are printed."""
    low, high = _ends(result, bar)
    return (low, high) if low and high else (bar.at_low, bar.at_high)


def _ends(result: BusinessResult, bar: TornadoBar) -> list[str]:
    business = result.business
    if bar.key == "volume":
        held = [business.volume.get(n) for n in _ENDS]
        return [fmt.count(exact(s.units_per_month)).text if s is not None else "" for s in held]
    if bar.key == "rate":
        return [fmt.percent(exact(r)).text for r in (business.discount_low, business.discount_high)]
    if bar.key in _MOVED:
        moved: Trajectory = getattr(business, _MOVED[bar.key])
        return [fmt.percent(exact(c), plus=True).text for c in (moved.low, moved.high)]
    if bar.key.startswith(_ONE_OFF):
        one = result.one_offs[int(bar.key.removeprefix(_ONE_OFF)) - 1]
        # The currency stands beside them, in the NPV.
        whole = fmt.Scale(business.currency, 1.0)
        return [fmt.money(exact(a, business.currency), whole).number for a in (one.low, one.high)]
    return ["", ""]
