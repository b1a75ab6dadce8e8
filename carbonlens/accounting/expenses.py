"""Software and engineering time as lines of cost: amounts paid, or quantities at a price.

An expense that reaches over the ends of a period is spread evenly over its days.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

import msgspec

from carbonlens.accounting.cost import UNIT_OF, CostLine, priced
from carbonlens.accounting.formulas import Quantity
from carbonlens.accounting.money_years import of_days
from carbonlens.accounting.price_choice import Wanted, choose_paid
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.expense import Expense
from carbonlens.domain.pricing import PriceRow


def share_of_days(whole: Quantity, days_within: Quantity, days: Quantity) -> Quantity:
    """Return the part of a whole that falls on some of its days."""
    return whole * days_within / days


def expense_lines(
    expenses: Iterable[Expense],
    own: Sequence[PriceRow],
    bundled: Sequence[PriceRow],
    *,
    start: str,
    end: str,
) -> tuple[CostLine, ...]:
    """Return what software and engineering time cost in a period.

    Args:
        expenses: Of the inventory; those of other times are left out.
        own: The user's prices.
        bundled: Those that come with carbonlens.
        start: First date of the period.
        end: Date after its last.
    """
    lines = []
    for expense in expenses:
        first, last = max(expense.start, start), min(expense.end, end)
        if first < last:
            days = _days(first, last), _days(expense.start, expense.end)
            line = _line(expense, days, first, own, bundled)
            lines.append(msgspec.structs.replace(line, by_year=of_days(first, last)))
    return tuple(lines)


def _line(
    expense: Expense,
    days: tuple[int, int],
    first: str,
    own: Sequence[PriceRow],
    bundled: Sequence[PriceRow],
) -> CostLine:
    label = expense.what or f"{expense.kind} {expense.expense_id}"
    name = f"expense:{expense.expense_id}"
    if expense.amount is not None:
        paid = expense.amount
        part = share_of_days(float(paid.amount), *days)
        formula = f"{paid.amount:f} {paid.currency}" + _of_days(days)
        amount = Estimate(value=part, unit=paid.currency)
        exact = paid if days[0] == days[1] else None
        return CostLine(
            name=expense.kind, label=label, amount=amount, formula=formula, exact=exact, input_ids=(name,)
        )
    wanted = Wanted(subject=expense.subject or expense.kind, date=first, per=expense.per)
    choice = choose_paid(own, bundled, wanted)
    quantity = None if expense.quantity is None else share_of_days(expense.quantity, *days)
    line = priced(expense.kind, label, Estimate(value=quantity, unit=UNIT_OF[expense.per]), choice.row)
    return msgspec.structs.replace(
        line,
        formula=line.formula + _of_days(days),
        input_ids=(name, *line.input_ids),
        findings=choice.findings,
    )


def _of_days(days: tuple[int, int]) -> str:
    return "" if days[0] == days[1] else f" * {days[0]} of {days[1]} days"


def _days(first: str, last: str) -> int:
    return (date.fromisoformat(last) - date.fromisoformat(first)).days
