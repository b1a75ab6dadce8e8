"""Use case part: what an inventory declares, as items of an explanation, each with its file and line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeVar

from carbonlens.accounting.exchange import rate_id
from carbonlens.app.inventory import Kept
from carbonlens.app.site_figures import OTHER_TIME
from carbonlens.domain.asset import Asset
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.expense import Expense
from carbonlens.domain.pricing import ExchangeRate, PriceIndex, Tariff
from carbonlens.domain.service import Service, Use
from carbonlens.domain.site import Meter, Site
from carbonlens.reporting.explanation import Item, Kind

_SITE_FIGURES: Final = {
    "pue": ("PUE", "pue", "pue_source", "1"),
    "host_overhead": ("host overhead", "host_overhead", "host_overhead_source", "1"),
    "wue": ("WUE", "wue_l_per_kwh", "wue_source", "L/kWh"),
}
"""Begin of an id to words, field, field of its source and unit."""

T = TypeVar("T")

_UNSTATED: Final = "nobody states it: what rests on it is unknown, or known as at least"


class Declared:
    """Items of an inventory by the ids under which figures name them."""

    def __init__(self, kept: Kept) -> None:
        """Index an inventory.

        Args:
            kept: As read, with the place of each record.
        """
        self._kept = kept
        self._makers: Mapping[str, Callable[[str], Item | None]] = {
            **dict.fromkeys(_SITE_FIGURES, self._site_figure),
            "meter": self._meter,
            "asset": self._asset,
            "expense": self._expense,
            "exchange": self._rate,
            "price_index": self._index,
            "service": self._service,
            "use": self._use,
        }

    def item(self, name: str) -> Item | None:
        """Return what an id names; ``None`` where the inventory has nothing of the name."""
        what, colon, _ = name.partition(":")
        maker = self._makers.get(what) if colon else None
        return maker(name) if maker is not None else self._tariff(name)

    def place(self, kind: str, name: str) -> str:
        """Return file and line of a record, as a line of an item.

        Args:
            kind: Stem of its file.
            name: Its name.
        """
        held = self._kept.places.get((kind, name))
        if held is None:
            return f"file: {kind} of the inventory"
        file, line = held
        sha = self._kept.snapshots.get(file, "")
        words = f"file {file}:{line}" if line else f"file {file}"
        return f"{words}, snapshot {sha[:12]}" if sha else words

    def ids(self) -> Iterator[str]:
        """Yield the ids of what the inventory declares."""
        held = self._kept.inventory
        for site in held.sites:
            yield from (f"{what}:{site.site_id}" for what in _SITE_FIGURES)
        yield from (f"meter:{m.meter_id}" for m in held.meters)
        yield from (f"asset:{a.asset_id}" for a in held.assets)
        yield from (f"expense:{e.expense_id}" for e in held.expenses)
        yield from map(rate_id, held.exchange_rates)
        yield from (f"service:{s.service_id}" for s in held.services)
        for tariff in held.tariffs:
            yield from (tariff.tariff_id, *(f"{tariff.tariff_id}.{b.name}" for b in tariff.bands))

    def _site_figure(self, name: str) -> Item | None:
        what, _, rest = name.partition(":")
        words, field, source, unit = _SITE_FIGURES[what]
        site_id = rest.removesuffix(f":{OTHER_TIME}")
        site = self._kept.inventory.site(site_id)
        value = None if site is None or site_id != rest else getattr(site, field)
        if site is None or value is None:
            where = self.place("sites", site_id) if site is not None else "no site of the inventory"
            times = () if site is None or site_id == rest else (f"stated {_when(site, what)} alone",)
            details = (*times, _UNSTATED, where)
            return _item(name, "unstated", f"{words} of {site_id}", details, _unknown(unit))
        stated = getattr(site, source) or "not stated"
        when = f"source: {stated}; stated {_when(site, what)}"
        details = (when, self.place("sites", site_id))
        return _item(name, "declared", f"{words} of {_site_words(site)}", details, _exact(value, unit))

    def _meter(self, name: str) -> Item | None:
        meter = _named(self._kept.inventory.meters, name, "meter_id")
        return None if meter is None else _item(name, "meter", *self.meter_words(meter))

    def meter_words(self, meter: Meter) -> tuple[str, tuple[str, ...]]:
        """Return title and details of a meter."""
        limit = "" if meter.accuracy_class is None else f", class {meter.accuracy_class:g}"
        covers = {"site": "all of the site", "ai": "the recorded AI workloads", "part": "a part"}
        title = (
            f"meter {meter.meter_id} of {meter.site}, {meter.boundary}{limit}; covers {covers[meter.covers]}"
        )
        return title, (self.place("meters", meter.meter_id),)

    def _asset(self, name: str) -> Item | None:
        asset: Asset | None = _named(self._kept.inventory.assets, name, "asset_id")
        if asset is None:
            return None
        life = f"life {asset.life_years:g} years" if asset.life_years else "life not stated"
        use = f"{asset.used_hours:g} h of use expected" if asset.used_hours else life
        cost = "" if asset.cost is None else f"; {asset.cost.amount:f} {asset.cost.currency} each"
        retired = f", retired {asset.retired}" if asset.retired else ""
        embodied = (f"embodied: {asset.embodied_source}",) if asset.embodied_source else ()
        details = (f"{use}{cost}", *embodied, self.place("assets", asset.asset_id))
        title = f"{asset.count} x {asset.hardware}, bought {asset.purchased}{retired}"
        return _item(name, "asset", title, details)

    def _expense(self, name: str) -> Item | None:
        one: Expense | None = _named(self._kept.inventory.expenses, name, "expense_id")
        if one is None:
            return None
        paid = one.amount
        estimate = (
            _exact(one.quantity, one.per) if paid is None else _exact(float(paid.amount), paid.currency)
        )
        details = (f"source: {one.source}", self.place("expenses", one.expense_id))
        return _item(name, "expense", f"{one.what or one.kind}, {one.start} to {one.end}", details, estimate)

    def _rate(self, name: str) -> Item | None:
        held: Iterator[ExchangeRate] = (r for r in self._kept.inventory.exchange_rates if rate_id(r) == name)
        rate = next(held, None)
        if rate is None:
            return None
        where = self.place("exchange_rates", f"{rate.base}/{rate.quote} {rate.date}")
        title = f"1 {rate.base} in {rate.quote} on {rate.date}"
        value = _exact(float(rate.rate), f"{rate.quote}/{rate.base}")
        return _item(name, "exchange_rate", title, (f"source: {rate.source}", where), value)

    def _index(self, name: str) -> Item | None:
        held: Iterator[PriceIndex] = (
            i for i in self._kept.inventory.price_indices if f"price_index:{i.currency}:{i.year}" == name
        )
        one = next(held, None)
        if one is None:
            return None
        where = self.place("price_index", f"{one.currency} {one.year}")
        title = f"level of prices in {one.currency}, {one.year}"
        return _item(name, "declared", title, (f"source: {one.source}", where), _exact(float(one.index), "1"))

    def _service(self, name: str) -> Item | None:
        one: Service | None = _named(self._kept.inventory.services, name, "service_id")
        if one is None:
            return None
        tags = ", ".join(f"{k}={v}" for k, v in sorted(one.tags.items()))
        by = " and ".join(w for w in (f"runs tagged {tags}" if tags else "", one.meter or "") if w)
        source = f"source of the uses: {one.source or 'not stated'}"
        title = f"service {one.service_id}, divided by {one.basis.replace('_', ' ')}; energy of {by}"
        return _item(name, "declared", title, (source, self.place("services", one.service_id)))

    def _use(self, name: str) -> Item | None:
        service_id, _, rest = name.removeprefix("use:").partition(" ")
        month, _, consumer = rest.partition(" ")
        service: Service | None = _named(self._kept.inventory.services, f"service:{service_id}", "service_id")
        uses = () if service is None else service.uses
        use = next((u for u in uses if (u.month, u.consumer) == (month, consumer)), None)
        return None if use is None else self._use_item(name, service_id, use)

    def _use_item(self, name: str, service_id: str, use: Use) -> Item:
        key = f"{service_id} {use.month} {use.consumer}"
        own = ("service_uses", key) in self._kept.places
        where = self.place("service_uses", key) if own else self.place("services", service_id)
        count = None if use.count is None else float(use.count)
        asked = () if use.request is None else (f"reserved: {use.request:f}",)
        title = f"use of {service_id} by {use.consumer} in {use.month}"
        value = _unknown("1") if count is None else _exact(count, "1")
        return _item(name, "declared", title, (*asked, where), value)

    def _tariff(self, name: str) -> Item | None:
        for tariff in self._kept.inventory.tariffs:
            if name == tariff.tariff_id:
                fixed = None if tariff.fixed_per_month is None else float(tariff.fixed_per_month)
                value = _exact(fixed, f"{tariff.currency}/month")
                return _item(name, "tariff", f"fixed charge of tariff {name}", self._of(tariff), value)
            for band in tariff.bands:
                if name == f"{tariff.tariff_id}.{band.name}":
                    value = _exact(float(band.amount_per_kwh), f"{tariff.currency}/kWh")
                    title = f"tariff {tariff.tariff_id}, band {band.name}"
                    return _item(name, "tariff", title, self._of(tariff), value)
        return None

    def _of(self, tariff: Tariff) -> tuple[str, ...]:
        until = f" to {tariff.valid_to}" if tariff.valid_to else ""
        return (
            f"source: {tariff.source}; valid from {tariff.valid_from}{until}",
            self.place("tariffs", tariff.tariff_id),
        )


def _named(rows: tuple[T, ...], name: str, field: str) -> T | None:
    wanted = name.partition(":")[2]
    return next((r for r in rows if getattr(r, field) == wanted), None)


def _item(
    name: str, kind: Kind, title: str, details: tuple[str, ...], estimate: Estimate | None = None
) -> Item:
    return Item(item_id=name, kind=kind, title=title, estimate=estimate, details=details)


def _exact(value: float | None, unit: str) -> Estimate:
    return Estimate(value=value, unit=unit)


def _unknown(unit: str) -> Estimate:
    return Estimate(value=None, unit=unit, state="unknown")


def _when(site: Site, figure: str) -> str:
    """Return for which time a figure of a site is stated, in words."""
    start, end = (getattr(site, f"{figure}_valid_{edge}") for edge in ("from", "to"))
    if start is None and end is None:
        return "for no time"
    return " ".join(w for w in (f"from {start}" if start else "", f"to {end}" if end else "") if w)


def _site_words(site: Site) -> str:
    return f"{site.site_id} ({site.name})" if site.name else site.site_id
