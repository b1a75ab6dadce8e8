"""Formats: how each quantity is printed, with its interval and no false digits.

Digits follow the interval: a value is printed to the first digit that its 95 %
interval leaves in doubt, with two to three significant digits in all. Units are
chosen by size, so that no small figure is printed as zero. Minus is U+2212,
digits are grouped by a narrow space, an unknown value prints as ``unknown``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import msgspec

from carbonlens.domain.estimate import Estimate
from carbonlens.domain.units import J_PER_KWH, S_PER_HOUR

UNKNOWN: Final = "unknown"
NOT_APPLICABLE: Final = "not applicable"
_MINUS: Final = "−"
_GROUP: Final = "\u202f"
_SPACE: Final = "\u00a0"
_PERCENT: Final = f"{_SPACE}%"


class Printed(msgspec.Struct, frozen=True, kw_only=True):
    """A number as it appears on paper.

    Attributes:
        text: Number with its unit, ``3.4 mJ``.
        number: The number alone, for a column whose head names the unit.
        interval: ``[1.9, 6.2]`` in the same unit; empty when there is none.
    """

    text: str
    number: str
    interval: str = ""


class Scale(msgspec.Struct, frozen=True):
    """A printed unit: ``printed = value * factor``."""

    unit: str
    factor: float


# Smallest first; each entry holds from its size in the base unit upwards.
_ENERGY: Final = (
    (1e-12, "pJ", 1e12),
    (1e-9, "nJ", 1e9),
    (1e-6, "µJ", 1e6),
    (1e-3, "mJ", 1e3),
    (1.0, "J", 1.0),
    (1e3, "kJ", 1e-3),
    (S_PER_HOUR, "Wh", 1 / S_PER_HOUR),
    (J_PER_KWH, "kWh", 1 / J_PER_KWH),
    (1e3 * J_PER_KWH, "MWh", 1e-3 / J_PER_KWH),
    (1e6 * J_PER_KWH, "GWh", 1e-6 / J_PER_KWH),
)
_MASS: Final = (
    (1e-15, "pg", 1e15),
    (1e-12, "ng", 1e12),
    (1e-9, "µg", 1e9),
    (1e-6, "mg", 1e6),
    (1e-3, "g", 1e3),
    (1.0, "kg", 1.0),
    (1e3, "t", 1e-3),
    (1e6, "kt", 1e-6),
)
_TIME: Final = (
    (1e-9, "ns", 1e9),
    (1e-6, "µs", 1e6),
    (1e-3, "ms", 1e3),
    (1.0, "s", 1.0),
    (60.0, "min", 1 / 60),
    (S_PER_HOUR, "h", 1 / S_PER_HOUR),
)
_BYTES: Final = ((1.0, "B", 1.0), (1e3, "kB", 1e-3), (1e6, "MB", 1e-6), (1e9, "GB", 1e-9), (1e12, "TB", 1e-12))
_COUNT: Final = (
    (1.0, "", 1.0),
    (1e6, "million", 1e-6),
    (1e9, "billion", 1e-9),
    (1e12, "trillion", 1e-12),
    (1e15, "quadrillion", 1e-15),
)


def _scale(ladder: tuple[tuple[float, str, float], ...], value: float | None) -> Scale:
    size = abs(value) if value else 1.0
    # 999.96 J is printed with three digits, as 1.00 kJ.
    chosen = [step for step in ladder if step[0] <= size * 1.0005] or [ladder[0]]
    return Scale(chosen[-1][1], chosen[-1][2])


def energy_scale(joules: float | None) -> Scale:
    """Return the unit to print an energy in: µJ to GWh."""
    return _scale(_ENERGY, joules)


def mass_scale(kg: float | None) -> Scale:
    """Return the unit to print emissions in: pg to kt."""
    return _scale(_MASS, kg)


def time_scale(seconds: float | None) -> Scale:
    """Return the unit to print a duration in: ns to h."""
    return _scale(_TIME, seconds)


def size_scale(size: float | None) -> Scale:
    """Return the unit to print a size in bytes in: B to TB, decimal."""
    return _scale(_BYTES, size)


def count_scale(count: float | None) -> Scale:
    """Return the word to print a count with: none to quadrillion."""
    return _scale(_COUNT, count)


def _exponent(x: float) -> int:
    return math.floor(math.log10(abs(x))) if x and math.isfinite(x) else 0


def decimal_places(value: float, low: float | None, high: float | None) -> int:
    """Return the decimals to print, negative for rounding before the point.

    Args:
        value: Value in the printed unit.
        low: Lower end of its interval.
        high: Upper end of its interval.
    """
    half = (high - low) / 2 if low is not None and high is not None else 0.0
    extent = max(abs(value), half)
    most, least = 2 - _exponent(extent), 1 - _exponent(extent)
    if not half or not math.isfinite(half):
        return _shortest(value, most)
    # One doubtful digit; two where its leading digit is small.
    place = -_exponent(half) + (1 if half / 10 ** _exponent(half) < 2 or abs(value) < half else 0)
    return min(max(place, least), most)


def _shortest(value: float, most: int) -> int:
    """Return the fewest decimals that print an exact value as ``most`` would."""
    places = most
    while places > 0 and round(value, places - 1) == round(value, places):
        places -= 1
    return places


def fixed(x: float, places: int) -> str:
    """Return the number with that many decimals, U+2212 and grouped digits."""
    rounded = round(x, places)
    if rounded == 0 and x != 0:
        # A bound or value that is small but not zero keeps one digit.
        rounded = round(x, -_exponent(x))
        places = max(places, -_exponent(x))
    body = f"{abs(rounded):,.{max(places, 0)}f}".replace(",", _GROUP)
    return (_MINUS if rounded < 0 else "") + body


def _interval(low: float | None, high: float | None, places: int, no_bound: str) -> str:
    if low is None and high is None:
        return ""
    ends = [no_bound if end is None else fixed(end, places) for end in (low, high)]
    return f"[{ends[0]}, {ends[1]}]"


def scaled(
    estimate: Estimate,
    scale: Scale,
    *,
    pattern: str = "{number} {unit}",
    places: Callable[[float, float | None, float | None], int] = decimal_places,
    plus: bool = False,
    no_bound: str = "no bound",
) -> Printed:
    """Print an estimate in the given unit.

    Args:
        estimate: What to print.
        scale: Unit and factor.
        pattern: How number and unit stand together.
        places: Rule for the decimals.
        plus: Show the sign of a positive change.
        no_bound: Word for an open end.
    """
    if estimate.state == "not_applicable":
        return Printed(text=NOT_APPLICABLE, number=NOT_APPLICABLE)
    if estimate.value is None or estimate.state == "unknown" or not math.isfinite(estimate.value):
        return Printed(text=UNKNOWN, number=UNKNOWN)
    value = estimate.value * scale.factor
    low, high = (None if end is None else end * scale.factor for end in (estimate.low, estimate.high))
    decimals = places(value, low, high)
    number = ("+" if plus and value > 0 else "") + fixed(value, decimals)
    if estimate.state == "unbounded":
        number = "at least " + number
    text = pattern.format(number=number, unit=scale.unit).strip().replace(" ", _SPACE)
    exact = low is not None and low == high
    return Printed(text=text, number=number, interval="" if exact else _interval(low, high, decimals, no_bound))


def energy(estimate: Estimate, scale: Scale | None = None) -> Printed:
    """Print joules, in the given unit or the one that suits the value."""
    return scaled(estimate, scale or energy_scale(estimate.value))


def mass(estimate: Estimate, scale: Scale | None = None) -> Printed:
    """Print kg of CO2e."""
    return scaled(estimate, scale or mass_scale(estimate.value), pattern="{number} {unit} CO₂e")


def duration(estimate: Estimate, scale: Scale | None = None) -> Printed:
    """Print seconds."""
    return scaled(estimate, scale or time_scale(estimate.value))


def size(estimate: Estimate, scale: Scale | None = None) -> Printed:
    """Print bytes."""
    return scaled(estimate, scale or size_scale(estimate.value))


def count(estimate: Estimate, scale: Scale | None = None, *, no_bound: str = "no bound") -> Printed:
    """Print a number of things: ``12.3 million``."""
    chosen = scale or count_scale(estimate.value)
    places = decimal_places if chosen.unit else _whole_places
    return scaled(estimate, chosen, places=places, no_bound=no_bound)


def _whole_places(value: float, low: float | None, high: float | None) -> int:
    return min(decimal_places(value, low, high), 0)


def money(estimate: Estimate) -> Printed:
    """Print an amount; the estimate's unit is the currency: ``EUR 9.56``."""
    suffix = count_scale(estimate.value)
    pattern = "{unit} {number}" + (f" {suffix.unit}" if suffix.unit else "")
    return scaled(estimate, Scale(estimate.unit, suffix.factor), pattern=pattern)


