"""Effort: what making the steps took, in energy, carbon and money, engineering included.

Compute is measured; it is accounted with the factor of where and when it ran,
which need not be the serving site's. Hours of engineering are given.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec.structs import replace

from carbonlens.accounting.amounts import NO_CURRENCY, account
from carbonlens.compare.arms import MEASURES
from carbonlens.compare.contrast import scaled, sum_amounts
from carbonlens.compare.from_runs import is_chain
from carbonlens.compare.grouping import StepRuns
from carbonlens.compare.observation import core_hours, measured_energy
from carbonlens.domain.comparison import Amounts
from carbonlens.domain.estimate import Estimate, add, unknown
from carbonlens.domain.factor import Vector
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.domain.study import EffortPlace, Study
from carbonlens.domain.units import US_PER_S, Boundary
from carbonlens.errors import IncomparableError

_WIDTH: Final[tuple[Boundary, ...]] = ("device", "it", "facility")
"""Boundaries, each of which holds the one before it."""


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What one effort run took.

    Attributes:
        amounts: Of the run.
        around: Ids of the effort runs of the study in which it lies: their energy holds its own.
    """

    run_id: str
    amounts: Amounts
    around: frozenset[str] = frozenset()


Works = Mapping[str, Sequence[Work]]
"""Effort runs by step."""


def efforts_of(
    groups: Mapping[str, StepRuns],
    study: Study,
    vector: Vector,
    boundary: Boundary | None,
    currency: str | None = None,
) -> tuple[dict[str, Amounts], Works, tuple[Finding, ...]]:
    """Return what making each step took, and its runs; a step without recorded work is absent.

    An optimization of a lattice that was not measured alone has its hours under its own name.

    Args:
        groups: Runs by step.
        study: Says where effort ran, and what engineering took.
        vector: Factors and prices of the serving site.
        boundary: Of the energy that the steps save, at which effort is stated too.
        currency: Of the costs that the steps save; ``None`` where nobody prices them.

    Raises:
        IncomparableError: If effort, engineering and what is saved are not priced in one currency.
    """
    hours = _hours(study)
    works: dict[str, list[Work]] = {}
    findings: list[Finding] = []
    for name, group in groups.items():
        of_runs, of_compute = _compute(group, study, vector, boundary)
        findings += of_compute
        if of_runs:
            works[name] = of_runs
    _refuse_mixed(works, study, currency)
    computes = {}
    for name, some in works.items():
        own, inner = _apart(some, _summed(some))
        computes[name] = _sum_of(own, inner)
    found = dict(computes)
    for name, spent in hours.items():
        found[name] = _with_hours(computes.get(name), spent, study)
    return found, works, (*findings, *_unpriced_hours(hours, study), *_unpriced_compute(computes, found))


def _hours(study: Study) -> dict[str, float]:
    """Return the stated hours by step.

    Those of a lattice's optimization stand with the step of it alone, or in a chain
    with the step that adds it.
    """
    hours = {s.name: s.engineering_hours for s in study.steps if s.engineering_hours is not None}
    sets = sorted(
        ((frozenset(s.on), s.name) for s in study.steps if s.on is not None), key=lambda x: len(x[0])
    )
    is_ladder = is_chain(study.steps)
    for one, some in study.optimization_hours.items():
        name = next((n for on, n in sets if one in on and (is_ladder or len(on) == 1)), one)
        hours[name] = hours.get(name, 0.0) + some
    return hours


def _refuse_mixed(works: Works, study: Study, currency: str | None) -> None:
    """Refuse effort unless all of it, engineering and what is saved are priced in one currency.

    Raises:
        IncomparableError: If two of them differ.
    """
    units = [(name, w.amounts.cost.unit) for name, some in works.items() for w in some]
    priced = [(f"effort of step {name!r}", unit) for name, unit in units if unit != NO_CURRENCY]
    if study.engineering is not None and _hours(study):
        priced.insert(0, ("engineering", study.engineering.currency))
    if currency is not None:
        priced.append(("what the steps save", currency))
    other = next((p for p in priced if p[1] != priced[0][1]), None)
    if other is not None:
        first, last = priced[0], other
        raise IncomparableError(
            f"{first[0]} is priced in {first[1]}, {last[0]} in {last[1]}",
            where=study.name,
            mend="state both in one currency; rates are never guessed",
        )


