"""Gained: what one channel gained over a window, and how its stretches add up."""

from __future__ import annotations

import copy
import math
from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, TypeVar

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.units import US_PER_S
from carbonlens.metering.plausible import no_possible_reading
from carbonlens.signals.integral import Integral

_EDGE_US: Final = 50_000
"""An edge reading is this near to its edge, at most: nobody waits longer for one."""

WHOLE_SHARE: Final = 0.99
"""Share of the window from which a reading is taken as complete."""

_FRESH_US: Final = 5 * US_PER_S
"""While a run goes on, a counter that was read this long ago is on its way and not lost."""

T = TypeVar("T")

_OF_THE_PART: Final = frozenset({"CL120", "CL121", "CL127"})
"""Findings about one stretch's length and cover; the whole window has its own."""

Step = tuple[int, int, float]
"""From, to (microseconds since the start) and what was gained."""


class Gained(msgspec.Struct, frozen=True, kw_only=True):
    """What one channel gained over the window.

    Attributes:
        amount: Joules or seconds; ``None`` when no reading tells.
        covered_s: Seconds of the window that readings stand for.
        u_random: One sigma of the window's own error, in the amount's unit.
        u_common: One sigma of the error all readings of this device share.
        steps: Where in the window it was gained, in time order.
    """

    amount: float | None
    covered_s: float
    u_random: float = 0.0
    u_common: float = 0.0
    steps: tuple[Step, ...] = ()
    findings: tuple[Finding, ...] = ()


def stretches_of(readings: Sequence[tuple[int, float | None]]) -> list[list[tuple[int, float]]]:
    """Return the readings between the marks of what is not known."""
    parts: list[list[tuple[int, float]]] = [[]]
    for t_us, joules in readings:
        if joules is None:
            parts.append([])
        else:
            parts[-1].append((t_us, joules))
    return [p for p in parts if p]


def lost_between(stretches: Sequence[Sequence[tuple[int, float]]], window_us: int) -> int:
    """Return the microseconds of the window between stretches, one of a single reading included."""
    edges = ((a[-1][0], b[0][0]) for a, b in pairwise(stretches))
    return sum(max(min(end, window_us) - max(begin, 0), 0) for begin, end in edges)


def within(part: list[tuple[int, float]], window_us: int) -> list[tuple[int, float]]:
    """Return readings cut to the window: a driver takes its time at both edges.

    What was counted outside of it is taken off at the rate of the first and last step.
    """
    (a_us, a_j), (b_us, b_j) = part[:2]
    if a_us < 0 < b_us:
        part = [(0, a_j + (b_j - a_j) * -a_us / (b_us - a_us)), *part[1:]]
    (a_us, a_j), (b_us, b_j) = part[-2:]
    if a_us < window_us < b_us:
        part = [*part[:-1], (window_us, a_j + (b_j - a_j) * (window_us - a_us) / (b_us - a_us))]
    return part


def whole_if_near(
    readings: Sequence[tuple[int, float | None]], covered_us: float, window_us: int, unbroken: bool
) -> float:
    """Return what is covered: all, if the edges were read and only the driver took a while for it.

    A dear read is of a moment some milliseconds before the edge, at the start as at
    the end, so that its difference spans the window's length.
    """
    near = abs(readings[0][0]) <= _EDGE_US and abs(window_us - readings[-1][0]) <= _EDGE_US
    if unbroken and near and covered_us >= window_us - 2 * _EDGE_US:
        return window_us
    return min(covered_us, window_us)


def summed(integrals: Sequence[Integral], steps: tuple[Step, ...], noted: Sequence[Finding]) -> Gained:
    """Return the sum of stretches: their own errors in quadrature, the common one linearly."""
    told = [i for i in integrals if i.estimate.value is not None]
    covered_s = math.fsum(i.covered_s for i in told)
    findings = {f.code: f for i in integrals for f in i.findings if f.code not in _OF_THE_PART}
    said = (*noted, *(f for f in findings.values() if f.code not in {n.code for n in noted}))
    if not told:
        return Gained(amount=None, covered_s=0.0, findings=said)
    return Gained(
        amount=math.fsum(i.estimate.value or 0.0 for i in told),
        covered_s=covered_s,
        u_random=math.hypot(*(i.estimate.u_random for i in told)),
        u_common=math.fsum(math.hypot(*i.estimate.u_by_source.values()) for i in told),
        steps=steps,
        findings=said,
    )


def only_impossible(refused: int) -> tuple[Finding, ...]:
    """Return what must be said where all readings were refused."""
    return (no_possible_reading(refused),) if refused else ()


def wrapped(wraps: int) -> tuple[Finding, ...]:
    """Return what must be said of a counter that passed its range."""
    if not wraps:
        return ()
    message = f"the counter passed its range {wraps} times; the differences are exact"
    return (Finding(code="CL122", severity="info", message=message),)


def reset_of(resets: int, lost_us: float) -> Finding:
    """Return what must be said of a counter that fell back."""
    return Finding(
        code="CL123",
        severity="warning",
        message=f"its readings broke off {resets} times (a counter that was set back or jumped, "
        f"a gap in a meter's lines): the energy of {lost_us / US_PER_S:g} s is not known",
        mend="read power beside it, or see why the meter pauses",
    )


def twin_of(channel: T) -> T:
    """Return a copy of a channel's tally that can be finished while the channel goes on."""
    twin = copy.copy(channel)
    for name, value in vars(channel).items():
        if isinstance(value, list | deque):
            setattr(twin, name, value.copy())
    return twin


def up_to_now(gain: Gained, window_us: int) -> Gained:
    """Return what was gained, the time since the last reading counted as covered if it is short."""
    behind_us = window_us - gain.steps[-1][1] if gain.steps else 0
    if not 0 < behind_us <= _FRESH_US:
        return gain
    covered_s = min(gain.covered_s + behind_us / US_PER_S, window_us / US_PER_S)
    return msgspec.structs.replace(gain, covered_s=covered_s)
