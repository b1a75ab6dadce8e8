"""Conversions of units that sources use into the one that is kept, and back.

Plain arithmetic with exact whole constants, so that a float, a Decimal, an array or a
column goes through the same line. The name says from what to what.
"""

from __future__ import annotations

from carbonlens.accounting.formulas import Quantity
from carbonlens.domain.units import (
    G_PER_KG,
    J_PER_KWH,
    KG_PER_1E8_LB,
    KG_PER_TONNE,
    KWH_PER_MWH,
    WH_PER_KWH,
)


def lb_to_kg(lb: Quantity) -> Quantity:
    """Return kilograms of avoirdupois pounds."""
    return lb * KG_PER_1E8_LB / 100_000_000


def lb_per_mwh_to_kg_per_kwh(rate: Quantity) -> Quantity:
    """Return kg/kWh of an emission rate in lb/MWh."""
    return lb_to_kg(rate) / KWH_PER_MWH


def lb_per_kwh_to_kg_per_kwh(rate: Quantity) -> Quantity:
    """Return kg/kWh of an emission rate in lb/kWh."""
    return lb_to_kg(rate)


def g_per_kwh_to_kg_per_kwh(rate: Quantity) -> Quantity:
    """Return kg/kWh of an emission rate in g/kWh."""
    return rate / G_PER_KG


def kg_per_kwh_to_g_per_kwh(rate: Quantity) -> Quantity:
    """Return g/kWh of an emission rate in kg/kWh."""
    return rate * G_PER_KG


def t_per_mwh_to_kg_per_kwh(rate: Quantity) -> Quantity:
    """Return kg/kWh of an emission rate in tonnes per MWh."""
    return rate * KG_PER_TONNE / KWH_PER_MWH


def kg_to_g(kg: Quantity) -> Quantity:
    """Return grams of kilograms."""
    return kg * G_PER_KG


def kg_to_tonne(kg: Quantity) -> Quantity:
    """Return tonnes of kilograms."""
    return kg / KG_PER_TONNE


def tonne_to_kg(tonnes: Quantity) -> Quantity:
    """Return kilograms of tonnes."""
    return tonnes * KG_PER_TONNE


def mwh_to_kwh(mwh: Quantity) -> Quantity:
    """Return kilowatt hours of megawatt hours."""
    return mwh * KWH_PER_MWH


def kwh_to_mwh(kwh: Quantity) -> Quantity:
    """Return megawatt hours of kilowatt hours."""
    return kwh / KWH_PER_MWH


def wh_to_kwh(wh: Quantity) -> Quantity:
    """Return kilowatt hours of watt hours."""
    return wh / WH_PER_KWH


def kwh_to_j(kwh: Quantity) -> Quantity:
    """Return joules of kilowatt hours."""
    return kwh * J_PER_KWH
