"""Cost of own hardware: its price spread over its life, as its embodied emissions are.

The hours that are charged, idle and written off are those of ``amortisation``, so that the
money and the kilograms of a machine always stand on the same basis.
"""

from __future__ import annotations

from carbonlens.accounting.amortisation import Amortised, amortised
from carbonlens.accounting.amounts import NO_CURRENCY
from carbonlens.accounting.cost import CostLine, LineName
from carbonlens.accounting.embodied import Piece
from carbonlens.domain.asset import Asset
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.finding import Finding


def hardware(
    asset: Asset, *, start: str, end: str, used_hours: float, used_before: float | None = None
) -> tuple[CostLine, ...]:
    """Return what an asset costs in a period: hours used, idle hours, what an early end leaves.

    Per calendar hour idle time is a line of its own; per expected hour of use it is inside
    the rate, and has none.

    Args:
        asset: With its price, and its life or expected hours of use.
        start: First date of the period.
        end: Date after its last.
        used_hours: Piece hours of use in the period.
        used_before: Piece hours of use before it.
    """
    name = f"asset:{asset.asset_id}"
    price = asset.cost
    if price is None or (asset.life_years is None and asset.used_hours is None):
        lacking = "a price" if price is None else "a life or expected hours of use"
        currency = NO_CURRENCY if price is None else price.currency
        found = Finding(
            code="CL339",
            severity="warning",
            message=f"asset {asset.asset_id} states no {lacking.removeprefix('a ')}: its cost is unknown",
            mend=f"add {lacking} to assets.csv",
            subject=asset.asset_id,
        )
        label = f"{asset.hardware}, hours used"
        line = CostLine(
            name="hardware",
            label=label,
            amount=unknown(currency),
            formula=f"without {lacking}",
            input_ids=(name,),
            findings=(found,),
        )
        return (line,)
    # What is spread is a number of the asset; that it is money and no kg is this module's to say.
    each = Piece(kg=Estimate(value=float(price.amount), unit="kg"), how="price", input_ids=(name,))
    spread = amortised(asset, each, start=start, end=end, used_hours=used_hours, used_before=used_before)
    return _lines(asset, spread, price.currency, name)


def _lines(asset: Asset, spread: Amortised, currency: str, name: str) -> tuple[CostLine, ...]:
    rate = spread.rate_kg_per_hour.value or 0.0
    per = "calendar hour" if spread.basis == "calendar_hour" else "expected hour of use"
    told = f"{rate:.6g} {currency} per {per}"
    idle = spread.hours - spread.used_hours
    rows: tuple[tuple[LineName, str, Estimate, str], ...] = (
        ("hardware", "hours used", spread.used_kg, f"{spread.used_hours:g} h * {told}"),
        ("hardware_idle", "idle hours", spread.idle_kg, f"{idle:g} h * {told}"),
        ("hardware_written_off", "left by an early end", spread.written_off_kg, f"hours never used * {told}"),
    )
    return tuple(
        CostLine(
            name=line,
            label=f"{asset.hardware}, {label}",
            amount=amount.scale(1.0, currency),
            formula=formula,
            input_ids=(name,),
        )
        for line, label, amount, formula in rows
        if amount.state != "not_applicable"
    )
