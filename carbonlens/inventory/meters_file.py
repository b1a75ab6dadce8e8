"""``meters.toml``: meters of the sites; their counts are in ``readings*.csv``."""

from __future__ import annotations

from typing import Final

from carbonlens.domain.site import Meter
from carbonlens.inventory.records import Kind
from carbonlens.inventory.values import a_share

KIND: Final = Kind(
    name="meters",
    table="meter",
    type=Meter,
    id_field="meter_id",
    rules={"accuracy_class": a_share},
)
"""How a meter stands in its file."""
