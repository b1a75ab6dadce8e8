"""Factors, prices and the one declared vector a comparison uses.

Every row names its source and its period; a figure made with it can be traced
to it.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

import msgspec

from carbonlens.domain.finding import Finding

Method = Literal["location", "market"]
PriceUnit = Literal["kWh", "core_hour"]


class Factor(msgspec.Struct, frozen=True, kw_only=True):
    """An emission factor of electricity, in kg CO2e per kWh.

    Attributes:
        factor_id: Stable id, the name of its error source.
        zone: Grid zone as the source names it.
        period: Year or month the value holds for (``2024``, ``2024-03``).
        method: Location-based or market-based.
        basis: Words that tell what is counted (average, life-cycle, ...).
        value_kg_per_kwh: The factor.
        u_relative: One relative sigma; 0 only for a value exact by definition.
        source: Where the figure comes from, with its version.
        example: True for an assumption made for an example.
    """

    factor_id: str
    zone: str
    period: str
    method: Method
    basis: tuple[str, ...] = ()
    value_kg_per_kwh: float
    u_relative: float = 0.0
    source: str
    example: bool = False


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """A price per unit of activity.

    Attributes:
        price_id: Stable id, the name of its error source.
        amount: Exact amount per ``per``.
        currency: ISO 4217 code.
        per: Unit of activity: ``kWh`` or ``core_hour``.
        period: Year or month the price holds for.
        u_relative: One relative sigma.
        source: Where the figure comes from.
        example: True for an assumption made for an example.
    """

    price_id: str
    amount: Decimal
    currency: str
    per: PriceUnit
    period: str
    u_relative: float = 0.0
    source: str
    example: bool = False


class Embodied(msgspec.Struct, frozen=True, kw_only=True):
    """Embodied emissions of the hardware per used core-hour, in kg CO2e."""

    factor_id: str
    value_kg_per_core_hour: float
    u_relative: float
    source: str
    example: bool = False


class NamedPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A place that a user names instead of typing its factors; ``app`` fills them from the store.

    Attributes:
        zone: Country, grid zone or state, as written.
        cloud: Cloud region, as written (``aws:eu-west-3``).
        country: Country it is said to lie in, to be checked.
        region: Part of the country, as written.
        period: Time of use: a year, a month, an hour in UTC.
        span: ``direct`` or ``life_cycle``; direct where there is one when ``None``.
        averaging: ``marginal`` only where it is asked for.
    """

    zone: str | None = None
    cloud: str | None = None
    country: str | None = None
    region: str | None = None
    period: str
    span: Literal["direct", "life_cycle"] | None = None
    averaging: Literal["average", "marginal"] = "average"


class Vector(msgspec.Struct, frozen=True, kw_only=True):
    """The factors and prices that all arms of a comparison share.

    ``None`` means unknown: the figures that would need the part are unknown
    too, with a Finding. Nothing is filled in.

    Attributes:
        place: Where the work runs, as printed beside a carbon figure.
        pue: Facility energy per IT energy.
        pue_source: Where the PUE comes from.
        pue_u_relative: One relative sigma of the PUE; its error source is named ``pue``.
        host_overhead: IT energy per device energy (power supply, fans, board).
        host_overhead_source: Where it comes from.
        host_overhead_u_relative: One relative sigma of it; ``None`` when nobody states it.
        example: True if any part is an example assumption.
        named: Place whose factors are still to be filled in from the store.
        findings: What was found while they were filled in.
    """

    place: str | None = None
    location: Factor | None = None
    market: Factor | None = None
    pue: float | None = None
    pue_source: str | None = None
    pue_u_relative: float = 0.0
    host_overhead: float | None = None
    host_overhead_source: str | None = None
    host_overhead_u_relative: float | None = None
    electricity: Price | None = None
    machine: Price | None = None
    embodied: Embodied | None = None
    notes: tuple[str, ...] = ()
    named: NamedPlace | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def example(self) -> bool:
        """Whether any part is an example assumption rather than the user's own."""
        parts = (self.location, self.market, self.electricity, self.machine, self.embodied)
        return any(p is not None and p.example for p in parts)

    @property
    def currency(self) -> str | None:
        """The one currency of the prices; ``None`` without a price."""
        for price in (self.electricity, self.machine):
            if price is not None:
                return price.currency
        return None
