"""Use case: the statement of a period, from a ledger, an inventory and the factors in force."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from carbonlens.accounting import demand, metered
from carbonlens.accounting.blend_years import loaded_months
from carbonlens.accounting.deliveries import Coverage
from carbonlens.accounting.embodied import CapitalGoods, capital_goods
from carbonlens.accounting.initiative_lines import in_effect
from carbonlens.accounting.money_years import of_electricity
from carbonlens.accounting.restatement import other_factors
from carbonlens.accounting.site_energy import SiteTerms, shares
from carbonlens.accounting.standing import standing
from carbonlens.accounting.statement import Given, Statement, statement
from carbonlens.app.deliveries import delivered
from carbonlens.app.hourly_matching import Hourly, Source, hourly_of
from carbonlens.app.inventory import Kept, calendar_of, changed_since, load_inventory
from carbonlens.app.ledger_care import span_of
from carbonlens.app.statement_bills import bills_of
from carbonlens.app.statement_cloud import rented
from carbonlens.app.statement_costs import (
    CostPeriod,
    bills_by_year,
    other_lines,
    power_of,
    price_figures,
    reporting_of,
    to_date,
    without_billed,
)
from carbonlens.app.statement_groups import bills_by_group, undeclared_clouds
from carbonlens.app.statement_hardware import hardware_in_use, uses
from carbonlens.app.statement_last import last_quarter
from carbonlens.app.statement_ledger import PeriodReading, month_of
from carbonlens.app.statement_meters import in_local_days, meters_and_readings
from carbonlens.app.statement_terms import leaves
from carbonlens.domain.estimate import Estimate, add
from carbonlens.domain.finding import Finding
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.domain.site import Meter
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.errors import SelectionError
from carbonlens.factors.store import FactorSet, open_factors
from carbonlens.ledger.activity import CHARGES
from carbonlens.ledger.calendar import Calendar, Period
from carbonlens.ledger.opening import open_ledger
from carbonlens.ledger.store import Ledger

LABELS: Final = ("site", "team", "model", "hardware", "zone", "study", "step")
"""What a statement may be split by, beside ``tag:NAME``."""


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """A statement, and what it was made with.

    Attributes:
        period: Its hours.
        is_draft: Whether the period is open.
        label: ``DRAFT`` while it is, ``ADJUSTED`` where records came after its close, else empty.
        factors_sha256: Hash of the factor set in force.
        inventory: Folder of the inventory; ``None`` where there is none.
        snapshots: Its files as they were, by name the id under which ``ledger close`` keeps each.
        inventory_sha256: Hash of all of them; ``None`` without an inventory.
        example: Whether that is an invented example.
        runs_of: Runs of each group that figures name as ``runs.<...>``, where they were asked for.
        hourly: How clean electricity matches the load by the hour, where certificates state hours.
        splits: The statement split by each further label that was asked for.
    """

    statement: Statement
    period: Period
    is_draft: bool
    ledger: str
    factors_sha256: str
    inventory: str | None = None
    snapshots: Mapping[str, str] = {}
    inventory_sha256: str | None = None
    example: bool = False
    runs_of: Mapping[str, tuple[str, ...]] = {}
    label: str = ""
    hourly: Hourly = Hourly()
    splits: Mapping[str, Statement] = {}


class _Question(msgspec.Struct, frozen=True, kw_only=True):
    """One statement that is asked for; ``start`` and ``end`` are local dates, the end exclusive."""

    store: Ledger
    inventory: Inventory
    factors: FactorSet
    calendar: Calendar
    hours: Period
    by: str | None
    present_us: int
    is_open: bool
    months: tuple[str, ...]
    start: str
    end: str
    embodied_source: str | None = None
    said: tuple[Finding, ...] = ()
    also: tuple[str, ...] = ()
    work: str | None = None

    @property
    def span_us(self) -> tuple[int, int]:
        """The period as instants, the end exclusive."""
        return self.hours.first_hour * US_PER_HOUR, self.hours.end_hour * US_PER_HOUR

    @property
    def years_us(self) -> dict[int, tuple[int, int]]:
        """Each calendar year within the period, as instants."""
        first, end = self.span_us
        years = sorted({int(month[:4]) for month in self.months})
        new = [self.calendar.period(f"{y}-01").first_hour * US_PER_HOUR for y in (*years, years[-1] + 1)]
        return {y: (max(first, new[i]), min(end, new[i + 1])) for i, y in enumerate(years)}

    @property
    def over_us(self) -> tuple[int, int]:
        """The part of the period that is over, as instants."""
        first, end = self.span_us
        return first, min(end, max(self.present_us, first))


def make_statement(  # noqa: PLR0913 - each is a choice of the one who asks
    period: str | None = None,
    *,
    by: str | None = None,
    also: Sequence[str] = (),
    work: str | None = None,
    inventory: str | Path | None = None,
    factors: str | Path | FactorSet | None = None,
    ledger: str | Path | None = None,
    embodied_source: str | None = None,
    listed: bool = False,
    now_us: int | None = None,
) -> Made:
    """Return the statement of a period.

    Args:
        period: ``2026Q3``, ``2026-08`` or ``2026``, fiscal; the last quarter that holds runs
            when ``None``.
        by: One of ``LABELS`` (a zone is as runs record it, else of their site) or ``tag:NAME`` for a line
            of each; sites always have theirs.
        also: Further labels to split it by, each in a statement of its own (``Made.splits``).
        work: By what classes of its work are told apart, where that is asked for next within
            ``one_opening`` (``read_work``): it is summed with the rest.
        inventory: The inventory folder; found as the command line finds it when ``None``.
        factors: The user's own factors, found likewise, or a whole set.
        ledger: The ledger's folder; found likewise.
        embodied_source: Name of the one source of embodied figures to take; that of ``reporting.toml``
            when ``None``, and without one all as a range.
        listed: Whether the runs are listed too, for ``explain``.
        now_us: The present, UTC microseconds; by the clock when ``None``.

    Raises:
        SelectionError: If the ledger holds no run of the period and no meter covers it, ``by`` is no
            label, or no hardware has a figure of ``embodied_source``.
        UsageError: If the period is none.
        ConfigError, InputFileError: If inventory or factors cannot be read.
        MissingExtraError: If the ``analysis`` extra is not installed.
    """
    from carbonlens.app.compare import require_analysis
    from carbonlens.ledger.closing import label_of

    require_analysis()
    if by is not None and by not in LABELS and not (by.startswith("tag:") and by != "tag:"):
        raise SelectionError(f"no label {by!r}", where="--by", mend=f"known: {', '.join(LABELS)}, tag:NAME")
    kept = load_inventory(inventory)
    held = factors if isinstance(factors, FactorSet) else open_factors(factors)
    present = time.time_ns() // 1000 if now_us is None else now_us
    with open_ledger(ledger) as store:
        if not store.exists:
            raise SelectionError("the ledger is not there", where=store.shown, mend="check --ledger")
        asked = _question(store, kept, held, period, None if by == "site" else by, present)
        asked = replace(asked, embodied_source=embodied_source or kept.inventory.terms.embodied_source)
        asked = replace(asked, also=tuple(also), work=work)
        given, others = _given(asked)
        whole, hourly = _with_hours(statement(given), asked)
        return Made(
            statement=whole,
            hourly=hourly,
            period=asked.hours,
            is_draft=asked.is_open,
            label=label_of(store.path, span_of(asked.hours.text, asked.calendar)),
            ledger=store.shown,
            factors_sha256=held.sha256,
            inventory=kept.folder,
            snapshots=kept.snapshots,
            inventory_sha256=kept.sha256,
            example=kept.inventory.terms.example,
            runs_of=_runs_of(asked) if listed else {},
            splits={one.label or "": statement(one) for one in others},
        )


def _with_hours(made: Statement, asked: _Question) -> tuple[Statement, Hourly]:
    """Return a statement with the figures of its hourly matching, and that itself."""
    hourly = hourly_of(
        made,
        Source(
            store=asked.store,
            inventory=asked.inventory,
            factors=asked.factors,
            hours=asked.hours,
            over_us=asked.over_us,
        ),
    )
    findings = tuple(dict.fromkeys((*made.findings, *hourly.findings)))
    return replace(made, figures=(*made.figures, *hourly.figures), findings=findings), hourly


def _question(
    store: Ledger, kept: Kept, factors: FactorSet, period: str | None, by: str | None, present_us: int
) -> _Question:
    from carbonlens.ledger.closing import factor_sets_of, inventories_of, is_closed

    calendar = calendar_of(kept.inventory.terms)
    newest, said = ("", ()) if period else last_quarter(store, calendar)
    hours = calendar.period(period or newest)
    first = calendar.rows(hours.first_hour, hours.first_hour + 1)[0].date
    last = _day(calendar.rows(hours.end_hour - 1, hours.end_hour)[0].date)
    span = span_of(hours.text, calendar)
    return _Question(
        store=store,
        inventory=kept.inventory,
        factors=factors,
        calendar=calendar,
        hours=hours,
        by=by,
        present_us=present_us,
        is_open=not is_closed(store.path, span),
        months=_months(_day(first), last),
        start=_day(first).isoformat(),
        end=(last + timedelta(days=1)).isoformat(),
        said=(
            *said,
            *changed_since(inventories_of(store.path, span), kept),
            *other_factors(factor_sets_of(store.path, span), factors.sha256),
        ),
    )


def _given(asked: _Question) -> tuple[Given, list[Given]]:
    """Return what the statement is made of, and the same split by each further label."""
    inventory, store = asked.inventory, asked.store
    stored, of_charges = store.rows(CHARGES)
    charges = in_local_days(stored, inventory)
    dates = (asked.start, asked.end)
    bills = bills_of(store, inventory, charges, asked.span_us, asked.over_us, dates)
    bills = bills_by_year(bills, charges, asked.years_us)
    meters, readings, of_readings = meters_and_readings(store, inventory, charges)
    months = month_of(asked.calendar)
    counted_by_meters = metered.each_once(metered.metered(meters, readings, *asked.over_us, months))
    with store.query(asked.hours.text, asked.calendar) as view:
        read = PeriodReading(view, inventory, asked.factors, asked.hours, _loaded(meters, counted_by_meters))
        rents = rented(view, inventory, asked.span_us, bills.time, read.sites)
        read.without_electricity(undeclared_clouds(bills, read, inventory) | rents.places)
        if not read.sites and not counted_by_meters:
            raise _no_runs(store, asked)
        labels = dict.fromkeys((None, asked.by, *asked.also))
        read.prepare(labels, asked.work)
        activities, findings = read.activities()
        grouped = read.activities(asked.by)[0] if asked.by else ()
        further = {label: read.activities(label)[0] for label in asked.also}
        used = uses(view, inventory)
    terms = {name: place.terms for name, place in read.places.items()}
    period = CostPeriod(start=asked.start, end=asked.end, months=asked.months)
    period, of_days = to_date(period, inventory, asked.calendar, asked.over_us)
    amortised, of_hardware = hardware_in_use(
        used, asked.factors, period.start, period.end, asked.embodied_source
    )
    stands = standing(counted_by_meters, activities, terms, asked.hours.text)
    power, of_power = power_of(bills, stands, readings, read.prices, asked.over_us)
    power = replace(power, by_year=of_electricity(activities, counted_by_meters))
    lines = other_lines(inventory, bills, rents.uses, used, period)
    of_prices = without_billed(read.findings, power)
    said = (*asked.said, *asked.factors.findings, *inventory.findings, *findings, *of_prices, *of_days)
    made = Given(
        period=demand.Period(name=asked.hours.text, months=asked.months, is_open=asked.is_open),
        entity=inventory.terms.entity,
        label=asked.by,
        activities=activities,
        grouped=grouped,
        terms=terms,
        metered=counted_by_meters,
        certificates=inventory.certificates,
        earlier=_earlier(asked, terms, meters, readings),
        price_ids={name: prices.ids for name, prices in read.prices.items()},
        capital=_capital(asked),
        amortised=amortised,
        power=power,
        cost_lines=lines,
        reporting=reporting_of(inventory, period),
        coverage=_coverage(asked),
        bills=bills_by_group(asked.by, bills, read),
        initiatives=in_effect(inventory.initiatives, asked.start, asked.end),
        leaves=(*leaves(read.places.values()), *read.figures, *price_figures(lines, inventory)),
        findings=tuple(
            dict.fromkeys(
                (*said, *of_charges, *of_readings, *of_hardware, *bills.findings, *rents.findings, *of_power)
            )
        ),
    )
    others = [
        replace(made, label=label, grouped=held, bills=bills_by_group(label, bills, read))
        for label, held in further.items()
    ]
    return made, others


def _loaded(meters: Sequence[Meter], counted: Sequence[metered.Metered]) -> dict[str, tuple[str, ...]]:
    """Return the sites that have meters, with the months in which these counted anything."""
    found: dict[str, tuple[str, ...]] = {m.site: () for m in meters}
    for one in counted:
        found[one.site_id] = (*found.get(one.site_id, ()), *one.by_month)
    return found


def _runs_of(asked: _Question) -> dict[str, tuple[str, ...]]:
    with asked.store.query(asked.hours.text, asked.calendar) as view:
        read = PeriodReading(view, asked.inventory, asked.factors, asked.hours)
        found = read.runs(None)
        return found | read.runs(asked.by) if asked.by else found


def _capital(asked: _Question) -> CapitalGoods | None:
    assets = asked.inventory.assets
    if not assets:
        return None
    return capital_goods(
        assets, asked.factors.rows, start=asked.start, end=asked.end, source=asked.embodied_source
    )


def _earlier(
    asked: _Question,
    terms: Mapping[str, SiteTerms],
    meters: Sequence[Meter],
    readings: Sequence[MeterReading],
) -> tuple[demand.Period, Mapping[str, Estimate]] | None:
    """Return what the period's first calendar year holds before it: it takes from instruments first."""
    year = asked.start[:4]
    begin = asked.calendar.period(f"{year}-01").first_hour
    if not asked.inventory.certificates or begin >= asked.hours.first_hour:
        return None
    span = Period(begin, asked.hours.first_hour, f"{year} before {asked.hours.text}")
    from carbonlens.ledger.frames import View

    with View(asked.store.path, span) as view:
        read = PeriodReading(view, asked.inventory, asked.factors, span, dict.fromkeys(terms, ()))
        activities, _ = read.activities(priced=False)
    # Of their own months: what holds in the period never counts before it.
    held = {n: p.terms for n, p in read.places.items()}
    # By month, as statements of these months claimed it: metered months as they were metered.
    found = shares(activities, held, period=span.text)
    kwh = {
        site: add((s.energies.facility_kwh for s in found if s.site_id == site), "kWh")
        for site in {s.site_id for s in found}
    }
    over = begin * US_PER_HOUR, asked.hours.first_hour * US_PER_HOUR
    by_meter = metered.each_once(metered.metered(meters, readings, *over, month_of(asked.calendar)))
    stands = standing(by_meter, activities, held, span.text)
    kwh |= {site: one.facility_kwh for site, one in stands.items()}
    loads = (*(s.months for s in found), *(one.months for one in stands.values()))
    months = loaded_months(loads) or (f"{year}-01",)
    return demand.Period(name=span.text, months=months), kwh


def _coverage(asked: _Question) -> Coverage | None:
    due = [
        replace(d, months=tuple(m for m in d.months if m in asked.months)) for d in asked.inventory.deliveries
    ]
    due = [d for d in due if d.months]
    if not due:
        return None
    only = replace(asked.inventory, deliveries=tuple(due))
    return delivered(only, asked.store, now_us=asked.present_us)


def _no_runs(store: Ledger, asked: _Question) -> SelectionError:
    last, _ = last_quarter(store, asked.calendar)
    return SelectionError(
        f"no runs in {asked.hours.text}", where=store.shown, mend=f"the last ones are in {last}"
    )


def _day(number: int) -> date:
    return date(number // 10000, number // 100 % 100, number % 100)


def _months(first: date, last: date) -> tuple[str, ...]:
    span = range(first.year * 12 + first.month - 1, last.year * 12 + last.month)
    return tuple(f"{i // 12:04}-{i % 12 + 1:02}" for i in span)
