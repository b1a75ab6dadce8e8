"""The ids of the runs that are kept, and the studies in which each of them stands."""

from __future__ import annotations

from collections.abc import Iterable


class Names:
    """Finds the studies of an id without a look at the others: a ledger may hold thousands."""

    def __init__(self) -> None:
        """Start with none."""
        self._waiting: list[tuple[str | None, Iterable[str]]] = []
        self._first: dict[str, str | None] = {}
        self._further: dict[str, dict[str | None, None]] = {}

    def add(self, study: str | None, names: Iterable[str]) -> None:
        """Note ids of a study; they are sorted in once one is looked for.

        Args:
            study: Theirs.
            names: The ids; not to be changed from now on.
        """
        self._waiting.append((study, names))

    def studies(self, name: str) -> tuple[str | None, ...]:
        """Return the studies that hold an id, in the order in which they were noted."""
        self._settle()
        return (self._first[name], *self._further.get(name, ())) if name in self._first else ()

    def among(self, names: set[str]) -> set[str]:
        """Return those of some ids that any study holds."""
        self._settle()
        return {name for name in names if name in self._first}

    def _settle(self) -> None:
        for study, names in self._waiting:
            for name in names:
                if self._first.setdefault(name, study) != study:
                    # Most ids stand in one study: the others alone have a table of their own.
                    self._further.setdefault(name, {})[study] = None
        self._waiting.clear()
