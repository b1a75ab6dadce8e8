"""Certificate: a contractual instrument of the market-based method."""

from __future__ import annotations

from decimal import Decimal
from typing import Final, Literal

import msgspec

InstrumentKind = Literal["certificate", "contract", "supplier"]
"""Energy attribute certificate; contract such as a PPA; supplier or utility rate: the
order of the market-based hierarchy (GHG Protocol Scope 2 Guidance, table 6.3)."""

CRITERIA: Final = (
    *("ghg_rate", "unique_claim", "tracked_and_retired", "vintage_close"),
    *("same_market", "supplier_specific", "direct_transfer", "residual_mix_available"),
)
"""The eight Scope 2 quality criteria (table 7.1), in their order."""


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """One instrument of one entity in one market.

    Attributes:
        certificate_id: Id in its registry, or of the contract.
        kind: Place in the hierarchy.
        entity: Who may claim it.
        market: Where it is valid.
        energy_mwh: What it covers; a supplier's rate may cover all that it delivered (``None``).
        period: Month or year of generation, ``2026`` or ``2026-03``.
        value_kg_per_kwh: Emission rate that it conveys; 0 only where somebody says so.
        u_relative: One relative sigma of it; ``None`` when nobody states one.
        registry: Where it is kept.
        technology: For example ``wind``.
        retired: Date on which it was cancelled or redeemed, ``2026-04-30``.
        criteria: Answers to ``CRITERIA``; an unanswered one counts as not met.
        evidence: Where the answers can be checked.
        hourly_mwh: MWh by UTC hour, where known; sums to ``energy_mwh``.
        source: File or document it was read from.
    """

    certificate_id: str
    kind: InstrumentKind
    entity: str
    market: str
    energy_mwh: Decimal | None
    period: str
    value_kg_per_kwh: Decimal
    u_relative: float | None = None
    registry: str | None = None
    technology: str | None = None
    retired: str | None = None
    criteria: dict[str, bool] = msgspec.field(default_factory=dict)
    evidence: str | None = None
    hourly_mwh: dict[int, Decimal] = msgspec.field(default_factory=dict)
    source: str | None = None

    @property
    def unmet(self) -> tuple[str, ...]:
        """Quality criteria that are answered no, or not at all."""
        return tuple(name for name in CRITERIA if not self.criteria.get(name, False))
