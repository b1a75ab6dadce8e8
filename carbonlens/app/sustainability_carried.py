"""Use case part: the ledger's records inside a quarter's report, from which it is computed again.

They are the files of the ledger as they are, in one archive: those that its readers take records
from. Samples of power, studies and journals stay behind: no figure of a quarter rests on them.
What a tombstone takes out leaves no house: while a file holds it still, no records travel. Nor do
they where one names a host in plain letters, unless the user says so: a record cannot be altered.
"""

from __future__ import annotations

import base64
import errno
import io
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, Literal, Self

import msgspec

from carbonlens.domain.decoding import decode_json
from carbonlens.domain.identity import is_plain_host, sha256_hex
from carbonlens.errors import InputFileError
from carbonlens.ledger import layout, parquet, redaction, scratch
from carbonlens.ledger.records import content_sha256

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LEDGER_ZIP: Final = "ledger.zip"
"""Name of the archive in a PDF."""

MOST_IN_PDF: Final = 1 << 25
"""Bytes of records up to which they travel with a PDF."""

MOST_IN_DATA: Final = 1 << 22
"""Likewise within the data of a page, which a browser loads whole."""

LeftOut = Literal["", "redacted", "unnamed", "changing", "hosts"]
"""Why few enough records stay behind all the same: one holds what a tombstone takes out, one has a
name that no archive may hold, the ledger was written to each time that it was read, or one names a
host in plain letters."""

_ROWS: Final = ("readings", "charges", "snapshots")
_LISTS: Final = (layout.REDACTIONS, layout.CLOSES, layout.RESTATEMENTS)
_FOLDERS: Final = (layout.RUNS, layout.IMPORTS, layout.MONTHS, *_LISTS, *_ROWS)
_OF_RUNS: Final = (layout.RUNS, layout.IMPORTS, layout.MONTHS)
_STAMP: Final = (1980, 1, 1, 0, 0, 0)
_LARGEST_BYTES: Final = 1 << 28
"""Unpacked. Text packs well, and an archive can say that it holds far more than anyone wrote."""

_MOST_FILES: Final = 200_000
_IS_ENCRYPTED: Final = 1
_PACKED_BY: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DAMAGE: Final = (
    *(zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError),
    *(NotImplementedError, RuntimeError),
)
"""What reading an archive of anybody's making raises: an encrypted one a RuntimeError."""

_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)


class Packed(msgspec.Struct, frozen=True, kw_only=True):
    """Records of a ledger.

    Attributes:
        content: The archive; empty where none travel.
        size: Bytes of the files in it.
        why: Why none travel though they are few enough; empty where that is not so.
        hosts: How many hosts they name in plain letters, where they stay behind for that.
    """

    content: bytes = b""
    size: int = 0
    why: LeftOut = ""
    hosts: int = 0


def records_of(ledger: Path, most: int, *, with_host_names: bool = False) -> Packed:
    """Return the ledger's records as an archive, the same bytes for the same files.

    Args:
        ledger: The ledger's folder.
        most: Bytes that they may have.
        with_host_names: Whether they travel though they name hosts in plain letters.

    Raises:
        OSError: If a file cannot be read, or went away meanwhile.
    """
    files = list(_files(ledger))
    if sum(file.stat().st_size for file in files) > most:
        return Packed()
    if not all(_is_record(_name(file, ledger)) for file in files):
        return Packed(why="unnamed")
    with _Reader() as reader:
        if _holds_redacted(ledger, files, reader):
            return Packed(why="redacted")
        hosts = 0 if with_host_names else len(_plain_hosts(ledger, files, reader))
    if hosts:
        return Packed(why="hosts", hosts=hosts)
    size, packed = 0, io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for file in files:
            entry = zipfile.ZipInfo(_name(file, ledger), _STAMP)
            entry.external_attr = 0o644 << 16
            # A batch is packed in itself.
            is_packed = file.suffix == ".parquet"
            entry.compress_type = zipfile.ZIP_STORED if is_packed else zipfile.ZIP_DEFLATED
            content = file.read_bytes()
            size += len(content)
            archive.writestr(entry, content)
    return Packed(content=packed.getvalue(), size=size)


