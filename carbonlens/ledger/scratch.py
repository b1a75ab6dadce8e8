"""Scratch: files that somebody needs for as long as it is open."""

from __future__ import annotations

import tempfile
from pathlib import Path

from carbonlens.errors import UnwritableError


def unwritable(file: Path | None, why: str) -> UnwritableError:
    """Return the error for a temporary file that cannot be written.

    Args:
        file: The file; ``None`` where there is not even a folder for it.
        why: What the system says.
    """
    return UnwritableError(
        f"temporary files cannot be written ({why})",
        where=_place() if file is None else str(file.parent),
        mend="make free space there, or set TMPDIR to another folder",
    )


def _place() -> str:
    """Return the folder for temporary files; where there is none, what would name one."""
    try:
        return tempfile.gettempdir()
    except OSError:
        return "TMPDIR"


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

        Raises:
            UnwritableError: If there is no folder for temporary files.
        """
        if self._folder is None:
            try:
                self._folder = tempfile.TemporaryDirectory(prefix="carbonlens-")
            except OSError as error:
                raise unwritable(None, error.strerror or str(error)) from error
        self._files += 1
        return Path(self._folder.name) / f"{self._files:06}-{name}"

    def close(self) -> None:
        """Remove the files."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
