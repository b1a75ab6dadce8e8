"""Demand: the electricity of one entity in one market and period, which instruments may cover.

Only scope 2 electricity is an entity's to cover; a cloud's is the provider's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from carbonlens.accounting.scopes import SCOPE_2, place_of
from carbonlens.domain.estimate import Estimate, add
from carbonlens.domain.finding import Finding
from carbonlens.domain.site import Site


class Rest(msgspec.Struct, frozen=True, kw_only=True):
    """What electricity without an instrument takes, in one market and period.

    Attributes:
        residual: Residual mix; ``None`` where none is published.
        average: Grid average, taken only without a residual mix and then disclosed.
        residual_id, average_id: Ids of the two factors.
    """

    residual: Estimate | None = None
    average: Estimate | None = None
    residual_id: str = "residual_mix"
    average_id: str = "grid_average"


class Period(msgspec.Struct, frozen=True, kw_only=True):
    """A period of consumption.

    Attributes:
        name: As it is printed: ``2026Q3``.
        months: ``2026-07`` and so on, in order.
        is_open: Whether instruments may still be added: its blends are then provisional.
    """

    name: str
    months: tuple[str, ...]
    is_open: bool = False


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """Facility electricity of one entity in one market and period.

    Attributes:
        kwh: Facility energy.
        input_ids: Figures that ``kwh`` is the sum of.
    """

    entity: str
    market: str
    period: Period
    kwh: Estimate
    rest: Rest = Rest()
    input_ids: tuple[str, ...] = ()


def demands_of(
    sites: Iterable[Site],
    energy: Mapping[str, Estimate],
    *,
    period: Period,
    rests: Mapping[str, Rest],
    prefix: str = "site",
) -> tuple[tuple[Demand, ...], tuple[Finding, ...]]:
    """Return the demands of the sites whose electricity is scope 2.

    Args:
        sites: Of the inventory; those of other scopes are left to their own categories.
        energy: Facility kWh by site; a lower bound among them makes the demand one.
        period: Of all of it.
        rests: Residual mix and grid average by market.
        prefix: Of the figures of the sites' energies, ``<prefix>.<site>.facility_kwh``.
    """
    grouped: dict[tuple[str, str], list[Site]] = {}
    findings = []
    for site in sites:
        if site.site_id not in energy or place_of(site)[0] != SCOPE_2:
            continue
        if site.entity is None or site.market is None:
            findings.append(_no_market(site))
        else:
            grouped.setdefault((site.entity, site.market), []).append(site)
    demands = tuple(
        Demand(
            entity=entity,
            market=market,
            period=period,
            kwh=add((energy[s.site_id] for s in held), "kWh"),
            rest=rests.get(market, Rest()),
            input_ids=tuple(f"{prefix}.{s.site_id}.facility_kwh" for s in held),
        )
        for (entity, market), held in sorted(grouped.items())
    )
    return demands, tuple(findings)


def _no_market(site: Site) -> Finding:
    missing = "entity" if site.entity is None else "market"
    return Finding(
        code="CL395",
        severity="warning",
        message=f"site {site.site_id} states no {missing}: its market-based emissions are unknown",
        mend="state the entity that buys its electricity and the market in which certificates are valid",
        subject=site.site_id,
    )
