"""Energies since the sample before: added up, each over its own seconds.

Formats that tell how long each sample took are believed; of the others a sample took the time
since the one before it. What the first one took is not told then: the usual time is taken, since
its joules were counted over some time, and a mean power without it would be too high.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from carbonlens.domain.units import US_PER_S
from carbonlens.importers.repeats import origins_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from carbonlens.importers.contract import Array
    from carbonlens.importers.repeats import Part, Repeats

    Energies = tuple[Array, Array, Array | None]

SET_BACK_PERIODS: Final = 3
"""A time that falls back by more periods than this is a clock that was set, not a late line."""


class Deltas:
    """Sums of one channel's energies, and of the seconds that they are of.

    Attributes:
        count: Samples that told an energy.
        covered_s, lost_s: Seconds of those, and of the ones that failed.
        first_us, last_us: Begin of the first and end of the last; infinite without times.
        is_told: Whether the format tells what each sample covers.
    """

    def __init__(self) -> None:
        """Start without a sample."""
        self.count = 0
        self.covered_s = self.lost_s = 0.0
        self.first_us, self.last_us = math.inf, -math.inf
        self.is_told = False
        self.has_lost = False
        self._joules: list[float] = []
        self._last_us: float | None = None
        self._open: float | None = None
        """The first energy while nothing tells what it covers."""

    @property
    def energy_j(self) -> float | None:
        """Joules of all samples; ``None`` without one."""
        return math.fsum(self._joules) if self.count else None

    def take(self, t_us: Array | None, joules: Array, seconds: Array | None) -> None:
        """Take further samples, in the order of the file.

        Args:
            t_us: Their times; ``None`` in formats without.
            joules: Energies; NaN for one that failed.
            seconds: What each covers; ``None`` takes the time since the sample before.
        """
        import numpy as np

        if not len(joules):
            return
        good = np.isfinite(joules)
        self.count += int(good.sum())
        self._joules.append(float(joules[good].sum()))
        self.has_lost = self.has_lost or not bool(good.all())
        if seconds is not None:
            self.is_told = True
            lengths = np.asarray(seconds, dtype=np.float64)
        elif t_us is not None:
            lengths = self._since(t_us, float(joules[0]))
        else:
            return
        self.covered_s += float(np.nansum(lengths[good]))
        self.lost_s += float(np.nansum(lengths[~good]))
        if t_us is not None:
            first_s = float(lengths[0]) if math.isfinite(lengths[0]) else 0.0
            self.first_us = min(self.first_us, float(t_us[0]) - first_s * US_PER_S)
            self.last_us = max(self.last_us, float(t_us.max()))

    def _since(self, t_us: Array, first_j: float) -> Array:
        """Return the seconds since the sample before each; NaN for a first one that stands alone."""
        import numpy as np

        before = math.nan if self._last_us is None else self._last_us
        steps: Array = np.diff(t_us, prepend=before)
        self._last_us = float(t_us[-1])
        rising = steps[steps > 0]
        if not len(rising):
            self._open = first_j if math.isnan(before) else self._open
            return np.where(steps < 0, 0.0, steps) / US_PER_S
        usual_us = float(np.median(rising))
        self._close(usual_us)
        # A clock that was set back parts the series: what the next sample covers is not told either.
        begins = np.isnan(steps) | (steps < -SET_BACK_PERIODS * usual_us)
        return np.where(begins, usual_us, np.maximum(steps, 0.0)) / US_PER_S

    def _close(self, usual_us: float) -> None:
        """Give a first sample that stood alone the usual time."""
        if self._open is None:
            return
        if math.isfinite(self._open):
            self.covered_s += usual_us / US_PER_S
        else:
            self.lost_s += usual_us / US_PER_S
        self.first_us -= usual_us
        self._open = None


class NewDeltas:
    """Energies with times, without those that repeat earlier ones of the log.

    Args:
        repeats: Knows the earlier ones.

    Attributes:
        waiting: Samples that are not handed on yet.
        backs_us: What the clock was set back by, each time that no repetition followed.
    """

    def __init__(self, repeats: Repeats) -> None:
        """Start without a sample."""
        self.waiting = 0
        self.backs_us: list[float] = []
        self._repeats = repeats
        self._blocks: list[Energies] = []
        self._last_us: float | None = None

    def take(self, t_us: Array, joules: Array, seconds: Array | None) -> None:
        """Take further samples, of arguments as of ``Deltas.take``."""
        self._blocks.append((t_us, joules, seconds))
        self.waiting += len(joules)

    def parts(self, *, is_last: bool, enough: int) -> list[Energies]:
        """Return the new ones of those that wait, parted where the clock was set back.

        Args:
            is_last: Whether none follow.
            enough: Samples after a clock was set back from which it is told whether they repeat others.
        """
        import numpy as np

        if not self.waiting:
            return []
        t_us = np.concatenate([t for t, _, _ in self._blocks])
        joules = np.concatenate([j for _, j, _ in self._blocks])
        told = [np.asarray(s, dtype=np.float64) for _, _, s in self._blocks if s is not None]
        seconds = np.concatenate(told) if len(told) == len(self._blocks) else None
        self._blocks, self.waiting = [], 0
        back_us, backs = backs_of(t_us)
        places = np.split(np.arange(len(t_us)), backs)
        if not is_last and len(places) > 1 and len(places[-1]) < enough:
            late = places.pop()
            self.take(t_us[late], joules[late], None if seconds is None else seconds[late])
        kept: dict[int, Part] = {}
        found: list[Energies] = []
        parts = [(t_us[place], joules[place]) for place in places]
        origins = origins_of(t_us, joules, parts)
        for number, (place, (t, j)) in enumerate(zip(places, parts, strict=True)):
            near = {n: kept[n] for n in origins[number] if n in kept}
            back = 0.0 if self._last_us is None or not back_us else self._last_us - float(t[0])
            is_back = back > back_us
            known = self._repeats.repeated((t, j), near, is_back=is_back, is_carried=False, is_last=is_last)
            self._last_us = float(t[-1])
            if is_back and known is None:
                self.backs_us.append(back)
            new = place if known is None else place[~known]
            if len(new):
                kept[number] = t_us[new], joules[new]
                found.append((t_us[new], joules[new], None if seconds is None else seconds[new]))
        return found


def backs_of(t_us: Array) -> tuple[float, npt.NDArray[np.int64]]:
    """Return what a clock that was set back falls by at least, and where it was; many are late lines."""
    import numpy as np

    steps = np.diff(t_us)
    rising = steps[steps > 0]
    back_us = SET_BACK_PERIODS * float(np.median(rising)) if len(rising) else 0.0
    backs = np.nonzero(steps < -back_us)[0] + 1
    return back_us, backs if back_us and len(backs) <= max(len(t_us) // 50, 3) else backs[:0]
