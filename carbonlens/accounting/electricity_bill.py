"""Electricity bills of sites: the lines of a bill as parts of one cost, each kind of it named.

A bill states energy, the network, levies, taxes and credits on lines of their own. All of them
are what the electricity costs; its energy part alone is what a price per kWh gives. A line that
reaches over the ends of a period is split by time, as its energy is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, localcontext
from typing import Final, Literal, get_args

import msgspec
from msgspec.structs import replace

from carbonlens.accounting.bill_words import part_in
from carbonlens.accounting.charges import FIELDS
from carbonlens.accounting.cost import CostLine, of_bill
from carbonlens.accounting.focus_identity import summed
from carbonlens.accounting.metered import WHOLE
from carbonlens.accounting.statement_lines import key_of
from carbonlens.domain.charge import Charge
from carbonlens.domain.estimate import Estimate, add
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding
from carbonlens.domain.money import Money
from carbonlens.domain.pricing import CostKind
from carbonlens.domain.site import Site
from carbonlens.domain.units import J_PER_KWH

BillPart = Literal["energy", "network", "levy", "tax", "fixed", "credit", "adjustment", "other"]
"""What a line of an electricity bill is for."""

PARTS: Final[tuple[BillPart, ...]] = get_args(BillPart)

PART_TAG: Final = "x_BillPart"
"""Column of a bill, kept as a tag, that says which part a line is."""

_LEAST: Final = Decimal("1e-12")
_DIGITS: Final = 60
_OFF: Final = Decimal("0.01")
"""How far a billed price may be off: bills are rounded to cents."""


class SortedBills(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of bills: the electricity of sites, and all others."""

    electricity: dict[str, tuple[Charge, ...]]
    others: tuple[Charge, ...]


class ElectricityBill(msgspec.Struct, frozen=True, kw_only=True):
    """What the electricity of a site costs in a period by its bills.

    Attributes:
        kind: Which of the four costs.
        lines: One a part and currency; credits are negative.
        covered: Share of the period that the lines with energy cover.
        energy_kwh: Energy that the lines state; ``None`` where none does.
        energy_cost: Of the lines with energy alone, by currency, where each states it.
    """

    site_id: str
    kind: CostKind
    lines: tuple[CostLine, ...]
    covered: float
    energy_kwh: Decimal | None
    energy_cost: dict[str, Money]

    @property
    def is_whole(self) -> bool:
        """Whether it covers the period, so that it is what the site's electricity costs."""
        return self.covered >= WHOLE

    def at_least(self) -> ElectricityBill:
        """Return it as a lower bound: what it covers is a part of the period."""
        lines = (
            replace(x, amount=replace(x.amount, state="unbounded")) if x.amount.value is not None else x
            for x in self.lines
        )
        return replace(self, lines=tuple(lines))

    def totals(self) -> dict[str, Estimate]:
        """Return the sum of the parts by currency."""
        currencies = dict.fromkeys(line.currency for line in self.lines)
        return {c: add((x.amount for x in self.lines if x.currency == c), c) for c in currencies}

    def figure_id(self, line: CostLine, prefix: str) -> str:
        """Return the id of the figure of one part."""
        return f"{prefix}.{key_of(self.site_id)}.bill.{line.part}.{line.currency}"

    def figures(self, prefix: str) -> tuple[Figure, ...]:
        """Return each part as a figure that rests on lines of the bill."""
        return tuple(
            Figure(
                figure_id=self.figure_id(line, prefix),
                estimate=line.amount,
                label=line.label,
                formula=line.formula,
                inputs=line.input_ids,
            )
            for line in self.lines
        )

    def cost_lines(self, prefix: str) -> tuple[CostLine, ...]:
        """Return the parts as lines of a cost, each resting on its figure."""
        return tuple(replace(line, input_ids=(self.figure_id(line, prefix),)) for line in self.lines)


def part_of(charge: Charge) -> BillPart:
    """Return what a line is for: by its tag, its category, its words, else by whether it has energy."""
    stated = charge.tags.get(PART_TAG, "").lower()
    found = next((part for part in PARTS if part == stated), None)
    if found is not None:
        return found
    if charge.category == "tax":
        return "tax"
    if charge.category == "credit":
        return "credit"
    if charge.category == "adjustment":
        return "adjustment"
    word = part_in(f"{charge.sku or ''} {charge.service or ''}")
    named = next((part for part in PARTS if part == word), None)
    if named is not None:
        return named
    return "other" if charge.energy_j is None else "energy"


def states_energy(charge: Charge) -> bool:
    """Return whether a line's quantity is delivered energy: a network fee per kWh states it again."""
    return charge.energy_j is not None and charge.category == "usage" and part_of(charge) == "energy"


def sorted_out(
    charges: Iterable[Charge], sites: Mapping[str, Site], meter_sites: Mapping[str, str]
) -> SortedBills:
    """Return the lines of electricity by site, and the others.

    A line is of a site's electricity if it names a meter, states an energy, or is on an invoice
    with such a line of the site. Bills of clouds hold electricity inside their prices.

    Args:
        charges: Lines of bills.
        sites: Of the inventory, by name.
        meter_sites: Meter to its site.
    """
    placed = [(c, c.site or meter_sites.get(c.meter_id or "")) for c in charges]
    own = {name for name, site in sites.items() if site.kind != "cloud"}
    invoices = {(site, c.invoice_id) for c, site in placed if c.invoice_id is not None and _names_power(c)}
    electricity: dict[str, list[Charge]] = {}
    others = []
    for charge, site in placed:
        if site in own and (_names_power(charge) or (site, charge.invoice_id) in invoices):
            electricity.setdefault(site or "", []).append(charge)
        else:
            others.append(charge)
    return SortedBills(
        electricity={s: tuple(c) for s, c in sorted(electricity.items())}, others=tuple(others)
    )


