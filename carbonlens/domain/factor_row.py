"""FactorRow: one dated, sourced and licensed figure of a factor table.

Factor tables hold what turns an activity into an amount: grid intensities, upstream
parts, PUE, WUE, grid water, embodied emissions, host overheads. Each row tells what it
counts, where it stands and under which licence, so that any figure made from it can be
traced and judged. Prices have a record of their own (``PriceRow``).
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final, Literal

import msgspec

from carbonlens.domain.identity import sha256_hex

FactorKind = Literal[
    "grid", "upstream", "transmission", "pue", "wue", "water_source", "embodied", "host_overhead"
]
"""What a row turns into what.

``grid``: kWh used into kg CO2e. ``upstream``: kWh used into the kg of fuel supply (scope 3
category 3). ``transmission``: share of kWh lost on the way. ``pue``: IT energy into facility
energy. ``wue``: IT energy into litres at the site. ``water_source``: facility energy into
litres at the power plants. ``embodied``: one device or server into kg. ``host_overhead``:
device energy into IT energy of the server around it.
"""

Method = Literal["location", "market", "residual"]
Averaging = Literal["average", "marginal"]
Span = Literal["direct", "life_cycle"]
"""``direct`` counts combustion at the plant; ``life_cycle`` its supply and building too."""

Flow = Literal["production", "consumption"]
"""Whether electricity traded with neighbours is left as made, or counted where it is used."""

UNITS: Final[dict[FactorKind, str]] = {
    "grid": "kg/kWh",
    "upstream": "kg/kWh",
    "transmission": "1",
    "pue": "1",
    "wue": "L/kWh",
    "water_source": "L/kWh",
    "embodied": "kg",
    "host_overhead": "1",
}
"""The one unit of each kind: a source's own unit is converted when its row is entered."""


class FactorRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One figure of a factor table.

    Attributes:
        factor_id: Stable id, the name of its error source.
        kind: What it turns into what.
        subject: Grid zone (``FR``, ``US-CAL-CISO``, ``US-CAMX``), cloud region
            (``aws:us-east-1``), provider (``aws``), or device (``nvidia-h100-sxm-80gb``).
        name: The subject in words.
        period: Time of use it holds for: a year ``2024``, a month ``2024-03``, an hour in
            UTC ``2024-03-01T13``; for ``embodied`` the year of the source.
        value: In the kind's unit.
        method, averaging, span, flow: What is counted; ``None`` where the kind has none of
            it or the source does not say.
        low, high: 95 % interval where a source states one.
        u_relative: One relative sigma; ``None`` when nobody states one.
        source: Publication, with its edition.
        address: Where it can be read: an address, or a package with path and version.
        licence: SPDX name, or the words of the source.
        vintage: When the source published it: a date or a year.
        version: Version or commit of the table it was read from.
        note: What else a reader must know.
    """

    factor_id: str
    kind: FactorKind
    subject: str
    name: str = ""
    period: str
    value: Decimal
    method: Method | None = None
    averaging: Averaging | None = None
    span: Span | None = None
    flow: Flow | None = None
    low: Decimal | None = None
    high: Decimal | None = None
    u_relative: float | None = None
    source: str
    address: str
    licence: str
    vintage: str
    version: str = ""
    note: str = ""

    @property
    def unit(self) -> str:
        """Unit of the value."""
        return UNITS[self.kind]

    @property
    def sha256(self) -> str:
        """Hash of the whole row: another figure, source or licence is another hash."""
        return sha256_hex(msgspec.json.encode(self))
