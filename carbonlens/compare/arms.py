"""Arms: the runs of one step, one observation per round, per functional unit."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from carbonlens.accounting.amounts import account
from carbonlens.compare.observation import Observation, core_hours_of
from carbonlens.compare.statistics import sample
from carbonlens.domain.comparison import Amounts
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate, combined_grade, unknown
from carbonlens.domain.factor import Vector
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.domain.units import Boundary

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


class Series(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One measure of one arm over its rounds, per unit.

    Attributes:
        mean: Mean over the rounds, with a t interval and the common errors.
        repeats: Numbers of the rounds; ``None`` when there are none.
        values: The measure in each round.
        measured: Numbers of all rounds that were measured, those that cannot be used too.
    """

    mean: Estimate
    repeats: tuple[int, ...] | None
    values: tuple[float, ...]
    measured: frozenset[int]


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """The usable observations of one step.

    Attributes:
        name: Name of the step.
        on: Optimizations that were on; ``None`` when not stated.
        observations: In run order.
        runs: All runs of the observations.
        series: One per measure.
        boundary: What its joules include.
        vector: Factors and prices the measures are made with.
        measured: Numbers of all rounds that were measured, those that cannot be used too: arms that
            have some in common were measured in rounds, whatever is left of them.
        findings: What is unknown of its measures.
        is_disturbed: All its rounds ran on a disturbed machine, or under a changing power cap: no verdict
            rests on it.
    """

    name: str
    on: frozenset[str] | None
    observations: tuple[Observation, ...]
    runs: tuple[Run, ...]
    series: Mapping[Measure, Series]
    boundary: Boundary | None
    vector: Vector
    measured: frozenset[int] = frozenset()
    findings: tuple[Finding, ...] = ()
    is_disturbed: bool = False

    @property
    def amounts(self) -> Amounts:
        """Mean amounts per unit."""
        return Amounts(**{m: self.series[m].mean for m in MEASURES})


def make_arm(
    name: str,
    on: frozenset[str] | None,
    observations: Iterable[Observation],
    vector: Vector,
    *,
    measured: frozenset[int] = frozenset(),
    is_disturbed: bool = False,
) -> Arm:
    """Return an arm with the means of all its measures.

    Args:
        name: Name of the step.
        on: Optimizations that were on.
        observations: At least one.
        vector: Factors and prices.
        measured: Numbers of the rounds that were measured.
        is_disturbed: No verdict may rest on it.
    """
    kept = tuple(observations)
    boundary = kept[0].runs[0].boundary
    series, findings = _account(kept, boundary, vector, measured)
    return Arm(
        name=name,
        on=on,
        observations=kept,
        runs=tuple(chain.from_iterable(o.runs for o in kept)),
        series=series,
        boundary=boundary,
        vector=vector,
        measured=measured,
        findings=findings,
        is_disturbed=is_disturbed,
    )


def with_observations(arm: Arm, observations: Iterable[Observation]) -> Arm:
    """Return the arm made of other observations, accounted anew.

    Args:
        arm: The arm.
        observations: At least one.
    """
    return make_arm(
        arm.name,
        arm.on,
        observations,
        arm.vector,
        measured=arm.measured,
        is_disturbed=arm.is_disturbed,
    )


def numbered_rounds(arms: Sequence[Arm]) -> tuple[tuple[Arm, ...], tuple[Finding, ...]]:
    """Leave unnumbered runs out of arms whose numbered ones make enough pairs with another arm.

    A run without a number belongs to no pair, and one such run shall not take the
    pairing from all; nor shall one stray number take all other runs away. Where
    the numbered ones make too few pairs all runs stay, without their numbers.

    Args:
        arms: The usable arms.
    """
    numbers = {a.name: frozenset(o.repeat for o in a.observations if o.repeat is not None) for a in arms}
    kept: list[Arm] = []
    findings: list[Finding] = []
    for arm in arms:
        some = [o for o in arm.observations if o.repeat is not None]
        left = len(arm.observations) - len(some)
        if not some or not left:
            kept.append(arm)
        elif _most_pairs(arm.name, numbers) < ROUNDS_NEEDED:
            unnumbered = (replace(o, repeat=None) for o in arm.observations)
            kept.append(with_observations(replace(arm, measured=frozenset()), unnumbered))
        else:
            kept.append(with_observations(arm, some))
            findings.append(_unnumbered(arm.name, left, len(some)))
    return tuple(kept), (*findings, *_unpaired(kept, numbers))


def _most_pairs(name: str, numbers: Mapping[str, frozenset[int]]) -> int:
    """Return how many rounds of an arm another arm has too, at most."""
    return max((len(numbers[name] & theirs) for other, theirs in numbers.items() if other != name), default=0)


def _unnumbered(name: str, left: int, some: int) -> Finding:
    return Finding(
        code="CL438",
        severity="warning",
        message=f"{counted(left, 'run')} of step {name!r} without a number of a round "
        f"{'is' if left == 1 else 'are'} left out; "
        f"{counted(some, 'numbered round remains', 'numbered rounds remain')}",
        subject=name,
        mend="number every run with repeat",
    )