def plain(estimate: Estimate, unit: str = "") -> Printed:
    """Print a number in its own unit."""
    return scaled(estimate, Scale(unit, 1.0))


def percent(estimate: Estimate, *, plus: bool = False) -> Printed:
    """Print a fraction as percent: 0.88 is ``88 %``.

    Near 100 % the distance from 100 decides the digits, so that 99.97 % is never
    printed as 100 %.
    """
    return scaled(estimate, Scale("%", 100.0), places=_percent_places, plus=plus)


def _percent_places(value: float, low: float | None, high: float | None) -> int:
    places = decimal_places(value, low, high)
    rest = 100 - abs(value)
    if 0 < rest < 10:
        exact = low is None or high is None or low == high
        wanted = 2 if exact else -_exponent((high - low) / 2)  # type: ignore[operator]
        places = max(places, min(wanted, 2 - _exponent(rest)))
    return max(places, 0)


def points(estimate: Estimate) -> Printed:
    """Print a difference of fractions in percentage points."""
    return scaled(estimate, Scale("points", 100.0))


def probability(p: float | None) -> Printed:
    """Print a p-value: ``< 0.001`` or two digits."""
    if p is None:
        return Printed(text=UNKNOWN, number=UNKNOWN)
    number = f"<{_SPACE}0.001" if p < 0.001 else (f"{p:.3f}" if p < 0.1 else f"{p:.2f}")
    return Printed(text=number, number=number)


def factor(spread: float) -> str:
    """Print a multiplicative uncertainty: ``x/÷ 1.8``."""
    return f"×/÷{_SPACE}{fixed(spread, 1)}"
