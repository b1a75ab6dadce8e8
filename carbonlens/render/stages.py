"""Stages: how a renderer says what it is at, to whoever listens."""

from __future__ import annotations

from collections.abc import Callable


class _Listener:
    """Who is told; a process renders one report at a time."""

    heard: Callable[[str], None] | None = None


def listen(heard: Callable[[str], None] | None) -> None:
    """Have every stage told to a function from now on.

    Args:
        heard: Takes the words; ``None`` for nobody.
    """
    _Listener.heard = heard


def stage(words: str) -> None:
    """Say what is being done.

    Args:
        words: Such as ``laying out pages``.
    """
    if _Listener.heard is not None:
        _Listener.heard(words)
