"""What an explanation says otherwise than the figures that a report prints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from carbonlens.reporting.comparison_json import estimate_json
from carbonlens.reporting.explanation import Node, walk

_PARTS = ("value", "low", "high", "unit", "state", "grade")


def differing(printed: Mapping[str, Mapping[str, Any]], nodes: Iterable[Node]) -> list[str]:
    """Return the figures whose explanation begins with another number, interval, unit or state.

    Args:
        printed: Figures as a report's JSON has them, by id.
        nodes: Their explanations, in the same order.
    """
    wrong = []
    for (figure_id, figure), node in zip(printed.items(), nodes, strict=True):
        assert node.item.item_id == figure_id
        told = estimate_json(node.item.estimate) or {}
        wrong += [
            f"{figure_id} {part}: printed {figure[part]}, explained {told.get(part)}"
            for part in _PARTS
            if not _same(figure[part], told.get(part))
        ]
    return wrong


def unknown_in(nodes: Iterable[Node]) -> list[str]:
    """Return the ids within explanations that lead nowhere."""
    return [n.item.item_id for node in nodes for n in walk(node) if n.item.kind == "unknown"]


def _same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-15)
    return one == other
