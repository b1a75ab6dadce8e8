"""Unpacking of gzip as far as it goes: a file that is cut off gives what there is."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from typing import IO, Any, Final

GZIP: Final = b"\x1f\x8b"
"""First bytes of a packed file."""

_BLOCK: Final = 65536

FREE_BYTES: Final = 16 * 1024**2
"""Bytes, unpacked, up to which it is not asked how many were packed."""

MOST_TIMES: Final = 200
"""How many times its packed size a content may have: logs have 5 to 80, one line over and over 500."""


class UnpackedError(OSError):
    """A content that unpacks to far more than any log or table does."""


def check_size(plain: int, packed: int) -> None:
    """Refuse a content before it takes the time and room of what a few bytes stand for.

    Args:
        plain: Bytes so far, unpacked.
        packed: Bytes that they were unpacked from.

    Raises:
        UnpackedError: If it is beyond what logs and tables unpack to.
    """
    if plain > max(FREE_BYTES, MOST_TIMES * packed):
        raise UnpackedError(f"it unpacks to more than {MOST_TIMES} times its size, as no log does")


class Sized(io.RawIOBase):
    """Content of a packed member of an archive, as far as its size is that of logs and tables.

    Args:
        stream: The content.
        packed: Bytes of it in the archive.
    """

    def __init__(self, stream: IO[bytes], packed: int) -> None:
        """Read nothing yet."""
        super().__init__()
        self._stream = stream
        self._packed = packed
        self._plain = 0

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401  # any writable buffer, as of RawIOBase
        """Fill the buffer.

        Raises:
            UnpackedError: If it is beyond what logs and tables unpack to.
        """
        block = self._stream.read(len(buffer))
        self._plain += len(block)
        check_size(self._plain, self._packed)
        buffer[: len(block)] = block
        return len(block)


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
        self._packed = self._plain = 0

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401  # any writable buffer, as of RawIOBase
        """Fill the buffer as far as one step of unpacking goes.

        Raises:
            UnpackedError: If it is beyond what logs and tables unpack to.
        """
        while not self._is_over:
            plain = self._step(len(buffer))
            if plain:
                self._plain += len(plain)
                check_size(self._plain, self._packed)
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
            packed = self._inflater.unconsumed_tail or self._more()
            if not packed:
                self._is_over = True
                self._say_cut_off()
        return self._inflater.decompress(packed, most)

    def _more(self) -> bytes:
        packed = self._stream.read(_BLOCK)
        self._packed += len(packed)
        return packed

    def _after(self, packed: bytes) -> bytes:
        """Return the begin of what follows a packed file; zero bytes are padding."""
        packed = packed.lstrip(b"\0")
        while len(packed) < len(GZIP) and (more := self._more()):
            packed = (packed + more).lstrip(b"\0")
        return packed
