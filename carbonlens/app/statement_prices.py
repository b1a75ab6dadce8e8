"""Use case part: what electricity costs at a site in each hour of a period."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec

from carbonlens.accounting.places import Place
from carbonlens.accounting.price_choice import PriceChoice, Wanted, choose_paid
from carbonlens.accounting.propagation import stated
from carbonlens.accounting.tariff import HourPrice
from carbonlens.app.statement_terms import Months
from carbonlens.app.tariffs import tariff_prices
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.pricing import PriceRow
from carbonlens.ledger.calendar import Period
from carbonlens.ledger.rate_arrays import HourRate

if TYPE_CHECKING:
    import numpy as np

_EPOCH: Final = date(1970, 1, 1)
_HOURS_OF_DAY: Final = 24


class PricedHours(msgspec.Struct, frozen=True, kw_only=True):
    """Prices of electricity at a site.

    Attributes:
        values: Distinct prices.
        index: Number of the price of each hour, -1 for none; a numpy array.
        first_hour: UTC hour of its first.
        is_in_cloud: Whether the price or bill of a cloud holds the electricity.
        ids: Ids of tariffs or prices by currency.
        figures: The prices as figures.
    """

    values: tuple[HourRate, ...] = ()
    index: Any = None
    ids: dict[str, tuple[str, ...]] = {}
    figures: tuple[Figure, ...] = ()
    findings: tuple[Finding, ...] = ()
    first_hour: int = 0
    is_in_cloud: bool = False

    def by_hour(self) -> tuple[HourPrice, ...]:
        """Return the price of each hour that has one."""
        return tuple(
            HourPrice(self.first_hour + at, one.rate, one.currency or "", one.source_id, "", one.u_relative)
            for at, number in enumerate(() if self.index is None else self.index.tolist())
            if number >= 0
            for one in (self.values[number],)
        )


def priced_hours(
    name: str, place: Place | None, inventory: Inventory, hours: Period, months: Months
) -> PricedHours:
    """Return the price of each hour at a site: by its tariff, else by a price of electricity.

    A cloud has none: what its instances cost holds their electricity.

    Args:
        name: Of the site.
        place: Where it lies; ``None`` when nobody knows it.
        inventory: With tariffs and prices.
        hours: The period.
        months: Its months.
    """
    site = inventory.site(name)
    if site is not None and site.kind == "cloud":
        return PricedHours(is_in_cloud=True, findings=_unused(name, inventory))
    own = msgspec.structs.replace(inventory, tariffs=tuple(t for t in inventory.tariffs if t.site == name))
    if own.tariffs:
        found = tariff_prices(own, hours)
        priced = [p for one in found for p in one.hours]
        return _by_tariff(priced, inventory, hours, tuple(f for one in found for f in one.findings))
    return _by_price(name, place, inventory, months)


def _by_tariff(
    priced: list[HourPrice], inventory: Inventory, hours: Period, findings: tuple[Finding, ...]
) -> PricedHours:
    index = _empty(hours.end_hour - hours.first_hour)
    numbers: dict[HourPrice, int] = {}
    for price in priced:
        alike = price._replace(hour_utc=0)
        index[price.hour_utc - hours.first_hour] = numbers.setdefault(alike, len(numbers))
    values = [
        HourRate(rate=p.amount_per_kwh, source_id=p.tariff_id, u_relative=p.u_relative, currency=p.currency)
        for p in numbers
    ]
    sources = {t.tariff_id: t.source for t in inventory.tariffs}
    figures = [
        Figure(
            figure_id=f"{p.tariff_id}.{p.band}",
            estimate=stated(float(p.amount_per_kwh), p.u_relative, p.tariff_id, f"{p.currency}/kWh"),
            label=f"tariff {p.tariff_id}, band {p.band}; {sources[p.tariff_id]}",
        )
        for p in numbers
    ]
    ids: dict[str, list[str]] = {}
    for price in numbers:
        ids.setdefault(price.currency, []).append(f"{price.tariff_id}.{price.band}")
    return PricedHours(
        values=tuple(values),
        index=index,
        first_hour=hours.first_hour,
        ids={c: tuple(dict.fromkeys(held)) for c, held in ids.items()},
        figures=tuple({f.figure_id: f for f in figures}.values()),
        findings=findings,
    )


def _by_price(name: str, place: Place | None, inventory: Inventory, months: Months) -> PricedHours:
    """Return the price of each hour, which is that of its UTC day."""
    count = sum(months.hours)
    index = _empty(count)
    values: list[HourRate] = []
    figures: dict[str, Figure] = {}
    findings: list[Finding] = []
    at = 0
    while at < count:
        day = (months.first_hour + at) // _HOURS_OF_DAY
        end = min(count, (day + 1) * _HOURS_OF_DAY - months.first_hour)
        chosen = _price_of(name, place, inventory.prices, (_EPOCH + timedelta(days=day)).isoformat())
        row = chosen.row
        findings += [_no_price(name)] if row is None else chosen.findings
        if row is not None:
            rate = HourRate(
                rate=row.amount.amount,
                source_id=row.price_id,
                u_relative=row.u_relative,
                currency=row.amount.currency,
            )
            if rate not in values:
                values.append(rate)
                figures[row.price_id] = _figure(row)
            index[at:end] = values.index(rate)
        at = end
    currencies = dict.fromkeys(v.currency or "" for v in values)
    return PricedHours(
        values=tuple(values),
        index=index,
        first_hour=months.first_hour,
        ids={c: tuple(v.source_id for v in values if v.currency == c) for c in currencies},
        figures=tuple(figures.values()),
        findings=tuple(dict.fromkeys(findings)),
    )


def _price_of(name: str, place: Place | None, prices: Sequence[PriceRow], day: str) -> PriceChoice:
    """Return the price of a day: of the site, else of its zone, else the one for everywhere."""
    regions = (name, place.zone) if place else (name,)
    wanted = (Wanted(subject="electricity", date=day, per="kWh", region=region) for region in regions)
    choices = [choose_paid(prices, (), w) for w in wanted]
    found = [c for c in choices if c.row is not None]
    return next((c for c in found if c.row is not None and c.row.region), (found or choices)[0])


def _figure(row: PriceRow) -> Figure:
    value = stated(float(row.amount.amount), row.u_relative, row.price_id, f"{row.amount.currency}/kWh")
    label = f"price of electricity from {row.valid_from}; {row.source}"
    return Figure(figure_id=row.price_id, estimate=value, label=label)


def _empty(hours: int) -> np.ndarray[Any, Any]:
    import numpy as np

    return np.full(hours, -1, dtype=np.int32)


def _unused(name: str, inventory: Inventory) -> tuple[Finding, ...]:
    tariffs = [t.tariff_id for t in inventory.tariffs if t.site == name]
    if not tariffs:
        return ()
    found = Finding(
        code="CL499",
        severity="warning",
        message=f"tariff {', '.join(tariffs)} of cloud site {name} is not used: the price of a cloud holds "
        "its electricity",
        mend="declare the site as own or colocation where you pay its electricity",
        subject=name,
    )
    return (found,)


def _no_price(name: str) -> Finding:
    return Finding(
        code="CL486",
        severity="info",
        message=f"no price of electricity at {name}: its cost is unknown",
        mend="add a tariff of the site, or a price of subject electricity per kWh, to the inventory",
        subject=name,
    )
