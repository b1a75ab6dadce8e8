"""How a functional unit stands in the ids of a score, so that an id tells what was asked for."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

PERIOD: Final = re.compile(r"(\d{4}(?:Q[1-4]|-\d{2}(?:-\d{2})?)?)\.")
"""Begin of the rest of an id that names a period, and ``ROLE`` a role of SCI for AI."""

ROLE: Final = re.compile(r"(consumer|provider)\.")

_PARTING: Final = re.compile(r"[.*=%]")
"""What parts an id: within a unit it is written as in an address, ``sq%2E km``."""


def unit_in_id(name: str) -> str:
    """Return a unit as ids have it, without what parts an id.

    Args:
        name: As the user wrote it.
    """
    written = _PARTING.sub(lambda found: _coded(found[0]), name)
    if any(pattern.fullmatch(f"{written}.") for pattern in (PERIOD, ROLE)):
        return f"{_coded(written[0])}{written[1:]}"
    return written


def unit_of_id(text: str) -> str:
    """Return the unit that stands in an id."""
    return unquote(text)


def _coded(letter: str) -> str:
    return f"%{ord(letter):02X}"
