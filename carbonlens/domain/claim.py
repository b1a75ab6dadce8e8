"""Claim: what a row of a table, a model card or a record states, as it stands there.

A claim is evidence to be checked, not a figure of ours. Every number keeps its unit and
the width of its last printed digit, so that rounding is never taken for an error.
"""

from __future__ import annotations

from decimal import Decimal

import msgspec

from carbonlens.domain.units import Boundary

_LEAST_WIDTH = Decimal("0.5")


class Stated(msgspec.Struct, frozen=True, kw_only=True):
    """A number as it is stated.

    Attributes:
        value: The number, in its own unit.
        unit: As a unit of ``audit/quantities.py``; ``None`` where nobody says.
        half: Half a step of the last digit it is stated to: the figure meant lies within.
    """

    value: Decimal
    unit: str | None = None
    half: Decimal = Decimal(0)


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What one row or card states.

    Attributes:
        what: Name of the row, as it stands.
        file, line: Where it stands; lines count from 1.
        table: Which table of the file; claims of one table are read together.
        energy, boundary: Energy, and what it includes where it is said.
        it: IT energy that stands beside the facility energy.
        accounted: Whether it is a line of a statement, which owes a place or a factor.
        emissions: Location-based, or of a method nobody names.
        market_emissions: Market-based.
        front_matter: Whether ``emissions`` come from a card's ``co2_eq_emissions``.
        hours: Device hours if ``device_hours``, else elapsed hours.
        other_hours: Further hours of the same devices that the row states apart.
        devices: How many ran; ``watts`` is the power of each.
        hardware: What ran, as it stands.
        pue, wue, water: PUE, litres per kWh of IT energy, and litres used.
        factor: Emissions per energy, with its unit.
        factor_year: Year the factor holds for.
        basis: What the factor counts, as it stands: ``direct``, ``life_cycle``.
        region: Place, as it stands.
        year: Year of the work.
        scope: Scope it is booked in: ``1``, ``2`` or ``3``.
        cloud: Whether it ran on rented machines; ``None`` where nobody says.
        components: What the energy holds (``cpu``, ``gpu``, ``ram``); ``None`` where nobody says.
        units, per_unit: Amount of work, and emissions for one of it.
        cost: Money, whose unit is the currency.
        baseline, saving: Energy before, and the saving in percent of it.
        parts: What a total sums.
        unread: Cells of numbers that state no possible figure, in words: none of them is used.
    """

    what: str
    file: str | None = None
    line: int | None = None
    table: int = 0
    energy: Stated | None = None
    boundary: Boundary | None = None
    it: Stated | None = None
    accounted: bool = False
    emissions: Stated | None = None
    market_emissions: Stated | None = None
    front_matter: bool = False
    hours: Stated | None = None
    device_hours: bool = True
    other_hours: tuple[Stated, ...] = ()
    devices: Stated | None = None
    watts: Stated | None = None
    hardware: str | None = None
    pue: Stated | None = None
    wue: Stated | None = None
    water: Stated | None = None
    factor: Stated | None = None
    factor_year: int | None = None
    basis: str | None = None
    region: str | None = None
    year: int | None = None
    scope: str | None = None
    cloud: bool | None = None
    components: tuple[str, ...] | None = None
    units: Stated | None = None
    per_unit: Stated | None = None
    cost: Stated | None = None
    baseline: Stated | None = None
    saving: Stated | None = None
    parts: tuple[Claim, ...] = ()
    unread: tuple[str, ...] = ()


def stated(number: str | int | Decimal, unit: str | None = None) -> Stated:
    """Return a number with the width of its last digit.

    Args:
        number: As printed; ``1.3E+6`` is exact to its last digit, as 1.3 million is.
        unit: Its unit.

    Raises:
        decimal.InvalidOperation: If it is no number.
    """
    value = Decimal(number)
    exponent = value.as_tuple().exponent
    half = _LEAST_WIDTH.scaleb(exponent) if isinstance(exponent, int) else Decimal(0)
    return Stated(value=value, unit=unit, half=half)
