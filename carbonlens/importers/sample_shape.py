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

_KINDS, _OCTAVES = 64, 64
"""Kinds of steps by size in an octave, and octaves from a microsecond: of steps between two blocks of any
length the usual one is told to a hundredth, of even ones as it is."""


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
        self._steps: dict[int, tuple[int, float]] = {}
        """How many steps there were of each kind that was met, and their sum: a file may have thousands of
        channels."""
        self._longest: list[Span] = []
        self._was_back = False

    @property
    def gaps_us(self) -> tuple[Span, ...] | None:
        """The longest gaps; ``None`` where a clock went back: what was told later may fill them.

        A sample's power is held for some usual steps (``GAP_PERIODS``), as it is counted: a gap is
        what is left until the next one.
        """
        if self._was_back:
            return None
        held_us = GAP_PERIODS * self._usual_us
        return tuple((begin + held_us, end) for begin, end in sorted(self._longest) if end - begin > held_us)

    @property
    def _usual_us(self) -> float:
        """The median step, whatever blocks the samples came in; 0 without one."""
        half = sum(count for count, _ in self._steps.values()) / 2
        before = 0
        for _, (count, total) in sorted(self._steps.items()):
            before += count
            if before >= half:
                return total / count
        return 0.0

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
        places = np.flatnonzero(steps > 0)
        rising = steps[places]
        if not len(rising):
            return
        kinds = np.clip(np.log2(rising) * _KINDS, 0, _KINDS * _OCTAVES - 1).astype(np.int64)
        counts, sums = np.bincount(kinds), np.bincount(kinds, weights=rising)
        for kind in np.flatnonzero(counts).tolist():
            count, total = self._steps.get(kind, (0, 0.0))
            self._steps[kind] = count + int(counts[kind]), total + float(sums[kind])
        longest = places
        if len(places) > _MOST_GAPS:
            longest = places[np.argpartition(rising, -_MOST_GAPS)[-_MOST_GAPS:]]
        spans = [*self._longest, *zip((t_us - steps)[longest].tolist(), t_us[longest].tolist(), strict=True)]
        self._longest = sorted(spans, key=lambda span: span[0] - span[1])[:_MOST_GAPS]
