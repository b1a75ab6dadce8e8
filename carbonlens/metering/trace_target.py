"""Where a run's trace is to go: said at its start, written when it is sealed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.domain.file_names import is_utf8
from carbonlens.metering.wording import UnfitValueError


class TraceTarget(msgspec.Struct, frozen=True, kw_only=True):
    """Where the run's readings are to be kept: thinned in its record, and whole in a file beside it.

    Attributes:
        given: The file's name as the user gave it; empty where no file is wanted.
        path: The same from the root: whoever recovers the run works in another folder.
    """

    given: str
    path: str

    @property
    def is_file(self) -> bool:
        """Whether a file is wanted beside the record."""
        return bool(self.path)


IN_RECORD: Final = TraceTarget(given="", path="")
"""The run's record keeps its power over time, and no file is written."""


def target_of(file: object) -> TraceTarget:
    """Return where a trace is to go, whatever folder the work changes to.

    Args:
        file: As the user gave it: a text or a path; ``True`` for the record alone.

    Raises:
        TypeError: If it is no path.
        ValueError: If its name cannot be recorded: it or its folder is no UTF-8 text, or it is empty.
        OSError: If the working folder is gone.
    """
    if file is True:
        return IN_RECORD
    given = os.fspath(file)  # type: ignore[call-overload]  # anything may come from the user; it raises TypeError
    if not isinstance(given, str):
        raise TypeError(f"a text or a path is wanted, not {type(given).__name__}")
    if not given or "\0" in given:
        raise ValueError("no name of a file")
    path = str(Path(given).absolute())
    for text, called in ((given, "a name that is"), (path, "a name in a folder whose name is")):
        if not is_utf8(text):
            raise UnfitValueError(f"{called} no UTF-8 was given")
    return TraceTarget(given=given, path=path)
