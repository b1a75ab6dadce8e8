"""Unpacking of gzip as far as it goes: a file that is cut off gives what there is."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from typing import IO, Any, Final

GZIP: Final = b"\x1f\x8b"
"""First bytes of a packed file."""

_BLOCK: Final = 65536


class Gunzip(io.RawIOBase):
    """Content of a gzipped stream; one that is cut off gives what there is, and says so.

    Args:
        stream: The packed content.
        say_cut_off: Called where it ends too early.
        say_tail: Called where something follows that is not packed: lines that were appended.
    """

    def __init__(
        self, stream: IO[bytes], say_cut_off: Callable[[], None], say_tail: Callable[[], None]
    ) -> None:
        """Read nothing yet."""
        super().__init__()
        self._stream = stream
        self._say_cut_off = say_cut_off
        self._say_tail = say_tail
        self._inflater = zlib.decompressobj(wbits=31)
        self._is_over = False

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401  # any writable buffer, as of RawIOBase
        """Fill the buffer as far as one step of unpacking goes."""
        while not self._is_over:
            plain = self._step(len(buffer))
            if plain:
                buffer[: len(plain)] = plain
                return len(plain)
        return 0

    def _step(self, most: int) -> bytes:
        if self._inflater.eof:
            # Several packed files may stand one after another.
            packed = self._after(self._inflater.unused_data)
            if not packed.startswith(GZIP):
                self._is_over = True
                if packed:
                    self._say_tail()
                return b""
            self._inflater = zlib.decompressobj(wbits=31)
        else:
            packed = self._inflater.unconsumed_tail or self._stream.read(_BLOCK)
            if not packed:
                self._is_over = True
                self._say_cut_off()
        return self._inflater.decompress(packed, most)

    def _after(self, packed: bytes) -> bytes:
        """Return the begin of what follows a packed file; zero bytes are padding."""
        packed = packed.lstrip(b"\0")
        while len(packed) < len(GZIP) and (more := self._stream.read(_BLOCK)):
            packed = (packed + more).lstrip(b"\0")
        return packed
