"""Arms: the runs of one step, one observation per round, per functional unit."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from carbonlens.accounting import formulas
from carbonlens.accounting.amounts import NO_CURRENCY, account
from carbonlens.compare.statistics import sample
from carbonlens.domain.comparison import Amounts
from carbonlens.domain.estimate import Estimate, add, combined_grade, unknown
from carbonlens.domain.factor import Vector
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.units import Z_95, Boundary

Measure = Literal["energy_j", "emissions_location_kg", "emissions_market_kg", "embodied_kg", "cost"]
MEASURES: Final[tuple[Measure, ...]] = (
    "energy_j",
    "emissions_location_kg",
    "emissions_market_kg",
    "embodied_kg",
    "cost",
)
ROUNDS_NEEDED: Final = 5
"""Fewer complete rounds give no verdict."""


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """One arm in one round.

    Attributes:
        repeat: Number of the round; ``None`` when the runs have none.
        runs: The runs of the round, nearly always one.
        units: Functional units of work done.
        amounts: What one unit takes.
    """

    repeat: int | None
    runs: tuple[Run, ...]
    units: float
    amounts: Amounts


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One measure of one arm over its rounds, per unit.

    Attributes:
        mean: Mean over the rounds, with a t interval and the common errors.
        repeats: Numbers of the rounds; ``None`` when there are none.
        values: The measure in each round.
    """

    mean: Estimate
    repeats: tuple[int, ...] | None
    values: tuple[float, ...]


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """The usable observations of one step.

    Attributes:
        name: Name of the step.
        on: Optimizations that were on; ``None`` when not stated.
        observations: In run order.
        series: One per measure.
        boundary: What its joules include.
    """

    name: str
    on: frozenset[str] | None
    observations: tuple[Observation, ...]
    series: Mapping[Measure, Series]
    boundary: Boundary | None

    @property
    def amounts(self) -> Amounts:
        """Mean amounts per unit."""
        return Amounts(**{m: self.series[m].mean for m in MEASURES})

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs of the usable observations."""
        return tuple(run for o in self.observations for run in o.runs)


def measured_energy(run: Run) -> Estimate:
    """Return a run's energy in joules, with a stated interval as a named error.

    An interval that a source states without saying what it is made of is taken
    as one common error of the instrument (component and method): it widens the
    absolute figure and cancels where the same instrument measured both arms.
    """
    return replace(run, energy=tuple(_with_source(r) for r in run.energy)).total_energy


def core_hours(run: Run) -> Estimate | None:
    """Return a run's core hours from its CPU time; ``None`` when unknown."""
    if run.conditions is None or run.conditions.cpu_s is None:
        return None
    # The kernel's own count of CPU time is a device counter.
    return Estimate(value=float(formulas.core_hours(run.conditions.cpu_s)), unit="core_hour", grade="B")


def observe(runs: Sequence[Run], vector: Vector, *, per_run: bool) -> tuple[Observation, tuple[Finding, ...]]:
    """Return what one unit takes in one round.

    Args:
        runs: Usable runs of one arm in one round.
        vector: Factors and prices.
        per_run: The unit is the run itself.
    """
    units = float(len(runs)) if per_run else math.fsum(float(r.units or 0) for r in runs)
    energy = add((measured_energy(r) for r in runs), "J").scale(1 / units, "J")
    hours = [core_hours(r) for r in runs]
    known = [h for h in hours if h is not None]
    core = add(known, "core_hour").scale(1 / units, "core_hour") if len(known) == len(hours) else None
    amounts, findings = account(energy, runs[0].boundary, core, vector)
    if vector.currency is None and all(r.cost is not None for r in runs):
        amounts = replace(amounts, cost=_stated_cost(runs, units))
        findings = tuple(f for f in findings if f.code != "CL309")
    return Observation(repeat=runs[0].repeat, runs=tuple(runs), units=units, amounts=amounts), findings


def make_arm(name: str, on: frozenset[str] | None, observations: Iterable[Observation]) -> Arm:
    """Return an arm with the means of all its measures.

    Args:
        name: Name of the step.
        on: Optimizations that were on.
        observations: At least one.
    """
    kept = tuple(observations)
    return Arm(
        name=name,
        on=on,
        observations=kept,
        series={m: _series(kept, m) for m in MEASURES},
        boundary=kept[0].runs[0].boundary,
    )


