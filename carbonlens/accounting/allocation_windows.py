"""Windows of one process, by time: which of very many go on in a span.

A tree of latest ends over the windows in the order of their starts: each answer costs
O(log n) a window found, also where one long window lies around many short ones.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

_NEVER: Final = -(2**63)


class Windows:
    """Windows, each with a start, an end and a name."""

    def __init__(self, windows: Iterable[tuple[int, int, str]]) -> None:
        """Take the windows.

        Args:
            windows: Start and end in microseconds, and a name; in any order.
        """
        self._sorted = sorted(windows)
        self._leaves = 1
        while self._leaves < len(self._sorted):
            self._leaves *= 2
        # Node k has the nodes 2k and 2k + 1 below it; the leaves are the windows.
        self._latest = [_NEVER] * (2 * self._leaves)
        for place, (_, end, _) in enumerate(self._sorted):
            self._latest[self._leaves + place] = end
        for node in range(self._leaves - 1, 0, -1):
            self._latest[node] = max(self._latest[2 * node], self._latest[2 * node + 1])

    def overlapping(self, start_us: int, end_us: int) -> Iterable[str]:
        """Yield the names of windows that share time with a span, the latest to start first.

        Args:
            start_us: First microsecond of the span.
            end_us: Its end.
        """
        count = bisect_left(self._sorted, (end_us,))
        stack = [(1, 0, self._leaves)]
        while stack:
            node, first, width = stack.pop()
            if first >= count or self._latest[node] <= start_us:
                continue
            if width == 1:
                yield self._sorted[first][2]
                continue
            half = width // 2
            stack += [(2 * node, first, half), (2 * node + 1, first + half, half)]
