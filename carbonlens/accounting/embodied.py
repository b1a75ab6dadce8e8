"""Embodied emissions of what was bought: one piece of an asset, and capital goods.

One piece has the range of its sources (see ``embodied_range``) or what the asset states
itself. Capital goods are booked whole in the year of purchase (GHG Protocol Scope 3
Standard, category 2), which is another figure than the amortised share of SCI; both are
kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from carbonlens.accounting.embodied_range import embodied_range, sources_of
from carbonlens.accounting.formulas import Quantity
from carbonlens.accounting.propagation import through
from carbonlens.domain.asset import Asset
from carbonlens.domain.estimate import Estimate, add
from carbonlens.domain.factor_row import FactorRow
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding
from carbonlens.domain.grades import default_relative_sigma
from carbonlens.domain.units import Z_95


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """Embodied emissions of one piece of an asset.

    Attributes:
        kg: With its range as the 95 % interval.
        how: Of which sources, in words.
        input_ids: Factors, or the asset where it states its own.
    """

    kg: Estimate
    how: str
    input_ids: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


def piece_of(asset: Asset, rows: Iterable[FactorRow], source: str | None = None) -> Piece:
    """Return the embodied emissions of one piece of an asset: its own statement, else the rows'.

    Args:
        asset: Its own statement comes first, because it is about this very hardware.
        rows: Factor rows.
        source: Take this source alone (``embodied_range.sources_of``); the asset's own
            statement is passed over then.

    Raises:
        SelectionError: If the rows hold the hardware, but not from that source.
    """
    if asset.embodied_kg is not None and source is None:
        kg = _own(asset, asset.embodied_kg)
        return Piece(kg=kg, how=asset.embodied_source or "as the asset states", input_ids=(_id(asset),))
    found = embodied_range(rows, asset.hardware, source)
    return Piece(
        kg=found.kg,
        how=found.how,
        input_ids=tuple(r.factor_id for r in found.rows),
        findings=tuple(msgspec.structs.replace(f, subject=asset.asset_id) for f in found.findings),
    )


def piece_by(asset: Asset, rows: Sequence[FactorRow], source: str | None = None) -> Piece:
    """Return one piece of an asset by the source that is chosen for all, else by the asset's own choice.

    Args:
        asset: Its ``embodied_from`` names a source for it alone.
        rows: Factor rows.
        source: Of the whole statement; hardware without a figure of it keeps another, with a Finding.

    Raises:
        SelectionError: If the asset itself names a source that has no figure of its hardware.
    """
    if source is not None and source in sources_of(rows, asset.hardware):
        return piece_of(asset, rows, source)
    piece = piece_of(asset, rows, asset.embodied_from)
    if source is None:
        return piece
    return msgspec.structs.replace(piece, findings=(*piece.findings, _without(asset, source, piece)))


def server_share_kg(gpus: Quantity, installed: Quantity, server_kg: Quantity, gpu_kg: Quantity) -> Quantity:
    """Return kg of some of a server's GPUs with their share of the server around them."""
    return gpus / installed * server_kg + gpus * gpu_kg


def capital_goods_kg(count: Quantity, kg_each: Quantity) -> Quantity:
    """Return kg of what was bought, whole in the year of purchase (Scope 3 Standard, category 2)."""
    return count * kg_each


class Purchase(msgspec.Struct, frozen=True, kw_only=True):
    """One purchase as a capital good."""

    asset: Asset
    each: Piece
    kg: Estimate


class CapitalGoods(msgspec.Struct, frozen=True, kw_only=True):
    """Capital goods bought in a period: scope 3 category 2, not amortised."""

    purchases: tuple[Purchase, ...]
    kg: Estimate
    findings: tuple[Finding, ...]

    def figures(self, prefix: str) -> tuple[Figure, ...]:
        """Return one piece and the whole of each purchase, and the sum, as figures."""
        pieces, wholes = [], []
        for purchase in self.purchases:
            asset, name = purchase.asset, f"{prefix}.{purchase.asset.asset_id}"
            piece = Figure(
                figure_id=f"{name}.embodied_each_kg",
                estimate=purchase.each.kg,
                label=f"embodied emissions of one {asset.hardware}",
                formula=purchase.each.how,
                inputs=purchase.each.input_ids,
            )
            whole = Figure(
                figure_id=f"{name}.capital_goods_kg",
                estimate=purchase.kg,
                label=f"{asset.count} {asset.hardware}, bought {asset.purchased}",
                formula="count * embodied_each_kg",
                inputs=(piece.figure_id, _id(asset)),
            )
            pieces.append(piece)
            wholes.append(whole)
        total = Figure(
            figure_id=f"{prefix}.capital_goods_kg",
            estimate=self.kg,
            label="capital goods bought in the period",
            formula="sum of the purchases, not amortised",
            inputs=tuple(f.figure_id for f in wholes),
        )
        return *pieces, *wholes, total


def capital_goods(
    assets: Sequence[Asset], rows: Sequence[FactorRow], *, start: str, end: str, source: str | None = None
) -> CapitalGoods:
    """Return what was bought in a period, whole.

    Args:
        assets: All of the inventory.
        rows: Factor rows.
        start: First date of the period.
        end: Date after its last.
        source: As for ``piece_by``.
    """
    bought = [a for a in assets if start <= a.purchased < end]
    purchases = []
    for asset in bought:
        each = piece_by(asset, rows, source)
        kg = through(capital_goods_kg, asset.count, each.kg, unit="kg")
        purchases.append(Purchase(asset=asset, each=each, kg=kg))
    # Nothing bought is a known nothing, unlike a purchase of unknown hardware.
    total = add((p.kg for p in purchases), "kg") if purchases else Estimate(value=0.0, unit="kg")
    findings = tuple(f for p in purchases for f in p.each.findings)
    return CapitalGoods(purchases=tuple(purchases), kg=total, findings=findings)


def _own(asset: Asset, value: float) -> Estimate:
    """Return an asset's own statement; without a range it has the width of a datasheet figure."""
    low, high, name = asset.embodied_low_kg, asset.embodied_high_kg, _id(asset)
    if low is None or high is None or not 0 < low < high:
        sources = {name: value * (default_relative_sigma("E") or 0.0)}
        return Estimate(value=value, unit="kg", grade="E", u_by_source=sources)
    sources = {name: value * math.log(high / low) / (2 * Z_95)}
    return Estimate(value=value, unit="kg", grade="E", u_by_source=sources, bounds=(low, high))


def _without(asset: Asset, source: str, piece: Piece) -> Finding:
    used = "it stays unknown" if piece.kg.value is None else f"{piece.how} is used"
    return Finding(
        code="CL493",
        severity="warning",
        message=f"source {source} has no figure of {asset.hardware} (asset {asset.asset_id}): {used}",
        mend="choose another source, or import its figure",
        subject=asset.asset_id,
    )


def _id(asset: Asset) -> str:
    return f"asset:{asset.asset_id}"
