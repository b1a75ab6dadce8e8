"""Sustainability emissions: what the statement of a quarter prints of each line and period."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from carbonlens.accounting.periods_compared import COST, Series, every_scope_key, scope_key
from carbonlens.accounting.scope_totals import METHODS, Method
from carbonlens.accounting.scopes import Place
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.figure import Figure
from carbonlens.reporting import format as fmt
from carbonlens.reporting.columns import MOST_APART, Column, alike, column
from carbonlens.reporting.figures import Entry
from carbonlens.reporting.sustainability_desk import Desk
from carbonlens.reporting.sustainability_sums import TOTAL, exact_money, is_exact, sharing
from carbonlens.reporting.sustainability_units import shown

TO_DATE: Final = ""
"""Stands for the year to date among the periods of a row."""

ENERGY: Final = "total.facility_kwh"


class Sums:
    """Columns of emissions by period and method, whose rows add up as printed.

    Attributes:
        adds_up: Whether there is a total, and the lines of every column that has one add up to it.
    """

    def __init__(self, desk: Desk) -> None:
        """Make the columns of the periods that the statement shows."""
        self._desk = desk
        self._of_energy = desk.columns(desk.given.current)
        self._alike: frozenset[Place] = frozenset(
            p for p in desk.given.compared.places if is_alike(desk, [scope_key(p, m) for m in METHODS])
        )
        made = self._pairs()
        if None in made.values():
            # No number of a shared line suits both methods somewhere: it has a row for each.
            self._alike = frozenset()
            made = self._pairs()
        self._columns = {(n, m): one for n, pair in made.items() for m, one in (pair or {}).items()}
        whole = [at for at, one in self._columns.items() if TOTAL in one.numbers]
        self.adds_up = bool(whole) and all(self._is_sum(*at) for at in whole)

    def _pairs(self) -> dict[str, dict[Method, Column] | None]:
        """Return the columns by period: those of others have the decimals of the quarter's own."""
        self._own: Mapping[Method, Column] = {}
        self._own = self._pair(self._desk.given.period) or {}
        return {n: self._pair(n) for n in periods_of(self._desk)}

    def is_one_row(self, place: Place) -> bool:
        """Tell whether a place has one row for both methods."""
        return place in self._alike

    def _parts(self, name: str, method: Method) -> dict[str, Estimate]:
        """Return the known lines of a period by the key of their row."""
        series, parts = self._desk.given.compared.series, {}
        for place in self._desk.given.compared.places:
            key = scope_key(place, METHODS[0] if place in self._alike else method)
            figure = figure_of(series.get(key), name)
            if figure is not None and figure.estimate.value is not None:
                parts[key] = figure.estimate
        return parts

    def _total(self, name: str, method: Method) -> Estimate | None:
        figure = figure_of(self._desk.given.compared.series.get(every_scope_key(method)), name)
        return None if figure is None else figure.estimate

    def _column(self, name: str, method: Method, least: int | None = None) -> Column:
        whole = self._total(name, method)
        if whole is None:
            return Column(show=fmt.mass)
        parts = self._parts(name, method)
        made = column(fmt.mass, TOTAL, whole, parts, least=least or self._least(method, whole))
        if least is None and any(made.is_rough(n, e) for n, e in parts.items()):
            return column(fmt.mass, TOTAL, whole, parts, least=made.places + 1)
        return made

    def _least(self, method: Method, whole: Estimate) -> int | None:
        own, scale = self._own.get(method), fmt.mass.choose(whole)
        if own is None or own.scale != scale or own.places - fmt.mass.places(whole, scale) > MOST_APART:
            return None
        return own.places

    def _is_sum(self, name: str, method: Method) -> bool:
        held = self._columns[name, method]
        return TOTAL not in held.numbers or set(self._parts(name, method)) <= held.numbers.keys()

    def _pair(self, name: str) -> dict[Method, Column] | None:
        """Return the columns of both methods; ``None`` where a line of both suits only one of them."""
        made = {m: self._column(name, m) for m in METHODS}
        parts = [self._parts(name, m) for m in METHODS]
        shared = parts[0].keys() & parts[1].keys()
        summed = [m for m in METHODS if shared and shared <= made[m].numbers.keys()]
        if not summed:
            return made
        if len(summed) == 1:
            return _lent(made, summed[0], shared) if _has_one_total(made) else None
        places = [made[m].places for m in METHODS]
        if max(places) - min(places) > MOST_APART:
            return None
        for least in (max(places), max(places) + 1):
            again = [self._column(name, m, least) for m in METHODS]
            found = sharing(again, parts, shared, TOTAL)
            if found is not None:
                return dict(zip(METHODS, found, strict=True))
        return None

    def entry(self, key: str, name: str, method: Method | None) -> Entry | None:
        """Return what a line prints of a period; ``None`` where it lacks the line."""
        figure = figure_of(self._desk.given.compared.series.get(key), name)
        if figure is None:
            return None
        is_own = name == self._desk.given.period
        if key == ENERGY:
            # As the table of sites prints it, whose lines add up to it.
            own = self._of_energy.printed("facility_kwh", self._desk.given.current.total)
            printed = own if is_own else alike(fmt.energy, shown(figure.estimate), own)
            return self._desk.prints.entered(figure, printed)
        if key.startswith(COST):
            return self._cost(figure, key.removeprefix(COST), is_own=is_own)
        if method is None:
            return self._desk.prints.of(figure)
        inside = TOTAL if key == every_scope_key(method) else key
        return self._desk.prints.in_column(figure, self._columns[name, method], inside)

    def _cost(self, figure: Figure, currency: str, *, is_own: bool) -> Entry:
        """Return the print of a cost: that of the quarter as its lines add up to it, bills to the cent."""
        held = self._desk.costs.get(currency)
        if held is not None and is_own:
            return self._desk.prints.in_column(figure, held, TOTAL)
        if is_exact(figure.estimate):
            return self._desk.prints.entered(figure, exact_money(shown(figure.estimate)))
        own = None
        if held is not None:
            own = held.printed(TOTAL, self._desk.given.current.cost.totals[currency])
        return self._desk.prints.entered(figure, alike(fmt.money, figure.estimate, own))


