"""Use case part: the work of a period by functional unit, class and site, as a bridge takes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import msgspec

from carbonlens.accounting import formulas
from carbonlens.accounting.propagation import through
from carbonlens.accounting.site_energy import Activity, Share, SiteTerms, shares
from carbonlens.accounting.statement import Statement
from carbonlens.accounting.statement_lines import PAID, Line
from carbonlens.app.statement import Made
from carbonlens.app.statement_ledger import PeriodReading
from carbonlens.compare.drivers_bridge import Side
from carbonlens.compare.drivers_names import Key, Marks
from carbonlens.compare.drivers_rates import rate_of
from carbonlens.domain.drivers import NO_UNIT, Measure
from carbonlens.domain.estimate import Estimate, add, unknown
from carbonlens.domain.inventory import Inventory
from carbonlens.factors.store import FactorSet
from carbonlens.ledger.calendar import Calendar
from carbonlens.ledger.queries import TAG
from carbonlens.ledger.schema import unescaped
from carbonlens.ledger.store import Ledger

if TYPE_CHECKING:
    from carbonlens.ledger.settling import Settled

AMOUNTS: Final[Mapping[Measure, tuple[str, str]]] = {
    "energy": ("facility_kwh", "kWh"),
    "carbon-location": ("location_kg", "kg"),
    "carbon-market": ("market_kg", "kg"),
}
"""Name and unit of a measure's amount in a statement; that of cost depends on the currency."""

NO_NAME: Final = "(none)"
"""Stands for the class of runs that state no value of the label."""

_MARKS: Final = ("workload", "model", "hardware")
_TELLING: Final = {"workload", "model"}

Place = tuple[str, str, str]
"""Unit, class and site."""


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What a ledger holds of a period.

    Attributes:
        made: The statement, of which the work is a part.
        shares: Energies by unit, class and site.
        units: Work done, likewise, of the runs whose energy is a true figure; none where none is counted.
        least_units: The same of the runs whose energy is a lower bound.
        marks: What tells a class of work beside its name.
        silent: Runs that state a unit and no number of it, by unit and class.
        runs: Ids by unit and class, where they were asked for.
    """

    made: Made
    shares: Mapping[Place, tuple[Share, ...]]
    units: Mapping[Place, Decimal]
    least_units: Mapping[Place, Decimal] = {}
    marks: Marks
    silent: Mapping[Key, int] = {}
    runs: Mapping[Key, tuple[str, ...]] = {}

    @property
    def statement(self) -> Statement:
        """The statement."""
        return self.made.statement

    @property
    def currencies(self) -> tuple[str, ...]:
        """Currencies in which its electricity is paid."""
        total, least = self.statement.total, self.statement.at_least
        names = [*total.amounts, *(least.amounts if least is not None else ())]
        return tuple(dict.fromkeys(n.removeprefix(PAID) for n in names if n.startswith(PAID)))


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What work is read with: the ledger, and what a statement of it was made with."""

    store: Ledger
    inventory: Inventory
    factors: FactorSet
    calendar: Calendar


def read_work(
    made: Made, given: Given, by: str, where: Mapping[str, str] = {}, *, listed: bool = False
) -> Work:
    """Return the work of a statement's period.

    Args:
        made: The statement.
        given: What it was made with.
        by: What classes of work are told apart by.
        where: Labels and tags of the runs that are asked for; all when empty.
        listed: Whether the runs are listed too, for ``explain``.
    """
    text = made.period.text
    clouds = {x.site_id for x in made.statement.lines if x.is_in_cloud}
    with given.store.query(text, given.calendar) as view:
        read = PeriodReading(view, given.inventory, given.factors, made.period)
        read.without_electricity(clouds)
        held: dict[Place, list[tuple[Decimal, Activity]]] = {}
        for unit, count, activity in read.work(by, where):
            key = (unit or NO_UNIT, activity.group or NO_NAME, activity.site_id)
            held.setdefault(key, []).append((count or Decimal(0), activity))
        terms = {name: place.terms for name, place in read.places.items()}
        marks, silent, runs = _told(read.settled, by, where, listed=listed)
    found: dict[Place, tuple[Share, ...]] = {}
    units: tuple[dict[Place, Decimal], dict[Place, Decimal]] = ({}, {})
    for place, counted_work in held.items():
        for is_least, own in enumerate(_by_kind(counted_work, terms, text)):
            count = sum((c for c, _ in own), Decimal(0))
            # A run of no units counts no work, whatever unit it names.
            key = place if count else (NO_UNIT, *place[1:])
            if own:
                found[key] = (*found.get(key, ()), *(s for _, s in own))
            if key[0] != NO_UNIT:
                units[is_least][key] = count
    return Work(
        made=made,
        shares=found,
        units=units[False],
        least_units=units[True],
        marks=marks,
        silent=silent,
        runs=runs,
    )


