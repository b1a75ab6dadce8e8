"""The same series and profiles on numpy arrays, for traces of millions of samples.

Everything here gives what ``series`` and ``profile`` give, up to rounding; a
property test holds them equal. The core does without it.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.units import US_PER_S
from carbonlens.signals.series import MOST_US, Dropped

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]


class ArraySeries(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Clean readings of one sensor as arrays; see ``series.Series``."""

    t_us: Floats
    values: Floats
    dropped: Dropped = Dropped()
    asked_us: float | None = None

    @property
    def pace_us(self) -> float | None:
        """Median time between readings, whether they told anything or not; ``None`` for fewer than two."""
        return self.spacing_us if self.asked_us is None else self.asked_us

    @cached_property
    def spacing_us(self) -> float | None:
        """Median time between readings; ``None`` for fewer than two."""
        import numpy as np

        return float(np.median(np.diff(self.t_us))) if self.t_us.size > 1 else None

    @property
    def quick_spacing_us(self) -> float | None:
        """Time between readings that one in ten undercuts; ``None`` for fewer than two."""
        import numpy as np

        steps = np.diff(self.t_us)
        place = steps.size // 10
        return float(np.partition(steps, place)[place]) if steps.size else None

    def moves(self) -> ArraySeries:
        """Return the first reading and those that differ from the one before."""
        import numpy as np

        kept = np.ones(self.values.size, bool)
        kept[1:] = self.values[1:] != self.values[:-1]
        return ArraySeries(t_us=self.t_us[kept], values=self.values[kept])

    def held(self, gap_us: float, shift_us: float = 0.0) -> ArrayStretches:
        """Return power samples held until the next one, but never longer than ``gap_us``."""
        import numpy as np

        # Of millions of samples each array that is made anew takes as long as what is done with it.
        ends = self.t_us + gap_us
        np.minimum(ends[:-1], self.t_us[1:], out=ends[:-1])
        lengths = ends - self.t_us
        lengths /= US_PER_S
        seconds, joules = np.zeros(ends.size + 1), np.zeros(ends.size + 1)
        np.cumsum(lengths, out=seconds[1:])
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is told as unknown
            lengths *= self.values
            np.cumsum(lengths, out=joules[1:])
        return ArrayStretches(
            starts_us=self.t_us - shift_us if shift_us else self.t_us,
            ends_us=ends - shift_us if shift_us else ends,
            watts=self.values,
            joules_before=joules,
            seconds_before=seconds,
        )


class ArrayStretches(msgspec.Struct, frozen=True, kw_only=True):
    """A profile on arrays with running sums, so that a window costs a look-up.

    Attributes:
        joules_before: Joules before each stretch, and in all.
        seconds_before: Known seconds before each stretch, and in all.
    """

    starts_us: Floats
    ends_us: Floats
    watts: Floats
    joules_before: Floats
    seconds_before: Floats

    @property
    def lowest_w(self) -> float:
        """Lowest power of all stretches; 0 without one."""
        return float(self.watts.min()) if self.watts.size else 0.0

    @property
    def highest_w(self) -> float:
        """Highest power of all stretches; 0 without one."""
        return float(self.watts.max()) if self.watts.size else 0.0

    def _until(self, t_us: float) -> tuple[float, float]:
        i = int(self.starts_us.searchsorted(t_us, "right")) - 1
        if i < 0:
            return 0.0, 0.0
        seconds = (min(t_us, float(self.ends_us[i])) - float(self.starts_us[i])) / US_PER_S
        # Plain numbers: what is not finite is told as unknown, without numpy's warning.
        joules = float(self.joules_before[i]) + float(self.watts[i]) * seconds
        return joules, float(self.seconds_before[i]) + seconds

    def energy(self, start_us: float, end_us: float) -> tuple[float, float]:
        """Return the joules between two times and the seconds of it that are known."""
        (joules, seconds), (joules_0, seconds_0) = self._until(end_us), self._until(start_us)
        return joules - joules_0, seconds - seconds_0

    def levels(self, start_us: float, end_us: float, step_us: float) -> list[float]:
        """Return the power in watts every ``step_us`` from ``start_us``, where it is known."""
        import numpy as np

        t = start_us + np.arange(int(np.ceil((end_us - start_us) / step_us))) * step_us
        i = self.starts_us.searchsorted(t, "right") - 1
        known = (i >= 0) & (t < self.ends_us[i])
        found: list[float] = self.watts[i[known]].tolist()
        return found

    def highest_between(self, start_us: float, end_us: float) -> float | None:
        """Return the highest power in a window; ``None`` where nothing is known."""
        low = int(self.ends_us.searchsorted(start_us, "right"))
        high = int(self.starts_us.searchsorted(end_us, "left"))
        return float(self.watts[low:high].max()) if high > low else None


def clean(t_us: object, values: object) -> ArraySeries:
    """Return the readings sorted, without the failed and the repeated ones.

    Args:
        t_us: Times in microseconds, anything numpy can read.
        values: One value a time; not a number for a failed reading.

    Raises:
        ValueError: If there are not as many values as times.
    """
    import numpy as np

    t, v = np.asarray(t_us, float), np.asarray(values, float)
    if t.shape != v.shape or t.ndim != 1:
        told, times = counted(v.size, "value"), counted(t.size, "time")
        raise ValueError(f"there must be as many values as times, in one row: {told}, {times}")
    good = np.isfinite(v) & (np.abs(t) <= MOST_US)
    failed = int(t.size - good.sum())
    asked = np.unique(t[np.abs(t) <= MOST_US]) if failed else t[:0]
    if failed:
        t, v = t[good], v[good]
    steps = np.diff(t)
    disordered = int((steps < 0).sum())
    if disordered:
        order = np.argsort(t, kind="stable")
        t, v = t[order], v[order]
        steps = np.diff(t)
    last = np.append(steps > 0, np.ones(min(t.size, 1), bool))
    repeated = int(t.size - last.sum())
    # Copies of millions of samples cost more than what is done with them.
    t, v = (t[last], v[last]) if repeated else (t, v)
    return ArraySeries(
        t_us=t,
        values=v,
        dropped=Dropped(failed=failed, repeated=repeated, disordered=disordered),
        asked_us=float(np.median(np.diff(asked))) if asked.size > 1 else None,
    )
