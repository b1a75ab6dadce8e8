"""Use case part: the components of a score, one a part of the boundary and site, with their inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec.structs import replace

from carbonlens.accounting.propagation import through
from carbonlens.accounting.sci import Component, FunctionalUnit, Intensity, mean_intensity
from carbonlens.accounting.sci_boundary import RunGroup
from carbonlens.accounting.site_energy import Activity, Share, SiteTerms, shares
from carbonlens.app.sci_hardware import Hardware, hardware_of
from carbonlens.app.statement_ledger import PeriodReading
from carbonlens.app.statement_terms import leaves
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate, add, grade_shares, unknown
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.units import Grade
from carbonlens.factors.store import FactorSet
from carbonlens.ledger.calendar import Calendar, Period

if TYPE_CHECKING:
    import narwhals as nw

    from carbonlens.ledger.frames import View
    from carbonlens.ledger.selecting import Kind

Evidence = Literal["measured", "stated", "modelled", "measured and modelled", "missing"]

_MEASURED: frozenset[Grade] = frozenset({"A", "B", "C"})


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What components are made of: the selected runs, and what holds where and when they ran.

    Attributes:
        listed: Whether runs are listed, else only what there are any of is named.
    """

    view: View
    inventory: Inventory
    factors: FactorSet
    calendar: Calendar
    hours: Period
    embodied_source: str | None = None
    listed: bool = True


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """One input of a component.

    Attributes:
        symbol: As the standard names it: E, I, M, TE, TiR, EL, RR or ToR.
        name: In words.
        estimate: Of it; unknown where nobody knows.
        evidence: Whether it was measured, stated by somebody, or modelled.
        source: Where it comes from; of a missing one, why it is missing.
    """

    symbol: str
    name: str
    estimate: Estimate
    evidence: Evidence
    source: str

    @property
    def is_missing(self) -> bool:
        """Whether it keeps the score unknown."""
        return self.estimate.state != "known"


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """A component, its inputs, and the figures that it rests on."""

    part: str
    site_id: str
    component: Component
    inputs: tuple[Input, ...]
    figures: tuple[Figure, ...]
    runs_of: Mapping[str, tuple[str, ...]]
    findings: tuple[Finding, ...]


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of one part of the boundary, as they were read."""

    name: str
    view: View
    read: PeriodReading
    activities: tuple[Activity, ...]
    findings: tuple[Finding, ...]
    shares: tuple[Share, ...]

    def at(self, site: str) -> View:
        """Return its runs at a site."""
        from carbonlens.ledger.selecting import only

        return only(self.view, _at([pair for pair, name in self.read.sites.items() if name == site]))

    @property
    def sites(self) -> tuple[str, ...]:
        """Its sites, each once."""
        return tuple(dict.fromkeys(s.site_id for s in self.shares))


def components(asked: Asked, parts: Mapping[str, tuple[RunGroup, ...]]) -> tuple[Built, ...]:
    """Return the components of the parts of a software boundary, one for each site.

    Args:
        asked: What they are made of; the text of its hours begins the ids of the figures.
        parts: Groups of runs by name of the part.
    """
    read = [_read(asked, part, groups) for part, groups in parts.items()]
    views = {(part.name, site): part.at(site) for part in read for site in part.sites}
    whole = _of_groups(asked, [g for groups in parts.values() for g in groups])
    hardware = hardware_of(asked, views, whole)
    return tuple(b for part in read for b in _of_part(part, hardware, listed=asked.listed))


def counting_runs(asked: Asked, groups: Sequence[RunGroup], unit: FunctionalUnit) -> tuple[str, ...] | None:
    """Return the runs that count a functional unit, among those of some groups; ``None`` if none does.

    Args:
        asked: The selected runs; without their list, one that counts it is all that is looked for.
        groups: Of the boundary.
        unit: What they count.
    """
    import narwhals as nw

    from carbonlens.ledger import queries

    view = _of_groups(asked, groups)
    counts = nw.col("unit").is_in([unit.name, unit.plural]) & ~nw.col("units").is_null()
    runs = queries.roots(view.parts, view.orphans).filter(counts).select("run_id")
    rows = view.rows(runs.unique() if asked.listed else runs.head(1))
    return tuple(sorted(row["run_id"] for row in rows if asked.listed)) if rows else None


def _of_groups(asked: Asked, groups: Sequence[RunGroup]) -> View:
    """Return the selected runs of some groups."""
    from carbonlens.ledger.selecting import of_kinds, only

    return only(asked.view, of_kinds(_kinds(groups)))


def _kinds(groups: Sequence[RunGroup]) -> tuple[Kind, ...]:
    return tuple(dict.fromkeys((g.role, g.stage, g.unit, g.study) for g in groups))


def _read(asked: Asked, part: str, groups: Sequence[RunGroup]) -> _Part:
    hours = replace(asked.hours, text=f"{asked.hours.text}.{part}")
    read = PeriodReading(asked.view, asked.inventory, asked.factors, hours, kinds=_kinds(groups))
    activities, findings = read.activities()
    terms = {name: place.terms for name, place in read.places.items()}
    return _Part(
        name=part,
        view=_of_groups(asked, groups),
        read=read,
        activities=tuple(activities),
        findings=tuple(findings),
        shares=tuple(shares(activities, terms, period=hours.text)),
    )


def _of_part(part: _Part, hardware: Mapping[tuple[str, str], Hardware], *, listed: bool) -> list[Built]:
    runs_of = part.read.runs() if listed else dict.fromkeys(part.read.runs_names(), ())
    return [
        _built(
            part.name,
            part.read.places[site].terms,
            [s for s in part.shares if s.site_id == site],
            [a for a in part.activities if a.site_id == site],
            hardware[part.name, site],
            figures=leaves([part.read.places[site]]),
            runs_of=runs_of,
            findings=part.findings,
        )
        for site in part.sites
    ]


def _built(  # noqa: PLR0913 - each is of its own kind
    part: str,
    terms: SiteTerms,
    own: Sequence[Share],
    activities: Sequence[Activity],
    hardware: Hardware,
    *,
    figures: Sequence[Figure],
    runs_of: Mapping[str, tuple[str, ...]],
    findings: Sequence[Finding],
) -> Built:
    """Return one component of what runs of a part recorded at a site."""
    name = f"{terms.site_id}, {part}"
    nowhere = f"grid:{terms.site_id}"
    kwh = add((s.energies.facility_kwh for s in own), "kWh")
    rate = _intensity(own, activities)
    component = Component(
        name=name,
        energy_kwh=kwh,
        intensity=Intensity(
            factor_id=" + ".join(terms.input_ids) or nowhere, rate=rate, input_ids=terms.input_ids
        ),
        embodied=hardware.shares,
        stage=part,
        input_ids=tuple(f"{s.prefix}.facility_kwh" for s in own),
    )
    said = (*findings, *terms.findings, *(f for s in own for f in s.energies.findings), *hardware.findings)
    return Built(
        part=part,
        site_id=terms.site_id,
        component=component,
        inputs=(
            *_energy_inputs(own, activities, kwh),
            *_overheads(own),
            Input(
                symbol="I",
                name="location-based intensity",
                estimate=rate,
                evidence="missing" if rate.value is None else "stated",
                source=_of_intensity(terms, rate, [a.month for a in activities if a.month]),
            ),
            *_embodied_inputs(component, hardware),
        ),
        figures=(
            *(f for s in own for f in s.energies.figures(s.prefix)),
            *figures,
            *(() if terms.input_ids else (_no_factor(nowhere, terms),)),
        ),
        runs_of=runs_of,
        findings=tuple(dict.fromkeys(said)),
    )


def _no_factor(figure_id: str, terms: SiteTerms) -> Figure:
    label = f"grid factor of {terms.site_id} ({terms.place_name or 'place unknown'}): there is none"
    return Figure(figure_id=figure_id, estimate=unknown("kg/kWh"), label=label)


def _intensity(own: Sequence[Share], activities: Sequence[Activity]) -> Estimate:
    """Return I of a component: known where each of its energies has a factor.

    Energy that is a lower bound leaves the rate as it is: the bound is of the energy.
    """
    kg, kwh = (
        add(parts, unit)
        for parts, unit in (
            ([s.location for s in own], "kg"),
            ([s.energies.facility_kwh for s in own], "kWh"),
        )
    )
    if kg.value is None or not kwh.value:
        return unknown("kg/kWh")
    plain = [replace(e, state="known") for e in (kg, kwh)]
    rate = through(mean_intensity, *plain, unit="kg/kWh")
    complete = all(a.location.state == a.energy.state for a in activities if a.energy.value)
    # The scatter of the energy is the energy's: in the ratio of two sums of it there is none.
    return replace(rate, u_random=0.0, state="known" if complete else "unbounded")


def _energy_inputs(own: Sequence[Share], activities: Sequence[Activity], facility: Estimate) -> list[Input]:
    """Return E at the three boundaries; the facility's is the one that counts."""
    graded = [(g, joules) for a in activities for g, joules in a.grade_j.items()]
    by_grade = grade_shares(graded) if any(j for _, j in graded) else {}
    measured = sum(share for grade, share in by_grade.items() if grade in _MEASURED)
    evidence: Evidence = "measured and modelled"
    if not by_grade or measured in (0, 1):
        evidence = "measured" if measured else "modelled"
    told = ", ".join(f"{g} {share:.0%}" for g, share in sorted(by_grade.items())) or "not stated"
    runs = counted(sum(s.runs for s in own), "run")
    found = []
    for boundary in ("device", "it"):
        parts = [getattr(s.energies, f"{boundary}_kwh") for s in own]
        kwh = add(parts, "kWh") if any(p.value is not None for p in parts) else unknown("kWh")
        name = "IT energy" if boundary == "it" else "device energy"
        found.append(
            Input(
                symbol=f"E {boundary}",
                name=name,
                estimate=kwh,
                evidence="missing" if kwh.value is None else evidence,
                source=f"of {runs}",
            )
        )
    source = f"{runs}, evidence grades {told}"
    if facility.state != "known":
        evidence = "missing" if facility.value is None else evidence
        source = "; ".join(dict.fromkeys(f.message for s in own for f in s.energies.findings)) or source
    whole = Input(symbol="E", name="facility energy", estimate=facility, evidence=evidence, source=source)
    return [*found, whole]


