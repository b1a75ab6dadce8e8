"""Prices as tables give them: dated rows, tariffs by time of use, and exchange rates."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

import msgspec

from carbonlens.domain.money import Money

PricePer = Literal["kWh", "hour", "core_hour", "device_hour", "month", "request", "1e6_tokens", "GB"]
CostKind = Literal["list", "contracted", "effective", "billed"]


class PriceRow(msgspec.Struct, frozen=True, kw_only=True):
    """One dated price.

    Attributes:
        price_id: Stable id, the name of its error source.
        subject: What is bought: ``aws:p5.48xlarge``, ``electricity``, ``engineering``...
        region: Where it is bought; ``None`` for everywhere.
        per: Unit of activity.
        amount: Money per unit.
        cost_kind: Which of FOCUS's costs it is.
        terms: Words such as ``on demand, Linux``.
        valid_from, valid_to: Dates of the price, ``2026-01-01``; ``valid_to`` is exclusive.
        u_relative: One relative sigma; ``None`` when nobody states one.
        source, address: Where it was read.
        read_on: Date on which it was read there.
        licence: Terms of the source.
    """

    price_id: str
    subject: str
    region: str | None = None
    per: PricePer
    amount: Money
    cost_kind: CostKind = "list"
    terms: str = ""
    valid_from: str
    valid_to: str | None = None
    u_relative: float | None = None
    source: str
    address: str
    read_on: str
    licence: str = ""
    note: str = ""


class TariffBand(msgspec.Struct, frozen=True, kw_only=True):
    """Hours of the week at one price.

    Attributes:
        name: For example ``peak``.
        amount_per_kwh: Price in the tariff's currency.
        weekdays: 0 for Monday to 6 for Sunday.
        start_hour, end_hour: Local hours, end exclusive; 22 to 6 goes over midnight, its
            hours after midnight belonging to the weekday on which the band starts.
        months: 1 to 12.
    """

    name: str
    amount_per_kwh: Decimal
    weekdays: tuple[int, ...] = (0, 1, 2, 3, 4, 5, 6)
    start_hour: int = 0
    end_hour: int = 24
    months: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)

    def covers(self, month: int, weekday: int, hour: int) -> bool:
        """Tell whether a local hour is one of the band's.

        Args:
            month: 1 to 12, of the hour itself.
            weekday: 0 for Monday to 6 for Sunday, of the hour itself.
            hour: 0 to 23.
        """
        if month not in self.months:
            return False
        if self.start_hour < self.end_hour:
            return weekday in self.weekdays and self.start_hour <= hour < self.end_hour
        if hour >= self.start_hour:
            return weekday in self.weekdays
        return hour < self.end_hour and (weekday - 1) % 7 in self.weekdays


class Tariff(msgspec.Struct, frozen=True, kw_only=True):
    """Price of electricity at a site by time of use.

    Attributes:
        tariff_id: Its name.
        site: Site it holds for.
        currency: ISO 4217 code.
        timezone: In which the bands' hours are.
        valid_from, valid_to: Dates, ``valid_to`` exclusive.
        bands: Each hour of the week must lie in exactly one.
        fixed_per_month: Charge that no kWh changes: a line of its own.
        source: Contract or bill it was read from.
    """

    tariff_id: str
    site: str
    currency: str
    timezone: str
    valid_from: str
    valid_to: str | None = None
    bands: tuple[TariffBand, ...]
    fixed_per_month: Decimal | None = None
    u_relative: float | None = None
    source: str


class ExchangeRate(msgspec.Struct, frozen=True, kw_only=True):
    """How much of ``quote`` one unit of ``base`` bought on a day; given by the user, never guessed."""

    base: str
    quote: str
    date: str
    rate: Decimal
    source: str


class PriceIndex(msgspec.Struct, frozen=True, kw_only=True):
    """Level of prices in a currency in a year, by an index that the user names."""

    currency: str
    year: int
    index: Decimal
    source: str
