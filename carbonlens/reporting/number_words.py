"""Number words: counts and lists as a sentence says them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_WORDS: Final = (
    *("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"),
    *("twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def in_words(count: int) -> str:
    """Return a count in words: ``seven``, ``thirty-nine``; from a thousand on they stay true but vague."""
    if count < 20:
        return _WORDS[count]
    if count < 100:
        tens, ones = divmod(count, 10)
        return _TENS[tens - 2] + (f"-{_WORDS[ones]}" if ones else "")
    if count < 1000:
        hundreds, rest = divmod(count, 100)
        return f"{_WORDS[hundreds]} hundred" + (f" and {in_words(rest)}" if rest else "")
    return "a thousand or more"


def join_words(items: Iterable[str]) -> str:
    """Return ``a, b and c``."""
    listed = list(items)
    if len(listed) < 2:
        return "".join(listed)
    return ", ".join(listed[:-1]) + " and " + listed[-1]
