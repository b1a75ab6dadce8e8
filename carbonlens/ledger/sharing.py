"""Runs that overlap on one host: each billed its part of shared devices before anything is summed.

Which runs overlap is told by a few columns (host, start, end) in one sweep; most
never do, and only the records of those that do are read. The division itself is
``accounting.allocation``: a device's own energy is the most that its runs add up
to. A run without a host is never scaled.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.ledger.calendar import Period
from carbonlens.ledger.exclusions import records_where
from carbonlens.ledger.footers import Footer
from carbonlens.ledger.parquet import quoted
from carbonlens.ledger.records import Stored

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_WIDENINGS: Final = 5
"""How often a period is widened by the runs that reach over its edges, and by those that overlap them."""


class Shared(msgspec.Struct, frozen=True, kw_only=True):
    """What overlapping runs are billed.

    Attributes:
        measured: Records whose energy is not what they are billed, as stored.
        billed: The same with the energy that each is billed.
        findings: Which runs were scaled, and by how much.
    """

    measured: tuple[Stored, ...] = ()
    billed: tuple[Stored, ...] = ()
    findings: tuple[Finding, ...] = ()


class Whole(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to divide.

    Attributes:
        connection: Has the table ``left_out`` of rows that do not count.
        some_left_out: Whether that holds any.
        footers: All files.
        loose: Records outside them that count.
        orphans: Parents that the ledger does not hold.
        period: Hours asked for; all when ``None``.
        more_live: Reads live runs of a wider period that count, those of ``loose`` among them or not.
    """

    connection: DuckDBPyConnection
    some_left_out: bool
    footers: Sequence[Footer]
    loose: Sequence[Stored]
    orphans: Collection[str]
    period: Period | None
    more_live: Callable[[Period], Sequence[Stored]]


def shared(whole: Whole) -> Shared:
    """Return what the runs that overlap are billed; nothing where none shares a device.

    A run at the edge of a period gets the same part from either side: the runs
    beyond that overlap it are looked at too.
    """
    reach = whole.period
    loose = list(whole.loose)
    for _ in range(_WIDENINGS):
        files = [f for f in whole.footers if f.touches(reach) and f.has_hosts]
        if not files and not any(_is_root(r, whole.orphans) for r in loose):
            return Shared()
        _load_windows(whole, files, loose, reach)
        wider = _widened(whole.connection, reach)
        if wider is None or wider == reach:
            break
        reach = wider
        known = {r.key for r in loose}
        loose += [r for r in whole.more_live(reach) if r.key not in known]
    if not whole.connection.execute(_OVERLAPPING).fetchone():
        return Shared()
    _load_windows(whole, files, loose, reach, named=True)
    keys = whole.connection.execute(_OVERLAPPING).fetchall()
    records = _records(whole, files, loose, {(study or None, run_id) for study, run_id in keys})
    return _billed(records)


_OVERLAPPING: Final = """
WITH swept AS (
  SELECT study_key, run_id, start_us, end_us,
         max(end_us) OVER (PARTITION BY host ORDER BY start_us, end_us
                           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS busy_until,
         lead(start_us) OVER (PARTITION BY host ORDER BY start_us, end_us) AS next_us
  FROM windows)
SELECT DISTINCT study_key, run_id FROM swept WHERE busy_until > start_us OR next_us < end_us
"""


