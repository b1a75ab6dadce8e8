"""Use case part: what holds at each place that runs of a period name.

Sites come from the inventory, zones as runs state them; both become places, and places
factors. What nobody declares stays unknown, with a Finding.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from carbonlens.accounting.emissions import Rate
from carbonlens.accounting.factor_choice import (
    DEFAULT_GRID_U_RELATIVE,
    MARKET,
    Choice,
    choose,
    relative_sigma,
)
from carbonlens.accounting.places import Place
from carbonlens.accounting.propagation import stated
from carbonlens.accounting.site_energy import SiteTerms
from carbonlens.app.places import grid_factor
from carbonlens.app.site_figures import row_sigma, with_site_figures
from carbonlens.app.statement_places import NOWHERE, declared_place, undeclared
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import unknown
from carbonlens.domain.factor_row import FactorRow, Span
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding
from carbonlens.domain.inventory import Inventory
from carbonlens.factors.store import LENGTH_OF_HOUR, FactorSet
from carbonlens.ledger.rate_arrays import HourRate

if TYPE_CHECKING:
    import numpy as np


class Months(msgspec.Struct, frozen=True):
    """Months of a period, how many of its hours lie in each, the first of these, and those with a load.

    Without any ``loaded`` nothing tells which count, and all do.
    """

    names: tuple[str, ...]
    hours: tuple[int, ...]
    first_hour: int
    loaded: frozenset[str] = frozenset()

    def of_load(self, names: Iterable[str]) -> Months:
        """Return the same with the months that have a load."""
        return msgspec.structs.replace(self, loaded=frozenset(names) & frozenset(self.names))

    def counts(self, month: str) -> bool:
        """Tell whether a figure of a month is used at all."""
        return not self.loaded or month in self.loaded


class PlaceTerms(msgspec.Struct, frozen=True, kw_only=True):
    """Terms of one place, and its location-based factors by the hour.

    Attributes:
        place: ``None`` where nobody knows it.
        values: Distinct factors.
        index: Number of the factor of each hour, -1 for none; a numpy array.
        rows: Factor rows used, for whatever.
    """

    terms: SiteTerms
    place: Place | None
    values: tuple[HourRate, ...]
    index: Any
    rows: tuple[FactorRow, ...]


class _Hours(NamedTuple):
    """Distinct factors, the number of each hour's, the rows used, and how many are of single hours."""

    values: tuple[HourRate, ...]
    numbers: np.ndarray[Any, Any]
    used: tuple[FactorRow, ...]
    taken: int
    findings: tuple[Finding, ...]


def sites_of(
    pairs: Iterable[tuple[str, str]], inventory: Inventory
) -> tuple[dict[tuple[str, str], str], dict[str, tuple[str, ...]]]:
    """Return the site of each pair of site and zone that runs state, and the zones of each site.

    Args:
        pairs: Site and zone as the runs have them, empty where they state none.
        inventory: Whose sites are taken by name.
    """
    sites: dict[tuple[str, str], str] = {}
    zones: dict[str, list[str]] = {}
    for site, zone in sorted(pairs):
        name = site or (f"zone:{zone}" if zone else NOWHERE)
        declared = inventory.site(site) if site else None
        if declared is None and site and zone and zones.get(name, [zone]) != [zone]:
            # Without a declaration one name in two zones is two places.
            name = f"{site}:{zone}"
        sites[site, zone] = name
        held = zones.setdefault(name, [])
        if zone and zone not in held:
            held.append(zone)
    return sites, {name: tuple(held) for name, held in zones.items()}


def without_hours(factors: FactorSet) -> FactorSet:
    """Return the factors of months and years: few, where those of hours are many."""
    if not any(len(row.period) == LENGTH_OF_HOUR for row in factors.rows):
        return factors
    return FactorSet(
        rows=tuple(row for row in factors.rows if len(row.period) != LENGTH_OF_HOUR),
        overrides=tuple(o for o in factors.overrides if len(o.row.period) != LENGTH_OF_HOUR),
    )


