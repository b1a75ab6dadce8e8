"""Use case part: overheads, water and upstream factors of a site, each month by its own.

A figure is chosen by the month of use, as every factor is: that of the month, else of its
year, else of the nearest earlier year; never a later one. Where only later ones are known the
month is unknown, with a Finding. What the inventory declares of a site holds in the months that it
states, in all where it states none (with a Finding); beside it count the rows of a factor table
whose subject is the site itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from carbonlens.accounting.boundaries import Overheads, site_overheads
from carbonlens.accounting.factor_choice import (
    DEFAULT_GRID_U_RELATIVE,
    DEFAULT_PUE_U_RELATIVE,
    choose,
    relative_sigma,
)
from carbonlens.accounting.places import Place
from carbonlens.accounting.propagation import stated
from carbonlens.accounting.site_energy import SiteTerms
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.factor_row import FactorKind, FactorRow
from carbonlens.domain.finding import Finding
from carbonlens.domain.site import SITE_FIGURES, Site, SiteFigure
from carbonlens.factors.store import FactorSet

OTHER_TIME: Final = "other_time"
"""Ends the id of a site's figure in months in which the declared one does not hold."""

_OF_SITE: Final[tuple[SiteFigure, ...]] = ("pue", "host_overhead", "wue")
_WORDS: Final[Mapping[SiteFigure, str]] = {"pue": "PUE", "wue": "WUE", "host_overhead": "host overhead"}
_ID_FIELDS: Final[Mapping[SiteFigure, str]] = {"pue": "pue_id", "host_overhead": "host_id"}
_OF_GRID: Final[Mapping[str, FactorKind]] = {
    "grid_water": "water_source",
    "supply": "upstream",
    "loss": "transmission",
}


def with_site_figures(
    terms: SiteTerms, place: Place | None, months: Sequence[str], factors: FactorSet
) -> tuple[SiteTerms, tuple[FactorRow, ...]]:
    """Return the terms of a site with its own figures, month by month, and the rows these are of.

    Args:
        terms: Of the site, without them.
        place: Where it lies; ``None`` when nobody knows it.
        months: Of the period, in order.
        factors: Rows of months and years.
    """
    name, site = terms.site_id, terms.site
    rows: dict[str, dict[str, FactorRow]] = {}
    findings = list(overheads_of(name, site).findings)
    for kind in _OF_SITE:
        missing = [m for m in months if site is None or site.figure(kind, m) is None]
        rows[kind], said = _chosen(kind, _subjects(kind, name, place, factors), missing, factors)
        findings += said
        if site is not None and site.figure(kind) is not None:
            findings += _said_of(site, kind, [m for m in missing if m not in rows[kind]])
    if site is not None:
        findings += _undated(site, months)
    for key, of_grid in _OF_GRID.items():
        rows[key], said = _chosen(of_grid, place.chain if place else (), months, factors)
        findings += said
    made: dict[tuple[str, ...], SiteTerms] = {}
    by_month: dict[str, SiteTerms] = {}
    for month in months:
        held = {key: of_kind[month] for key, of_kind in rows.items() if month in of_kind}
        ids = tuple(f"{key}={row.factor_id}" for key, row in held.items())
        own = () if site is None else tuple(f for f in _OF_SITE if site.figure(f, month) is not None)
        by_month[month] = made.setdefault((*own, *ids), _filled(terms, held, month))
    # Those of the last month stand for the site; mostly they are those of all months.
    last = by_month[months[-1]]
    others = {m: one for m, one in by_month.items() if one is not last}
    every = {row.factor_id: row for of_kind in rows.values() for row in of_kind.values()}
    found = tuple(dict.fromkeys((*terms.findings, *findings)))
    return msgspec.structs.replace(last, by_month=others, findings=found), tuple(every.values())


def overheads_of(name: str, site: Site | None, month: str | None = None) -> Overheads:
    """Return the overheads that the inventory declares of a site.

    Args:
        name: Of the site.
        site: As declared; ``None`` where it is not.
        month: Month of use, in which they must hold; any where ``None``.
    """
    if site is None:
        return Overheads(pue_id=f"pue:{name}", host_id=f"host_overhead:{name}")
    if month is None:
        return site_overheads(site)
    around = site_overheads(site.in_month(month))
    ids = {
        field: f"{getattr(around, field)}:{OTHER_TIME}"
        for figure, field in _ID_FIELDS.items()
        if site.figure(figure) is not None and site.figure(figure, month) is None
    }
    return msgspec.structs.replace(around, **ids)


def row_sigma(row: FactorRow) -> float | None:
    """Return one relative sigma of a row; ``None`` where nobody states one and no default holds."""
    if row.kind in ("grid", "upstream", "transmission"):
        return relative_sigma(row, DEFAULT_GRID_U_RELATIVE)
    return relative_sigma(row, DEFAULT_PUE_U_RELATIVE) if row.kind == "pue" else row.u_relative


