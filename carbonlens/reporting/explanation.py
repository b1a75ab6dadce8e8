"""Explanation: a figure as a tree down to runs, readings, factors and file lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Literal

import msgspec

from carbonlens.domain.estimate import Estimate
from carbonlens.domain.figure import Figure

SCHEMA: Final = "carbonlens/explain/1"

Kind = Literal[
    "figure",
    "runs",
    "run",
    "reading",
    "factor",
    "price",
    "certificate",
    "study",
    "charge",
    "meter",
    "tariff",
    "asset",
    "declared",
    "expense",
    "exchange_rate",
    "assumption",
    "unstated",
    "unknown",
]
"""``declared`` is stated by an inventory, ``assumption`` by a study or its assumptions file;
``unstated`` is what nobody states, and ``unknown`` an id that leads nowhere."""


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a figure rests on.

    Attributes:
        title: What it is, in words.
        estimate: Its number; ``None`` where it is none.
        formula: How it was made of its inputs.
        inputs: Ids of what it rests on.
        details: Lines of text: method, window, source, licence, place in a file.
        parts: Things of its own that have no id elsewhere: readings of a run.
    """

    item_id: str
    kind: Kind
    title: str
    estimate: Estimate | None = None
    formula: str = ""
    inputs: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    parts: tuple[Item, ...] = ()


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """An item with what it rests on.

    Attributes:
        children: Its inputs, those of them that are shown.
        hidden: Ids of inputs that are left out of a long list.
        is_repeated: Whether its inputs are shown elsewhere in the tree already.
    """

    item: Item
    children: tuple[Node, ...] = ()
    hidden: tuple[str, ...] = ()
    is_repeated: bool = False


def item_of(figure: Figure, kind: Kind = "figure") -> Item:
    """Return a figure as an item."""
    return Item(
        item_id=figure.figure_id,
        kind=kind,
        title=figure.label,
        estimate=figure.estimate,
        formula=figure.formula,
        inputs=figure.inputs,
    )


def tree(root: Item, resolve: Callable[[str], Item | None], *, most: int) -> Node:
    """Return a figure with everything below it; what stands there twice is opened once.

    Args:
        root: Where to begin.
        resolve: Returns the item of an id; ``None`` where nobody knows it.
        most: Items of a list of runs that are opened; the others are counted.
    """
    return _node(root, resolve, most, set())


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all below it."""
    yield node
    for child in node.children:
        yield from walk(child)


def as_json(node: Node) -> dict[str, Any]:
    """Return a tree as a mapping that JSON can hold."""
    item = node.item
    return {
        "id": item.item_id,
        "kind": item.kind,
        "title": item.title,
        "estimate": None if item.estimate is None else item.estimate.as_json(),
        "formula": item.formula or None,
        "details": item.details,
        "inputs": [as_json(child) for child in node.children],
        "further_inputs": node.hidden,
        "shown_above": node.is_repeated,
    }


def _node(item: Item, resolve: Callable[[str], Item | None], most: int, seen: set[str]) -> Node:
    parts = tuple(Node(item=part) for part in item.parts)
    if item.item_id in seen and item.inputs:
        return Node(item=item, is_repeated=True)
    seen.add(item.item_id)
    runs = [i for i in item.inputs if i.startswith("run:")]
    hidden = tuple(runs[most:])
    left_out = frozenset(hidden)
    children = []
    for name in item.inputs:
        if name in left_out:
            continue
        found = resolve(name) or Item(item_id=name, kind="unknown", title="not recorded further")
        children.append(_node(found, resolve, most, seen))
    return Node(item=item, children=(*children, *parts), hidden=hidden)
