r"""File names as text: a byte that is no UTF-8 becomes ``\xNN``, and nothing else is changed by that.

A system's file names are bytes. Python keeps those that are no UTF-8 as lone surrogates (PEP 383),
which neither JSON nor a terminal can hold.
"""

from __future__ import annotations

import re
from typing import Final

_HALF: Final = re.compile("[\ud800-\udfff]|\\\\(?=x[0-9a-f]{2}|u[0-9a-f]{4})")
"""Lone surrogates, and backslashes that would read as the begin of one."""

_LONE: Final = re.compile("[\ud800-\udfff]")

_ESCAPED: Final = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4}))")
_BYTES: Final = range(0xDC80, 0xDD00)
"""Surrogates that stand for the bytes from 0x80 to 0xff."""

_FIRST_BYTE: Final = 0x80


def is_utf8(text: str) -> bool:
    """Tell whether UTF-8 can hold a text: no byte of it was none when the system gave it."""
    # A quick look first: what is ASCII needs no second.
    return text.isascii() or _LONE.search(text) is None


def printable(name: object) -> str:
    r"""Return a name of a file or folder as text that UTF-8 can hold.

    No two names become the same text: a backslash that would read as an escape is ``\x5c``.

    Args:
        name: The name as the system gives it, as text or as a path.
    """
    return _HALF.sub(_escape, str(name))


def from_printable(text: str) -> str:
    """Return the name that ``printable`` made a text of."""
    return _ESCAPED.sub(_unescape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code in _BYTES:
        return f"\\x{code - _BYTES.start + _FIRST_BYTE:02x}"
    return f"\\u{code:04x}" if found[0] != "\\" else "\\x5c"


def _unescape(found: re.Match[str]) -> str:
    if found[2]:
        return chr(int(found[2], 16))
    byte = int(found[1], 16)
    return chr(byte - _FIRST_BYTE + _BYTES.start) if byte >= _FIRST_BYTE else chr(byte)