def _by_kind(
    held: Iterable[tuple[Decimal, Activity]], terms: Mapping[str, SiteTerms], period: str
) -> tuple[list[tuple[Decimal, Share]], list[tuple[Decimal, Share]]]:
    """Return the shares of one class at one site with their units: true figures, and lower bounds.

    Units stand by the energy that did them: the whole count beside a part of the energy would be
    read as less energy per unit.
    """
    groups: dict[tuple[str, str], list[tuple[Decimal, Activity]]] = {}
    for count, activity in held:
        variant = terms[activity.site_id].variant(activity.month)
        groups.setdefault((activity.boundary or "", variant), []).append((count, activity))
    true: list[tuple[Decimal, Share]] = []
    least: list[tuple[Decimal, Share]] = []
    for _, group in sorted(groups.items()):
        (share,) = shares((a for _, a in group), terms, period=period)
        (least if share.is_lower_bound else true).append((sum((c for c, _ in group), Decimal(0)), share))
    return true, least


def without_it(works: Iterable[Work]) -> frozenset[str]:
    """Return sites of which IT energy is not told in a period: PUE is not told apart there in any.

    Args:
        works: Of both periods.
    """
    return frozenset(
        key[2]
        for work in works
        for key, held in work.shares.items()
        if any(s.energies.it_kwh.value is None for s in held)
    )


def sides(
    work: Work,
    measure: Measure,
    currency: str | None = None,
    *,
    is_least: bool = False,
    flat: frozenset[str] = frozenset(),
) -> dict[Place, Side]:
    """Return the rows of a period of true figures, or of lower bounds.

    Args:
        work: Of the period.
        measure: What is explained.
        currency: Of a cost.
        is_least: Whether those of lower bounds.
        flat: Sites at which facility energy stands for IT energy.
    """
    found = {}
    lines = {(x.site_id, x.kind): x for x in work.statement.lines}
    for key, held in work.shares.items():
        own = [s for s in held if s.is_lower_bound == is_least]
        metered = lines.get((key[2], "metered"))
        # What a meter counted stands for all runs there; those known in another way are in its line.
        if not own or (metered is not None and metered.is_lower_bound != is_least):
            continue
        line = lines.get((key[2], "at_least" if is_least else "recorded"))
        amount = _amount(own, line, measure, currency)
        if measure == "cost" and amount.value is None and line is not None and line.is_in_cloud:
            # The price of a cloud holds it: its lines stand beside the electricity.
            continue
        # Units of the other kind of figures stand beside energy that is not in these.
        count = (work.least_units if is_least else work.units).get(key)
        facility = add((s.energies.facility_kwh for s in own), "kWh")
        found[key] = Side(
            units=float(count) if count else None,
            it_kwh=facility if key[2] in flat else add((s.energies.it_kwh for s in own), "kWh"),
            facility_kwh=facility,
            amount=amount,
        )
    return found


