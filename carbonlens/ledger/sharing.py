"""Runs that overlap on one host: each billed its part of shared devices before anything is summed.

Which runs overlap is told by a few columns (host, start, end) in one sweep; most
never do, and only the records of those that do, or that outlive their parent
(``outliving``), are read. The division itself is ``accounting.allocation``: a device's
own energy is the most that its runs add up to, and what lies in another run is not added
to it. A run without a host is never scaled.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.ledger.calendar import Period
from carbonlens.ledger.exclusions import records_where
from carbonlens.ledger.footers import Footer
from carbonlens.ledger.machines import join_machines
from carbonlens.ledger.outliving import Held, heirs_of, load_outliving
from carbonlens.ledger.parquet import quoted
from carbonlens.ledger.records import Stored

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from carbonlens.accounting.allocation_bills import BilledSlice, RunBill

_WIDENINGS: Final = 5
"""How often a period is widened by the runs that reach over its edges, and by those that overlap them."""


class Shared(msgspec.Struct, frozen=True, kw_only=True):
    """What overlapping runs are billed.

    Attributes:
        measured: Records whose energy is not what they are billed, as stored.
        billed: The same with the energy that each is billed. Of a run that lies in another in
            part only, what counts beside that, as a run of its own without a parent.
        beside: Further parts of such runs, each with the run that it lies in as its parent.
        findings: Which runs were scaled, and by how much.
    """

    measured: tuple[Stored, ...] = ()
    billed: tuple[Stored, ...] = ()
    beside: tuple[Stored, ...] = ()
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
        live_runs: Reads live runs of these ids, of whatever time.
        heirs: Ids of corrected records, each to a correction of it.
    """

    connection: DuckDBPyConnection
    some_left_out: bool
    footers: Sequence[Footer]
    loose: Sequence[Stored]
    orphans: Collection[str]
    period: Period | None
    more_live: Callable[[Period], Sequence[Stored]]
    live_runs: Callable[[Collection[str]], Sequence[Stored]]
    heirs: Mapping[str, Run]


def shared(whole: Whole) -> Shared:
    """Return what the runs that overlap are billed; nothing where none shares a device.

    A run at the edge of a period gets the same part from either side: the runs
    beyond that overlap it are looked at too.
    """
    reach = whole.period
    loose = list(whole.loose)
    heirs = heirs_of(whole.heirs)
    for _ in range(_WIDENINGS):
        files = [f for f in whole.footers if f.touches(reach) and (f.has_hosts or f.has_children)]
        if not files and not any(_is_timed(r) for r in loose):
            return Shared()
        _load_windows(whole, files, loose, heirs, reach)
        wider = _widened(whole.connection, reach)
        if wider is None or wider == reach:
            break
        reach = wider
        known = {r.key for r in loose}
        loose += [r for r in whole.more_live(reach) if r.key not in known]
    machines = join_machines(whole.connection, files, loose)
    found = f"{_OVERLAPPING} UNION SELECT study_key, run_id FROM outliving"  # noqa: S608  # our own names
    if not whole.connection.execute(f"{found} LIMIT 1").fetchone():
        return Shared()
    _load_windows(whole, files, loose, heirs, reach, named=True)
    join_machines(whole.connection, files, loose, machines)
    keys = whole.connection.execute(found).fetchall()
    ids = {name: run.run_id for name, run in heirs.items()}
    wanted: set[tuple[str | None, str]] = {(study or None, run_id) for study, run_id in keys}
    return _billed(_records(whole, files, loose, wanted, ids), machines, ids, whole.orphans)


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
    heirs: Mapping[str, Run],
    reach: Period | None,
    *,
    named: bool = False,
) -> None:
    """Put when root runs kept which host busy into the table ``windows``; with their names where asked.

    Without names a few whole numbers a run are read: that is all that most ledgers need. Runs
    that outlive their parent stand in it too, as they may share a device with others then.
    """
    connection = whole.connection
    span = None if reach is None else (_us(reach.first_hour), _us(reach.end_hour))
    held = Held(whole.footers, loose, heirs, whole.live_runs, whole.orphans)
    load_outliving(connection, held, files, span)
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE windows"
        " (study_key VARCHAR, run_id VARCHAR, host UBIGINT, start_us BIGINT, end_us BIGINT)"
    )
    connection.execute("INSERT INTO windows SELECT * FROM outliving WHERE host IS NOT NULL")
    rows = [
        (r.run.study or "", r.run.run_id, r.run.host_id, r.run.start_us, r.run.end_us)
        for r in loose
        if _is_root(r, whole.orphans)
        and (span is None or (r.run.start_us < span[1] and r.run.end_us > span[0]))  # type: ignore[operator]  # a root that may share has both times
    ]
    if rows:
        columns: list[Any] = [list(c) for c in zip(*rows, strict=True)]
        connection.execute(
            "INSERT INTO windows SELECT unnest(?), unnest(?), hash(unnest(?)), unnest(?), unnest(?)", columns
        )
    files = [f for f in files if f.has_hosts]
    if not files:
        return
    inside = "" if span is None else f"AND start_us < {span[1]} AND end_us > {span[0]}"
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


