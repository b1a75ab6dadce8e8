"""Site: a place where work runs, as the inventory declares it; Meter: what measures it."""

from __future__ import annotations

from typing import Literal

import msgspec

from carbonlens.domain.units import Boundary

SiteKind = Literal["own", "cloud", "colocation", "customer"]
Control = Literal["operational", "none"]


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """One site; the scope of its emissions follows from what kind it is.

    Attributes:
        site_id: Name that runs, meters and bills use.
        kind: ``own`` is scope 2, ``cloud`` scope 3 category 1, ``customer`` (sold devices)
            category 11, ``colocation`` by ``control``.
        control: Of a colocation: ``operational`` is scope 2, ``none`` scope 3 category 8.
        entity: Legal entity that buys the electricity; certificates are an entity's.
        zone: Grid zone; ``None`` when not stated.
        market: Market in which certificates are valid; ``None`` when not stated.
        provider, region: Of a cloud site.
        pue: Facility energy per IT energy; ``None`` when unknown.
        pue_source: Where it comes from.
        pue_u_relative: One relative sigma of it; ``None`` when nobody states one.
        wue_l_per_kwh: Litres at the site per kWh of IT energy.
        wue_source: Where it comes from.
        host_overhead: IT energy per device energy (power supply, fans, board).
        host_overhead_source: Where it comes from.
        host_overhead_u_relative: One relative sigma of it.
    """

    site_id: str
    kind: SiteKind
    name: str = ""
    control: Control | None = None
    entity: str | None = None
    zone: str | None = None
    market: str | None = None
    provider: str | None = None
    region: str | None = None
    pue: float | None = None
    pue_source: str | None = None
    pue_u_relative: float | None = None
    wue_l_per_kwh: float | None = None
    wue_source: str | None = None
    host_overhead: float | None = None
    host_overhead_source: str | None = None
    host_overhead_u_relative: float | None = None


class Meter(msgspec.Struct, frozen=True, kw_only=True):
    """A meter of a site.

    Attributes:
        meter_id: As its readings name it.
        site: Site it belongs to.
        boundary: What it feeds.
        covers: ``site`` if all of the site's energy passes it; ``ai`` if it feeds the
            recorded AI workloads alone; ``part`` otherwise.
        accuracy_class: Relative limit of error, for example 0.01.
    """

    meter_id: str
    site: str
    boundary: Boundary
    covers: Literal["site", "ai", "part"] = "part"
    accuracy_class: float | None = None
