"""Contrasts: weighted sums of arms, in absolute amounts and in logarithms.

A saving, a step's Shapley value and an interaction are all such sums, so one
function serves them. Values use arm means, so that the parts of a ladder
telescope; the random part uses the rounds, in which drift cancels; a source
that moves both arms cancels as far as it is common.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from carbonlens.accounting.amounts import NO_CURRENCY
from carbonlens.compare import statistics
from carbonlens.compare.arms import MEASURES, ROUNDS_NEEDED, Arm, Measure, Series
from carbonlens.compare.statistics import Sample
from carbonlens.domain.comparison import Amounts
from carbonlens.domain.estimate import Estimate, add, unknown, worst_grade
from carbonlens.domain.units import Grade, State

Terms = Sequence[tuple[float, Arm]]


class LogChange(msgspec.Struct, frozen=True, kw_only=True):
    """A mean of logarithms over rounds.

    Attributes:
        over: The rounds; ``None`` when a logarithm does not exist.
        u_common: One sigma of the errors that do not cancel, relative.
        estimate: The ratio that the mean stands for, without its interval;
            ``unbounded`` when a part of an arm's energy is unknown.
        rounds: Number and logarithm of each round, in order; empty when the arms
            are independent samples.
        is_disturbed: An arm has no quiet round, so that no verdict rests on it.
    """

    over: Sample | None
    u_common: float = 0.0
    estimate: Estimate
    rounds: tuple[tuple[int, float], ...] = ()
    is_disturbed: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether the whole of both arms is known; the ratio of two lower bounds bounds nothing."""
        return self.estimate.state == "known"


def contrast(terms: Terms) -> Amounts:
    """Return the weighted sum of arms in all measures.

    Args:
        terms: Weights that add to zero, with their arms.
    """
    return Amounts(**{m: weighted([(w, a.series[m]) for w, a in terms]) for m in MEASURES})


def saving(reference: Arm, step: Arm) -> Amounts:
    """Return what a step saves against a reference, positive when it uses less."""
    return contrast([(1.0, reference), (-1.0, step)])


def total_of(parts: Sequence[Amounts], whole: Amounts) -> Amounts:
    """Return the whole with value and sources taken as the sum of its parts.

    Parts telescope: their values and signed sources sum to the whole's but for
    rounding in the last digit, which this removes. The random part stays the
    whole's own, because neighbours share an arm and are not independent.

    Args:
        parts: Savings of the steps along the path.
        whole: Saving of the path's end against its start.
    """
    return Amounts(**{m: _total([getattr(p, m) for p in parts], getattr(whole, m)) for m in MEASURES})


def scaled(amounts: Amounts, factor: float) -> Amounts:
    """Return all amounts times an exact number, for example a volume."""
    if factor == 1:
        return amounts
    return Amounts(**{m: _scaled(getattr(amounts, m), factor) for m in MEASURES})


def no_change(like: Amounts) -> Amounts:
    """Return the saving of an empty path: exactly zero, in the units of ``like``."""
    return Amounts(
        **{
            m: Estimate(value=0.0, unit=getattr(like, m).unit, signed=True, bounds=(0.0, 0.0))
            for m in MEASURES
        }
    )


def sum_amounts(parts: Sequence[Amounts]) -> Amounts:
    """Return the sum of independent amounts, for example of effort runs.

    A cost that nobody priced has no currency; beside one that is priced it is an
    unknown part of it, and the sum a lower bound.

    Args:
        parts: At least one; all priced ones in one currency.
    """
    if len(parts) == 1:
        return parts[0]
    return Amounts(**{m: _sum([getattr(p, m) for p in parts]) for m in MEASURES})


def log_change(terms: Terms, measure: Measure = "energy_j") -> LogChange:
    """Return the weighted sum of logarithms of arms, round by round.

    Args:
        terms: Weights that add to zero, with their arms.
        measure: What is compared.
    """
    series = [(w, a.series[measure]) for w, a in terms]
    grade = worst_grade(s.mean.grade for _, s in series)
    if any(not s.values or min(s.values) <= 0 for _, s in series):
        return no_log_change(None if not _is_all_gone(series) else 0.0, grade)
    logs = [(w, replace(s, values=tuple(math.log(v) for v in s.values))) for w, s in series]
    rounds = _paired_rounds(logs)
    over = _over_logs(logs, rounds)
    relative: dict[str, float] = {}
    for weight, one in series:
        for name, u in one.mean.u_by_source.items():
            relative[name] = relative.get(name, 0.0) + weight * u / (one.mean.value or math.nan)
    complete = all(s.mean.state == "known" for _, s in series)
    state: State = "known" if complete else "unbounded"
    value = Estimate(value=exp_of(over.mean), unit="1", grade=grade, state=state)
    return LogChange(
        over=over,
        u_common=math.hypot(*relative.values()),
        estimate=value,
        rounds=rounds or (),
        is_disturbed=any(a.is_disturbed for _, a in terms),
    )


def no_log_change(ratio: float | None, grade: Grade | None) -> LogChange:
    """Return the change where a logarithm does not exist.

    Args:
        ratio: 0 where a step that uses nothing stands against something; else unknown.
        grade: Of the arms.
    """
    state: State = "unknown" if ratio is None else "known"
    return LogChange(over=None, estimate=Estimate(value=ratio, unit="1", state=state, grade=grade))