def _unpriced_hours(hours: Iterable[str], study: Study) -> list[Finding]:
    names = list(hours) if study.engineering is None else []
    if not names:
        return []
    return [
        Finding(
            code="CL441",
            severity="warning",
            message=f"engineering hours of {', '.join(names)} have no price: "
            "cost of effort and break-even in money are lower bounds",
            mend="state [engineering] amount_per_hour, currency and source in the study file",
        )
    ]


def _unpriced_compute(computes: Mapping[str, Amounts], efforts: Mapping[str, Amounts]) -> list[Finding]:
    """Say whose runs have no cost where other work has one: their sum is a lower bound."""
    names = [n for n, one in computes.items() if one.cost.value is None]
    if not names or all(one.cost.value is None for one in efforts.values()):
        return []
    return [
        Finding(
            code="CL427",
            severity="warning",
            message=f"what the runs that made {', '.join(names)} cost is unknown: "
            "cost of effort and break-even in money are lower bounds",
            mend="state prices of electricity and machine hours, or the costs with the runs",
        )
    ]


def total_effort(
    efforts: Mapping[str, Amounts], works: Works, steps: Iterable[str], study: Study
) -> tuple[Amounts | None, tuple[str, ...]]:
    """Return the effort of several steps, and the steps that recorded none.

    A run inside another of the same sum is in that one's energy. With a step missing, the sum is a
    lower bound.

    Args:
        efforts: Work to make each step alone.
        works: Its runs.
        steps: Names of the steps.
        study: States the hours.
    """
    names = list(steps)
    summed = _summed(w for n in names for w in works.get(n, ()))
    hours = _hours(study)
    known: list[Amounts] = []
    for name in names:
        own, inner = _apart(works.get(name, ()), summed)
        if not inner:
            known += [efforts[name]] if name in efforts else []
            continue
        compute = _sum_of(own, inner)
        known.append(_with_hours(compute, hours[name], study) if name in hours else compute)
    silent = tuple(n for n in names if n not in efforts)
    if not known:
        return None, silent
    total = sum_amounts(known)
    return (at_least(total) if silent else total), silent


def _apart(some: Sequence[Work], summed: Collection[str]) -> tuple[list[Work], list[Work]]:
    """Return the runs that a sum counts on their own, and those inside others that it has."""
    inner = [w for w in some if not w.around.isdisjoint(summed)]
    return [w for w in some if w.around.isdisjoint(summed)], inner


def _summed(works: Iterable[Work]) -> frozenset[str]:
    """Return the ids of runs whose energy a sum has: one of unknown energy holds nobody's."""
    return frozenset(w.run_id for w in works if w.amounts.energy_j.value is not None)


def _sum_of(own: Sequence[Work], inner: Sequence[Work]) -> Amounts:
    """Return what runs took; nothing more where all of it lies in runs of the same sum."""
    if own:
        return sum_amounts([w.amounts for w in own])
    return scaled(sum_amounts([w.amounts for w in inner]), 0.0)


def at_least(amounts: Amounts) -> Amounts:
    """Return the amounts as lower bounds."""
    bounded = {}
    for measure in MEASURES:
        estimate = getattr(amounts, measure)
        bounded[measure] = estimate if estimate.value is None else replace(estimate, state="unbounded")
    return Amounts(**bounded)


