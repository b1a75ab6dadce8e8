"""What the host did in a window: memory held, time stolen, load."""

from __future__ import annotations

from typing import Final

import msgspec

from carbonlens.metering import process_time
from carbonlens.metering.own_memory import OwnMemory

_REST_NS: Final = 1_000_000_000


class HostFigures(msgspec.Struct, frozen=True):
    """Load at the end, stolen seconds and the peak of memory in the window, where they are told."""

    load_1m: float | None
    steal_s: float | None
    peak_rss_bytes: int | None


class HostWatch:
    """Watches this process, or its children, over one window.

    Args:
        of_children: Whether the work is the children's.
    """

    def __init__(self, *, of_children: bool) -> None:
        """Read nothing yet."""
        self._of_children = of_children
        self._memory = None if of_children else OwnMemory()
        self._sampled_peak: int | None = None
        self._read_ns = 0
        self._steal_s: float | None = None
        self._peak_before = 0

    def begin(self) -> None:
        """Take the figures that the window begins with."""
        self._steal_s = process_time.steal_s()
        self._peak_before = process_time.peak_rss_bytes(of_children=self._of_children)

    def rss(self, now_ns: int, *, edge: bool) -> int | None:
        """Return this process's resident memory, once a second.

        Args:
            now_ns: The monotonic clock.
            edge: True to read it whenever it was read last.
        """
        if self._memory is None or not (edge or now_ns - self._read_ns >= _REST_NS):
            return None
        self._read_ns = now_ns
        held = self._memory.bytes_or_none()
        if held is not None and held > (self._sampled_peak or 0):
            self._sampled_peak = held
        return held

    def figures(self) -> HostFigures:
        """Return the figures of the window, which ends now."""
        return HostFigures(process_time.load_1m(), self._steal_in_window(), self._peak_in_window())

    def _steal_in_window(self) -> float | None:
        now = process_time.steal_s()
        if now is None or self._steal_s is None:
            return None
        return round(max(now - self._steal_s, 0.0), 6)

    def _peak_in_window(self) -> int | None:
        """Return the peak within the window: exact if it is the highest so far, else sampled."""
        peak = process_time.peak_rss_bytes(of_children=self._of_children)
        if self._of_children:
            # A child's figure starts from that of the process it was spawned by, so
            # that nothing is known of one that stayed below it.
            return peak if peak > max(self._peak_before, process_time.peak_rss_bytes()) else None
        if peak > self._peak_before:
            return peak
        return self._sampled_peak
