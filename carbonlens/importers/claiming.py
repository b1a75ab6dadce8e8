"""Which importer reads which sources: asked of each, by content and never by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import entry_points
from typing import Final

import msgspec

from carbonlens.importers.contract import Group, Importer
from carbonlens.importers.sources import Source

GROUP: Final = "carbonlens.importers"
"""Entry points, each of an ``IMPORTER``."""


class Claim(msgspec.Struct, frozen=True):
    """A group and who reads it."""

    importer: Importer
    group: Group


def importers() -> list[Importer]:
    """Return all installed importers: the specific ones first, then by name."""
    found: list[Importer] = [entry.load() for entry in entry_points(group=GROUP)]
    return sorted(found, key=lambda i: (i.rank, i.name))


def claims(sources: Sequence[Source], candidates: Iterable[Importer]) -> tuple[list[Claim], list[Source]]:
    """Return who reads what, in the order of the sources, and the sources that nobody reads.

    Args:
        sources: Sources without a fault.
        candidates: Importers, in the order in which they are asked.
    """
    left = list(sources)
    found: list[Claim] = []
    for importer in candidates:
        if not left:
            break
        taken: set[int] = set()
        for group in importer.claim(left):
            ids = {id(s) for s in group.sources}
            if ids & taken:
                continue  # it already has one of them in another group
            taken |= ids
            found.append(Claim(importer, group))
        left = [s for s in left if id(s) not in taken]
    place = {id(s): i for i, s in enumerate(sources)}
    found.sort(key=lambda c: place[id(c.group.main)])
    return found, left


def each(sources: Sequence[Source], is_mine: Callable[[Source], bool]) -> list[Group]:
    """Return a group for each source that a test says is one: the claim of most formats."""
    return [Group((source,)) for source in sources if is_mine(source)]
