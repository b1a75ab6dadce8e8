"""The latest records, without reading the others: run ids sort by the time they were given."""

from __future__ import annotations

import heapq
import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.errors import MissingExtraError
from carbonlens.ledger import footers, holdings, layout, parquet, redaction
from carbonlens.ledger.parquet import quoted
from carbonlens.ledger.records import Stored, current, decode, read_files, unique, written_ms

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_NAME_LENGTH = len("00000000-0000-7000-8000-000000000000.json")
_VERSION_AT = 14

_SPARE = 2
"""Times as many records as asked for are read: some of them only correct others."""

_LARGE = 1000
"""So many runs are read whole in about half a second."""

_BYTES_A_RUN = 177
"""Of a compacted run; docs/scale.md has the measurement."""


class Latest(msgspec.Struct, frozen=True, kw_only=True):
    """The latest runs that count.

    Attributes:
        runs: The latest first.
        findings: Those of the records read.
        unread_files: Parquet files left unread because DuckDB is missing.
    """

    runs: tuple[Run, ...]
    findings: tuple[Finding, ...] = ()
    unread_files: int = 0


def latest(ledger: Path, n: int) -> Latest:
    """Return the last runs that were recorded.

    A correction is recorded later than what it corrects, so that it is among
    the latest if that is.

    Args:
        ledger: The ledger's folder.
        n: How many.

    Raises:
        OSError: If the folder cannot be read.
    """
    wanted = _SPARE * n
    live, findings = read_files(_newest_live(ledger, wanted))
    files, said = holdings.parquet_files(ledger)
    unread = 0
    folded: list[Stored] = []
    if files:
        try:
            folded, more = _folded(files, wanted)
            said += more
        except MissingExtraError:
            unread = len(files)
    stones, more = redaction.tombstones(ledger)
    kept, doubles = unique(redaction.applied([*folded, *live], stones))
    runs, chains = current([r.run for r in kept])
    newest = sorted(runs, key=written_ms, reverse=True)[:n]
    return Latest(
        runs=tuple(newest),
        findings=(*findings, *said, *more, *doubles, *chains),
        unread_files=unread,
    )


def is_large(ledger: Path) -> bool:
    """Tell whether reading all runs would keep a reader waiting; from names and sizes alone.

    Raises:
        OSError: If the folder cannot be read.
    """
    names = itertools.chain.from_iterable(map(os.scandir, layout.folders_in(ledger / layout.RUNS)))
    live = sum(1 for _ in itertools.islice(names, _LARGE))
    files, _ = holdings.parquet_files(ledger)
    return live + sum(f.stat().st_size for f in files) // _BYTES_A_RUN >= _LARGE


def _newest_live(ledger: Path, n: int) -> list[Path]:
    """Return the files of the largest ids; all live runs have ids that sort by time."""
    found: list[tuple[str, Path]] = []
    for folder in layout.folders_in(ledger / layout.RUNS):
        # Names alone: a month may hold very many.
        newest = heapq.nlargest(n, os.listdir(folder), key=_time_ordered)  # noqa: PTH208  # names alone are wanted, and a hundred thousand Path objects cost
        found += [(name, folder) for name in newest if name.endswith(".json") and not name.startswith(".")]
    chosen = heapq.nlargest(n, found, key=lambda f: _time_ordered(f[0]))
    return [folder / name for name, folder in chosen]


def _time_ordered(name: str) -> tuple[bool, str]:
    """Return a key that puts ids of version 7 last and in order of time, others before them."""
    is_uuid7 = len(name) == _NAME_LENGTH and name[_VERSION_AT] == "7"
    return is_uuid7 and not name.startswith("."), name


def _folded(files: list[Path], n: int) -> tuple[list[Stored], list[Finding]]:
    """Return the records of the latest starts, those of the largest ids, and those of old batches."""
    connection = parquet.connect()
    try:
        found, findings = footers.read(connection, files)
        old, said = holdings.read_files_of([f.file for f in found if f.version is None])
        current_files = [f.file for f in found if f.version is not None]
        records = [*_newest(connection, current_files, n), *old] if current_files else old
    finally:
        connection.close()
    return records, [*findings, *said]


def _newest(connection: DuckDBPyConnection, files: list[Path], n: int) -> list[Stored]:
    scan = f"read_parquet([{', '.join(quoted(f) for f in files)}], filename=true)"
    ids: set[str] = set()
    for order in ("start_us DESC NULLS LAST", "run_id DESC"):
        query = f"SELECT run_id FROM {scan} WHERE is_first AND counts ORDER BY {order}, run_id LIMIT {n}"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
        ids.update(run_id for (run_id,) in connection.execute(query).fetchall())
    listed = ", ".join(quoted(i) for i in sorted(ids))
    query = f"SELECT filename, record FROM {scan} WHERE is_first AND counts AND run_id IN ({listed})"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
    rows = connection.execute(query).fetchall() if ids else []
    return [Stored(run=decode(text.encode()), text=text.encode(), file=file) for file, text in rows]
