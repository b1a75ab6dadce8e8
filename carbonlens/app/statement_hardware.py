"""Use case part: hours of use of the inventory's hardware, and what they carry of its making."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from carbonlens.accounting.amortisation import Amortised, amortised
from carbonlens.accounting.embodied import piece_of
from carbonlens.domain.asset import Asset
from carbonlens.domain.estimate import unknown
from carbonlens.domain.finding import Finding
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.units import S_PER_HOUR
from carbonlens.factors.store import FactorSet

if TYPE_CHECKING:
    from carbonlens.ledger.frames import View


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """Hours of use of one asset in a period; ``None`` where no run names it."""

    asset: Asset
    hours: float | None


def uses(view: View, inventory: Inventory) -> tuple[Use, ...]:
    """Return the hours in which runs used each asset.

    A run uses an asset that names its host; an asset that names no device is used by runs of
    its hardware at its site. An hour of a run is one piece hour.

    Args:
        view: Of the period.
        inventory: With the assets.
    """
    if not inventory.assets:
        return ()
    import narwhals as nw

    keys = ("host_id", "hardware", "site")
    first = view.parts.filter(nw.col("is_first"), nw.col("parent_run_id").is_null())
    rows = view.rows(first.group_by(*keys).agg(duration_s=nw.col("duration_s").sum()))
    found = []
    for asset in inventory.assets:
        own = [row["duration_s"] for row in rows if _is_of(asset, row)]
        hours = float(sum(own)) / S_PER_HOUR if own else None
        found.append(Use(asset=asset, hours=hours))
    return tuple(found)


def hardware_in_use(
    held: tuple[Use, ...], factors: FactorSet, start: str, end: str
) -> tuple[tuple[Amortised, ...], tuple[Finding, ...]]:
    """Return the amortised embodied emissions of hardware that is in use in a period.

    Args:
        held: Hours of use.
        factors: With the embodied figures.
        start: First date of the period.
        end: Date after its last.
    """
    made, findings = [], []
    for use in held:
        asset = use.asset
        if asset.purchased >= end or (asset.retired is not None and asset.retired < start):
            continue
        each = piece_of(asset, factors.rows)
        one = amortised(asset, each, start=start, end=end, used_hours=use.hours or 0.0)
        if use.hours is None:
            findings.append(_unused(asset))
            if asset.used_hours is not None:
                one = msgspec.structs.replace(one, used_kg=unknown("kg"))
        made.append(one)
    return tuple(made), tuple(findings)


def _is_of(asset: Asset, row: dict[str, Any]) -> bool:
    if asset.devices:
        return row["host_id"] in asset.devices
    return (row["hardware"], row["site"]) == (asset.hardware, asset.site)


def _unused(asset: Asset) -> Finding:
    unknown_use = asset.used_hours is not None
    rest = "its amortised emissions are unknown" if unknown_use else "all its hours stand as idle"
    return Finding(
        code="CL485",
        severity="warning" if unknown_use else "info",
        message=f"no run of the period names a host or the hardware of asset {asset.asset_id}: {rest}",
        mend="state in assets.csv the hosts on which it stands, as runs name them",
        subject=asset.asset_id,
    )
