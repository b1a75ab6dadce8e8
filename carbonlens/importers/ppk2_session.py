"""A ``.ppk2`` session: a ZIP archive of samples, their rate, and a picture of the whole.

``session.raw`` holds 6 bytes a sample: microamperes as a 32-bit float and 16 bits of logic
pins, little-endian. ``metadata.json`` holds samples a second and when the session began.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

from carbonlens.errors import InputFileError
from carbonlens.importers.contract import Channel, Chunk, Group, Item, Tally
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source

_RAW: Final = "session.raw"
_FRAME: Final = 6
_AT_ONCE: Final = 1 << 18
"""Samples that are read together."""

_FORMAT: Final = 2
_FASTEST_HZ: Final = 1e6
_US: Final = 1e6
_US_PER_MS: Final = 1e3
_A_PER_UA: Final = 1e-6
_LATEST_MS: Final = 7_258_118_400_000.0


def groups(sources: Sequence[Source]) -> list[Group]:
    """Return the sessions among archives' members: the samples first, then what tells of them."""
    return [
        Group((raw, *(s for s in sources if s.path == told.path and s is not raw)))
        for told in sources
        if told.member is not None and _is_told(told)
        for raw in sources
        if raw.path == told.path and _folder(raw) == _folder(told) and _name(raw) == _RAW
    ]


def samples(group: Group, channel: Channel, volts: float) -> Iterator[Item]:
    """Yield the samples of a session.

    Args:
        group: As of ``groups``.
        channel: Where they belong.
        volts: Of the supply.

    Raises:
        InputFileError: If the session is of a format that is not known.
    """
    import numpy as np

    raw = group.main
    told = next(s for s in group.sources[1:] if _is_told(s))
    rate_hz, start_us = _meaning(told)
    frame = np.dtype([("ua", "<f4"), ("pins", "<u2")])
    rows = rest = 0
    for block in _blocks(raw):
        rest = len(block) % _FRAME
        found = np.frombuffer(block[: len(block) - rest], dtype=frame)
        t_us = np.arange(rows, rows + len(found), dtype=np.float64) * (_US / rate_hz)
        values = found["ua"].astype(np.float64) * (_A_PER_UA * volts)
        values[~np.isfinite(values)] = np.nan
        yield Chunk(
            channel=channel,
            t_us=t_us if start_us is None else t_us + start_us,
            values=values,
            line=rows + 1,
            relative=start_us is None,
        )
        rows += len(found)
    if rest:
        text = f"the last sample is cut off: {rest} of its {_FRAME} bytes are there"
        yield finding("CL240", "warning", text, raw, mend="save the session again")
    yield Tally(rows=rows)


def _blocks(raw: Source) -> Iterator[bytes]:
    try:
        with raw.open() as stream:
            while block := stream.read(_AT_ONCE * _FRAME):
                yield block
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        raise InputFileError(
            f"cannot be read ({error})", where=raw.shown, mend="copy the session again"
        ) from error


def _meaning(told: Source) -> tuple[float, float | None]:
    """Return samples a second, and when the session began in UTC microseconds."""
    content = _content(told)
    version = content.get("formatVersion")
    if version != _FORMAT:
        raise InputFileError(
            f"is a session of format {version}, and {_FORMAT} is what is known",
            where=told.shown,
            mend="export it as CSV from the Power Profiler",
        )
    metadata = content["metadata"]
    rate_hz, start_ms = metadata["samplesPerSecond"], metadata.get("startSystemTime")
    if not _is_number(rate_hz) or not 0 < rate_hz <= _FASTEST_HZ:
        raise InputFileError(
            f"states a rate of {rate_hz!r} Hz",
            where=told.shown,
            mend="export it as CSV from the Power Profiler",
        )
    has_start = _is_number(start_ms) and 0 < start_ms < _LATEST_MS
    return float(rate_hz), float(start_ms) * _US_PER_MS if has_start else None


def _is_told(source: Source) -> bool:
    metadata = _content(source).get("metadata")
    return isinstance(metadata, dict) and "samplesPerSecond" in metadata


def _content(source: Source) -> dict[str, Any]:
    if not source.start.lstrip().startswith(b"{") or b"samplesPerSecond" not in source.start:
        return {}
    try:
        found = json.loads(source.start)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _name(source: Source) -> str:
    return (source.member or "").rpartition("/")[2].lower()


def _folder(source: Source) -> str:
    return (source.member or "").rpartition("/")[0]
