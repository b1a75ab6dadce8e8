"""Sources: files as importers see them, unpacked and decoded, with hashes and line numbers.

A file is one source; a ZIP archive is one a member. Gzip is undone, by its first bytes and
never by a name. Text may be UTF-8 or UTF-16, with or without a byte order mark, with any line
ends; zero bytes that a crash left as padding are taken out, and said.
"""

from __future__ import annotations

import codecs
import io
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, Final

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding, Severity
from carbonlens.errors import InputFileError
from carbonlens.importers.gunzip import GZIP, Gunzip
from carbonlens.importers.source_hashes import Bounded, Hashes, hashes_of, prefix_sha256

START_BYTES: Final = 4096
"""What is kept of every source, to be claimed by."""

HEAD_BYTES: Final = 65536
LONGEST_LINE: Final = 16 * 1024**2
_BLOCK: Final = 1 << 22
_ZIP: Final = b"PK\x03\x04"
_LFS: Final = b"version https://git-lfs.github.com/spec/"
_ANNEX: Final = (b"/annex/objects/", b".git/annex/objects/", b"../.git/annex/")
_TAR_AT, _TAR = 257, b"ustar"
_UTF_8_MARK: Final = b"\xef\xbb\xbf"
_CONTROLS: Final = (*range(1, 9), *range(14, 27))
_MOST_CONTROLS: Final = 0.02
"""Share of control characters from which what is no UTF-8 is no text of another encoding either."""

_UNREADABLE: Final = (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError, NotImplementedError)
"""What unpacking raises; ``RuntimeError`` is an encrypted member, ``NotImplementedError`` its method."""


