"""Scratch: files that somebody needs for as long as it is open."""

from __future__ import annotations

import tempfile
from pathlib import Path


class Scratch:
    """A folder of files that go when it is closed; there is none until a file is wanted."""

    def __init__(self) -> None:
        """Make no folder yet."""
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._files = 0

    def file(self, name: str) -> Path:
        """Return a file that is not there yet.

        Args:
            name: What its name ends with.
        """
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="carbonlens-")
        self._files += 1
        return Path(self._folder.name) / f"{self._files:06}-{name}"

    def close(self) -> None:
        """Remove the files."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
