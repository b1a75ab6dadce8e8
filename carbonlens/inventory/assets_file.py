"""``assets.toml`` or ``assets.csv``: hardware that was bought."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from carbonlens.domain.asset import Asset
from carbonlens.inventory.records import Kind, Problem
from carbonlens.inventory.toml_entries import INVALID
from carbonlens.inventory.values import a_cost, a_date, above_0, at_least_0


def _shape(values: dict[str, Any]) -> Iterator[Problem]:
    """Join ``cost`` and ``currency``; in TOML the cost may be a table of both."""
    cost, currency = values.get("cost"), values.pop("currency", None)
    if cost is INVALID or (cost is None and currency is None):
        return
    if cost is None or (currency is None and not isinstance(cost, dict)):
        yield "cost", "has a cost without a currency, or a currency alone", "state cost and currency"
        values["cost"] = INVALID
    elif not isinstance(cost, dict):
        values["cost"] = {"amount": cost, "currency": currency}


def _check(asset: Asset) -> Iterator[Problem]:
    low, high, value = asset.embodied_low_kg, asset.embodied_high_kg, asset.embodied_kg
    if value is None and (low is not None or high is not None):
        yield "embodied_low_kg", "has a range of embodied_kg without embodied_kg", "add embodied_kg"
    elif value is not None:
        if (low is not None and low > value) or (high is not None and high < value):
            yield "embodied_kg", f"embodied_kg {value:g} lies outside its own range", "check low and high"
        if asset.embodied_source is None:
            yield "embodied_kg", "embodied_kg has no source", "add embodied_source: where it comes from"
    if asset.embodied_from is not None and value is not None:
        yield (
            "embodied_from",
            "states embodied_kg and a source of factors to take it from",
            "keep one of them",
        )
    if asset.retired is not None and asset.retired < asset.purchased:
        yield "retired", f"was retired {asset.retired}, before its purchase", "check both dates"


KIND: Final = Kind(
    name="assets",
    table="asset",
    type=Asset,
    id_field="asset_id",
    formats=(".toml", ".csv"),
    rules={
        "count": above_0,
        "purchased": a_date,
        "retired": a_date,
        "life_years": above_0,
        "embodied_kg": at_least_0,
        "embodied_low_kg": at_least_0,
        "embodied_high_kg": at_least_0,
        "used_hours": above_0,
        "hours_before": at_least_0,
        "devices_each": above_0,
        "cost": a_cost,
    },
    columns=("currency",),
    shape=_shape,
    check=_check,
)
"""How an asset stands in its file."""
