"""Files that are read together: where they lie tells which belong together, never what they are."""

from __future__ import annotations

from carbonlens.domain.file_names import printable
from carbonlens.importers.sources import Source


def folder_of(source: Source) -> str:
    """Return the folder, or the archive and its folder, that a source lies in."""
    return _shown(source).rpartition("/")[0]


def name_of(source: Source) -> str:
    """Return a source's own name, without folders."""
    return _shown(source).rpartition("/")[2]


def _shown(source: Source) -> str:
    path = printable(source.path.as_posix())
    return path if source.member is None else f"{path}/{printable(source.member)}"
