"""Strategies that make inventories which files can hold."""

from datetime import date
from decimal import Decimal

from hypothesis import strategies as st
from msgspec.structs import replace

from carbonlens.domain.asset import Asset
from carbonlens.domain.certificate import CRITERIA, Certificate
from carbonlens.domain.charge import Invoice
from carbonlens.domain.expense import Expense
from carbonlens.domain.initiative import Delivery, Initiative, Saving
from carbonlens.domain.inventory import Inventory, ReportingTerms
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.domain.money import Money
from carbonlens.domain.pricing import ExchangeRate, PriceIndex, PriceRow, Tariff, TariffBand
from carbonlens.domain.service import Service, Use
from carbonlens.domain.site import Meter, Site

MILLI = Decimal("0.001")

letters = st.characters(codec="utf-8", exclude_categories=("C", "Z"))
names = st.text(letters, min_size=1, max_size=8)
words = st.none() | names
numbers = st.integers(0, 10**12).map(lambda n: n * MILLI)
amounts = st.integers(1, 10**12).map(lambda n: n * MILLI)
floats = st.none() | st.floats(1, 1e6)


def plausible(most):
    """Numbers that a file may state: those next to zero are refused as slips."""
    return st.just(0.0) | st.floats(1e-12, most)


dates = st.dates(date(1990, 1, 1), date(2199, 12, 31)).map(str)
currencies = st.sampled_from(["EUR", "USD", "JPY"])
money = st.builds(Money, amount=numbers, currency=currencies)
months = st.builds("{:04}-{:02}".format, st.integers(1990, 2100), st.integers(1, 12))
sites_names = st.sampled_from(["a", "b", "c"])
answers = st.dictionaries(st.sampled_from(CRITERIA), st.booleans())


def unique(strategy, field):
    return st.lists(strategy, max_size=3, unique_by=lambda r: getattr(r, field)).map(tuple)


def sourced(strategy, value, source):
    """Give a figure its source, as a file must."""
    return strategy.map(lambda r: replace(r, **{source: None if getattr(r, value) is None else "s"}))


