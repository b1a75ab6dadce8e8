"""Counted things in words, so that no message says "1 lines"."""

from __future__ import annotations


def counted(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun: ``1 line is``, ``3 lines are``.

    Args:
        count: How many.
        one: The words after a count of one.
        many: The words after any other; ``one`` with an ``s`` when ``None``.
    """
    return f"{count} {one if count == 1 else many or one + 's'}"
