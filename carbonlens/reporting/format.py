"""Formats: how each quantity is printed, with its interval and no false digits.

Digits follow the interval: a value is printed to the first digit that its 95 %
interval leaves in doubt, with two to three significant digits in all. Units are
chosen by size, so that no small figure is printed as zero. Minus is U+2212,
digits are grouped by a narrow space, an unknown value prints as ``unknown``.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from carbonlens.domain.estimate import Estimate
from carbonlens.domain.units import J_PER_KWH, S_PER_HOUR

UNKNOWN: Final = "unknown"
NOT_APPLICABLE: Final = "not applicable"
NO_BOUND: Final = "no bound"
MINUS: Final = "−"
GROUP: Final = "\u202f"
"""Groups digits on paper; a terminal has no such narrow space (``cli.output.clean``)."""
_SPACE: Final = "\u00a0"
_PERCENT: Final = f"{_SPACE}%"


S_PER_DAY: Final = 86_400
S_PER_YEAR: Final = 365.2425 * S_PER_DAY


_SAYS_NOTHING: Final = 1e4
"""A value uncertain by this factor each way is known to be more than nothing, and no more."""


class Printed(msgspec.Struct, frozen=True, kw_only=True):
    """A number as it appears on paper.

    Attributes:
        text: Number with its unit, ``3.4 mJ``.
        number: The number alone, for a column whose head names the unit.
        interval: ``[1.9, 6.2]`` in the same unit; empty when there is none.
        scale, places: Unit and decimals that it was printed with; no unit where it is no plain number.
    """

    text: str
    number: str
    interval: str = ""
    scale: Scale | None = None
    places: int = 0


class Scale(msgspec.Struct, frozen=True):
    """A printed unit: ``printed = value * factor``; ``suffix`` follows a money amount."""

    unit: str
    factor: float
    suffix: str = ""


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
_SPAN: Final = (*_TIME, (2 * S_PER_DAY, "days", 1 / S_PER_DAY), (2 * S_PER_YEAR, "years", 1 / S_PER_YEAR))
_BYTES: Final = (
    (1.0, "B", 1.0),
    (1e3, "kB", 1e-3),
    (1e6, "MB", 1e-6),
    (1e9, "GB", 1e-9),
    (1e12, "TB", 1e-12),
)
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


def money_scale(amount: float | None, currency: str) -> Scale:
    """Return currency and suffix to print an amount with: ``EUR``, ``EUR ... million``."""
    suffix = _scale(_COUNT, amount)
    return Scale(currency, suffix.factor, suffix.unit)


def count_scale(count: float | None) -> Scale:
    """Return the word to print a count with: none to quadrillion."""
    return _scale(_COUNT, count)


def _exponent(x: float) -> int:
    """Return the power of ten of the first digit; rounded first, so that 0.0099999999 counts as 0.01."""
    return int(f"{x:.6e}".rpartition("e")[2]) if x and math.isfinite(x) else 0


def _mantissa(x: float) -> float:
    """Return a finite number without its power of ten; of the smallest doubles too, where 10**-n is 0."""
    return float(f"{x:.6e}".partition("e")[0])


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
    if half < 0.5 * 10.0**-most:
        # One digit more, lest a narrow interval prints as twice the value.
        most += 1
    # One doubtful digit; two where its leading digit is small.
    place = -_exponent(half) + (1 if _mantissa(half) < 2 or abs(value) < half else 0)
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
    body = f"{abs(rounded):,.{max(places, 0)}f}".replace(",", GROUP)
    return (MINUS if rounded < 0 else "") + body


def _interval(low: float | None, high: float | None, places: int, no_bound: str) -> str:
    if low is None and high is None:
        return ""
    if low is not None and high is not None and 0 < low < high / _SAYS_NOTHING**2:
        # So wide that both ends are numbers without a meaning.
        low, high = 0.0, None
    ends = [no_bound if end is None else fixed(end, places) for end in (low, high)]
    return f"[{ends[0]}, {ends[1]}]"


def _counted_part(
    estimate: Estimate, text: str, number: str, interval: str, kept: str
) -> tuple[str, str, str]:
    """Return how a figure is printed of which a part is not known: ``90 J counted [at least 17]``.

    The value is what the known parts come to; the truth may be less, by their own error,
    and any amount more. "At least 90 J [17, no bound]" would contradict itself. Where the
    value is its own lower end, or nobody knows how sure it is, it reads ``at least 90 J``;
    a change that is known of a part only bounds nothing, and reads ``−26 % in part``.

    Args:
        estimate: What is printed.
        text: Number and unit.
        number: The number alone.
        interval: With its open end.
        kept: The interval to print where the value is its lower end.
    """
    if estimate.signed or (estimate.value or 0.0) < 0:
        return f"{text} in part", f"{number} in part", ""
    low = estimate.low
    if low is None or low == estimate.value:
        return f"at least {text}", f"at least {number}", kept
    return f"{text} counted", f"{number} counted", f"[at least {interval[1:].partition(', ')[0]}]"


Places = Callable[[float, float | None, float | None], int]


class Quantity(msgspec.Struct, frozen=True, kw_only=True):
    """How one quantity is printed; called with an estimate it returns the print.

    Attributes:
        choose: Picks the unit that suits an estimate.
        pattern: How number and unit stand together.
        rule: Picks the decimals from value, low and high in the printed unit.
    """

    choose: Callable[[Estimate], Scale]
    pattern: str = "{number} {unit}"
    rule: Places = decimal_places

    def __call__(
        self,
        estimate: Estimate,
        scale: Scale | None = None,
        *,
        plus: bool = False,
        no_bound: str = NO_BOUND,
        at: tuple[float, int] | None = None,
    ) -> Printed:
        """Print an estimate.

        Args:
            estimate: What to print.
            scale: Unit to use instead of the one that suits the value.
            plus: Show the sign of a positive change.
            no_bound: Word for an open end of the interval.
            at: Value in the printed unit and decimals to print instead, rounded
                so that a column adds up.
        """
        if estimate.state == "not_applicable":
            return Printed(text=NOT_APPLICABLE, number=NOT_APPLICABLE)
        unit = scale or self.choose(estimate)
        value = math.nan if estimate.value is None else estimate.value * unit.factor
        if estimate.state == "unknown" or not math.isfinite(value):
            return Printed(text=UNKNOWN, number=UNKNOWN)
        low, high = (None if end is None else end * unit.factor for end in (estimate.low, estimate.high))
        shown, decimals = at or (value, self.rule(value, low, high))
        number = ("+" if plus and value > 0 and shown > 0 else "") + fixed(shown, decimals)
        text = self.pattern.format(number=number, unit=unit.unit, suffix=unit.suffix)
        interval = "" if low is not None and low == high else _interval(low, high, decimals, no_bound)
        text = text.strip()
        if estimate.state == "unbounded":
            kept = interval if no_bound != NO_BOUND or low is None else ""
            text, number, interval = _counted_part(estimate, text, number, interval, kept)
        of = unit if estimate.state == "known" else None
        text = text.replace(" ", _SPACE)
        return Printed(text=text, number=number, interval=interval, scale=of, places=decimals)

    def places(self, estimate: Estimate, scale: Scale) -> int:
        """Return the decimals that the estimate would be printed with in that unit."""
        if estimate.value is None:
            return 0
        low, high = (None if end is None else end * scale.factor for end in (estimate.low, estimate.high))
        return self.rule(estimate.value * scale.factor, low, high)


_MOST_GRAINS: Final = 2**53


def apportion(parts: Sequence[float], places: int, total: float | None = None) -> tuple[float, ...]:
    """Return the parts rounded so that they add up to their rounded sum.

    Largest remainder: every part is rounded down, and the units that are left
    go to the parts that lost most. Counted in fractions, since neither the smallest nor the
    largest doubles survive a division by the grain.

    Args:
        parts: Parts in the printed unit; they come back as they are where one is not finite.
        places: Decimals; negative for rounding before the point.
        total: What they add up to instead: their sum as it is printed elsewhere.
    """
    from fractions import Fraction  # loaded here: a plain run prints its energy, and apportions nothing

    if not all(map(math.isfinite, parts)):
        return tuple(parts)
    if not parts:
        return ()
    grain = Fraction(10) ** -places
    grains = [Fraction(part) / grain for part in parts]
    if max(map(abs, grains)) >= _MOST_GRAINS:
        return tuple(parts)  # no double has as many digits: there is nothing to round
    floors = [math.floor(g) for g in grains]
    whole = sum(grains) if total is None else Fraction(total) / grain
    each, missing = divmod(round(whole) - sum(floors), len(parts))
    order = sorted(range(len(parts)), key=lambda i: (floors[i] - grains[i], i))
    raised = set(order[:missing])
    most = Fraction(sys.float_info.max)
    made = [(f + each + (i in raised)) * grain for i, f in enumerate(floors)]
    return tuple(float(max(-most, min(most, x))) for x in made)


def _cent_places(value: float, low: float | None, high: float | None) -> int:
    places = decimal_places(value, low, high)
    return 2 if places == 1 else places


def _percent_places(value: float, low: float | None, high: float | None) -> int:
    places = decimal_places(value, low, high)
    rest = 100 - abs(value)
    if 0 < rest < 10:
        half = (high - low) / 2 if low is not None and high is not None else 0.0
        wanted = -_exponent(half) if half else 2
        places = max(places, min(wanted, 2 - _exponent(rest)))
    return max(places, 0)


energy: Final = Quantity(choose=lambda e: energy_scale(e.value))
"""Joules, printed as pJ to GWh."""

mass: Final = Quantity(choose=lambda e: mass_scale(e.value), pattern="{number} {unit} CO₂e")
"""Kilograms of CO2e, printed as pg to kt."""

duration: Final = Quantity(choose=lambda e: time_scale(e.value))
"""Seconds, printed as ns to h."""

span: Final = Quantity(choose=lambda e: _scale(_SPAN, e.value))
"""Seconds of calendar time, printed as ns to days and years."""

size: Final = Quantity(choose=lambda e: size_scale(e.value))
"""Bytes, printed as B to TB (decimal)."""

money: Final = Quantity(
    choose=lambda e: money_scale(e.value, e.unit), pattern="{unit} {number} {suffix}", rule=_cent_places
)
"""An amount; the estimate's unit is the currency: ``EUR 9.56``."""

