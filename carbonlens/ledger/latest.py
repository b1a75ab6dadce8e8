"""The latest records, without reading the others: run ids sort by the time they were given."""

from __future__ import annotations

import heapq
import itertools
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from carbonlens.domain.decoding import json_decoder
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.errors import MissingExtraError
from carbonlens.ledger import footers, holdings, layout, parquet, redaction
from carbonlens.ledger.footers import Footer
from carbonlens.ledger.live import files_named
from carbonlens.ledger.parquet import quoted
from carbonlens.ledger.records import (
    MOST_BYTES,
    Family,
    Stored,
    current,
    decode,
    families,
    fitting,
    read_files,
    superseded_ids,
    unique,
    written_ms,
)
from carbonlens.ledger.regular_file import read_regular

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

    A correction has the place of what it corrects, also where a clock that was set
    back made it seem older.

    Args:
        ledger: The ledger's folder.
        n: How many.

    Raises:
        OSError: If the folder cannot be read.
    """
    wanted = _SPARE * n
    while True:
        found, is_all = _latest_of(ledger, n, wanted)
        if is_all or len(found.runs) >= n:
            return found
        wanted *= _SPARE


def _latest_of(ledger: Path, n: int, wanted: int) -> tuple[Latest, bool]:
    """Return the latest of so many newest records of each kind, and whether those were all there are."""
    newest_files, unlisted, is_all = _newest_live(ledger, wanted)
    live, findings = read_files(newest_files)
    of_these = corrections_of(ledger)
    files, said = holdings.parquet_files(ledger)
    unread = 0
    folded: list[Stored] = []
    if files:
        try:
            folded, more = _folded(files, wanted, [r.run.run_id for r in live])
            said += more
            is_all = is_all and len(folded) < wanted
        except MissingExtraError:
            unread = len(files)
    seen = {r.file for r in live}
    later, unread_later = of_these([*folded, *live])
    live += [r for r in later if r.file not in seen]
    findings += unread_later
    older_folded, older_live, unread_older = _corrected(ledger, [] if unread else files, [*folded, *live])
    stones, more = redaction.tombstones(ledger)
    kept, doubles = unique(redaction.applied([*folded, *older_folded, *live, *older_live], stones))
    # Of live runs it was said already; those in Parquet were decoded only.
    fits = [fitting(r) for r in kept]
    kept = [r for r, _ in fits if r is not None]
    findings += [f for _, f in fits if f is not None]
    runs, chains = current([r.run for r in kept])
    places = {id(r): _place(family) for family in families([r.run for r in kept]) for r in family.runs}
    newest = sorted(runs, key=lambda r: places.get(id(r)) or written_ms(r), reverse=True)[:n]
    found = Latest(
        runs=tuple(newest),
        findings=(
            *unlisted,
            *holdings.unsettled(dict.fromkeys([*findings, *unread_older, *said]), [r.run for r in kept]),
            *more,
            *doubles,
            *chains,
        ),
        unread_files=unread,
    )
    return found, is_all


def _place(family: Family) -> tuple[int, str]:
    """Return when the run itself was recorded, whenever it was corrected."""
    first = [r for r in family.runs if r.supersedes is None]
    return max(map(written_ms, first)) if first else min(map(written_ms, family.runs))


def _corrected(
    ledger: Path, files: list[Path], records: Sequence[Stored]
) -> tuple[list[Stored], list[Stored], list[Finding]]:
    """Return what records correct, directly or over others, and what cannot be read: files, then live runs.

    Their own time is the place of the correction.
    """
    folded: list[Stored] = []
    live: list[Stored] = []
    findings: list[Finding] = []
    met = {r.run.run_id for r in records}
    wanted = {name for r in records for name in superseded_ids(r.run)} - met
    while wanted:
        met |= wanted
        found, said = read_files(files_named(ledger, wanted))
        older = _folded_of(files, wanted) if files else []
        live, folded, findings = [*live, *found], [*folded, *older], [*findings, *said]
        wanted = {name for r in (*found, *older) for name in superseded_ids(r.run)} - met
    return folded, live, findings


def _folded_of(files: list[Path], ids: Collection[str]) -> list[Stored]:
    connection = parquet.connect()
    try:
        found, _ = footers.read(connection, files)
        holding = [f for f in found if f.version is not None and f.may_hold(min(ids), max(ids))]
        return _records_of(connection, [f.file for f in holding], ids) if holding else []
    finally:
        connection.close()


class _Correction(msgspec.Struct, frozen=True):
    """What of a record tells what it corrects; whatever else it holds is passed over."""

    supersedes: str | None = None
    supersedes_also: tuple[str, ...] = ()


@cache
def _correction() -> msgspec.json.Decoder[_Correction]:
    return json_decoder(_Correction)


def corrections_of(ledger: Path) -> Callable[[Sequence[Stored]], tuple[list[Stored], list[Finding]]]:
    """Return who tells which live corrections belong to records, directly or over others.

    Their folder is listed now: compaction moves them into months meanwhile.
    """
    files, findings = holdings.each_folder([ledger / layout.RUNS / layout.CORRECTIONS], ".json")

    def of(records: Sequence[Stored]) -> tuple[list[Stored], list[Finding]]:
        by_target: dict[str, list[Path]] = {}
        for file in files:
            for name in _corrected_by(file):
                by_target.setdefault(name, []).append(file)
        wanted: dict[Path, None] = {}
        asked = [r.run.run_id for r in records]
        while asked:
            met = [f for name in asked for f in by_target.get(name, ()) if f not in wanted]
            wanted |= dict.fromkeys(met)
            asked = [f.stem for f in met]
        found, said = read_files(wanted)
        return found, [*findings, *said]

    return of


def _corrected_by(file: Path) -> tuple[str, ...]:
    """Return what a live correction says it corrects; who reads it whole says what is wrong with it."""
    try:
        told = _correction().decode(read_regular(file, at_most=MOST_BYTES))
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ()
    return () if told.supersedes is None else (told.supersedes, *told.supersedes_also)


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


def _newest_live(ledger: Path, n: int) -> tuple[list[Path], list[Finding], bool]:
    """Return the files of the largest ids, corrections beside the others, and whether those are all.

    All live runs have ids that sort by time.
    """
    found: list[tuple[str, Path]] = []
    corrections: list[tuple[str, Path]] = []
    findings: list[Finding] = []
    for folder in layout.folders_in(ledger / layout.RUNS):
        try:
            names = os.listdir(folder)  # noqa: PTH208  # names alone are wanted, and a hundred thousand Path objects cost
        except OSError as error:
            findings.append(holdings.unread_folder(folder, error))
            continue
        # Names alone: a month may hold very many.
        newest = heapq.nlargest(n, names, key=_time_ordered)
        here = [(name, folder) for name in newest if name.endswith(".json") and not name.startswith(".")]
        (corrections if folder.name == layout.CORRECTIONS else found).extend(here)
    chosen = [f for some in (found, corrections) for f in heapq.nlargest(n, some, key=_id_ordered)]
    return [folder / name for name, folder in chosen], findings, max(len(found), len(corrections)) < n


def _id_ordered(file: tuple[str, Path]) -> tuple[bool, str]:
    return _time_ordered(file[0])


def _time_ordered(name: str) -> tuple[bool, str]:
    """Return a key that puts ids of version 7 last and in order of time, others before them."""
    is_uuid7 = len(name) == _NAME_LENGTH and name[_VERSION_AT] == "7"
    return is_uuid7 and not name.startswith("."), name


def _folded(files: list[Path], n: int, live: Sequence[str]) -> tuple[list[Stored], list[Finding]]:
    """Return the records of the latest starts, those of the largest ids, and those of old batches.

    Also returned are the corrections of all of these and of the live runs.
    """
    connection = parquet.connect()
    try:
        found, findings = footers.read(connection, files)
        old, said = holdings.read_files_of([f.file for f in found if f.version is None])
        current_files = [f for f in found if f.version is not None]
        records = [*_newest(connection, current_files, n), *old] if current_files else old
        ids = {*live, *(r.run.run_id for r in records)}
        correcting = [f for f in current_files if f.corrects]
        while ids and correcting:
            met = {r.key for r in records}
            newer = _that_correct(connection, correcting, ids)
            records += [r for r in newer if r.key not in met]
            ids = {r.run.run_id for r in newer if r.key not in met}
    finally:
        connection.close()
    return records, [*findings, *said]


def _newest(connection: DuckDBPyConnection, files: Sequence[Footer], n: int) -> list[Stored]:
    ids: set[str] = set()
    reading: dict[Path, None] = {}
    for order in (_BY_START, _BY_ID, _CORRECTIONS):
        newest = order.sorted([f for f in files if f.corrects or not order.of_corrections])
        if not newest:
            continue
        found = _last(connection, newest[:1], order, n)
        if len(found) < n:
            chosen = newest
        else:
            # The others are read where their footers do not rule out a run as late as these.
            chosen = [*newest[:1], *(f for f in newest[1:] if order.may_reach(f, found[-1][1]))]
        found = found if len(chosen) == 1 else _last(connection, chosen, order, n)
        ids.update(run_id for run_id, _ in found)
        reading.update(dict.fromkeys(f.file for f in chosen))
    return _records_of(connection, list(reading), ids) if ids else []


def _records_of(connection: DuckDBPyConnection, files: Sequence[Path], ids: Collection[str]) -> list[Stored]:
    scan = f"read_parquet([{', '.join(quoted(f) for f in files)}], filename=true)"
    query = f"SELECT filename, record FROM {scan} WHERE is_first AND counts AND run_id IN (SELECT unnest(?))"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
    rows = connection.execute(query, [sorted(ids)]).fetchall()
    return [Stored(run=decode(text.encode()), text=text.encode(), file=file) for file, text in rows]


def _that_correct(
    connection: DuckDBPyConnection, files: Sequence[Footer], ids: Collection[str]
) -> list[Stored]:
    scan = f"read_parquet([{', '.join(quoted(f.file) for f in files)}], filename=true)"
    query = (
        f"SELECT filename, record FROM {scan} WHERE is_first AND counts AND supersedes IN (SELECT unnest(?))"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
    )
    rows = connection.execute(query, [sorted(ids)]).fetchall()
    return [Stored(run=decode(text.encode()), text=text.encode(), file=file) for file, text in rows]


def _last(
    connection: DuckDBPyConnection, files: Sequence[Footer], order: _Order, n: int
) -> list[tuple[str, Any]]:
    """Return id and order of the last runs of these files, the last first; unknown ones at the end."""
    scan = f"read_parquet([{', '.join(quoted(f.file) for f in files)}])"
    column = order.column
    which = f"is_first AND counts AND supersedes IS {'NOT ' if order.of_corrections else ''}NULL"
    which += f" ORDER BY {column} DESC NULLS LAST, run_id LIMIT {n}"
    query = f"SELECT run_id, {column} FROM {scan} WHERE {which}"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
    rows: list[tuple[str, Any]] = connection.execute(query).fetchall()
    return rows


class _Order(msgspec.Struct, frozen=True):
    """What the last runs are told by, and how far a file's footer says that it goes."""

    column: str
    end: Callable[[Footer], Any]
    of_corrections: bool = False

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
_CORRECTIONS: Final = _Order("run_id", _last_id, of_corrections=True)
