"""Regular expressions that are compiled when they are first used.

To compile one takes up to a millisecond, and most of those that a run's modules hold are used by few
runs: together they would be a twentieth of what ``carbonlens run`` adds to a command.
"""

from __future__ import annotations

import re
from typing import Any, cast


class _Later:
    """Stands for a pattern."""

    def __init__(self, text: str, flags: int) -> None:
        self._given = text, flags

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # whatever a pattern has
        """Compile it, and keep what is asked of it."""
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(re.compile(*self._given), name)
        setattr(self, name, value)
        return value


def later(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that is compiled when one of its methods is first called.

    Args:
        text: The regular expression; a fault in it shows when it is used.
        flags: As for ``re.compile``.
    """
    return cast("re.Pattern[str]", _Later(text, flags))
