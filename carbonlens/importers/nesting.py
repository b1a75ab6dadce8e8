"""Windows that lie in one another: which one each is a part of, so that joules count once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

_SLACK_S: Final = 1e-3
"""Ends are computed from starts and lengths; what overlaps by less does not."""


class Span(msgspec.Struct, frozen=True):
    """Where a window lies, in seconds, the id of its run and its line."""

    start_s: float
    end_s: float
    run_id: str
    line: int


def nested(spans: Sequence[Span]) -> tuple[dict[str, str], list[Span]]:
    """Return the innermost window each lies in, by run ids, and those that others overlap in part."""
    parents: dict[str, str] = {}
    crossed: list[Span] = []
    around: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start_s, -s.end_s, s.line)):
        around = [w for w in around if w.end_s - _SLACK_S > span.start_s]
        holders = [w for w in around if w.end_s + _SLACK_S >= span.end_s]
        if holders:
            parents[span.run_id] = min(holders, key=lambda w: w.end_s - w.start_s).run_id
        elif around:
            crossed.append(span)
        around.append(span)
    return parents, crossed
