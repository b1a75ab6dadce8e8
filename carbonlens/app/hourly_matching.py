"""Use case part: the hourly matching score of a statement, where certificates state their hours.

It stands beside the market-based figures of the period and changes none of them. The load of a
site is that of its meters where they are its activity data, hour by hour, else that of its runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from carbonlens.accounting import boundaries, metered
from carbonlens.accounting.hourly_matching import HourlyMatch, clean_by_hour, hourly_match
from carbonlens.accounting.instruments import fault, is_close
from carbonlens.accounting.market_based import Blend
from carbonlens.accounting.metered import Metered
from carbonlens.accounting.scopes import SCOPE_2, place_of
from carbonlens.accounting.site_energy import SiteTerms
from carbonlens.accounting.statement import Statement
from carbonlens.app.inventory import calendar_of
from carbonlens.app.statement_ledger import PeriodReading
from carbonlens.app.statement_meters import in_local_days, meters_and_readings
from carbonlens.domain.certificate import Certificate
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate, add, unknown
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.factors.store import FactorSet
from carbonlens.ledger.activity import CHARGES
from carbonlens.ledger.calendar import Period
from carbonlens.ledger.store import Ledger

NO_CERTIFICATE = "the inventory has no certificate"
NO_HOURS = "no certificate states its hours (certificate_hours*.csv)"
NONE_COUNTS = "no certificate that states its hours counts for the electricity of the period"


class Matched(msgspec.Struct, frozen=True, kw_only=True):
    """The hourly matching of one entity in one market.

    Attributes:
        prefix: Of its figures.
    """

    entity: str
    market: str
    prefix: str
    match: HourlyMatch


class Hourly(msgspec.Struct, frozen=True, kw_only=True):
    """The hourly matching of a statement.

    Attributes:
        matches: By entity and market, where instruments with hours count.
        why_none: Why there is none, in words; empty where there is one.
    """

    matches: tuple[Matched, ...] = ()
    why_none: str = ""
    findings: tuple[Finding, ...] = ()

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All of it as figures."""
        return tuple(f for m in self.matches for f in m.match.figures(m.prefix))


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where the load of each hour is found.

    Attributes:
        hours: The period.
        over_us: The part of it that is over, as instants.
    """

    store: Ledger
    inventory: Inventory
    factors: FactorSet
    hours: Period
    over_us: tuple[int, int]


def hourly_of(statement: Statement, source: Source) -> Hourly:
    """Return the hourly matching of a statement; the ledger is read only where certificates state hours.

    Args:
        statement: Of the period.
        source: Where the load of each hour is found.
    """
    certificates = source.inventory.certificates
    if not any(c.hourly_mwh for c in certificates):
        return Hourly(why_none=NO_HOURS if certificates else NO_CERTIFICATE)
    usable = {blend.factor_id: _usable(blend, certificates, source.hours) for blend in statement.blends}
    blends = [b for b in statement.blends if any(c.hourly_mwh for c in usable[b.factor_id])]
    if not blends:
        return Hourly(why_none=NONE_COUNTS)
    loads, findings = _loads(statement, source)
    matches = tuple(_matched(b, usable[b.factor_id], loads, statement) for b in blends)
    return Hourly(
        matches=matches,
        findings=tuple(dict.fromkeys((*findings, *(f for m in matches for f in m.match.findings)))),
    )


def _matched(
    blend: Blend,
    certificates: Sequence[Certificate],
    loads: Mapping[str, Mapping[int, Estimate]],
    statement: Statement,
) -> Matched:
    demand = blend.demand
    clean, used, left_out = clean_by_hour(certificates)
    parts: dict[int, list[Estimate]] = {}
    for name, hours in loads.items():
        if _is_of(statement.terms[name], blend):
            for hour, kwh in hours.items():
                parts.setdefault(hour, []).append(kwh)
    load = {hour: _whole(held) for hour, held in sorted(parts.items())}
    years = {month[:4] for month in demand.period.months}
    # A blend over two years has the mix of each; which hour takes which is not kept.
    residual = demand.rest.residual if len(years) == 1 else None
    residual_id = () if residual is None else (demand.rest.residual_id,)
    match = hourly_match(load, clean, residual, (*demand.input_ids, *residual_id), used)
    if residual is None:
        left_out = (*left_out, _no_mix(blend, len(years)))
    return Matched(
        entity=demand.entity,
        market=demand.market,
        prefix=f"statement.{statement.period.name}.{demand.entity}.{demand.market}.hourly",
        match=msgspec.structs.replace(match, findings=(*match.findings, *left_out)),
    )


def _whole(parts: Sequence[Estimate]) -> Estimate:
    """Return the load of an hour; of a lower bound nobody knows whether clean energy suffices for it."""
    kwh = add(parts, "kWh")
    return kwh if kwh.state == "known" else unknown("kWh")


def _usable(blend: Blend, certificates: Sequence[Certificate], hours: Period) -> list[Certificate]:
    """Return the instruments that count for a demand, those that state hours with those of the period."""
    demand = blend.demand
    found = []
    for one in certificates:
        same = (one.entity, one.market) == (demand.entity, demand.market)
        if not same or fault(one) is not None or not is_close(one, demand.period.months):
            continue
        held = {h: mwh for h, mwh in one.hourly_mwh.items() if hours.first_hour <= h < hours.end_hour}
        found.append(msgspec.structs.replace(one, hourly_mwh=held))
    return found


def _is_of(terms: SiteTerms, blend: Blend) -> bool:
    site, demand = terms.site, blend.demand
    if site is None or place_of(site)[0] != SCOPE_2:
        return False
    return (site.entity, site.market) == (demand.entity, demand.market)


def _loads(
    statement: Statement, source: Source
) -> tuple[dict[str, dict[int, Estimate]], tuple[Finding, ...]]:
    """Return facility kWh by site and UTC hour."""
    by_meter = {r.metered.site_id: r.metered for r in statement.reconciliations if r.is_activity}
    loads = _recorded(statement, source, by_meter)
    findings: list[Finding] = []
    if by_meter:
        charges = in_local_days(source.store.rows(CHARGES)[0], source.inventory)
        _, readings, _ = meters_and_readings(source.store, source.inventory, charges)
        for name, whole in by_meter.items():
            terms = statement.terms[name]
            loads[name], coarse = _metered(whole, terms, readings, source)
            findings += [_too_coarse(name, coarse)] if coarse else []
    return loads, tuple(findings)


def _recorded(
    statement: Statement, source: Source, by_meter: Mapping[str, Metered]
) -> dict[str, dict[int, Estimate]]:
    from carbonlens.ledger.frames import View

    with View(source.store.path, source.hours) as view:
        read = PeriodReading(view, source.inventory, source.factors, source.hours)
        activities, _ = read.activities("hour_utc", priced=False)
    parts: dict[str, dict[int, list[Estimate]]] = {}
    for one in activities:
        if one.site_id in by_meter or one.group is None:
            continue
        around = statement.terms[one.site_id].of(one.month).overheads
        kwh, _ = boundaries.facility_energy(one.energy, one.boundary, around)
        parts.setdefault(one.site_id, {}).setdefault(int(one.group), []).append(kwh)
    return {site: {h: add(held, "kWh") for h, held in hours.items()} for site, hours in parts.items()}


def _metered(
    whole: Metered, terms: SiteTerms, readings: Sequence[MeterReading], source: Source
) -> tuple[dict[int, Estimate], int]:
    """Return what meters of a site counted in each hour, and how many readings are too long to tell."""
    meters = [m for m in source.inventory.meters if m.meter_id in whole.meter_ids]
    start, end = source.over_us
    own = [r for r in readings if r.meter_id in whole.meter_ids and r.start_us < end and r.end_us > start]
    coarse = sum(r.end_us - r.start_us > US_PER_HOUR for r in own)
    buckets: dict[int, list[MeterReading]] = {}
    for reading in own if meters and not coarse else ():
        for hour in range(reading.start_us // US_PER_HOUR, -(-reading.end_us // US_PER_HOUR)):
            buckets.setdefault(hour, []).append(reading)
    found = {}
    for hour, month in _hours(source):
        held = metered.metered(meters, buckets.get(hour, ()), hour * US_PER_HOUR, (hour + 1) * US_PER_HOUR)
        one = next((m for m in held if m.is_whole and m.boundary == whole.boundary), None)
        found[hour] = unknown("kWh")
        if one is not None:
            around = terms.of(month).overheads
            found[hour] = boundaries.facility_energy(one.energy, one.boundary, around)[0]
    return found, coarse or (0 if meters else len(own))


def _hours(source: Source) -> Iterator[tuple[int, str]]:
    """Yield the hours of the period that are over, each with its month."""
    from carbonlens.app.statement_ledger import months_of

    months = months_of(source.hours, calendar_of(source.inventory.terms))
    at, last = months.first_hour, source.over_us[1] // US_PER_HOUR
    for month, count in zip(months.names, months.hours, strict=True):
        for hour in range(at, min(at + count, last)):
            yield hour, month
        at += count


def _no_mix(blend: Blend, years: int) -> Finding:
    why = "no residual mix is known" if years == 1 else "the period lies in several calendar years"
    return Finding(
        code="CL465",
        severity="info",
        message=f"emissions matched by the hour are unknown in {blend.demand.market}: {why}",
        mend="add the market's residual mix, or ask for a period within one calendar year",
        subject=blend.demand.market,
    )


def _too_coarse(site: str, readings: int) -> Finding:
    return Finding(
        code="CL465",
        severity="warning",
        message=f"{counted(readings, 'reading')} of the meters of {site} span more than an hour: its load of "
        "each hour is unknown, and so is the hourly matching score",
        mend="import hourly readings of the meter",
        subject=site,
    )
