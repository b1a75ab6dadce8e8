"""Inventory: all that an entity declares about its sites, instruments, hardware and reporting."""

from __future__ import annotations

import msgspec

from carbonlens.domain.asset import Asset
from carbonlens.domain.certificate import Certificate
from carbonlens.domain.charge import Invoice
from carbonlens.domain.expense import Expense
from carbonlens.domain.finding import Finding
from carbonlens.domain.initiative import Delivery, Initiative
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.domain.pricing import ExchangeRate, PriceIndex, PriceRow, Tariff
from carbonlens.domain.service import Service
from carbonlens.domain.site import Meter, Site


class ReportingTerms(msgspec.Struct, frozen=True, kw_only=True):
    """How periods are cut and what the entity promised about them.

    Attributes:
        timezone: IANA name in which days and months are cut.
        fiscal_year_start: Month in which the fiscal year begins, 1 to 12.
        entity: Who reports.
        base_year: Fiscal year that later ones are compared with.
        recalculation_threshold: Relative change of the base year from which it is recalculated.
        currency: In which money is reported.
        price_year: Year to whose prices money of other years is brought; ``None`` leaves it nominal.
        embodied_source: Name of the one source of ``embodied`` factors that statements take; all of
            them as a range when ``None``.
        example: Whether the whole inventory is an invented example.
    """

    timezone: str = "UTC"
    fiscal_year_start: int = 1
    entity: str | None = None
    base_year: int | None = None
    recalculation_threshold: float | None = None
    currency: str | None = None
    price_year: int | None = None
    embodied_source: str | None = None
    example: bool = False


class Inventory(msgspec.Struct, frozen=True, kw_only=True):
    """The whole inventory, and what was found wrong in it."""

    terms: ReportingTerms = ReportingTerms()
    sites: tuple[Site, ...] = ()
    meters: tuple[Meter, ...] = ()
    readings: tuple[MeterReading, ...] = ()
    certificates: tuple[Certificate, ...] = ()
    assets: tuple[Asset, ...] = ()
    initiatives: tuple[Initiative, ...] = ()
    deliveries: tuple[Delivery, ...] = ()
    tariffs: tuple[Tariff, ...] = ()
    prices: tuple[PriceRow, ...] = ()
    exchange_rates: tuple[ExchangeRate, ...] = ()
    price_indices: tuple[PriceIndex, ...] = ()
    expenses: tuple[Expense, ...] = ()
    invoices: tuple[Invoice, ...] = ()
    services: tuple[Service, ...] = ()
    findings: tuple[Finding, ...] = ()

    def site(self, name: str) -> Site | None:
        """Return the site of that name; ``None`` if there is none."""
        return next((s for s in self.sites if s.site_id == name), None)
