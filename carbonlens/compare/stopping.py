"""Stop rule: how many more rounds until every step's interval is narrow enough.

Optional stopping inflates errors where the decision to go on depends on the
effect seen so far. This rule never looks at it: it looks at the scatter of the
log ratios alone. For normal errors mean and scatter are independent, so what is
left to control is that a scatter which is small by chance ends a series early.
Three things do that: no look before ten rounds, four rounds beyond the
count that the scatter asks for, and verdicts at a nominal 4 % (``Study
.is_sequential``), which the simulation in ``tests/bench/bench_compare.py`` holds
to 5 % (fixed-width sequential intervals: Stein 1945, Chow and Robbins 1965,
Starr and Woodroofe 1969). Who looks at the verdict and then asks for more rounds
by hand gives that up, also where the rounds asked for are those of ``needed``: these
may be followed where they would be whatever the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from carbonlens.compare.arms import ROUNDS_NEEDED
from carbonlens.compare.effects import Rule
from carbonlens.compare.statistics import Sample, minimum_detectable_log, sample, t_quantile
from carbonlens.errors import UsageError

_SPARE: Final = 4

Outcome = Literal["continue", "narrow_enough", "most_rounds"]


class StopRule(msgspec.Struct, frozen=True, kw_only=True):
    """When a series of rounds has said enough.

    Attributes:
        half_width: Wanted half width of each step's simultaneous interval, as a
            relative change (0.01 is one percent up or down).
        least: Rounds measured before the first look. With fewer than seven the
            interval is over a quarter wider than if the scatter were known.
        most: Rounds after which the series ends in any case.
    """

    half_width: float = 0.01
    least: int = 10
    most: int = 40

    def __post_init__(self) -> None:
        """Refuse what cannot be kept.

        Raises:
            UsageError: If a number is outside its range.
        """
        if not 0 < self.half_width < math.inf:
            raise UsageError(
                f"a stop rule with half width {self.half_width}",
                mend="give a relative half width above 0, for example 0.01",
            )
        if not ROUNDS_NEEDED <= self.least <= self.most:
            raise UsageError(
                f"a stop rule of {self.least} to {self.most} rounds",
                mend=f"begin with at least {ROUNDS_NEEDED} rounds, which a verdict needs",
            )


class NextRounds(msgspec.Struct, frozen=True, kw_only=True):
    """What the rule says after some rounds.

    Attributes:
        more: Rounds to measure before looking again; 0 to stop.
        outcome: Why.
        half_width: Widest half width now, as a relative change; ``None`` before
            there is scatter.
        widest: Step that has it.
        detectable: Smallest relative change that the rounds so far would tell from none
            with 80 % power, in that step.
        needed: Rounds in all that its scatter asks for to be as narrow as wanted.
    """

    more: int
    outcome: Outcome
    half_width: float | None = None
    widest: str | None = None
    detectable: float | None = None
    needed: int | None = None


def next_rounds(log_ratios: Mapping[str, Sequence[float]], rule: StopRule) -> NextRounds:
    """Return how many more complete rounds to measure.

    Args:
        log_ratios: ``ln(E_step / E_reference)`` of every complete round, per step;
            a step that failed is left out by the caller.
        rule: What is wanted.

    Raises:
        UsageError: If there is no step.
    """
    if not log_ratios:
        raise UsageError("no step to measure until its interval is narrow", mend="name a step")
    n = min(len(v) for v in log_ratios.values())
    confidence = Rule(tests=len(log_ratios), is_sequential=True).confidence
    if n < rule.least:
        return NextRounds(more=rule.least - n, outcome="continue")
    overs = {name: sample(values) for name, values in log_ratios.items()}
    widest = max(overs, key=lambda name: overs[name].half_width(confidence) or 0.0)
    over = overs[widest]
    half = over.half_width(confidence) or 0.0
    needed = rounds_for(over, rule.half_width, confidence)
    more = _until_next_look(n, needed, rule)
    reached = n >= needed
    return NextRounds(
        more=more,
        outcome="continue" if more else ("narrow_enough" if reached else "most_rounds"),
        half_width=math.expm1(half),
        widest=widest,
        detectable=_detectable(over, confidence),
        needed=needed,
    )


def rounds_for(over: Sample, half_width: float, confidence: float) -> int:
    """Return how many rounds the scatter seen asks for.

    The smallest n with ``t * s / sqrt(n) <= h``, and four more, because a scatter
    that is underestimated ends the series.

    Args:
        over: Sample of the log ratios so far.
        half_width: Wanted, as a relative change.
        confidence: Of the one interval.
    """
    deviation = (over.se or 0.0) * math.sqrt(over.n)
    wanted = math.log1p(half_width)
    low, high = ROUNDS_NEEDED, ROUNDS_NEEDED
    quantile = 1 - (1 - confidence) / 2

    def is_narrow(count: int) -> bool:
        return t_quantile(quantile, count - 1) * deviation <= wanted * math.sqrt(count)

    while not is_narrow(high) and high < 1_000_000:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_narrow(middle) else (middle, high)
    return high + _SPARE


def _until_next_look(n: int, needed: int, rule: StopRule) -> int:
    """Return the rounds before the next look, at most as many again: the fewer looks, the less is chosen."""
    if n >= rule.most or needed <= n:
        return 0
    return min(needed, 2 * n, rule.most) - n


def _detectable(over: Sample, confidence: float) -> float | None:
    found = minimum_detectable_log(over, confidence)
    return None if found is None else -math.expm1(-found)
