"""Use case part: bills shared over runs as figures, each led to lines of bills and to runs."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from carbonlens.accounting.charge_joining import Part
from carbonlens.accounting.charges import FIELDS
from carbonlens.accounting.focus_identity import is_covering
from carbonlens.app.charges import RunCharges
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.figure import Figure
from carbonlens.domain.money import Money

UNALLOCATED: Final = "unallocated"
"""Stands in ids and in print for the run that carries what no run carries."""


def prefix_of(found: RunCharges) -> str:
    """Return the begin of the ids of a sharing: period, kind of cost and weights."""
    return f"charges.{found.period or 'all'}.{found.kind}.{found.weights}"


def run_id_of(found: RunCharges, currency: str, run: str | None) -> str:
    """Return the id of what a run carries in a currency."""
    return f"{prefix_of(found)}.{currency}.{run or UNALLOCATED}"


def part_id_of(found: RunCharges, part: Part) -> str:
    """Return the id of one run's part of a charge."""
    return f"{prefix_of(found)}.part.{part.charge_id}.{part.run_id or UNALLOCATED}"


def total_id_of(found: RunCharges, field: str, currency: str) -> str:
    """Return the id of the sum of one of the four costs; ``field`` as a ``Charge`` has it."""
    return f"{prefix_of(found)}.total.{field}.{currency}"


def invoice_id_of(found: RunCharges, invoice: str, currency: str) -> str:
    """Return the id of what the lines of an invoice bill."""
    return f"{prefix_of(found)}.invoice.{invoice}.{currency}"


def savings_id_of(found: RunCharges, currency: str) -> str:
    """Return the id of list less effective cost."""
    return f"{prefix_of(found)}.savings.{currency}"


def charge_figures(found: RunCharges) -> tuple[Figure, ...]:
    """Return parts, sums by run, sums by kind of cost and sums by invoice.

    Args:
        found: Bills shared over runs.
    """
    return (
        *(_part(found, part) for part in found.joined.parts),
        *(
            _run(found, currency, run, amount)
            for currency, amounts in found.amounts.items()
            for run, amount in amounts.items()
        ),
        *_totals(found),
        *(_saving(found, currency, amount) for currency, amount in found.savings.items()),
        *_invoices(found),
    )


def _part(found: RunCharges, part: Part) -> Figure:
    amount: Money | None = getattr(part, FIELDS[found.kind])
    whose = "no recorded run" if part.run_id is None else f"run {part.run_id}"
    runs = () if part.run_id is None else (f"run:{part.run_id}",)
    return Figure(
        figure_id=part_id_of(found, part),
        estimate=_estimate(amount),
        label=f"what {whose} carries of a charge",
        formula=f"{found.kind} cost * {part.share:.6g}, found by {part.how}",
        inputs=(part.charge_id, *runs),
    )


def _run(found: RunCharges, currency: str, run: str | None, amount: Money) -> Figure:
    field = FIELDS[found.kind]
    mine = [
        p
        for p in found.joined.parts
        if p.run_id == run and (m := getattr(p, field)) and m.currency == currency
    ]
    whose = "no recorded run carries" if run is None else f"run {run} carries"
    return Figure(
        figure_id=run_id_of(found, currency, run),
        estimate=_estimate(amount),
        label=f"{found.kind} cost in {currency} that {whose}",
        formula="sum of its parts of charges",
        inputs=tuple(part_id_of(found, p) for p in mine),
    )


def _totals(found: RunCharges) -> list[Figure]:
    figures = []
    for currency, totals in found.totals.items():
        for field in FIELDS.values():
            amount: Decimal | None = getattr(totals, field)
            # As in ``charges.by_currency``: at list price a purchase in advance is its later use again.
            counts = [c for c in found.charges if field in ("billed", "effective") or not is_covering(c)]
            held = [c for c in counts if (m := getattr(c, field)) and m.currency == currency]
            figures.append(
                Figure(
                    figure_id=total_id_of(found, field, currency),
                    estimate=_estimate(None if amount is None else Money(amount, currency), currency),
                    label=f"{field.removesuffix('_cost')} cost of the bills in {currency}",
                    formula="sum over the lines of the bills",
                    inputs=tuple(c.charge_id for c in held),
                )
            )
    return figures


def _saving(found: RunCharges, currency: str, amount: Money | None) -> Figure:
    ends = tuple(total_id_of(found, field, currency) for field in ("list_cost", "effective"))
    return Figure(
        figure_id=savings_id_of(found, currency),
        estimate=_estimate(amount, currency),
        label=f"list less effective cost of the bills in {currency}",
        formula="list cost - effective cost",
        inputs=ends,
    )


def _invoices(found: RunCharges) -> list[Figure]:
    return [
        Figure(
            figure_id=invoice_id_of(found, invoice, currency),
            estimate=_estimate(amount),
            label=f"billed cost of invoice {invoice} in {currency}",
            formula="sum over the lines of the invoice",
            inputs=tuple(
                c.charge_id
                for c in found.charges
                if c.invoice_id == invoice and c.billed is not None and c.billed.currency == currency
            ),
        )
        for (invoice, currency), amount in found.invoices.items()
    ]


def _estimate(amount: Money | None, currency: str = "XXX") -> Estimate:
    if amount is None:
        return Estimate(value=None, unit=currency, state="unknown")
    return Estimate(value=float(amount.amount), unit=amount.currency, signed=amount.amount < 0)
