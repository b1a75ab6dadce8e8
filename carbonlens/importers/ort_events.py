"""Events of an ONNX Runtime profile, kept in columns: a million of them take 30 MB."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Final

import msgspec

_KERNEL: Final = "_kernel_time"
_MOST_US: Final = 2**53

NodeKey = tuple[int, str | None, str | None, str, str | None]
"""Session, provider, operator, name and index of a node."""


class _Args(msgspec.Struct, frozen=True):
    op_name: str | None = None
    provider: str | None = None
    node_index: str | int | None = None


class Event(msgspec.Struct, frozen=True):
    """One event, as far as it is of use.

    Attributes:
        cat: ``Session``, ``Node`` or ``Kernel`` (a kernel on a GPU).
        ts, dur: Start and length in microseconds.
    """

    cat: str
    name: str
    pid: int | str = 0
    tid: int | str = 0
    ts: int | float | None = None
    dur: int | float | None = None
    args: _Args = _Args()


class EventTable:
    """Collects events in any order, and tells each node's own time."""

    def __init__(self) -> None:
        """Start empty."""
        self.events = 0
        self.kernels = 0
        self.unread = 0
        self.device_us: int | None = None
        self.is_closed = False
        self._part = 0
        self._sessions: dict[tuple[int, int | str], int] = {}
        self._threads: dict[tuple[int, int | str], int] = {}
        self._keys: dict[NodeKey, int] = {}
        self._columns = (array("l"), array("q"), array("q"), array("l"))
        self._runs: list[list[tuple[int, int]]] = []

    @property
    def sessions(self) -> int:
        """Sessions that had an event."""
        return len(self._sessions)

    def next_session(self) -> None:
        """Say that what follows is of another session, with a clock of its own."""
        self._part += 1

    def take(self, event: Event | None) -> None:
        """Take an event; ``None`` is one that could not be read."""
        self.events += 1
        if event is None:
            self.unread += 1
        elif event.cat == "Session":
            self._take_run(self._session(event), event)
        elif event.cat == "Node":
            self._take_node(self._session(event), event)
        elif event.cat == "Kernel":
            us = _whole_us(event.dur)
            self.unread += us is None
            self.device_us = (self.device_us or 0) + (us or 0)

    def _session(self, event: Event) -> int:
        number = self._sessions.setdefault((self._part, event.pid), len(self._sessions))
        if number == len(self._runs):
            self._runs.append([])
        return number

    def _take_run(self, session: int, event: Event) -> None:
        if event.name == "model_run":
            start, length = _whole_us(event.ts), _whole_us(event.dur)
            if start is None or length is None:
                self.unread += 1
                return
            self._runs[session].append((start, start + length))

    def _take_node(self, session: int, event: Event) -> None:
        if not event.name.endswith(_KERNEL):
            return  # fences, which hold the time of no kernel
        self.kernels += 1
        start, length = _whole_us(event.ts), _whole_us(event.dur)
        if start is None or length is None:
            self.unread += 1
            return
        args = event.args
        index = None if args.node_index is None else str(args.node_index)
        key = (session, args.provider or None, args.op_name or None, event.name, index)
        thread = self._threads.setdefault((session, event.tid), len(self._threads))
        threads, starts, lengths, keys = self._columns
        threads.append(thread)
        starts.append(start)
        lengths.append(length)
        keys.append(self._keys.setdefault(key, len(self._keys)))

    def runs(self, warm_up: int) -> tuple[int, int]:
        """Return how many calls count, and how many are left out."""
        left_out = sum(min(len(runs), max(warm_up, 0)) for runs in self._runs)
        return sum(map(len, self._runs)) - left_out, left_out

    def times(self, warm_up: int) -> Iterator[tuple[NodeKey, int, int]]:
        """Yield each node with its calls and its own microseconds.

        Args:
            warm_up: First calls of each session that are left out, with all nodes that
                began before the end of them.
        """
        own = self._own_us()
        after = [sorted(end for _, end in runs)[:warm_up][-1:] or [0] for runs in self._runs]
        names = list(self._keys)
        calls, sums = [0] * len(names), [0] * len(names)
        for start, key, us in zip(self._columns[1], self._columns[3], own, strict=True):
            if start >= after[names[key][0]][0]:
                calls[key] += 1
                sums[key] += us
        return ((names[k], calls[k], sums[k]) for k in range(len(names)) if calls[k])

    def _own_us(self) -> array[int]:
        """Return each call's time without that of calls within it, on the same thread."""
        threads, starts, lengths, _ = self._columns
        own = array("q", lengths)
        order = sorted(range(len(starts)), key=lambda k: (threads[k], starts[k], -lengths[k]))
        open_calls: list[int] = []
        for k in order:
            while open_calls and (
                threads[open_calls[-1]] != threads[k]
                or starts[open_calls[-1]] + lengths[open_calls[-1]] <= starts[k]
            ):
                open_calls.pop()
            if open_calls:
                # Both times are rounded down, so that the inner can seem the longer by 1.
                outer = open_calls[-1]
                own[outer] = max(own[outer] - lengths[k], 0)
            open_calls.append(k)
        return own


def _whole_us(value: float | None) -> int | None:
    """Return whole microseconds; ``None`` for what is no time."""
    if value is None or not 0 <= value < _MOST_US:
        return None
    return int(value)
