"""``exchange_rates.csv``: how much of one currency another bought on a day."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from carbonlens.domain.pricing import ExchangeRate
from carbonlens.inventory.records import Kind, Problem
from carbonlens.inventory.values import a_currency, a_date, above_0


def _check(rate: ExchangeRate) -> Iterator[Problem]:
    if rate.base == rate.quote:
        yield "quote", f"is a rate of {rate.base} in {rate.quote}", "name two currencies"


KIND: Final = Kind(
    name="exchange_rates",
    table="rate",
    type=ExchangeRate,
    formats=(".csv",),
    rules={"base": a_currency, "quote": a_currency, "date": a_date, "rate": above_0},
    check=_check,
)
"""How an exchange rate stands in its file."""