def _compute(
    group: StepRuns, study: Study, vector: Vector, boundary: Boundary | None
) -> tuple[list[Work], tuple[Finding, ...]]:
    """Return what each effort run of a step took, failed attempts included."""
    works: list[Work] = []
    findings: list[Finding] = []
    for run in group.effort:
        here, of_place = _vector_of(run, study, vector)
        amounts, of_account = account(measured_energy(run), run.boundary, core_hours(run), here)
        energy, of_boundary = _at_boundary(amounts.energy_j, run, boundary)
        if here.currency is None and run.cost is not None:
            # As for the arms: without a price, what the run itself says it cost.
            stated = Estimate(value=float(run.cost.amount), unit=run.cost.currency)
            amounts = replace(amounts, cost=stated)
            of_account = tuple(f for f in of_account if f.code != "CL309")
        around = group.effort_around.get(run.run_id, frozenset())
        works.append(Work(run_id=run.run_id, amounts=replace(amounts, energy_j=energy), around=around))
        findings += (*of_place, *of_account, *of_boundary)
    return works, tuple(dict.fromkeys(findings))


def _at_boundary(
    energy: Estimate, run: Run, boundary: Boundary | None
) -> tuple[Estimate, tuple[Finding, ...]]:
    """Return what an effort run took at the boundary of the saving: they are divided by each other.

    A narrower boundary leaves something out, so its joules are a lower bound. A
    wider one, or one that nobody states, tells nothing at the saving's.
    """
    mine = run.boundary
    if mine == boundary or energy.value is None:
        return energy, ()
    is_less = mine in _WIDTH and boundary in _WIDTH and _WIDTH.index(mine) < _WIDTH.index(boundary)
    told = "a lower bound" if is_less else "unknown"
    finding = Finding(
        code="CL445",
        severity="warning",
        message=f"effort of step {run.step!r} was measured at boundary {mine or 'unstated'}, its saving at "
        f"{boundary or 'unstated'}: energy of effort and break-even in energy are {told}",
        mend="measure or state effort and serving at one boundary",
        subject=run.step,
    )
    return replace(energy, state="unbounded") if is_less else unknown("J"), (finding,)


def _vector_of(run: Run, study: Study, vector: Vector) -> tuple[Vector, tuple[Finding, ...]]:
    """Return the factors of where and when a run ran.

    A run that states another zone than the serving site's factor holds for gets no
    factor of that site: its carbon is unknown.
    """
    place = next((p for p in study.effort_places if _fits(p, run)), None)
    if place is not None:
        return place.vector, ()
    zones = {f.zone.casefold() for f in (vector.location, vector.market) if f is not None}
    if run.zone is None or not zones or run.zone.casefold() in zones:
        return vector, ()
    finding = Finding(
        code="CL440",
        severity="warning",
        message=f"effort of step {run.step!r} ran in zone {run.zone}, for which no factor is stated: "
        "its carbon is unknown",
        mend=f'state [[effort_place]] with zone = "{run.zone}" and its assumptions in the study file',
        subject=run.step,
    )
    return replace(vector, location=None, market=None), (finding,)


def _fits(place: EffortPlace, run: Run) -> bool:
    if place.zone is not None and (run.zone or "").casefold() != place.zone.casefold():
        return False
    if place.site is not None and run.site != place.site:
        return False
    return place.period is None or _day(run).startswith(place.period)


def _day(run: Run) -> str:
    """Return the UTC date on which a run started, empty when unknown."""
    if run.start_us is None:
        return ""
    return datetime.fromtimestamp(run.start_us / US_PER_S, tz=UTC).date().isoformat()


def _with_hours(compute: Amounts | None, hours: float, study: Study) -> Amounts:
    """Return the effort with its engineering; without runs its compute stays unknown."""
    if compute is None:
        compute = Amounts(
            energy_j=unknown("J"),
            emissions_location_kg=unknown("kg"),
            emissions_market_kg=unknown("kg"),
            embodied_kg=unknown("kg"),
            cost=unknown(NO_CURRENCY),
        )
    rate = study.engineering
    if rate is None:
        return replace(compute, cost=at_least(compute).cost)
    amount = float(rate.amount_per_hour) * hours
    sources = {"engineering": amount * rate.u_relative} if rate.u_relative else {}
    priced = Estimate(value=amount, unit=rate.currency, grade="E", u_by_source=sources)
    cost = compute.cost if compute.cost.unit != NO_CURRENCY else unknown(rate.currency)
    return replace(compute, cost=add((cost, priced), rate.currency))
