"""Room: what is said of steps that a chart has no place for, and of names that it cannot set."""

from __future__ import annotations

from collections.abc import Iterable

from carbonlens.reporting.content import Phrase, phrase
from carbonlens.reporting.names import is_shaped
from carbonlens.reporting.number_words import in_words


def of_more(hidden: int) -> str:
    """Return what an alternative text says beside its count: `` and three more that are left out``."""
    if hidden <= 0:
        return ""
    return f" and {in_words(hidden)} more that {'is' if hidden == 1 else 'are'} left out"


def room_note(chart: str, drawn: int, hidden: int, which: str = "the first {} steps") -> Phrase:
    """Say under the charts how many steps one draws and how many it leaves out; nothing where it has all.

    Args:
        chart: With its verb: ``The drift plot shows``.
        drawn: How many it draws.
        hidden: How many more there are.
        which: Which they are, around their count.
    """
    if hidden <= 0:
        return ()
    be = "is" if hidden == 1 else "are"
    return phrase(f"{chart} {which.format(in_words(drawn))}; {in_words(hidden)} more {be} left out.")


def paper_note(names: Iterable[str]) -> Phrase:
    """Say what paper does to names of some scripts; nothing where no name is of one.

    WeasyPrint (70) sets the text of an SVG letter by letter from left to right, without bidirectional
    order or shaping; that of HTML it sets as it should be.

    Args:
        names: Those that charts draw.
    """
    if not any(map(is_shaped, names)):
        return ()
    return phrase(
        "In PDF, charts set names letter by letter from left to right: those of scripts that run from right "
        "to left or join their letters are right in the tables, and in HTML."
    )
