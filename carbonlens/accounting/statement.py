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

from carbonlens.accounting import boundaries, scope_totals
from carbonlens.accounting.amortisation import Amortised
from carbonlens.accounting.amounts import NO_CURRENCY
from carbonlens.accounting.cost import Cost, CostLine
from carbonlens.accounting.deliveries import Coverage
from carbonlens.accounting.demand import Period
from carbonlens.accounting.embodied import CapitalGoods
from carbonlens.accounting.group_bills import GroupBill
from carbonlens.accounting.initiative_lines import initiative_figures
from carbonlens.accounting.market_based import Blend
from carbonlens.accounting.metered import Metered, not_whole
from carbonlens.accounting.reconciliation import Reconciliation, reconciliations
from carbonlens.accounting.reported_cost import ReportedCost, Reporting, reported
from carbonlens.accounting.scopes import place_of
from carbonlens.accounting.site_energy import (
    Activity,
    Share,
    SiteTerms,
    metered_parts,
    shares,
)
from carbonlens.accounting.standing import Standing, standing
from carbonlens.accounting.statement_cost import Power, cost_of, paid, paid_by_meter, with_bill_prices
from carbonlens.accounting.statement_figures import emissions_at, further, measured, scope_lines
from carbonlens.accounting.statement_lines import (
    KINDS,
    Amount,
    Line,
    Part,
    amounts_of,
    key_of,
    recorded,
    rest_of,
    said_of,
    total,
)
from carbonlens.accounting.statement_market import MarketRates, key_of_share, loads_of, market_rates
from carbonlens.domain.certificate import Certificate
from carbonlens.domain.estimate import Estimate, add, combined_grade, grade_shares
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding
from carbonlens.domain.initiative import Initiative
from carbonlens.domain.units import Grade

