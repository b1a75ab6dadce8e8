"""Cost of a run or a group, line by line: electricity, cloud, hardware, software and work.

Each line has its currency, its kind of cost and the ids it rests on. Lines of several
currencies are not added (``exchange`` brings them to one first), and a total never holds two
kinds of cloud cost: billed and effective cost of one purchase are the same money twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from carbonlens.accounting import formulas
from carbonlens.accounting.amounts import NO_CURRENCY
from carbonlens.accounting.charges import FIELDS, by_currency
from carbonlens.accounting.focus_identity import summed
from carbonlens.accounting.formulas import Quantity
from carbonlens.accounting.propagation import stated, through
from carbonlens.accounting.tariff import HourPrice, fixed_charge
from carbonlens.domain.charge import Charge
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate, add, unknown
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding
from carbonlens.domain.money import Money
from carbonlens.domain.pricing import CostKind, PricePer, PriceRow, Tariff
from carbonlens.errors import IncomparableError

LineName = Literal[
    "electricity",
    "electricity_fixed",
    "cloud",
    "cloud_hours",
    "unallocated",
    "hardware",
    "hardware_idle",
    "hardware_written_off",
    "software",
    "engineering",
]

UNIT_OF: Final[Mapping[PricePer, str]] = {
    "kWh": "kWh",
    "hour": "h",
    "core_hour": "core_hour",
    "device_hour": "device_hour",
    "month": "month",
    "request": "request",
    "1e6_tokens": "1e6_tokens",
    "GB": "GB",
}
"""Unit of a price to the unit that a quantity must have."""


class CostLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a cost.

    Attributes:
        name: What it is for.
        label: In words.
        amount: Its unit is the currency; ``XXX`` where nobody priced it.
        formula: How it was made.
        cost_kind: Which of FOCUS's costs it is; ``None`` where none is meant.
        exact: The exact amount, where it is a sum of exact amounts.
        input_ids: Prices, tariffs, assets or charges it rests on.
        part: Which part of a bill, where it is one of several: ``network``, ``tax``.
        site_id: Site whose bill it is on.
        by_year: Share of each calendar year's money in it; empty where that of the period's days holds.
    """

    name: LineName
    label: str
    amount: Estimate
    formula: str
    cost_kind: CostKind | None = None
    exact: Money | None = None
    input_ids: tuple[str, ...] = ()
    part: str | None = None
    site_id: str | None = None
    by_year: Mapping[int, float] = {}
    findings: tuple[Finding, ...] = ()

    @property
    def currency(self) -> str:
        """The line's currency."""
        return self.amount.unit


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """Lines, and what they sum to in each currency; a total that lacks a line is a lower bound."""

    lines: tuple[CostLine, ...]
    totals: dict[str, Estimate]
    findings: tuple[Finding, ...]

    def figures(self, prefix: str) -> tuple[Figure, ...]:
        """Return each line and each total as a figure."""
        ids = [f"{prefix}.{n}.{line.name}" for n, line in enumerate(self.lines, 1)]
        lines = [
            Figure(
                figure_id=name,
                estimate=line.amount,
                label=line.label,
                formula=line.formula,
                inputs=line.input_ids,
            )
            for name, line in zip(ids, self.lines, strict=True)
        ]
        totals = [
            Figure(
                figure_id=f"{prefix}.total.{currency}",
                estimate=total,
                label=f"cost in {currency}",
                formula="sum of the lines",
                inputs=tuple(
                    i
                    for i, line in zip(ids, self.lines, strict=True)
                    if line.currency in {currency, NO_CURRENCY}
                ),
            )
            for currency, total in self.totals.items()
        ]
        return *lines, *totals


class StatedCosts(msgspec.Struct, frozen=True, kw_only=True):
    """What runs themselves say they cost.

    Attributes:
        totals: By currency, of the runs that state a cost.
        without: Runs that state none: the totals are lower bounds then.
    """

    totals: dict[str, Money]
    without: tuple[str, ...]
    findings: tuple[Finding, ...] = ()


