"""Energy of sites: what the ledger sums per site and boundary, carried to the facility.

Emissions and costs are summed by the hour at the boundary at which the energy was measured;
host overhead and PUE of a site are the same in all hours of a month, so they are applied to
the sums of the months in which they are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from typing import Final

import msgspec

from carbonlens.accounting import boundaries, formulas
from carbonlens.accounting.boundaries import Energies, Overheads
from carbonlens.accounting.emissions import Rate
from carbonlens.accounting.metered import Metered
from carbonlens.accounting.propagation import through
from carbonlens.domain.estimate import Estimate, add, unknown
from carbonlens.domain.factor_row import Span
from carbonlens.domain.finding import Finding
from carbonlens.domain.site import Site
from carbonlens.domain.units import Boundary, Grade

UNSTATED: Final = "unstated"
"""Stands in figure ids where a source states no boundary."""


class Activity(msgspec.Struct, frozen=True, kw_only=True):
    """Energy of recorded runs at one site in one month, within one boundary.

    Attributes:
        site_id: Site, or the stand-in of runs without one.
        month: Month of use in the reporting time zone, ``2026-07``; empty where it is not known.
        energy: In joules, at ``boundary``.
        exact_j: The same sum, exact; ``None`` when nothing is known.
        location: Location-based kg of that energy, without overheads.
        costs: Cost of that energy by currency, without overheads; empty where it has no price.
        runs: Runs that start there.
        grade_j: Joules by evidence grade.
        group: Value of the label that the statement is split by.
    """

    site_id: str
    month: str = ""
    boundary: Boundary | None
    energy: Estimate
    exact_j: Decimal | None = None
    location: Estimate = unknown("kg")
    costs: Mapping[str, Estimate] = {}
    runs: int = 0
    grade_j: Mapping[Grade, float] = {}
    group: str | None = None


class SiteTerms(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What holds at one site in the period.

    Attributes:
        site: As the inventory declares it; ``None`` where it does not.
        place_name: Its place in words; ``None`` where nobody knows it.
        how: Which grid factor was taken, in words.
        location: Location-based factors by month of use.
        residual: Residual mix by month of use.
        span: What the location-based factors count.
        input_ids: Ids of all location-based factors used.
        supply, loss: Fuel supply in kg/kWh, and the share of electricity that is lost.
        wue, grid_water: Litres per kWh of IT energy, and of facility energy.
        ids: Ids of ``supply``, ``loss``, ``wue`` and ``grid_water`` by those names.
        by_month: Months in which other overheads, water or upstream factors hold than those
            here, with all that holds then; months that share them share one object.
    """

    site_id: str
    site: Site | None = None
    place_name: str | None = None
    how: str = ""
    overheads: Overheads = Overheads()
    location: Mapping[str, Rate] = {}
    residual: Mapping[str, Rate] = {}
    span: Span | None = None
    input_ids: tuple[str, ...] = ()
    supply: Estimate | None = None
    loss: Estimate | None = None
    wue: Estimate | None = None
    grid_water: Estimate | None = None
    ids: Mapping[str, str] = {}
    by_month: Mapping[str, SiteTerms] = {}
    findings: tuple[Finding, ...] = ()

    @cached_property
    def each_input_id(self) -> tuple[str, ...]:
        """``input_ids``, each once."""
        return tuple(dict.fromkeys(self.input_ids))

    def of(self, month: str) -> SiteTerms:
        """Return what holds in a month of use."""
        return self.by_month.get(month, self)

    def variant(self, month: str) -> str:
        """Return the first of the months that share the terms of this one; empty for those here."""
        held = self.of(month)
        return "" if held is self else next(m for m, one in self.by_month.items() if one is held)

    @property
    def variants(self) -> tuple[SiteTerms, ...]:
        """All terms of the period, those here first, each once."""
        return tuple({id(one): one for one in (self, *self.by_month.values())}.values())


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """Energy of one site within one boundary and under one set of overheads, at the facility.

    Attributes:
        prefix: Of the figures of its energies.
        terms: What holds in its months.
        location: Location-based kg of the facility energy.
        costs: Cost of the facility energy by currency.
        months: Facility kWh by month of use, where months are told apart.
    """

    site_id: str
    prefix: str
    terms: SiteTerms
    boundary: Boundary | None
    energies: Energies
    location: Estimate
    costs: Mapping[str, Estimate]
    exact_j: Decimal | None
    runs: int
    months: Mapping[str, Estimate] = {}

    @property
    def is_lower_bound(self) -> bool:
        """Whether its facility energy is no true figure, which is never added to true ones."""
        return self.energies.facility_kwh.state != "known"