def _unpaired(arms: Sequence[Arm], stated: Mapping[str, frozenset[int]]) -> list[Finding]:
    """Say which arms are compared as independent samples: no number of a round is theirs alike."""
    unnumbered = [a.name for a in arms if _repeats(a.observations) is None]
    if unnumbered:
        # A table without rounds is one way to measure; an arm without them, or with some, is a slip.
        is_table = len(unnumbered) == len(arms) and not any(stated.values())
        who = "runs" if is_table else f"runs of {', '.join(map(repr, unnumbered))}"
        few = any(stated[name] for name in unnumbered)
        why = f", or fewer than {ROUNDS_NEEDED} that another arm has too" if few else ""
        return [
            Finding(
                code="CL417",
                severity="info" if is_table else "warning",
                message=f"{who} carry no round{why}, so arms are compared as independent samples (Welch)",
                mend="number the rounds of interleaved runs with repeat",
            )
        ]
    numbers = {a.name: a.measured for a in arms}
    kinds = set(numbers.values())
    apart = [name for name, mine in numbers.items() if any(not mine & other for other in kinds)]
    if not apart:
        return []
    return [
        Finding(
            code="CL428",
            severity="warning",
            message=f"{', '.join(map(repr, apart))} have no numbered round in common with each other: "
            "they are compared as independent samples (Welch)",
            mend="give runs of one round the same number",
        )
    ]


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
    one = len(dropped) == 1
    which = f"round{'' if one else 's'} {', '.join(map(str, dropped))} {'lacks' if one else 'lack'} a step"
    if len(common) < ROUNDS_NEEDED:
        return tuple(arms), (
            Finding(
                code="CL405",
                severity="warning",
                message=f"{which}; each step's mean is over its own rounds",
                mend="measure the missing rounds",
            ),
        )
    kept = {a.name: with_observations(a, (o for o in a.observations if o.repeat in common)) for a in judged}
    return tuple(kept.get(a.name, a) for a in arms), (
        Finding(
            code="CL405",
            severity="info",
            message=f"{which} and {'is' if one else 'are'} left out; "
            f"{counted(len(common), 'complete round remains', 'complete rounds remain')}",
            mend="measure the missing rounds",
        ),
    )


def _repeats(observations: Sequence[Observation]) -> tuple[int, ...] | None:
    """Return the numbers of the rounds, ``None`` if any is not numbered."""
    numbers = [o.repeat for o in observations if o.repeat is not None]
    return tuple(numbers) if len(numbers) == len(observations) else None


def _account(
    observations: Sequence[Observation],
    boundary: Boundary | None,
    vector: Vector,
    measured: frozenset[int],
) -> tuple[dict[Measure, Series], tuple[Finding, ...]]:
    """Return every measure over the rounds.

    The account is linear in energy and core hours, so the means are accounted
    once with all their errors, and the rounds by the vector's plain rates.
    Core hours that a round does not tell are unknown for the arm.
    """
    energies = [o.energy_j.value or 0.0 for o in observations]
    hours = [o.core_hours for o in observations if o.core_hours is not None]
    has_hours = len(hours) == len(observations)
    mean = _mean([o.energy_j for o in observations], energies)
    core = core_hours_of(math.fsum(hours) / len(hours)) if has_hours else None
    amounts, findings = account(mean, boundary, core, vector)
    rates = _rates(boundary, vector)
    repeats = _repeats(observations)
    plain = Series(mean=mean, repeats=repeats, values=tuple(energies), measured=measured)
    series: dict[Measure, Series] = {"energy_j": plain}
    for measure in MEASURES[1:]:
        per_joule, per_hour = rates[measure]
        values = [e * per_joule for e in energies]
        if has_hours and per_hour:
            values = [v + h * per_hour for v, h in zip(values, hours, strict=True)]
        series[measure] = _series(getattr(amounts, measure), values, plain)
    stated = [o for o in observations if o.stated_cost is not None]
    if vector.currency is None and stated:
        series["cost"] = _stated(stated, measured)
        if len(stated) == len(observations):
            findings = tuple(f for f in findings if f.code != "CL309")
    return series, findings


def _series(mean: Estimate, values: Sequence[float], like: Series) -> Series:
    """Return a measure with the scatter of its own rounds; one round keeps its own random error."""
    if mean.value is None:
        return replace(like, mean=unknown(mean.unit), repeats=None, values=())
    u_random = sample(values).u_95
    if u_random is not None:
        mean = replace(mean, u_random=u_random)
    return replace(like, mean=mean, values=tuple(values))


def _stated(observations: Sequence[Observation], measured: frozenset[int]) -> Series:
    """Return the costs that the runs state, over the rounds that state them."""
    costs = [o.stated_cost for o in observations if o.stated_cost is not None]
    values = [c.value or 0.0 for c in costs]
    return Series(
        mean=_mean(costs, values), repeats=_repeats(observations), values=tuple(values), measured=measured
    )


@lru_cache(maxsize=16)
def _rates(boundary: Boundary | None, vector: Vector) -> Mapping[Measure, tuple[float, float]]:
    """Return what one joule and what one core hour amount to, without their errors."""
    joule = Estimate(value=1.0, unit="J")
    nothing = Estimate(value=0.0, unit="J")
    per_joule, _ = account(joule, boundary, core_hours_of(0.0), vector)
    per_hour, _ = account(nothing, boundary, core_hours_of(1.0), vector)
    return {m: (getattr(per_joule, m).value or 0.0, getattr(per_hour, m).value or 0.0) for m in MEASURES}


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
    grades = {e.grade for e in estimates}
    return Estimate(
        value=over.mean,
        unit=estimates[0].unit,
        state="unbounded" if any(e.state == "unbounded" for e in estimates) else "known",
        grade=grades.pop()
        if len(grades) == 1
        else combined_grade((e.grade, v) for e, v in zip(estimates, values, strict=True)),
        u_random=estimates[0].u_random if u_random is None else u_random,
        u_by_source={name: math.fsum(us) / over.n for name, us in sources.items()},
        bounds=(None, None) if any(e.has_unknown_width for e in estimates) else None,
    )
