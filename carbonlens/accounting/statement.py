"""Statement of a period: energy, emissions by both methods, water, embodied emissions and cost.

Every number is a figure ``statement.<period>.<line>.<name>`` whose inputs lead to energies,
factors, certificates and prices. Lines sum to totals exactly as their estimates do: an error
that sites or hours share stays whole in the sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from carbonlens.accounting import boundaries, cost, formulas, scope_totals
from carbonlens.accounting.amortisation import Amortised
from carbonlens.accounting.amounts import NO_CURRENCY
from carbonlens.accounting.cost import Cost, CostLine
from carbonlens.accounting.deliveries import Coverage
from carbonlens.accounting.demand import Period
from carbonlens.accounting.embodied import CapitalGoods
from carbonlens.accounting.market_based import Blend
from carbonlens.accounting.metered import BILLED, Metered, not_whole
from carbonlens.accounting.propagation import through
from carbonlens.accounting.reconciliation import Reconciliation, reconciliations
from carbonlens.accounting.scopes import place_of
from carbonlens.accounting.site_energy import Activity, Share, SiteTerms, shares
from carbonlens.accounting.statement_figures import emissions_at, further, measured, scope_lines
from carbonlens.accounting.statement_lines import (
    KINDS,
    Amount,
    Line,
    amounts_of,
    is_unpriced,
    key_of,
    recorded,
    rest_of,
    said_of,
    total,
)
from carbonlens.accounting.statement_market import Load, MarketRates, market_rates
from carbonlens.domain.certificate import Certificate
from carbonlens.domain.estimate import Estimate, add, combined_grade, grade_shares, unknown
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding
from carbonlens.domain.units import Grade

RECORDED_ONLY: Final = "attributable to recorded AI workloads"
METERED: Final = "of metered sites, and attributable to recorded AI workloads elsewhere"
ALL_METERED: Final = "of the metered sites"


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What a statement is made of.

    Attributes:
        activities: By site, month and boundary.
        grouped: The same split by a label, without months; empty where none was asked for.
        terms: By site.
        metered: What meters counted.
        certificates: All instruments of the inventory.
        earlier: Facility kWh by site that the same years hold before, as ``market_rates`` takes it.
        price_ids: Prices of electricity by site and currency.
        capital: Hardware bought in the period.
        amortised: What hardware in use amounts to.
        cost_lines: Lines of cost beside electricity by the hour.
        leaves: Figures of factors, prices and overheads, on which others rest.
    """

    period: Period
    entity: str | None = None
    label: str | None = None
    activities: tuple[Activity, ...]
    grouped: tuple[Activity, ...] = ()
    terms: Mapping[str, SiteTerms]
    metered: tuple[Metered, ...] = ()
    certificates: tuple[Certificate, ...] = ()
    earlier: tuple[Period, Mapping[str, Estimate]] | None = None
    price_ids: Mapping[str, Mapping[str, tuple[str, ...]]] = {}
    capital: CapitalGoods | None = None
    amortised: tuple[Amortised, ...] = ()
    cost_lines: tuple[CostLine, ...] = ()
    coverage: Coverage | None = None
    leaves: tuple[Figure, ...] = ()
    findings: tuple[Finding, ...] = ()


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """The statement.

    Attributes:
        heading: What the energy is that it accounts for.
        lines: By site: recorded, known as at least, metered, unattributed.
        groups: By value of the label, if one was asked for.
        total: Sum of true figures, metered sites by their meters.
        at_least: Sum of what is known as lower bounds; ``None`` where nothing is.
        scopes: By scope and category.
        grade_shares: Share of the recorded energy by evidence grade.
        span_shares: Share of location-based emissions by what their factors count.
        figures: All numbers, and the leaves they rest on.
    """

    period: Period
    entity: str | None
    heading: str
    label: str | None
    terms: Mapping[str, SiteTerms]
    lines: tuple[Line, ...]
    groups: tuple[Line, ...]
    total: Line
    at_least: Line | None
    scopes: tuple[scope_totals.Total, ...]
    blends: tuple[Blend, ...]
    reconciliations: tuple[Reconciliation, ...]
    capital: CapitalGoods | None
    amortised: tuple[Amortised, ...]
    cost: Cost
    coverage: Coverage | None
    grade_shares: Mapping[Grade, float]
    span_shares: Mapping[str, float]
    figures: tuple[Figure, ...]
    findings: tuple[Finding, ...]


