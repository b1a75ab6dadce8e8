"""Suspicious sites and meters, and names of sites that nobody declared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from carbonlens.domain.finding import Finding
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.site import Site

LEAST_PUE: Final = 1.0
"""Facility energy holds the IT energy (ISO/IEC 30134-2)."""

MOST_PUE: Final = 3.0
"""A facility that uses twice its IT energy for the rest is rare enough to look at."""

MOST_WUE_L_PER_KWH: Final = 10.0
"""Evaporating a litre takes about 0.68 kWh of heat: some 1.5 L a kWh where all cooling is by
evaporation, and a few more for blow-down and poor water; ten is an error of the unit."""


def check(inventory: Inventory) -> Iterator[Finding]:
    """Yield what is suspicious about sites (CL368) and what names no site (CL365)."""
    for site in inventory.sites:
        yield from _figures(site)
    known = {s.site_id for s in inventory.sites}
    named = (
        *(("meters.toml", "meter", m.meter_id, m.site) for m in inventory.meters),
        *(("assets.toml", "asset", a.asset_id, a.site) for a in inventory.assets),
        *(("tariffs.toml", "tariff", t.tariff_id, t.site) for t in inventory.tariffs),
        *(("deliveries.toml", "delivery of", d.team, d.site) for d in inventory.deliveries),
        *(("services.toml", "service", s.service_id, s.site) for s in inventory.services),
    )
    for file, what, name, place in named:
        if place is not None and place not in known:
            yield Finding(
                code="CL365",
                severity="error",
                message=f"{what} {name} is at {place!r}, a site that sites.toml does not have",
                file=file,
                subject=name,
                mend="declare the site, or write its id as it stands there",
            )


def _figures(site: Site) -> Iterator[Finding]:
    pue, wue, overhead = site.pue, site.wue_l_per_kwh, site.host_overhead
    if pue is not None and pue < LEAST_PUE:
        yield _found(site, "error", f"PUE {pue:g} is below 1, which no facility can reach")
    elif pue is not None and pue > MOST_PUE:
        yield _found(site, "warning", f"PUE {pue:g} is above {MOST_PUE:g}")
    if wue is not None and wue > MOST_WUE_L_PER_KWH:
        yield _found(site, "warning", f"WUE {wue:g} L/kWh is above {MOST_WUE_L_PER_KWH:g}")
    if overhead is not None and overhead < 1:
        yield _found(site, "error", f"host_overhead {overhead:g} is below 1: a host holds its devices")


def _found(site: Site, severity: str, message: str) -> Finding:
    return Finding(
        code="CL368",
        severity="error" if severity == "error" else "warning",
        message=f"{site.site_id}: {message}",
        file="sites.toml",
        subject=site.site_id,
        mend="check the figure and its unit with its source",
    )
