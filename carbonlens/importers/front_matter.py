"""The front matter of a model card: the part of YAML that ``co2_eq_emissions`` is written in.

A scalar, or a mapping one level deep of plain or quoted scalars. Anything else of the
front matter is passed over. https://huggingface.co/docs/hub/model-cards-co2 names the keys;
``emissions`` are grams.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

KEY: Final = re.compile(r"^co2_eq_emissions\s*:(?P<rest>.*)$")
_ENTRY: Final = re.compile(r"^\s+(?P<key>[A-Za-z_]+)\s*:\s*(?P<value>.*)$")
_FENCE: Final = "---"


class CardEmissions(msgspec.Struct, frozen=True):
    """The entry as it stands: its texts by key, and the line of the emissions."""

    texts: dict[str, str]
    line: int


def emissions_of(lines: list[str]) -> CardEmissions | None:
    """Return the entry of a card's front matter, or of a file that is nothing else.

    Args:
        lines: The whole file.
    """
    end = end_of(lines)
    for number, line in enumerate(lines[:end], 1):
        found = KEY.match(line)
        if found is None:
            continue
        rest = _scalar(found["rest"])
        if rest:
            return CardEmissions({"emissions": rest}, number)
        return _mapping(lines, number, end)
    return None


def end_of(lines: list[str]) -> int:
    """Return how many lines the front matter has: all of them where no line ``---`` begins it."""
    if not lines or lines[0].strip() != _FENCE:
        return len(lines)
    return next((n for n, line in enumerate(lines[1:], 1) if line.strip() == _FENCE), len(lines))


def _mapping(lines: list[str], start: int, end: int) -> CardEmissions:
    texts: dict[str, str] = {}
    at = start
    for number in range(start, end):
        line = lines[number]
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        entry = _ENTRY.match(line)
        if entry is None:
            break
        texts[entry["key"]] = _scalar(entry["value"])
        if entry["key"] == "emissions":
            at = number + 1
    return CardEmissions({k: v for k, v in texts.items() if v}, at)


def _scalar(text: str) -> str:
    """Return a scalar without quotes and comment; a block sign stands for nothing."""
    text = text.strip()
    if text[:1] in {'"', "'"}:
        closing = text.find(text[0], 1)
        return text[1:closing] if closing > 0 else text[1:]
    text = re.split(r"\s+#", text, maxsplit=1)[0].strip()
    return "" if text in {"|", ">", "~", "null"} else text
