"""Content as a file of its own, for libraries that open paths: unpacked where the source is packed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from carbonlens.errors import InputFileError
from carbonlens.importers.sources import Source
from carbonlens.importers.unpacking import UNREADABLE, reason_of

LARGEST_COPY: Final = 2 * 1024**3
"""Bytes, unpacked, of the largest copy: it takes that room on the disk of temporary files."""

_BLOCK: Final = 1 << 20


@contextmanager
def plain_file(source: Source) -> Iterator[Path]:
    """Yield a path whose content is the source's: its own, or a copy that is gone afterwards.

    Raises:
        InputFileError: If it cannot be unpacked, or its copy would be too large.
    """
    with tempfile.TemporaryDirectory(prefix="carbonlens-") as folder:
        yield source.path if _is_plain(source) else _copy(source, Path(folder) / "content")


def _is_plain(source: Source) -> bool:
    if source.member is not None:
        return False
    with source.path.open("rb") as file:
        return file.read(len(source.start)) == source.start


def _copy(source: Source, place: Path) -> Path:
    try:
        with source.open() as packed, place.open("wb") as file:
            room = min(LARGEST_COPY, shutil.disk_usage(place.parent).free // 2)
            while block := packed.read(_BLOCK):
                room -= len(block)
                if room < 0:
                    raise _too_large(source)
                file.write(block)
    except UNREADABLE as error:
        raise InputFileError(
            f"cannot be unpacked ({reason_of(error)})",
            where=source.shown,
            mend="unpack it yourself, or copy it again",
        ) from error
    return place


def _too_large(source: Source) -> InputFileError:
    most = f"{LARGEST_COPY // 1024**2} MiB"
    return InputFileError(
        f"unpacks to more than {most}, or than half of the room for temporary files",
        where=source.shown,
        mend="unpack it yourself, and import what comes out",
    )
