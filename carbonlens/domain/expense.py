"""Expense: software that was paid for, or time of engineers, in a span of days."""

from __future__ import annotations

from typing import Literal

import msgspec

from carbonlens.domain.money import Money
from carbonlens.domain.pricing import PricePer

ExpenseKind = Literal["software", "engineering"]


class Expense(msgspec.Struct, frozen=True, kw_only=True):
    """One expense: a quantity that a price is multiplied by, or an amount.

    Attributes:
        expense_id: Its name.
        kind: What it is.
        what: In words.
        start: First day of it, ``2026-03-01``; ``end`` is the first day without it.
        subject: What prices call it: ``engineering``, ``software:NAME``.
        quantity: How much, in the unit of ``per``; ``None`` where ``amount`` is stated.
        per: Unit of the price.
        amount: What was paid; ``None`` where the price table tells it.
        initiative: Initiative it is for.
        source: Where it was read.
    """

    expense_id: str
    kind: ExpenseKind
    what: str = ""
    start: str
    end: str
    subject: str | None = None
    quantity: float | None = None
    per: PricePer = "hour"
    amount: Money | None = None
    initiative: str | None = None
    source: str
