"""Use case part: the ledger's records inside a quarter's report, from which it is computed again.

They are the files of the ledger as they are, in one archive. Samples of power, studies and journals
stay behind: no figure of a quarter rests on them.
"""

from __future__ import annotations

import base64
import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from carbonlens.errors import InputFileError
from carbonlens.ledger import layout

LEDGER_ZIP: Final = "ledger.zip"
"""Name of the archive in a PDF."""

MOST_IN_PDF: Final = 1 << 25
"""Bytes of records up to which they travel with a PDF."""

MOST_IN_DATA: Final = 1 << 22
"""Likewise within the data of a page, which a browser loads whole."""

_FOLDERS: Final = (
    layout.RUNS,
    layout.IMPORTS,
    layout.MONTHS,
    layout.REDACTIONS,
    layout.CLOSES,
    layout.RESTATEMENTS,
    *("readings", "charges", "snapshots"),
)
_STAMP: Final = (1980, 1, 1, 0, 0, 0)
_LARGEST_BYTES: Final = 1 << 28
"""Unpacked. Text packs well, and an archive can say that it holds far more than anyone wrote."""

_MOST_FILES: Final = 200_000


def records_of(ledger: Path, most: int) -> bytes:
    """Return the ledger's records as an archive, the same bytes for the same files.

    Empty comes back where they are too many.

    Args:
        ledger: The ledger's folder.
        most: Bytes that they may have.
    """
    files = list(_files(ledger))
    if sum(file.stat().st_size for file in files) > most:
        return b""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for file in files:
            entry = zipfile.ZipInfo(file.relative_to(ledger).as_posix(), _STAMP)
            entry.external_attr = 0o644 << 16
            # A batch is packed in itself.
            is_packed = file.suffix == ".parquet"
            entry.compress_type = zipfile.ZIP_STORED if is_packed else zipfile.ZIP_DEFLATED
            archive.writestr(entry, file.read_bytes())
    return packed.getvalue()


def in_data(said: object, where: str) -> bytes:
    """Return the archive within the data of a report; empty where they hold none.

    Args:
        said: What the data say of it.
        where: The report, for errors.

    Raises:
        InputFileError: If it is no archive as text.
    """
    if said is None:
        return b""
    try:
        return base64.b64decode(str(said), validate=True)
    except ValueError as error:
        raise _damaged(where, f"what is damaged ({error})") from error


def unpack(packed: bytes, folder: Path, where: str) -> None:
    """Write the records that a report carries as a ledger.

    Args:
        packed: The archive.
        folder: The ledger's folder; made if need be.
        where: The report, for errors.

    Raises:
        InputFileError: If it is no archive of a ledger: damaged, too large, or with other files.
    """
    for name, content in _entries(packed, where):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def differing(packed: bytes, ledger: Path, where: str) -> int:
    """Return how many of the carried files a ledger has not, or has with other content.

    Args:
        packed: The archive.
        ledger: The ledger's folder.
        where: The report, for errors.

    Raises:
        InputFileError: As of ``unpack``.
    """
    held = {file.relative_to(ledger).as_posix(): file for file in _files(ledger)}
    return sum(
        name not in held or held[name].read_bytes() != content for name, content in _entries(packed, where)
    )


def _files(ledger: Path) -> Iterator[Path]:
    for folder in _FOLDERS:
        for file in sorted((ledger / folder).rglob("*")):
            # Names that begin with a dot are temporary; a link may lead out of the ledger.
            is_own = file.is_file() and not file.is_symlink()
            if is_own and not any(p.startswith(".") for p in file.relative_to(ledger).parts):
                yield file


def _entries(packed: bytes, where: str) -> Iterator[tuple[str, bytes]]:
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            entries = archive.infolist()
            if len(entries) > _MOST_FILES or sum(e.file_size for e in entries) > _LARGEST_BYTES:
                raise _damaged(where, "more than any report carries")
            seen: set[str] = set()
            for entry in entries:
                name = entry.filename
                if not _is_record(name) or name in seen:
                    raise _damaged(where, f"a file {name[:60]!r}, which is no record")
                seen.add(name)
                # No more is read than was said: what holds more is cut short, and its checksum fails.
                yield name, archive.read(entry)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError) as error:
        raise _damaged(where, f"what is damaged ({error})") from error


def _is_record(name: str) -> bool:
    """Tell whether a name may be that of a ledger's file; the deepest is ``runs/<month>/<run>.json``."""
    parts = PurePosixPath(name).parts
    plain = all(p.isprintable() and not p.startswith(".") and "\\" not in p and ":" not in p for p in parts)
    return 1 < len(parts) <= 4 and parts[0] in _FOLDERS and plain and name == "/".join(parts)


def _damaged(where: str, what: str) -> InputFileError:
    return InputFileError(
        f"its records ({LEDGER_ZIP}) hold {what}",
        where=where,
        mend="take the file as carbonlens wrote it, or verify against --ledger",
    )
