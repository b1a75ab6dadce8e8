"""How an explanation is printed: a tree, each figure with its number, formula and id."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from carbonlens.accounting.conversions import kwh_to_j
from carbonlens.cli import output
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate
from carbonlens.reporting import format as fmt
from carbonlens.reporting.explanation import SCHEMA, Node, as_json

_STEP = "  "
_DEEPEST = 12
"""Levels that are indented: below, lines would be too short to read."""


def print_ids(found: Sequence[str], *, json: bool) -> None:
    """Print ids that can be explained, one a line."""
    if json:
        output.print_json({"schema": "carbonlens/explain-list/1", "ids": found})
        return
    for name in found:
        output.say(name)


def print_tree(node: Node, *, json: bool) -> None:
    """Print a figure and what it rests on."""
    if json:
        output.print_json({"schema": SCHEMA, "figure": as_json(node)})
    else:
        _print(node, 0)


def _print(node: Node, depth: int) -> None:
    item = node.item
    indent = _STEP * min(depth, _DEEPEST)
    value = "" if item.estimate is None else f": {shown(item.estimate)}"
    _say(f"{item.title or item.item_id}{value}", indent)
    inner = indent + _STEP
    formula = f" | {item.formula}" if item.formula and item.kind == "figure" else ""
    if item.kind not in ("reading", "run", "runs"):
        _say(f"[{item.item_id}]{formula}", inner)
    for line in item.details:
        _say(line, inner)
    if node.is_repeated:
        _say("(explained above)", inner)
    for child in node.children:
        _print(child, depth + 1)
    if node.hidden:
        _say(f"... and {counted(len(node.hidden), 'more run')} (--json lists all)", inner)


def shown(estimate: Estimate) -> str:
    """Return an estimate in the unit that suits it, with its interval."""
    if estimate.unit == "kWh":
        return _figure(fmt.energy(estimate.scale(float(kwh_to_j(1)), "J")), estimate)
    if estimate.unit == "J":
        return _figure(fmt.energy(estimate), estimate)
    if estimate.unit == "kg":
        return _figure(fmt.mass(estimate), estimate)
    if len(estimate.unit) == 3 and estimate.unit.isupper():
        return _figure(fmt.money(estimate), estimate)
    if "/" in estimate.unit:
        return _figure(fmt.given(estimate, estimate.unit), estimate)
    return _figure(fmt.plain(estimate, "" if estimate.unit == "1" else estimate.unit), estimate)


def _figure(printed: fmt.Printed, estimate: Estimate) -> str:
    grade = f", grade {estimate.grade}" if estimate.grade else ""
    return f"{output.figure(printed, estimate)}{grade}"


def _say(text: str, indent: str) -> None:
    for line in textwrap.wrap(
        output.clean(text), output.width(), initial_indent=indent, subsequent_indent=indent + _STEP * 2
    ):
        output.say(line)
