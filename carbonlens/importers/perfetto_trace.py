"""Binary Perfetto traces: packets one after another, of which a few hold power rails.

The file is one field-1 record a packet. Packets are cut out here as a stream; what is in one
that holds rails, the package ``perfetto`` decodes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import IO, Any, Final

from carbonlens.errors import InputFileError
from carbonlens.importers.contract import Item, Tally
from carbonlens.importers.perfetto_rails import Rail, RailSamples
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source

_PACKET: Final = 0x0A
_TRUSTED_UID, _SEQUENCE_ID, _COMPRESSED = 3, 10, 50
_RAILS: Final = b"\xc2\x02"
_CLOCKS: Final = b"\x32"
_DEFLATED: Final = b"\x92\x03"
_LARGEST: Final = 256 * 1024**2
_BOOT, _REAL = 6, 1
_US_PER_MS: Final = 1e3
_US_PER_NS: Final = 1e-3
_LOOK_AT: Final = 64
_DAMAGED: Final = (OSError, EOFError, zlib.error)


def is_trace(source: Source) -> bool:
    """Whether the content begins with packets that a tracing service wrote."""
    if not source.start.startswith(b"\n") or source.encoding is not None:
        return False
    start = source.head()
    at = count = 0
    while at < len(start) and count < _LOOK_AT:
        if start[at] != _PACKET:
            return False
        length, body = _varint(start, at + 1)
        if length is None or body + length > len(start):
            break
        if not {_TRUSTED_UID, _SEQUENCE_ID, _COMPRESSED} & _fields(start[body : body + length]):
            return False
        at, count = body + length, count + 1
    return count > 0


def items(source: Source) -> Iterator[Item]:
    """Yield the rails of a trace.

    Raises:
        InputFileError: If ``perfetto`` is not installed, or the trace holds no rail.
    """
    decode = _decoder(source)
    cut = _Cut()
    rails: dict[tuple[int, int], Rail] = {}
    readings: list[tuple[int, int, int, int]] = []
    boot_us: float | None = None
    unread = 0
    for blob in _packets(source, cut):
        if _RAILS not in blob and not (boot_us is None and _CLOCKS in blob):
            continue
        try:
            packet = decode(blob)
        except ValueError:
            unread += 1
            continue
        sequence = packet.trusted_packet_sequence_id
        for told in packet.power_rails.rail_descriptor:
            name = _text(told.rail_name)
            rails[sequence, told.index] = Rail(name or f"rail {told.index}", name or None)
        for read in packet.power_rails.energy_data:
            readings.append((sequence, read.index, read.timestamp_ms, read.energy))
        if boot_us is None:
            boot_us = _boot_us(packet)
    if not readings:
        raise InputFileError(
            "holds no power rail: energy cannot be computed",
            where=source.shown,
            mend="trace with the data source android.power and collect_power_rails: true",
        )
    gathered = RailSamples(source, relative=boot_us is None)
    for sequence, index, ms, uws in readings:
        rail = rails.get((sequence, index)) or Rail(f"rail {index}")
        gathered.add(rail, (boot_us or 0.0) + ms * _US_PER_MS, float(uws))
    yield from gathered.items()
    if cut.is_off or unread:
        text = "the trace is cut off or damaged: packets of it are missing"
        yield finding("CL240", "warning", text, source, mend="copy the trace again")
    yield Tally(rows=gathered.count, rejected=0)


class _Cut:
    """Whether a stream of packets ended within one."""

    is_off = False


def _decoder(source: Source) -> Any:  # noqa: ANN401  # the package brings no types that are checked here
    try:
        from perfetto.protos.perfetto.trace import (  # type: ignore[import-untyped]  # it brings no types
            perfetto_trace_pb2,
        )
    except ImportError as error:
        raise InputFileError(
            "is a binary trace, and the package perfetto is not installed",
            where=source.shown,
            mend="pip install 'carbonlens[perfetto]', or export the rails by trace_processor as CSV",
        ) from error

    def decode(blob: bytes) -> Any:  # noqa: ANN401  # as above
        from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # nor does this

        try:
            return perfetto_trace_pb2.TracePacket.FromString(blob)
        except DecodeError as error:
            raise ValueError(str(error)) from error

    return decode


def _boot_us(packet: Any) -> float | None:  # noqa: ANN401  # as above
    """Return when the device booted in UTC microseconds, by two clocks that were read together."""
    clocks = {c.clock_id: c.timestamp for c in packet.clock_snapshot.clocks}
    if _BOOT not in clocks or _REAL not in clocks or clocks[_REAL] <= clocks[_BOOT]:
        return None
    boot_us = (clocks[_REAL] - clocks[_BOOT]) * _US_PER_NS
    return boot_us if 3.1e13 < boot_us < 7.3e15 else None


def _text(name: str | bytes) -> str:
    """Return a name; one whose bytes are no UTF-8 comes as bytes."""
    return name.decode(errors="replace") if isinstance(name, bytes) else name


def _packets(source: Source, cut: _Cut) -> Iterator[bytes]:
    """Yield each packet, those of deflated ones too."""
    try:
        with source.open() as stream:
            for blob in _records(stream, cut):
                yield from _inflated(blob, cut)
    except _DAMAGED:
        cut.is_off = True
    cut.is_off = cut.is_off or source.is_cut_off


def _records(stream: IO[bytes], cut: _Cut) -> Iterator[bytes]:
    while head := stream.read(1):
        length, size = 0, 0
        while head[0] == _PACKET and size < 5 and (byte := stream.read(1)):
            length |= (byte[0] & 0x7F) << (7 * size)
            size += 1
            if not byte[0] & 0x80:
                break
        else:
            cut.is_off = True
            return
        if length > _LARGEST:
            cut.is_off = True
            return
        blob = stream.read(length)
        if len(blob) < length:
            cut.is_off = True
            return
        yield blob


def _inflated(blob: bytes, cut: _Cut) -> Iterator[bytes]:
    """Yield a packet, or the packets that it holds deflated."""
    if not blob.startswith(_DEFLATED):
        yield blob
        return
    length, body = _varint(blob, len(_DEFLATED))
    if length is None or body + length > len(blob):
        cut.is_off = True
        return
    inflater = zlib.decompressobj()
    plain = inflater.decompress(blob[body : body + length], _LARGEST)
    at = 0
    while at < len(plain):
        size, start = _varint(plain, at + 1)
        if plain[at] != _PACKET or size is None or start + size > len(plain):
            cut.is_off = True
            return
        yield plain[start : start + size]
        at = start + size


def _varint(content: bytes, at: int) -> tuple[int | None, int]:
    """Return a number of seven bits a byte, and where what follows it stands."""
    value = 0
    for size in range(10):
        if at + size >= len(content):
            return None, at
        byte = content[at + size]
        value |= (byte & 0x7F) << (7 * size)
        if not byte & 0x80:
            return value, at + size + 1
    return None, at


def _fields(packet: bytes) -> set[int]:
    """Return the numbers of a packet's fields; none where it is no record of fields."""
    found: set[int] = set()
    at = 0
    while at < len(packet):
        tag, at = _varint(packet, at)
        if tag is None or tag >> 3 == 0:
            return set()
        found.add(tag >> 3)
        match tag & 7:
            case 0:
                value, at = _varint(packet, at)
                if value is None:
                    return set()
            case 1:
                at += 8
            case 2:
                size, at = _varint(packet, at)
                if size is None:
                    return set()
                at += size
            case 5:
                at += 4
            case _:
                return set()
    return found if at == len(packet) else set()