def _load_windows(
    whole: Whole,
    files: Sequence[Footer],
    loose: Sequence[Stored],
    reach: Period | None,
    *,
    named: bool = False,
) -> None:
    """Put when root runs kept which host busy into the table ``windows``; with their names where asked.

    Without names a few whole numbers a run are read: that is all that most ledgers need.
    """
    connection = whole.connection
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE windows"
        " (study_key VARCHAR, run_id VARCHAR, host UBIGINT, start_us BIGINT, end_us BIGINT)"
    )
    low, high = (None, None) if reach is None else (_us(reach.first_hour), _us(reach.end_hour))
    rows = [
        (r.run.study or "", r.run.run_id, r.run.host_id, r.run.start_us, r.run.end_us)
        for r in loose
        if _is_root(r, whole.orphans) and (low is None or (r.run.start_us < high and r.run.end_us > low))  # type: ignore[operator]  # a root that may share has both times
    ]
    if rows:
        columns: list[Any] = [list(c) for c in zip(*rows, strict=True)]
        connection.execute(
            "INSERT INTO windows SELECT unnest(?), unnest(?), hash(unnest(?)), unnest(?), unnest(?)", columns
        )
    if not files:
        return
    inside = "" if reach is None else f"AND start_us < {high} AND end_us > {low}"
    orphans = ", ".join(quoted(o) for o in sorted(whole.orphans))
    root = f"(parent_run_id IS NULL OR parent_run_id IN ({orphans}))" if orphans else "parent_run_id IS NULL"
    scan = f"read_parquet([{', '.join(quoted(f.file) for f in files)}], filename='file')"
    root = f"is_first AND counts AND host_id IS NOT NULL AND end_us > start_us AND {root} {inside}"
    times = "hash(host_id), start_us, end_us"
    query = f"SELECT '', '', {times} FROM {scan} WHERE {root}"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
    if named or whole.some_left_out:
        keyed = f"SELECT *, coalesce(study, '') AS study_key FROM {scan} WHERE {root}"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
        keyed = f"({keyed}) ANTI JOIN left_out USING (file, study_key, run_id)"
        query = f"SELECT study_key, run_id, {times} FROM {keyed}"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
    connection.execute(f"INSERT INTO windows {query}")


def _widened(connection: DuckDBPyConnection, reach: Period | None) -> Period | None:
    """Return the period with the whole time of every run that has a part in it."""
    if reach is None:
        return None
    ((first, last),) = connection.execute("SELECT min(start_us), max(end_us) FROM windows").fetchall()
    if first is None:
        return reach
    return Period(
        min(reach.first_hour, first // US_PER_HOUR), max(reach.end_hour, -(-last // US_PER_HOUR)), reach.text
    )


def _us(hour: int) -> int:
    return hour * US_PER_HOUR


def _is_root(record: Stored, orphans: Collection[str]) -> bool:
    run = record.run
    if run.host_id is None or run.start_us is None or run.end_us is None or run.end_us <= run.start_us:
        return False
    return run.parent_run_id is None or run.parent_run_id in orphans


def _records(
    whole: Whole, files: Sequence[Footer], loose: Sequence[Stored], wanted: set[tuple[str | None, str]]
) -> list[Stored]:
    """Return the records of these runs and of what ran inside them, each once."""
    found: dict[tuple[str | None, str], Stored] = {}
    while wanted:
        ids = {run_id for _, run_id in wanted}
        here = [r for r in loose if r.key in wanted]
        here += [r for r in records_where(whole.connection, files, "run_id", ids) if r.key in wanted]
        for record in here:
            found.setdefault(record.key, record)
        nested = [r for r in loose if r.run.parent_run_id in ids]
        nested += records_where(whole.connection, [f for f in files if f.has_children], "parent_run_id", ids)
        wanted = {r.key for r in nested} - found.keys()
    return list(found.values())


def _billed(records: Sequence[Stored]) -> Shared:
    from carbonlens.accounting.allocation import allocate
    from carbonlens.accounting.allocation_error import billed_run

    runs = _told_apart(records)
    allocation = allocate(runs)
    pairs = [
        (record, msgspec.structs.replace(record.run, energy=billed_run(run, allocation).energy))
        for record, run in zip(records, runs, strict=True)
        if allocation.bills[run.run_id].readings != run.energy
    ]
    if not pairs:
        return Shared()
    return Shared(
        measured=tuple(record for record, _ in pairs),
        # The text stays: a record's hash is that of what was stored.
        billed=tuple(msgspec.structs.replace(record, run=run) for record, run in pairs),
        findings=allocation.findings,
    )


def _told_apart(records: Sequence[Stored]) -> list[Run]:
    """Return the runs under ids of their own: imported ids are unique within a study only."""
    met: set[str] = set()
    runs: list[Run] = []
    for record in records:
        run = record.run
        if run.run_id in met:
            run = msgspec.structs.replace(run, run_id=f"{run.run_id} of study {run.study}")
        met.add(run.run_id)
        runs.append(run)
    return runs
