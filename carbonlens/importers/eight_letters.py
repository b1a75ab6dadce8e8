"""Cells of a whole column at once, eight letters at a time, from the bytes of a block of lines.

Eight letters are one word of 64 bits, the first the lowest byte; digits become numbers by three
multiplications of the word (Langdale and Lemire, "Parsing gigabytes of JSON per second", 2019).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from carbonlens.importers.contract import Array

    Bytes = npt.NDArray[np.uint8]
    Whole = npt.NDArray[np.int64]
    Words = npt.NDArray[np.uint64]

LETTERS: Final = 8
"""Letters of a word."""

_BITS: Final = 8
_ALL: Final = (1 << 64) - 1
_ZEROS: Final = int.from_bytes(b"0" * LETTERS, "little")
_TO_TOP: Final = int.from_bytes(b"\x76" * LETTERS, "little")
_TOPS: Final = int.from_bytes(b"\x80" * LETTERS, "little")
"""A byte of more than 9 reaches its top bit when 0x76 is added to it; one of letters has it not yet."""

_PAIRS: Final = 0x000000FF000000FF
_HUNDREDS: Final = 100 + (1_000_000 << 32)
_ONES: Final = 1 + (10_000 << 32)


class Letters:
    """The bytes of a block, to be read eight at a time from any place.

    Args:
        text: The block; eight further bytes stand behind the last that is asked for.
    """

    def __init__(self, text: bytes) -> None:
        """Look at the block; nothing is copied."""
        import numpy as np

        self.bytes: Bytes = np.frombuffer(text, dtype=np.uint8)
        count = max(len(text) - LETTERS + 1, 0)
        self._words: Words = np.ndarray((count,), dtype="<u8", buffer=text, strides=(1,))

    def at(self, places: Whole) -> Words:
        """Return the words that begin at places."""
        return self._words[places]


def first(length: Whole) -> Words:
    """Return the bits of the first letters of words, of none to eight."""
    import numpy as np

    bits: Words = np.array([(1 << (_BITS * n)) - 1 for n in range(LETTERS + 1)], dtype=np.uint64)[length]
    return bits


def are_digits(digits: Words) -> bool:
    """Tell whether each byte is one of 0 to 9, none of them above 127 before that was taken away."""
    import numpy as np

    met = int(np.bitwise_or.reduce((digits + np.uint64(_TO_TOP)) | digits)) if len(digits) else 0
    return not met & _TOPS


def value_of(digits: Words) -> Words:
    """Return the numbers that eight digits make, each a byte from 0 to 9."""
    import numpy as np

    pairs = digits * np.uint64(10) + (digits >> np.uint64(_BITS))
    high = (pairs & np.uint64(_PAIRS)) * np.uint64(_HUNDREDS)
    low = ((pairs >> np.uint64(2 * _BITS)) & np.uint64(_PAIRS)) * np.uint64(_ONES)
    value: Words = (high + low) >> np.uint64(32)
    return value


def even_numbers(letters: Letters, start: Whole, end: Whole) -> Array | None:
    """Return the numbers of cells; ``None`` where they are not plain, even and of eight letters at most.

    Even numbers have as many decimals. A number of few digits is a whole number over a power of ten, and
    that division rounds as the decimal does.

    Args:
        letters: The block, of ASCII.
        start: Of each cell.
        end: Behind each cell.
    """
    import numpy as np

    length = end - start
    longest, shortest = int(length.max()), int(length.min())
    if shortest < 1 or longest > LETTERS or int(end[0]) < LETTERS:
        return None
    words = letters.at(end - LETTERS) ^ np.uint64(_ZEROS)
    words &= ~first(LETTERS - length)
    point = bytes(letters.bytes[start[0] : end[0]]).find(b".")
    decimals = int(length[0]) - 1 - point if point >= 0 else 0
    if point >= 0:
        if not decimals or shortest < decimals + 2:
            return None
        place = _BITS * (LETTERS - 1 - decimals)
        if ((words >> np.uint64(place)) & np.uint64(0xFF) != np.uint64(ord(".") ^ ord("0"))).any():
            return None
        before = np.uint64((1 << place) - 1)
        behind = np.uint64(_ALL ^ ((1 << (place + _BITS)) - 1))
        # The point goes out, and what stands before it moves up.
        words = ((words & before) << np.uint64(_BITS)) | (words & behind)
    if not are_digits(words):
        return None
    told: Array = value_of(words) / 10.0**decimals
    return told


def apart(letters: Letters, start: Whole, end: Whole, most: int) -> dict[str, Whole] | None:
    """Return the places of each text that cells hold, in order; ``None`` where there are too many.

    Args:
        letters: The block, of ASCII.
        start: Of each cell.
        end: Behind each cell.
        most: Texts that may differ.
    """
    import numpy as np

    length = end - start
    parts = [
        letters.at(start + begin) & first(np.clip(length - begin, 0, LETTERS))
        for begin in range(0, int(length.max()), LETTERS)
    ]
    known = np.zeros(len(start), dtype=bool)
    found: dict[str, Whole] = {}
    place = 0
    while not known[place]:
        if len(found) == most:
            return None
        same = parts[0] == parts[0][place]
        for part in parts[1:]:
            same &= part == part[place]
        found[bytes(letters.bytes[start[place] : end[place]]).decode()] = np.flatnonzero(same)
        known |= same
        place = int(np.argmin(known))
    return found
