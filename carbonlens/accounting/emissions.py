"""Emission factor in use: what a kWh of a place and time, or of a blend, is multiplied with.

Location-based emissions take the grid's factor, market-based ones the entity's blend (GHG
Protocol Scope 2 Guidance, table 6.2 and chapter 7); both are kept and none stands for the other.
"""

from __future__ import annotations

import msgspec

from carbonlens.domain.estimate import Estimate
from carbonlens.domain.factor_row import Span


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """An emission factor in use.

    Attributes:
        factor_id: Factor row, or ``Blend.factor_id``.
        kg_per_kwh: Its value with its errors.
        span: What it counts.
    """

    factor_id: str
    kg_per_kwh: Estimate
    span: Span | None = None
