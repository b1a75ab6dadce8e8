"""Use case part: what a ledger holds of a period, summed by place with the factors of each hour."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

import msgspec

from carbonlens.accounting.metered import MonthOf
from carbonlens.accounting.site_energy import UNSTATED, Activity
from carbonlens.app.explain_items import named_by_study
from carbonlens.app.inventory import calendar_of
from carbonlens.app.statement_held import Held
from carbonlens.app.statement_prices import PricedHours
from carbonlens.app.statement_sums import ASKED, BY, LABEL, MONTH, Sums, alike, text_or_none, told
from carbonlens.app.statement_terms import Months, PlaceTerms, sites_of
from carbonlens.domain.estimate import unknown
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.factors.store import FactorSet
from carbonlens.ledger.calendar import Calendar, Period
from carbonlens.ledger.rate_arrays import HourRates

if TYPE_CHECKING:
    from decimal import Decimal

    from carbonlens.ledger.accounts import Account, Total
    from carbonlens.ledger.frames import View
    from carbonlens.ledger.rates import Name, Rates
    from carbonlens.ledger.selecting import Kind
    from carbonlens.ledger.settling import Settled

_UNASKED: Final = frozenset(
    {"parent_run_id", "supersedes", "counts", "part", "record_sha256", "row_schema", "file", "end_us"}
    | {"start_us", "duration_s", "emissions_reported_kg", "cost_amount", "cost_currency"}
)
"""Columns of parts that no question about a period is of."""


def months_of(hours: Period, calendar: Calendar) -> Months:
    """Return the months of a period in the reporting time zone, with their hours."""
    counts: dict[str, int] = {}
    at = hours.first_hour
    while at < hours.end_hour:
        name, after = _month_at(at, calendar)
        end = min(after, hours.end_hour)
        counts[name] = counts.get(name, 0) + end - at
        at = end
    return Months(tuple(counts), tuple(counts.values()), hours.first_hour)


def month_of(calendar: Calendar) -> MonthOf:
    """Return what tells the month of an instant, as ``months_of`` does of hours."""
    of_hour = lru_cache(maxsize=4096)(lambda hour: _month_at(hour, calendar))

    def found(at_us: int) -> tuple[str, int]:
        name, after = of_hour(at_us // US_PER_HOUR)
        return name, after * US_PER_HOUR

    return found


def _month_at(hour: int, calendar: Calendar) -> tuple[str, int]:
    """Return the month of an hour, and the first hour of the next one."""
    (row,) = calendar.rows(hour, hour + 1)
    year, month = divmod(row.month, 100)
    after = f"{year + month // 12:04}-{month % 12 + 1:02}"
    # Where a clock is set back over a month's end, the next begins in an hour that is of this one still.
    return f"{year:04}-{month:02}", max(calendar.period(after).first_hour, hour + 1)


def _name_of(month: object) -> str:
    return f"{month // 100:04}-{month % 100:02}" if isinstance(month, int) else ""


def _with_month(parts: Any, months: Months, calendar: Calendar) -> Any:  # noqa: ANN401 - a frame
    """Return parts with their month of use: that of UTC as it is stored, else by its first hours."""
    import narwhals as nw

    if calendar.reporting_timezone == "UTC":
        return parts.with_columns(nw.col("month_utc").alias(MONTH))
    hour, begins = nw.col("hour_utc"), accumulate(months.hours, initial=months.first_hour)
    end = months.first_hour + sum(months.hours)
    numbers = [int(name.replace("-", "")) for name in months.names]
    # Side by side, not one within the other: a clock that fell back to 2000 makes hundreds of months.
    begun = [
        nw.when((hour >= at) & (hour < end)).then(nw.lit(n)) for at, n in zip(begins, numbers, strict=False)
    ]
    return parts.with_columns(nw.max_horizontal(*begun).alias(MONTH))


class PeriodReading:
    """The runs of a period by place, with what holds at each.

    Attributes:
        places: Terms by site.
        prices: Prices of electricity by site.
    """

    def __init__(
        self,
        view: View,
        inventory: Inventory,
        factors: FactorSet,
        hours: Period,
        metered: Mapping[str, Sequence[str]] | None = None,
        *,
        kinds: Sequence[Kind] = (),
    ) -> None:
        """Find the places that the runs name.

        Args:
            view: Of the period.
            inventory: Which declares sites and tariffs.
            factors: The rows in force.
            hours: The period.
            metered: Sites with energy of their own, where perhaps no run names them, and its months.
            kinds: Of the runs that are read, as of ``selecting.of_kinds``; all when empty.
        """
        from carbonlens.ledger import queries
        from carbonlens.ledger.rate_arrays import placed

        self._view = view
        self._hours = hours
        calendar = calendar_of(inventory.terms)
        months = months_of(hours, calendar)
        held = Held(view, inventory, factors, hours, months)
        self._held = held

        def parts() -> Any:  # noqa: ANN401 - a frame
            return _with_month(placed(queries.roots(view.parts, view.orphans)), months, calendar)

        self._parts = held.of_rows("parts", parts)
        self._kinds, self._of = tuple(kinds), ()
        rows = held.of_rows("where", self._where)
        if kinds:
            rows = self._narrowed(rows)
        self.sites, zones = sites_of({(row["site"], row["zone"]) for row in rows}, inventory)
        loaded: dict[str, set[str]] = {name: set(held) for name, held in (metered or {}).items()}
        for row in rows:
            loaded.setdefault(self.sites[row["site"], row["zone"]], set()).add(_name_of(row[MONTH]))
        names = [*zones, *sorted({*(metered or ()), *(m.site for m in inventory.meters)} - set(zones))]
        self.places: dict[str, PlaceTerms] = {
            name: held.terms(name, zones.get(name, ()), months.of_load(loaded.get(name, ())))
            for name in names
        }
        self.prices: dict[str, PricedHours] = {
            name: held.priced(name, place.place) for name, place in self.places.items()
        }

    def _where(self) -> list[dict[str, Any]]:
        """Return site, zone and month of the runs."""
        return self._view.rows(self._parts.select("site", "zone", MONTH).unique())

    def _narrowed(self, every: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Read runs of some kinds alone; return site, zone and month of these.

        Where they are of the places of all runs, the same holds for them: they are taken out of what
        was put down of all. What holds at a place may be another thing where they are not.

        Args:
            every: Site, zone and month of all runs.
        """
        from carbonlens.ledger.selecting import of_kinds

        whole, self._parts = self._parts, self._parts.filter(of_kinds(self._kinds))
        rows = self._where()
        if {(r["site"], r["zone"]) for r in rows} == {(r["site"], r["zone"]) for r in every}:
            self._parts = whole
        else:
            self._kinds, self._of = (), self._kinds
        return rows

    def without_electricity(self, sites: Iterable[str]) -> None:
        """Leave electricity unpriced at sites where something else holds it; before any sum is taken.

        Args:
            sites: Their names.
        """
        self.prices |= {name: PricedHours(is_in_cloud=True) for name in sites if name in self.prices}

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Tariffs and prices that were used."""
        return tuple(f for p in self.prices.values() for f in p.figures)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found about prices."""
        return tuple(f for p in self.prices.values() for f in p.findings)

    def activities(
        self, label: str | None = None, *, priced: bool = True
    ) -> tuple[tuple[Activity, ...], tuple[Finding, ...]]:
        """Return the energy by site, month and boundary, split by a label where one is given.

        Args:
            label: A label of the queries, or ``tag:NAME``.
            priced: False for the energy alone.
        """
        account = self._account(Sums(label=label, priced=priced))
        found = tuple(self._activity(total, label) for total in account.totals)
        return found, account.findings

    def work(
        self, label: str, where: Mapping[str, str] = {}
    ) -> tuple[tuple[str | None, Decimal | None, Activity], ...]:
        """Return the energy of each class of work, its group, with functional unit and units done.

        Args:
            label: What classes are told apart by.
            where: Labels and tags of the runs that are asked for; all when empty.
        """
        account = self._account(Sums(label=label, where=tuple(sorted(where.items())), with_unit=True))
        return tuple(
            (text_or_none(t.group["unit"]), t.units, self._activity(t, label)) for t in account.totals
        )

    def prepare(self, labels: Iterable[str | None], work: str | None = None) -> None:
        """Sum by several labels at once, which takes little longer than by one; each is asked for later.

        Args:
            labels: As of ``activities``, with a price.
            work: As of ``work``, of all runs.
        """
        texts = {n for n, kind in self.settled.columns if kind == "VARCHAR"}
        sums = [Sums(label=label) for label in labels]
        sums += [] if work is None else [Sums(label=work, with_unit=True)]
        fitting = [s for s in dict.fromkeys(sums) if s.label is None or s.label in texts]
        for one, account in zip(fitting, self._summed(fitting), strict=True):
            self._held.prepared[self._key_of(one)] = account

    def _account(self, asked: Sums) -> Account:
        found = self._held.prepared.pop(self._key_of(asked), None)
        return self._summed([asked])[0] if found is None else found

    def _key_of(self, asked: Sums) -> Hashable:
        return asked, self._unpriced, self._kinds, self._of

    def _summed(self, sums: Sequence[Sums]) -> list[Account]:
        """Return the sums by site, zone and month, and by unit and label where these are asked for.

        Whatever is asked for has the same columns, empty where it is not: so it is the same SQL. Of
        energy without a rate nothing is told: a statement says it by place.

        Args:
            sums: Of the same runs; of several, labels are texts.
        """
        from carbonlens.ledger import accounts
        from carbonlens.ledger.settling import derive

        settled, rates = self._rated(priced=sums[0].priced)

        def made_alike(parts: Any) -> Any:  # noqa: ANN401 - a frame
            made = alike(self._chosen(parts), sums, self._view)
            # What no sum is made of would be bound with each of its steps.
            held = made.collect_schema().names()
            return made.select(*(n for n in dict.fromkeys((*BY, *accounts.needed(rates))) if n in held))

        rows = derive(settled, ("activities", tuple(sums), self._kinds), made_alike)
        whole = accounts.account_over(rows, rates, BY, unrated=False)
        # What is found of the runs is the same by whatever label they are summed.
        return [
            msgspec.structs.replace(whole, totals=tuple(t for t in whole.totals if t.group[ASKED] == n))
            for n in range(len(sums))
        ]

    def _chosen(self, parts: Any) -> Any:  # noqa: ANN401 - a frame
        """Return those of settled parts that are of the runs which are read."""
        from carbonlens.ledger.selecting import of_kinds

        return parts.filter(of_kinds(self._kinds)) if self._kinds else parts

    @property
    def settled(self) -> Settled:
        """The runs with their rates, put down once for all that is asked of them."""
        return self._rated(priced=True)[0]

    def _rated(self, *, priced: bool) -> tuple[Settled, list[Rates]]:
        from carbonlens.ledger import queries
        from carbonlens.ledger.settling import settle

        def made() -> tuple[Settled, list[Rates]]:
            names: tuple[Name, ...] = ("emissions", "cost") if priced else ()
            rates = [rate for rate in map(self._rate, names) if rate is not None]
            # Left out first: every step of a query is bound with all columns there are.
            kept = [n for n in self._parts.collect_schema().names() if n not in _UNASKED]
            return settle(self._view, queries.rated(self._parts.select(*kept), rates)), rates

        # Sites at which electricity is left unpriced: with the rest of what is held they make the rates.
        key = ("rated", priced, self._unpriced, self._of)
        found: tuple[Settled, list[Rates]] = self._held.of_rows(key, made)
        return found

    @property
    def _unpriced(self) -> frozenset[str]:
        return frozenset(name for name, prices in self.prices.items() if prices.is_in_cloud)

    def runs(self, label: str | None = None) -> dict[str, tuple[str, ...]]:
        """Return the runs of each site and boundary, by the id under which energies name them.

        Args:
            label: Split by it, as ``activities``.
        """
        from carbonlens.ledger import queries
        from carbonlens.ledger.settling import ask

        labels = [label] if label else []
        keys = list(dict.fromkeys(["site", "zone", "boundary", *labels, "run_id", "study"]))
        none = "(none)"
        found: dict[str, list[str]] = {}
        rows = ask(
            self.settled,
            ("runs of places", tuple(keys), self._kinds),
            lambda parts: (
                queries.labelled(self._chosen(parts), labels).select(*keys).unique().sort("run_id", "study")
            ),
        )
        studies: dict[str, set[str | None]] = {}
        for row in rows:
            studies.setdefault(row["run_id"], set()).add(row["study"])
        for row in rows:
            site = self.sites[str(row["site"]), str(row["zone"])]
            value = "" if label is None else f".{label}.{self._value(label, row[label], site) or none}"
            name = self._runs_id(row, value)
            run_id, study = row["run_id"], row["study"]
            several = len(studies[run_id]) > 1
            found.setdefault(name, []).append(named_by_study(study, run_id) if several else run_id)
        return {name: tuple(held) for name, held in found.items()}

    def runs_names(self) -> tuple[str, ...]:
        """Return the ids under which ``runs`` has the runs of each site and boundary, without these."""
        import narwhals as nw

        from carbonlens.ledger.settling import ask

        keys = ("site", "zone", "boundary")

        def first_of(parts: Any) -> Any:  # noqa: ANN401 - a frame
            # In the order of ``runs``: by the first run of each.
            found = self._chosen(parts).group_by(*keys).agg(first=nw.col("run_id").min())
            return found.sort("first", *keys, nulls_last=True)

        rows = ask(self.settled, ("places of runs", self._kinds), first_of)
        return tuple(dict.fromkeys(self._runs_id(row) for row in rows))

    def _runs_id(self, row: Mapping[str, Any], value: str = "") -> str:
        site = self.sites[str(row["site"]), str(row["zone"])]
        return f"runs.{self._hours.text}{value}.{site}.{row['boundary'] or UNSTATED}"

    def _activity(self, total: Total, label: str | None) -> Activity:
        group = total.group
        value = total.energy.estimate.value or 0.0
        site = self.sites[str(group["site"]), str(group["zone"])]
        cost = None if total.cost is None else total.cost.estimate
        return Activity(
            site_id=site,
            month=_name_of(group[MONTH]),
            boundary=total.boundary,
            energy=total.energy.estimate,
            exact_j=total.energy.exact,
            location=unknown("kg") if total.emissions is None else total.emissions.estimate,
            costs={total.currency: cost} if total.currency is not None and cost is not None else {},
            runs=total.runs,
            grade_j={g: share * value for g, share in total.grade_shares.items()},
            group=None if label is None else self._value(label, told(label, group[LABEL]), site),
        )

    def value_of(self, label: str, row: Mapping[str, Any]) -> str | None:
        """Return the value of a label of a run, as its activities are split by it.

        Args:
            label: A label of the queries, or ``tag:NAME``.
            row: What the ledger has of the run.
        """
        from carbonlens.ledger.schema import escaped, tags_of

        if label.startswith("tag:"):
            value = tags_of(row["tags"]).get(label.removeprefix("tag:"))
            return escaped(value) if value else None
        site = self.sites.get((row["site"] or "", row["zone"] or ""))
        return row[label] or None if site is None else self._value(label, row[label], site)

    def _value(self, label: str, value: object, site: str) -> str | None:
        """Return the value of a label; runs without a zone lie in that of their site."""
        place = self.places[site].place
        if value in (None, "") and label == "zone" and place is not None:
            return place.zone
        return None if value in (None, "") else str(value)

    def _rate(self, name: Name) -> Rates | None:
        import numpy as np

        from carbonlens.ledger import rate_arrays

        held: Sequence[Any] = [
            (pair, (self.places if name == "emissions" else self.prices)[site])
            for pair, site in self.sites.items()
        ]
        held = [(pair, one) for pair, one in held if one.values]
        if not held:
            return None
        values, rows, at = [], [], 0
        for _, one in held:
            rows.append(np.where(one.index >= 0, one.index + at, rate_arrays.NO_RATE))
            values += one.values
            at += len(one.values)
        given = HourRates(
            places=[pair for pair, _ in held],
            first_hour=self._hours.first_hour,
            values=values,
            index=np.stack(rows),
        )
        return rate_arrays.load(self._view, name, given)
