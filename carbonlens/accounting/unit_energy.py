"""Intensities: energy and emissions per functional unit of the work of a period."""

from __future__ import annotations

from carbonlens.accounting.conversions import kg_to_g, kwh_to_j
from carbonlens.accounting.formulas import Quantity
from carbonlens.accounting.propagation import through
from carbonlens.domain.estimate import Estimate, unknown


def joules_per_unit(kwh: Quantity, count: Quantity) -> Quantity:
    """Return joules per functional unit."""
    return kwh_to_j(kwh) / count


def grams_per_unit(kg: Quantity, count: Quantity) -> Quantity:
    """Return grams of CO2e per functional unit."""
    return kg_to_g(kg) / count


def per_unit(amount: Estimate, count: float | None) -> Estimate:
    """Return joules or kilograms of CO2e per unit; unknown where one of the two is, or a part of it.

    Args:
        amount: In kWh or kg.
        count: Units of work, as they were counted.
    """
    unit = "J" if amount.unit == "kWh" else "g"
    if amount.state != "known" or not count:
        return unknown(unit)
    formula = joules_per_unit if unit == "J" else grams_per_unit
    return through(formula, amount, count, unit=unit)