RECORDED_ONLY: Final = "attributable to recorded AI workloads"
AI_METERED: Final = "attributable to recorded AI workloads, as meters that feed these alone count them"
METERED: Final = "of metered sites, and attributable to recorded AI workloads elsewhere"
ALL_METERED: Final = "of the metered sites"


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What a statement is made of.

    Attributes:
        activities: By site, month and boundary.
        grouped: The same split by a label; empty where none was asked for.
        terms: By site.
        metered: What meters counted.
        certificates: All instruments of the inventory.
        earlier: Facility kWh by site that the same years hold before, as ``market_rates`` takes it.
        price_ids: Prices of electricity by site and currency.
        capital: Hardware bought in the period.
        amortised: What hardware in use amounts to.
        power: How electricity is paid by bills and meters.
        cost_lines: Lines of cost beside electricity.
        reporting: In which money the cost is reported.
        bills: What groups carry of bills.
        initiatives: Those in effect; what they claim is in no sum.
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
    power: Power = Power()
    cost_lines: tuple[CostLine, ...] = ()
    reporting: Reporting = Reporting()
    coverage: Coverage | None = None
    bills: tuple[GroupBill, ...] = ()
    initiatives: tuple[Initiative, ...] = ()
    leaves: tuple[Figure, ...] = ()
    findings: tuple[Finding, ...] = ()


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """The statement.

    Attributes:
        heading: What the energy is that it accounts for.
        lines: By site: recorded, known as at least, metered, unattributed.
        groups: By value of the label, if one was asked for; ``bills`` what they carry of bills.
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
    bills: tuple[GroupBill, ...] = ()
    total: Line
    at_least: Line | None
    scopes: tuple[scope_totals.Total, ...]
    blends: tuple[Blend, ...]
    reconciliations: tuple[Reconciliation, ...]
    capital: CapitalGoods | None
    amortised: tuple[Amortised, ...]
    cost: Cost
    reported_cost: ReportedCost | None
    coverage: Coverage | None
    initiatives: tuple[Initiative, ...]
    grade_shares: Mapping[Grade, float]
    span_shares: Mapping[str, float]
    figures: tuple[Figure, ...]
    findings: tuple[Finding, ...]

    @property
    def beside(self) -> tuple[Line, ...]:
        """Lines that ``at_least`` sums, and ``total`` therefore lacks."""
        at = f"statement.{self.period.name}"
        held = {i for a in (self.at_least.amounts.values() if self.at_least else ()) for i in a.inputs}
        return tuple(x for x in self.lines if any(f"{at}.{x.key}.{name}" in held for name in x.amounts))

    @property
    def unattributed(self) -> tuple[Line, ...]:
        """What meters counted and no run explains, which is in no value of a label."""
        return tuple(x for x in self.lines if x.kind == "unattributed")


def statement(given: Given) -> Statement:
    """Return the statement of a period.

    Args:
        given: What it is made of.
    """
    prefix = f"statement.{given.period.name}"
    found = shares(given.activities, given.terms, period=given.period.name)
    meters = standing(given.metered, given.activities, given.terms, given.period.name)
    loads = loads_of(found, meters, prefix)
    market = market_rates(loads, given.terms, given.certificates, given.period, given.earlier)
    given = replace(given, power=with_bill_prices(given.power, meters))
    lines = _recorded_lines(found, given, market, prefix)
    wholes = [_metered(m, given, market, prefix) for _, m in sorted(meters.items())]
    rests = [rest_of(w, [x for x in lines if x.site_id == w.site_id], prefix) for w in wholes]
    counted = [*(x for x in lines if x.site_id not in meters), *wholes]
    true = [x for x in counted if not x.is_lower_bound]
    least = [x for x in counted if x.is_lower_bound]
    groups, parts, grouped = _groups(given, market, prefix)
    whole, at_least = total("total", true, prefix), total("total.at_least", least, prefix, "at_least")
    electricity = scope_lines(counted, given.terms, prefix)
    scopes = scope_totals.totals(
        scope_lines(counted, given.terms, prefix, upstream=True, capital=given.capital)
    )
    money = cost_of(counted, given.power, given.cost_lines, prefix)
    in_one = reported(money, given.reporting)
    every = [*lines, *wholes, *rests, *groups, *parts, whole, *([at_least] if least else [])]
    beside = reconciliations(given.metered, given.terms, found, [m.whole for m in meters.values()])
    figures = [f for x in every for f in x.figures(prefix)]
    figures += [f for s in (*found, *grouped) for f in measured(s.energies.figures(s.prefix))]
    figures += [f for t in scopes for f in t.figures(prefix)]
    figures += further(given.capital, given.amortised, market.blends, prefix)
    figures += [f for r in beside for f in r.figures(prefix)]
    figures += [f for b in given.power.bills for f in b.figures(prefix)]
    figures += [*money.figures(f"{prefix}.cost"), *initiative_figures(given.initiatives, prefix)]
    figures += [b.figure(prefix) for b in given.bills]
    figures += given.leaves
    if in_one is not None:
        figures += in_one.figures(f"{prefix}.cost", money)
    return Statement(
        period=given.period,
        entity=given.entity,
        heading=_heading(meters, lines),
        label=given.label,
        terms=given.terms,
        lines=tuple(sorted((*lines, *wholes, *rests), key=lambda x: (x.site_id, KINDS.index(x.kind)))),
        groups=tuple(groups),
        bills=given.bills,
        total=whole,
        at_least=at_least if least else None,
        scopes=scopes,
        blends=market.blends,
        reconciliations=beside,
        capital=given.capital,
        amortised=given.amortised,
        cost=money,
        reported_cost=in_one,
        coverage=given.coverage,
        initiatives=given.initiatives,
        grade_shares=_grades(given.activities),
        span_shares=scope_totals.span_shares(electricity),
        figures=_once(figures),
        findings=(
            *_findings(
                given,
                market,
                money,
                every,
                [r for w, r in zip(wholes, rests, strict=True) if not w.is_lower_bound],
            ),
            *boundaries.in_part(x.estimate("facility_kwh") for x in counted),
            *(in_one.findings if in_one is not None else ()),
        ),
    )


def _recorded_lines(found: Sequence[Share], given: Given, market: MarketRates, prefix: str) -> list[Line]:
    keyed: dict[str, list[Share]] = {}
    for share in found:
        keyed.setdefault(key_of_share(share), []).append(share)
    return [_recorded(key, held, given, market, prefix) for key, held in keyed.items()]


def _recorded(key: str, held: Sequence[Share], given: Given, market: MarketRates, prefix: str) -> Line:
    site = held[0].site_id
    line = recorded(
        key,
        held,
        given.terms[site],
        market.rates.get(site),
        prefix=prefix,
        price_ids=given.price_ids.get(site, {}),
    )
    return paid(line, given.power, prefix)


def _facility(whole: Metered, terms: SiteTerms, energy: Estimate) -> Estimate:
    return boundaries.facility_energy(energy, whole.boundary, terms.overheads)[0]


def _metered(held: Standing, given: Given, market: MarketRates, prefix: str) -> Line:
    """Return the line of a site as its meters counted it, with what its electricity costs."""
    site = held.terms.site_id
    line = _metered_line(held, market, prefix)
    return paid_by_meter(line, given.power, prefix, given.price_ids.get(site, {}))


def _metered_line(stands: Standing, market: MarketRates, prefix: str) -> Line:
    """Return the line of a site as its meters counted it: its months take the factors of the months.

    Months in which meters with gaps do not stand are there as runs recorded them.
    """
    whole, terms = stands.meter, stands.terms
    at, ids = f"{prefix}.{key_of(whole.site_id)}.metered", tuple(f"meter:{m}" for m in whole.meter_ids)
    ids = (*ids, *(f"{s.prefix}.facility_kwh" for s in stands.runs))
    formula = "sum of the readings, and overheads" + ("; at least" if stands.is_least else "")
    facility = Amount(stands.facility_kwh, formula, ids)
    kg = {
        m: emissions_at(terms.location.get(m), _facility(whole, terms.of(m), e))
        for m, e in whole.by_month.items()
    }
    factors = [terms.location[m].factor_id for m in whole.by_month if m in terms.location]
    inputs = (f"{at}.facility_kwh", *dict.fromkeys(factors))
    location = Amount(
        stands.bounded(add(kg.values(), "kg"), *(s.location for s in stands.runs)),
        "kg = sum over months of facility_kwh * factor of the month",
        (*inputs, *(i for i in terms.input_ids if stands.runs and i not in inputs)),
    )
    site = whole.site_id
    parts = [
        Part(
            it=stands.bounded(boundaries.it_energy(energy, whole.boundary, held.overheads)[0]),
            facility=stands.bounded(_facility(whole, held, energy)),
            location=stands.bounded(add((e for m, e in kg.items() if terms.of(m) is held), "kg")),
            terms=held,
        )
        for energy, held in metered_parts(whole, terms)
    ]
    parts += [
        Part(it=s.energies.it_kwh, facility=s.energies.facility_kwh, location=s.location, terms=s.terms)
        for s in stands.runs
    ]
    of_it = Amount(
        parts[0].it if len(parts) == 1 else add((p.it for p in parts), "kWh"), "of the readings", ids
    )
    amounts = amounts_of(of_it, facility, location, parts, market.rates.get(site), at)
    said = tuple(said_of(parts))
    return Line(key=f"{key_of(site)}.metered", site_id=site, kind="metered", amounts=amounts, findings=said)


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


def _heading(meters: Mapping[str, Standing], lines: Sequence[Line]) -> str:
    """Return what the energy is: a meter that feeds AI workloads alone covers no site."""
    covered = {site for site, m in meters.items() if m.meter.covers == "site"}
    if covered:
        return ALL_METERED if covered.issuperset({*(x.site_id for x in lines), *meters}) else METERED
    return AI_METERED if meters else RECORDED_ONLY


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
