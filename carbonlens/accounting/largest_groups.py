"""Largest groups: the lines of a split statement, as many as a page holds, and one line of the others."""

from __future__ import annotations

from collections.abc import Sequence

from carbonlens.accounting.statement import Statement
from carbonlens.accounting.statement_lines import Line, total


def largest_groups(statement: Statement, most: int) -> tuple[tuple[Line, ...], Line | None, int]:
    """Return the largest groups by facility energy, the sum of the others, and how many these are.

    Lower bounds are no part of either: they are never added to true figures.

    Args:
        statement: Split by a label.
        most: How many groups keep a line of their own.
    """
    lines = sorted((x for x in statement.groups if not x.is_lower_bound), key=_size)
    kept, rest = lines[:most], lines[most:]
    if len(rest) == 1:
        kept, rest = lines, []
    return tuple(kept), _others(statement, rest), len(rest)


def _others(statement: Statement, rest: Sequence[Line]) -> Line | None:
    if not rest:
        return None
    return total(f"others.{statement.label}", rest, f"statement.{statement.period.name}")


def _size(line: Line) -> tuple[float, str]:
    return -(line.estimate("facility_kwh").value or 0.0), line.key
