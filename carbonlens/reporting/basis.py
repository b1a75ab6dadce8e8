"""Basis: for how many units an amount is stated, so that it is a readable one."""

from __future__ import annotations

from typing import Final

import msgspec

from carbonlens.reporting.content import Phrase, phrase, quoted
from carbonlens.reporting.names import plural

_COUNTS: Final = ((1.0, ""), (1e3, "thousand"), (1e6, "million"), (1e9, "billion"), (1e12, "trillion"))
_ONE_WATT_HOUR: Final = 3600.0


class Basis(msgspec.Struct, frozen=True, kw_only=True):
    """What an amount is stated for.

    Attributes:
        multiplier: Units that printed amounts stand for, over the record's.
        words: ``per million images`` or ``for 2 million images a year``.
    """

    multiplier: float
    words: Phrase


def per_units(unit: str, *, cost: float | None, joules: float | None) -> Basis:
    """Return the smallest count of units that costs one unit of currency or more.

    Without a price it is the count that takes one watt-hour or more.

    Args:
        unit: Functional unit, as printed.
        cost: Cost of one unit.
        joules: Energy of one unit.
    """
    size, wanted = (cost, 1.0) if cost else (joules, _ONE_WATT_HOUR)
    found = [c for c in _COUNTS if size and abs(size) * c[0] >= wanted]
    multiplier, word = found[0] if found else _COUNTS[-1] if size else _COUNTS[0]
    if multiplier == 1:
        return Basis(multiplier=1.0, words=phrase("per ", quoted(unit)))
    return Basis(multiplier=multiplier, words=phrase(f"per {word} ", quoted(plural(unit))))