def statement(given: Given) -> Statement:
    """Return the statement of a period.

    Args:
        given: What it is made of.
    """
    prefix = f"statement.{given.period.name}"
    found = shares(given.activities, given.terms, period=given.period.name)
    meters = {m.site_id: m for m in reversed(given.metered) if m.is_whole and m.site_id in given.terms}
    loads = _loads(found, meters, given.terms, prefix)
    market = market_rates(loads, given.terms, given.certificates, given.period, given.earlier)
    lines = _recorded_lines(found, given, market, prefix)
    wholes = [
        _metered_line(m, given.terms[site], market, lines, prefix) for site, m in sorted(meters.items())
    ]
    rests = [rest_of(w, [x for x in lines if x.site_id == w.site_id], prefix) for w in wholes]
    counted = [*(x for x in lines if x.site_id not in meters), *wholes]
    true = [x for x in counted if x.kind != "at_least"]
    least = [x for x in counted if x.kind == "at_least"]
    groups, parts, grouped = _groups(given, market, prefix)
    whole, at_least = total("total", true, prefix), total("total.at_least", least, prefix, "at_least")
    electricity = scope_lines(counted, given.terms, prefix)
    scopes = scope_totals.totals(
        scope_lines(counted, given.terms, prefix, upstream=True, capital=given.capital)
    )
    money = _cost(given, [whole, at_least] if least else [whole], _unpriced(counted, given.terms), prefix)
    every = [*lines, *wholes, *rests, *groups, *parts, whole, *([at_least] if least else [])]
    beside = reconciliations(given.metered, given.terms, found, list(meters.values()))
    figures = [f for x in every for f in x.figures(prefix)]
    figures += [f for s in (*found, *grouped) for f in measured(s.energies.figures(s.prefix))]
    figures += [f for t in scopes for f in t.figures(prefix)]
    figures += further(given.capital, given.amortised, market.blends, prefix)
    figures += [f for r in beside for f in r.figures(prefix)]
    figures += [*money.figures(f"{prefix}.cost"), *given.leaves]
    return Statement(
        period=given.period,
        entity=given.entity,
        heading=_heading(meters, lines),
        label=given.label,
        terms=given.terms,
        lines=tuple(sorted((*lines, *wholes, *rests), key=lambda x: (x.site_id, KINDS.index(x.kind)))),
        groups=tuple(groups),
        total=whole,
        at_least=at_least if least else None,
        scopes=scopes,
        blends=market.blends,
        reconciliations=beside,
        capital=given.capital,
        amortised=given.amortised,
        cost=money,
        coverage=given.coverage,
        grade_shares=_grades(given.activities),
        span_shares=scope_totals.span_shares(electricity),
        figures=_once(figures),
        findings=_findings(given, market, money, every, rests),
    )


def _loads(
    found: Sequence[Share], meters: Mapping[str, Metered], terms: Mapping[str, SiteTerms], prefix: str
) -> dict[str, Load]:
    loads = {}
    for site in sorted({s.site_id for s in found} | set(meters)):
        if site in meters:
            whole = meters[site]
            months = {m: _facility(whole, terms[site], e) for m, e in whole.by_month.items()}
            ids = (f"{prefix}.{key_of(site)}.metered.facility_kwh",)
            loads[site] = Load(kwh=_facility(whole, terms[site], whole.energy), months=months, figure_ids=ids)
            continue
        own = [s for s in found if s.site_id == site]
        parts: dict[str, list[Estimate]] = {}
        for share in own:
            for month, kwh in share.months.items():
                parts.setdefault(month, []).append(kwh)
        keys = dict.fromkeys(_key(s) for s in own)
        loads[site] = Load(
            kwh=add((s.energies.facility_kwh for s in own), "kWh"),
            months={m: add(p, "kWh") for m, p in sorted(parts.items())},
            figure_ids=tuple(f"{prefix}.{k}.facility_kwh" for k in keys),
        )
    return loads


