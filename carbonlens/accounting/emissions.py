"""Emissions of one site: its facility energy by both methods, under its scope.

Location-based is energy times the grid's average factor, market-based energy times the
entity's blend (GHG Protocol Scope 2 Guidance, 6.1 and chapter 7); both are kept and none
stands for the other.
"""

from __future__ import annotations

import msgspec

from carbonlens.accounting import formulas
from carbonlens.accounting.boundaries import Energies
from carbonlens.accounting.propagation import through
from carbonlens.accounting.scope_totals import Line
from carbonlens.accounting.scopes import place_of
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.factor_row import Span
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding
from carbonlens.domain.site import Site


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """An emission factor in use.

    Attributes:
        factor_id: Factor row, or ``Blend.factor_id``.
        kg_per_kwh: Its value with its errors.
        span: What it counts.
    """

    factor_id: str
    kg_per_kwh: Estimate
    span: Span | None = None


class SiteEmissions(msgspec.Struct, frozen=True, kw_only=True):
    """Emissions of one site in one period.

    Attributes:
        prefix: Of the ids of its figures, and of its energies'.
        line: Both figures under the site's scope and category.
        location, market: The factors used; ``None`` where there was none.
    """

    prefix: str
    energies: Energies
    line: Line
    location: Rate | None
    market: Rate | None
    findings: tuple[Finding, ...] = ()

    def figures(self) -> tuple[Figure, ...]:
        """Return energies and both emissions as figures: ``<prefix>.location_kg``, ``<prefix>.market_kg``."""
        lines = (
            ("location", self.line.location_kg, self.location),
            ("market", self.line.market_kg, self.market),
        )
        emissions = tuple(
            Figure(
                figure_id=f"{self.prefix}.{method}_kg",
                estimate=kg,
                label=f"{method}-based emissions of {self.line.source_id}, {self.line.place.label}",
                formula="kg = facility_kwh * factor",
                inputs=(f"{self.prefix}.facility_kwh", *([rate.factor_id] if rate else [])),
            )
            for method, kg, rate in lines
        )
        return *self.energies.figures(self.prefix), *emissions


def site_emissions(
    site: Site, energy: Energies, location: Rate | None, market: Rate | None, prefix: str
) -> SiteEmissions:
    """Return the emissions of a site's electricity.

    Args:
        site: Decides scope and category.
        energy: Its energy; a lower bound makes lower bounds.
        location: Grid factor of its zone and time.
        market: The blend of its entity and market, or the provider's own factor of a cloud.
        prefix: Of the figures' ids: ``site.paris``.
    """
    place, findings = place_of(site)
    return SiteEmissions(
        prefix=prefix,
        energies=energy,
        line=Line(
            source_id=site.site_id,
            place=place,
            location_kg=_kg(energy.facility_kwh, location),
            market_kg=_kg(energy.facility_kwh, market),
            span=None if location is None else location.span,
            location_figure=f"{prefix}.location_kg",
            market_figure=f"{prefix}.market_kg",
        ),
        location=location,
        market=market,
        findings=(
            *energy.findings,
            *findings,
            *([_no_rate(site, "location", "CL305")] if location is None else []),
            *([_no_rate(site, "market", "CL306")] if market is None else []),
        ),
    )


def _kg(kwh: Estimate, rate: Rate | None) -> Estimate:
    return unknown("kg") if rate is None else through(formulas.emissions_kg, kwh, rate.kg_per_kwh, unit="kg")


def _no_rate(site: Site, method: str, code: str) -> Finding:
    return Finding(
        code=code,
        severity="warning",
        message=f"no {method}-based emission factor of site {site.site_id}: its {method}-based emissions are "
        "unknown",
        mend=f"state a {method}-based factor with its zone, period and source",
        subject=site.site_id,
    )
