"""Stated numbers as intervals in one unit, and whether two of them can be one figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

import msgspec

from carbonlens.accounting.conversions import (
    g_per_kwh_to_kg_per_kwh,
    lb_per_kwh_to_kg_per_kwh,
    lb_per_mwh_to_kg_per_kwh,
    lb_to_kg,
    mwh_to_kwh,
    t_per_mwh_to_kg_per_kwh,
    tonne_to_kg,
    wh_to_kwh,
)
from carbonlens.accounting.formulas import energy_kwh
from carbonlens.domain.claim import Stated
from carbonlens.domain.units import G_PER_KG

SLACK: Final = 0.003
"""Products may differ by this beyond the rounding of what is printed: some cut, or round in between."""


def _same(value: Any) -> Any:  # noqa: ANN401  # as the formulas of the account
    return value


def _gwh_to_kwh(value: Any) -> Any:  # noqa: ANN401  # any kind of number
    return mwh_to_kwh(value) * 1000


def _g_to_kg(value: Any) -> Any:  # noqa: ANN401  # any kind of number
    return value / G_PER_KG


KWH: Final[Mapping[str, Callable[[Any], Any]]] = {
    "J": energy_kwh,
    "Wh": wh_to_kwh,
    "kWh": _same,
    "MWh": mwh_to_kwh,
    "GWh": _gwh_to_kwh,
}
KG: Final[Mapping[str, Callable[[Any], Any]]] = {
    "g": _g_to_kg,
    "kg": _same,
    "t": tonne_to_kg,
    "lb": lb_to_kg,
}
KG_PER_KWH: Final[Mapping[str, Callable[[Any], Any]]] = {
    "g/kWh": g_per_kwh_to_kg_per_kwh,
    "kg/kWh": _same,
    "kg/MWh": g_per_kwh_to_kg_per_kwh,
    "t/MWh": t_per_mwh_to_kg_per_kwh,
    "lb/kWh": lb_per_kwh_to_kg_per_kwh,
    "lb/MWh": lb_per_mwh_to_kg_per_kwh,
}


class Span(msgspec.Struct, frozen=True):
    """The figures a printed number can stand for, and the one in the middle."""

    low: float
    value: float
    high: float


def span(number: Stated | None, units: Mapping[str, Callable[[Any], Any]] | None = None) -> Span | None:
    """Return a stated number as an interval in one unit; ``None`` where it or its unit is unknown.

    Args:
        number: As stated.
        units: Conversions by unit (``KWH``, ``KG``, ``KG_PER_KWH``); none for a pure number.
    """
    if number is None:
        return None
    convert = _same if units is None else units.get(number.unit or "")
    if convert is None:
        return None
    ends = (number.value - number.half, number.value, number.value + number.half)
    low, value, high = (float(convert(end)) for end in ends)
    return Span(low if value < 0 else max(low, 0.0), value, high)


def through(formula: Callable[..., Any], *spans: Span) -> Span:
    """Return a formula of intervals; it must grow with each of them.

    Args:
        formula: Plain arithmetic.
        spans: Its arguments.
    """
    return Span(
        formula(*(s.low for s in spans)),
        formula(*(s.value for s in spans)),
        formula(*(s.high for s in spans)),
    )


def total(spans: Iterable[Span]) -> Span:
    """Return the sum of intervals."""
    items = list(spans)
    return Span(sum(s.low for s in items), sum(s.value for s in items), sum(s.high for s in items))


def agree(one: Span, other: Span, slack: float = SLACK) -> bool:
    """Return whether both can be one figure.

    Args:
        one: An interval.
        other: Another of the same unit.
        slack: Relative difference that is no difference.
    """
    return one.low <= other.high * (1 + slack) and other.low <= one.high * (1 + slack)


def shown(number: Stated) -> str:
    """Return a stated number as printed, without a needless exponent."""
    unit = f" {number.unit}" if number.unit else ""
    return f"{figure(number.value)}{unit}"


def figure(value: float | Decimal) -> str:
    """Return up to six digits of a figure, without an exponent where it is of a usual size."""
    number = float(value)
    text = f"{number:.6g}"
    return f"{number:.0f}" if "e+" in text and abs(number) < 1e15 else text
