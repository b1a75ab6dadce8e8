"""The journal: what a run has seen so far, on disk, line by line.

One JSON object a line, ``{"crc":"89abcdef","at":...}``, the checksum being the
CRC-32 of the bytes after it. Whole lines go out by one ``os.write``, so that a
killed process leaves whole lines; ``fdatasync`` every few seconds is for the
machine that loses power. The header stands twice, because nothing can be
recovered without it.
"""

from __future__ import annotations

import errno
import itertools
import os
import resource
import threading
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.domain.artefact import Artefact
from carbonlens.domain.decoding import decode_json, json_decoder
from carbonlens.domain.execution import ProviderTime
from carbonlens.domain.finding import Finding
from carbonlens.domain.latency import Latency
from carbonlens.domain.run import DeviceConditions, Quality, Run
from carbonlens.domain.tokens import Tokens, units_of
from carbonlens.metering.host import process_start_ticks, this_host
from carbonlens.metering.phases import PhaseMark
from carbonlens.metering.sealing import Sample
from carbonlens.metering.sensors import SensorInfo
from carbonlens.metering.trace_target import TraceTarget

SUFFIX: Final = ".jsonl"
_PREFIX: Final = b'{"crc":"'
_MIDDLE: Final = b'","line":'
_HEADER_COPIES: Final = 2
_LOCK_WAIT_S: Final = 0.05

VERSION: Final = 1
"""Version of the journal; one of another version is left to the carbonlens that wrote it."""


class Writer(msgspec.Struct, frozen=True, kw_only=True):
    """The process that writes a journal; pid and start name it for the life of a boot."""

    pid: int
    start_ticks: int | None
    host_id: str
    machine: str
    pid_namespace: str


class Header(msgspec.Struct, frozen=True, kw_only=True, tag="header"):
    """First line: everything needed to seal the run without its process.

    Attributes:
        ledger: Folder the run is meant for.
        run: What is known from the start, with status ``running``.
        unmeasured: Accelerators present that no sensor reads.
        trace: File that the readings go to when the run is sealed, if any.
    """

    version: int = VERSION
    writer: Writer
    ledger: str
    run: Run
    sensors: tuple[SensorInfo, ...]
    unmeasured: tuple[str, ...] = ()
    trace: TraceTarget | None = None


