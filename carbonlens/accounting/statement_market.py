"""Market-based factors of a statement: the blends of entities, and what other sites take.

Electricity that is not scope 2 has no instrument of the entity's; it takes the residual mix,
else the grid average, which is disclosed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from carbonlens.accounting.blend_years import joined, loaded_months, months_by_year
from carbonlens.accounting.demand import Demand, Period, Rest, demands_of
from carbonlens.accounting.emissions import Rate
from carbonlens.accounting.hourly_matching import load_weighted_rate
from carbonlens.accounting.market_based import RATE, Blend, market_based
from carbonlens.accounting.propagation import through
from carbonlens.accounting.scopes import SCOPE_2, place_of
from carbonlens.accounting.site_energy import Share, SiteTerms
from carbonlens.accounting.standing import Standing
from carbonlens.accounting.statement_lines import key_of
from carbonlens.domain.certificate import Certificate
from carbonlens.domain.estimate import Estimate, add, unknown
from carbonlens.domain.finding import Finding
from carbonlens.domain.site import Site


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


def loads_of(found: Sequence[Share], meters: Mapping[str, Standing], prefix: str) -> dict[str, Load]:
    """Return the facility energy of each site: as meters counted it, else as runs recorded it.

    Args:
        found: What runs recorded.
        meters: What stands for the sites that are metered.
        prefix: ``statement.<period>``.
    """
    loads = {}
    for site in sorted({s.site_id for s in found} | set(meters)):
        if site in meters:
            ids = (f"{prefix}.{key_of(site)}.metered.facility_kwh",)
            loads[site] = Load(kwh=meters[site].facility_kwh, months=meters[site].months, figure_ids=ids)
            continue
        own = [s for s in found if s.site_id == site]
        parts: dict[str, list[Estimate]] = {}
        for share in own:
            for month, kwh in share.months.items():
                parts.setdefault(month, []).append(kwh)
        keys = dict.fromkeys(key_of_share(s) for s in own)
        loads[site] = Load(
            kwh=add((s.energies.facility_kwh for s in own), "kWh"),
            months={m: add(p, "kWh") for m, p in sorted(parts.items())},
            figure_ids=tuple(f"{prefix}.{k}.facility_kwh" for k in keys),
        )
    return loads


def key_of_share(share: Share) -> str:
    """Return the key of the line that a share is a part of."""
    return key_of(share.site_id) + (".at_least" if share.is_lower_bound else "")


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
    demands, findings = _demands(loads, terms, sites, period)
    before: tuple[Demand, ...] = ()
    if earlier is not None:
        before, _ = demands_of(sites, earlier[1], period=earlier[0], rests={})
    made = market_based((*before, *demands), certificates)
    by_market: dict[tuple[str, str], list[Blend]] = {}
    for blend in made.blends:
        if blend.demand.period.name == period.name:
            by_market.setdefault((blend.demand.entity, blend.demand.market), []).append(blend)
    blends = tuple(joined(held) for _, held in sorted(by_market.items()))
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


def _demands(
    loads: Mapping[str, Load], terms: Mapping[str, SiteTerms], sites: Sequence[Site], period: Period
) -> tuple[list[Demand], list[Finding]]:
    """Return the demands of each calendar year of the loads, each with the months it has a load in."""
    found: list[Demand] = []
    said: list[Finding] = []
    years = months_by_year(loaded_months(load.months for load in loads.values()), period)
    for year in years:
        held = loads if len(years) == 1 else {n: _of_year(load, year) for n, load in loads.items()}
        kwh = {name: load.kwh for name, load in held.items()}
        demands, findings = demands_of(sites, kwh, period=period, rests={}, prefix=f"statement.{period.name}")
        found += [_completed(d, held, terms) for d in demands]
        said += findings
    # A year without any load of theirs takes from no instrument, unless there is no other.
    loaded = {(d.entity, d.market) for d in found if d.kwh.value != 0}
    kept = [d for d in found if d.kwh.value != 0 or (d.entity, d.market) not in loaded]
    return kept, list(dict.fromkeys(said))


def _of_year(load: Load, year: str) -> Load:
    """Return what of a load lies in a calendar year; of one whose months are not told it is unknown."""
    months = {m: kwh for m, kwh in load.months.items() if m.startswith(year)}
    if not load.months:
        kwh = load.kwh if load.kwh.value == 0 else unknown("kWh")
    else:
        kwh = add(months.values(), "kWh") if months else Estimate(value=0.0, unit="kWh")
    return replace(load, kwh=kwh, months=months)


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
    months = loaded_months(loads[name].months for name in names) or demand.period.months
    period = replace(demand.period, months=months)
    return replace(demand, period=period, rest=_rest(names, loads, terms), input_ids=ids)


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
