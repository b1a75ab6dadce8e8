"""Retired months' files: those whose records lie in a newer one, kept a while for who opened them before.

A mark beside such a file names its heir and says when; it counts only where the heir is
there, so that a mark which came alone, over a network that went away, takes nothing from view.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.ledger import layout
from carbonlens.ledger.atomic import sync_folder, write_atomically

RETIRED_S: Final = 600
"""How long such a file stays; no query of the largest ledgers that were measured takes so long."""


def retire(files: Iterable[Path], heir: Path) -> None:
    """Mark files, after what replaces them is there.

    Args:
        files: Of one month.
        heir: The file of that month that holds all their records.

    Raises:
        OSError: If a mark cannot be written.
    """
    mark = layout.Mark(heir=heir.name, retired_s=time.time())
    for file in sorted(files):
        write_atomically(layout.mark_of(file), msgspec.json.encode(mark))


def restore(file: Path) -> None:
    """Have a file that is written anew count again.

    Raises:
        OSError: If its mark cannot be removed.
    """
    layout.mark_of(file).unlink(missing_ok=True)


def retired(ledger: Path) -> list[Path]:
    """Return the retired files of a ledger, those retired first before the others.

    Raises:
        OSError: If a folder cannot be read.
    """
    found = [pair for folder in layout.folders_in(ledger / layout.MONTHS) for pair in _marked(folder)]
    return [file for file, _ in sorted(found, key=lambda pair: (pair[1].retired_s, pair[0]))]


def remove_retired(ledger: Path, *, older_than_s: float) -> None:
    """Remove retired files and their manifests, for good.

    Args:
        ledger: The ledger's folder.
        older_than_s: Seconds since they were retired, as their marks say; 0 for all. By
            clocks that differ by more, one that was retired later than now is old too.

    Raises:
        OSError: If one cannot be removed.
    """
    now_s = time.time()
    # The first retired first: one whose heir went before it would count again.
    for file in retired(ledger):
        mark = layout.read_mark(layout.mark_of(file))
        if mark is None or abs(now_s - mark.retired_s) < older_than_s:
            continue
        for ending in (".parquet", ".json"):
            file.with_suffix(ending).unlink(missing_ok=True)
        sync_folder(file.parent)
        # Last: without its mark a file that is there still would count.
        layout.mark_of(file).unlink(missing_ok=True)
    for folder in layout.folders_in(ledger / layout.MONTHS):
        for alone in layout.files_in(folder, layout.RETIRED):
            if not alone.with_suffix(".parquet").exists():
                alone.unlink(missing_ok=True)


def _marked(folder: Path) -> list[tuple[Path, layout.Mark]]:
    """Return the files of a month that are marked, with the marks that count."""
    there = layout.files_in(folder, ".parquet")
    names = {file.name for file in there}
    marks = [(file, layout.read_mark(layout.mark_of(file))) for file in there]
    return [(file, mark) for file, mark in marks if mark is not None and mark.heir in names - {file.name}]