def bill_of(
    site_id: str, charges: Sequence[Charge], kind: CostKind, period: tuple[int, int], over: tuple[int, int]
) -> ElectricityBill | None:
    """Return what the electricity of a site costs in a period; ``None`` where no line is of it.

    Args:
        site_id: The site.
        charges: Lines of its electricity, of any time.
        kind: Which of the four costs.
        period: Its instants, the end exclusive.
        over: The part of it that is over, which bills can cover.
    """
    held = [part for part in (within(c, *period) for c in charges) if part is not None]
    if not held:
        return None
    energy = [c for c in held if states_energy(c)]
    lines = [
        replace(line, part=part, site_id=site_id)
        for part in PARTS
        for line in of_bill(
            "electricity", f"electricity of {site_id}: {part}", [c for c in held if part_of(c) == part], kind
        )
    ]
    joules = [c.energy_j for c in energy if c.energy_j is not None]
    return ElectricityBill(
        site_id=site_id,
        kind=kind,
        lines=tuple(lines),
        covered=_covered(energy or held, over),
        energy_kwh=sum(joules, Decimal(0)) / J_PER_KWH if joules else None,
        energy_cost=_cost_of(energy, kind),
    )


def within(charge: Charge, start_us: int, end_us: int) -> Charge | None:
    """Return the part of a line that lies in a period, split by time; ``None`` where none does.

    The parts of periods that follow each other sum to the line exactly.

    Args:
        charge: The line.
        start_us: When the period starts.
        end_us: When it ends, exclusive.
    """
    first, last = max(charge.start_us, start_us), min(charge.end_us, end_us)
    if charge.end_us <= charge.start_us:
        return charge if start_us <= charge.start_us < end_us else None
    if last <= first:
        return None
    if (first, last) == (charge.start_us, charge.end_us):
        return charge
    costs = {field: _split(getattr(charge, field), charge, first, last) for field in FIELDS.values()}
    joules = charge.energy_j
    if joules is not None:
        joules = _upto(joules, charge, last) - _upto(joules, charge, first)
    return replace(charge, start_us=first, end_us=last, energy_j=joules, **costs)


def beside_tariff(bill: ElectricityBill, prices: Sequence[tuple[Decimal, str]]) -> Finding | None:
    """Return a Finding where the energy of a bill costs less or more than any price of the site.

    Network, levies and taxes are no part of it: a tariff may hold them or not.

    Args:
        bill: With energy and its cost.
        prices: Prices per kWh in the period, with their currencies.
    """
    for currency, money in bill.energy_cost.items():
        known = [amount for amount, of in prices if of == currency]
        if not known or not bill.energy_kwh:
            continue
        paid = money.amount / bill.energy_kwh
        if min(known) * (1 - _OFF) <= paid <= max(known) * (1 + _OFF):
            continue
        text = (
            f"the energy of {bill.site_id}'s bill costs {paid:.4g} {currency}/kWh, its tariff says "
            f"{_span(known)}: the bill counts"
        )
        mend = "correct the tariff, or mark lines that are no energy by x_BillPart"
        return Finding(code="CL498", severity="warning", message=text, mend=mend, subject=bill.site_id)
    return None


def _span(prices: Sequence[Decimal]) -> str:
    low, high = min(prices), max(prices)
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


def _names_power(charge: Charge) -> bool:
    return charge.meter_id is not None or charge.energy_j is not None


def _covered(charges: Iterable[Charge], over: tuple[int, int]) -> float:
    covered, at = 0, over[0]
    for charge in sorted(charges, key=lambda c: c.start_us):
        first, last = max(charge.start_us, at), min(charge.end_us, over[1])
        if last > first:
            covered += last - first
            at = last
    return covered / (over[1] - over[0]) if over[1] > over[0] else 0.0


def _cost_of(charges: Sequence[Charge], kind: CostKind) -> dict[str, Money]:
    """Return the cost of lines by currency; none where one of them does not state it."""
    costs: list[Money | None] = [getattr(c, FIELDS[kind]) for c in charges]
    known = [m for m in costs if m is not None]
    if len(known) < len(costs):
        return {}
    sums = {c: summed(m for m in known if m.currency == c) for c in {m.currency for m in known}}
    return {currency: money for currency, money in sorted(sums.items()) if money is not None}


def _split(cost: Money | None, charge: Charge, first: int, last: int) -> Money | None:
    if cost is None:
        return None
    return Money(_upto(cost.amount, charge, last) - _upto(cost.amount, charge, first), cost.currency)


def _upto(amount: Decimal, charge: Charge, at: int) -> Decimal:
    """Return what of an amount lies before an instant."""
    if at >= charge.end_us:
        return amount
    with localcontext(prec=_DIGITS):
        share = amount * (at - charge.start_us) / (charge.end_us - charge.start_us)
        return share.quantize(_LEAST) if at > charge.start_us else Decimal(0)