def _has_one_total(made: Mapping[Method, Column]) -> bool:
    return sum(TOTAL in one.numbers for one in made.values()) == 1


def _lent(made: Mapping[Method, Column], method: Method, shared: Collection[str]) -> dict[Method, Column]:
    """Return columns of which one has no total, and prints the lines of both as the other does."""
    whole = made[method]
    numbers = {n: whole.numbers[n] for n in shared}
    bare = Column(show=whole.show, scale=whole.scale, places=whole.places, numbers=numbers)
    return {m: whole if m == method else bare for m in made}


def periods_of(desk: Desk) -> tuple[str, ...]:
    """Return the periods of the statement, in order of its columns."""
    return desk.given.period, desk.given.previous, desk.given.last_year, TO_DATE


def figure_of(series: Series | None, name: str) -> Figure | None:
    """Return the figure of a line in a period, or of the year to date."""
    if series is None:
        return None
    return series.to_date if name == TO_DATE else series.by_period.get(name)


def is_alike(desk: Desk, keys: Sequence[str]) -> bool:
    """Tell whether both methods say the same in every period, as where a category knows one only.

    Args:
        desk: Of the report.
        keys: Of a line by each method.
    """
    held = [desk.given.compared.series.get(k) for k in keys]
    first, other = (None if s is None else _said(s) for s in held)
    return first is not None and first == other


def _said(series: Series) -> dict[str, Estimate]:
    made = {n: f.estimate for n, f in series.by_period.items()}
    return made if series.to_date is None else {**made, TO_DATE: series.to_date.estimate}
