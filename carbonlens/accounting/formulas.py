"""The formulas of the account, each written once as plain arithmetic.

They use ``+ - * /`` only, so that a float, a Decimal, a numpy array or a
narwhals column expression goes through the same line.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from carbonlens.domain.units import J_PER_KWH, S_PER_HOUR

Quantity: TypeAlias = Any
"""A float, a Decimal, a numpy array or a narwhals expression."""


def energy_kwh(energy_j: Quantity) -> Quantity:
    """Return kilowatt hours of joules."""
    return energy_j / J_PER_KWH


def it_kwh(device_kwh: Quantity, host_overhead: Quantity) -> Quantity:
    """Return IT energy of device energy (power supply, fans and board of the server)."""
    return device_kwh * host_overhead


def device_of_it_kwh(it_kwh: Quantity, host_overhead: Quantity) -> Quantity:
    """Return device energy of IT energy."""
    return it_kwh / host_overhead


def it_of_facility_kwh(facility_kwh: Quantity, pue: Quantity) -> Quantity:
    """Return IT energy of facility energy (PUE as in ISO/IEC 30134-2)."""
    return facility_kwh / pue


def pue_of(facility_kwh: Quantity, it_kwh: Quantity) -> Quantity:
    """Return the PUE of both energies (ISO/IEC 30134-2)."""
    return facility_kwh / it_kwh


def facility_kwh(it_kwh: Quantity, pue: Quantity) -> Quantity:
    """Return facility energy of IT energy (PUE as in ISO/IEC 30134-2)."""
    return it_kwh * pue


def emissions_kg(kwh: Quantity, kg_per_kwh: Quantity) -> Quantity:
    """Return kg CO2e of facility energy by an emission factor."""
    return kwh * kg_per_kwh


def electricity_cost(kwh: Quantity, price_per_kwh: Quantity) -> Quantity:
    """Return the cost of facility energy, in the price's currency."""
    return kwh * price_per_kwh


def core_hours(cpu_s: Quantity) -> Quantity:
    """Return core hours of CPU seconds."""
    return cpu_s / S_PER_HOUR


def machine_cost(core_h: Quantity, price_per_core_hour: Quantity) -> Quantity:
    """Return the cost of core hours, in the price's currency."""
    return core_h * price_per_core_hour


def embodied_kg(core_h: Quantity, kg_per_core_hour: Quantity) -> Quantity:
    """Return the share of the hardware's embodied kg CO2e that core hours use."""
    return core_h * kg_per_core_hour