def _is_all_gone(series: Sequence[tuple[float, Series]]) -> bool:
    """Return whether one arm uses exactly nothing where its one reference uses something."""
    if len(series) != 2 or any(not s.values or s.mean.state != "known" for _, s in series):
        return False
    step, reference = (s for _, s in sorted(series, key=lambda term: -term[0]))
    return max(step.values) == 0 and min(reference.values) > 0


def weighted(terms: Sequence[tuple[float, Series]]) -> Estimate:
    """Return the weighted sum of one measure of arms.

    Args:
        terms: Weights that add to zero, with their series.
    """
    means = [(w, s.mean, s.mean.value) for w, s in terms]
    unit = _unit([m for _, m, _ in means])
    if any(v is None for _, _, v in means) or any(m.unit != unit for _, m, _ in means):
        return unknown(unit, signed=True)
    sources: dict[str, float] = {}
    for weight, mean, _ in means:
        for name, u in mean.u_by_source.items():
            sources[name] = sources.get(name, 0.0) + weight * u
    u_random = _over_rounds(terms).u_95
    # A difference of lower bounds bounds nothing: the known part is given, its interval is not.
    known = all(m.state == "known" for _, m, _ in means)
    # Nor does the scatter of the rounds tell what an energy of unknown width leaves open.
    is_told = known and u_random is not None and not any(m.has_unknown_width for _, m, _ in means)
    return Estimate(
        value=math.fsum(w * v for w, _, v in means if v is not None),
        unit=unit,
        state="known" if known else "unknown",
        grade=worst_grade(m.grade for _, m, _ in means),
        u_random=u_random or 0.0,
        u_by_source=sources,
        signed=True,
        bounds=None if is_told else (None, None),
    )


def _over_logs(logs: Sequence[tuple[float, Series]], rounds: tuple[tuple[int, float], ...] | None) -> Sample:
    """Return the sample of the common rounds; of independent arms where none were measured in common."""
    if rounds:
        return statistics.sample([v for _, v in rounds])
    apart = statistics.welch([(w, s.values) for w, s in logs])
    return apart if rounds is None else _without_scatter(apart)


def _without_scatter(apart: Sample) -> Sample:
    """Return a mean over arms whose common rounds are lost: drift does not cancel, and nothing tells it."""
    return replace(apart, se=None, df=None, n=0)


def _over_rounds(terms: Sequence[tuple[float, Series]]) -> Sample:
    """Return the sample of a weighted sum: paired where all series have the same rounds.

    The value beside it is made of all rounds, so that those in common do not serve where
    an arm has others too. Where too few are left in common to carry a verdict, drift stands between
    the others, and nothing tells it.
    """
    rounds = _paired_rounds(terms)
    if rounds and all(len(s.values) == len(rounds) for _, s in terms):
        return statistics.sample([v for _, v in rounds])
    apart = statistics.welch([(w, s.values) for w, s in terms])
    return apart if rounds is None or len(rounds) >= ROUNDS_NEEDED else _without_scatter(apart)


def _paired_rounds(terms: Sequence[tuple[float, Series]]) -> tuple[tuple[int, float], ...] | None:
    """Return number and weighted sum of each common round.

    ``None`` where the series were not measured in rounds; empty where they were, and
    none is left in common.
    """
    numbered = [dict(zip(s.repeats, s.values, strict=True)) for _, s in terms if s.repeats is not None]
    if len(numbered) < len(terms):
        return None
    if not frozenset.intersection(*(s.measured for _, s in terms)):
        return None
    common = sorted(frozenset.intersection(*(frozenset(n) for n in numbered)))
    weights = [w for w, _ in terms]
    rows = ((r, math.fsum(w * n[r] for w, n in zip(weights, numbered, strict=True))) for r in common)
    return tuple(rows)


def _total(parts: Sequence[Estimate], whole: Estimate) -> Estimate:
    values = [p.value for p in parts if p.value is not None]
    if whole.value is None or len(values) < len(parts):
        return whole
    sources: dict[str, list[float]] = {}
    for part in parts:
        for name, u in part.u_by_source.items():
            sources.setdefault(name, []).append(u)
    return replace(
        whole,
        value=math.fsum(values),
        u_by_source={name: math.fsum(us) for name, us in sources.items()},
    )


def _sum(estimates: Sequence[Estimate]) -> Estimate:
    unit = _unit([*(e for e in estimates if e.unit != NO_CURRENCY), estimates[0]])
    return add((unknown(unit) if e.unit == NO_CURRENCY else e for e in estimates), unit)


def _scaled(estimate: Estimate, factor: float) -> Estimate:
    return estimate.scale(factor, estimate.unit)


def _unit(estimates: Sequence[Estimate]) -> str:
    """Return the unit of the known ones, else of the first."""
    stated: Mapping[str, None] = dict.fromkeys(e.unit for e in estimates if e.value is not None)
    return next(iter(stated), estimates[0].unit)


def exp_of(log: float) -> float:
    """Return e**log, at most the largest float (a ratio is never printed as infinite)."""
    return math.exp(min(max(log, -700.0), 700.0))
