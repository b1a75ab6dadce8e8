"""The latest records, without reading the others: run ids sort by the time they were given."""

from __future__ import annotations

import heapq
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.errors import MissingExtraError
from carbonlens.ledger import footers, holdings, layout, parquet, redaction
from carbonlens.ledger.footers import Footer
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
    newest_files, unlisted = _newest_live(ledger, wanted)
    live, findings = read_files(newest_files)
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
        findings=(*unlisted, *findings, *said, *more, *doubles, *chains),
        unread_files=unread,
    )


def is_large(ledger: Path) -> bool:
    """Tell whether reading all runs would keep a reader waiting; from names and sizes alone.

    Raises:
        OSError: If the folder cannot be read.
    """
    names = itertools.chain.from_iterable(map(_entries, layout.folders_in(ledger / layout.RUNS)))
    live = sum(1 for _ in itertools.islice(names, _LARGE))
    files, _ = holdings.parquet_files(ledger)
    return live + sum(f.stat().st_size for f in files) // _BYTES_A_RUN >= _LARGE


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Yield what lies in a folder; nothing where it may not be read, which who reads it says."""
    with suppress(OSError), os.scandir(folder) as found:
        yield from found


def _newest_live(ledger: Path, n: int) -> tuple[list[Path], list[Finding]]:
    """Return the files of the largest ids; all live runs have ids that sort by time."""
    found: list[tuple[str, Path]] = []
    findings: list[Finding] = []
    for folder in layout.folders_in(ledger / layout.RUNS):
        try:
            names = os.listdir(folder)  # noqa: PTH208  # names alone are wanted, and a hundred thousand Path objects cost
        except OSError as error:
            findings.append(holdings.unread_folder(folder, error))
            continue
        # Names alone: a month may hold very many.
        newest = heapq.nlargest(n, names, key=_time_ordered)
        found += [(name, folder) for name in newest if name.endswith(".json") and not name.startswith(".")]
    chosen = heapq.nlargest(n, found, key=lambda f: _time_ordered(f[0]))
    return [folder / name for name, folder in chosen], findings


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
        current_files = [f for f in found if f.version is not None]
        records = [*_newest(connection, current_files, n), *old] if current_files else old
    finally:
        connection.close()
    return records, [*findings, *said]


def _newest(connection: DuckDBPyConnection, files: Sequence[Footer], n: int) -> list[Stored]:
    ids: set[str] = set()
    reading: dict[Path, None] = {}
    for order in (_BY_START, _BY_ID):
        newest = order.sorted(files)
        found = _last(connection, newest[:1], order.column, n)
        if len(found) < n:
            chosen = newest
        else:
            # The others are read where their footers do not rule out a run as late as these.
            chosen = [*newest[:1], *(f for f in newest[1:] if order.may_reach(f, found[-1][1]))]
        found = found if len(chosen) == 1 else _last(connection, chosen, order.column, n)
        ids.update(run_id for run_id, _ in found)
        reading.update(dict.fromkeys(f.file for f in chosen))
    if not ids:
        return []
    scan = f"read_parquet([{', '.join(quoted(f) for f in reading)}], filename=true)"
    listed = ", ".join(quoted(i) for i in sorted(ids))
    query = f"SELECT filename, record FROM {scan} WHERE is_first AND counts AND run_id IN ({listed})"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
    rows = connection.execute(query).fetchall()
    return [Stored(run=decode(text.encode()), text=text.encode(), file=file) for file, text in rows]


def _last(
    connection: DuckDBPyConnection, files: Sequence[Footer], column: str, n: int
) -> list[tuple[str, Any]]:
    """Return id and order of the last runs of these files, the last first; unknown ones at the end."""
    scan = f"read_parquet([{', '.join(quoted(f.file) for f in files)}])"
    order = f"{column} DESC NULLS LAST, run_id"
    query = f"SELECT run_id, {column} FROM {scan} WHERE is_first AND counts ORDER BY {order} LIMIT {n}"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
    rows: list[tuple[str, Any]] = connection.execute(query).fetchall()
    return rows


class _Order(msgspec.Struct, frozen=True):
    """What the last runs are told by, and how far a file's footer says that it goes."""

    column: str
    end: Callable[[Footer], Any]

    def sorted(self, files: Sequence[Footer]) -> list[Footer]:
        """Return the files, the one that reaches farthest first."""
        told = [f for f in files if self.end(f) is not None]
        return [*sorted(told, key=self.end, reverse=True), *(f for f in files if self.end(f) is None)]

    def may_reach(self, file: Footer, value: Any) -> bool:  # noqa: ANN401 - a time or an id
        """Tell whether a run in the file may come as late as this; unknown values come last."""
        end = self.end(file)
        return end is None or value is None or end >= value


def _end_us(file: Footer) -> int | None:
    return None if file.hours is None else (file.hours[1] + 1) * US_PER_HOUR


def _last_id(file: Footer) -> str | None:
    return None if file.ids is None else file.ids[1]


_BY_START: Final = _Order("start_us", _end_us)
_BY_ID: Final = _Order("run_id", _last_id)
