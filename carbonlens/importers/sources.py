"""Sources: files as importers see them, unpacked and decoded, with hashes and line numbers.

A file is one source; a ZIP archive is one a member. Gzip is undone, by its first bytes and
never by a name. Text may be UTF-8 or UTF-16, with or without a byte order mark, with any line
ends; zero bytes that a crash left as padding are taken out, and said.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, Final

from carbonlens.domain.counting import counted
from carbonlens.domain.file_names import printable
from carbonlens.domain.finding import Finding, Severity
from carbonlens.errors import InputFileError
from carbonlens.importers.encodings import UTF_8_MARK, encoding_of
from carbonlens.importers.gunzip import GZIP, Gunzip
from carbonlens.importers.source_hashes import Bounded, Hashes, hashes_of, prefix_sha256
from carbonlens.importers.unpacking import (
    UNREADABLE,
    ZIP,
    archive_fault,
    fault_of,
    member_of,
    members_of,
    unreadable,
)

START_BYTES: Final = 4096
"""What is kept of every source, to be claimed by."""

HEAD_BYTES: Final = 65536
LONGEST_LINE: Final = 16 * 1024**2
LONGEST_TEXT: Final = 128 * 1024**2
"""Bytes, unpacked, up to which a content is read whole: twice that is held while it is decoded."""

_BLOCK: Final = 1 << 22
_CUT: Final = "the compressed file is cut off: what is after the cut is missing"
_TAIL: Final = "something follows the compressed content that is not compressed itself, and is not read"
_MEND_TAIL: Final = "unpack the file, and add to that what was appended"


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
        self.is_cut_off = self.has_tail = False
        """Whether a compressed content was found to end too early; or to be followed by what is none."""

    @property
    def shown(self) -> str:
        """The name for messages: the path as given, and the member; of any bytes, as text."""
        return self._with_member(printable(self.path))

    @property
    def name(self) -> str:
        """The name a record keeps: no folders; of any bytes, as text."""
        return self._with_member(printable(self.path.name))

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
        return encoding_of(self.start)

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
        except UNREADABLE as error:
            return unreadable(error, "check the path, or unpack it yourself")
        if start.startswith(ZIP):
            return self._archive_fault()
        return fault_of(start, is_all=len(start) < START_BYTES)

    @cached_property
    def hashes(self) -> Hashes:
        """Hashes of the content, unpacked; from then on what a writer adds is not read.

        Raises:
            InputFileError: If it cannot be read to its end.
        """
        try:
            with self.open() as stream:
                found = hashes_of(stream)
        except UNREADABLE as error:
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
        except UNREADABLE as error:
            raise _unreadable(self, error) from error

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open the content, unpacked.

        Raises:
            Exception: One of ``UNREADABLE``, if it cannot be opened.
        """
        with self.path.open("rb") as file:
            if self.member is None:
                yield self._hashed(self._plain(file))
                return
            with member_of(file, self.member) as inner:
                yield self._hashed(self._plain(inner))

    def text(self) -> str:
        """Return the whole text, for formats that people type: small ones.

        Raises:
            InputFileError: If it cannot be read, is no UTF-8 or UTF-16, or of more than ``LONGEST_TEXT``.
        """
        try:
            with self.open() as stream:
                content = stream.read(LONGEST_TEXT + 1)
            if len(content) > LONGEST_TEXT:
                raise _too_much(self)
            encoding = self._text_encoding() if content.strip(b"\0 \t\r\n") else "utf-8-sig"
            text = content.decode(encoding).lstrip("\ufeff")
        except UNREADABLE as error:
            raise _unreadable(self, error) from error
        self._say_padded(text.count("\0"))
        return text.replace("\0", "")

    def csv_lines(self) -> Iterator[str]:
        """Yield lines with their ends, for ``csv``, in formats whose cells may hold line breaks.

        Raises:
            InputFileError: If the source cannot be read, is cut off, or is no UTF-8 or UTF-16.
        """
        padded = number = 0
        try:
            with self.open() as raw:
                stream = io.TextIOWrapper(raw, encoding=self._text_encoding(), newline="")
                while line := stream.readline(LONGEST_LINE):
                    number += 1
                    if len(line) == LONGEST_LINE:
                        raise _too_long(self, number)
                    padded += line.count("\0")
                    yield line.replace("\0", "")
        except UNREADABLE as error:
            raise _unreadable(self, error) from error
        self._say_padded(padded)
        if self.has_tail:
            raise InputFileError(_TAIL, where=self.shown, mend=_MEND_TAIL)
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
            self._note_once(text, "save the file as UTF-8")

    def blocks(self, size: int = _BLOCK) -> Iterator[tuple[int, bytes]]:
        r"""Yield UTF-8 text in blocks of whole lines, each with the number of its first line.

        Line ends are ``\n``; a mark and zero bytes are gone.

        Args:
            size: About how many bytes a block has.

        Raises:
            InputFileError: If it cannot be read, or is no text.
        """
        import numpy as np

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
                first += int(np.count_nonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n")))
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
        except UNREADABLE:
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
        except UNREADABLE as error:
            raise _unreadable(self, error) from error

    def _decoded_blocks(self, size: int) -> Iterator[bytes]:
        encoding = self._text_encoding()
        plain = encoding == "utf-8-sig"
        decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        padded = 0
        is_first, ended_in_cr = True, False
        try:
            with self.open() as raw:
                while block := raw.read(max(size, len(UTF_8_MARK)) if is_first else size):
                    if not plain:
                        block = decoder.decode(block).encode()
                    if is_first:
                        block, is_first = block.removeprefix(UTF_8_MARK), False
                    if b"\0" in block:
                        padded += block.count(b"\0")
                        block = block.replace(b"\0", b"")
                    if ended_in_cr and block.startswith(b"\n"):
                        block = block[1:]
                    ended_in_cr = block.endswith(b"\r")
                    if b"\r" in block:
                        block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
                    yield block
        except UNREADABLE as error:
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
            self._note_once(text, "compare the last lines with what should be there")

    def _say_cut_off(self) -> None:
        self.is_cut_off = True
        self._note_once(_CUT, "copy the file again")

    def _say_tail(self) -> None:
        self.has_tail = True
        self._note_once(_TAIL, _MEND_TAIL)

    def _note_once(self, text: str, mend: str) -> None:
        if not any(f.message == text for f in self.repairs):
            self.note("CL240", "warning", text, mend=mend)

    def _with_member(self, name: str) -> str:
        return name if self.member is None else f"{name}::{printable(self.member)}"

    def _archive_fault(self) -> tuple[str, str] | None:
        """Return why an archive gave no sources; ``None`` where it does."""
        if self.member is not None:
            return "is a ZIP archive within another", "unpack it yourself, and import the folder"
        try:
            names = members_of(self.path)
        except UNREADABLE as error:
            return archive_fault(error)
        return None if names else ("is a ZIP archive that holds no files", "check how it was made")

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
        return io.BufferedReader(Gunzip(buffered, self._say_cut_off, self._say_tail), _BLOCK)


def sources_of(path: Path) -> list[Source]:
    """Return the sources a file holds: itself, or the members of a ZIP archive."""
    whole = Source(path)
    if not whole.start.startswith(ZIP):
        return [whole]
    try:
        names = members_of(path)
    except UNREADABLE:
        return [whole]
    return [Source(path, name) for name in names] or [whole]


def first_names(source: Source) -> tuple[str, ...]:
    """Return the column names of a source's first line, lower case, for claims of tables."""
    if not source.first_lines:
        return ()
    line = source.first_lines[0]
    return tuple(name.strip().strip('"').strip().lower() for name in line.split(delimiter_of(line)))


def delimiter_of(line: str) -> str:
    """Return what separates the cells of a header line: comma, semicolon, tab or bar."""
    return max(",;\t|", key=line.count)


def _unreadable(source: Source, error: BaseException) -> InputFileError:
    what, mend = unreadable(error, "check the file, or copy it again")
    return InputFileError(what, where=source.shown, mend=mend)


def _too_much(source: Source) -> InputFileError:
    return InputFileError(
        f"holds more than {LONGEST_TEXT // 1024**2} MiB of text, and its format can only be read whole",
        where=source.shown,
        mend="export it in parts that follow one another, of shorter times or fewer series, and import all",
    )


def _too_long(source: Source, line: int) -> InputFileError:
    return InputFileError(
        f"has a line of more than {LONGEST_LINE // 1024**2} MiB",
        where=f"{source.shown}:{line}",
        mend="give a file that is written line by line",
    )
