"""Files that appear whole or not at all, on local disks and shared folders alike: no locks, only renames."""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, get_args

from carbonlens.domain.patterns import later
from carbonlens.ledger import layout

_TEMPORARY: Final = later(r"\..+\.[0-9a-f]{16}\.tmp", re.DOTALL)
"""Names that ``_temporary`` gives."""

ROWS: Final = "rows.json"
NEW: Final = "new.parquet"
_IN_TEMPORARY: Final = (ROWS, NEW, f"tmp_{NEW}")
"""What lies in a folder of ``temporary_folder``; DuckDB puts ``tmp_`` before what it has not finished."""

IGNORED: Final = ".gitignore"
"""The one file of ours in the ledger's own folder."""

_FLAT: Final = (
    layout.IMPORTS,
    *get_args(layout.BatchKind),
    layout.REDACTIONS,
    layout.CLOSES,
    layout.RESTATEMENTS,
    layout.OUTCOMES,
    layout.STUDIES,
)
_BY_TIME: Final = (layout.RUNS, layout.MONTHS, layout.SAMPLES)
_TIME: Final = later(rf"[0-9]{{6}}|[0-9]{{8}}|{layout.UNDATED}|{layout.CORRECTIONS}")
"""Folders in those of ``_BY_TIME``."""


def write_atomically(file: Path, content: bytes) -> None:
    """Write a file so that a reader sees all of it or none, also after a crash.

    Raises:
        OSError: If the folder cannot be written.
    """
    temporary = _temporary(file)
    try:
        _write_synced(temporary, content)
        temporary.replace(file)
    except BaseException:  # put in order, then raised again
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(file.parent)


def write_once(file: Path, content: bytes) -> None:
    """Write a file that must not exist yet, whole or not at all.

    Raises:
        FileExistsError: If another writer was first; its file stays.
        OSError: If the folder cannot be written.
    """
    temporary = _temporary(file)
    try:
        _write_synced(temporary, content)
        # A hard link fails where the name is taken; a rename would replace it.
        _link(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(file.parent)


@contextmanager
def temporary_folder(file: Path) -> Iterator[Path]:
    """Lend a folder beside a file, to make it in; it is removed at the end.

    Raises:
        OSError: If it cannot be made.
    """
    folder = _temporary(file)
    folder.mkdir()
    try:
        yield folder
    finally:
        _remove_folder(folder)


def remove_leftovers(ledger: Path, *, older_than_s: float) -> int:
    """Remove temporary files of writers that were cut off; return how many.

    A ledger may be a folder of the user's own: only regular files and folders that have
    a name of ours are removed, in the ledger's own folders only, and no link is followed.
    Of such a folder only what we put there goes; if there is more, it stays.

    Raises:
        OSError: If one cannot be removed.
    """
    removed = 0
    for file in leftovers(ledger):
        # A writer at work renames its file meanwhile.
        with suppress(FileNotFoundError):
            removed += remove_leftover(file, older_than_s=older_than_s)
    return removed


def is_temporary(name: str) -> bool:
    """Tell whether a name is one that we give to what is being written."""
    return _TEMPORARY.fullmatch(name) is not None


def leftovers(ledger: Path) -> list[Path]:
    """Return the temporary files and folders of writers, of those at work too; no link is among them."""
    inside = [entry for folder in _own_folders(ledger) for entry in _entries(folder)]
    # The ledger's own folder may be the user's: of it only what its one file of ours leaves.
    inside += [entry for entry in _entries(ledger) if entry.name.startswith(f".{IGNORED}.")]
    return [Path(entry.path) for entry in inside if is_temporary(entry.name) and not entry.is_symlink()]


def remove_leftover(file: Path, *, older_than_s: float) -> bool:
    """Remove what ``leftovers`` gave if its writer must be gone; tell whether it is.

    Raises:
        FileNotFoundError: If the writer was quicker.
        OSError: If it cannot be removed.
    """
    status = file.lstat()
    if status.st_mtime >= time.time() - older_than_s:
        return False
    if stat.S_ISDIR(status.st_mode):
        return _remove_folder(file)
    if not stat.S_ISREG(status.st_mode):
        return False
    file.unlink()
    return True


def _own_folders(ledger: Path) -> Iterator[Path]:
    """Yield the folders that writers of a ledger write to; they may be missing, or links."""
    yield from (ledger / name for name in _FLAT)
    for name in _BY_TIME:
        yield from (Path(e.path) for e in _entries(ledger / name) if _TIME.fullmatch(e.name))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return what lies in a folder; nothing where it is a link, or cannot be read."""
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            return []
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []


def _remove_folder(folder: Path) -> bool:
    """Remove a folder of ``temporary_folder``; tell whether nothing else was in it."""
    for name in _IN_TEMPORARY:
        (folder / name).unlink(missing_ok=True)
    try:
        folder.rmdir()
    except OSError:
        return False
    return True


def sync_folder(path: Path) -> None:
    """Make a rename in the folder durable.

    Raises:
        OSError: If the folder cannot be opened.
    """
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _link(source: Path, file: Path) -> None:
    try:
        file.hardlink_to(source)
    except OSError as error:
        if error.errno not in {errno.EPERM, errno.ENOTSUP, errno.ENOSYS}:
            raise
        # A file system without hard links: looking first is the best there is.
        if file.exists():
            raise FileExistsError(errno.EEXIST, "exists already", str(file)) from error
        source.replace(file)


def _temporary(file: Path) -> Path:
    stem = file.name.encode("utf-8", "surrogateescape")[:64].decode("utf-8", "ignore")
    return file.with_name(f".{stem}.{os.urandom(8).hex()}.tmp")


def _write_synced(file: Path, content: bytes) -> None:
    with file.open("xb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
