"""Use case: load the factors and prices a user states, and fill in those of a place he names."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import msgspec

from carbonlens.accounting.factor_choice import (
    DEFAULT_PUE_U_RELATIVE,
    SPAN_WORDS,
    Basis,
    Choice,
    as_factor,
    relative_sigma,
)
from carbonlens.accounting.places import Place
from carbonlens.app.places import find_place, grid_factor, site_figure
from carbonlens.domain.factor import Factor, NamedPlace, Vector
from carbonlens.domain.factor_row import FactorRow
from carbonlens.domain.finding import Finding
from carbonlens.errors import SelectionError
from carbonlens.factors.checks import far_from
from carbonlens.factors.store import FactorSet, open_factors
from carbonlens.inventory import assumptions

FILLED_IN: Final = "CL352"
"""Code of the Finding that names a figure that was filled in, with its source."""


class _Filling(msgspec.Struct, frozen=True, kw_only=True):
    """What is filled in.

    Attributes:
        fields: Of the vector.
        notes: Each figure with its source, address and licence.
        findings: What a reader must know about them.
    """

    fields: dict[str, Any] = {}  # a frozen record's default is never mutated
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


def load_assumptions(path: Path) -> Vector:
    """Read an assumptions file; what it leaves to a named place is filled in.

    Raises:
        InputFileError: If it cannot be read.
        ConfigError: If it is malformed or a value is impossible.
        SelectionError: If it names no known place, or contradicts itself about it.
    """
    return filled(assumptions.load(path))


def filled(vector: Vector) -> Vector:
    """Return a vector with location factor and PUE of the place it names.

    Only what the vector does not state is filled in, and only from rows of the factor
    tables; each is named with its source, in ``notes`` and in a Finding (CL352). Without a
    named place nothing is filled in.

    Raises:
        SelectionError: If the named place is unknown, or contradicts itself.
    """
    named = vector.named
    if named is None:
        return vector
    factors = open_factors()
    place = _place(named)
    located = _location(vector.location, named, place, factors)
    sited = _pue(place, named.period, factors) if vector.pue is None else _Filling()
    findings = (*factors.findings, *place.findings, *located.findings, *sited.findings)
    doubts = tuple(f"{f.message}." for f in findings if f.severity != "info")
    return msgspec.structs.replace(
        vector,
        **located.fields,
        **sited.fields,
        place=vector.place or place.name,
        notes=(*vector.notes, f"Place: {place.how}.", *located.notes, *sited.notes, *doubts),
        named=None,
        findings=(*vector.findings, *findings),
    )


def mixed_spans(vectors: Iterable[Vector]) -> tuple[Finding, ...]:
    """Return the warning that location factors of one comparison do not count the same (CL359).

    Args:
        vectors: Those of serving and of effort.
    """
    factors = [v.location for v in vectors if v.location is not None]
    spans = {span: f.zone for f in factors for span in SPAN_WORDS if span in f.basis}
    if len(spans) < 2:
        return ()
    named = " and ".join(f"{span} of {zone}" for span, zone in sorted(spans.items()))
    return (
        Finding(
            code="CL359",
            severity="warning",
            message=f"the location factors of this comparison do not count the same: {named}",
            mend="name one span for all places, for example span = 'life_cycle'",
        ),
    )


def _place(named: NamedPlace) -> Place:
    written = named.cloud or named.zone
    if written is None:
        raise SelectionError("no place is named", where="place", mend="name a zone or a cloud region")
    place = find_place(written, region=named.region, country=named.country)
    if named.cloud is not None and place.cloud is None:
        raise SelectionError(
            f"{written!r} is no cloud region but {place.name}",
            where="place.cloud",
            mend="name it as place.zone, or name a region such as aws:eu-west-3",
        )
    return place


def _pue(place: Place, when: str, factors: FactorSet) -> _Filling:
    """Return what is filled in of a PUE; nothing outside a cloud, where nobody knows the site."""
    choice = site_figure("pue", place, when, factors)
    if choice is None or choice.row is None:
        return _Filling(findings=() if choice is None else choice.findings)
    row = choice.row
    fields = {
        "pue": float(row.value),
        "pue_source": f"{row.source}, {row.address}",
        "pue_u_relative": relative_sigma(row, DEFAULT_PUE_U_RELATIVE),
    }
    return _filling("PUE", fields, row, choice)


def _location(stated: Factor | None, named: NamedPlace, place: Place, factors: FactorSet) -> _Filling:
    """Return the location factor where none is stated; else whether the stated one is far off."""
    if stated is not None:
        return _Filling(findings=_far(stated, place, named.period, factors))
    choice = grid_factor(place, named.period, factors, Basis(span=named.span, averaging=named.averaging))
    if choice.row is None:
        return _Filling(findings=choice.findings)
    return _filling("location factor", {"location": as_factor(choice.row)}, choice.row, choice)


def _far(stated: Factor, place: Place, when: str, factors: FactorSet) -> tuple[Finding, ...]:
    """Say that a stated factor is far from what the tables have of the place that is named."""
    peers = next((rows for s in place.chain if (rows := factors.find("grid", s))), ())
    row = FactorRow(
        factor_id=stated.factor_id,
        kind="grid",
        subject=stated.zone,
        period=when,
        value=Decimal(str(stated.value_kg_per_kwh)),
        source=stated.source,
        address="",
        licence="",
        vintage=stated.period,
    )
    far = far_from([row], peers)
    return () if far is None else (far,)


def _filling(what: str, fields: dict[str, Any], row: FactorRow, choice: Choice) -> _Filling:
    unit = "" if row.unit == "1" else f" {row.unit}"
    said = f"{what} filled in: {row.value:f}{unit} of {row.subject} ({choice.how}); {row.source}"
    told = Finding(code=FILLED_IN, severity="info", message=said, subject=row.factor_id)
    note = f"{said}, {row.address} ({row.licence})."
    return _Filling(fields=fields, notes=(note[0].upper() + note[1:],), findings=(told, *choice.findings))
