"""How the text of a source is encoded, by its first bytes."""

from __future__ import annotations

import codecs
from typing import Final

UTF_8_MARK: Final = b"\xef\xbb\xbf"
"""Byte order mark of UTF-8."""

_CONTROLS: Final = (*range(1, 9), *range(14, 27))
_MOST_CONTROLS: Final = 0.02
"""Share of control characters from which what is no UTF-8 is no text of another encoding either."""


def encoding_of(start: bytes) -> str | None:
    """Return how text is encoded, by its mark or by where its zero bytes stand."""
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if start.startswith(UTF_8_MARK):
        return "utf-8-sig"
    even, odd = start[:1024:2], start[1:1024:2]
    if len(odd) > 3:
        if odd.count(0) > 0.9 * len(odd) and even.count(0) < 0.1 * len(even):
            return "utf-16-le"
        if even.count(0) > 0.9 * len(even) and odd.count(0) < 0.1 * len(odd):
            return "utf-16-be"
    plain = start.replace(b"\0", b"")
    if not plain:
        return None
    try:
        codecs.getincrementaldecoder("utf-8")().decode(plain)  # a letter that the cut parts is no fault
    except UnicodeDecodeError:
        if sum(map(plain.count, _CONTROLS)) > _MOST_CONTROLS * len(plain):
            return None
    return "utf-8-sig"
