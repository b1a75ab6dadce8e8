"""``price_index.csv``: the level of prices in a currency by year."""

from __future__ import annotations

from typing import Final

from carbonlens.domain.pricing import PriceIndex
from carbonlens.inventory.records import Kind
from carbonlens.inventory.values import a_currency, a_year, above_0

KIND: Final = Kind(
    name="price_index",
    table="index",
    type=PriceIndex,
    formats=(".csv",),
    rules={"currency": a_currency, "year": a_year, "index": above_0},
)
"""How the index of a year stands in its file."""
