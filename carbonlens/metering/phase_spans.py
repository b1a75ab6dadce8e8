"""Phase spans: when each phase of a run began and ended, from what its journal noted of switches."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from carbonlens.metering.phases import PhaseMark, Switch

MOST: Final = 10_000
"""Spans that are kept, the longest: training that checkpoints every minute has as many in a week."""


class Span(NamedTuple):
    """One stretch of a phase, in microseconds since the run's start."""

    name: str
    start_us: int
    end_us: int


def spans_of(marks: Iterable[PhaseMark | None], window_us: int, most: int = MOST) -> tuple[Span, ...]:
    """Return the spans of a run's phases in order of time.

    Args:
        marks: How the phases stood, in the order they were noted.
        window_us: End of the run.
        most: Spans that are returned, the longest ones.
    """
    switches = [s for mark in marks if mark is not None for s in mark.switches]
    return longest(_between(switches, window_us), most)


def longest(spans: Iterable[Span], most: int) -> tuple[Span, ...]:
    """Return the longest spans in order of time.

    Args:
        spans: In any order.
        most: How many.
    """
    kept = heapq.nlargest(most, spans, key=lambda span: (span.end_us - span.start_us, -span.start_us))
    return tuple(sorted(kept, key=lambda span: span.start_us))


def _between(switches: list[Switch], window_us: int) -> Iterator[Span]:
    # Threads look in turns, and a look may be written after a later one.
    ordered = sorted(switches, key=lambda s: s.t_us)
    for one, after in pairwise([*ordered, Switch(window_us, None)]):
        end_us = min(after.t_us, window_us)
        if one.name is not None and end_us > one.t_us:
            yield Span(one.name, one.t_us, end_us)
