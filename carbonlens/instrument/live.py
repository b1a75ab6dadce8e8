"""``--live``: what a run draws and has used so far, on the last line of the terminal.

The line is drawn by a thread of its own from what the sampler has read, at most twice a
second. Its fault, a terminal that is stopped or gone, and a missing library cost the line
and nothing else (DESIGN, law 8).
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from carbonlens.metering.notice import tell
from carbonlens.metering.threads import start_beside

if TYPE_CHECKING:
    from carbonlens.instrument.live_screen import LastLine
    from carbonlens.metering.session import Session

PERIOD_S: Final = 0.5
_COST_SHARE: Final = 100
"""An update may take a hundredth of the time at most: a long run has much to add up."""

_END_WAIT_S: Final = 0.2
"""Longest the end of a run waits for the terminal, which Ctrl-S may have stopped."""


class LiveView:
    """Shows an open session until it is stopped.

    Args:
        session: What is measured.
        line: Where it is shown.
    """

    def __init__(self, session: Session, line: LastLine) -> None:
        """Begin to show."""
        self._session = session
        self._line = line
        self._stopped = threading.Event()
        self._since = time.monotonic()
        self._thread = start_beside(self._show, "carbonlens-live")

    def stop(self) -> None:
        """Take the line away; the terminal is as it was."""
        self._stopped.set()
        self._thread.join(_END_WAIT_S)

    def _show(self) -> None:
        from carbonlens.instrument.live_figures import Watcher
        from carbonlens.instrument.live_units import NestedUnits

        watcher, nested = Watcher(), NestedUnits(self._session.run.run_id)
        wait_s = PERIOD_S
        try:
            while not self._stopped.wait(wait_s):
                begin_s = time.thread_time()
                units, unit = nested.count()
                elapsed_s = time.monotonic() - self._since
                self._line.draw(watcher.figures(self._session.so_far(), elapsed_s, units, unit).text())
                wait_s = max(PERIOD_S, _COST_SHARE * (time.thread_time() - begin_s))
        finally:
            with suppress(OSError):
                self._line.close()


def live_line() -> LastLine | None:
    """Return the last line of the terminal that stderr is; says in one line why there is none."""
    handle = _terminal()
    if handle is None:
        tell("--live needs a terminal on stderr; the command runs without it")
        return None
    try:
        from rich.console import Console

        from carbonlens.instrument.live_screen import LastLine
    except ImportError:
        tell('--live needs rich (pip install "carbonlens[analysis]"); the command runs without it')
        return None
    console = Console(file=sys.stderr, force_terminal=True)
    if console.is_dumb_terminal:
        tell("--live needs a terminal that can move its cursor, not TERM=dumb; the command runs without it")
        return None
    return LastLine(handle, console)


def _terminal() -> int | None:
    try:
        handle = sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return None
    return handle if os.isatty(handle) else None
