"""``expenses.csv``: software that was paid for, and time of engineers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from carbonlens.domain.expense import Expense
from carbonlens.inventory.prices_file import join_amount
from carbonlens.inventory.records import Kind, Problem
from carbonlens.inventory.values import a_cost, a_date, at_least_0


def _shape(values: dict[str, Any]) -> Iterator[Problem]:
    """Join the columns ``amount`` and ``currency``, where there are any."""
    if "amount" in values or "currency" in values:
        yield from join_amount(values)


def _check(expense: Expense) -> Iterator[Problem]:
    if expense.end <= expense.start:
        yield "end", f"ends {expense.end}, not after it begins", "end is the first day without it"
    if (expense.amount is None) == (expense.quantity is None):
        what = "states neither an amount nor a quantity" if expense.amount is None else "states both"
        yield "quantity", what, "state what was paid, or how much at the price of prices.csv"
    if expense.quantity is not None and expense.kind == "software" and expense.subject is None:
        yield "subject", "has a quantity without a subject", "name the price: software:NAME"


KIND: Final = Kind(
    name="expenses",
    table="expense",
    type=Expense,
    id_field="expense_id",
    formats=(".csv",),
    rules={"start": a_date, "end": a_date, "quantity": at_least_0, "amount": a_cost},
    columns=("currency",),
    shape=_shape,
    check=_check,
)
"""How an expense stands in its file."""
