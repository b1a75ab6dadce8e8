"""``prices.csv``: dated prices, each with where and when it was read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from carbonlens.domain.pricing import PriceRow
from carbonlens.inventory.records import Kind, Problem
from carbonlens.inventory.toml_entries import INVALID
from carbonlens.inventory.values import a_cost, a_date, a_sigma


def join_amount(values: dict[str, Any]) -> Iterator[Problem]:
    """Join the columns ``amount`` and ``currency`` of an entry in place, and yield what is wrong.

    Args:
        values: Keys and values of the entry.
    """
    if values.get("amount") is INVALID:
        values.pop("currency", None)
    elif "currency" not in values:
        yield "currency", "lacks 'currency'", "add the ISO 4217 code: EUR"
        values["amount"] = INVALID
    elif "amount" in values:
        values["amount"] = {"amount": values["amount"], "currency": values.pop("currency")}
    else:
        del values["currency"]


def _check(price: PriceRow) -> Iterator[Problem]:
    if price.valid_to is not None and price.valid_to <= price.valid_from:
        yield (
            "valid_to",
            f"ends {price.valid_to}, not after it begins",
            "valid_to is the first day without it",
        )


KIND: Final = Kind(
    name="prices",
    table="price",
    type=PriceRow,
    id_field="price_id",
    formats=(".csv",),
    rules={
        "amount": a_cost,
        "valid_from": a_date,
        "valid_to": a_date,
        "read_on": a_date,
        "u_relative": a_sigma,
    },
    columns=("currency",),
    shape=join_amount,
    check=_check,
)
"""How a price stands in its file."""