def place_terms(
    name: str,
    zones: Sequence[str],
    inventory: Inventory,
    factors: FactorSet,
    coarse: FactorSet,
    months: Months,
) -> PlaceTerms:
    """Return what holds at a site.

    Args:
        name: Site, or the stand-in of runs without one.
        zones: As its runs state them.
        inventory: Which may declare it.
        factors: The rows in force.
        coarse: The same ``without_hours``.
        months: Of the period.
    """
    site = inventory.site(name)
    place, findings = declared_place(name, site, zones)
    if site is None and name != NOWHERE:
        findings.append(undeclared(name))
    if place is None:
        plain = SiteTerms(site_id=name, site=site, findings=tuple(findings))
        terms, own = with_site_figures(plain, None, months.names, coarse)
        return PlaceTerms(terms=terms, place=None, values=(), index=_none(months), rows=own)
    choices = {m: grid_factor(place, m, coarse) for m in months.names}
    market = {m: grid_factor(place, m, coarse, MARKET) for m in months.names}
    residual = {m: c.row for m, c in market.items() if c.row is not None and c.row.method != "location"}
    by_hour = _by_hour(place, choices, factors, months)
    used = by_hour.used
    every = [c for m, c in choices.items() if months.counts(m)]
    findings += [*(f for c in every for f in c.findings), *by_hour.findings]
    plain = SiteTerms(
        site_id=name,
        site=site,
        place_name=place.name,
        how=_how(every, by_hour.taken),
        location={m: _rate(c.row) for m, c in choices.items() if c.row is not None},
        residual={m: _rate(row) for m, row in residual.items()},
        span=_one_span(used),
        input_ids=tuple(dict.fromkeys(row.factor_id for row in used)),
        findings=tuple(dict.fromkeys((*place.findings, *findings))),
    )
    terms, own = with_site_figures(plain, place, months.names, coarse)
    rows = (*used, *residual.values(), *own)
    return PlaceTerms(
        terms=terms,
        place=place,
        values=by_hour.values,
        index=by_hour.numbers,
        # By the rows themselves: a hash of all fields of thousands takes longer than all else here.
        rows=tuple({id(row): row for row in rows}.values()),
    )


def leaves(found: Iterable[PlaceTerms]) -> tuple[Figure, ...]:
    """Return the factors and overheads that were used, as figures that rest on nothing else."""
    figures: list[Figure] = []
    for one in found:
        rows = {row.factor_id for row in one.rows}
        for held in one.terms.variants:
            figures += _declared_figures(held, rows)
        # Of hours there are thousands: explain looks them up by their ids.
        figures += [factor_figure(row) for row in one.rows if len(row.period) != LENGTH_OF_HOUR]
    return tuple({f.figure_id: f for f in figures}.values())


def _declared_figures(terms: SiteTerms, rows: Collection[str]) -> Iterator[Figure]:
    """Yield overheads and WUE that the inventory declares, or that nobody states."""
    around, site = terms.overheads, terms.site
    for figure_id, estimate, source, what in (
        (around.pue_id, around.pue, site.pue_source if site else None, "PUE"),
        (around.host_id, around.host, site.host_overhead_source if site else None, "host overhead"),
    ):
        if figure_id in rows:
            continue
        label = f"{what} of {terms.site_id}" + (f"; {source}" if source else "")
        if estimate is None:
            label = f"{what} of {terms.site_id}: nobody states it"
        yield Figure(figure_id=figure_id, estimate=estimate or unknown("1"), label=label)
    if site is not None and terms.wue is not None and terms.ids["wue"] not in rows:
        label = f"WUE of {terms.site_id}" + (f"; {site.wue_source}" if site.wue_source else "")
        yield Figure(figure_id=terms.ids["wue"], estimate=terms.wue, label=label)


def factor_figure(row: FactorRow) -> Figure:
    """Return a factor row as a figure; its label names source, version and licence."""
    words = [w for w in (row.method, row.averaging, row.span, row.flow) if w] if row.kind == "grid" else []
    label = f"{row.kind} of {row.subject} {row.period}{' (' + ', '.join(words) + ')' if words else ''}"
    return Figure(
        figure_id=row.factor_id,
        estimate=stated(float(row.value), row_sigma(row), row.factor_id, row.unit),
        label=f"{label}; {row.source}, {row.vintage}, {row.licence}",
    )


def _by_hour(place: Place, choices: Mapping[str, Choice], factors: FactorSet, months: Months) -> _Hours:
    """Return the factor of each hour: its own, where that counts what the month's does, else the month's.

    A direct factor of the hour stands before a life-cycle one of the month, as in ``choose``.
    """
    import numpy as np

    rows = {m: c.row for m, c in choices.items()}
    every: list[FactorRow] = []
    index = _none(months)
    at = taken = left_out = 0
    hourly = _hourly(place, factors, _utc_months(months))
    own = factors.own_ids
    for month, count in zip(months.names, months.hours, strict=True):
        row = rows[month]
        if row is not None:
            if row not in every:
                every.append(row)
            index[at : at + count] = every.index(row)
        at += count
    named = np.repeat(months.names, months.hours).tolist()
    numbers = np.array(list(hourly), dtype="datetime64[h]").astype(np.int64) - months.first_hour
    alone: dict[tuple[object, ...], bool] = {}
    for (hour, held), number in zip(hourly.items(), numbers.tolist(), strict=True):
        if not 0 <= number < len(index):
            continue
        coarse = rows[named[number]]
        fitting = [r for r in held if coarse is None or r.span in (coarse.span, "direct")]
        row = _of_hour(fitting, hour, own, alone)
        if row is None:
            left_out += 1
        else:
            taken += 1
            index[number] = len(every)
            every.append(row)
    loaded = np.repeat([months.counts(m) for m in months.names], months.hours)
    used = [every[n] for n in np.unique(index[loaded]).tolist() if n >= 0]
    said = (_other_basis(place, left_out),) if left_out else ()
    return _Hours(_hour_rates(every), index, tuple(used), taken, said)


