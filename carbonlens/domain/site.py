"""Site: a place where work runs, as the inventory declares it; Meter: what measures it."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from carbonlens.domain.units import Boundary

SiteKind = Literal["own", "cloud", "colocation", "customer"]
Control = Literal["operational", "none"]
SiteFigure = Literal["pue", "wue", "host_overhead"]

SITE_FIGURES: Final[dict[SiteFigure, str]] = {
    "pue": "pue",
    "wue": "wue_l_per_kwh",
    "host_overhead": "host_overhead",
}
"""Figures that a site declares, with the field of each; ``<figure>_valid_from`` is when it holds."""


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
        pue_valid_from, pue_valid_to: Months in which the PUE holds, by their first days; the
            first day without it is ``valid_to``. Always where ``None``; likewise of the others.
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
    pue_valid_from: str | None = None
    pue_valid_to: str | None = None
    wue_valid_from: str | None = None
    wue_valid_to: str | None = None
    host_overhead_valid_from: str | None = None
    host_overhead_valid_to: str | None = None

    def validity(self, figure: SiteFigure) -> tuple[str | None, str | None]:
        """Return the first day of a figure and the first day without it; ``None`` where nobody says."""
        return getattr(self, f"{figure}_valid_from"), getattr(self, f"{figure}_valid_to")

    def figure(self, figure: SiteFigure, month: str | None = None) -> float | None:
        """Return a declared figure; ``None`` where there is none.

        Args:
            figure: Which.
            month: Month of use, in which it must hold; any where ``None``.
        """
        value: float | None = getattr(self, SITE_FIGURES[figure])
        if month is None:
            return value
        start, end = self.validity(figure)
        first = f"{month}-01"
        return value if (start or first) <= first < (end or "9999") else None

    def in_month(self, month: str) -> Site:
        """Return the site with those of its figures alone that hold in a month of use."""
        gone = {f: n for f, n in SITE_FIGURES.items() if self.figure(f) is not None}
        gone = {f: n for f, n in gone.items() if self.figure(f, month) is None}
        return msgspec.structs.replace(self, **dict.fromkeys(gone.values())) if gone else self


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