class Source:
    """One file, or one member of a ZIP archive.

    Args:
        path: The file.
        member: Name within an archive.
    """

    def __init__(self, path: Path, member: str | None = None) -> None:
        """Point at it without opening it."""
        self.path = path
        self.member = member
        self.repairs: list[Finding] = []
        """What reading had to repair; complete when it was read to its end."""
        self._most_bytes: int | None = None
        self.is_cut_off = False
        """Whether a compressed content was found to end too early."""

    @property
    def shown(self) -> str:
        """The name for messages: the path as given, and the member."""
        return str(self.path) if self.member is None else f"{self.path}::{self.member}"

    @property
    def name(self) -> str:
        """The name a record keeps: no folders."""
        return self.path.name if self.member is None else f"{self.path.name}::{self.member}"

    @cached_property
    def start(self) -> bytes:
        """First 4 KiB of the content, unpacked; empty where it cannot be read."""
        return self._first(START_BYTES)

    def head(self) -> bytes:
        """Return the first 64 KiB, for formats that show themselves late."""
        return self.start if len(self.start) < START_BYTES else self._first(HEAD_BYTES)

    @cached_property
    def encoding(self) -> str | None:
        """Encoding of its text; ``None`` for content that is no text."""
        return _encoding_of(self.start)

    @cached_property
    def first_lines(self) -> tuple[str, ...]:
        """The first lines that are not blank, without line ends; none for binary content."""
        return self._lines_of(self.start)

    def head_lines(self) -> tuple[str, ...]:
        """Return the lines of the first 64 KiB that are not blank."""
        return self._lines_of(self.head())

    @cached_property
    def fault(self) -> tuple[str, str] | None:
        """Why no importer need look at it, and what would mend it; ``None`` where one may."""
        try:
            with self.open() as stream:
                start = stream.read(START_BYTES)
        except _UNREADABLE as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            return f"cannot be read ({reason})", "check the path, or unpack it yourself"
        if start.startswith(_LFS):
            return "is a Git LFS pointer, not the file itself", "git lfs pull, then import again"
        if start.startswith(_ANNEX):
            return "is a git-annex pointer, not the file itself", "git annex get, then import again"
        if len(start) < START_BYTES and not start.strip(b"\0 \t\r\n" + _UTF_8_MARK):
            return "is empty", "check how it was written: nothing is in it"
        if start[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR:
            return "is a tar archive", "unpack it, and import the folder"
        return None

    @cached_property
    def hashes(self) -> Hashes:
        """Hashes of the content, unpacked; from then on what a writer adds is not read.

        Raises:
            InputFileError: If it cannot be read to its end.
        """
        try:
            with self.open() as stream:
                found = hashes_of(stream)
        except _UNREADABLE as error:
            raise _unreadable(self, error) from error
        self._most_bytes = found.size_bytes
        return found

    @property
    def sha256(self) -> str:
        """Hash of the content, unpacked: a compressed copy is the same content.

        Raises:
            InputFileError: If it cannot be read to its end.
        """
        return self.hashes.sha256

    def first_sha256(self, sizes: Iterable[int]) -> Mapping[int, str]:
        """Return the hashes of the first bytes of the content, of so many each.

        Args:
            sizes: Numbers of bytes; those beyond the end are left out.

        Raises:
            InputFileError: If it cannot be read.
        """
        try:
            with self.open() as stream:
                return prefix_sha256(stream, sizes)
        except _UNREADABLE as error:
            raise _unreadable(self, error) from error

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open the content, unpacked.

        Raises:
            OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError: If it cannot be opened.
        """
        with self.path.open("rb") as file:
            if self.member is None:
                yield self._hashed(self._plain(file))
                return
            with zipfile.ZipFile(file) as archive, archive.open(self.member) as inner:
                yield self._hashed(self._plain(inner))

    def text(self) -> str:
        """Return the whole text, for formats that people type: small ones.

        Raises:
            InputFileError: If it cannot be read, or is no UTF-8 or UTF-16.
        """
        try:
            with self.open() as stream:
                content = stream.read()
            encoding = self._text_encoding() if content.strip(b"\0 \t\r\n") else "utf-8-sig"
            text = content.decode(encoding).lstrip("\ufeff")
        except (UnicodeDecodeError, *_UNREADABLE) as error:
            raise _unreadable(self, error) from error
        self._say_padded(text.count("\0"))
        return text.replace("\0", "")

    def csv_lines(self) -> Iterator[str]:
        """Yield lines with their ends, for ``csv``, in formats whose cells may hold line breaks.

        Raises:
            InputFileError: If the source cannot be read, is cut off, or is no UTF-8 or UTF-16.
        """
        padded = 0
        try:
            with self.open() as raw:
                for line in io.TextIOWrapper(raw, encoding=self._text_encoding(), newline=""):
                    padded += line.count("\0")
                    yield line.replace("\0", "")
        except (UnicodeError, *_UNREADABLE) as error:
            raise _unreadable(self, error) from error
        self._say_padded(padded)
        if self.is_cut_off:
            raise InputFileError(
                "is cut off", where=self.shown, mend="copy the file again: a part is no whole"
            )

    def lines(self, *, keep_nul: bool = False) -> Iterator[tuple[int, str]]:
        """Yield each line with its number from 1, without its end.

        Args:
            keep_nul: Whether zero characters stay: in formats that part records by them.

        Raises:
            InputFileError: If it cannot be read, or is no text.
        """
        padded = bad = 0
        for number, raw in enumerate(self._raw_lines(), 1):
            line = raw
            if "\0" in line and not keep_nul:
                padded += line.count("\0")
                line = line.replace("\0", "")
            if "\ufffd" in line:
                bad += 1
            yield number, line
        self._say_padded(padded)
        self.say_bad(bad)

    def say_bad(self, lines: int) -> None:
        """Say how many lines hold bytes that are no letters of the encoding."""
        if lines:
            text = f"{counted(lines, 'line holds', 'lines hold')} bytes that are no letters of its encoding"
            self.note("CL240", "warning", text, mend="save the file as UTF-8")

    def blocks(self, size: int = _BLOCK) -> Iterator[tuple[int, bytes]]:
        r"""Yield UTF-8 text in blocks of whole lines, each with the number of its first line.

        Line ends are ``\n``; a mark and zero bytes are gone.

        Args:
            size: About how many bytes a block has.

        Raises:
            InputFileError: If it cannot be read, or is no text.
        """
        first = 1
        rest = b""
        for raw in self._decoded_blocks(size):
            text = rest + raw
            cut = text.rfind(b"\n") + 1
            if not cut and len(text) > LONGEST_LINE:
                raise _too_long(self, first)
            block, rest = text[:cut], text[cut:]
            if block:
                yield first, block
                first += block.count(b"\n")
        if rest:
            yield first, rest + b"\n"

    def note(
        self, code: str, severity: Severity, message: str, *, line: int | None = None, mend: str | None = None
    ) -> None:
        """Say what had to be repaired."""
        self.repairs.append(
            Finding(code=code, severity=severity, message=message, file=self.shown, line=line, mend=mend)
        )

    def _first(self, count: int) -> bytes:
        try:
            with self.open() as stream:
                return stream.read(count)
        except _UNREADABLE:
            return b""

    def _lines_of(self, content: bytes) -> tuple[str, ...]:
        if self.encoding is None:
            return ()
        text = content.decode(self.encoding, errors="replace").replace("\0", "").lstrip("\ufeff")
        return tuple(line for line in text.splitlines() if line.strip())

    def _raw_lines(self) -> Iterator[str]:
        encoding = self._text_encoding()
        number = 0
        try:
            with self.open() as raw:
                stream = io.TextIOWrapper(raw, encoding=encoding, errors="replace", newline=None)
                while line := stream.readline(LONGEST_LINE):
                    number += 1
                    if len(line) == LONGEST_LINE:
                        raise _too_long(self, number)
                    yield line.lstrip("\ufeff").rstrip("\n") if number == 1 else line.rstrip("\n")
        except _UNREADABLE as error:
            raise _unreadable(self, error) from error

    def _decoded_blocks(self, size: int) -> Iterator[bytes]:
        encoding = self._text_encoding()
        plain = encoding == "utf-8-sig"
        decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        padded = 0
        is_first, ended_in_cr = True, False
        try:
            with self.open() as raw:
                while block := raw.read(max(size, len(_UTF_8_MARK)) if is_first else size):
                    if not plain:
                        block = decoder.decode(block).encode()
                    if is_first:
                        block, is_first = block.removeprefix(_UTF_8_MARK), False
                    if b"\0" in block:
                        padded += block.count(b"\0")
                        block = block.replace(b"\0", b"")
                    if ended_in_cr and block.startswith(b"\n"):
                        block = block[1:]
                    ended_in_cr = block.endswith(b"\r")
                    if b"\r" in block:
                        block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
                    yield block
        except _UNREADABLE as error:
            raise _unreadable(self, error) from error
        self._say_padded(padded)

    def _text_encoding(self) -> str:
        if self.encoding is None:
            raise InputFileError("is no text", where=self.shown, mend="give the tool's own text or CSV file")
        return self.encoding

    def _say_padded(self, count: int) -> None:
        if count:
            told = counted(count, "zero byte was", "zero bytes were")
            text = f"{told} taken out: a crash or a full disk leaves them"
            self.note("CL240", "warning", text, mend="compare the last lines with what should be there")

    def _say_cut_off(self) -> None:
        self.is_cut_off = True
        text = "the compressed file is cut off: what is after the cut is missing"
        if not any(f.message == text for f in self.repairs):
            self.note("CL240", "warning", text, mend="copy the file again")

    def _hashed(self, stream: IO[bytes]) -> IO[bytes]:
        """Return the content as far as it was hashed: a log may grow meanwhile."""
        if self._most_bytes is None:
            return stream
        return io.BufferedReader(Bounded(stream, self._most_bytes), _BLOCK)

    def _plain(self, stream: IO[bytes]) -> IO[bytes]:
        """Return the content of a stream, which may be gzipped."""
        buffered = io.BufferedReader(stream, _BLOCK)  # type: ignore[type-var]  # an archive's member is readable
        if buffered.peek(2)[:2] != GZIP:
            return buffered
        return io.BufferedReader(Gunzip(buffered, self._say_cut_off), _BLOCK)


def sources_of(path: Path) -> list[Source]:
    """Return the sources a file holds: itself, or the members of a ZIP archive."""
    whole = Source(path)
    if not whole.start.startswith(_ZIP):
        return [whole]
    try:
        with zipfile.ZipFile(path) as archive:
            names = [i.filename for i in archive.infolist() if not i.is_dir() and not _is_hidden(i.filename)]
    except _UNREADABLE:
        return [whole]
    return [Source(path, name) for name in sorted(names)] or [whole]


def first_names(source: Source) -> tuple[str, ...]:
    """Return the column names of a source's first line, lower case, for claims of tables."""
    if not source.first_lines:
        return ()
    line = source.first_lines[0]
    return tuple(name.strip().strip('"').strip().lower() for name in line.split(delimiter_of(line)))


def delimiter_of(line: str) -> str:
    """Return what separates the cells of a header line: comma, semicolon, tab or bar."""
    return max(",;\t|", key=line.count)


def _is_hidden(member: str) -> bool:
    return any(part.startswith((".", "__MACOSX")) and part.strip(".") for part in member.split("/"))


def _encoding_of(start: bytes) -> str | None:
    """Return how text is encoded, by its mark or by where its zero bytes stand."""
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if start.startswith(_UTF_8_MARK):
        return "utf-8-sig"
    even, odd = start[:1024:2], start[1:1024:2]
    if len(odd) > 3:
        if odd.count(0) > 0.9 * len(odd) and even.count(0) < 0.1 * len(even):
            return "utf-16-le"
        if even.count(0) > 0.9 * len(even) and odd.count(0) < 0.1 * len(odd):
            return "utf-16-be"
    plain = start.replace(b"\0", b"")
    if not plain:
        return None
    try:
        codecs.getincrementaldecoder("utf-8")().decode(plain)  # a letter that the cut parts is no fault
    except UnicodeDecodeError:
        if sum(map(plain.count, _CONTROLS)) > _MOST_CONTROLS * len(plain):
            return None
    return "utf-8-sig"


def _unreadable(source: Source, error: BaseException) -> InputFileError:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return InputFileError(
        f"cannot be read ({reason})", where=source.shown, mend="check the file, or copy it again"
    )


def _too_long(source: Source, line: int) -> InputFileError:
    return InputFileError(
        f"has a line of more than {LONGEST_LINE // 1024**2} MiB",
        where=f"{source.shown}:{line}",
        mend="give a file that is written line by line",
    )
