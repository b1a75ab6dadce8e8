"""Regularity: drift over the rounds, rounds that stand out, and the first round.

Nothing found here is removed. Drift that all arms share cancels in the ratio of
a round; what is looked at is what is left of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from carbonlens.compare.arms import ROUNDS_NEEDED
from carbonlens.compare.statistics import Sample, grubbs, sample, t_quantile, trend
from carbonlens.domain.comparison import ArmMetrics, Effect, StepResult
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.finding import Finding
from carbonlens.domain.study import IntervalMethod

DRIFT_LEVEL: Final = 0.05
"""Chance of reporting a drift in a study that has none, over all its steps."""

OUTLIER_LEVEL: Final = 0.01
"""Chance per step of naming a round where none stands out (Grubbs 1969)."""

_WORTH_SAYING: Final = 0.001
"""A log ratio that drifts by less over the whole study is not reported."""


def drift_of(rounds: Sequence[tuple[int, float]]) -> Sample | None:
    """Return the slope of a log ratio over the number of the round.

    Args:
        rounds: Number and log ratio of each round; below five there is no slope.
    """
    if len(rounds) < ROUNDS_NEEDED:
        return None
    return trend([value for _, value in rounds], [number for number, _ in rounds])


def outliers_of(rounds: Sequence[tuple[int, float]]) -> tuple[int, ...]:
    """Return the number of the round whose log ratio does not belong to the others.

    Args:
        rounds: Number and log ratio of each round; below five none is named.
    """
    if len(rounds) < ROUNDS_NEEDED:
        return ()
    place = grubbs([value for _, value in rounds], OUTLIER_LEVEL)
    return () if place is None else (rounds[place][0],)


def first_round(values: Sequence[float]) -> Estimate | None:
    """Return the first round over the geometric mean of the others.

    The interval is the 95 % prediction interval of one more round like the
    others, so one that leaves out 1 sets the first round apart.

    Args:
        values: Energy per unit of each round, in run order.
    """
    if len(values) < ROUNDS_NEEDED or min(values) <= 0:
        return None
    logs = [math.log(v) for v in values]
    rest = sample(logs[1:])
    if rest.se is None or rest.df is None:
        return None
    apart = logs[0] - rest.mean
    half = t_quantile(0.975, rest.df) * rest.se * math.sqrt(rest.n + 1)
    if apart + half > 700:
        return None
    return Estimate(value=math.exp(apart), unit="1", bounds=(math.exp(apart - half), math.exp(apart + half)))


def about_rounds(
    steps: Sequence[StepResult], baseline: ArmMetrics | None = None, interval: IntervalMethod = "t"
) -> tuple[Finding, ...]:
    """Say which ratios drift, which rounds stand out, and whose first round differs.

    Args:
        steps: The judged steps.
        baseline: Metrics of the baseline.
        interval: How the study wants its intervals made.
    """
    effects = [(s.title, s.vs_previous) for s in steps if s.vs_previous is not None]
    tests = max(1, sum(e.drift_p is not None for _, e in effects))
    findings: list[Finding] = []
    for name, effect in effects:
        findings += _drift(name, effect, tests)
        findings += _outliers(name, effect)
    arms = [("the baseline", baseline), *((s.title, s.metrics) for s in steps)]
    findings += _other_method([name for name, e in effects if e.method != interval], interval)
    findings += _too_narrow([name for name, e in effects if e.method == "exact"])
    return (*findings, *_first_rounds((n, m.first_round) for n, m in arms if m is not None))


def _drift(name: str, effect: Effect, tests: int) -> list[Finding]:
    slope, p = effect.drift_per_round, effect.drift_p
    if slope is None or p is None or p * tests >= DRIFT_LEVEL:
        return []
    if abs(slope) * effect.n_rounds < _WORTH_SAYING:
        return []
    return [
        Finding(
            code="CL431",
            severity="warning",
            message=f"the ratio of {name} to {effect.reference} drifts by {slope * 100:+.2g} % a round "
            f"(p {p:.2g}): its mean depends on how long was measured",
            subject=name,
            mend="warm up longer, alternate the order of the arms, or measure more rounds",
        )
    ]


def _outliers(name: str, effect: Effect) -> list[Finding]:
    return [
        Finding(
            code="CL432",
            severity="info",
            message=f"round {number} of {name} against {effect.reference} stands out from the others "
            "(Grubbs' test at 1 %); it is counted all the same",
            subject=name,
            mend="find out what happened; more rounds make it matter less",
        )
        for number in effect.outlier_rounds
    ]


def _other_method(names: Sequence[str], interval: IntervalMethod) -> list[Finding]:
    """Say where the wanted interval could not be made, and Student's t stands in."""
    if not names:
        return []
    needed = "2 to 10 numbered rounds" if interval == "exact" else "at least 20 numbered rounds"
    return [
        Finding(
            code="CL437",
            severity="info",
            message=f"intervals of {', '.join(names)} are Student's t: "
            f"the {interval} bootstrap needs {needed}",
            mend='measure that many rounds, or state interval = "t"',
        )
    ]


def _too_narrow(names: Sequence[str]) -> list[Finding]:
    """Say that an exact bootstrap interval is not what the verdict rests on."""
    if not names:
        return []
    return [
        Finding(
            code="CL439",
            severity="warning",
            message=f"printed intervals of {', '.join(names)} count every resample and are too narrow below "
            "20 rounds (at 5 they cover 84 % of the claimed 95 %): the verdict rests on Student's t",
            mend='keep interval = "exact" for checks, and state "t" for decisions',
        )
    ]


def _first_rounds(firsts: Iterable[tuple[str, Estimate | None]]) -> list[Finding]:
    """Say whose first round is not like the rest, over all arms at once."""
    apart = []
    for name, first in firsts:
        if first is None or first.value is None or first.low is None or first.high is None:
            continue
        if (first.low > 1 or first.high < 1) and abs(math.log(first.value)) > _WORTH_SAYING:
            apart.append(f"{name} {(first.value - 1) * 100:+.2g} %")
    if not apart:
        return []
    return [
        Finding(
            code="CL433",
            severity="info",
            message=f"the first round differs from the steady state: {', '.join(apart)}; it is counted",
            mend="warm up before the first round",
        )
    ]