def priced_cost(quantity: Quantity, price: Quantity) -> Quantity:
    """Return the cost of a quantity at a price per unit of it."""
    return quantity * price


def priced(name: LineName, label: str, quantity: Estimate, price: PriceRow | None) -> CostLine:
    """Return a quantity at a price; unknown without one.

    Args:
        name: What the line is for.
        label: In words.
        quantity: In the unit of the price (``UNIT_OF``).
        price: As ``price_choice`` found it, which says why there is none.

    Raises:
        IncomparableError: If the price is per another unit.
    """
    if price is None:
        return CostLine(name=name, label=label, amount=unknown(NO_CURRENCY), formula="no price")
    if quantity.unit != UNIT_OF[price.per]:
        raise IncomparableError(
            f"the price is per {price.per}, and the quantity in {quantity.unit}",
            where=price.price_id,
            mend="give a price per unit of what was measured",
        )
    currency = price.amount.currency
    rate = stated(float(price.amount.amount), price.u_relative, price.price_id, f"{currency}/{price.per}")
    return CostLine(
        name=name,
        label=label,
        amount=through(priced_cost, quantity, rate, unit=currency),
        formula=f"{quantity.unit} * {price.amount.amount:f} {currency}/{price.per}",
        cost_kind=price.cost_kind,
        input_ids=(price.price_id,),
    )


def electricity_by_tariff(
    kwh_by_hour: Mapping[int, Estimate], prices: Iterable[HourPrice]
) -> tuple[CostLine, ...]:
    """Return the cost of electricity by the hour, a line a currency.

    Energy in hours without a price makes the cost a lower bound (``tariff.prices`` says which).

    Args:
        kwh_by_hour: Facility energy by UTC hour.
        prices: Of the hours of one site.
    """
    by_hour = {p.hour_utc: p for p in prices}
    groups: dict[HourPrice, list[Estimate]] = {}
    unpriced = False
    for hour, kwh in kwh_by_hour.items():
        price = by_hour.get(hour)
        unpriced |= price is None
        if price is not None:
            groups.setdefault(price._replace(hour_utc=0), []).append(kwh)
    lines = []
    for currency in sorted({p.currency for p in groups}) or [NO_CURRENCY]:
        held = {p: add(kwh, "kWh") for p, kwh in groups.items() if p.currency == currency}
        costs = [_of_band(price, kwh) for price, kwh in held.items()]
        if unpriced or not costs:
            costs.append(unknown(currency))
        lines.append(
            CostLine(
                name="electricity",
                label="electricity by tariff",
                amount=add(costs, currency),
                formula=" + ".join(f"kWh {p.band} * {p.amount_per_kwh:f}" for p in held) or "no price",
                input_ids=tuple(dict.fromkeys(p.tariff_id for p in held)),
            )
        )
    return tuple(lines)


def electricity_fixed(tariff: Tariff, months: float) -> CostLine:
    """Return the fixed charge of a tariff, which no kWh changes.

    Args:
        tariff: With a fixed charge; one without amounts to nothing.
        months: Months of the period in which it holds (``tariff.fixed_charges``).
    """
    per_month = float(tariff.fixed_per_month or 0)
    rate = stated(per_month, tariff.u_relative, tariff.tariff_id, f"{tariff.currency}/month")
    return CostLine(
        name="electricity_fixed",
        label="fixed charge of the electricity contract",
        amount=through(fixed_charge, rate, months, unit=tariff.currency),
        formula=f"{per_month:g} {tariff.currency}/month * {months:g}",
        input_ids=(tariff.tariff_id,),
    )