def _is_timed(record: Stored) -> bool:
    run = record.run
    return run.start_us is not None and run.end_us is not None and run.end_us > run.start_us


def _is_root(record: Stored, orphans: Collection[str]) -> bool:
    run = record.run
    if run.host_id is None or not _is_timed(record):
        return False
    return run.parent_run_id is None or run.parent_run_id in orphans


def _records(
    whole: Whole,
    files: Sequence[Footer],
    loose: Sequence[Stored],
    wanted: set[tuple[str | None, str]],
    heirs: Mapping[str, str],
) -> list[Stored]:
    """Return the records of these runs, of what ran inside them and of what they ran inside, each once."""
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
    while above := _parents(found.values(), heirs, whole.orphans):
        here = [r for r in loose if r.run.run_id in above]
        missing = above - {r.run.run_id for r in here}
        if missing:
            holding = [f for f in whole.footers if f.may_hold(min(missing), max(missing))]
            here += records_where(whole.connection, holding, "run_id", missing)
            here += whole.live_runs(missing - {r.run.run_id for r in here})
        found |= {r.key: r for r in here if r.key not in found}
        if above - {r.run.run_id for r in here}:
            break  # Damaged or gone meanwhile: what is not there holds nothing.
    return list(found.values())


def _parents(records: Iterable[Stored], heirs: Mapping[str, str], orphans: Collection[str]) -> set[str]:
    """Return the ids of the runs that records name as their parents, and that are not among them."""
    every = list(records)
    named = {r.run.parent_run_id for r in every if r.run.parent_run_id is not None} - set(orphans)
    return {heirs.get(i, i) for i in named} - {r.run.run_id for r in every}


def _billed(
    records: Sequence[Stored], machines: Mapping[str, str], heirs: Mapping[str, str], orphans: Collection[str]
) -> Shared:
    from carbonlens.accounting.allocation import allocate
    from carbonlens.accounting.allocation_error import billed_run
    from carbonlens.accounting.allocation_findings import CLOCK_SET_BACK

    runs = _told_apart(records)
    allocation = allocate(runs, heirs, machines)
    names = {run.run_id: record.run.run_id for record, run in zip(records, runs, strict=True)}
    measured: list[Stored] = []
    billed: list[Stored] = []
    beside: list[Stored] = []
    for record, run in zip(records, runs, strict=True):
        bill = allocation.bills[run.run_id]
        is_root = record.run.parent_run_id is None or record.run.parent_run_id in orphans
        parts: Sequence[Run] = ()
        if _is_split(bill, is_root=is_root):
            parts = _split(bill, names)
        elif bill.readings != run.energy:
            parts = [msgspec.structs.replace(record.run, energy=billed_run(run, allocation).energy)]
        if parts:
            # The text stays: a record's hash is that of what was stored.
            first, *others = (msgspec.structs.replace(record, run=part) for part in parts)
            measured.append(record)
            billed.append(first)
            beside += others
    return Shared(
        measured=tuple(measured),
        billed=tuple(billed),
        beside=tuple(beside),
        findings=tuple(f for f in allocation.findings if measured or f.code == CLOCK_SET_BACK),
    )


def _is_split(bill: RunBill, *, is_root: bool) -> bool:
    """Tell whether rows of the run as a whole would count where they do not, or would not where they do."""
    return bool(bill.slices) and any((not part.inside) != is_root for part in bill.slices)


def _split(bill: RunBill, names: Mapping[str, str]) -> list[Run]:
    """Return the parts of a run as runs, with the error of dividing; first what counts by itself.

    The first has what is counted of all that count, such as their length.
    """
    ordered = sorted(bill.slices, key=lambda part: bool(part.inside))
    first, *others = (_as_run(part, names) for part in ordered)
    own = [part.run for part in bill.slices if not part.inside]
    if len(own) > 1:
        lengths = [r.duration_s for r in own if r.duration_s is not None]
        first = msgspec.structs.replace(first, duration_s=sum(lengths))
    return [first, *others]


def _as_run(part: BilledSlice, names: Mapping[str, str]) -> Run:
    from carbonlens.accounting.allocation_error import billed_slice

    return msgspec.structs.replace(
        billed_slice(part),
        run_id=names[part.run.run_id],
        parent_run_id=names[part.inside[0]] if part.inside else None,
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
