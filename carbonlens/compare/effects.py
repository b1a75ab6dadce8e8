"""Effects: ratios with simultaneous intervals, and the verdict over them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec
from msgspec.structs import replace

from carbonlens.compare import bootstrap, statistics
from carbonlens.compare.arms import ROUNDS_NEEDED
from carbonlens.compare.contrast import LogChange
from carbonlens.compare.regularity import drift_of, outliers_of
from carbonlens.compare.statistics import Sample
from carbonlens.domain.comparison import Effect
from carbonlens.domain.study import IntervalMethod, Study
from carbonlens.domain.units import Verdict

ALPHA: Final = 0.05
"""Error rate of a study: that of its interval, over all steps, and of each equivalence test."""

ALPHA_SEQUENTIAL: Final = 0.04
"""Nominal rate that is 5 % at most where the scatter decided when to stop (``stopping``)."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A log change with the name of what it is measured against."""

    reference: str
    log: LogChange


def study_effects(changes: Mapping[str, Change], study: Study) -> dict[str, Effect]:
    """Return the effects of one family of steps under a study's margin and kind of interval.

    Args:
        changes: One log change per step.
        study: The study.
    """
    return effects(changes, study.margin, interval=study.interval, is_sequential=study.is_sequential)


def effects(
    changes: Mapping[str, Change],
    margin: float,
    *,
    interval: IntervalMethod = "t",
    is_sequential: bool = False,
) -> dict[str, Effect]:
    """Return the effects of one family of steps.

    Intervals are simultaneous over the steps that could be tested (Bonferroni);
    p values are adjusted by Holm.

    Args:
        changes: One log change per step.
        margin: Relative change regarded as none.
        interval: How the ends are made, where the number of rounds allows it.
        is_sequential: The scatter of the rounds decided how many there are.
    """
    p_values = [_p_value(c.log) for c in changes.values()]
    tests = max(1, sum(p is not None for p in p_values))
    adjusted = statistics.holm(p_values)
    rule = Rule(tests=tests, margin=margin, interval=interval, is_sequential=is_sequential)
    return {
        step: _effect(change, p, p_holm, rule)
        for (step, change), p, p_holm in zip(changes.items(), p_values, adjusted, strict=True)
    }


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """How changes of one family are judged.

    Attributes:
        tests: Number of steps in the family.
        margin: Relative change regarded as none.
        interval: How the ends are made.
        is_sequential: The scatter of the rounds decided how many there are.
    """

    tests: int = 1
    margin: float = 0.01
    interval: IntervalMethod = "t"
    is_sequential: bool = False

    @property
    def alpha(self) -> float:
        """Nominal error rate of the study."""
        return ALPHA_SEQUENTIAL if self.is_sequential else ALPHA

    @property
    def confidence(self) -> float:
        """Confidence of one step's interval, so that all hold together with 95 %."""
        return 1 - self.alpha / self.tests

    @property
    def equivalence(self) -> float:
        """Confidence of the interval that is two one-sided tests (Schuirmann 1987)."""
        return 1 - 2 * self.alpha

    def decides(self, log: LogChange) -> IntervalMethod:
        """Return by which interval the verdict is made: Student's t where the one wanted is not usable.

        Below 20 rounds a bootstrap is too narrow to claim 95 %. Resampling in full
        ends at ten values, so no verdict ever rests on it.
        """
        n = 0 if log.over is None else log.over.n
        is_usable = self.interval == "bca" and bool(log.rounds) and n >= bootstrap.ROUNDS_NEEDED
        return "bca" if is_usable else "t"

    def shown(self, log: LogChange) -> IntervalMethod:
        """Return how the interval that is printed is made: as the verdict's, or over every resample."""
        n = len(log.rounds)
        if self.interval == "exact" and n > 1 and bootstrap.exact_count(n) <= bootstrap.EXACT_LIMIT:
            return "exact"
        return self.decides(log)

    def detectable_log(self, over: Sample, u_common: float = 0.0) -> float | None:
        """Return the smallest log change that the verdict calls one in 8 of 10 studies.

        The interval must leave out no change, and a narrow one must not lie within
        the margin: ``max(t[1 - alpha/2] se, log(1 + margin) - t[equivalence] se) +
        t[0.8] se``, by the usual approximation with central t.

        Args:
            over: The design's sample.
            u_common: One sigma of an error that all rounds share.
        """
        one = over.with_common(u_common)
        clear = statistics.minimum_detectable_log(over, self.confidence, u_common)
        if clear is None or one.se is None or one.df is None:
            return None
        close = statistics.t_quantile(1 - self.alpha, one.df)
        power = statistics.t_quantile(statistics.POWER, one.df)
        return max(clear, math.log1p(self.margin) + (power - close) * one.se)


