"""Where things lie inside a ledger's folder.

Names that begin with a dot are temporary: no reader looks at them.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Final, Literal

import msgspec

from carbonlens.domain.decoding import json_decoder
from carbonlens.domain.run import Run
from carbonlens.domain.units import US_PER_S
from carbonlens.errors import RecordError
from carbonlens.ledger.regular_file import read_regular

RUNS: Final = "runs"
"""``<yyyymm>/<run_id>.json``: live runs, one file each."""

CORRECTIONS: Final = "corrections"
"""Folder beside the months of ``RUNS``: live runs that supersede others.

What they correct may lie in any month, so that every period query reads them all;
compaction folds each into the month of its own start.
"""

IMPORTS: Final = "imports"
"""``<source hash>-<importer>.parquet``: one batch an imported source."""

MONTHS: Final = "months"
"""``<yyyymm>/<content hash>.parquet`` with a manifest ``.json`` beside it: compacted live runs."""

RETIRED: Final = ".retired"
"""Ending of a mark beside a month's file whose records lie in a newer one: who opened it
before may read on; new readers pass it over, and compaction removes it after a while."""

SAMPLES: Final = "samples"
"""``<yyyymmdd>/*.parquet``: power samples by UTC day."""

REDACTIONS: Final = "redactions"
"""``<hash of the original>.json``: tombstones of content taken out."""

CLOSES: Final = "closes"
"""``<period>.json``: manifests of closed periods, each holding the hash of the last."""

RESTATEMENTS: Final = "restatements"
"""``<period>-<content hash>.json``: figures of a period, old and new."""

OUTCOMES: Final = "outcomes"
STUDIES: Final = "studies"

BatchKind = Literal["readings", "charges", "snapshots"]
"""Folders of other imported rows: meter readings, bill lines, inventory snapshots."""

UNDATED: Final = "undated"
"""Stands for the month of a run without a start."""

_ID_CHARACTERS: Final = 32

_FILE_NAME: Final = re.compile(r"[^./\x00-\x1f\x7f\ud800-\udfff][^/\x00-\x1f\x7f\ud800-\udfff]*")
_LONGEST_NAME: Final = 200
"""Bytes; file systems take 255, and a temporary name is longer."""


def month_of(start_us: int | None) -> str:
    """Return the UTC month ``yyyymm`` of an instant in microseconds."""
    if start_us is None:
        return UNDATED
    try:
        return datetime.fromtimestamp(start_us / US_PER_S, tz=UTC).strftime("%Y%m")
    except (ValueError, OverflowError, OSError):
        # A clock that was never set: the record is kept all the same.
        return UNDATED


def folder_of(run: Run) -> str:
    """Return the folder below ``RUNS`` that a live run is written to."""
    return month_of(run.start_us) if run.supersedes is None else CORRECTIONS


def refuse_no_name(run_id: str) -> None:
    """Refuse a live run's id that is no name of a file, or one that no reader looks at.

    Raises:
        RecordError: If it is empty, begins with a dot, holds a slash or a control character, or is too long.
    """
    if _FILE_NAME.fullmatch(run_id) is None or len(run_id.encode("utf-8", "surrogatepass")) > _LONGEST_NAME:
        raise RecordError(
            "the id is no name of a file, so that its record would be lost",
            where=repr(run_id[:_ID_CHARACTERS]),
            mend="give letters, digits and dashes, such as a UUID",
        )


def batch_name(source_sha256: str, importer: str) -> str:
    """Return the file name of a batch: its content's hash and what read it."""
    return f"{source_sha256[:_ID_CHARACTERS]}-{importer}.parquet"


def files_in(folder: Path, suffix: str) -> list[Path]:
    """Return a folder's own files of this suffix, sorted; none where there is no folder.

    Raises:
        OSError: If the folder cannot be read.
    """
    return sorted(f for f in _entries(folder) if f.suffix == suffix and not f.name.startswith("."))


def months_in(folder: Path) -> list[Path]:
    """Return the Parquet files of a month's folder that count, sorted: without retired ones.

    Raises:
        OSError: If the folder cannot be read.
    """
    # Marks first: a file is marked when its heir is there, so that the list made after has the heir.
    marks = {mark.stem: read_mark(mark) for mark in files_in(folder, RETIRED)}
    heirs = {stem: mark.heir for stem, mark in marks.items() if mark is not None}
    files = files_in(folder, ".parquet")
    there = {file.name for file in files}
    return [f for f in files if heirs.get(f.stem, f.name) not in there - {f.name}]


class Mark(msgspec.Struct, frozen=True):
    """What a mark says.

    Attributes:
        heir: Name of the file that holds the records now; the mark counts only where it is there.
        retired_s: When, seconds of the writer's clock since 1970.
    """

    heir: str
    retired_s: float


_MOST_BYTES: Final = 4096
"""Of a mark."""


@cache
def _marks() -> msgspec.json.Decoder[Mark]:
    """Return what decodes a mark; who only writes a record is spared making it."""
    return json_decoder(Mark)


def mark_of(file: Path) -> Path:
    """Return where the mark of a month's file lies."""
    return file.with_suffix(RETIRED)


def read_mark(mark: Path) -> Mark | None:
    """Return what a mark says; ``None`` where none is there, or it says nothing: the file counts then."""
    try:
        return _marks().decode(read_regular(mark, at_most=_MOST_BYTES))
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def folders_in(folder: Path) -> list[Path]:
    """Return a folder's own folders, sorted; none where there is no folder.

    Raises:
        OSError: If the folder cannot be read.
    """
    return sorted(f for f in _entries(folder) if not f.name.startswith(".") and f.is_dir())


def _entries(folder: Path) -> list[Path]:
    # Path.glob passes over folders it may not read; a ledger must say so.
    try:
        return list(folder.iterdir())
    except FileNotFoundError:
        return []
