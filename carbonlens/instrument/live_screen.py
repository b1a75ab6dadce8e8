"""The last line of a terminal, kept for us while a command writes above it.

The scrolling region (DECSTBM of ECMA-48 terminals) is made one line shorter, so that what
the command prints, on stdout or stderr, scrolls above the line and never mixes with it.
Cursor and colours are put back after each update, and the region at the end.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import Console

_LEAST_ROWS: Final = 4
_LEAST_COLUMNS: Final = 20
_SAVE: Final = "\x1b7"
_RESTORE: Final = "\x1b8"
_ALL_ROWS: Final = "\x1b[r"


class LastLine:
    """Draws one line of text at the bottom of a terminal.

    Args:
        handle: File descriptor of the terminal.
        console: Of rich, which knows what colours it can show and whether ``NO_COLOR`` is set.
    """

    def __init__(self, handle: int, console: Console) -> None:
        """Draw nothing yet."""
        self._handle = handle
        self._console = console
        self._rows = 0

    def draw(self, text: str) -> None:
        """Show a text, unless the terminal is another job's meanwhile or too small.

        Raises:
            OSError: If the terminal is gone.
        """
        size = os.get_terminal_size(self._handle)
        if size.lines < _LEAST_ROWS or size.columns < _LEAST_COLUMNS or not self._is_ours():
            self.close()
            return
        begin = "" if size.lines == self._rows else self._begun(size.lines)
        self._rows = size.lines
        line = self._styled(text, size.columns - 1)
        self._write(f"{begin}{_SAVE}\x1b[{self._rows};1H{line}\x1b[K{_RESTORE}")

    def close(self) -> None:
        """Give the line back; nothing happens when it was not taken."""
        if self._rows:
            rows, self._rows = self._rows, 0
            self._write(f"{_SAVE}{_ALL_ROWS}\x1b[{rows};1H\x1b[2K{_RESTORE}")

    def _begun(self, rows: int) -> str:
        # Index and up: at the very bottom everything moves up by a line, elsewhere nothing does.
        before = f"{_SAVE}{_ALL_ROWS}{_RESTORE}" if self._rows else ""
        return f"{before}\x1bD\x1b[1A{_SAVE}\x1b[1;{rows - 1}r{_RESTORE}"

    def _styled(self, text: str, columns: int) -> str:
        from rich.text import Text

        line = Text.assemble(("carbonlens ", "bold green"), (text, "default"))
        line.truncate(columns, overflow="ellipsis")
        with self._console.capture() as capture:
            self._console.print(line, end="", no_wrap=True, crop=False, highlight=False, soft_wrap=True)
        return capture.get()

    def _is_ours(self) -> bool:
        """Tell whether this job is in the foreground; a terminal that has no jobs is everybody's."""
        with suppress(OSError):
            return os.tcgetpgrp(self._handle) == os.getpgrp()
        return True

    def _write(self, text: str) -> None:
        os.write(self._handle, text.encode(self._console.encoding, "replace"))
