"""Use case part: all that a period costs, each thing once: bills, tariffs, clouds, hardware, work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta

import msgspec
from msgspec.structs import replace

from carbonlens.accounting.bill_energy import beside_meter
from carbonlens.accounting.cloud_hours import InstanceUse, cloud_hours
from carbonlens.accounting.cost import CostLine, electricity_fixed
from carbonlens.accounting.electricity_bill import ElectricityBill, beside_tariff
from carbonlens.accounting.expenses import expense_lines
from carbonlens.accounting.hardware_cost import hardware
from carbonlens.accounting.metered_cost import MeteredCost, metered_cost
from carbonlens.accounting.money_years import of_charges, of_days, weighted
from carbonlens.accounting.propagation import stated
from carbonlens.accounting.reported_cost import Reporting
from carbonlens.accounting.standing import Standing
from carbonlens.accounting.statement_cost import Power
from carbonlens.accounting.tariff import fixed_charges
from carbonlens.app.prices import held_prices
from carbonlens.app.statement_bills import Bills
from carbonlens.app.statement_hardware import Use
from carbonlens.app.statement_prices import PricedHours
from carbonlens.domain.charge import Charge
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.domain.pricing import PriceRow, Tariff
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.ledger.calendar import Calendar


class CostPeriod(msgspec.Struct, frozen=True, kw_only=True):
    """The period of a cost.

    Attributes:
        start: First local date; ``end`` the date after the last.
        months: Local months that it holds.
    """

    start: str
    end: str
    months: tuple[str, ...]


def to_date(
    period: CostPeriod, inventory: Inventory, calendar: Calendar, over: tuple[int, int]
) -> tuple[CostPeriod, tuple[Finding, ...]]:
    """Return the part of a period that is over, today with it: costs stand beside the energy to date.

    Args:
        period: The whole.
        inventory: With what costs by the day.
        calendar: Of the period.
        over: The part that is over, as instants.
    """
    (row,) = calendar.rows(over[1] // US_PER_HOUR, over[1] // US_PER_HOUR + 1)
    today = date(row.date // 10000, row.date // 100 % 100, row.date % 100)
    end = (today + timedelta(days=1)).isoformat()
    if end >= period.end:
        return period, ()
    cut = CostPeriod(start=period.start, end=end, months=tuple(m for m in period.months if m < end))
    by_day = (*inventory.expenses, *inventory.assets, *(t for t in inventory.tariffs if t.fixed_per_month))
    return cut, (_to_date(today),) if by_day else ()


def other_lines(
    inventory: Inventory,
    bills: Bills,
    cloud_uses: Iterable[InstanceUse],
    used: Sequence[Use],
    period: CostPeriod,
) -> tuple[CostLine, ...]:
    """Return the lines of cost beside electricity by the hour and by bills.

    Args:
        inventory: With tariffs, prices and expenses.
        bills: Of the period.
        cloud_uses: Instances that no bill covers.
        used: Hours of use of own hardware.
        period: The period.
    """
    prices = held_prices(inventory.prices)
    billed = {b.site_id for b in bills.electricity if b.is_whole}
    lines = [
        replace(electricity_fixed(tariff, float(months)), by_year=_fixed_years(tariff, site, period))
        for site in sorted({t.site for t in inventory.tariffs} - billed - clouds_of(inventory))
        for tariff, months in fixed_charges(
            [_until(t, period.end) for t in inventory.tariffs], site, period.months
        )
    ]
    for use in used:
        lines += _hardware(use, period)
    return (
        *lines,
        *bills.lines,
        *cloud_hours(cloud_uses, prices.own, prices.bundled),
        *expense_lines(inventory.expenses, prices.own, prices.bundled, start=period.start, end=period.end),
    )


def power_of(
    bills: Bills,
    meters: Mapping[str, Standing],
    readings: Sequence[MeterReading],
    prices: Mapping[str, PricedHours],
    over: tuple[int, int],
) -> tuple[Power, tuple[Finding, ...]]:
    """Return how the electricity of sites is paid.

    Args:
        bills: Of the period.
        meters: What stands for the sites that are metered.
        readings: Of any meter.
        prices: Of electricity, by site.
        over: The part of the period that is over, as instants.
    """
    in_cloud = frozenset(name for name, priced in prices.items() if priced.is_in_cloud)
    findings: list[Finding] = []
    held = []
    for bill in bills.electricity:
        priced = prices.get(bill.site_id, PricedHours())
        counts, said = _counted(bill, is_priced=bool(priced.values))
        held += [] if counts is None else [counts]
        findings += [said] if said is not None else []
        if counts is not None:
            of_tariff = beside_tariff(bill, [(v.rate, v.currency or "") for v in priced.values])
            of_meter = beside_meter(bill, meters.get(bill.site_id))
            findings += [f for f in (of_tariff, of_meter) if f is not None]
    billed = {b.site_id for b in held}
    metered: dict[str, dict[str, Estimate]] = {}
    for site, stands in meters.items():
        if site not in billed | in_cloud and site in prices:
            cost = _metered_cost(stands, readings, prices[site], over)
            metered[site] = cost.costs
            findings += cost.findings
    return Power(bills=tuple(held), metered=metered, in_cloud=in_cloud), tuple(findings)


def _metered_cost(
    stands: Standing, readings: Sequence[MeterReading], prices: PricedHours, over: tuple[int, int]
) -> MeteredCost:
    """Return what the electricity of a metered site costs; with gaps, month by month at least."""
    by_hour = prices.by_hour()
    if not stands.is_least:
        return metered_cost(stands.meter, stands.facility_kwh, readings, by_hour, over)
    found = [
        metered_cost(stands.meter, kwh, readings, by_hour, stands.meter.spans[month])
        for month, kwh in stands.metered_months.items()
    ]
    held = [*(one.costs for one in found), *(s.costs for s in stands.runs)]
    costs = {
        currency: stands.bounded(*(c[currency] for c in held if currency in c))
        for currency in sorted({name for c in held for name in c})
    }
    return MeteredCost(costs=costs, findings=tuple(dict.fromkeys(f for one in found for f in one.findings)))


def reporting_of(inventory: Inventory, period: CostPeriod) -> Reporting:
    """Return in which money the cost of a period is reported: at the rates of its last day."""
    last = date.fromisoformat(period.end) - timedelta(days=1)
    return Reporting(
        currency=inventory.terms.currency,
        date=last.isoformat(),
        rates=inventory.exchange_rates,
        by_year=of_days(period.start, period.end),
        price_year=inventory.terms.price_year,
        indices=inventory.price_indices,
    )


def price_figures(lines: Iterable[CostLine], inventory: Inventory) -> tuple[Figure, ...]:
    """Return the prices and expenses that lines rest on, as figures that rest on nothing else."""
    used = dict.fromkeys(i for line in lines for i in line.input_ids)
    rows = [row for row in held_prices(inventory.prices).rows if row.price_id in used]
    expenses = [e for e in inventory.expenses if f"expense:{e.expense_id}" in used]
    return (
        *map(_price_figure, rows),
        *(
            Figure(
                figure_id=f"expense:{e.expense_id}",
                estimate=Estimate(value=float(e.amount.amount), unit=e.amount.currency)
                if e.amount is not None
                else Estimate(value=e.quantity, unit=e.per),
                label=f"{e.what or e.kind}, {e.start} to {e.end}; {e.source}",
            )
            for e in expenses
        ),
    )


def clouds_of(inventory: Inventory) -> frozenset[str]:
    """Return the sites whose price or bill holds their electricity."""
    return frozenset(s.site_id for s in inventory.sites if s.kind == "cloud")


def _counted(bill: ElectricityBill, *, is_priced: bool) -> tuple[ElectricityBill | None, Finding | None]:
    """Return a bill as it counts, and what must be said of one that does not cover the period."""
    if bill.is_whole:
        return bill, None
    rest = "it is left out, the prices of the inventory stand" if is_priced else "the cost is a lower bound"
    found = Finding(
        code="CL495",
        severity="warning",
        message=f"the electricity bills of {bill.site_id} cover {bill.covered:.1%} of the period: {rest}",
        mend="import the missing bills",
        subject=bill.site_id,
    )
    return None if is_priced else bill.at_least(), found


def _until(tariff: Tariff, end: str) -> Tariff:
    return replace(tariff, valid_to=end if tariff.valid_to is None else min(tariff.valid_to, end))


def without_billed(findings: Iterable[Finding], power: Power) -> tuple[Finding, ...]:
    """Return Findings without those that miss a price of electricity where a bill states its cost.

    Args:
        findings: Of prices, among others.
        power: With the bills that count.
    """
    billed = {bill.site_id for bill in power.bills}
    return tuple(f for f in findings if f.code != "CL486" or f.subject not in billed)


def _to_date(today: date) -> Finding:
    return Finding(
        code="CL467",
        severity="info",
        message=f"the period is not over: fixed charges, expenses and hardware count up to {today}, as its "
        "energy does",
        mend="nothing; make the statement again when the period is over",
        subject=today.isoformat(),
    )


def _fixed_years(tariff: Tariff, site: str, period: CostPeriod) -> dict[int, float]:
    every = [(int(month[:4]), month) for month in period.months]
    return weighted(
        (year, float(count)) for year, month in every for _, count in fixed_charges([tariff], site, [month])
    )


def bills_by_year(bills: Bills, charges: Iterable[Charge], years: Mapping[int, tuple[int, int]]) -> Bills:
    """Return bills whose lines say of which calendar years their money is.

    Args:
        bills: Of the period.
        charges: All lines of bills in the ledger.
        years: Instants of each calendar year within the period.
    """
    held = {c.charge_id: c for c in charges}

    def told(lines: Iterable[CostLine]) -> tuple[CostLine, ...]:
        return tuple(replace(line, by_year=of_charges(line, held, years)) for line in lines)

    electricity = tuple(replace(b, lines=told(b.lines)) for b in bills.electricity)
    return replace(bills, electricity=electricity, lines=told(bills.lines))


def _hardware(use: Use, period: CostPeriod) -> tuple[CostLine, ...]:
    """Return the cost of an asset: unknown without a price, and per hour of use where no run names it."""
    asset = use.asset
    if asset.purchased >= period.end or (asset.retired or "9") < period.start:
        return ()
    lines = hardware(
        asset, start=period.start, end=period.end, used_hours=use.hours or 0.0, used_before=use.before
    )
    first, last = max(asset.purchased, period.start), min(asset.retired or period.end, period.end)
    lines = tuple(replace(x, by_year=of_days(first, last) if first < last else {}) for x in lines)
    if use.hours is not None or asset.used_hours is None:
        return lines
    return tuple(replace(x, amount=unknown(x.currency)) if x.name == "hardware" else x for x in lines)


def _price_figure(row: PriceRow) -> Figure:
    unit = f"{row.amount.currency}/{row.per}"
    return Figure(
        figure_id=row.price_id,
        estimate=stated(float(row.amount.amount), row.u_relative, row.price_id, unit),
        label=f"{row.cost_kind} price of {row.subject} from {row.valid_from}; {row.source}",
    )
