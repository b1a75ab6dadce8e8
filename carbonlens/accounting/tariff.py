"""Tariffs by the hour: a price for each local hour, and fixed charges apart.

An hour is priced by the local time of its first instant, so that a day on which the clocks
change has 23 or 25 priced hours. An hour in no band, or in two, has no price: it is never
filled in from a neighbour.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache, partial
from itertools import product
from typing import NamedTuple

import msgspec

from carbonlens.accounting.formulas import Quantity
from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.pricing import Tariff, TariffBand


class LocalHour(NamedTuple):
    """One UTC hour in local terms.

    Attributes:
        hour_utc: Hours since 1970, UTC.
        date: ``20260329``.
        weekday: 0 for Monday.
        hour: 0 to 23, of the first instant.
    """

    hour_utc: int
    date: int
    weekday: int
    hour: int


class HourPrice(NamedTuple):
    """The price of one hour; ``tariff_id`` names its error source."""

    hour_utc: int
    amount_per_kwh: Decimal
    currency: str
    tariff_id: str
    band: str
    u_relative: float | None


class Prices(msgspec.Struct, frozen=True, kw_only=True):
    """Priced hours of one site; hours without a price are left out, and said in ``findings``."""

    site: str
    hours: tuple[HourPrice, ...]
    findings: tuple[Finding, ...] = ()

    def rate_rows(self) -> Iterator[dict[str, object]]:
        """Yield rows for ``ledger.rates``, keyed by site and UTC hour."""
        for hour in self.hours:
            yield {
                "site": self.site,
                "hour_utc": hour.hour_utc,
                "rate": hour.amount_per_kwh,
                "source_id": hour.tariff_id,
                "u_relative": hour.u_relative,
                "currency": hour.currency,
            }


def fixed_charge(per_month: Quantity, months: Quantity) -> Quantity:
    """Return what a fixed monthly charge amounts to over months or parts of them."""
    return per_month * months


def prices(tariffs: Sequence[Tariff], site: str, hours: Mapping[str, Sequence[LocalHour]]) -> Prices:
    """Return the price of each hour at a site.

    Args:
        tariffs: All of the inventory.
        site: The site; tariffs of others are left out.
        hours: Time zone of a tariff to the same UTC hours in its terms.
    """
    own = [t for t in tariffs if t.site == site]
    tables = {t.tariff_id: _table(t) for t in own}
    found: list[HourPrice] = []
    unpriced: dict[str, list[LocalHour]] = {}
    # A tariff holds for whole days: asked once a day, not once an hour.
    holds = [(t, hours.get(t.timezone, ()), cache(partial(_holds, t))) for t in own]
    for place, hour in enumerate(next(iter(hours.values()), ())):
        local = ((t, zone[place], is_held) for t, zone, is_held in holds)
        valid = [(t, h) for t, h, is_held in local if is_held(h.date)]
        if len(valid) != 1:
            unpriced.setdefault("two tariffs hold" if valid else "no tariff holds", []).append(hour)
            continue
        tariff, at = valid[0]
        band = tables[tariff.tariff_id][at.date // 100 % 100, at.weekday, at.hour]
        if band is None:
            unpriced.setdefault(f"{tariff.tariff_id} has no band, or two", []).append(at)
            continue
        price = (band.amount_per_kwh, tariff.currency, tariff.tariff_id, band.name, tariff.u_relative)
        found.append(HourPrice(hour.hour_utc, *price))
    return Prices(site=site, hours=tuple(found), findings=tuple(_unpriced(site, unpriced)))


def fixed_charges(
    tariffs: Sequence[Tariff], site: str, months: Iterable[str]
) -> tuple[tuple[Tariff, Decimal], ...]:
    """Return each tariff with a fixed charge, and the months of it that a period holds.

    A month in which the tariff holds for some days only counts by those days.

    Args:
        tariffs: All of the inventory.
        site: The site.
        months: Local months, ``2026-03``.
    """
    every = list(months)
    own = [t for t in tariffs if t.site == site and t.fixed_per_month is not None]
    counts = [(t, sum((_part_of_month(t, m) for m in every), Decimal(0))) for t in own]
    return tuple((t, count) for t, count in counts if count)


def _table(tariff: Tariff) -> dict[tuple[int, int, int], TariffBand | None]:
    """Return the one band of each month, weekday and hour; ``None`` where it is not one."""
    table: dict[tuple[int, int, int], TariffBand | None] = {}
    weeks: dict[tuple[TariffBand, ...], dict[tuple[int, int], TariffBand | None]] = {}
    for month in range(1, 13):
        # Months of the same bands have the same week.
        bands = tuple(b for b in tariff.bands if month in b.months)
        if bands not in weeks:
            weeks[bands] = _week(month, bands)
        table |= {(month, *when): band for when, band in weeks[bands].items()}
    return table


def _week(month: int, bands: Sequence[TariffBand]) -> dict[tuple[int, int], TariffBand | None]:
    """Return the one band of each weekday and hour of a month; ``None`` where it is not one."""
    found: dict[tuple[int, int], TariffBand | None] = {}
    for when in product(range(7), range(24)):
        held = [b for b in bands if b.covers(month, *when)]
        found[when] = held[0] if len(held) == 1 else None
    return found


def _holds(tariff: Tariff, date: int) -> bool:
    ends = None if tariff.valid_to is None else _number(tariff.valid_to)
    return _number(tariff.valid_from) <= date and (ends is None or date < ends)


@cache
def _number(date: str) -> int:
    return int(date.replace("-", ""))


def _part_of_month(tariff: Tariff, month: str) -> Decimal:
    year, number = map(int, month.split("-"))
    days = monthrange(year, number)[1]
    first = (year * 100 + number) * 100
    held = sum(_holds(tariff, first + day) for day in range(1, days + 1))
    return Decimal(held) / days


def _unpriced(site: str, unpriced: Mapping[str, Sequence[LocalHour]]) -> Iterator[Finding]:
    for why, hours in unpriced.items():
        first = f"{hours[0].date} {hours[0].hour:02}:00"
        yield Finding(
            code="CL319",
            severity="warning",
            message=f"{counted(len(hours), 'hour')} at {site}, the first {first}, have no price: {why}",
            mend="let one tariff hold, and one band of it cover these hours",
            subject=site,
        )