def of_bill(name: LineName, label: str, charges: Sequence[Charge], kind: CostKind) -> tuple[CostLine, ...]:
    """Return one kind of cost of bills, a line a currency.

    Purchases that cover later use are left out of list and contracted cost. Lines that do not
    state the cost make it a lower bound.

    Args:
        name: What the lines are for.
        label: In words.
        charges: Lines of bills, or the parts of them that runs carry.
        kind: Which of the four costs.
    """
    lines = []
    for currency, sums in by_currency(charges).items():
        exact: Money | None = getattr(sums, FIELDS[kind])
        lacking = sums.missing.get(FIELDS[kind], 0)
        findings: tuple[Finding, ...] = ()
        amount = unknown(currency)
        if exact is not None:
            value = float(exact.amount)
            amount = Estimate(value=value, unit=currency, signed=value < 0)
            amount = msgspec.structs.replace(amount, state="unbounded" if lacking else "known")
        if lacking:
            text = f"{counted(lacking, 'line')} of the bill state no {kind} cost in {currency}"
            findings = (_finding("CL316", text, "export the cost, or take another kind"),)
        lines.append(
            CostLine(
                name=name,
                label=f"{label}, {kind} cost",
                amount=amount,
                formula=f"sum of {kind} cost over the lines of the bill",
                cost_kind=kind,
                exact=exact if not lacking else None,
                input_ids=tuple(c.charge_id for c in charges if _is_in(c, currency)),
                findings=findings,
            )
        )
    return tuple(lines)


def total(lines: Iterable[CostLine]) -> Cost:
    """Sum lines by currency; an unpriced line makes each total a lower bound.

    Raises:
        IncomparableError: If cloud lines are of several kinds of cost.
    """
    held = tuple(lines)
    of_bills = (line.cost_kind for line in held if line.name in {"cloud", "unallocated"})
    kinds = sorted({kind for kind in of_bills if kind})
    if len(kinds) > 1:
        raise IncomparableError(
            f"{' and '.join(kinds)} cost of the cloud cannot be added: it is the same money",
            mend="take one kind: billed for cash, effective for accrual",
        )
    priced_in = sorted({line.currency for line in held} - {NO_CURRENCY})
    unpriced = any(line.currency == NO_CURRENCY for line in held)
    totals = {}
    for currency in priced_in:
        parts = [line.amount for line in held if line.currency == currency]
        totals[currency] = add([*parts, *([unknown(currency)] if unpriced else [])], currency)
    if unpriced and not priced_in:
        totals[NO_CURRENCY] = unknown(NO_CURRENCY)
    return Cost(lines=held, totals=totals, findings=tuple(f for line in held for f in line.findings))


def stated_costs(costs: Mapping[str, Money | None]) -> StatedCosts:
    """Sum what runs say they cost; those that say nothing are counted, not taken as free.

    Args:
        costs: Run to its cost.
    """
    groups: dict[str, list[Money]] = {}
    for cost in costs.values():
        if cost is not None:
            groups.setdefault(cost.currency, []).append(cost)
    sums = {currency: summed(groups[currency]) for currency in sorted(groups)}
    without = tuple(name for name, cost in costs.items() if cost is None)
    findings: tuple[Finding, ...] = ()
    if without and groups:
        verb = "has" if len(without) == 1 else "have"
        text = f"{len(without)} of {counted(len(costs), 'run')} {verb} no price: the cost is at least the sum"
        findings = (_finding("CL338", text, "state the cost of every run, or price them by the account"),)
    return StatedCosts(
        totals={currency: money for currency, money in sums.items() if money is not None},
        without=without,
        findings=findings,
    )


def _of_band(price: HourPrice, kwh: Estimate) -> Estimate:
    unit = f"{price.currency}/kWh"
    rate = stated(float(price.amount_per_kwh), price.u_relative, price.tariff_id, unit)
    return through(formulas.electricity_cost, kwh, rate, unit=price.currency)


def _is_in(charge: Charge, currency: str) -> bool:
    costs = (charge.billed, charge.effective, charge.list_cost, charge.contracted)
    return any(c is not None and c.currency == currency for c in costs)


def _finding(code: str, message: str, mend: str) -> Finding:
    return Finding(code=code, severity="warning", message=message, mend=mend)