sites = st.builds(
    Site,
    site_id=sites_names,
    kind=st.sampled_from(["own", "cloud", "customer"]),
    name=st.just("") | names,
    entity=words,
    zone=words,
    market=words,
    provider=words,
    region=words,
    pue=floats,
    wue_l_per_kwh=floats,
)
sites = sourced(sourced(sites, "pue", "pue_source"), "wue_l_per_kwh", "wue_source")
meters = st.builds(
    Meter,
    meter_id=names,
    site=sites_names,
    boundary=st.sampled_from(["device", "it", "facility"]),
    covers=st.sampled_from(["site", "ai", "part"]),
    accuracy_class=st.none() | st.floats(0.001, 0.5),
)
certificates = st.builds(
    Certificate,
    certificate_id=names,
    kind=st.sampled_from(["certificate", "contract", "supplier"]),
    entity=names,
    market=names,
    energy_mwh=amounts,
    period=months | st.integers(1990, 2100).map(str),
    value_kg_per_kwh=numbers,
    retired=st.none() | dates,
    criteria=answers,
    hourly_mwh=st.dictionaries(st.integers(0, 10**6).map(lambda h: h + 10**5), numbers, max_size=3),
    source=names,
)
assets = st.builds(
    Asset,
    asset_id=names,
    hardware=names,
    count=st.integers(1, 9),
    site=st.none() | sites_names,
    purchased=dates,
    life_years=floats,
    embodied_kg=floats,
    devices=st.lists(names, max_size=2).map(tuple),
    cost=st.none() | money,
)
savings = st.none() | st.builds(
    Saving,
    energy_kwh=floats,
    emissions_location_kg=floats,
    emissions_market_kg=floats,
    money=st.none() | money,
)
initiatives = st.builds(
    Initiative,
    initiative_id=names,
    title=names,
    owner=words,
    status=st.sampled_from(["planned", "running", "ended"]),
    start=dates,
    study=words,
    tags=st.dictionaries(names, names, max_size=2),
    claimed=savings,
    verified=savings,
    verified_by=words,
)
deliveries = st.builds(
    Delivery, team=names, months=st.sets(months, min_size=1, max_size=3).map(lambda m: tuple(sorted(m)))
)
bands = st.builds(
    TariffBand,
    name=names,
    amount_per_kwh=numbers,
    weekdays=st.sets(st.integers(0, 6), min_size=1).map(lambda d: tuple(sorted(d))),
    start_hour=st.integers(0, 11),
    end_hour=st.integers(12, 24),
    months=st.sets(st.integers(1, 12), min_size=1).map(lambda m: tuple(sorted(m))),
)
tariffs = st.builds(
    Tariff,
    tariff_id=names,
    site=sites_names,
    currency=currencies,
    timezone=st.sampled_from(["Europe/Berlin", "America/New_York", "UTC"]),
    valid_from=dates,
    bands=st.lists(bands, min_size=1, max_size=3).map(tuple),
    fixed_per_month=st.none() | numbers,
    source=names,
)
prices = st.builds(
    PriceRow,
    price_id=names,
    subject=names,
    region=words,
    per=st.sampled_from(["kWh", "hour", "1e6_tokens"]),
    amount=money,
    cost_kind=st.sampled_from(["list", "billed"]),
    terms=st.just("") | names,
    valid_from=dates,
    u_relative=st.none() | plausible(2),
    source=names,
    address=names,
    read_on=dates,
)
rates = st.builds(
    ExchangeRate,
    base=st.just("USD"),
    quote=st.sampled_from(["EUR", "JPY"]),
    date=dates,
    rate=amounts,
    source=names,
)
indices = st.builds(
    PriceIndex, currency=currencies, year=st.integers(1990, 2100), index=amounts, source=names
)
invoices = st.builds(Invoice, invoice_id=names, amount=money, source=names)
expenses = st.builds(
    Expense,
    expense_id=names,
    kind=st.just("engineering"),
    what=st.just("") | names,
    start=st.just("2026-01-01"),
    end=st.sampled_from(["2026-01-02", "2027-01-01"]),
    quantity=plausible(1e6),
    per=st.sampled_from(["hour", "month"]),
    source=names,
) | st.builds(
    Expense,
    expense_id=names,
    kind=st.just("software"),
    start=st.just("2026-01-01"),
    end=st.just("2026-02-01"),
    amount=money,
    initiative=words,
    source=names,
)
terms = st.builds(
    ReportingTerms,
    timezone=st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata"]),
    fiscal_year_start=st.integers(1, 12),
    entity=words,
    base_year=st.none() | st.integers(1990, 2100),
    recalculation_threshold=st.none() | st.floats(0.01, 0.5),
    currency=st.none() | currencies,
    example=st.booleans(),
)
readings = st.builds(
    MeterReading,
    reading_id=names,
    meter_id=names,
    start_us=st.integers(10**15, 2 * 10**15),
    end_us=st.integers(1, 10**12),
    energy_j=st.none() | numbers,
    direction=st.sampled_from(["import", "export"]),
    carrier=st.sampled_from(["electricity", "heat"]),
    method=st.sampled_from([None, "actual", "manual"]),
).map(lambda r: replace(r, end_us=r.start_us + r.end_us))

uses = st.lists(
    st.builds(
        Use,
        month=months,
        consumer=names,
        count=st.none() | numbers,
        u_relative=st.none() | plausible(2),
    ),
    max_size=3,
    unique_by=lambda u: (u.month, u.consumer),
)
services = st.builds(
    Service,
    service_id=names,
    site=st.none() | sites_names,
    tags=st.dictionaries(names, names, min_size=1, max_size=2),
    basis=st.sampled_from(["measured", "activity", "requests", "tokens", "request_or_usage"]),
    capacity=st.none() | amounts,
    idle=st.sampled_from(["own line", "shared"]),
    uses=uses.map(lambda u: tuple(sorted(u, key=lambda x: (x.month, x.consumer)))),
    source=words,
)


inventories = st.builds(
    Inventory,
    terms=terms,
    sites=unique(sites, "site_id"),
    meters=unique(meters, "meter_id"),
    certificates=unique(certificates, "certificate_id"),
    assets=unique(sourced(assets, "embodied_kg", "embodied_source"), "asset_id"),
    initiatives=unique(initiatives, "initiative_id"),
    deliveries=unique(deliveries, "team"),
    tariffs=unique(tariffs, "tariff_id"),
    prices=unique(prices, "price_id"),
    exchange_rates=st.lists(rates, max_size=3, unique_by=lambda r: (r.quote, r.date)).map(tuple),
    price_indices=st.lists(indices, max_size=3, unique_by=lambda i: (i.currency, i.year)).map(tuple),
    expenses=unique(expenses, "expense_id"),
    invoices=unique(invoices, "invoice_id"),
    readings=unique(readings, "reading_id"),
    services=unique(services, "service_id"),
)