def complete_rounds(
    arms: Sequence[Arm], failed: Collection[str] = ()
) -> tuple[tuple[Arm, ...], tuple[Finding, ...]]:
    """Keep the rounds in which every arm ran, if there are enough of them.

    Means over the same rounds see the same drift. With fewer than five such
    rounds every arm keeps its own, and a verdict rests on the rounds that the
    two arms of its ratio have in common.

    Args:
        arms: The usable arms, baseline first.
        failed: Names of steps that failed. They are never adopted, so their
            missing rounds take none from the others; they keep their own.
    """
    judged = [a for a in arms if a.name not in failed]
    sets = [_repeats(a.observations) for a in judged]
    if any(s is None for s in sets):
        return tuple(arms), ()
    numbers = [frozenset(s or ()) for s in sets]
    common = frozenset.intersection(*numbers)
    dropped = sorted(frozenset.union(*numbers) - common)
    if not dropped:
        return tuple(arms), ()
    which = f"round{'s' if len(dropped) > 1 else ''} {', '.join(map(str, dropped))}"
    if len(common) < ROUNDS_NEEDED:
        return tuple(arms), (
            Finding(
                code="CL405",
                severity="warning",
                message=f"{which} lack a step; each step's mean is over its own rounds",
                mend="measure the missing rounds",
            ),
        )
    kept = {a.name: make_arm(a.name, a.on, (o for o in a.observations if o.repeat in common)) for a in judged}
    return tuple(kept.get(a.name, a) for a in arms), (
        Finding(
            code="CL405",
            severity="info",
            message=f"{which} lack a step and are left out; {len(common)} complete rounds remain",
            mend="measure the missing rounds",
        ),
    )


def _repeats(observations: Sequence[Observation]) -> tuple[int, ...] | None:
    """Return the numbers of the rounds, ``None`` if any is not numbered."""
    numbers = [o.repeat for o in observations if o.repeat is not None]
    return tuple(numbers) if len(numbers) == len(observations) else None


def _series(observations: Sequence[Observation], measure: Measure) -> Series:
    estimates: list[Estimate] = [getattr(o.amounts, measure) for o in observations]
    known = [(o, e, e.value) for o, e in zip(observations, estimates, strict=True) if e.value is not None]
    if not known:
        return Series(mean=unknown(estimates[0].unit), repeats=None, values=())
    values = tuple(value for _, _, value in known)
    return Series(
        mean=_mean([e for _, e, _ in known], values),
        repeats=_repeats([o for o, _, _ in known]),
        values=values,
    )


def _mean(estimates: Sequence[Estimate], values: Sequence[float]) -> Estimate:
    """Return the mean over rounds; its random part is the scatter of the rounds.

    A single round has no scatter, so its own stated random part is kept. A
    round of unknown width leaves the mean without an interval: scatter tells
    the random part alone.
    """
    over = sample(values)
    u_random = over.u_95
    sources: dict[str, list[float]] = {}
    for estimate in estimates:
        for name, u in estimate.u_by_source.items():
            sources.setdefault(name, []).append(u)
    return Estimate(
        value=over.mean,
        unit=estimates[0].unit,
        state="unbounded" if any(e.state == "unbounded" for e in estimates) else "known",
        grade=combined_grade((e.grade, v) for e, v in zip(estimates, values, strict=True)),
        u_random=estimates[0].u_random if u_random is None else u_random,
        u_by_source={name: math.fsum(us) / over.n for name, us in sources.items()},
        bounds=(None, None) if any(e.has_unknown_width for e in estimates) else None,
    )


def _stated_cost(runs: Sequence[Run], units: float) -> Estimate:
    costs = [r.cost for r in runs if r.cost is not None]
    total = float(sum(c.amount for c in costs))
    return Estimate(value=total / units, unit=costs[0].currency if costs else NO_CURRENCY)


def _with_source(reading: Reading) -> Reading:
    if reading.low_j is None and reading.high_j is None:
        return reading
    plain = replace(reading, low_j=None, high_j=None)
    if reading.energy_j is None or reading.u_random_j or any(reading.u_by_source_j.values()):
        return plain
    u = _sigma_of(float(reading.energy_j), reading.low_j, reading.high_j)
    return replace(plain, u_by_source_j={f"stated:{reading.component}:{reading.method}": u})


def _sigma_of(value: float, low: float | None, high: float | None) -> float:
    """Return one sigma of a stated 95 % interval, in log space where it can be."""
    if value <= 0:
        return max(abs(end - value) for end in (low, high) if end is not None) / Z_95
    spans = []
    if low is not None and low > 0:
        spans.append(math.log(value / low))
    if high is not None:
        spans.append(math.log(high / value))
    # A lower end of zero says nothing in log space; it is as wide as the value.
    if not spans:
        return value / Z_95
    return value * math.fsum(spans) / len(spans) / Z_95
