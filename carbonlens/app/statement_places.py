"""Use case part: the place of a site, as the inventory and the runs of a period name it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from carbonlens.accounting.places import Place
from carbonlens.app.places import find_place
from carbonlens.domain.finding import Finding
from carbonlens.domain.site import Site
from carbonlens.errors import SelectionError

NOWHERE: Final = "no_place"
"""Stands for the site of runs that state neither site nor zone."""

_DECLARE: Final = "declare it in the inventory's sites.toml, and name it as site of the runs"


def declared_place(name: str, site: Site | None, zones: Sequence[str]) -> tuple[Place | None, list[Finding]]:
    """Return the place of a site: as the inventory declares it, else as its runs say.

    Args:
        name: Site, or the stand-in of runs without one.
        site: As the inventory declares it.
        zones: As its runs state them.
    """
    written, mend = None, _DECLARE
    if site is not None:
        mend = f"correct zone, or provider and region, of {name} in sites.toml"
        written = f"{site.provider}:{site.region}" if site.provider and site.region else site.zone
    if written is None and len(zones) > 1:
        return None, [_found("CL481", f"runs at {name} state several zones ({', '.join(zones)})", name)]
    if written is None and not zones:
        what = "runs state neither site nor zone" if name == NOWHERE else f"{name} has no zone"
        return None, [_found("CL481", f"{what}: emissions there are unknown", name)]
    try:
        place = find_place(written or zones[0])
    except SelectionError as error:
        said = f"{name}: {error.what} ({error.mend}): emissions are unknown"
        return None, [_found("CL481", said, name, mend)]
    found = [f for z in zones for f in _disagreement(name, place, z)]
    if site is not None and site.zone and written != site.zone:
        found += _declared_twice(name, place, site.zone)
    return place, found


def _declared_twice(name: str, place: Place, zone: str) -> list[Finding]:
    """Return the Finding of a site whose zone is not where its cloud region lies."""
    mend = f"correct zone, or provider and region, of {name} in sites.toml"
    try:
        other = find_place(zone)
    except SelectionError:
        return [_found("CL481", f"{name} is declared in zone {zone!r}, which is none", name, mend)]
    if other.zone in place.chain or place.zone in other.chain:
        return []
    text = f"{name} is declared in zone {zone} and in {place.cloud}, which lies in {place.zone} and is used"
    return [_found("CL481", text, name, mend)]


def _disagreement(name: str, place: Place, zone: str) -> list[Finding]:
    try:
        other = find_place(zone)
    except SelectionError:
        return [_found("CL481", f"runs at {name} state zone {zone!r}, which is none", name)]
    if other.zone in place.chain or place.zone in other.chain:
        return []
    text = f"runs at {name} state zone {zone}, and the inventory puts it in {place.zone}, which is used"
    return [_found("CL481", text, name)]


def undeclared(name: str) -> Finding:
    """Return the Finding of a site that the inventory does not declare."""
    return _found("CL480", f"{name} is no site of the inventory: scope, PUE and market are unknown", name)


def misplaced(sites: Sequence[Site]) -> tuple[Finding, ...]:
    """Return what is wrong with the places that an inventory itself declares.

    A site that declares none may take that of its runs, and is not told.

    Args:
        sites: As declared.
    """
    declared = [s for s in sites if s.zone or (s.provider and s.region)]
    return tuple(f for s in declared for f in declared_place(s.site_id, s, ())[1])


def _found(code: str, message: str, subject: str, mend: str = _DECLARE) -> Finding:
    return Finding(code=code, severity="warning", message=message, subject=subject, mend=mend)
