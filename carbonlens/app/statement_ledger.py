"""Use case part: what a ledger holds of a period, summed by place with the factors of each hour."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from carbonlens.accounting.metered import MonthOf
from carbonlens.accounting.places import Place
from carbonlens.accounting.site_energy import UNSTATED, Activity
from carbonlens.app.explain_items import named_by_study
from carbonlens.app.inventory import calendar_of
from carbonlens.app.statement_prices import PricedHours, priced_hours
from carbonlens.app.statement_terms import Months, PlaceTerms, place_terms, sites_of, without_hours
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
    from carbonlens.ledger.settling import Settled

_MONTH: Final = "month_of_use"
"""Column of the month of the reporting time zone, ``202603``."""

_UNASKED: Final = frozenset(
    {"parent_run_id", "supersedes", "counts", "part", "record_sha256", "row_schema", "file", "end_us"}
    | {"start_us", "duration_s", "emissions_reported_kg", "cost_amount", "cost_currency"}
)
"""Columns of parts that no question about a period is of."""

_UNRATED: Final = "CL522"
"""The ledger's word on energy without a rate; a statement says it by place."""


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


def _text(value: object) -> str | None:
    return None if value in (None, "") else str(value)


def _with_month(parts: Any, months: Months, calendar: Calendar) -> Any:  # noqa: ANN401 - a frame
    """Return parts with their month of use: that of UTC as it is stored, else by its first hours."""
    import narwhals as nw

    if calendar.reporting_timezone == "UTC":
        return parts.with_columns(nw.col("month_utc").alias(_MONTH))
    hour, begins = nw.col("hour_utc"), accumulate(months.hours, initial=months.first_hour)
    end = months.first_hour + sum(months.hours)
    numbers = [int(name.replace("-", "")) for name in months.names]
    # Side by side, not one within the other: a clock that fell back to 2000 makes hundreds of months.
    begun = [
        nw.when((hour >= at) & (hour < end)).then(nw.lit(n)) for at, n in zip(begins, numbers, strict=False)
    ]
    return parts.with_columns(nw.max_horizontal(*begun).alias(_MONTH))


