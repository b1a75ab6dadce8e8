"""Names: foreign text made safe to lay out, clipped and turned into ids.

Names of studies, steps and sources come from users and files. They are printed
as given, as far as that cannot break a page: control characters, direction
overrides and piles of combining marks are taken out, and long text is clipped.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable
from typing import Final

from carbonlens.domain.identity import sha256_hex

_BOX: Final = "□"
_HALVES: Final = re.compile("[\ud800-\udfff]")
_JOINERS: Final = "\u200c\u200d"
_VARIANTS: Final = "\ufe0e\ufe0f"
"""Say whether a sign is drawn as text or as a picture; nothing is shaped by them."""
_MAX_MARKS: Final = 2
_LONGEST_ID: Final = 200
_TAIL_OF_ID: Final = 50
_HASH_OF_ID: Final = 8
"""Of a long id its end is kept too: it says which quantity it is."""


def clean(text: str) -> str:
    """Return the text without characters that would disturb a line.

    Control and unassigned characters and lone surrogates become a box, invisible
    format characters (direction overrides among them) vanish, white space
    becomes one space, and at most two combining marks stay on a letter.
    """
    kept: list[str] = []
    marks = 0
    for char in " ".join(text.split()):
        category = unicodedata.category(char)
        if category in ("Mn", "Me"):
            marks += 1
            if marks <= _MAX_MARKS:
                kept.append(char)
            continue
        marks = 0
        if category in ("Cc", "Cs", "Cn", "Co"):
            kept.append(_BOX)
        elif category != "Cf" or char in _JOINERS:
            kept.append(char)
    return "".join(kept).strip() or _BOX


def is_shaped(text: str) -> bool:
    """Return whether a text reads wrongly when its letters are set one by one from left to right.

    So it is with scripts that run from right to left, and where letters or signs join.
    """
    return any(
        unicodedata.bidirectional(c) in ("R", "AL")
        or (unicodedata.category(c) in ("Mn", "Mc") and c not in _VARIANTS)
        or c in _JOINERS
        for c in text
    )


def without_halves(text: str) -> str:
    """Return the text with a box for each lone surrogate, which no encoding of Unicode can hold."""
    return _HALVES.sub(_BOX, text)


def clip(text: str, width: int) -> str:
    """Return the cleaned text in at most ``width`` columns, ending in ``…`` when cut.

    Wide characters (East Asian, emoji) count as two columns.
    """
    # A slice first: cleaning 10,000 characters to print 40 is wasted work.
    cleaned = clean(text[: 8 * width])
    used = 0
    for position, char in enumerate(cleaned):
        used += 2 if unicodedata.east_asian_width(char) in "WF" else 1
        if used > width or (used == width and position + 1 < len(cleaned)):
            return cleaned[:position].rstrip() + "…"
    return cleaned if len(text) <= 8 * width else cleaned + "…"


def listed_id(figure_id: str) -> str:
    """Return the id of a figure as an index shows it: cleaned, and a long one without its middle.

    Ids hold names of users; laying out one of 10,000 characters takes minutes. Data hold it whole. In the
    place of what is left out stands the begin of the id's hash, by which two of them are told apart.
    """
    if len(figure_id) > _LONGEST_ID:
        middle = f"…{sha256_hex(figure_id.encode('utf-8', 'surrogatepass'))[:_HASH_OF_ID]}…"
        kept = _LONGEST_ID - _TAIL_OF_ID - len(middle)
        figure_id = f"{figure_id[:kept]}{middle}{figure_id[-_TAIL_OF_ID:]}"
    return clean(figure_id)


def as_head(name: str, words: Collection[str]) -> str:
    """Return a name as the head of a column: with a capital where it is one of our words.

    Any other is its user's, who may tell ``INT8`` from ``int8``: it stays as it was written.

    Args:
        name: Of a phase, or a quality.
        words: Those that are no user's own.
    """
    return name[:1].upper() + name[1:] if name in words else name


def slugs(names: Iterable[str]) -> dict[str, str]:
    """Return one id per name: its ASCII letters and digits, numbered where they clash."""
    result: dict[str, str] = {}
    taken: set[str] = set()
    for number, name in enumerate(names, start=1):
        if name in result:
            continue
        slug = re.sub(r"[^a-z0-9]+", "_", name[:200].lower()).strip("_")[:32] or f"step{number}"
        while slug in taken:
            slug = f"{slug}_{number}"
        taken.add(slug)
        result[name] = slug
    return result


def plural(unit: str) -> str:
    """Return the plural of a plain English unit; other units stay as they are."""
    if not re.fullmatch(r"[A-Za-z ]*[A-Za-z]", unit) or unit.endswith("s"):
        return unit
    if re.search(r"[^aeiou]y$", unit):
        return unit[:-1] + "ies"
    return unit + ("es" if re.search(r"(x|z|ch|sh)$", unit) else "s")
