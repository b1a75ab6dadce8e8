"""Named parts of the interval of one integral, each a standard uncertainty in joules.

``gain``, ``offset`` and ``meter`` (the one a calibration rests on) are common to
all readings of a sensor; the others belong to the window alone:

- ``beyond``: power outside the range a calibration covers;
- ``duty``: what the sensor does not look at between its updates;
- ``edges``: how power moves inside the updates that the two edges cut;
- ``tick``: a counter moves only once an update period;
- ``lag``: the sensor tells what was true a while ago;
- ``gaps``: stretches too short to count as a hole, but not known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import msgspec

from carbonlens.domain.units import US_PER_S
from carbonlens.signals.profile import Profile
from carbonlens.signals.sensor import GAIN_U, LEAST_DUTY, OFFSET_SHARE_U, Sensor

BLOCK: Final = 32
"""Updates over which power is looked at for beats between load and sensor.

Yang et al. (SC24) ask for at least 32 repetitions before a mean settles.
"""

MOST_LEVELS: Final = 20_000
"""Levels of power looked at in one window, at most."""

SMALL_SHARE: Final = 0.05
"""Share of a window that may be uncovered without making its energy a lower bound."""

LONGEST_LAG_US: Final = US_PER_S
"""Lag of a sensor of which none is known, at most, however seldom it is read.

