"""WeasyPrint's own style rules, without those of notes and markers for elements that never have any."""

from __future__ import annotations

from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from weasyprint import CSS, HTML

NOTES: Final = frozenset({"footnote-call", "footnote-marker", "note-call", "note-marker", "note-callback"})
"""Pseudo-elements of a note at the foot of a page."""

_MARKER: Final = "marker"


def spare(html: HTML) -> None:
    """Have a page of our own templates styled by less: the same page comes of it.

    WeasyPrint computes a style for each pseudo-element that a rule names, of every element that the rule
    matches: six for each, be it a cell or a line of a chart, where only list items have a marker and our
    pages have no notes at foot. That is a sixth of the time that a page takes to be laid out.

    Args:
        html: The page, not laid out yet; no rule of a user's may speak of notes or list items in it.
    """
    try:
        rules = [_rules()]
    except (AttributeError, ImportError, LookupError, TypeError):
        return  # a release that keeps its rules in another way: they are all taken
    html._ua_stylesheets = lambda forms=False: rules  # noqa: ARG005  # what it asks; it has no other way


@cache
def _rules() -> CSS:
    from weasyprint.html import UA_STYLESHEET

    rules = copy(UA_STYLESHEET)
    rules.matcher = matcher = copy(UA_STYLESHEET.matcher)
    whole: list[tuple[Any, ...]] = matcher.other_selectors
    matcher.other_selectors = [entry for entry in whole if entry[3] not in NOTES | {_MARKER}]
    of_names = dict(matcher.lower_local_name_selectors)
    of_names["li"] = [*of_names.get("li", ()), *(entry for entry in whole if entry[3] == _MARKER)]
    matcher.lower_local_name_selectors = of_names
    return rules