def at_facility(amount: Estimate, boundary: Boundary | None, around: Overheads) -> Estimate:
    """Return what an amount that goes with energy comes to at the facility, overheads once.

    Args:
        amount: Emissions or cost of an energy at ``boundary``.
        boundary: What the energy includes.
        around: Overheads of the place; one that is unknown leaves a lower bound.
    """
    at_least = boundary is None
    if boundary == "device":
        if around.host is None:
            at_least = True
        else:
            amount = through(formulas.it_kwh, amount, around.host, unit=amount.unit)
    if boundary in ("device", "it"):
        if around.pue is None:
            at_least = True
        else:
            amount = through(formulas.facility_kwh, amount, around.pue, unit=amount.unit)
    if at_least and amount.state == "known":
        return msgspec.structs.replace(amount, state="unbounded")
    return amount


def shares(
    activities: Iterable[Activity], terms: Mapping[str, SiteTerms], *, period: str
) -> tuple[Share, ...]:
    """Return the energy of each site and boundary at the facility, by site.

    Months of a site in which other overheads hold are a share of their own.

    Args:
        activities: Of one period, and of one group where they are split.
        terms: By site.
        period: Its name.
    """
    groups: dict[tuple[str, str, str], list[Activity]] = {}
    for activity in activities:
        variant = terms[activity.site_id].variant(activity.month)
        groups.setdefault((activity.site_id, activity.boundary or UNSTATED, variant), []).append(activity)
    return tuple(
        _share(held, terms[site].of(variant), period, variant)
        for (site, _, variant), held in sorted(groups.items())
    )


def metered_parts(whole: Metered, terms: SiteTerms) -> tuple[tuple[Estimate, SiteTerms], ...]:
    """Return metered joules under each set of overheads, with what holds then.

    Args:
        whole: What meters of the site counted.
        terms: Of the site.
    """
    if len(terms.variants) == 1:
        return ((whole.energy, terms),)
    held: dict[str, list[Estimate]] = {}
    for month, energy in whole.by_month.items():
        held.setdefault(terms.variant(month), []).append(energy)
    return tuple((add(parts, "J"), terms.of(variant)) for variant, parts in sorted(held.items()))


def metered_facility_kwh(whole: Metered, terms: SiteTerms) -> Estimate:
    """Return facility kWh that meters counted, each month with its own overheads."""
    parts = metered_parts(whole, terms)
    kwh = [boundaries.facility_energy(e, whole.boundary, t.overheads)[0] for e, t in parts]
    return kwh[0] if len(kwh) == 1 else add(kwh, "kWh")


def _share(held: Sequence[Activity], terms: SiteTerms, period: str, variant: str) -> Share:
    boundary = held[0].boundary
    around = terms.overheads
    name = f"{period}.{terms.site_id}.{boundary or UNSTATED}"
    exact = [a.exact_j for a in held if a.exact_j is not None]
    currencies = sorted({c for a in held for c in a.costs})
    unpriced = any(not a.costs and a.exact_j for a in held)
    sums = {
        c: add([*(a.costs[c] for a in held if c in a.costs), *([unknown(c)] if unpriced else [])], c)
        for c in currencies
    }
    return Share(
        site_id=terms.site_id,
        prefix=f"energy.{name}" + (f".{variant}" if variant else ""),
        terms=terms,
        boundary=boundary,
        energies=boundaries.energies(add((a.energy for a in held), "J"), boundary, around, (f"runs.{name}",)),
        location=at_facility(add((a.location for a in held), "kg"), boundary, around),
        costs={c: at_facility(e, boundary, around) for c, e in sums.items()},
        exact_j=sum(exact, Decimal(0)) if exact else None,
        runs=sum(a.runs for a in held),
        months=_months(held, boundary, around),
    )


def _months(held: Sequence[Activity], boundary: Boundary | None, around: Overheads) -> dict[str, Estimate]:
    by_month: dict[str, list[Estimate]] = {}
    for activity in held:
        if activity.month:
            by_month.setdefault(activity.month, []).append(activity.energy)
    return {
        month: boundaries.facility_energy(add(parts, "J"), boundary, around)[0]
        for month, parts in sorted(by_month.items())
    }
