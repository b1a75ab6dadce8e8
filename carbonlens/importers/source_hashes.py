"""Hashes of a source's content and of its first parts, by which one is known again that has grown."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Mapping
from typing import IO, Any, Final

import msgspec

_BLOCK: Final = 1 << 22
_FIRST_BITS: Final = 8
FIRST_BYTES: Final = 1 << _FIRST_BITS
"""Length of the shortest first part that is hashed."""

_CHARACTERS: Final = 16
"""Of a part's hash: it picks whom to compare with, and the whole hash decides."""


class Hashes(msgspec.Struct, frozen=True, kw_only=True):
    """What tells a content from others.

    Attributes:
        sha256: Of the whole.
        size_bytes: Its length, unpacked.
        prefixes: Shortened, of its first 256, 512, 1024 ... bytes, as far as it reaches.
    """

    sha256: str
    size_bytes: int
    prefixes: tuple[str, ...]

    @property
    def half_bytes(self) -> int:
        """Length of the last of the prefixes: more than half of the content; 0 where it is too short."""
        return 1 << (_FIRST_BITS + len(self.prefixes) - 1) if self.prefixes else 0


def hashes_of(stream: IO[bytes]) -> Hashes:
    """Read a content to its end, and return its hashes."""
    digest = hashlib.sha256()
    prefixes: list[str] = []
    size = 0
    while block := stream.read(_BLOCK):
        at = 0
        while (mark := 1 << (_FIRST_BITS + len(prefixes))) <= size + len(block):
            digest.update(memoryview(block)[at : mark - size])
            at = mark - size
            prefixes.append(digest.hexdigest()[:_CHARACTERS])
        digest.update(memoryview(block)[at:])
        size += len(block)
    return Hashes(sha256=digest.hexdigest(), size_bytes=size, prefixes=tuple(prefixes))


def prefix_sha256(stream: IO[bytes], sizes: Iterable[int]) -> Mapping[int, str]:
    """Return the hashes of a content's first bytes, of so many each; those beyond its end are left out."""
    digest = hashlib.sha256()
    found: dict[int, str] = {}
    size = 0
    for wanted in sorted(set(sizes)):
        while size < wanted:
            block = stream.read(min(_BLOCK, wanted - size))
            if not block:
                return found
            digest.update(block)
            size += len(block)
        found[wanted] = digest.hexdigest()
    return found


class Bounded(io.RawIOBase):
    """A stream that ends where it did when it was hashed: what a writer added since is not read.

    Args:
        stream: The stream.
        size: Bytes that were hashed.
    """

    def __init__(self, stream: IO[bytes], size: int) -> None:
        """Read nothing yet."""
        super().__init__()
        self._stream = stream
        self._left = size

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401  # any writable buffer, as of RawIOBase
        """Fill the buffer, at most to the end.

        Raises:
            OSError: If the content has become shorter.
        """
        if not self._left:
            return 0
        block = self._stream.read(min(len(buffer), self._left))
        if not block:
            raise OSError("it became shorter while it was read")
        buffer[: len(block)] = block
        self._left -= len(block)
        return len(block)
