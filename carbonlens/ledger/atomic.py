"""Files that appear whole or not at all, on local disks and shared folders alike: no locks, only renames."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path


def write_atomically(file: Path, content: bytes) -> None:
    """Write a file so that a reader sees all of it or none, also after a crash.

    Raises:
        OSError: If the folder cannot be written.
    """
    temporary = _temporary(file)
    try:
        _write_synced(temporary, content)
        temporary.replace(file)
    except BaseException:
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


def remove_leftovers(folder: Path, *, older_than_s: float) -> int:
    """Remove temporary files and folders of writers that were cut off; return how many.

    Raises:
        OSError: If one cannot be removed.
    """
    import shutil

    latest = time.time() - older_than_s
    removed = 0
    for place, folders, files in os.walk(folder):
        for name in [n for n in (*folders, *files) if n.startswith(".") and n != ".gitignore"]:
            leftover = Path(place) / name
            if leftover.stat().st_mtime < latest:
                shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink(missing_ok=True)
                removed += 1
        folders[:] = [n for n in folders if not n.startswith(".")]
    return removed


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
    return file.with_name(f".{file.name[:64]}.{os.urandom(8).hex()}.tmp")


def _write_synced(file: Path, content: bytes) -> None:
    with file.open("xb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
