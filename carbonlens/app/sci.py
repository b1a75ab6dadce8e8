"""Use case: SCI, and SCI for AI, of the recorded runs of a study or a period.

The software boundary is what the runs recorded; each site is a component of its own, with its
energy at the facility, its location-based intensity and the hardware that its runs reserved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from carbonlens.accounting.sci import FunctionalUnit, Sci, sci
from carbonlens.accounting.sci_ai import Normalisation, Role, sci_ai
from carbonlens.accounting.sci_boundary import SoftwareBoundary, software_boundary, unit_of
from carbonlens.accounting.statement_figures import measured
from carbonlens.app.inventory import calendar_of, load_inventory
from carbonlens.app.sci_component import Asked, Built, components, counting_runs
from carbonlens.app.sci_ids import unit_in_id
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding
from carbonlens.domain.inventory import Inventory
from carbonlens.errors import SelectionError, UsageError
from carbonlens.factors.store import FactorSet, open_factors
from carbonlens.ledger.calendar import FIRST_HOUR, LAST_HOUR, Calendar, Period
from carbonlens.ledger.opening import open_ledger

if TYPE_CHECKING:
    from carbonlens.ledger.frames import View
    from carbonlens.ledger.store import Ledger

_SAID_HERE = frozenset({"CL307"})
"""What the accounting room says of a lower bound; here the score is unknown, and CL300 says why."""


class Scored(msgspec.Struct, frozen=True, kw_only=True):
    """A score with its inputs.

    Attributes:
        score: g per unit; unknown where an input is missing.
        at_least: What the known inputs come to per unit, where others are missing.
        role, normalisation: Of SCI for AI; ``role`` is ``None`` for SCI.
        boundary: Runs that it holds, and their count.
        built: Components with what each input is and where it comes from.
        scope: Period or study, as it was asked for.
        prefix: Of the ids of its figures: what was asked for, and nothing else, makes them again.
        figures: Every number of it, and the leaves that they rest on.
        runs_of: Runs by the id that figures name them by; none of them where they are not listed.
    """

    sci: Sci
    score: Estimate
    at_least: Estimate | None
    role: Role | None
    normalisation: Normalisation
    boundary: SoftwareBoundary
    built: tuple[Built, ...]
    scope: str
    prefix: str
    ledger: str
    figures: tuple[Figure, ...]
    runs_of: Mapping[str, tuple[str, ...]]
    findings: tuple[Finding, ...]


def make_sci(  # noqa: PLR0913 - each is a choice of the one who asks
    unit: str,
    *,
    study: str | None = None,
    step: str | None = None,
    period: str | None = None,
    ai: Role | None = None,
    per: float = 1.0,
    units: float | None = None,
    normalisation: Normalisation = "gross",
    rationale: str = "",
    inventory: str | Path | None = None,
    factors: str | Path | FactorSet | None = None,
    ledger: str | Path | None = None,
    embodied_source: str | None = None,
    listed: bool = True,
) -> Scored:
    """Return the score of a study, or of all runs of a period.

    Args:
        unit: Functional unit, as the runs name it.
        study: Name of the study; with a period, its runs in the period.
        step: One step of it.
        period: ``2026Q3``, ``2026-08`` or ``2026``, fiscal.
        ai: ``consumer`` or ``provider`` for SCI for AI.
        per: How many units the score is per.
        units: The count, where runs do not count it.
        normalisation: How the units were counted, for SCI for AI.
        rationale: Why this unit.
        inventory: The inventory folder; found as the command line finds it when ``None``.
        factors: The user's own factors, found likewise, or a whole set.
        ledger: The ledger's folder; found likewise.
        embodied_source: Name of the one source of embodied figures to take.
        listed: Whether the runs are listed, for ``explain``; else what they are of has a name alone.

    Raises:
        SelectionError: If the ledger is not there, or no run is selected.
        UsageError: If neither a study nor a period is named, the period is none, a number is not
            above 0, or SCI for AI has no such unit.
        ConfigError, InputFileError: If inventory or factors cannot be read.
        MissingExtraError: If the ``analysis`` extra is not installed.
    """
    from carbonlens.app.compare import require_analysis

    require_analysis()
    wanted = _unit(unit, per, units, rationale)
    kept = load_inventory(inventory)
    calendar = calendar_of(kept.inventory.terms)
    if study is None and period is None:
        raise UsageError("a score needs a software boundary", mend="give --study S, --period P, or both")
    with open_ledger(ledger) as store:
        if not store.exists:
            raise SelectionError("the ledger is not there", where=store.shown, mend="check --ledger")
        hours = _hours(store, calendar, study, period)
        with store.query(period, calendar) as whole:
            view = _selected(whole, study, step)
            asked = Asked(
                view=view,
                inventory=kept.inventory,
                factors=factors if isinstance(factors, FactorSet) else open_factors(factors),
                calendar=calendar,
                hours=hours,
                embodied_source=embodied_source or kept.inventory.terms.embodied_source,
                listed=listed,
            )
            question = _Question(
                unit=wanted,
                ai=ai,
                units=units,
                normalisation=normalisation,
                ledger=store.shown,
                scope=_scope(study, step, period),
            )
            return _scored(asked, question)


class _Question(msgspec.Struct, frozen=True, kw_only=True):
    """Which score is asked for, of what."""

    unit: FunctionalUnit
    ai: Role | None
    units: float | None
    normalisation: Normalisation
    ledger: str
    scope: str


def _scored(asked: Asked, question: _Question) -> Scored:
    unit, ai, scope = question.unit, question.ai, question.scope
    ledger, normalisation = question.ledger, question.normalisation
    from carbonlens.ledger.selecting import run_groups

    boundary = software_boundary(run_groups(asked.view), unit, ai, question.units)
    if not boundary.parts:
        raise SelectionError(
            f"no run of {scope} belongs to a score per {unit.name}", where=ledger, mend=_mend(boundary)
        )
    prefix = _prefix_of(question)
    built = components(replace(asked, hours=replace(asked.hours, text=prefix)), boundary.parts)
    parts = [b.component for b in built]
    made, said = sci(parts, boundary.count, unit), tuple[Finding, ...]()
    if ai is not None:
        of_ai = sci_ai(ai, parts, boundary.count, unit, normalisation)
        made, said = of_ai.sci, of_ai.findings
    findings = [_missing(made, boundary, built)] if made.missing else []
    findings += [*boundary.findings, *(f for f in said if f.code not in _SAID_HERE)]
    findings += _instruments(asked.inventory)
    findings += [f for b in built for f in b.findings]
    figures = [*made.figures(prefix), *(f for b in built for f in measured(b.figures))]
    runs_of = {name: runs for b in built for name, runs in b.runs_of.items()}
    if not boundary.is_stated:
        held = [g for part in boundary.parts.values() for g in part]
        counting = counting_runs(asked, held, unit)
        runs_of |= {} if counting is None else {f"runs.{prefix}.counted": counting}
    figures = [_led(f, prefix, built, runs_of) for f in figures]
    return Scored(
        sci=made,
        score=made.whole,
        at_least=made.at_least,
        role=ai,
        normalisation=normalisation,
        boundary=boundary,
        built=built,
        scope=scope,
        prefix=prefix,
        ledger=ledger,
        figures=tuple({f.figure_id: f for f in reversed(_with_whole(figures, made, prefix))}.values())[::-1],
        runs_of=runs_of,
        findings=tuple(dict.fromkeys((*findings, *asked.factors.findings, *asked.inventory.findings))),
    )


def _prefix_of(question: _Question) -> str:
    """Return the begin of the ids of a score: ``sci.study:S.request``, ``sci.2026.provider.FLOP=1e+21``."""
    unit = question.unit
    stated = "" if question.units is None else f"={question.units:.15g}"
    per = "" if unit.per == 1 else f"*{unit.per:.15g}"
    role = [question.ai] if question.ai is not None else []
    return ".".join(["sci", question.scope, *role, f"{unit_in_id(unit.name)}{stated}{per}"])


def _led(
    figure: Figure, prefix: str, built: Sequence[Built], runs_of: Mapping[str, tuple[str, ...]]
) -> Figure:
    """Return a count and an M with the runs that they are of."""
    if figure.figure_id == f"{prefix}.count":
        name = f"runs.{prefix}.counted"
        formula = "sum over the runs of the units that they count"
        return replace(figure, inputs=(name,), formula=formula) if name in runs_of else figure
    for number, one in enumerate(built, 1):
        if figure.figure_id == f"{prefix}.component_{number}.embodied_kg" and one.component.embodied:
            begin = f"runs.{prefix}.{one.part}.{one.site_id}."
            return replace(figure, inputs=(*figure.inputs, *(n for n in runs_of if n.startswith(begin))))
    return figure


def _with_whole(figures: Sequence[Figure], made: Sci, prefix: str) -> list[Figure]:
    """Return the figures with a score that is unknown where an input is, and its lower bound beside it."""
    found = []
    for figure in figures:
        if figure.figure_id == f"{prefix}.score" and made.missing:
            found.append(replace(figure, estimate=made.whole))
            if made.at_least is not None:
                bound = replace(figure, figure_id=f"{prefix}.at_least", estimate=made.at_least)
                found.append(replace(bound, label=f"{figure.label}, of the inputs that are known"))
        else:
            found.append(figure)
    return found


def _unit(text: str, per: float, units: float | None, rationale: str) -> FunctionalUnit:
    for name, number in (("--per", per), ("--units", units)):
        if number is not None and not 0 < number < float("inf"):
            raise UsageError(f"{name} is {number:g}", where=name, mend="give a number above 0")
    if not text.strip():
        raise UsageError("the unit is empty", where="--unit", mend="name it as the runs do: request")
    return unit_of(text.strip(), per, rationale)


def _hours(store: Ledger, calendar: Calendar, study: str | None, period: str | None) -> Period:
    """Return the hours of a period; without one, those from the first to the last of the study's runs."""
    import narwhals as nw

    if period is not None:
        return calendar.period(period)
    with store.query() as view:
        hour = nw.col("hour_utc")
        of_study = view.parts.filter(nw.col("study") == study)
        dated = of_study.filter(hour >= FIRST_HOUR, hour <= LAST_HOUR)
        (row,) = view.rows(dated.select(first=hour.min(), last=hour.max()))
        if row["first"] is None and not view.rows(of_study.select("run_id").head(1)):
            raise SelectionError(f"no study {study!r}", where=store.shown, mend="see carbonlens runs list")
    if row["first"] is None:
        raise SelectionError(
            f"no run of study {study!r} has a start: its place in time is unknown",
            where=store.shown,
            mend="import the runs with their times",
        )
    return Period(row["first"], row["last"] + 1, study or "")


