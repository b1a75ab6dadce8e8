"""Rates by the hour from arrays: many places and hours without a Python object for each.

A place is a pair of site and zone as the parts have them, empty where a part states none.
Few distinct values are pointed at by many hours, so only the pointers are arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import msgspec

from carbonlens.ledger.rates import COLUMNS, Name, Rates

if TYPE_CHECKING:
    import narwhals as nw
    import numpy as np

    from carbonlens.ledger.frames import View

KEYS: Final = ("site", "zone", "hour_utc")
NO_RATE: Final = -1

_PLACES: Final = Decimal("0.00000001")


class HourRate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One value that hours may have; fields as ``rates.COLUMNS``."""

    rate: Decimal
    source_id: str
    u_relative: float | None = None
    currency: str | None = None


class HourRates(msgspec.Struct, frozen=True, kw_only=True):
    """Rates of several places over the same hours.

    Attributes:
        places: Site and zone.
        first_hour: UTC hour of the first column of ``index``.
        values: Distinct values.
        index: Place by hour: number of the value, or ``NO_RATE``.
    """

    places: Sequence[tuple[str, str]]
    first_hour: int
    values: Sequence[HourRate]
    index: np.ndarray[Any, Any]


def load(view: View, name: Name, given: HourRates) -> Rates:
    """Load rates into a view.

    Args:
        view: The view whose parts they are for.
        name: What they are.
        given: Each place once.
    """
    import numpy as np

    hours = np.arange(given.first_hour, given.first_hour + given.index.shape[1], dtype=np.int64)
    # Found by name in the query below.
    held = {
        "place": np.repeat(np.arange(len(given.places), dtype=np.int32), len(hours)),
        "hour_utc": np.tile(hours, len(given.places)),
        "value": given.index.astype(np.int32).ravel(),
    }
    places = [{"place": n, "site": site, "zone": zone} for n, (site, zone) in enumerate(given.places)]
    view.table({"place": "INTEGER", "site": "VARCHAR", "zone": "VARCHAR"}, places, f"places_{name}")
    values = [
        {
            "value": n,
            "rate": v.rate.quantize(_PLACES),
            "source_id": v.source_id,
            "u_relative": v.u_relative,
            "currency": v.currency,
        }
        for n, v in enumerate(given.values)
    ]
    view.table({"value": "INTEGER", **COLUMNS}, values, f"values_{name}")
    view.connection.register("hours_given", held)
    columns = ", ".join(COLUMNS)
    query = (
        f"CREATE OR REPLACE TEMP TABLE rates_{name} AS SELECT site, zone, hour_utc, {columns} "  # noqa: S608  # our own names: SQL takes no parameter there
        f"FROM hours_given JOIN places_{name} USING (place) JOIN values_{name} USING (value)"
    )
    view.connection.execute(query)
    view.connection.unregister("hours_given")
    return Rates(name=name, frame=view.frame(f"SELECT * FROM rates_{name}"), keys=KEYS)  # noqa: S608  # our own names: SQL takes no parameter there


def placed(parts: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Return parts whose site and zone are texts, empty where none is stated, so that they join."""
    import narwhals as nw

    return parts.with_columns(site=nw.col("site").fill_null(""), zone=nw.col("zone").fill_null(""))