def _key(share: Share) -> str:
    return key_of(share.site_id) + (".at_least" if share.is_lower_bound else "")


def _recorded_lines(found: Sequence[Share], given: Given, market: MarketRates, prefix: str) -> list[Line]:
    keyed: dict[str, list[Share]] = {}
    for share in found:
        keyed.setdefault(_key(share), []).append(share)
    return [_recorded(key, held, given, market, prefix) for key, held in keyed.items()]


def _recorded(key: str, held: Sequence[Share], given: Given, market: MarketRates, prefix: str) -> Line:
    site = held[0].site_id
    return recorded(
        key,
        held,
        given.terms[site],
        market.rates.get(site),
        prefix=prefix,
        price_ids=given.price_ids.get(site, {}),
    )


def _facility(whole: Metered, terms: SiteTerms, energy: Estimate) -> Estimate:
    return boundaries.facility_energy(energy, whole.boundary, terms.overheads)[0]


def _metered_line(
    whole: Metered, terms: SiteTerms, market: MarketRates, lines: Sequence[Line], prefix: str
) -> Line:
    """Return the line of a site as its meters counted it.

    Its months take the factors of the months; its electricity costs per kWh what the hours of the
    recorded runs did.
    """
    at, ids = f"{prefix}.{key_of(whole.site_id)}.metered", tuple(f"meter:{m}" for m in whole.meter_ids)
    it, _ = boundaries.it_energy(whole.energy, whole.boundary, terms.overheads)
    facility = Amount(_facility(whole, terms, whole.energy), "sum of the readings, and overheads", ids)
    kg = [emissions_at(terms.location.get(m), _facility(whole, terms, e)) for m, e in whole.by_month.items()]
    factors = [terms.location[m].factor_id for m in whole.by_month if m in terms.location]
    inputs = (f"{at}.facility_kwh", *dict.fromkeys(factors))
    location = Amount(add(kg, "kg"), "kg = sum over months of facility_kwh * factor of the month", inputs)
    site = whole.site_id
    held = Amount(it, "of the readings", ids)
    amounts = amounts_of(held, facility, location, terms, market.rates.get(site), at)
    own = [x for x in lines if x.site_id == site and x.kind == "recorded"]
    for name in sorted({n for x in own for n in x.amounts if n.startswith("electricity.")}):
        paid = [(x.estimate(name), x.estimate("facility_kwh")) for x in own]
        unit = name.rpartition(".")[2]
        price = through(lambda c, e: c / e, *paid[0], unit=f"{unit}/kWh")
        amounts[name] = Amount(
            through(formulas.electricity_cost, facility.estimate, price, unit=unit),
            "cost = facility_kwh * (cost / facility_kwh of the recorded runs)",
            (f"{at}.facility_kwh", *(f"{prefix}.{x.key}.{n}" for x in own for n in (name, "facility_kwh"))),
        )
    said = tuple(said_of(held, facility, location, terms))
    return Line(key=f"{key_of(site)}.metered", site_id=site, kind="metered", amounts=amounts, findings=said)


def _unpriced(lines: Sequence[Line], terms: Mapping[str, SiteTerms]) -> list[Line]:
    """Return lines whose electricity nobody prices; that of a cloud, and of a bill, is in the bill."""
    found = []
    for line in lines:
        site = terms[line.site_id].site
        is_billed = line.amounts["facility_kwh"].inputs == (f"meter:{BILLED}{line.site_id}",)
        if is_unpriced(line) and not is_billed and (site is None or site.kind != "cloud"):
            found.append(line)
    return found


