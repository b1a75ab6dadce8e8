"""Cost of a statement: the electricity of each site once, and the other lines beside it.

A site's electricity costs what its bill says; without one, its metered energy at the price of
each hour; without a meter, that of its recorded runs. A cloud's electricity is in its bill.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from carbonlens.accounting import formulas
from carbonlens.accounting.cost import Cost, CostLine, priced, total
from carbonlens.accounting.electricity_bill import ElectricityBill
from carbonlens.accounting.formulas import Quantity
from carbonlens.accounting.money_years import of_lines
from carbonlens.accounting.propagation import through
from carbonlens.accounting.standing import Standing
from carbonlens.accounting.statement_lines import PAID, Amount, Line, is_unpriced
from carbonlens.domain.estimate import Estimate, add, unknown
from carbonlens.domain.finding import Finding

_BY_HOUR = "cost = sum over hours of facility_kwh * price of the hour"


class Power(msgspec.Struct, frozen=True, kw_only=True):
    """How the electricity of sites is paid, beside what the prices of each hour say of runs.

    Attributes:
        bills: Of sites whose bills are their cost.
        metered: Cost of the metered energy by the hour, by site and currency.
        in_cloud: Sites whose electricity is in the bill of a cloud.
        prices: What a kWh comes to by a bill, all its parts together, by site and currency.
        by_year: Share of each calendar year in what the electricity of a site costs by the hour.
        ai_metered: Sites whose meters count AI workloads alone, and so a part of their bill.
    """

    bills: tuple[ElectricityBill, ...] = ()
    metered: Mapping[str, Mapping[str, Estimate]] = {}
    in_cloud: frozenset[str] = frozenset()
    prices: Mapping[str, Mapping[str, Estimate]] = {}
    by_year: Mapping[str, Mapping[int, float]] = {}
    ai_metered: frozenset[str] = frozenset()

    def bill(self, site_id: str) -> ElectricityBill | None:
        """Return the bill of a site; ``None`` where none is its cost."""
        return next((b for b in self.bills if b.site_id == site_id), None)


def unit_price(amount: Quantity, quantity: Quantity) -> Quantity:
    """Return what a unit comes to of an amount paid for a quantity."""
    return amount / quantity


def with_bill_prices(power: Power, meters: Mapping[str, Standing]) -> Power:
    """Return how electricity is paid, with what a kWh of each billed site comes to.

    A bill is divided by its own kWh; one that states none, by those of meters of the whole site.

    Args:
        power: As the bills say.
        meters: What stands for the sites that are metered, by meters or by bills.
    """
    prices = {}
    ai_metered = set()
    for bill in power.bills:
        stands = meters.get(bill.site_id)
        if stands is None:
            continue
        if stands.meter.covers == "ai":
            ai_metered.add(bill.site_id)
        kwh = _kwh_of(bill, stands)
        if kwh is not None:
            prices[bill.site_id] = {
                currency: through(unit_price, amount, kwh, unit=f"{currency}/kWh")
                for currency, amount in bill.totals().items()
            }
    return replace(power, prices=prices, ai_metered=frozenset(ai_metered))


def _kwh_of(bill: ElectricityBill, stands: Standing) -> Estimate | None:
    """Return the kWh that a bill is for; ``None`` where nobody knows."""
    if bill.energy_kwh and not stands.whole.is_billed:
        # A bill states no width of its kWh.
        return Estimate(value=float(bill.energy_kwh), unit="kWh", grade="A", bounds=(None, None))
    return None if stands.is_least or stands.meter.covers == "ai" else stands.facility_kwh


def paid(line: Line, power: Power, prefix: str) -> Line:
    """Return a line of recorded runs with its part of a bill, where no price of the hour tells it.

    Args:
        line: Of runs at one site.
        power: With the prices of bills.
        prefix: ``statement.<period>``.
    """
    line = replace(line, is_in_cloud=line.site_id in power.in_cloud)
    bill = power.bill(line.site_id)
    if bill is None or any(n.startswith(PAID) for n in line.amounts):
        return line
    if bill.site_id not in power.prices:
        return replace(line, findings=(*line.findings, _no_share(line.site_id)))
    return replace(line, amounts={**line.amounts, **_by_kwh(line, bill, power, prefix)})


def _by_kwh(line: Line, bill: ElectricityBill, power: Power, prefix: str) -> dict[str, Amount]:
    """Return what the kWh of a line come to at what a kWh costs by the bill."""
    kwh, figure = line.estimate("facility_kwh"), f"{prefix}.{line.key}.facility_kwh"
    return {
        f"{PAID}{currency}": Amount(
            through(formulas.electricity_cost, kwh, price, unit=currency),
            "cost = facility_kwh * (bill / its kWh)",
            (figure, *_ids(bill, currency, prefix)),
        )
        for currency, price in power.prices[bill.site_id].items()
    }


def paid_by_meter(line: Line, power: Power, prefix: str, price_ids: Mapping[str, tuple[str, ...]]) -> Line:
    """Return the line of a metered site with what its electricity costs: by its bill, else by the hour.

    Args:
        line: As its meters counted.
        power: With the cost by the hour.
        prefix: ``statement.<period>``.
        price_ids: Prices of its electricity by currency.
    """
    line = replace(line, is_in_cloud=line.site_id in power.in_cloud)
    bill = power.bill(line.site_id)
    if bill is not None and line.site_id in power.ai_metered:
        if line.site_id not in power.prices:
            return replace(line, findings=(*line.findings, _no_share(line.site_id)))
        amounts = _by_kwh(line, bill, power, prefix)
    elif bill is not None:
        amounts = {
            f"{PAID}{currency}": Amount(amount, "sum of the bill", _ids(bill, currency, prefix))
            for currency, amount in bill.totals().items()
        }
    else:
        figure = f"{prefix}.{line.key}.facility_kwh"
        amounts = {
            f"{PAID}{currency}": Amount(amount, _BY_HOUR, (figure, *price_ids.get(currency, ())))
            for currency, amount in power.metered.get(line.site_id, {}).items()
        }
    return replace(line, amounts={**line.amounts, **amounts})


def cost_of(counted: Sequence[Line], power: Power, others: Sequence[CostLine], prefix: str) -> Cost:
    """Return the cost of a period.

    Where electricity has no price every total that there is, is a lower bound.

    Args:
        counted: Lines of sites that hold no energy twice.
        power: How their electricity is paid.
        others: Lines beside electricity by the hour and by bills.
        prefix: ``statement.<period>``.
    """
    billed = {bill.site_id for bill in power.bills}
    own = [line for line in counted if line.site_id not in billed]
    every = [
        *_by_hour(own, prefix, power.by_year),
        *(x for b in power.bills for x in b.cost_lines(prefix)),
        *others,
    ]
    unpriced = [line.site_id for line in own if is_unpriced(line)]
    if every and unpriced:
        where = ", ".join(dict.fromkeys(unpriced))
        every.append(priced("electricity", f"electricity of {where}, no price", unknown("kWh"), None))
    return total(every)


def _by_hour(
    lines: Sequence[Line], prefix: str, by_year: Mapping[str, Mapping[int, float]]
) -> list[CostLine]:
    """Return electricity by the price of each hour, true figures and lower bounds apart."""
    found = []
    for is_least in (False, True):
        own = [line for line in lines if line.is_lower_bound == is_least]
        for name in sorted({n for line in own for n in line.amounts if n.startswith(PAID)}):
            held = [line for line in own if name in line.amounts]
            currency = name.removeprefix(PAID)
            found.append(
                CostLine(
                    name="electricity",
                    label="electricity by the hour" + (", at least" if is_least else ""),
                    amount=add((line.estimate(name) for line in held), currency),
                    formula="sum of the lines",
                    input_ids=tuple(f"{prefix}.{line.key}.{name}" for line in held),
                    by_year=of_lines([(x.site_id, x.estimate(name).value or 0.0) for x in held], by_year),
                )
            )
    return found


def _ids(bill: ElectricityBill, currency: str, prefix: str) -> tuple[str, ...]:
    return tuple(bill.figure_id(x, prefix) for x in bill.lines if x.currency == currency)


def _no_share(site_id: str) -> Finding:
    return Finding(
        code="CL494",
        severity="warning",
        message=f"the electricity bill of {site_id} states no energy of the whole period: what its recorded "
        "runs carry of it is unknown",
        mend="import the bill with its kWh, or readings of a meter of the site",
        subject=site_id,
    )