def _of_hour(
    fitting: Sequence[FactorRow], hour: str, own: Collection[str], alone: dict[tuple[object, ...], bool]
) -> FactorRow | None:
    """Return the row of an hour that a choice takes.

    Args:
        fitting: Rows of the hour, of one subject.
        hour: In UTC.
        own: Ids of the user's.
        alone: Whether a row that stands alone is taken, by what it counts: mostly all rows of the
            hours are of one kind, and a choice among one rests on nothing else. Written to.
    """
    if not fitting:
        return None
    only = fitting[0]
    counts = (only.method, only.averaging, only.span, only.flow)
    if len(fitting) == 1 and counts in alone:
        return only if alone[counts] else None
    # Of its own rows alone: a choice looks at all of the user's that it is given.
    mine = [r for r in fitting if r.factor_id in own]
    row = choose(fitting, "grid", (only.subject,), hour, own=mine).row
    if len(fitting) == 1:
        alone[counts] = row is not None
    return row


def _utc_months(months: Months) -> set[str]:
    """Return the months in which hours of the period lie in UTC, as rows of hours name them."""
    import numpy as np

    first = np.datetime64(months.first_hour, "h")
    last = first + max(sum(months.hours) - 1, 0)
    every = np.arange(first.astype("datetime64[M]"), last.astype("datetime64[M]") + 1)
    return set(np.datetime_as_string(every).tolist())


def _hourly(place: Place, factors: FactorSet, months: set[str]) -> dict[str, list[FactorRow]]:
    """Return location-based rows of single hours, by hour; of the first subject that has any."""
    subjects = (place.cloud, *place.chain) if place.cloud else place.chain
    for subject in subjects:
        found: dict[str, list[FactorRow]] = {}
        for row in factors.of_hours("grid", subject, months):
            if row.method == "location":
                found.setdefault(row.period, []).append(row)
        if found or any(row.method == "location" for row in factors.find("grid", subject)):
            return found
    return {}


def _hour_rates(rows: Iterable[FactorRow]) -> tuple[HourRate, ...]:
    # Of a quarter there are thousands: each source is named once.
    shared: dict[tuple[str, str], str] = {}
    found = []
    for row in rows:
        # Hours and months of one source share its error; years are told apart.
        source = row.factor_id
        if len(row.period) != 4:
            of = (row.subject, row.source)
            source = shared.get(of) or shared.setdefault(of, f"grid:{row.subject}:{row.source}")
        u_relative = relative_sigma(row, DEFAULT_GRID_U_RELATIVE)
        found.append(HourRate(rate=row.value, source_id=source, u_relative=u_relative))
    return tuple(found)


def _rate(row: FactorRow) -> Rate:
    (held,) = _hour_rates((row,))
    value = stated(float(row.value), held.u_relative, held.source_id, "kg/kWh")
    return Rate(factor_id=row.factor_id, kg_per_kwh=value, span=row.span)


def _none(months: Months) -> np.ndarray[Any, Any]:
    import numpy as np

    return np.full(sum(months.hours), -1, dtype=np.int32)


def _how(choices: Sequence[Choice], hours: int) -> str:
    own = [f"{counted(hours, 'hour')} by the hour's own figure"] if hours else []
    return "; ".join(dict.fromkeys([*(c.how for c in choices), *own]))


def _other_basis(place: Place, hours: int) -> Finding:
    return Finding(
        code="CL488",
        severity="warning",
        message=f"grid factors of {counted(hours, 'hour')} in {place.zone} are marginal, or count another "
        "span than the month's: the month's is used there",
        mend="import average factors of the hours that count what the month's does (direct, or life-cycle)",
        subject=place.zone,
    )


def _one_span(rows: Sequence[FactorRow]) -> Span | None:
    spans = {row.span for row in rows}
    return spans.pop() if len(spans) == 1 else None