def _cost(given: Given, totals: Sequence[Line], unpriced: Sequence[Line], prefix: str) -> Cost:
    """Return electricity, as the totals have it, and the other lines of cost.

    Where electricity has no price every total that there is, is a lower bound.
    """
    lines = []
    for whole in totals:
        for name, amount in whole.amounts.items():
            if name.startswith("electricity."):
                words = "electricity by the hour" + (", at least" if whole.kind == "at_least" else "")
                lines.append(
                    CostLine(
                        name="electricity",
                        label=words,
                        amount=amount.estimate,
                        formula="sum of the lines",
                        input_ids=(f"{prefix}.{whole.key}.{name}",),
                    )
                )
    every = [*lines, *given.cost_lines]
    if every and unpriced:
        where = ", ".join(dict.fromkeys(x.site_id for x in unpriced))
        every.append(cost.priced("electricity", f"electricity of {where}, no price", unknown("kWh"), None))
    return cost.total(every)


def _groups(given: Given, market: MarketRates, prefix: str) -> tuple[list[Line], list[Line], list[Share]]:
    """Return one line a value of the label, and the lines and energies by site that it sums."""
    lines: list[Line] = []
    parts: list[Line] = []
    every: list[Share] = []
    for value in dict.fromkeys(a.group for a in given.grouped):
        held = [a for a in given.grouped if a.group == value]
        found = shares(held, given.terms, period=f"{given.period.name}.{given.label}.{_word(value)}")
        every += found
        for is_least in (False, True):
            own = [s for s in found if s.is_lower_bound == is_least]
            if not own:
                continue
            key = f"by.{given.label}.{_word(value)}" + (".at_least" if is_least else "")
            by_site = [
                _recorded(f"{key}.{site}", [s for s in own if s.site_id == site], given, market, prefix)
                for site in dict.fromkeys(s.site_id for s in own)
            ]
            lines.append(total(key, by_site, prefix, "at_least" if is_least else "recorded"))
            parts += by_site
    return lines, parts, every


def _word(value: str | None) -> str:
    return "(none)" if value is None else value


def _once(figures: Iterable[Figure]) -> tuple[Figure, ...]:
    held: dict[str, Figure] = {}
    for figure in figures:
        held.setdefault(figure.figure_id, figure)
    return tuple(held.values())


def _grades(activities: Iterable[Activity]) -> dict[Grade, float]:
    parts: list[tuple[Grade | None, float]] = [(g, v) for a in activities for g, v in a.grade_j.items()]
    return grade_shares(parts) if combined_grade(parts) is not None else {}


def _heading(meters: Mapping[str, Metered], lines: Sequence[Line]) -> str:
    if not meters:
        return RECORDED_ONLY
    return ALL_METERED if all(x.site_id in meters for x in lines) else METERED


def _findings(
    given: Given, market: MarketRates, money: Cost, lines: Sequence[Line], rests: Sequence[Line]
) -> tuple[Finding, ...]:
    found = [*given.findings, *(f for t in given.terms.values() for f in t.findings)]
    found += [f for x in lines for f in x.findings]
    found += market.findings
    found += [f for t in given.terms.values() if t.site is not None for f in place_of(t.site)[1]]
    found += [f for m in given.metered for f in m.findings]
    found += [not_whole(m) for m in given.metered if not m.is_whole]
    found += [_exceeds(x) for x in rests if (x.estimate("facility_kwh").value or 0.0) < 0]
    if given.capital is not None:
        found += given.capital.findings
    found += [f for a in given.amortised for f in a.findings]
    found += money.findings
    found += given.coverage.findings if given.coverage else ()
    if any(x.currency == NO_CURRENCY for x in money.lines):
        # It qualifies the sums of cost, which are lower bounds.
        found = [replace(f, severity="warning") if f.code == "CL486" else f for f in found]
    return tuple(dict.fromkeys(found))


def _exceeds(rest: Line) -> Finding:
    over = -(rest.estimate("facility_kwh").value or 0.0)
    return Finding(
        code="CL483",
        severity="warning",
        message=f"recorded runs at {rest.site_id} come to {over:.6g} kWh more than its meters counted: the "
        "meters stand, and the excess is a negative unattributed line",
        mend="check the site's PUE and host overhead, the meters' boundary, and runs counted twice",
        subject=rest.site_id,
    )
