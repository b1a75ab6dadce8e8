"""Words of phases inside a record, beside the field that holds them: the power over time, and findings.

The power over time keeps when each phase was, by its name. With it whoever reads the curve knows how
long a phase lasted and what it drew, so that no part of a phase is gone while its spans are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from carbonlens.domain.phase import Phase

FIELD: Final = "phases"

_SUBJECT: Final = "phases"
"""Of findings about how phases were entered, left and read: they name them."""

_NAMED_BY: Final = (FIELD, f"{FIELD}.name")
"""Fields with which the names go: the others say how much, and no finding repeats it."""

_POWER: Final = "power"
_SPANS: Final = "spans"
_FINDINGS: Final = "findings"
_WORDS: Final = ("message", "mend")


def is_of(field: str) -> bool:
    """Tell whether a field is that of the phases, or a part of it."""
    head, dot, part = field.partition(".")
    return head == FIELD and (not dot or part.partition(".")[0] in Phase.__struct_fields__)


def holds(plain: Mapping[str, Any], field: str, placeholder: str) -> bool:
    """Tell whether a record holds words of its phases in other fields than that.

    Args:
        plain: The record as JSON has it.
        field: ``phases`` or a part of it.
        placeholder: Stands where words were taken out before.
    """
    return without(plain, field, placeholder) != plain


def without(plain: Mapping[str, Any], field: str, placeholder: str) -> dict[str, Any]:
    """Return the record without what other fields than that say of its phases.

    Args:
        plain: The record as JSON has it, its field ``phases`` among it.
        field: ``phases`` or a part of it.
        placeholder: Stands in texts in place of a name.
    """
    made = dict(plain)
    if (plain.get(_POWER) or {}).get(_SPANS):
        made[_POWER] = {**plain[_POWER], _SPANS: []}
    if field in _NAMED_BY and plain.get(_FINDINGS):
        # The longest first: one name may be the beginning of another.
        names = sorted(set(_names(plain)) - {placeholder}, key=len, reverse=True)
        made[_FINDINGS] = [_nameless(finding, names, placeholder) for finding in plain[_FINDINGS]]
    return made


def _names(plain: Mapping[str, Any]) -> Iterator[str]:
    for part in (*plain.get(FIELD, ()), *(plain.get(_POWER) or {}).get(_SPANS, ())):
        if isinstance(name := part.get("name"), str) and name:
            yield name


def _nameless(finding: Mapping[str, Any], names: list[str], placeholder: str) -> dict[str, Any]:
    """Return a finding that is about phases without its words, another without names in quotes."""
    if finding.get("subject") == _SUBJECT:
        return {**finding, "message": placeholder}
    made = dict(finding)
    for word in _WORDS:
        for name in names if isinstance(made.get(word), str) else ():
            # As it is, and as Python quotes one with an apostrophe, a backslash or a line end.
            for quoted in (f"'{name}'", repr(name)):
                made[word] = made[word].replace(quoted, placeholder)
    return made
