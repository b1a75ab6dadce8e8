"""Effects: ratios with simultaneous intervals, and the verdict over them."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from carbonlens.compare import statistics
from carbonlens.compare.arms import ROUNDS_NEEDED
from carbonlens.compare.contrast import LogChange
from carbonlens.domain.comparison import Effect
from carbonlens.domain.units import Verdict

_CONFIDENCE = 0.95
_EQUIVALENCE = 0.90
"""Two one-sided tests at 5 % each are a two-sided 90 % interval (Schuirmann 1987)."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A log change with the name of what it is measured against."""

    reference: str
    log: LogChange


def effects(changes: Mapping[str, Change], margin: float) -> dict[str, Effect]:
    """Return the effects of one family of steps.

    Intervals are simultaneous over the steps that could be tested (Bonferroni);
    p values are adjusted by Holm.

    Args:
        changes: One log change per step.
        margin: Relative change regarded as none.
    """
    p_values = [_p_value(c.log) for c in changes.values()]
    tests = max(1, sum(p is not None for p in p_values))
    adjusted = statistics.holm(p_values)
    return {
        step: _effect(change, p, p_holm, tests, margin)
        for (step, change), p, p_holm in zip(changes.items(), p_values, adjusted, strict=True)
    }


def verdict_of(log: LogChange, *, tests: int, margin: float) -> Verdict:
    """Return the verdict on one log change.

    Fewer than five complete rounds: inconclusive. ``same`` if the 90 % interval
    lies within the margin (symmetric in logarithms, so that swapping the arms
    swaps the verdict); else ``better`` or ``worse`` if the simultaneous 95 %
    interval leaves out no change; else inconclusive. A part of the energy that
    is unknown may hold any change: inconclusive.

    Args:
        log: The change.
        tests: Number of steps in the family.
        margin: Relative change regarded as none.
    """
    over = log.over
    if over is None or over.n < ROUNDS_NEEDED or not log.is_complete:
        return "inconclusive"
    close = over.half_width(_EQUIVALENCE, log.u_common)
    wide = over.half_width(_simultaneous(tests), log.u_common)
    if close is None or wide is None:
        return "inconclusive"
    if abs(over.mean) + close <= math.log1p(margin):
        return "same"
    if abs(over.mean) <= wide:
        return "inconclusive"
    return "better" if over.mean < 0 else "worse"


def _effect(change: Change, p: float | None, p_holm: float | None, tests: int, margin: float) -> Effect:
    log = change.log
    over = log.over
    half = (
        None if over is None or not log.is_complete else over.half_width(_simultaneous(tests), log.u_common)
    )
    bounds: tuple[float | None, float | None] = (None, None)
    if over is not None and half is not None:
        bounds = (_exp(over.mean - half), _exp(over.mean + half))
    return Effect(
        reference=change.reference,
        ratio=replace(log.estimate, bounds=bounds),
        p_value=p,
        p_holm=p_holm,
        verdict=verdict_of(log, tests=tests, margin=margin),
        n_rounds=0 if over is None else over.n,
        minimum_detectable=_minimum_detectable(log, tests),
    )


def _p_value(log: LogChange) -> float | None:
    return None if log.over is None or not log.is_complete else log.over.p_value(log.u_common)


def _minimum_detectable(log: LogChange, tests: int) -> float | None:
    """Return the smallest saving that would be found, as a share of the reference."""
    if log.over is None or not log.is_complete:
        return None
    change = statistics.minimum_detectable_log(log.over, _simultaneous(tests), log.u_common)
    return None if change is None else -math.expm1(-change)


def _simultaneous(tests: int) -> float:
    return 1 - (1 - _CONFIDENCE) / tests


def _exp(log: float) -> float | None:
    """Return e**log; ``None`` where no float holds it."""
    return math.exp(log) if log < 700 else None
