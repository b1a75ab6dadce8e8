"""Which run a new run is part of, so that totals count each joule once.

A run started inside another is its child, and only runs without a parent are
summed. Inside one process the enclosing run is known by context (threads and
asyncio tasks included); a child process learns it from ``CARBONLENS_RUN_ID``.
"""

from __future__ import annotations

import os
import re
import threading
from contextvars import ContextVar
from typing import Final

VARIABLE: Final = "CARBONLENS_RUN_ID"
"""Environment variable that tells child processes which run they are part of."""

_RUN_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_context: ContextVar[str | None] = ContextVar("carbonlens_run", default=None)


class _Open:
    """An open run of this process."""

    def __init__(self, run_id: str, parent: str | None, *, in_main_thread: bool) -> None:
        self.run_id = run_id
        self.parent = parent
        self.in_main_thread = in_main_thread
        self.overlapped = False
        self.outer = _context.get()


class Lineage:
    """The open runs of one process.

    Args:
        forked_in: Run that was open where this process was forked off.
    """

    def __init__(self, forked_in: str | None = None) -> None:
        """Start without an open run."""
        self._lock = threading.Lock()
        self._open: dict[str, _Open] = {}
        self._left: dict[str, str | None] = {}
        """What was around a run that another context than its own has closed."""
        self._forked_in = self._outside = forked_in

    def parent(self) -> str | None:
        """Return the run a new one would be part of.

        The enclosing run of this context; else, in another thread, the innermost
        open run of the main thread, which waits for its threads; else the run
        that this process was started in.
        """
        with self._lock:
            own = self._own()
            if own is not None:
                return own
            if threading.current_thread() is not threading.main_thread():
                for entry in reversed(self._open.values()):
                    if entry.in_main_thread:
                        return entry.run_id
            # While a run is open here, the variable holds our own run.
            return self._outside if self._open else self._outside or _from_environment()

    def at_fork(self) -> str | None:
        """Return the run that a process forked off here is part of.

        Asked in the child: what held the lock goes on in the parent, and would never let go of it.
        """
        own = self._own()
        if own is not None:
            return own
        # The variable holds the newest run that is open in any context.
        return _from_environment() if self._open else self._outside or _from_environment()

    def enter(self, run_id: str, parent: str | None) -> None:
        """Open a run in this context, and publish it to child processes."""
        main = threading.current_thread() is threading.main_thread()
        entry = _Open(run_id, parent, in_main_thread=main)
        with self._lock:
            if not self._open and self._outside is None:
                self._outside = _from_environment()
            encloses = self._ancestors(parent)
            for other in self._open.values():
                if other.run_id not in encloses:
                    other.overlapped = entry.overlapped = True
            self._open[run_id] = entry
            os.environ[VARIABLE] = run_id
        _context.set(run_id)

    def parent_of(self, run_id: str) -> str | None:
        """Return what an open run is part of by now: its parent may have ended before it."""
        with self._lock:
            entry = self._open.get(run_id)
            return None if entry is None else entry.parent

    def leave(self, run_id: str) -> bool:
        """Close a run; return whether another one overlapped it without enclosing it.

        What is still open inside it outlives it, and is from now on part of what is around it.
        """
        with self._lock:
            entry = self._open.get(run_id)
            if entry is None:
                return False
            for other in self._open.values():
                if other.parent == run_id:
                    other.parent = entry.parent
                    other.overlapped = entry.overlapped = True
            newest = next((i for i in reversed(self._open) if i != run_id), self._outside)
            if newest is None:
                os.environ.pop(VARIABLE, None)
            else:
                os.environ[VARIABLE] = newest
            # Last: who was interrupted before it (Ctrl-C) closes the run anew.
            del self._open[run_id]
            if not self._open:
                # The next run asks the environment anew: the program may have changed it.
                self._outside = self._forked_in
                self._left.clear()
            elif _context.get() != run_id:
                self._left[run_id] = entry.outer
        if _context.get() == run_id:
            _context.set(entry.outer)
        return entry.overlapped

    def leave_inherited(self, run_id: str, parent: str | None) -> None:
        """Leave a run that this process was forked off in: what follows is no part of it.

        Args:
            run_id: The run, which goes on in the process that began it.
            parent: What that run is part of.
        """
        with self._lock:
            if self._forked_in == run_id:
                self._forked_in = parent
            if self._outside == run_id:
                self._outside = parent
            if os.environ.get(VARIABLE) == run_id:
                if parent is None:
                    del os.environ[VARIABLE]
                else:
                    os.environ[VARIABLE] = parent

    def _own(self) -> str | None:
        """Return the open run of this context: of one that was closed elsewhere, what was around it."""
        own = _context.get()
        while own is not None and own in self._left:
            own = self._left[own]
        return own if own in self._open else None

    def _ancestors(self, run_id: str | None) -> set[str]:
        found: set[str] = set()
        while run_id is not None and run_id not in found:
            found.add(run_id)
            entry = self._open.get(run_id)
            run_id = entry.parent if entry is not None else None
        return found


def process_lineage() -> Lineage:
    """Return the lineage of this process."""
    return _current


def _from_environment() -> str | None:
    text = os.environ.get(VARIABLE, "")
    return text if _RUN_ID.fullmatch(text) else None


def _after_fork() -> None:
    """In a forked child everything is part of the run that was open around the fork."""
    global _current  # noqa: PLW0603  # one lineage a process is the point of this module
    _current = Lineage(_current.at_fork())
    _context.set(None)


_current = Lineage()
os.register_at_fork(after_in_child=_after_fork)