def _amount(own: Sequence[Share], line: Line | None, measure: Measure, currency: str | None) -> Estimate:
    facility = add((s.energies.facility_kwh for s in own), "kWh")
    if measure == "energy":
        return facility
    if measure == "carbon-location":
        return add((s.location for s in own), "kg")
    unit = currency or "kg"
    if measure == "cost" and any(unit in s.costs for s in own):
        return add((s.costs.get(unit, unknown(unit)) for s in own if unit in s.costs or not s.costs), unit)
    name = f"{PAID}{unit}" if measure == "cost" else "market_kg"
    if line is None or name not in line.amounts:
        return unknown(unit)
    rate = rate_of(line.estimate(name), line.estimate("facility_kwh"))
    return through(formulas.emissions_kg, facility, rate, unit=unit)


def leads(
    first: Work, last: Work, same: Mapping[str, str], amount: str
) -> dict[tuple[str, str, int], tuple[str, ...]]:
    """Return what the figures of each class of work rest on, by unit, class and period (0 the earlier).

    Args:
        first: The earlier period.
        last: The later one.
        same: Names after by the names before.
        amount: Name in a statement of what is explained, whose factors or prices it rests on.
    """
    found: dict[tuple[str, str, int], list[str]] = {}
    for t, work in enumerate((first, last)):
        lines = {x.site_id: x for x in work.statement.lines if x.kind in ("recorded", "at_least")}
        for unit, name, site in work.shares:
            shown = same.get(name, name) if t == 0 else name
            held = found.setdefault((unit, shown, t), [])
            held.append(runs_id(work, unit, name))
            line, terms = lines.get(site), work.statement.terms.get(site)
            inputs = line.amounts[amount].inputs if line is not None and amount in line.amounts else ()
            held += [i for i in inputs if not i.startswith(("statement.", "energy.", "runs."))]
            for around in (t.overheads for t in terms.variants) if terms is not None else ():
                held += [around.pue_id] if around.pue is not None else []
                held += [around.host_id] if around.host is not None else []
    return {key: tuple(dict.fromkeys(held)) for key, held in found.items()}


def runs_id(work: Work, unit: str, name: str) -> str:
    """Return the id of the list of runs of a class of work."""
    return f"runs.drivers.{work.made.period.text}.{unit}.{name}"


def _told(
    settled: Settled, by: str, where: Mapping[str, str], *, listed: bool
) -> tuple[Marks, dict[Key, int], dict[Key, tuple[str, ...]]]:
    """Return marks of each class of work, runs without a number of units, and the runs."""
    import narwhals as nw

    from carbonlens.ledger import queries
    from carbonlens.ledger.settling import ask

    names = [n for n in _MARKS if n != by]

    def found(name: str, build: Callable[[Any], Any]) -> list[dict[str, Any]]:
        question = (f"work: {name}", by, tuple(sorted(where.items())))
        return ask(
            settled, question, lambda parts: build(queries.labelled(queries.matching(parts, where), [by]))
        )

    def without_units(parts: Any) -> Any:  # noqa: ANN401 - a frame
        first = parts.filter(nw.col("is_first"), nw.col("units").is_null(), ~nw.col("unit").is_null())
        return first.group_by("unit", by).agg(runs=nw.len())

    marks: dict[Key, set[str]] = {}
    for row in found("marks", lambda parts: parts.select(*dict.fromkeys(["unit", by, *names])).unique()):
        told = {n: row[n] for n in names if row[n]}
        if told.keys() & _TELLING:
            marks.setdefault(_key(row, by), set()).add(" ".join(f"{n} {v}" for n, v in told.items()))
    silent = {_key(row, by): int(row["runs"]) for row in found("without units", without_units)}
    runs: dict[Key, list[str]] = {}
    if listed:
        for row in found("runs", lambda parts: parts.select("unit", by, "run_id").unique().sort("run_id")):
            runs.setdefault(_key(row, by), []).append(row["run_id"])
    return (
        {key: frozenset(held) for key, held in marks.items()},
        silent,
        {key: tuple(held) for key, held in runs.items()},
    )


def _key(row: Mapping[str, object], by: str) -> Key:
    name = str(row[by] or NO_NAME)
    # The column of tags has what ends one escaped.
    return str(row["unit"] or NO_UNIT), unescaped(name) if by.startswith(TAG) else name
