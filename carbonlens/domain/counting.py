"""Counted and named things in words, so that no message says "1 lines" or "a image"."""

from __future__ import annotations

import re

from carbonlens.domain.patterns import later

_NOT_AS_WRITTEN = later(r"(?i)eu|ewe|one\b|once\b|u[bkrst][aeiou]|ufo|uni([tvcq]|f[iyo]|on|x|lateral)")
"""Begin with a vowel as written, and with a consonant as spoken: a unit, a user, a European, a one."""
_BEFORE = "\"'«“‘(["
_SILENT = later(r"(?i)(hour|honest|honou?r|heir)")
_SPELT = later(r"[A-Z](?![a-z])")
"""A letter that is spoken by its name: an LLM, an MRI, a GPU, a URL."""


def counted(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun: ``1 line is``, ``3 lines are``.

    Args:
        count: How many.
        one: The words after a count of one.
        many: The words after any other; ``one`` with an ``s`` when ``None``.
    """
    return f"{count} {one if count == 1 else many or one + 's'}"


def with_article(words: str) -> str:
    """Return words behind their indefinite article: ``an image``, ``a unit``, ``an LLM``, ``an 8-bit model``.

    Args:
        words: One thing in English, as somebody named it; by its first letter or number.
    """
    return f"{'an' if _sounds_open(words.lstrip(_BEFORE)) else 'a'} {words}"


def _sounds_open(words: str) -> bool:
    """Tell whether the first sound is a vowel."""
    if _SPELT.match(words):
        return words[0] in "AEFHILMNORSX"
    if words[:1].isdigit():
        # Eight, eighty, eight hundred; eleven and eighteen, of thousands too.
        return re.match(r"8|1[18](\d{3})*(?!\d)", words) is not None
    if _SILENT.match(words):
        return True
    return words[:1].lower() in tuple("aeiou") and not _NOT_AS_WRITTEN.match(words)
