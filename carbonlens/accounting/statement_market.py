"""Market-based factors of a statement: the blends of entities, and what other sites take.

Electricity that is not scope 2 has no instrument of the entity's; it takes the residual mix,
else the grid average, which is disclosed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from carbonlens.accounting.demand import Demand, Period, Rest, demands_of
from carbonlens.accounting.emissions import Rate
from carbonlens.accounting.hourly_matching import load_weighted_rate
from carbonlens.accounting.market_based import RATE, Blend, market_based
from carbonlens.accounting.propagation import through
from carbonlens.accounting.scopes import SCOPE_2, place_of
from carbonlens.accounting.site_energy import SiteTerms
from carbonlens.domain.certificate import Certificate
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.finding import Finding


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """Facility energy of one site that market-based factors are made for.

    Attributes:
        kwh: Of the period.
        months: The same by month of use.
        figure_ids: Figures that it is the sum of.
    """

    kwh: Estimate
    months: Mapping[str, Estimate] = {}
    figure_ids: tuple[str, ...] = ()


class MarketRates(msgspec.Struct, frozen=True, kw_only=True):
    """Market-based factors by site, and the blends among them."""

    rates: Mapping[str, Rate]
    blends: tuple[Blend, ...]
    findings: tuple[Finding, ...]


def market_rates(
    loads: Mapping[str, Load],
    terms: Mapping[str, SiteTerms],
    certificates: Sequence[Certificate],
    period: Period,
    earlier: tuple[Period, Mapping[str, Estimate]] | None = None,
) -> MarketRates:
    """Return the market-based factor of each site.

    Args:
        loads: Facility energy by site.
        terms: By site.
        certificates: All instruments of the inventory.
        period: The reported one.
        earlier: What the same years hold before it, which takes from instruments first;
            facility kWh by site.
    """
    sites = [t.site for t in terms.values() if t.site is not None]
    kwh = {name: load.kwh for name, load in loads.items()}
    demands, findings = demands_of(sites, kwh, period=period, rests={}, prefix=f"statement.{period.name}")
    before: tuple[Demand, ...] = ()
    if earlier is not None:
        before, _ = demands_of(sites, earlier[1], period=earlier[0], rests={})
    made = market_based((*before, *(_completed(d, loads, terms) for d in demands)), certificates)
    blends = tuple(b for b in made.blends if b.demand.period.name == period.name)
    rates: dict[str, Rate] = {}
    said = [*findings, *(made.findings if certificates else ()), *(f for b in blends for f in b.findings)]
    for name, load in loads.items():
        rate = _of_blend(terms[name], blends)
        if rate is None and not _is_scope_2(terms[name]):
            rate, told = _without_instruments(terms[name], load)
            said += told
        if rate is not None:
            rates[name] = rate
    return MarketRates(rates=rates, blends=blends, findings=tuple(said))


def weighted_rate(rates: Mapping[str, Rate], load: Mapping[str, Estimate]) -> Rate | None:
    """Return the one factor that gives the same as the months' own, weighted by load.

    Args:
        rates: By month; ``None`` is returned where a month with a load has none.
        load: Facility kWh by month.
    """
    months = [m for m, kwh in load.items() if kwh.value]
    if not months or any(m not in rates for m in months):
        distinct = {r.factor_id: r for r in rates.values()}
        return next(iter(distinct.values())) if not months and len(distinct) == 1 else None
    held = {rates[m].factor_id: rates[m] for m in months}
    if len(held) == 1:
        return next(iter(held.values()))
    n = len(months)
    value = through(
        lambda *x: load_weighted_rate(x[:n], x[n:]),
        *(load[m] for m in months),
        *(rates[m].kg_per_kwh for m in months),
        unit=RATE,
    )
    return Rate(factor_id=" + ".join(held), kg_per_kwh=value, span=rates[months[0]].span)


def _rest(names: Sequence[str], loads: Mapping[str, Load], terms: Mapping[str, SiteTerms]) -> Rest:
    """Return residual mix and grid average of some sites, weighted over their loads.

    Where a site with a load has no residual mix, none holds for all of them: the average then
    takes the mix of the others and the grid average of that site, and is disclosed.
    """
    parts = [(n, m) for n in names for m in loads[n].months]
    kwh = {f"{n} {m}": loads[n].months[m] for n, m in parts}
    mixes = {f"{n} {m}": terms[n].residual[m] for n, m in parts if m in terms[n].residual}
    grid = {f"{n} {m}": terms[n].location[m] for n, m in parts if m in terms[n].location}
    residual = weighted_rate(mixes, kwh)
    average = weighted_rate(grid if residual is not None else {**grid, **mixes}, kwh)
    rest = Rest()
    if residual is not None:
        rest = replace(rest, residual=residual.kg_per_kwh, residual_id=residual.factor_id)
    if average is not None:
        rest = replace(rest, average=average.kg_per_kwh, average_id=average.factor_id)
    return rest


def _completed(demand: Demand, loads: Mapping[str, Load], terms: Mapping[str, SiteTerms]) -> Demand:
    """Return a demand with the rest of its own sites, and with the figures that it is the sum of."""
    names = []
    for name in loads:
        site = terms[name].site
        if site is not None and (site.entity, site.market) == (demand.entity, demand.market):
            names += [name] if _is_scope_2(terms[name]) else []
    ids = tuple(i for name in names for i in loads[name].figure_ids)
    return replace(demand, rest=_rest(names, loads, terms), input_ids=ids)


def _of_blend(terms: SiteTerms, blends: Sequence[Blend]) -> Rate | None:
    site = terms.site
    if site is None or not _is_scope_2(terms):
        return None
    for blend in blends:
        if (blend.demand.entity, blend.demand.market) == (site.entity, site.market):
            return Rate(factor_id=blend.factor_id, kg_per_kwh=blend.rate)
    return None


def _is_scope_2(terms: SiteTerms) -> bool:
    return terms.site is not None and place_of(terms.site)[0] == SCOPE_2


def _without_instruments(terms: SiteTerms, load: Load) -> tuple[Rate | None, list[Finding]]:
    residual = weighted_rate(terms.residual, load.months)
    if residual is not None:
        return residual, []
    average = weighted_rate(terms.location, load.months)
    if average is None:
        return None, []
    told = Finding(
        code="CL484",
        severity="warning",
        message=f"no residual mix and no provider's factor of {terms.site_id}: its market-based figure takes "
        "the grid average, which is to be disclosed",
        mend="import the residual mix of its market, or the provider's market-based factor",
        subject=terms.site_id,
    )
    return average, [told]
