"""Use case: from a place as written to its zone, its grid factor and its site's figures.

Puts the tables of places and factors together with the choice among them, for all that
needs a factor by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from carbonlens.accounting.factor_choice import LOCATION, Basis, Choice, choose
from carbonlens.accounting.places import Place, resolve
from carbonlens.domain.factor_row import FactorKind, FactorRow
from carbonlens.factors.places_file import bundled_places
from carbonlens.factors.store import FactorSet


def find_place(written: str, *, region: str | None = None, country: str | None = None) -> Place:
    """Return the place that a text means.

    Args:
        written: Country, grid zone, state or cloud region.
        region: Part of the country ``written``.
        country: Country it is said to lie in.

    Raises:
        SelectionError: If the text means no place, or more than one, or one in another
            country than the stated.
    """
    return resolve(written, bundled_places(), region=region, country=country)


def grid_factor(place: Place, when: str, factors: FactorSet, basis: Basis = LOCATION) -> Choice:
    """Return the grid factor of a place at a time of use.

    A cloud region whose provider publishes its grid's intensity takes that figure; else the
    figure of its zone, else of the zone around it.

    Args:
        place: Where the electricity is used.
        when: Year, month or hour in UTC.
        factors: The rows in force.
        basis: What the factor counts.

    Raises:
        SelectionError: If ``when`` is no time of use.
    """
    own_region = (place.cloud,) if place.cloud and factors.find("grid", place.cloud) else ()
    subjects = (*own_region, *place.chain)
    return choose(_rows(factors, "grid", subjects), "grid", subjects, when, basis, factors.own)


def site_figure(kind: Literal["pue", "wue"], place: Place, when: str, factors: FactorSet) -> Choice | None:
    """Return what the provider publishes of a cloud region, else of all its data centers.

    Args:
        kind: Which figure.
        place: Where the work runs.
        when: Year, month or hour in UTC.
        factors: The rows in force.

    Returns:
        The choice; ``None`` where the place is no cloud region: nobody knows the site.

    Raises:
        SelectionError: If ``when`` is no time of use.
    """
    if place.cloud is None or place.provider is None:
        return None
    subjects = (place.cloud, place.provider)
    return choose(_rows(factors, kind, subjects), kind, subjects, when, own=factors.own)


def _rows(factors: FactorSet, kind: FactorKind, subjects: Sequence[str]) -> list[FactorRow]:
    return [row for subject in subjects for row in factors.find(kind, subject)]