def _subjects(kind: FactorKind, name: str, place: Place | None, factors: FactorSet) -> tuple[str, ...]:
    """Return under which names a site's figure stands: its own, its cloud region's, its provider's."""
    own = (name,) if factors.find(kind, name) else ()
    cloud = (
        ()
        if place is None or place.cloud is None or place.provider is None
        else (place.cloud, place.provider)
    )
    return (*own, *cloud)


def _chosen(
    kind: FactorKind, subjects: Sequence[str], months: Sequence[str], factors: FactorSet
) -> tuple[dict[str, FactorRow], list[Finding]]:
    """Return the row of each month that has one, and what is to be said, once a row."""
    rows = [row for subject in subjects for row in factors.find(kind, subject)]
    if not rows or not months:
        return {}, []
    choices = {m: choose(rows, kind, subjects, m, own=factors.own) for m in months}
    found = {m: c.row for m, c in choices.items() if c.row is not None}
    first = {c.row.factor_id: c for c in reversed(choices.values()) if c.row is not None}
    said = [f for c in reversed(first.values()) for f in c.findings]
    missing = [m for m in months if m not in found]
    if missing:
        said.append(_later_only(kind, subjects[0], missing, sorted({r.period for r in rows})))
    return found, said


def _filled(terms: SiteTerms, rows: Mapping[str, FactorRow], month: str) -> SiteTerms:
    """Return the terms with what holds in a month."""
    around = overheads_of(terms.site_id, terms.site, month)
    if "pue" in rows:
        around = msgspec.structs.replace(around, pue=_value(rows["pue"]), pue_id=rows["pue"].factor_id)
    if "host_overhead" in rows:
        host = rows["host_overhead"]
        around = msgspec.structs.replace(around, host=_value(host), host_id=host.factor_id)
    ids = {key: row.factor_id for key, row in rows.items() if key not in ("pue", "host_overhead")}
    wue = _value(rows["wue"]) if "wue" in rows else None
    declared = None if terms.site is None else terms.site.figure("wue", month)
    if declared is not None:
        ids["wue"] = f"wue:{terms.site_id}"
        wue = stated(declared, None, ids["wue"], "L/kWh")
    return msgspec.structs.replace(
        terms,
        overheads=around,
        wue=wue,
        **{key: _value(rows[key]) for key in _OF_GRID if key in rows},
        ids=ids,
    )


def _value(row: FactorRow) -> Estimate:
    return stated(float(row.value), row_sigma(row), row.factor_id, row.unit)


def _later_only(kind: FactorKind, subject: str, months: Sequence[str], periods: Sequence[str]) -> Finding:
    span = months[0] if len(months) == 1 else f"{counted(len(months), 'month')} ({months[0]} to {months[-1]})"
    return Finding(
        code="CL490",
        severity="warning",
        message=f"no {kind} figure of {subject} holds in {span}: there are {', '.join(periods)}, and a later "
        "one is never used for an earlier time; it stays unknown there",
        mend="import the figure of that time",
        subject=subject,
    )


def _said_of(site: Site, kind: SiteFigure, months: Sequence[str]) -> list[Finding]:
    """Return a word on months in which neither the declared figure nor a row holds."""
    if not months:
        return []
    start, end = site.validity(kind)
    held = " ".join(w for w in (f"from {start}" if start else "", f"to {end}" if end else "") if w)
    span = months[0] if len(months) == 1 else f"{counted(len(months), 'month')} ({months[0]} to {months[-1]})"
    found = Finding(
        code="CL490",
        severity="warning",
        message=f"the {_WORDS[kind]} of {site.site_id} is stated {held} alone, and none holds in {span}: it "
        "stays unknown there",
        mend="import the figure of that time as a row of a factor table, with the site as its subject",
        subject=site.site_id,
    )
    return [found]


def _undated(site: Site, months: Sequence[str]) -> list[Finding]:
    """Return a word on the figures of a site that count in the period and are stated for no time."""
    names = [_WORDS[f] for f in SITE_FIGURES if site.figure(f) is not None and not any(site.validity(f))]
    if not names:
        return []
    span = months[0] if len(months) == 1 else f"{months[0]} to {months[-1]}"
    found = Finding(
        code="CL466",
        severity="info",
        message=f"{', '.join(names)} of {site.site_id} {'is' if len(names) == 1 else 'are'} stated for no "
        f"time, and used for {span}",
        mend="state in sites.toml from when to when the source holds: pue_valid_from, pue_valid_to",
        subject=site.site_id,
    )
    return [found]
