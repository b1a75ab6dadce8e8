"""Own memory: what this process holds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_LENGTH: Final = 128


class OwnMemory:
    """Resident memory of this process.

    Args:
        proc: The process file system.
    """

    def __init__(self, proc: Path = Path("/proc")) -> None:
        """Keep the place as a text, which is quicker to open than a path."""
        self._file = str(proc / "self" / "statm")

    def bytes(self) -> int:
        """Return the bytes held now.

        Raises:
            OSError: If that cannot be read.
        """
        # Not kept open: an open window holds one file, its journal.
        handle = os.open(self._file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return resident_bytes(os.read(handle, _LENGTH))
        finally:
            os.close(handle)

    def bytes_or_none(self) -> int | None:
        """Return the bytes held now; ``None`` where they cannot be read."""
        try:
            return self.bytes()
        except OSError:
            return None


def resident_bytes(statm: bytes) -> int:
    """Return the second field of ``statm`` (proc(5): resident pages) in bytes.

    Raises:
        OSError: If there is none.
    """
    fields = statm.split()
    if len(fields) < 2 or not fields[1].isdigit():
        raise OSError("statm holds no resident memory")
    return int(fields[1]) * _PAGE
