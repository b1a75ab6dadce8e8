"""Use case: the tariffs of an inventory as prices by the hour, ready for the ledger's queries."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from carbonlens.accounting.tariff import LocalHour, Prices, prices
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.units import S_PER_HOUR
from carbonlens.ledger.calendar import Period


@lru_cache(maxsize=8)
def local_hours(timezone: str, first_hour: int, end_hour: int) -> tuple[LocalHour, ...]:
    """Return UTC hours in the terms of a time zone, by the first instant of each.

    The same ones for each site of a zone: they are kept.

    Args:
        timezone: IANA name, as the inventory has checked it.
        first_hour: Hours since 1970, UTC.
        end_hour: Likewise, exclusive.
    """
    zone = ZoneInfo(timezone)
    found = []
    for hour in range(first_hour, end_hour):
        at = datetime.fromtimestamp(hour * S_PER_HOUR, tz=UTC).astimezone(zone)
        found.append(LocalHour(hour, (at.year * 100 + at.month) * 100 + at.day, at.weekday(), at.hour))
    return tuple(found)


def tariff_prices(inventory: Inventory, period: Period) -> tuple[Prices, ...]:
    """Return the price of each hour of a period at each site that has a tariff.

    Args:
        inventory: With the tariffs.
        period: Hours asked for.
    """
    zones = {t.timezone for t in inventory.tariffs}
    hours = {zone: local_hours(zone, period.first_hour, period.end_hour) for zone in sorted(zones)}
    sites = sorted({t.site for t in inventory.tariffs})
    return tuple(prices(inventory.tariffs, site, hours) for site in sites)
