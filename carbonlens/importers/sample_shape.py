"""How a channel's samples lie: how often their value changes, and when nothing was told for long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carbonlens.signals.sensor import GAP_PERIODS

if TYPE_CHECKING:
    from carbonlens.importers.contract import Array

Span = tuple[float, float]
"""Begin and end, UTC microseconds."""

_MOST_GAPS: Final = 64
"""Of more the longest are kept: the others are taken for told, so no energy counts twice."""


class SampleShape:
    """Looks at samples as they come.

    Attributes:
        changes: Values that differ from the one before.
    """

    def __init__(self) -> None:
        """Start without a sample."""
        self.changes = 0
        self._last: float | None = None
        self._last_us: float | None = None
        self._usual_us: float | None = None
        self._gaps: list[Span] = []
        self._was_back = False

    @property
    def gaps_us(self) -> tuple[Span, ...] | None:
        """The longest gaps; ``None`` where a clock went back: what was told later may fill them."""
        return None if self._was_back else tuple(self._gaps)

    def take(self, t_us: Array | None, values: Array) -> None:
        """Take further samples; those that failed tell nothing."""
        import numpy as np

        good = np.isfinite(values)
        if t_us is not None:
            good &= np.isfinite(t_us)
        told = values[good]
        if not len(told):
            return
        first = told[0] if self._last is None else self._last
        self.changes += int(np.count_nonzero(np.diff(told, prepend=first)))
        self._last = float(told[-1])
        if t_us is not None:
            self._take_times(t_us[good])

    def _take_times(self, t_us: Array) -> None:
        import numpy as np

        begin = t_us[0] if self._last_us is None else self._last_us
        steps = np.diff(t_us, prepend=begin)
        self._last_us = float(t_us[-1])
        self._was_back = self._was_back or bool((steps < 0).any())
        rising = steps[steps > 0]
        if not len(rising):
            return
        if self._usual_us is None:
            self._usual_us = float(np.median(rising))
        for place in np.flatnonzero(steps > GAP_PERIODS * self._usual_us).tolist():
            end_us = float(t_us[place])
            self._gaps.append((end_us - float(steps[place]), end_us))
        if len(self._gaps) > _MOST_GAPS:
            self._gaps = sorted(self._gaps, key=lambda g: g[0] - g[1])[:_MOST_GAPS]