def _overheads(own: Sequence[Share]) -> list[Input]:
    """Return PUE and host overhead, where the energy needs them; each value of the months once."""
    found: dict[tuple[str, float | None], Input] = {}
    for share in own:
        around, site = share.energies.overheads, share.terms.site
        needed = {"device": ("PUE", "host"), "it": ("PUE",)}.get(share.boundary or "", ())
        for symbol in needed:
            estimate = around.pue if symbol == "PUE" else around.host
            named = (
                None if site is None else site.pue_source if symbol == "PUE" else site.host_overhead_source
            )
            figure = around.pue_id if symbol == "PUE" else around.host_id
            found[symbol, None if estimate is None else estimate.value] = Input(
                symbol=symbol,
                name="facility energy per IT energy" if symbol == "PUE" else "IT energy per device energy",
                estimate=unknown("1") if estimate is None else estimate,
                evidence="missing" if estimate is None else "stated",
                source="nobody states it" if estimate is None else named or figure,
            )
    return list(found.values())


def _of_intensity(terms: SiteTerms, rate: Estimate, months: Sequence[str]) -> str:
    place = terms.place_name or "place unknown"
    if not terms.input_ids:
        return f"{place}, no factor"
    ids = ", ".join(terms.input_ids[:2])
    more = f" and {len(terms.input_ids) - 2} more" if len(terms.input_ids) > 2 else ""
    held = sorted({*months} & {*terms.location})
    periods = " to ".join(dict.fromkeys((held[0], held[-1]))) if held else "no month"
    rest = "" if rate.state == "known" else "; no factor for a part of the energy"
    return f"{place}, {periods}, average, {terms.span or 'span mixed'}: {ids}{more}{rest}"


