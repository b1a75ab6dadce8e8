"""How far the making of a report is: one line on a terminal."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Final

_SHOWN_AFTER_S: Final = 1.0


class Progress:
    """A line on a terminal that says what is being done, once that takes more than a moment."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._shown = False

    def tell(self, words: str, seconds: float) -> None:
        """Write the line again."""
        if self._is_terminal and seconds > _SHOWN_AFTER_S:
            self._write(f"report: {words}, {seconds:.0f} s")
            self._shown = True

    def __enter__(self) -> Progress:
        """Begin without a line."""
        return self

    def __exit__(self, *_: object) -> None:
        """Take the line away."""
        if self._shown:
            self._write("")

    @staticmethod
    def _write(line: str) -> None:
        with suppress(OSError):
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()
