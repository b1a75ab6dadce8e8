"""Standing: where the electricity of a metered site is taken from, month by month.

Meters that cover the period whole stand for their site. Of meters with gaps, the months stand
that they cover whole, or in which they counted more than runs recorded; in the other months the
runs stand. The sum is a lower bound then, and it is what statements of the single months add up
to: an instrument that one of them claimed is never claimed again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from carbonlens.accounting import boundaries
from carbonlens.accounting.metered import Metered
from carbonlens.accounting.site_energy import Activity, Share, SiteTerms, metered_facility_kwh, shares
from carbonlens.domain.estimate import Estimate, add


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What stands for the electricity of a site.

    Attributes:
        meter: Its meters, in the months that they stand for.
        whole: The same in all months.
        terms: Of the site.
        runs: What runs recorded in the other months.
    """

    meter: Metered
    whole: Metered
    terms: SiteTerms
    runs: tuple[Share, ...] = ()

    @property
    def is_least(self) -> bool:
        """Whether it is a lower bound, because a part of the period is not metered."""
        return not self.whole.is_whole

    @property
    def facility_kwh(self) -> Estimate:
        """Facility energy of the site."""
        metered = metered_facility_kwh(self.meter, self.terms)
        return self.bounded(metered, *(s.energies.facility_kwh for s in self.runs))

    @property
    def metered_months(self) -> dict[str, Estimate]:
        """Facility energy that its meters counted in the months that they stand for."""
        return {month: _facility(self.meter, self.terms, month) for month in self.meter.by_month}

    @property
    def months(self) -> dict[str, Estimate]:
        """The same by month."""
        parts: dict[str, list[Estimate]] = {}
        for month, kwh in self.metered_months.items():
            parts.setdefault(month, []).append(kwh)
        for share in self.runs:
            for month, kwh in share.months.items():
                parts.setdefault(month, []).append(kwh)
        return {month: self.bounded(*held) for month, held in sorted(parts.items())}

    def bounded(self, *parts: Estimate) -> Estimate:
        """Return the sum of amounts of meters and runs, as a lower bound where the energy is one."""
        whole = parts[0] if len(parts) == 1 else add(parts, parts[0].unit)
        return replace(whole, state="unbounded") if self.is_least and whole.state == "known" else whole


def standing(
    counted: Sequence[Metered], activities: Sequence[Activity], terms: Mapping[str, SiteTerms], period: str
) -> dict[str, Standing]:
    """Return what stands for each site that is metered; sites whose runs stand alone are left out.

    Args:
        counted: What meters counted, those that come first before the others.
        activities: What runs recorded.
        terms: By site.
        period: Its name, for figures.
    """
    found: dict[str, Standing] = {}
    for site in dict.fromkeys(m.site_id for m in counted if m.site_id in terms):
        own = [m for m in counted if m.site_id == site]
        whole = next((m for m in own if m.is_whole), None)
        if whole is not None:
            found[site] = Standing(meter=whole, whole=whole, terms=terms[site])
            continue
        recorded = [a for a in activities if a.site_id == site]
        gapped = [s for m in own if (s := _with_gaps(m, recorded, terms[site], period)) is not None]
        if gapped:
            found[site] = max(gapped, key=lambda s: s.facility_kwh.value or 0.0)
    return found


def _with_gaps(
    whole: Metered, recorded: Sequence[Activity], terms: SiteTerms, period: str
) -> Standing | None:
    """Return meters with gaps beside the runs of the months in which these stand."""
    by_runs: dict[str, float] = {}
    for share in shares(recorded, {terms.site_id: terms}, period=period):
        for month, kwh in share.months.items():
            by_runs[month] = by_runs.get(month, 0.0) + (kwh.value or 0.0)
    held = {
        month: energy
        for month, energy in whole.by_month.items()
        if month in whole.whole_months
        or (_facility(whole, terms, month).value or 0.0) > by_runs.get(month, 0.0)
    }
    if not held:
        return None
    others = [a for a in recorded if a.month not in held]
    return Standing(
        meter=replace(whole, by_month=held, energy=add(held.values(), "J")),
        whole=whole,
        terms=terms,
        runs=shares(others, {terms.site_id: terms}, period=period),
    )


def _facility(meter: Metered, terms: SiteTerms, month: str) -> Estimate:
    return boundaries.facility_energy(meter.by_month[month], meter.boundary, terms.of(month).overheads)[0]