def _embodied_inputs(component: Component, hardware: Hardware) -> list[Input]:
    found = []
    for share in component.embodied:
        te = share.total_kg
        found.append(
            Input(
                symbol="TE",
                name=f"embodied emissions of one {share.name}",
                estimate=te,
                evidence="missing" if te.value is None else "stated",
                source=share.how,
            )
        )
    shares = " + ".join(
        f"TE x {s.reserved_h:.6g} h / {s.life_h:.6g} h x {s.reserved:g}/{s.available:g}"
        for s in component.embodied
        if s.total_kg.value is not None
    )
    kg = component.embodied_kg
    source = "; ".join(t for t in (f"M = {shares}" if shares else "", hardware.why) if t)
    evidence: Evidence = "missing" if kg.value is None else "modelled"
    m = Input(symbol="M", name="amortised share", estimate=kg, evidence=evidence, source=source)
    return [*found, m]


def _at(pairs: Sequence[tuple[str, str]]) -> nw.Expr:
    """Return what holds for the rows of some pairs of site and zone, empty where none is stated."""
    import narwhals as nw

    site, zone = nw.col("site").fill_null(""), nw.col("zone").fill_null("")
    return nw.any_horizontal(*((site == s) & (zone == z) for s, z in pairs), ignore_nulls=False)
