"""Use case part: hold how a report prints its figures against their values, to the digits that it prints."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping
from typing import Final, Literal

from carbonlens.app.said_figures import SaidFigure
from carbonlens.domain.units import J_PER_KWH
from carbonlens.reporting import format as fmt

_NUMBER: Final = re.compile(rf"[+{fmt.MINUS}-]?[0-9][0-9{fmt.GROUP}]*(?:\.[0-9]+)?")
_SAYS: Final = ("at", "least", "counted", "in", "part", "CO₂e")
"""Words beside number and unit."""

_CURRENCY: Final = re.compile(r"[A-Z]{3}")
_NOTHING: Final = 1e-9
"""What rounding leaves of figures that cancel, printed as 0."""

Print = Literal["holds", "differs", "unread"]


def print_of(figure: SaidFigure) -> Print:
    """Tell whether a figure's printed number is its value, to the digits that are printed.

    A number may be one off in its last digit: columns are rounded so that they add up.

    Args:
        figure: As a report's data say it.

    Returns:
        ``unread`` where the unit of the number is not told, or there is none.
    """
    numbers = _NUMBER.findall(figure.printed)
    if figure.value is None:
        return "differs" if numbers or _NUMBER.search(figure.printed_number) else "holds"
    if _NUMBER.findall(figure.printed_number) != numbers:
        return "differs"
    if len(numbers) != 1:
        return "unread"
    said = _value(numbers[0])
    if math.isinf(said):
        return "differs"  # No finite value has so many digits.
    if said == 0 and abs(figure.value) < _NOTHING:
        return "holds"
    factor = _factor(figure)
    grain = _grain(numbers[0]) or max(map(_grain, _NUMBER.findall(figure.printed_interval)), default=0.0)
    if factor is None or not grain:
        return "unread"
    off = abs(figure.value * factor - said)
    return "holds" if off <= grain * (1 + 1e-6) else "differs"


def _value(number: str) -> float:
    return float(number.replace(fmt.GROUP, "").replace(fmt.MINUS, "-"))


def _grain(number: str) -> float:
    """Return the place of the last digit that a number was rounded to; 0 where it does not tell that.

    Nor does a number of more zeros than a float can count.
    """
    whole, point, decimals = number.replace(fmt.GROUP, "").lstrip(f"+-{fmt.MINUS}").partition(".")
    if point:
        return 10.0 ** -len(decimals)
    zeros = len(whole) - len(whole.rstrip("0"))
    return 10.0**zeros if whole.strip("0") and zeros <= sys.float_info.max_10_exp else 0.0


def _factor(figure: SaidFigure) -> float | None:
    """Return what a value is times that for its printed number; ``None`` where the unit tells nothing."""
    words = [w for w in _NUMBER.sub(" ", figure.printed).split() if w not in _SAYS]
    unit = figure.unit
    if _CURRENCY.fullmatch(unit):
        return _COUNTS.get(" ".join(words[1:])) if words[:1] == [unit] else None
    said = " ".join(words)
    scales = _SCALES.get(unit.partition(" per ")[0])
    if scales is not None:
        return scales.get(said)
    return 1.0 if said in ("", unit) else None


def _scales(choose: Callable[[float], fmt.Scale], per: float = 1.0) -> Mapping[str, float]:
    """Return the units of a quantity, each with its factor.

    Args:
        choose: Returns the unit for a size.
        per: Size of the figures' unit in that of ``choose``.
    """
    scales = [choose(10.0**power) for power in range(-20, 20)]
    return {scale.unit: scale.factor * per for scale in scales}


_COUNTS: Final = _scales(fmt.count_scale)
_SCALES: Final[Mapping[str, Mapping[str, float]]] = {
    "J": _scales(fmt.energy_scale),
    "kWh": _scales(fmt.energy_scale, J_PER_KWH),
    "kg": _scales(fmt.mass_scale),
    "g": _scales(fmt.mass_scale, 1e-3),
    "s": _scales(fmt.time_scale),
    "B": _scales(fmt.size_scale),
    "L": {"L": 1.0, "m³": 1e-3},
    "1": {**_COUNTS, "%": 100.0, "points": 100.0, "point": 100.0},
}
