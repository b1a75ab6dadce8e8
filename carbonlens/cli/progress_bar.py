"""A bar on stderr for work that takes a while; nothing where nobody watches."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from carbonlens.domain.counting import counted

_CELLS: Final = 24
_FIRST_AFTER_S: Final = 0.5
"""Work that is done by then shows no bar."""

_EVERY_S: Final = 0.1


class ProgressBar:
    """Shows how much is done, on one line that is wiped at the end.

    Args:
        title: What is done.
        noun: What is counted.
    """

    def __init__(self, title: str, noun: str) -> None:
        """Show nothing yet."""
        self._title = title
        self._noun = noun
        self._stream = sys.stderr if sys.stderr is not None and sys.stderr.isatty() else None
        self._next_s = time.monotonic() + _FIRST_AFTER_S
        self._width = 0

    def __enter__(self) -> Self:
        """Return the bar."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wipe it."""
        if self._width:
            self._write("\r" + " " * self._width + "\r")

    def show(self, done: int, whole: int) -> None:
        """Show how much is done, at most ten times a second.

        Args:
            done: How many are done.
            whole: How many there are.
        """
        if self._stream is None or time.monotonic() < self._next_s or not whole:
            return
        self._next_s = time.monotonic() + _EVERY_S
        full = _CELLS * done // whole
        text = f"{self._title} [{'#' * full}{'.' * (_CELLS - full)}] {done} of {counted(whole, self._noun)}"
        self._write("\r" + text.ljust(self._width))
        self._width = max(self._width, len(text))

    def _write(self, text: str) -> None:
        if self._stream is not None:
            with suppress(OSError):
                self._stream.write(text)
                self._stream.flush()
