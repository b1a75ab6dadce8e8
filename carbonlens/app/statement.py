"""Use case: the statement of a period, from a ledger, an inventory and the factors in force."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from carbonlens.accounting import cost, demand, metered
from carbonlens.accounting.boundaries import facility_energy
from carbonlens.accounting.charges import FIELDS
from carbonlens.accounting.cost import CostLine
from carbonlens.accounting.deliveries import Coverage
from carbonlens.accounting.embodied import CapitalGoods, capital_goods
from carbonlens.accounting.hardware_cost import hardware
from carbonlens.accounting.metered import Metered
from carbonlens.accounting.site_energy import SiteTerms, shares
from carbonlens.accounting.statement import Given, Statement, statement
from carbonlens.accounting.tariff import fixed_charges
from carbonlens.app.deliveries import delivered
from carbonlens.app.inventory import Kept, calendar_of, load_inventory
from carbonlens.app.ledger_care import span_of
from carbonlens.app.statement_hardware import Use, hardware_in_use, uses
from carbonlens.app.statement_ledger import PeriodReading
from carbonlens.app.statement_meters import meters_and_readings
from carbonlens.app.statement_terms import leaves
from carbonlens.domain.charge import Charge
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate, add, unknown
from carbonlens.domain.finding import Finding
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.domain.site import Meter
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.errors import SelectionError
from carbonlens.factors.store import FactorSet, open_factors
from carbonlens.ledger.activity import CHARGES
from carbonlens.ledger.calendar import FIRST_HOUR, LAST_HOUR, Calendar, Period
from carbonlens.ledger.opening import open_ledger
from carbonlens.ledger.store import Ledger

LABELS: Final = ("site", "team", "model")
"""What a statement may be split by, beside ``tag:NAME``."""


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """A statement, and what it was made with.

    Attributes:
        period: Its hours.
        is_draft: Whether the period is open.
        factors_sha256: Hash of the factor set in force.
        inventory: Folder of the inventory; ``None`` where there is none.
        example: Whether that is an invented example.
        runs_of: Runs of each group that figures name as ``runs.<...>``, where they were asked for.
    """

    statement: Statement
    period: Period
    is_draft: bool
    ledger: str
    factors_sha256: str
    inventory: str | None = None
    example: bool = False
    runs_of: Mapping[str, tuple[str, ...]] = {}


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
    said: tuple[Finding, ...] = ()

    @property
    def over_us(self) -> tuple[int, int]:
        """The part of the period that is over, as instants."""
        first, end = self.hours.first_hour * US_PER_HOUR, self.hours.end_hour * US_PER_HOUR
        return first, min(end, max(self.present_us, first))


def make_statement(  # noqa: PLR0913 - each is a choice of the one who asks
    period: str | None = None,
    *,
    by: str | None = None,
    inventory: str | Path | None = None,
    factors: str | Path | FactorSet | None = None,
    ledger: str | Path | None = None,
    listed: bool = False,
    now_us: int | None = None,
) -> Made:
    """Return the statement of a period.

    Args:
        period: ``2026Q3``, ``2026-08`` or ``2026``, fiscal; the last quarter that holds runs
            when ``None``.
        by: ``team``, ``model`` or ``tag:NAME`` for a line of each; sites always have theirs.
        inventory: The inventory folder; found as the command line finds it when ``None``.
        factors: The user's own factors, found likewise, or a whole set.
        ledger: The ledger's folder; found likewise.
        listed: Whether the runs are listed too, for ``explain``.
        now_us: The present, UTC microseconds; by the clock when ``None``.

    Raises:
        SelectionError: If the ledger holds no run of the period, or ``by`` is no label.
        UsageError: If the period is none.
        ConfigError, InputFileError: If inventory or factors cannot be read.
        MissingExtraError: If the ``analysis`` extra is not installed.
    """
    from carbonlens.app.compare import require_analysis

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
        return Made(
            statement=statement(_given(asked)),
            period=asked.hours,
            is_draft=asked.is_open,
            ledger=store.shown,
            factors_sha256=held.sha256,
            inventory=kept.folder,
            example=kept.inventory.terms.example,
            runs_of=_runs_of(asked) if listed else {},
        )


def _question(
    store: Ledger, kept: Kept, factors: FactorSet, period: str | None, by: str | None, present_us: int
) -> _Question:
    from carbonlens.ledger.closing import is_closed

    calendar = calendar_of(kept.inventory.terms)
    last_quarter, said = ("", ()) if period else _last_quarter(store, calendar)
    hours = calendar.period(period or last_quarter)
    first = calendar.rows(hours.first_hour, hours.first_hour + 1)[0].date
    last = _day(calendar.rows(hours.end_hour - 1, hours.end_hour)[0].date)
    return _Question(
        store=store,
        inventory=kept.inventory,
        factors=factors,
        calendar=calendar,
        hours=hours,
        by=by,
        present_us=present_us,
        is_open=not is_closed(store.path, span_of(hours.text, calendar)),
        months=_months(_day(first), last),
        start=_day(first).isoformat(),
        end=(last + timedelta(days=1)).isoformat(),
        said=said,
    )


def _given(asked: _Question) -> Given:
    inventory, store = asked.inventory, asked.store
    with store.query(asked.hours.text, asked.calendar) as view:
        read = PeriodReading(view, inventory, asked.factors, asked.hours)
        activities, findings = read.activities()
        if not activities:
            raise _no_runs(store, asked)
        grouped = read.activities(asked.by)[0] if asked.by else ()
        used = uses(view, inventory)
    terms = {name: place.terms for name, place in read.places.items()}
    charges, of_charges = store.rows(CHARGES)
    meters, readings, of_readings = meters_and_readings(store, inventory, charges)
    amortised, of_hardware = hardware_in_use(used, asked.factors, asked.start, asked.end)
    said = (*asked.said, *asked.factors.findings, *inventory.findings, *findings, *read.findings)
    return Given(
        period=demand.Period(name=asked.hours.text, months=asked.months, is_open=asked.is_open),
        entity=inventory.terms.entity,
        label=asked.by,
        activities=activities,
        grouped=grouped,
        terms=terms,
        metered=metered.metered(meters, readings, *asked.over_us),
        certificates=inventory.certificates,
        earlier=_earlier(asked, terms, meters, readings),
        price_ids={name: prices.ids for name, prices in read.prices.items()},
        capital=_capital(asked),
        amortised=amortised,
        cost_lines=_cost_lines(asked, charges, used),
        coverage=_coverage(asked),
        leaves=(*leaves(read.places.values()), *read.figures),
        findings=tuple(dict.fromkeys((*said, *of_charges, *of_readings, *of_hardware))),
    )


def _runs_of(asked: _Question) -> dict[str, tuple[str, ...]]:
    with asked.store.query(asked.hours.text, asked.calendar) as view:
        read = PeriodReading(view, asked.inventory, asked.factors, asked.hours)
        found = read.runs(None)
        return found | read.runs(asked.by) if asked.by else found


def _capital(asked: _Question) -> CapitalGoods | None:
    assets = asked.inventory.assets
    if not assets:
        return None
    return capital_goods(assets, asked.factors.rows, start=asked.start, end=asked.end)


def _cost_lines(asked: _Question, charges: Sequence[Charge], used: Sequence[Use]) -> tuple[CostLine, ...]:
    """Return fixed charges, own hardware, and the effective cost of bills that start in the period."""
    inventory = asked.inventory
    lines = [
        cost.electricity_fixed(tariff, float(months))
        for site in sorted({t.site for t in inventory.tariffs})
        for tariff, months in fixed_charges(inventory.tariffs, site, asked.months)
    ]
    for use in used:
        asset = use.asset
        if asset.cost is not None and asset.purchased < asked.end and (asset.retired or "9") >= asked.start:
            lines += _hardware(use, asked)
    first, end = asked.hours.first_hour * US_PER_HOUR, asked.hours.end_hour * US_PER_HOUR
    held = [c for c in charges if first <= c.start_us < end]
    kind: Final = "effective" if any(getattr(c, FIELDS["effective"]) for c in held) else "billed"
    return (*lines, *cost.cloud(held, kind))


def _hardware(use: Use, asked: _Question) -> tuple[CostLine, ...]:
    """Return the cost of an asset; per hour of use it is unknown where no run names the asset."""
    lines = hardware(use.asset, start=asked.start, end=asked.end, used_hours=use.hours or 0.0)
    if use.hours is not None or use.asset.used_hours is None:
        return lines
    return tuple(replace(x, amount=unknown(x.currency)) if x.name == "hardware" else x for x in lines)


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
        read = PeriodReading(view, asked.inventory, asked.factors, span)
        activities, _ = read.activities(priced=False)
    held = {**{n: p.terms for n, p in read.places.items()}, **terms}
    found = shares(activities, held, period=span.text)
    kwh = {
        site: add((s.energies.facility_kwh for s in found if s.site_id == site), "kWh")
        for site in {s.site_id for s in found}
    }
    by_meter = metered.metered(meters, readings, begin * US_PER_HOUR, asked.hours.first_hour * US_PER_HOUR)
    kwh |= {m.site_id: _facility(m, held[m.site_id]) for m in reversed(by_meter) if m.is_whole}
    months = tuple(m for m in _months(date(int(year), 1, 1), date(int(year), 12, 31)) if m < asked.months[0])
    return demand.Period(name=span.text, months=months), kwh


def _facility(one: Metered, terms: SiteTerms) -> Estimate:
    return facility_energy(one.energy, one.boundary, terms.overheads)[0]


def _coverage(asked: _Question) -> Coverage | None:
    due = [
        replace(d, months=tuple(m for m in d.months if m in asked.months)) for d in asked.inventory.deliveries
    ]
    due = [d for d in due if d.months]
    if not due:
        return None
    only = replace(asked.inventory, deliveries=tuple(due))
    return delivered(only, asked.store, now_us=asked.present_us)


def _last_quarter(store: Ledger, calendar: Calendar) -> tuple[str, tuple[Finding, ...]]:
    """Return the quarter of the last runs, and what must be said of runs later than any date."""
    import narwhals as nw

    with store.query() as view:
        hour = nw.col("hour_utc")
        dated = view.parts.filter(hour >= FIRST_HOUR, hour <= LAST_HOUR)
        (row,) = view.rows(dated.select(last=hour.max()))
        stray = view.rows(
            view.parts.filter((hour < FIRST_HOUR) | (hour > LAST_HOUR)).select("run_id").unique()
        )
    if row["last"] is None:
        raise SelectionError(
            "holds no run with a start", where=store.shown, mend="measure or import runs, or give --ledger"
        )
    return calendar.rows(row["last"], row["last"] + 1)[0].fiscal_quarter, _undatable(len(stray))


def _undatable(runs: int) -> tuple[Finding, ...]:
    if not runs:
        return ()
    text = f"{counted(runs, 'run')} with a time that no calendar has: in no quarter, perhaps nanoseconds"
    mend = (
        "find them: carbonlens ledger verify; correct each: carbonlens runs supersede RUN --by start_us=..."
    )
    return (Finding(code="CL512", severity="warning", message=text, mend=mend),)


def _no_runs(store: Ledger, asked: _Question) -> SelectionError:
    last, _ = _last_quarter(store, asked.calendar)
    return SelectionError(
        f"no runs in {asked.hours.text}", where=store.shown, mend=f"the last ones are in {last}"
    )


def _day(number: int) -> date:
    return date(number // 10000, number // 100 % 100, number % 100)


def _months(first: date, last: date) -> tuple[str, ...]:
    span = range(first.year * 12 + first.month - 1, last.year * 12 + last.month)
    return tuple(f"{i // 12:04}-{i % 12 + 1:02}" for i in span)
