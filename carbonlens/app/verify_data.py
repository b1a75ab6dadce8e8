"""Use case: hold a report's data against what follows from its evidence.

Where the same carbonlens wrote it, every word of it must be the same. Another version may say
things in other words and other tables: then the figures, the cells that print them, the numbers
in all texts and the results of the comparison count.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

_RELATIVE: Final = 1e-9
"""Sums of floats may differ in their last digits between machines."""

NUMBER: Final = re.compile(r"[^\W\d_]*\d+(?:[.,]\d+)*(?:\s?%)?")
"""With the letters before it and a percent sign: the label ``P99`` is no excuse for ``99 %``."""

_GROUPING: Final = re.compile(r"(?<=\d)[\u202f\u00a0](?=\d)")
_SHOWN: Final = 160

_WORDS: Final = ("message", "mend", "title", "label", "findings", "reason", "reasons", "notes", "schema")
"""Parts of a comparison that another version may say in other words."""

_ALWAYS: Final = ("study", "baseline", "unit", "basis", "mode", "steps", "total")
_OF_STEPS: Final = ("step", "status", "energy_per_unit_j", "savings", "verdict", "decision")
"""What every version's comparison and its steps have."""


class Mismatch(msgspec.Struct, frozen=True, kw_only=True):
    """A figure, or another part, that is not what follows from the evidence.

    Attributes:
        figure_id: Id of the figure, or the part of the file it is about.
        said: What the file says.
        computed: What follows.
    """

    figure_id: str
    said: str
    computed: str