def _selected(view: View, study: str | None, step: str | None) -> View:
    import narwhals as nw

    from carbonlens.ledger.selecting import only

    if study is not None:
        view = only(view, nw.col("study") == study)
    return view if step is None else only(view, nw.col("step") == step)


def _scope(study: str | None, step: str | None, period: str | None) -> str:
    """Return what was asked for, as ids name it."""
    words = [f"study:{study}"] if study is not None else []
    words += [f"step:{step}"] if step is not None else []
    return ".".join([*words, *([period.strip()] if period is not None else [])])


def _mend(boundary: SoftwareBoundary) -> str:
    told = "; ".join(f"{f.message}: {f.mend}" for f in boundary.findings)
    return told or "see carbonlens runs list for what the ledger holds"


def _missing(made: Sci, boundary: SoftwareBoundary, built: Sequence[Built]) -> Finding:
    """Return the Finding of inputs without which there is no score, each with why it is missing."""
    reasons = {f"{r.symbol} of {b.component.name}": r.source for b in built for r in b.inputs if r.is_missing}
    told = []
    for name in made.missing:
        why = boundary.missing if name == "R" else reasons.get(name.removesuffix(" in part"), "")
        told.append(f"{name} ({why})" if why else name)
    missing = "is missing" if len(told) == 1 else "are missing"
    return Finding(
        code="CL300",
        severity="error",
        message=f"the score is unknown: {'; '.join(told)} {missing}",
        mend="state what is missing: sites.toml (PUE, zone), assets.csv (hardware, life), hardware and units "
        "of the runs",
    )


def _instruments(inventory: Inventory) -> list[Finding]:
    held = len(inventory.certificates)
    if not held:
        return []
    return [
        Finding(
            code="CL463",
            severity="info",
            message=f"{counted(held, 'market instrument')} of the inventory "
            f"{'does' if held == 1 else 'do'} not lower the score: its intensity is location-based",
            mend="nothing; the market-based figure stands in carbonlens account",
        )
    ]