class _Held:
    """What holds at places in a period, found out once for all who read a view with the same inventory.

    Attributes:
        coarse: The factors ``without_hours``.
    """

    def __init__(
        self, view: View, inventory: Inventory, factors: FactorSet, hours: Period, months: Months
    ) -> None:
        self._inventory, self._factors, self._hours, self._months = inventory, factors, hours, months
        # The records are kept with what they led to: an id is that of one record as long as it lives.
        key = ("places", id(inventory), id(factors), hours.first_hour, hours.end_hour, hours.text)
        self._found: dict[Hashable, Any]
        self._rows = view.parts
        _, _, self._found = view.kept.setdefault(key, (inventory, factors, {}))

    def terms(self, name: str, zones: Sequence[str], months: Months) -> PlaceTerms:
        """Return what holds at a site; arguments as of ``place_terms``."""
        key = ("terms", name, tuple(zones), months)
        if key not in self._found:
            made = place_terms(name, zones, self._inventory, self._factors, self._coarse, months)
            self._found[key] = made
        found: PlaceTerms = self._found[key]
        return found

    def priced(self, name: str, place: Place | None) -> PricedHours:
        """Return prices of electricity at a site; arguments as of ``priced_hours``."""
        key = ("prices", name, place)
        if key not in self._found:
            self._found[key] = priced_hours(name, place, self._inventory, self._hours, self._months)
        found: PricedHours = self._found[key]
        return found

    def of_rows(self, name: Hashable, make: Callable[[], Any]) -> Any:  # noqa: ANN401 - of many kinds
        """Return what was made of the rows of the view, as long as they are the same rows.

        Args:
            name: Of it.
            make: Makes it.
        """
        key = ("rows", name, id(self._rows))
        if key not in self._found:
            # With the rows, of which the id is.
            self._found[key] = self._rows, make()
        return self._found[key][1]

    @property
    def _coarse(self) -> FactorSet:
        if "coarse" not in self._found:
            self._found["coarse"] = without_hours(self._factors)
        found: FactorSet = self._found["coarse"]
        return found


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
    ) -> None:
        """Find the places that the runs name.

        Args:
            view: Of the period.
            inventory: Which declares sites and tariffs.
            factors: The rows in force.
            hours: The period.
            metered: Sites with energy of their own, where perhaps no run names them, and its months.
        """
        from carbonlens.ledger import queries
        from carbonlens.ledger.rate_arrays import placed

        self._view = view
        self._hours = hours
        calendar = calendar_of(inventory.terms)
        months = months_of(hours, calendar)
        held = _Held(view, inventory, factors, hours, months)
        self._held = held

        def parts() -> Any:  # noqa: ANN401 - a frame
            return _with_month(placed(queries.roots(view.parts, view.orphans)), months, calendar)

        self._parts = held.of_rows("parts", parts)
        rows = held.of_rows("where", lambda: view.rows(self._parts.select("site", "zone", _MONTH).unique()))
        self.sites, zones = sites_of({(row["site"], row["zone"]) for row in rows}, inventory)
        loaded: dict[str, set[str]] = {name: set(held) for name, held in (metered or {}).items()}
        for row in rows:
            loaded.setdefault(self.sites[row["site"], row["zone"]], set()).add(_name_of(row[_MONTH]))
        names = [*zones, *sorted({*(metered or ()), *(m.site for m in inventory.meters)} - set(zones))]
        self.places: dict[str, PlaceTerms] = {
            name: held.terms(name, zones.get(name, ()), months.of_load(loaded.get(name, ())))
            for name in names
        }
        self.prices: dict[str, PricedHours] = {
            name: held.priced(name, place.place) for name, place in self.places.items()
        }

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
        account = self._account([label] if label else [], priced=priced)
        found = tuple(self._activity(total, label) for total in account.totals)
        return found, tuple(f for f in account.findings if f.code != _UNRATED)

    def work(
        self, label: str, where: Mapping[str, str] = {}
    ) -> tuple[tuple[str | None, Decimal | None, Activity], ...]:
        """Return the energy of each class of work, its group, with functional unit and units done.

        Args:
            label: What classes are told apart by.
            where: Labels and tags of the runs that are asked for; all when empty.
        """
        account = self._account(["unit", label], where)
        return tuple((_text(t.group["unit"]), t.units, self._activity(t, label)) for t in account.totals)

    def _account(
        self, labels: Sequence[str], where: Mapping[str, str] = {}, *, priced: bool = True
    ) -> Account:
        from carbonlens.ledger import accounts

        by = list(dict.fromkeys(["site", "zone", *labels]))
        chosen = accounts.Chosen(labels=tuple(by), where=tuple(sorted(where.items())))
        by.append(_MONTH)
        return accounts.account_over(*self._rated(priced=priced), by, chosen)

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
            rated = queries.rated(self._parts, rates)
            kept = [n for n in rated.collect_schema().names() if n not in _UNASKED]
            return settle(self._view, rated.select(*kept)), rates

        # Sites at which electricity is left unpriced: with the rest of what is held they make the rates.
        unpriced = frozenset(name for name, prices in self.prices.items() if prices.is_in_cloud)
        found: tuple[Settled, list[Rates]] = self._held.of_rows(("rated", priced, unpriced), made)
        return found

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
            ("runs of places", tuple(keys)),
            lambda parts: queries.labelled(parts, labels).select(*keys).unique().sort("run_id", "study"),
        )
        studies: dict[str, set[str | None]] = {}
        for row in rows:
            studies.setdefault(row["run_id"], set()).add(row["study"])
        for row in rows:
            site = self.sites[str(row["site"]), str(row["zone"])]
            value = "" if label is None else f".{label}.{self._value(label, row[label], site) or none}"
            name = f"runs.{self._hours.text}{value}.{site}.{row['boundary'] or UNSTATED}"
            run_id, study = row["run_id"], row["study"]
            several = len(studies[run_id]) > 1
            found.setdefault(name, []).append(named_by_study(study, run_id) if several else run_id)
        return {name: tuple(held) for name, held in found.items()}

    def _activity(self, total: Total, label: str | None) -> Activity:
        group = total.group
        value = total.energy.estimate.value or 0.0
        site = self.sites[str(group["site"]), str(group["zone"])]
        cost = None if total.cost is None else total.cost.estimate
        return Activity(
            site_id=site,
            month=_name_of(group[_MONTH]),
            boundary=total.boundary,
            energy=total.energy.estimate,
            exact_j=total.energy.exact,
            location=unknown("kg") if total.emissions is None else total.emissions.estimate,
            costs={total.currency: cost} if total.currency is not None and cost is not None else {},
            runs=total.runs,
            grade_j={g: share * value for g, share in total.grade_shares.items()},
            group=None if label is None else self._value(label, group[label], site),
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