class Facts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the user recorded of a run so far; each line of it replaces the last."""

    units: Decimal | None = None
    quality: tuple[Quality, ...] = ()
    latency: Latency | None = None
    model_bytes: int | None = None
    macs_per_unit: int | None = None
    tokens: Tokens | None = None
    artefacts: tuple[Artefact, ...] = ()
    execution: tuple[ProviderTime, ...] = ()
    findings: tuple[Finding, ...] = ()

    def onto(self, run: Run) -> Run:
        """Return the run with these facts, its own kept where nothing was recorded."""
        return msgspec.structs.replace(
            run,
            units=self._units(run),
            quality=self.quality or run.quality,
            latency=self.latency or run.latency,
            model_bytes=self.model_bytes or run.model_bytes,
            macs_per_unit=self.macs_per_unit or run.macs_per_unit,
            tokens=self.tokens or run.tokens,
            artefacts=self.artefacts or run.artefacts,
            execution=self.execution or run.execution,
            findings=(*run.findings, *self.findings),
        )

    def _units(self, run: Run) -> Decimal | None:
        """Return what the user counted, else what was there, else the tokens if they are the unit."""
        counted = run.units if self.units is None else self.units
        return units_of(self.tokens, run.unit) if counted is None else counted


class Look(msgspec.Struct, frozen=True, kw_only=True, tag="sample", omit_defaults=True):
    """One sample, and what the user recorded and entered, where that changed since the last line."""

    sample: Sample
    facts: Facts | None = None
    phases: PhaseMark | None = None
    devices: tuple[DeviceConditions, ...] = ()


class Journal(msgspec.Struct, frozen=True, kw_only=True):
    """A journal as far as it could be read.

    Attributes:
        header: ``None`` when both copies are damaged.
        damaged: Lines that failed their checksum, the torn last one included.
        marks: Phases as they were noted, one entry a sample.
        devices: How devices fared up to the last line that notes it: one a minute does.
    """

    header: Header | None
    samples: tuple[Sample, ...]
    facts: Facts
    damaged: int
    marks: tuple[PhaseMark | None, ...] = ()
    devices: tuple[DeviceConditions, ...] = ()


class JournalWriter:
    """Appends to one journal file; safe to use from several threads.

    Args:
        folder: Where this user's journals lie; those of other hosts may lie beside
            them, where the home directory is shared.
        header: First line.

    Raises:
        OSError: If the file cannot be made, or the process is short of files.
        TypeError, ValueError, OverflowError: If the header holds what JSON cannot;
            then there is no file.
    """

    def __init__(self, folder: Path, header: Header) -> None:
        """Make the file under a hidden name, and show it once the header is in."""
        content = encode_header(header)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = threading.Lock()
        self._identity: tuple[int, int] | None = None
        self.path = folder / f"{header.run.run_id}{SUFFIX}"
        hidden = folder / f".{header.run.run_id}{SUFFIX}"
        # Error texts and tags are the user's own: nobody else reads them.
        self._handle: int | None = os.open(
            hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600
        )
        try:
            self._identity = _identity(self._handle)
            _leave_enough(self._handle)
            _write_all(self._handle, content)
            hidden.rename(self.path)
        except BaseException:  # put in order, then raised again
            self.close()
            for made in (hidden, self.path):  # under the one name or the other, where a Ctrl-C came between
                made.unlink(missing_ok=True)
            raise

    def append(self, look: Look) -> None:
        """Write one sample; nothing happens once the journal is closed.

        Raises:
            OSError: If the disk is full or gone.
            TypeError, ValueError, OverflowError: If it holds what JSON cannot.
        """
        line = encode_line(look)
        with self._lock:
            if self._handle is not None:
                self._refuse_another_file()
                _write_all(self._handle, line)

    def _refuse_another_file(self) -> None:
        """See that the number is still our file's.

        A program that closes all files it does not know (daemons do) gives the number to
        another one, which is not ours to write to or to close.

        Raises:
            OSError: If it is not.
        """
        if self._handle is not None and _identity(self._handle) != self._identity:
            self._handle = None
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    def sync(self) -> None:
        """Have the kernel put what was written on the disk.

        Raises:
            OSError: If the disk is gone.
        """
        with self._lock:
            self._refuse_another_file()
            # Of its own, so that neither a writer nor a close waits for the disk.
            handle = None if self._handle is None else os.dup(self._handle)
        if handle is not None:
            try:
                os.fdatasync(handle)
            finally:
                os.close(handle)

    def close(self) -> None:
        """Close the file and leave it where it is.

        While another thread hangs in a write the file stays open: its number, given
        to somebody else, would be written to.
        """
        if not self._lock.acquire(timeout=_LOCK_WAIT_S):
            return
        try:
            handle, self._handle = self._handle, None
            if handle is not None and _identity(handle) == self._identity:
                os.close(handle)
        finally:
            self._lock.release()

    def abandon(self) -> None:
        """Close in a forked child, where the thread that held the lock does not exist."""
        self._lock = threading.Lock()
        self.close()

    def discard(self) -> None:
        """Close and remove the file, after its run was sealed."""
        self.close()
        self.path.unlink(missing_ok=True)


def this_writer() -> Writer:
    """Return this process as a journal's header names it."""
    host = this_host()
    pid = os.getpid()
    return Writer(
        pid=pid,
        start_ticks=process_start_ticks(pid),
        host_id=host.host_id,
        machine=host.machine,
        pid_namespace=host.pid_namespace,
    )


def _identity(handle: int) -> tuple[int, int] | None:
    """Return device and inode of an open file; ``None`` of a number that is not open."""
    try:
        found = os.fstat(handle)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _leave_enough(handle: int) -> None:
    """Raise OSError when half the files that this process may open are open: the rest are the work's.

    The system gives the lowest free number, so that the number tells how many are taken.
    """
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and handle >= most // 2:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def _write_all(handle: int, content: bytes) -> None:
    """Write everything: a disk that is nearly full takes a part first, and refuses the rest."""
    while (written := os.write(handle, content)) < len(content):
        content = content[written:]