H100 boards lag by 0.1 s or more and update every 0.1 s (project measurement).
"""

COMMON_PARTS: Final = ("gain", "offset", "meter")
"""Parts that all readings of one sensor share."""


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """One integral whose interval is wanted.

    Attributes:
        profile: Power over time as the sensor told it.
        updates: The same, drawn between the sensor's own updates.
        energy_j: The integral over the part that is known.
        covered_s: Seconds of the window that are known.
        period_us: Time between two updates that were read.
    """

    profile: Profile
    updates: Profile
    sensor: Sensor
    start_us: float
    end_us: float
    energy_j: float
    covered_s: float
    period_us: float

    @property
    def length_s(self) -> float:
        """Length of the window in seconds."""
        return (self.end_us - self.start_us) / US_PER_S

    @property
    def period_s(self) -> float:
        """Time between two updates in seconds."""
        return self.period_us / US_PER_S

    @property
    def uncovered_s(self) -> float:
        """Seconds of the window that are not known."""
        return max(self.length_s - self.covered_s, 0.0)

    @property
    def complete(self) -> bool:
        """Whether less than an update, and little of the window, is not known."""
        return self.uncovered_s <= min(self.period_s, SMALL_SHARE * self.length_s)

    @property
    def mean_w(self) -> float:
        """Mean power over what is known."""
        return self.energy_j / self.covered_s if self.covered_s else 0.0


def parts(window: Window) -> dict[str, float]:
    """Return every part of the interval that is not zero, in joules (1 sigma)."""
    found = {"gain": _gain(window), "offset": _offset(window), "beyond": _beyond(window)}
    found |= {"meter": window.sensor.reference_u * window.energy_j}
    found |= {"lag": _lag(window), "gaps": _gaps(window)}
    if window.sensor.kind == "counter":
        found["tick"] = _tick(window)
    else:
        found["edges"] = _edges(window)
    if window.sensor.kind == "instant":
        found["duty"] = _duty(window)
    return {name: u for name, u in found.items() if u}


def _gain(w: Window) -> float:
    return w.sensor.gain_u * (w.energy_j - w.sensor.pivot_w * w.covered_s)


def _offset(w: Window) -> float:
    if w.sensor.offset_u_w is not None:
        return w.sensor.offset_u_w * w.covered_s
    if w.sensor.kind == "counter":
        return 0.0
    full_w = w.sensor.rated_w if w.sensor.rated_w is not None else w.profile.highest_w
    return OFFSET_SHARE_U * full_w * w.covered_s


def _beyond(w: Window) -> float:
    if w.sensor.valid_w is None:
        return 0.0
    low, high = w.sensor.valid_w
    return GAIN_U * max(low - w.mean_w, w.mean_w - high, 0.0) * w.covered_s


def _gaps(w: Window) -> float:
    if not w.complete:
        return 0.0  # The energy is a lower bound then, and says so.
    # They hold anything from none to twice the mean power, and count as none.
    return w.mean_w * w.uncovered_s * 2 / math.sqrt(3)


def _tick(w: Window) -> float:
    """Return the effect of two readings that are each up to one period old.

    The age is even over the period (sigma = period / sqrt 12) and independent at
    the two edges; power near the edges counts, because the window itself may
    have caught too few ticks.
    """
    reach_us = _reach_us(w) if w.length_s < 2 * w.period_s else w.period_us
    return max(_highest_near(w, reach_us), w.mean_w) * w.period_s / math.sqrt(6)


def _edges(w: Window) -> float:
    """Return the effect of structure finer than one update at both edges.

    A load that switches between the lowest power and as much above the mean, once
    an update, integrates to a triangle of amplitude A T / 4, whose rms is
    A T / (4 sqrt 3); the two edges of one periodic load err together.
    """
    idle_w = w.sensor.idle_w if w.sensor.idle_w is not None else w.profile.lowest_w
    swing_w = max(w.mean_w - idle_w, 0.0)
    cut = swing_w * min(w.period_s / (2 * math.sqrt(3)), w.length_s)
    if w.length_s >= (1 if w.sensor.rated_w is None else 2) * w.period_s:
        return cut
    # Between two looks there may have been any power that the device can draw, evenly;
    # where its rating is not known, any seen around it.
    most_w = max(_highest_near(w, _reach_us(w)), w.sensor.rated_w or 0.0)
    missed_w = most_w - w.mean_w
    return max(cut, missed_w * min(w.length_s, w.period_s) / math.sqrt(3))


def _reach_us(w: Window) -> float:
    return BLOCK / 2 * w.period_us


def _highest_near(w: Window, reach_us: float) -> float:
    return w.updates.highest_between(w.start_us - reach_us, w.end_us + reach_us) or 0.0


def _lag(w: Window) -> float:
    """Return how much the integral would change if all were one lag earlier or later.

    The lag's own uncertainty is the step. What the device drew beside the window
    is looked up; where nobody knows, it may have been nothing.
    """
    step_us = min(w.period_us, LONGEST_LAG_US) if w.sensor.lag_u_us is None else w.sensor.lag_u_us
    if w.sensor.kind == "average":
        # Averaging smears an edge over the window, half to each side.
        step_us = max(step_us, (w.sensor.window_us or w.period_us) / 2)
    later = _contrast(w, (w.end_us, w.end_us + step_us), (w.start_us, w.start_us + step_us))
    sooner = _contrast(w, (w.end_us - step_us, w.end_us), (w.start_us - step_us, w.start_us))
    return max(later, sooner) * step_us / US_PER_S


def _contrast(w: Window, one: tuple[float, float], other: tuple[float, float]) -> float:
    powers = []
    for start_us, end_us in (one, other):
        joules, seconds = w.updates.energy(start_us, end_us)
        powers.append(joules / seconds if seconds else None)
    a, b = powers
    if a is None or b is None:
        return max(w.mean_w, a or 0.0, b or 0.0)
    return abs(a - b)


def _duty(w: Window) -> float:
    """Return the effect of the time between two looks of an instantaneous sensor.

    Readings that vary tell that the load does, and the unseen share of each
    period may hold any of it. Against a periodic load the sensor beats: for half a
    beat all readings err alike, then the other way, so that a mean over n readings
    keeps h / n of the spread, h being the mean run on one side of the mean. An
    irregular load keeps 1 / sqrt n. Which of them it is cannot be told; both are
    taken. Slow real changes widen the interval too: safe, not sharp.
    """
    duty = w.sensor.duty if w.sensor.duty is not None else LEAST_DUTY
    # Whoever reads less often than the sensor updates misses more.
    duty *= min((w.sensor.update_period_us or w.period_us) / w.period_us, 1.0)
    length_us = w.end_us - w.start_us
    # A coarser step over very long windows takes slow changes for beats: wider, and affordable.
    step_us = max(w.period_us, length_us / MOST_LEVELS)
    short_us = max(BLOCK * step_us - length_us, 0.0)
    seen = w.profile.levels(w.start_us - short_us / 2, w.end_us + short_us / 2, step_us)
    spread_w, run = spread_and_run(seen)
    n = length_us / step_us
    kept = min(math.sqrt((run / n) ** 2 + 1 / n), 1.0)
    return (1 - duty) * spread_w * kept * w.covered_s


def spread_and_run(levels: Sequence[float]) -> tuple[float, float]:
    """Return the spread within blocks of about ``BLOCK`` values and the mean run about their means.

    Args:
        levels: Power at equal steps, in watts.

    Returns:
        Standard deviation within blocks in watts, and the mean number of
        successive values on one side of their block's mean.
    """
    if len(levels) < 2:
        return 0.0, 1.0
    count = max(len(levels) // BLOCK, 1)
    bounds = [len(levels) * k // count for k in range(count + 1)]
    squares, runs = 0.0, 0
    for low, high in pairwise(bounds):
        block = levels[low:high]
        mean = math.fsum(block) / len(block)
        squares += math.fsum((x - mean) ** 2 for x in block)
        runs += 1 + sum((a > mean) != (b > mean) for a, b in pairwise(block))
    return math.sqrt(squares / max(len(levels) - count, 1)), len(levels) / runs
