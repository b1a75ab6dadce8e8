"""Rates: emission factors and prices as frames that queries join by place and time.

A rate is an exact decimal per kWh with the name of its error source. Its keys
are any columns of the parts or of the calendar: ``zone`` and ``hour_utc`` for
hourly factors, ``zone`` and ``month_utc`` for published ones, ``site`` for tariffs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from carbonlens.domain.factor import Factor, Price
from carbonlens.errors import ConfigError, RecordError
from carbonlens.ledger import parquet

if TYPE_CHECKING:
    import narwhals as nw

    from carbonlens.ledger.frames import View

Name = Literal["emissions", "cost"]

RATE_TYPE: Final = "DECIMAL(13,8)"
"""Kg or money per kWh: with ``DECIMAL(24,6)`` joules its product is exact in DuckDB and in Spark."""

COLUMNS: Final[Mapping[str, str]] = {
    "rate": RATE_TYPE,
    "source_id": "VARCHAR",
    "u_relative": "DOUBLE",
    "currency": "VARCHAR",
}
"""Columns beside the keys, name to DuckDB type; ``currency`` of prices only."""

KEYS: Final[Mapping[str, str]] = {
    "zone": "VARCHAR",
    "site": "VARCHAR",
    "hour_utc": "BIGINT",
    "month_utc": "INTEGER",
    "date": "INTEGER",
    "month": "INTEGER",
    "fiscal_quarter": "VARCHAR",
    "fiscal_year": "INTEGER",
}
"""Columns a rate may be chosen by, name to DuckDB type."""

_PLACES: Final = Decimal("0.00000001")
_LARGEST: Final = Decimal(10) ** 5
_LENGTH_OF_YEAR: Final = 4


@dataclass(frozen=True)
class Rates:
    """One set of rates: of one method and basis, or of one kind of price.

    Attributes:
        name: What energy times the rate gives.
        frame: The keys and ``COLUMNS``; each key at most once.
        keys: Columns by which a part finds its rate.
    """

    name: Name
    frame: nw.LazyFrame[Any]
    keys: tuple[str, ...]


def load(view: View, name: Name, rows: Iterable[Mapping[str, object]]) -> Rates:
    """Load rates into a view.

    Args:
        view: The view whose parts they are for.
        name: What they are.
        rows: Keys, ``rate``, ``source_id`` and, where stated, ``u_relative`` and ``currency``.

    Raises:
        ConfigError: If a row has other columns, two have the same key, or a
            rate is none or does not fit its column.
    """
    given = [dict(row) for row in rows]
    keys = tuple(k for k in KEYS if any(k in row for row in given))
    names = {**{k: KEYS[k] for k in keys}, **COLUMNS}
    for row in given:
        row["rate"] = _exact(row)
        if set(row) - set(names) or any(row.get(k) is None for k in keys):
            raise _bad_row(name, f"{row} does not have the columns {', '.join(names)}")
    frame = view.table(names, given, f"rates_{name}")
    return checked(view, Rates(name=name, frame=frame, keys=keys))


def load_file(view: View, name: Name, file: Path) -> Rates:
    """Load rates from a Parquet file with keys of ``KEYS`` and the columns ``COLUMNS``.

    Raises:
        ConfigError: If columns are missing, or two rows have the same key.
        RecordError: If the file cannot be read.
    """
    try:
        found = parquet.columns_of(view.connection, file)
    except parquet.UnreadableParquetError as error:
        raise RecordError(str(error), where=str(file), mend="restore the file from a copy") from error
    keys = tuple(k for k in KEYS if k in found)
    missing = [c for c in COLUMNS if c not in found and (c != "currency" or name == "cost")]
    if missing:
        raise ConfigError(f"no column {missing[0]!r}", where=str(file), mend=f"give {', '.join(COLUMNS)}")
    types = {**{k: KEYS[k] for k in keys}, **{c: k for c, k in COLUMNS.items() if c in found}}
    names = ", ".join(f"{c}::{kind} AS {c}" for c, kind in types.items())
    scan = f"SELECT {names} FROM read_parquet({parquet.quoted(file)})"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
    return checked(view, Rates(name=name, frame=view.frame(scan), keys=keys))


def checked(view: View, rates: Rates) -> Rates:
    """Return the rates if each key stands there once; a second would count energy twice.

    Raises:
        ConfigError: If it does not, or an error has no source.
    """
    import narwhals as nw

    count = nw.len().alias("times")
    # Without a key the rate holds everywhere and always.
    counted = rates.frame.group_by(*rates.keys).agg(count) if rates.keys else rates.frame.select(count)
    order = rates.keys or ("times",)
    _refuse_unnamed(view, rates)
    twice = view.rows(counted.filter(nw.col("times") > 1).sort(*order).head(1))
    if twice:
        keys = ", ".join(f"{k}={twice[0][k]}" for k in rates.keys) or "all places and times"
        raise _bad_row(rates.name, f"{twice[0]['times']} rates for {keys}")
    return rates


def _refuse_unnamed(view: View, rates: Rates) -> None:
    """Refuse a rate with an error but no name for it: nothing could sum it with its like.

    Raises:
        ConfigError: If there is one.
    """
    import narwhals as nw

    wide = rates.frame.filter(nw.col("u_relative") > 0, nw.col("source_id").is_null())
    if view.rows(wide.select("rate").head(1)):
        raise ConfigError(
            "a rate has u_relative but no source_id: its error would be left out",
            where=rates.name,
            mend="name the source of the rate",
        )


def factor_rows(factors: Iterable[Factor]) -> Iterator[dict[str, object]]:
    """Yield published factors as rates by zone and UTC month.

    Raises:
        ConfigError: If a factor's period is neither a year nor a month.
    """
    for factor in factors:
        for month in months(factor.period):
            yield {
                "zone": factor.zone,
                "month_utc": month,
                "rate": Decimal(repr(factor.value_kg_per_kwh)),
                "source_id": factor.factor_id,
                "u_relative": factor.u_relative,
            }


def price_rows(prices: Iterable[Price]) -> Iterator[dict[str, object]]:
    """Yield prices of energy as rates by UTC month, the same at every place.

    Raises:
        ConfigError: If a price is not per kWh, or its period neither a year nor a month.
    """
    for price in prices:
        if price.per != "kWh":
            raise ConfigError(
                f"price {price.price_id} is per {price.per}",
                where=price.price_id,
                mend="give a price per kWh",
            )
        for month in months(price.period):
            yield {
                "month_utc": month,
                "rate": price.amount,
                "source_id": price.price_id,
                "u_relative": price.u_relative,
                "currency": price.currency,
            }


def months(period: str) -> list[int]:
    """Return the months of a year ``2024`` or a month ``2024-03`` as numbers, ``202403``.

    Raises:
        ConfigError: If the text is neither.
    """
    year, _, month = period.partition("-")
    if year.isdigit() and len(year) == _LENGTH_OF_YEAR:
        if not month and "-" not in period:
            return [int(year) * 100 + m for m in range(1, 13)]
        if month.isdigit() and 1 <= int(month) <= 12:
            return [int(year) * 100 + int(month)]
    raise ConfigError(f"{period!r} is no year or month", where=period, mend="write 2024 or 2024-03")


def _exact(row: Mapping[str, object]) -> Decimal:
    rate = row.get("rate")
    exact = Decimal(rate) if isinstance(rate, Decimal | int) else None
    if exact is None or not abs(exact) < _LARGEST:
        raise _bad_row("rates", f"{rate!r} is no decimal below {_LARGEST}")
    return exact.quantize(_PLACES)


def _bad_row(name: str, what: str) -> ConfigError:
    return ConfigError(what, where=name, mend="give each place and time one rate per kWh")