def differing_figures(said: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[Mismatch]:
    """Yield the figures that are others than what was computed.

    Args:
        said: Figures of the file by their ids.
        found: Those computed.
    """
    for name in [*found, *(n for n in said if n not in found)]:
        before, now = said.get(name), found.get(name)
        if not isinstance(before, dict) or now is None or not same(before, now):
            yield Mismatch(figure_id=name, said=_figure(before), computed=_figure(now))


def differing_parts(said: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[Mismatch]:
    """Yield every other part of a report's data that differs, for a report of the same carbonlens.

    Args:
        said: Data of the file.
        found: Those computed.
    """
    held_apart = ("evidence", "evidence_sha256", "figures")
    for name in [*found, *(n for n in said if n not in found)]:
        if name not in held_apart:
            yield from _differences(said.get(name), found.get(name), name)


def differing_numbers(said: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[Mismatch]:
    """Yield what differs in the data of a report by another version, whose words may be others.

    Args:
        said: Data of the file.
        found: Those computed.
    """
    if said.get("example") is not found["example"]:
        yield _mismatch("example", said.get("example"), found["example"])
    yield from _results(said.get("comparison"), found["comparison"])
    cells: dict[tuple[str, ...], list[list[str]]] = {}
    for ids, text in _cells(found["sections"]):
        cells.setdefault(ids, []).append(numbers(text))
    allowed = set(numbers(" ".join(_texts((found["title"], found["subject"], found["sections"])))))
    for figure in found["figures"].values():
        allowed.update(numbers(_forms(figure)))
    printed: set[str] = set()
    for ids, text in _cells(said["sections"]):
        printed.update(ids)
        yield from _cell(ids, text, cells, found["figures"])
    for name in dict.fromkeys(i for ids in cells for i in ids):
        if name not in printed:
            yield _mismatch(name, "in no table of the file", _figure(found["figures"].get(name)))
    for text in _texts((said.get("title"), said.get("subject"), said["sections"])):
        strange = [n for n in numbers(text) if n not in allowed]
        if strange:
            yield _mismatch("sections", text, f"no report of this evidence prints {strange[0]}")


def numbers(text: str) -> list[str]:
    """Return the numbers in a text, as they are written, without what groups their digits.

    Args:
        text: Any text.
    """
    return ["".join(number.split()) for number in NUMBER.findall(ungrouped(text))]


def ungrouped(text: str) -> str:
    """Return a text without the narrow spaces that group the digits of its numbers.

    Args:
        text: Any text.
    """
    return _GROUPING.sub("", text)


def same(one: object, other: object) -> bool:
    """Return whether two values are the same but for the last digits of floats.

    Args:
        one: Plain values, as JSON gives them.
        other: Likewise.
    """
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        try:
            return math.isclose(one, other, rel_tol=_RELATIVE, abs_tol=0.0)
        except OverflowError:  # an integer beyond any float
            return one == other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def _differences(said: object, found: object, path: str) -> Iterator[Mismatch]:
    """Yield the innermost parts that differ."""
    if same(said, found):
        return
    if isinstance(said, dict) and isinstance(found, dict):
        for key in [*found, *(k for k in said if k not in found)]:
            yield from _differences(said.get(key), found.get(key), f"{path}.{key}")
    elif isinstance(said, list) and isinstance(found, list) and len(said) == len(found):
        for place, (one, other) in enumerate(zip(said, found, strict=True)):
            named = other.get("name") if isinstance(other, dict) else None
            yield from _differences(one, other, f"{path}.{named or place}")
    else:
        yield _mismatch(path, said, found)


def _results(said: object, found: Any) -> Iterator[Mismatch]:  # noqa: ANN401  # plain values of JSON
    """Hold the results of a comparison against each other, as far as both versions state them."""
    if found is None or not isinstance(said, dict):
        if said != found:
            yield _mismatch("comparison", said, found)
        return
    for name in _ALWAYS:
        if name not in said:
            yield _mismatch(f"comparison.{name}", None, found[name])
    steps = said.get("steps")
    for step in steps if isinstance(steps, list) else ():
        for name in _OF_STEPS if isinstance(step, dict) else ():
            if name not in step:
                yield _mismatch(f"comparison.steps.{name}", None, "a value")
    yield from _shared(said, found, "comparison")


def _shared(said: object, found: object, path: str) -> Iterator[Mismatch]:
    if isinstance(said, dict) and isinstance(found, dict):
        for key in found:
            if key in said and key not in _WORDS:
                yield from _shared(said[key], found[key], f"{path}.{key}")
    elif isinstance(said, list) and isinstance(found, list) and len(said) == len(found):
        for place, (one, other) in enumerate(zip(said, found, strict=True)):
            yield from _shared(one, other, f"{path}.{place}")
    elif not same(said, found):
        yield _mismatch(path, said, found)


def _cell(
    ids: tuple[str, ...],
    text: str,
    cells: Mapping[tuple[str, ...], list[list[str]]],
    figures: Mapping[str, Any],
) -> Iterator[Mismatch]:
    """Hold the numbers of a cell against those of the cells that print the same figures."""
    there = numbers(text)
    known = cells.get(ids)
    if known is not None:
        if there not in known:
            yield _mismatch(ids[0], text, " ".join(known[0]))
        return
    # A table that this version does not have: its numbers must be those of its figures.
    own = numbers(" ".join(_forms(figures[i]) for i in ids if i in figures))
    strange = [n for n in there if n not in own]
    if strange or any(i not in figures for i in ids):
        yield _mismatch(ids[0], text, " ".join(own))


def _cells(node: object) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield cells of tables and headline tiles: the figures that each prints, and its text."""
    if isinstance(node, dict):
        ids = node.get("figures")
        if isinstance(ids, list) and ids:
            yield tuple(map(str, ids)), " ".join(_texts(node))
        for item in node.values():
            yield from _cells(item)
    elif isinstance(node, list):
        for item in node:
            yield from _cells(item)


def _forms(figure: Mapping[str, Any]) -> str:
    return f"{figure['printed']} {figure['printed_number']} {figure['printed_interval']}"


def _texts(node: object) -> Iterator[str]:
    """Yield every text that a report's data say to a reader: no names of fields, no ids of figures."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, list | tuple):
        for item in node:
            yield from _texts(item)
    elif isinstance(node, dict):
        for key, item in node.items():
            if key != "figures":
                yield from _texts(item)


def _mismatch(part: str, said: object, computed: object) -> Mismatch:
    return Mismatch(figure_id=part, said=_said(said), computed=_said(computed))


def _said(value: object) -> str:
    """Return a value in a line, cut where it is long."""
    if value is None:
        return "nothing"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _figure(figure: object) -> str:
    if not isinstance(figure, dict):
        return "nothing"
    printed = f"{figure.get('printed', '')} {figure.get('printed_interval', '')}".strip()
    return _said(f"{printed} (value {figure.get('value')!r})")
