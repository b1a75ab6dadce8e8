"""The files of an import: those that are named, and those met in folders, hidden ones left out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path


def files_of(paths: Iterable[Path]) -> Iterator[tuple[Path, bool]]:
    """Yield each file, and whether it was named; a folder that cannot be opened stands for itself.

    Hidden files and folders, such as a ledger or a repository's own, are not looked into, links to
    folders not followed, and pipes and devices passed over. The order is that of sorted paths.

    Args:
        paths: Files, and folders to walk.
    """
    for path in paths:
        if path.is_dir():
            met = sorted(_under(os.fspath(path)), key=_parts)
            yield from ((Path(name), False) for name in met)
        else:
            yield path, True


def _parts(name: str) -> list[str]:
    return name.split(os.sep)  # noqa: PTH206  # a Path for each look at 200,000 names takes seconds


def _under(folder: str) -> Iterator[str]:
    """Yield the files below a folder, in any order."""
    waiting = [folder]
    while waiting:
        place = waiting.pop()
        try:
            with os.scandir(place) as entries:
                inside = [entry for entry in entries if not entry.name.startswith(".")]
        except OSError:
            yield place  # whoever opens it says why it cannot be
            continue
        for entry in inside:
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            elif _is_file(entry):
                yield entry.path


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False  # a link that leads back to itself
