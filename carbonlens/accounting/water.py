"""Water: litres at the site on IT energy, litres at the power plants on facility energy.

A WUE counts the site's water per kWh of IT energy (ISO/IEC 30134-9); multiplying facility
energy with it would count the PUE once too often.
"""

from __future__ import annotations

from typing import Final

import msgspec

from carbonlens.accounting.boundaries import Energies
from carbonlens.accounting.formulas import Quantity
from carbonlens.accounting.propagation import through
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding


class Water(msgspec.Struct, frozen=True, kw_only=True):
    """Water of one energy, in litres; two lines that are not one figure.

    Attributes:
        site_l: At the site, for cooling.
        source_l: At the plants that made the electricity.
        wue_id, source_id: Ids of the factors; ``None`` where there was none.
    """

    site_l: Estimate
    source_l: Estimate
    wue_id: str | None = None
    source_id: str | None = None
    findings: tuple[Finding, ...] = ()

    def figures(self, prefix: str, energy: str) -> tuple[Figure, ...]:
        """Return both lines as figures.

        Args:
            prefix: Of the figures' ids.
            energy: Prefix of the energies' figures.
        """
        site = (f"{energy}.it_kwh", *([self.wue_id] if self.wue_id else []))
        source = (f"{energy}.facility_kwh", *([self.source_id] if self.source_id else []))
        return (
            Figure(
                figure_id=f"{prefix}.water_site_l",
                estimate=self.site_l,
                label="water at the site",
                formula="water_site_l = it_kwh * wue",
                inputs=site,
            ),
            Figure(
                figure_id=f"{prefix}.water_source_l",
                estimate=self.source_l,
                label="water at the power plants",
                formula="water_source_l = facility_kwh * grid_water",
                inputs=source,
            ),
        )


def site_water_l(it_kwh: Quantity, wue: Quantity) -> Quantity:
    """Return litres at the site of IT energy (WUE as in ISO/IEC 30134-9)."""
    return it_kwh * wue


def source_water_l(facility_kwh: Quantity, l_per_kwh: Quantity) -> Quantity:
    """Return litres at the power plants of facility energy."""
    return facility_kwh * l_per_kwh


def water(
    energy: Energies,
    wue: Estimate | None,
    grid_water: Estimate | None,
    *,
    wue_id: str | None = None,
    source_id: str | None = None,
) -> Water:
    """Return the water of an energy; unknown where a factor is.

    Args:
        energy: At its boundaries.
        wue: Litres per kWh of IT energy; ``None`` when unknown.
        grid_water: Litres per kWh at the plants; ``None`` when unknown.
        wue_id: Id of the first factor.
        source_id: Id of the second.
    """
    findings = [
        *([] if wue is not None else [_NO_WUE]),
        *([] if grid_water is not None else [_NO_GRID_WATER]),
    ]
    site = unknown("L") if wue is None else through(site_water_l, energy.it_kwh, wue, unit="L")
    source = unknown("L")
    if grid_water is not None:
        source = through(source_water_l, energy.facility_kwh, grid_water, unit="L")
    return Water(
        site_l=site,
        source_l=source,
        wue_id=None if wue is None else wue_id,
        source_id=None if grid_water is None else source_id,
        findings=tuple(findings),
    )


_NO_WUE: Final = Finding(
    code="CL383",
    severity="info",
    message="no WUE of the site: water at the site is unknown",
    mend="state wue_l_per_kwh with its source",
)
_NO_GRID_WATER: Final = Finding(
    code="CL383",
    severity="info",
    message="no water factor of the grid: water at the power plants is unknown",
    mend="add a row of kind water_source for the zone",
)
