"""Assumptions: the factors and prices of a comparison, as a user states them.

A section left out means that the part is unknown, and the figures that need it are
unknown too. The one exception is asked for: a ``[place]`` that names a zone or a cloud
region, and a year, takes from the factor tables what the file does not state.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import msgspec

from carbonlens.domain.factor import Embodied, Factor, Method, NamedPlace, Price, PriceUnit, Vector
from carbonlens.errors import ConfigError
from carbonlens.inventory import toml_file


class _Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str | None = None
    zone: str | None = None
    cloud: str | None = None
    country: str | None = None
    region: str | None = None
    year: int | None = None
    period: str | None = None
    span: Literal["direct", "life_cycle"] | None = None
    averaging: Literal["average", "marginal"] | None = None


class _Grid(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    zone: str
    period: str
    value_kg_per_kwh: float
    source: str
    u_relative: float = 0.0
    basis: tuple[str, ...] = ()
    example: bool = False


class _Grids(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    location: _Grid | None = None
    market: _Grid | None = None


class _Facility(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pue: float | None = None
    source: str | None = None
    u_relative: float = 0.0
    host_overhead: float | None = None
    host_overhead_source: str | None = None
    host_overhead_u_relative: float | None = None


class _Priced(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str
    currency: str
    period: str
    source: str
    u_relative: float = 0.0
    example: bool = False


class _Electricity(_Priced, frozen=True, kw_only=True):
    amount_per_kwh: Decimal


class _Machine(_Priced, frozen=True, kw_only=True):
    amount_per_core_hour: Decimal


class _Embodied(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    value_kg_per_core_hour: float
    source: str
    u_relative: float = 0.0
    example: bool = False


class _Assumptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    place: _Place | None = None
    grid: _Grids = _Grids()
    facility: _Facility | None = None
    electricity: _Electricity | None = None
    machine: _Machine | None = None
    embodied: _Embodied | None = None
    notes: tuple[str, ...] = ()


def load(path: Path) -> Vector:
    """Read an assumptions file.

    Raises:
        InputFileError: If it cannot be read.
        ConfigError: If it is malformed or a value is impossible.
    """
    return from_tables(toml_file.read(path), where=str(path))


def from_tables(tables: Mapping[str, Any], *, where: str) -> Vector:
    """Turn parsed tables into the vector of a comparison.

    Raises:
        ConfigError: If a key is malformed, a value impossible, or two prices
            have different currencies.
    """
    stated = toml_file.convert(tables, _Assumptions, where=where)
    facility = stated.facility or _Facility()
    _check_facility(stated.facility, where)
    vector = Vector(
        place=stated.place.name if stated.place else None,
        location=_factor(stated.grid.location, "location", where),
        market=_factor(stated.grid.market, "market", where),
        pue=facility.pue,
        pue_source=facility.source,
        pue_u_relative=facility.u_relative,
        host_overhead=facility.host_overhead,
        host_overhead_source=facility.host_overhead_source,
        host_overhead_u_relative=facility.host_overhead_u_relative,
        electricity=_electricity(stated.electricity, where),
        machine=_machine(stated.machine, where),
        embodied=_embodied(stated.embodied, where),
        notes=stated.notes,
        named=_named(stated.place, where),
    )
    _one_currency(vector, where)
    return vector


def to_tables(vector: Vector) -> dict[str, Any]:
    """Return a vector as tables that ``from_tables`` reads back."""
    tables: dict[str, Any] = {}
    place = {} if vector.place is None else {"name": vector.place}
    if vector.named is not None:
        place |= {k: v for k, v in msgspec.structs.asdict(vector.named).items() if v is not None}
    if place:
        tables["place"] = place
    grids = {"location": vector.location, "market": vector.market}
    stated = {name: _grid_table(factor) for name, factor in grids.items() if factor is not None}
    if stated:
        tables["grid"] = stated
    facility = _facility_table(vector)
    if facility:
        tables["facility"] = facility
    if vector.electricity is not None:
        tables["electricity"] = _price_table(vector.electricity, "amount_per_kwh")
    if vector.machine is not None:
        tables["machine"] = _price_table(vector.machine, "amount_per_core_hour")
    if vector.embodied is not None:
        tables["embodied"] = _embodied_table(vector.embodied)
    if vector.notes:
        tables["notes"] = list(vector.notes)
    return tables


def _named(place: _Place | None, where: str) -> NamedPlace | None:
    """Return the place whose factors are to be filled in; ``None`` where no zone or region is named."""
    if place is None or (place.name is not None and set(msgspec.structs.astuple(place)[1:]) == {None}):
        return None
    if (place.zone is None) == (place.cloud is None):
        what = "names neither a zone nor a cloud region" if place.zone is None else "names two places"
        raise ConfigError(
            f"place {what}",
            where=where,
            mend='state place.zone = "FR" or place.cloud = "aws:eu-west-3", or place.name alone',
        )
    if (place.year is None) == (place.period is None):
        raise ConfigError(
            "place needs the time of use: one of place.year and place.period",
            where=where,
            mend='state place.year = 2025, or place.period = "2025-03"',
        )
    return NamedPlace(
        zone=place.zone,
        cloud=place.cloud,
        country=place.country,
        region=place.region,
        period=place.period if place.period is not None else str(place.year),
        span=place.span,
        averaging=place.averaging or "average",
    )


def _factor(grid: _Grid | None, method: Method, where: str) -> Factor | None:
    if grid is None:
        return None
    _check(grid.value_kg_per_kwh, f"grid.{method}.value_kg_per_kwh", 0.0, 3.0, where)
    _check(grid.u_relative, f"grid.{method}.u_relative", 0.0, 2.0, where)
    return Factor(
        factor_id=grid.id,
        zone=grid.zone,
        period=grid.period,
        method=method,
        basis=grid.basis,
        value_kg_per_kwh=grid.value_kg_per_kwh,
        u_relative=grid.u_relative,
        source=grid.source,
        example=grid.example,
    )


def _check_facility(facility: _Facility | None, where: str) -> None:
    """Refuse an empty section, a figure without its source and impossible values."""
    if facility is None:
        return
    if facility.pue is None and facility.host_overhead is None:
        raise ConfigError(
            "facility states neither pue nor host_overhead",
            where=where,
            mend="state facility.pue with source, or facility.host_overhead with host_overhead_source",
        )
    for key, value, source_key, source in (
        ("pue", facility.pue, "source", facility.source),
        ("host_overhead", facility.host_overhead, "host_overhead_source", facility.host_overhead_source),
    ):
        if value is None:
            continue
        _check(value, f"facility.{key}", 1.0, 5.0, where)
        if source is None or not source.strip():
            raise ConfigError(
                f"facility.{key} has no source",
                where=where,
                mend=f"state facility.{source_key}: where it is from",
            )
    _check(facility.u_relative, "facility.u_relative", 0.0, 2.0, where)
    _check(facility.host_overhead_u_relative or 0.0, "facility.host_overhead_u_relative", 0.0, 2.0, where)


def _electricity(stated: _Electricity | None, where: str) -> Price | None:
    if stated is None:
        return None
    return _price(stated, stated.amount_per_kwh, "electricity", "kWh", where)


def _machine(stated: _Machine | None, where: str) -> Price | None:
    if stated is None:
        return None
    return _price(stated, stated.amount_per_core_hour, "machine", "core_hour", where)


def _price(stated: _Priced, amount: Decimal, section: str, per: PriceUnit, where: str) -> Price:
    _check(float(amount), f"{section}.amount", 0.0, 1e6, where)
    _check(stated.u_relative, f"{section}.u_relative", 0.0, 2.0, where)
    return Price(
        price_id=stated.id,
        amount=amount,
        currency=stated.currency.upper(),
        per=per,
        period=stated.period,
        u_relative=stated.u_relative,
        source=stated.source,
        example=stated.example,
    )


def _embodied(stated: _Embodied | None, where: str) -> Embodied | None:
    if stated is None:
        return None
    _check(stated.value_kg_per_core_hour, "embodied.value_kg_per_core_hour", 0.0, 10.0, where)
    _check(stated.u_relative, "embodied.u_relative", 0.0, 2.0, where)
    return Embodied(
        factor_id=stated.id,
        value_kg_per_core_hour=stated.value_kg_per_core_hour,
        u_relative=stated.u_relative,
        source=stated.source,
        example=stated.example,
    )


def _check(value: float, key: str, low: float, high: float, where: str) -> None:
    # A comparison that is false for NaN refuses it too.
    if not low <= value <= high:
        raise ConfigError(
            f"{key} is {value}, outside the possible {low:g} to {high:g}",
            where=where,
            mend="check the unit of that value",
        )


def _one_currency(vector: Vector, where: str) -> None:
    found = {p.currency for p in (vector.electricity, vector.machine) if p is not None}
    if len(found) > 1:
        raise ConfigError(
            f"the prices are in {' and '.join(sorted(found))}",
            where=where,
            mend="state both in one currency; rates are not guessed",
        )


def _grid_table(factor: Factor) -> dict[str, Any]:
    return {
        "id": factor.factor_id,
        "zone": factor.zone,
        "period": factor.period,
        "basis": list(factor.basis),
        "value_kg_per_kwh": factor.value_kg_per_kwh,
        "u_relative": factor.u_relative,
        "source": factor.source,
        "example": factor.example,
    }


def _facility_table(vector: Vector) -> dict[str, Any]:
    table: dict[str, Any] = {}
    if vector.pue is not None:
        table |= {
            "pue": vector.pue,
            "u_relative": vector.pue_u_relative,
            "source": vector.pue_source or "not stated",
        }
    if vector.host_overhead is not None:
        table |= {
            "host_overhead": vector.host_overhead,
            "host_overhead_source": vector.host_overhead_source or "not stated",
        }
        if vector.host_overhead_u_relative is not None:
            table["host_overhead_u_relative"] = vector.host_overhead_u_relative
    return table


def _price_table(price: Price, key: str) -> dict[str, Any]:
    return {
        "id": price.price_id,
        key: str(price.amount),
        "currency": price.currency,
        "period": price.period,
        "u_relative": price.u_relative,
        "source": price.source,
        "example": price.example,
    }


def _embodied_table(embodied: Embodied) -> dict[str, Any]:
    return {
        "id": embodied.factor_id,
        "value_kg_per_core_hour": embodied.value_kg_per_core_hour,
        "u_relative": embodied.u_relative,
        "source": embodied.source,
        "example": embodied.example,
    }
