"""Files and folders as artefacts: size and a hash that does not depend on time or place.

A file's hash is that of its content. A folder's is that of one line an entry, in the
order of the names: kind, relative path, and the hash of a file or the target of a link.
What changes while it is read has neither.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from carbonlens.instrument.artefact_figures import Allowance, Figures, UntoldError

_PIECE: Final = 4 * 1024 * 1024
ONNX: Final = ".onnx"
"""End of the name of a file that is looked at as a model (``artefact_onnx``)."""

CHANGED: Final = "it changed while it was read"


class Content(NamedTuple):
    """What was read of a file or folder."""

    size: int
    sha256: str


class Identity(NamedTuple):
    """What changes when a file does."""

    device: int
    inode: int
    size: int
    modified_ns: int


def look(path: Path, figures: Figures) -> None:
    """Fill in the figures of what lies at a path, whatever is in it.

    Args:
        path: A file or a folder.
        figures: Filled in.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        figures.kind = "onnx" if path.suffix.lower() == ONNX else None
        figures.withdraw("nothing is there")
        return
    if stat.S_ISDIR(mode):
        figures.kind = "folder"
        _keep(figures, partial(read_folder, path, figures.allowance))
    elif not stat.S_ISREG(mode):
        figures.withdraw("it is neither a file nor a folder")
    else:
        figures.kind = "file"
        _keep(figures, partial(read_file, path, figures.allowance))


def _keep(figures: Figures, read: partial[Content]) -> None:
    content: list[Content] = []

    def size() -> int:
        content.append(read())
        return content[0].size

    def digest() -> str:
        if not content:
            raise UntoldError(CHANGED_OR_UNREAD)
        return content[0].sha256

    figures.tell("bytes", size)
    figures.tell_hash(digest)


CHANGED_OR_UNREAD: Final = "it could not be read whole"


def read_file(path: Path, allowance: Allowance) -> Content:
    """Return size and hash of a regular file; a link to one serves too.

    Raises:
        OSError: If it cannot be read.
        UntoldError: If it is no regular file, changed meanwhile, or took too long.
    """
    # Opened without waiting: a pipe that took the file's place would never end.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb", buffering=0) as stream:
        before = identity(os.fstat(handle))
        digest, size = hashlib.sha256(), 0
        while piece := stream.read(_PIECE):
            allowance.check()
            digest.update(piece)
            size += len(piece)
        if identity(os.fstat(handle)) != before or size != before.size:
            raise UntoldError(CHANGED)
    return Content(size, digest.hexdigest())


def identity(status: os.stat_result) -> Identity:
    """Return what changes when a regular file does.

    Raises:
        UntoldError: If it is none.
    """
    if not stat.S_ISREG(status.st_mode):
        raise UntoldError("it is no regular file")
    return Identity(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def read_folder(path: Path, allowance: Allowance) -> Content:
    """Return the bytes of all files below a folder and the folder's hash.

    Links to files are followed, as a model cache is made of them; links to folders are
    not, and count by their target.

    Raises:
        OSError: If something in it cannot be read.
        UntoldError: If it holds what is neither file nor folder, changed meanwhile, or
            took too long.
    """
    before = list(_entries(path, allowance))
    digest, size = hashlib.sha256(), 0
    for kind, name, said in before:
        if kind == "file":
            content = read_file(path / os.fsdecode(name), allowance)
            size += content.size
            said = content.sha256.encode()  # noqa: PLW2901  # of a file its content stands in its line
        digest.update(b"\0".join((kind.encode(), name, said)) + b"\n")
    if list(_entries(path, allowance)) != before:
        raise UntoldError(CHANGED)
    return Content(size, digest.hexdigest())


def _entries(folder: Path, allowance: Allowance) -> Iterator[tuple[str, bytes, bytes]]:
    """Yield kind, relative name and what tells a change of everything below a folder, in order."""
    for place, folders, files in os.walk(folder, onerror=_raise):
        allowance.check()
        folders.sort()
        here = Path(place)
        for name in sorted(folders):
            path = here / name
            target = os.fsencode(path.readlink()) if path.is_symlink() else b""
            yield ("link" if target else "folder"), os.fsencode(path.relative_to(folder)), target
        for name in sorted(files):
            path = here / name
            said = ",".join(map(str, identity(path.stat()))).encode()
            yield "file", os.fsencode(path.relative_to(folder)), said


def _raise(error: OSError) -> None:
    raise error
