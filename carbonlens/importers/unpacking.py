"""What unpacking raises, and content that no importer need look at: archives, pointers, nothing."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from carbonlens.domain.counting import counted
from carbonlens.importers.encodings import UTF_8_MARK
from carbonlens.importers.gunzip import GZIP, Sized, UnpackedError

ZIP: Final = b"PK\x03\x04"
"""First bytes of a ZIP archive that holds files."""

UNREADABLE: Final = (
    *(OSError, EOFError, zlib.error, struct.error, zipfile.BadZipFile),
    *(RuntimeError, NotImplementedError, UnicodeError),
)
"""What unpacking raises: ``RuntimeError`` is an encrypted member, ``NotImplementedError`` its method,
``UnicodeError`` its name."""


MOST_MEMBERS: Final = 1000
"""Files of one ZIP archive that are read: each is looked up in the list of all of them."""


class CrowdedError(zipfile.BadZipFile):
    """A ZIP archive holds so many files that finding each takes longer than reading it."""


class GzippedError(zipfile.BadZipFile):
    """A ZIP archive that is gzipped as a whole."""


_PLAIN_METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
"""Methods of ZIP that are undone piece by piece: others give all that a few bytes stand for at once."""

_ARCHIVES: Final = {
    GZIP: "is gzipped twice",
    b"PK\x05\x06": "is a ZIP archive that holds no files",
    b"BZh": "is packed by bzip2",
    b"\xfd7zXZ\0": "is packed by xz",
    b"\x28\xb5\x2f\xfd": "is packed by zstd",
    b"7z\xbc\xaf\x27\x1c": "is a 7z archive",
    b"Rar!\x1a\x07": "is a RAR archive",
}
_BZIP2: Final = (b"1AY&SY", b"\x17rE8P\x90")
"""One of these follows the first four bytes of bzip2: ``BZh`` alone may begin a text."""

_LFS: Final = b"version https://git-lfs.github.com/spec/"
_ANNEX: Final = (b"/annex/objects/", b".git/annex/objects/", b"../.git/annex/")
_TAR_AT, _TAR = 257, b"ustar"


def reason_of(error: BaseException) -> str:
    """Return why something cannot be read, without the error's type where it says anything."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def unreadable(error: BaseException, usual: str) -> tuple[str, str]:
    """Return why a content cannot be read, and what would mend it: the usual, or what its size asks for."""
    mend = usual
    if isinstance(error, UnpackedError):
        mend = (
            "check what it holds: one line over and over? If it is right, unpack it yourself, and import that"
        )
    return f"cannot be read ({reason_of(error)})", mend


def archive_fault(error: BaseException) -> tuple[str, str]:
    """Return why a ZIP archive cannot be opened, and what would mend it."""
    if isinstance(error, UnicodeError):
        return (
            "is a ZIP archive with a name in it that is no UTF-8",
            "unpack it yourself, and import the folder",
        )
    if isinstance(error, CrowdedError):
        return f"is a ZIP archive of {error}", "unpack it yourself, and import the folder"
    if isinstance(error, GzippedError):
        return f"is a ZIP archive that cannot be opened ({error})", "undo the gzip, and import the archive"
    mend = "copy it again: its end, which lists its files, may be missing; or unpack it yourself"
    return f"is a ZIP archive that cannot be opened ({reason_of(error)})", mend


def fault_of(start: bytes, *, is_all: bool) -> tuple[str, str] | None:
    """Return why a content can be of no format, and what would mend it; ``None`` where it may be of one.

    Args:
        start: Its first bytes, unpacked.
        is_all: Whether nothing follows them.
    """
    if start.startswith(_LFS):
        return "is a Git LFS pointer, not the file itself", "git lfs pull, then import again"
    if start.startswith(_ANNEX):
        return "is a git-annex pointer, not the file itself", "git annex get, then import again"
    if is_all and not start.strip(b"\0 \t\r\n" + UTF_8_MARK):
        return "is empty", "check how it was written: nothing is in it"
    if start[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR:
        return "is a tar archive", "unpack it, and import the folder"
    for begin, what in _ARCHIVES.items():
        if start.startswith(begin) and (begin != b"BZh" or start[4:10] in _BZIP2):
            return what, "unpack it yourself, and import what comes out"
    return None


def members_of(path: Path) -> list[str]:
    """Return the names of the files in a ZIP archive, without hidden ones.

    Raises:
        Exception: One of ``UNREADABLE``, if it cannot be opened.
    """
    with path.open("rb") as file:
        if file.read(len(GZIP)) == GZIP:
            raise GzippedError("it was gzipped")
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    if "" in names:
        raise zipfile.BadZipFile("a file in it has no name")
    found = sorted(name for name in names if not name.endswith("/") and not _is_hidden(name))
    if len(found) > MOST_MEMBERS:
        held = counted(len(found), "file")
        raise CrowdedError(f"{held}, and no more than {MOST_MEMBERS} are looked for in one")
    return found


@contextmanager
def member_of(file: IO[bytes], name: str) -> Iterator[IO[bytes]]:
    """Open a file in a ZIP archive.

    Args:
        file: The archive.
        name: Of the file.

    Raises:
        Exception: One of ``UNREADABLE``, if it cannot be opened.
    """
    with zipfile.ZipFile(file) as archive:
        info = archive.getinfo(name)
        if info.compress_type not in _PLAIN_METHODS:
            raise NotImplementedError("it is packed by another method than deflate")
        with archive.open(name) as inner:
            yield io.BufferedReader(Sized(inner, info.compress_size))


def _is_hidden(member: str) -> bool:
    return any(part.startswith((".", "__MACOSX")) and part.strip(".") for part in member.split("/"))