count: Final = Quantity(choose=lambda e: count_scale(e.value))
"""A number of things: ``12.3 million``."""

percent: Final = Quantity(choose=lambda _: Scale("%", 100.0), rule=_percent_places)
"""A fraction as percent. Near 100 % the distance from 100 decides the digits, so
that 99.97 % is never printed as 100 %."""

points: Final = Quantity(
    choose=lambda e: Scale(
        "point" if e.value is not None and round(abs(e.value), 9) == 0.01 else "points", 100.0
    )
)
"""A difference of fractions in percentage points."""


def plain(estimate: Estimate, unit: str = "") -> Printed:
    """Print a number in its own unit."""
    return Quantity(choose=lambda _: Scale(unit, 1.0))(estimate)


def given(
    estimate: Estimate, unit: str, factor: float = 1.0, *, pattern: str = "{number} {unit}", least: int = 0
) -> Printed:
    """Print a stated factor or price with the digits it was stated with, five at most.

    Args:
        estimate: The factor.
        unit: Unit as printed.
        factor: From the estimate's unit to the printed one.
        pattern: How number and unit stand together.
        least: Decimals to print at least.
    """
    if estimate.value is None:
        return Printed(text=UNKNOWN, number=UNKNOWN)
    value = estimate.value * factor
    places = max(_shortest(value, 4 - _exponent(value)), least)
    shown = Quantity(choose=lambda _: Scale(unit, factor), pattern=pattern)
    printed = shown(estimate, at=(value, places))
    three_digits = shown(estimate, at=(value, 2 - _exponent(value)))
    return Printed(text=printed.text, number=printed.number, interval=three_digits.interval)


def probability(p: float | None) -> Printed:
    """Print a p-value: ``< 0.001`` or two digits."""
    if p is None:
        return Printed(text=UNKNOWN, number=UNKNOWN)
    number = f"<{_SPACE}0.001" if p < 0.001 else (f"{p:.3f}" if p < 0.1 else f"{p:.2f}")
    return Printed(text=number, number=number)


def factor(spread: float) -> str:
    """Print a multiplicative uncertainty: ``x/÷ 1.8``."""
    return f"×/÷{_SPACE}{fixed(spread, 1)}"
