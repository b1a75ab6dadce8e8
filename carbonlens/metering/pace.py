"""Pace: how often a session is looked at, as a function of its age alone.

Power must be sampled, ten times a second at first; later looks are fewer, so that
a week of training leaves neither much memory nor a large journal. Who seals a run,
also another process after a crash, knows from the age what spacing was meant, and
so what is a gap.

What keeps its value until it is read (counters, CPU time) or changes slowly (memory
held) needs no such haste. It is read after each tenth of the run's age, at most once
a second: of a run that is killed a tenth is lost, or a second. A wake costs 0.1 ms on
a virtual machine before anything is read.
"""

from __future__ import annotations

from typing import Final

FAST_S: Final = 0.1
SLOW_S: Final = 1.0
MAX_S: Final = 30.0
"""Longest time between two looks: short against the quickest counter wrap."""

FAST_FOR_S: Final = 600.0
"""Age up to which a session is looked at every ``FAST_S``."""

_AGE_SHARE: Final = 1 / 3600
_EASY_SHARE: Final = 0.1


STEADY_S: Final = 10.0
"""Age of a run from which on a counter's energy is told within a few percent: a hundred of its steps."""


def easy_s(age_s: float) -> float:
    """Return the time between two readings of what loses nothing by waiting.

    Args:
        age_s: Seconds since the session began.
    """
    return min(max(FAST_S, age_s * _EASY_SHARE), SLOW_S)


def period_s(age_s: float, *, power: bool, easy: bool = False) -> float:
    """Return how long to wait for the next look at a session of this age.

    Args:
        age_s: Seconds since the session began.
        power: Whether a sensor of power is read, whose energy is lost between
            looks; counters and CPU time keep theirs.
        easy: Whether nothing is read that changes quickly and keeps nothing.
    """
    if age_s < FAST_FOR_S:
        return easy_s(age_s) if easy else FAST_S
    if power:
        return SLOW_S
    return min(max(SLOW_S, age_s * _AGE_SHARE), MAX_S)
