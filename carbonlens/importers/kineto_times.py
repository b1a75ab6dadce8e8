"""Times of a Kineto trace in columns: own time of nested operators, busy time of GPUs."""

from __future__ import annotations

from array import array
from typing import Final, Literal

import numpy as np

SpanKind = Literal["cpu", "kernel", "copy"]

_NESTS: Final = "CPU"


class Spans:
    """Events with a begin and a length; 32 bytes each."""

    def __init__(self) -> None:
        """Start empty."""
        self.events = self.kernels = 0
        self.kernel_us = 0.0
        self.keys: dict[tuple[str, str], int] = {}
        self.rows: dict[str, int] = {}
        self.columns = (array("d"), array("d"), array("q"), array("q"))
        self._first_us, self._last_us = float("inf"), float("-inf")

    @property
    def span_us(self) -> float:
        """First begin to last end."""
        return max(self._last_us - self._first_us, 0.0)

    def see(self, start: float, length: float) -> None:
        """Count an event that is no operator's."""
        self.events += 1
        self._first_us = min(self._first_us, start)
        self._last_us = max(self._last_us, start + length)

    def add(self, provider: str, name: str, row: str, start: float, length: float, *, kind: SpanKind) -> None:
        """Keep one of an operator, a kernel or a copy."""
        self.see(start, length)
        if kind == "kernel":
            self.kernels += 1
            self.kernel_us += length
        starts, lengths, keys, rows = self.columns
        starts.append(start)
        lengths.append(length)
        keys.append(self.keys.setdefault((provider, name), len(self.keys)))
        rows.append(self.rows.setdefault(row, len(self.rows)))


def own_us(spans: Spans) -> dict[tuple[str, str], tuple[int, float]]:
    """Return calls and microseconds by provider and name; of the CPU without what was called within."""
    starts, lengths, keys, rows = (np.array(c) for c in spans.columns)
    names = list(spans.keys)
    on_cpu = np.array([provider == _NESTS for provider, _ in names], dtype=bool)
    own = lengths.copy()
    nested = np.flatnonzero(on_cpu[keys]) if names else np.array([], dtype=np.int64)
    order = nested[np.lexsort((-lengths[nested], starts[nested], rows[nested]))]
    ends = starts + lengths
    waiting: list[int] = []
    for k in order.tolist():
        while waiting and (rows[waiting[-1]] != rows[k] or ends[waiting[-1]] <= starts[k]):
            waiting.pop()
        if waiting:
            # What ends after its caller was timed apart from it: only the part within is the caller's.
            own[waiting[-1]] -= min(ends[k], ends[waiting[-1]]) - starts[k]
        waiting.append(k)
    calls = np.bincount(keys, minlength=len(names))
    sums = np.bincount(keys, weights=np.maximum(own, 0.0), minlength=len(names))
    return {key: (int(calls[i]), float(sums[i])) for i, key in enumerate(names)}


def busy_us(spans: Spans) -> dict[str, float]:
    """Return the microseconds in which each GPU did anything: streams at once count once."""
    starts, lengths, keys, _ = (np.array(c) for c in spans.columns)
    names = list(spans.keys)
    found: dict[str, float] = {}
    for gpu in sorted({provider for provider, _ in names if provider != _NESTS}):
        of_gpu = np.array([provider == gpu for provider, _ in names], dtype=bool)
        mine = np.flatnonzero(of_gpu[keys])
        mine = mine[np.argsort(starts[mine], kind="stable")]
        begin, end = starts[mine], starts[mine] + lengths[mine]
        until = np.maximum.accumulate(end)
        before = np.concatenate(([-np.inf], until[:-1]))
        found[gpu] = float(np.maximum(end - np.maximum(begin, before), 0.0).sum())
    return found
