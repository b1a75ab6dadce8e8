"""Progress: what a series of measurements tells while it works."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Whom to tell; the command line makes bars of it."""

    def start(self, total: int, label: str) -> None:
        """Begin a phase of ``total`` parts."""

    def advance(self) -> None:
        """Finish one part of the phase."""

    def note(self, text: str) -> None:
        """Say something worth a line."""


class Silent:
    """Progress that nobody watches."""

    def start(self, total: int, label: str) -> None:
        """Ignore it."""

    def advance(self) -> None:
        """Ignore it."""

    def note(self, text: str) -> None:
        """Ignore it."""