def states_of(ledger: Path) -> Mapping[str, tuple[int, int]]:
    """Return size and time of each file that may travel, by name: the same ones mean the same records.

    Args:
        ledger: The ledger's folder.

    Raises:
        OSError: As of ``records_of``.
    """
    return {_name(f, ledger): ((s := f.stat()).st_size, s.st_mtime_ns) for f in _files(ledger)}


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
        UnwritableError: If there is no room for them.
    """
    for name, content in _entries(packed, where):
        file = folder / name
        with writing(file, where):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)


@contextmanager
def writing(file: Path, where: str) -> Iterator[None]:
    """Tell a file of a report that cannot be written: for want of room, else for what it is.

    Args:
        file: To be written.
        where: The report, for errors.

    Raises:
        UnwritableError: If there is no room for it.
        InputFileError: If it cannot be written for another reason.
    """
    try:
        yield
    except (OSError, ValueError) as error:  # a name with a NUL is a ValueError
        said = getattr(error, "strerror", None) or str(error)
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            raise scratch.unwritable(file, said) from error
        raise InputFileError(
            f"holds a file {file.name[:60]!r} that cannot be written ({said})",
            where=where,
            mend="take the file as carbonlens wrote it, or verify against --ledger",
        ) from error


def missing_of(folder: Path, ledger: Path) -> int:
    """Return how many of the carried records a ledger does not hold, in whatever file.

    Args:
        folder: The carried ones, unpacked.
        ledger: The ledger's folder.

    Raises:
        OSError: If a folder cannot be read.
    """
    with _Reader() as reader:
        left = {one for file in _files(folder) for one in _contents(file, folder, reader)}
        for file in _files(ledger):
            if not left:
                break
            left.difference_update(_contents(file, ledger, reader))
    return len(left)


def _files(ledger: Path) -> Iterator[Path]:
    """Yield what readers take records from: by ending, without retired files, temporary ones and links."""
    for file in _listed(ledger):
        # A link may lead out of the ledger.
        if file.is_file() and not file.is_symlink():
            yield file


def _listed(ledger: Path) -> Iterator[Path]:
    for folder in layout.folders_in(ledger / layout.RUNS):
        yield from layout.files_in(folder, ".json")
    yield from layout.months_in(ledger / layout.IMPORTS)
    for folder in layout.folders_in(ledger / layout.MONTHS):
        months = layout.months_in(folder)
        stems = {file.stem for file in months}
        yield from months
        yield from (f for f in layout.files_in(folder, ".json") if f.stem in stems)
    for name in _LISTS:
        yield from layout.files_in(ledger / name, ".json")
    for name in _ROWS:
        yield from layout.files_in(ledger / name, ".parquet")


def _name(file: Path, ledger: Path) -> str:
    return file.relative_to(ledger).as_posix()


class _Reader:
    """Reads records of many files by one DuckDB, which is opened when the first file asks for it."""

    def __init__(self) -> None:
        self._connection: DuckDBPyConnection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self._connection.close()

    def texts(self, file: Path, column: str = "record") -> list[str]:
        """Return a column of a batch; arguments and errors as of ``parquet.texts``."""
        if self._connection is None:
            self._connection = parquet.connect()
        return parquet.texts(self._connection, file, column)

    def hashes(self, file: Path) -> set[str]:
        """Return the hashes of the records in a file, each that of its content however it is indented.

        Raises:
            OSError: If it cannot be read.
            msgspec.MsgspecError, UnicodeDecodeError, UnreadableParquetError: If it holds no records.
        """
        if file.suffix == ".json":
            return {content_sha256(file.read_bytes())}
        return {content_sha256(text.encode()) for text in self.texts(file)}

    def hosts(self, file: Path) -> set[str | None]:
        """Return the ids of hosts in the records of runs in a file; errors as of ``hashes``."""
        if file.suffix == ".json":
            return {decode_json(file.read_bytes(), _OnHost).host_id}
        try:
            return set(self.texts(file, "host_id"))
        except parquet.UnreadableParquetError:  # an older batch may lack the column
            return {decode_json(text, _OnHost).host_id for text in self.texts(file)}


class _OnHost(msgspec.Struct, frozen=True):
    """What a record of a run says of its host."""

    host_id: str | None = None


def _plain_hosts(ledger: Path, files: list[Path], reader: _Reader) -> set[str]:
    """Return the hosts that records of runs name in plain letters.

    A file that cannot be read tells none: no reader takes a record from it either.
    """
    found: set[str | None] = set()
    for file in files:
        if _holds_runs(file, ledger):
            with suppress(msgspec.MsgspecError, UnicodeDecodeError, parquet.UnreadableParquetError):
                found |= reader.hosts(file)
    return {host for host in found if host is not None and is_plain_host(host)}


def _holds_runs(file: Path, ledger: Path) -> bool:
    kind = file.relative_to(ledger).parts[0]
    # Beside a month's file lies one that says what stands in it.
    return kind in _OF_RUNS and not (kind == layout.MONTHS and file.suffix == ".json")


def _holds_redacted(ledger: Path, files: list[Path], reader: _Reader) -> bool:
    """Tell whether a file may hold what a tombstone takes out: readers take it out each time they read.

    What cannot be read is taken to hold it, where there is any tombstone at all.
    """
    stones, unread = redaction.tombstones(ledger)
    if unread:
        return True
    if not stones:
        return False
    for file in files:
        if not _holds_runs(file, ledger):
            continue
        try:
            found = reader.hashes(file)
        except (msgspec.MsgspecError, UnicodeDecodeError, parquet.UnreadableParquetError):
            return True
        if not found.isdisjoint(stones):
            return True
    return False


def _contents(file: Path, ledger: Path, reader: _Reader) -> set[tuple[str, str]]:
    """Return what a file holds: its records by kind and hash, else itself by name and hash."""
    name = _name(file, ledger)
    kind = name.partition("/")[0]
    if kind == layout.MONTHS and file.suffix == ".json":
        return set()  # Says of its month's file what stands in that.
    try:
        if kind in (*_OF_RUNS, *_ROWS):
            return {("run" if kind in _OF_RUNS else kind, one) for one in reader.hashes(file)}
    except (msgspec.MsgspecError, UnicodeDecodeError, parquet.UnreadableParquetError):
        pass  # Then it is compared as it is.
    return {(name, sha256_hex(file.read_bytes()))}


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
                if entry.flag_bits & _IS_ENCRYPTED or entry.compress_type not in _PACKED_BY:
                    raise _damaged(where, f"a file {name[:60]!r} that is packed as no report packs it")
                seen.add(name)
                # No more is read than was said: what holds more is cut short, and its checksum fails.
                yield name, archive.read(entry)
    except _DAMAGE as error:
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