def encode_line(record: Header | Look) -> bytes:
    """Return one line of the journal, newline included."""
    body = msgspec.json.encode(record)
    return b'{"crc":"%08x","line":%b}\n' % (zlib.crc32(body), body)


def encode_header(header: Header) -> bytes:
    """Return the header as it begins a journal: twice, each followed by an empty line.

    A damaged line break joins a line with its neighbour, which may be no copy.
    """
    return (encode_line(header) + b"\n") * _HEADER_COPIES


def decode_line(line: bytes) -> Header | Look | None:
    """Return a line's record; ``None`` when it is torn or damaged."""
    body = _sound_body(line)
    if body is None:
        return None
    try:
        record: Header | Look = _decoder().decode(body)
    except msgspec.MsgspecError:
        # The checksum holds, so this is a line of a newer version.
        return None
    return record


def _sound_body(line: bytes) -> bytes | None:
    """Return what a line holds; ``None`` when it is torn or damaged."""
    body_at = len(_PREFIX) + 8 + len(_MIDDLE)
    body = line[body_at:-1]
    framed = (
        line.startswith(_PREFIX) and line.endswith(b"}") and line[body_at - len(_MIDDLE) : body_at] == _MIDDLE
    )
    if not framed or line[len(_PREFIX) : len(_PREFIX) + 8] != b"%08x" % zlib.crc32(body):
        return None
    return body


def is_of_another_version(path: Path) -> bool:
    """Tell whether a journal whose header is not understood is of another version, by that alone.

    Raises:
        OSError: If the file cannot be read.
    """
    with path.open("rb") as stream:
        for line in itertools.islice(stream, 2 * _HEADER_COPIES):
            # A line that is framed as ours and fails its checksum is a damaged one.
            body = _sound_body(line.rstrip(b"\n")) if line.startswith(_PREFIX) else line
            with suppress(msgspec.MsgspecError, UnicodeDecodeError):
                found = decode_json(body or b"null", object)
                if isinstance(found, dict) and found.get("version", VERSION) != VERSION:
                    return True
    return False


def read(path: Path) -> Journal:
    """Read a journal as far as it is sound.

    Raises:
        OSError: If the file cannot be read at all.
    """
    return parse(path.read_bytes().split(b"\n"))


def read_header(path: Path) -> Header | None:
    """Return a journal's header without reading its samples; ``None`` when both copies are damaged.

    Raises:
        OSError: If the file cannot be read.
    """
    with path.open("rb") as stream:
        for line in itertools.islice(stream, 2 * _HEADER_COPIES):
            record = decode_line(line.rstrip(b"\n"))
            if isinstance(record, Header):
                return record
    return None


def looks_of(path: Path) -> Iterator[Look]:
    """Yield a journal's sound looks in the order they were written, one at a time.

    Raises:
        OSError: If the file cannot be read.
    """
    with path.open("rb") as stream:
        for line in stream:
            record = decode_line(line.rstrip(b"\n"))
            if isinstance(record, Look):
                yield record


def samples_of(path: Path) -> Iterator[Sample]:
    """Yield a journal's sound samples in the order they were written, one at a time.

    Raises:
        OSError: If the file cannot be read.
    """
    return (look.sample for look in looks_of(path))


def parse(lines: Iterable[bytes]) -> Journal:
    """Read a journal's lines; damaged ones are counted and left out."""
    header: Header | None = None
    looks: list[tuple[Sample, PhaseMark | None]] = []
    facts = Facts()
    devices: tuple[DeviceConditions, ...] = ()
    damaged = 0
    for line in lines:
        if not line:
            continue
        record = decode_line(line)
        if record is None:
            damaged += 1
        elif isinstance(record, Header):
            header = header or record
        else:
            looks.append((record.sample, record.phases))
            facts = record.facts or facts
            devices = record.devices or devices
    looks.sort(key=lambda look: look[0].t_us)
    samples, marks = (tuple(each) for each in zip(*looks, strict=True)) if looks else ((), ())
    return Journal(header=header, samples=samples, facts=facts, damaged=damaged, marks=marks, devices=devices)


@cache
def _decoder() -> msgspec.json.Decoder[Header | Look]:
    # Made on first use: it looks into every record type, which writers do without.
    return json_decoder(Header | Look)
