"""Sustainability units: in which unit each quantity of the report is printed."""

from __future__ import annotations

from collections.abc import Iterable

from carbonlens.accounting.conversions import kwh_to_j
from carbonlens.domain.estimate import Estimate
from carbonlens.reporting import format as fmt
from carbonlens.reporting.format import Quantity, Scale

J_PER_KWH = float(kwh_to_j(1))
_KG_PER_G = 1e-3

_LITRES = ((1.0, "L", 1.0), (1e3, "m³", 1e-3))
volume = Quantity(choose=lambda e: _litre_scale(e.value))
"""Litres, printed as L or m³."""


def _litre_scale(litres: float | None) -> Scale:
    size = abs(litres) if litres else 1.0
    chosen = [step for step in _LITRES if step[0] <= size * 1.0005] or [_LITRES[0]]
    return Scale(chosen[-1][1], chosen[-1][2])


def shown(estimate: Estimate) -> Estimate:
    """Return an estimate in the unit of its quantity: energies in joules, grams in kilograms."""
    if estimate.unit == "kWh":
        return estimate.scale(J_PER_KWH, "J")
    return estimate.scale(_KG_PER_G, "kg") if _is_grams(estimate.unit) else estimate


def _is_grams(unit: str) -> bool:
    """Tell whether a unit is of grams, as that of an intensity or a score: ``g per token``."""
    return unit == "g" or unit.startswith("g per ")


def quantity_of(unit: str) -> Quantity:
    """Return how an estimate of that unit is printed."""
    if unit in ("kWh", "J"):
        return fmt.energy
    if unit == "kg" or _is_grams(unit):
        return fmt.mass
    if unit == "L":
        return volume
    if unit == "1":
        return fmt.percent
    return fmt.money if len(unit) == 3 and unit.isupper() else Quantity(choose=lambda _: Scale(unit, 1.0))


def axis_of(estimates: Iterable[Estimate]) -> tuple[Scale, float]:
    """Return the unit that suits the largest of some estimates, and the factor from their own to it."""
    held = [e for e in estimates if e.value is not None]
    if not held:
        return Scale("", 1.0), 1.0
    largest = max(held, key=lambda e: abs(e.value or 0.0))
    scale = quantity_of(largest.unit).choose(shown(largest))
    one = shown(Estimate(value=1.0, unit=largest.unit)).value
    return scale, scale.factor * (one or 1.0)
