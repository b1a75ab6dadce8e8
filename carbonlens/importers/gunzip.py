"""Unpacking of gzip as far as it goes: a file that is cut off gives what there is."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from typing import IO, Any, Final

GZIP: Final = b"\x1f\x8b"
"""First bytes of a packed file."""


class Gunzip(io.RawIOBase):
    """Content of a gzipped stream; one that is cut off gives what there is, and says so.

    Args:
        stream: The packed content.
        say_cut_off: Called where it ends too early.
    """

    def __init__(self, stream: IO[bytes], say_cut_off: Callable[[], None]) -> None:
        """Read nothing yet."""
        super().__init__()
        self._stream = stream
        self._say_cut_off = say_cut_off
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
        packed = self._inflater.unconsumed_tail or self._stream.read(65536)
        if self._inflater.eof:
            # Several packed files may stand one after another; zero bytes after them are padding.
            packed = (self._inflater.unused_data + packed).lstrip(b"\0")
            self._is_over = not packed.startswith(GZIP)
            self._inflater = zlib.decompressobj(wbits=31)
            if self._is_over:
                return b""
        elif not packed:
            self._is_over = True
            self._say_cut_off()
            return self._inflater.decompress(b"", most)
        return self._inflater.decompress(packed, most)