def interval_of(log: LogChange, confidence: float, method: IntervalMethod) -> tuple[float, float] | None:
    """Return the interval of a log change; ``None`` without scatter to make it from.

    An error that all rounds share widens a bootstrap's ends in quadrature.

    Args:
        log: The change.
        confidence: Of this one interval.
        method: How it is made, as a ``Rule`` says.
    """
    over = log.over
    if over is None:
        return None
    if method == "t":
        half = over.half_width(confidence, log.u_common)
        return None if half is None else (over.mean - half, over.mean + half)
    values = tuple(v for _, v in log.rounds)
    found = _resampled_in_full(values, confidence) if method == "exact" else bootstrap.bca(values, confidence)
    shared = statistics.normal_quantile(1 - (1 - confidence) / 2) * log.u_common
    return (
        over.mean - math.hypot(over.mean - found.low, shared),
        over.mean + math.hypot(found.high - over.mean, shared),
    )


def verdict_of(log: LogChange, rule: Rule) -> Verdict:
    """Return the verdict on one log change.

    Fewer than five complete rounds: inconclusive. ``same`` if the 90 % interval
    lies within the margin (symmetric in logarithms, so that swapping the arms
    swaps the verdict); else ``better`` or ``worse`` if the simultaneous 95 %
    interval leaves out no change; else inconclusive. A part of the energy that
    is unknown may hold any change, and so may an arm without a quiet round:
    inconclusive.

    Args:
        log: The change.
        rule: The family it belongs to.
    """
    over = log.over
    if over is None or over.n < ROUNDS_NEEDED or not log.is_complete or log.is_disturbed:
        return "inconclusive"
    close = interval_of(log, rule.equivalence, rule.decides(log))
    wide = interval_of(log, rule.confidence, rule.decides(log))
    if close is None or wide is None:
        return "inconclusive"
    if max(abs(end) for end in close) <= math.log1p(rule.margin):
        return "same"
    if wide[0] <= 0 <= wide[1]:
        return "inconclusive"
    return "better" if over.mean < 0 else "worse"


def _effect(change: Change, p: float | None, p_holm: float | None, rule: Rule) -> Effect:
    log = change.log
    over = log.over
    ends = interval_of(log, rule.confidence, rule.shown(log)) if log.is_complete else None
    bounds = (None, None) if ends is None else (_exp(ends[0]), _exp(ends[1]))
    drift = drift_of(log.rounds)
    return Effect(
        reference=change.reference,
        ratio=replace(log.estimate, bounds=bounds),
        p_value=p,
        p_holm=p_holm,
        verdict=verdict_of(log, rule),
        n_rounds=0 if over is None else over.n,
        minimum_detectable=_minimum_detectable(log, rule),
        method=rule.shown(log),
        drift_per_round=None if drift is None else drift.mean,
        drift_p=None if drift is None else drift.p_value(),
        outlier_rounds=outliers_of(log.rounds),
        is_disturbed=log.is_disturbed,
    )


def _p_value(log: LogChange) -> float | None:
    return None if log.over is None or not log.is_complete else log.over.p_value(log.u_common)


def _minimum_detectable(log: LogChange, rule: Rule) -> float | None:
    """Return the smallest saving that would be found, as a share of the reference."""
    if log.over is None or not log.is_complete:
        return None
    change = rule.detectable_log(log.over, log.u_common)
    return None if change is None else -math.expm1(-change)


@lru_cache(maxsize=64)
def _resampled_in_full(values: tuple[float, ...], confidence: float) -> bootstrap.Bootstrap:
    """Return the exact bootstrap, once for a step that is measured on the baseline itself."""
    return bootstrap.exact(values, confidence)


def _exp(log: float) -> float | None:
    """Return e**log; ``None`` where no float holds it."""
    return math.exp(log) if log < 700 else None
