"""Exclusions: which rows of Parquet files do not count, found from a few columns.

A run met twice counts once, a corrected one not at all, and one whose redaction
was not carried out yet counts as redacted. The rules are those of ``records``;
here they are applied without reading what cannot be concerned.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from carbonlens.domain.finding import Finding
from carbonlens.domain.limits import LEAST_UNITS, has_too_few_units
from carbonlens.domain.run import Run
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.ledger import redaction
from carbonlens.ledger.footers import AMOUNTS, Footer
from carbonlens.ledger.parquet import quoted
from carbonlens.ledger.records import Stored, current, decode, fitting, heirs, superseded_ids, unique
from carbonlens.ledger.schema import VERSION

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

COLUMNS: Final = {"file": "VARCHAR", "study_key": "VARCHAR", "run_id": "VARCHAR"}
"""Column to DuckDB type of the table of rows left out."""


class Excluded(NamedTuple):
    """A run in a file that does not count; fields as in ``COLUMNS``."""

    file: str
    study_key: str
    run_id: str


def excluded(record: Stored) -> Excluded:
    """Return the row that stands for a record; a run without a study has an empty key."""
    return Excluded(record.file, record.run.study or "", record.run.run_id)


def unredacted(
    connection: DuckDBPyConnection, footers: Sequence[Footer], stones: Mapping[str, redaction.Tombstone]
) -> list[Stored]:
    """Return the records in Parquet files whose redaction was not carried out there."""
    if not stones:
        return []
    return _records(connection, footers, f"record_sha256 IN ({_listed(stones)})")


def outdated(connection: DuckDBPyConnection, footers: Sequence[Footer]) -> list[Stored]:
    """Return the records of unknown energy in files of a version that had it in one hour only.

    Files of any time are asked: their footers do not tell how far such a run reaches.
    """
    old = [f for f in footers if f.version is not None and f.version < VERSION]
    later = f"end_us > (start_us // {US_PER_HOUR} + 1) * {US_PER_HOUR}"
    return _records(connection, old, f"counts AND run_state <> 'known' AND {later}")


def negative(
    connection: DuckDBPyConnection, footers: Sequence[Footer], gone: Collection[Excluded]
) -> list[Finding]:
    """Return what must be said of records in files with amounts below 0, unless they count no more.

    Args:
        connection: An open DuckDB.
        footers: Files whose rows are asked for.
        gone: Rows that are left out.
    """
    files = [f for f in footers if f.has_negative]
    if not files:
        return []
    below = " OR ".join(f"{name} < 0" for name in AMOUNTS)
    named = f"run_id IN (SELECT run_id FROM {_scan(files)} WHERE {below})"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
    found = [r for r in _records(connection, files, f"counts AND {named}") if excluded(r) not in gone]
    return [said for _, said in map(fitting, found) if said is not None]


def of_few_units(
    connection: DuckDBPyConnection, footers: Sequence[Footer]
) -> tuple[list[Stored], list[Finding]]:
    """Return the records in files that state fewer units than their column holds, and what is said of them.

    They are read anew: a month of this version has no units of them and says so nowhere, one of an older
    version has units that were rounded to the last place of their column.

    Args:
        connection: An open DuckDB.
        footers: Files whose rows are asked for.
    """
    rounded = f"unit IS NOT NULL AND (units IS NULL OR units < 2 * {LEAST_UNITS:f})"
    # Few records have no units: only if some have none is the text of records looked at.
    found = _holding_any(connection, footers, f"is_first AND counts AND {rounded}")
    stated = """regexp_matches(record, '"units"\\s*:\\s*"?[0-9]')"""
    records = _records(connection, found, f"counts AND {rounded} AND {stated}")
    fits = [fitting(r) for r in records if has_too_few_units(r.run)]
    return [r for r, _ in fits if r is not None], [said for _, said in fits if said is not None]


def superseded(
    connection: DuckDBPyConnection,
    footers: Sequence[Footer],
    loose: Sequence[Stored],
    elsewhere: Callable[[Collection[str]], Sequence[Stored]],
) -> tuple[list[Stored], dict[str, Run], list[Finding]]:
    """Return the records that a later one corrects, wherever either lies.

    Also returned are the ids that corrections name, each to the record that counts in its place.

    Args:
        connection: An open DuckDB.
        footers: All files: a correction may lie outside the period asked for.
        loose: Records that were read already, all live corrections among them.
        elsewhere: Reads live runs of these ids that were not read: without what
            both correct, two corrections of one run would not be told as such.
    """
    links = [r for r in loose if r.run.supersedes]
    links += _records(connection, [f for f in footers if f.corrects], "supersedes IS NOT NULL")
    if not links:
        return [], {}, []
    wanted = {name for r in links for name in superseded_ids(r.run)}
    targets = [r for r in loose if r.run.run_id in wanted]
    holding = [f for f in footers if f.may_hold(min(wanted), max(wanted))]
    targets += _records(connection, holding, f"run_id IN ({_listed(wanted)})")
    targets += elsewhere(wanted - {r.run.run_id for r in targets})
    involved = {(r.file, r.key): r for r in (*links, *targets)}
    once, _ = unique(involved.values())
    runs = [r.run for r in once]
    kept, findings = current(runs)
    counts = {(run.study, run.run_id) for run in kept}
    return [r for r in involved.values() if r.key not in counts], _in_place(runs, links), list(findings)


def _in_place(runs: Sequence[Run], links: Sequence[Stored]) -> dict[str, Run]:
    """Return each id that a correction names, held or not, and the record that counts in its place."""
    by_id = {run.run_id: run for run in runs}
    last = heirs(runs)
    found = {name: by_id[heir] for name, heir in last.items()}
    for link in links:
        heir = by_id[last.get(link.run.run_id, link.run.run_id)]
        found |= {name: heir for name in superseded_ids(link.run) if name not in found}
    return found


def duplicates(
    connection: DuckDBPyConnection,
    footers: Sequence[Footer],
    touched: Sequence[Footer],
    loose: Sequence[Stored],
    gone: Collection[Excluded] = (),
) -> tuple[list[Excluded], set[tuple[str | None, str]], list[Finding]]:
    """Return what stands twice: rows of later files, keys of loose records, Findings where content differs.

    Files come first, in their order, then what was read already. Of a run that lies in
    two months the whole ledger counts one, so that each of them must know of the other.

    Args:
        connection: An open DuckDB.
        footers: All files.
        touched: Those whose rows are asked for; of the others only those are read that
            may hold one of their runs.
        loose: Records that were read already, each once.
        gone: Rows of the files that are left out anyway.
    """
    order = {str(f.file): i for i, f in enumerate(footers)}
    met = {*_met_loose(connection, footers, loose), *_met_twice(connection, footers, touched)}
    left: list[Excluded] = []
    differing: set[str] = set()
    first: dict[tuple[str, str], str] = {}
    for file, study, run_id, sha in sorted(met, key=lambda m: (order[m[0]], m)):
        if Excluded(file, study, run_id) in gone:
            continue
        if (study, run_id) not in first:
            first[study, run_id] = sha
            continue
        left.append(Excluded(file, study, run_id))
        if first[study, run_id] != sha:
            differing.add(run_id)
    doubled = [r for r in loose if (r.run.study or "", r.run.run_id) in first]
    differing |= {r.run.run_id for r in doubled if first[r.run.study or "", r.run.run_id] != r.sha256}
    said = _differences(connection, footers, loose, differing, gone) if differing else []
    return left, {r.key for r in doubled}, said


def _differences(
    connection: DuckDBPyConnection,
    footers: Sequence[Footer],
    loose: Sequence[Stored],
    wanted: set[str],
    gone: Collection[Excluded],
) -> list[Finding]:
    """Say which of the runs stored twice do not say the same; files come first."""
    holding = [f for f in footers if f.may_hold(min(wanted), max(wanted))]
    stored = _records(connection, holding, f"counts AND run_id IN ({_listed(wanted)})")
    known = [r for r in loose if r.run.run_id in wanted]
    _, findings = unique([*(r for r in stored if excluded(r) not in gone), *known])
    return findings


_Met = tuple[str, str, str, str]
_KEYS = "SELECT filename, coalesce(study, '') AS study_key, run_id, record_sha256"


def _met_loose(
    connection: DuckDBPyConnection, footers: Sequence[Footer], loose: Sequence[Stored]
) -> list[_Met]:
    if not loose:
        return []
    ids = [r.run.run_id for r in loose]
    holding = [f for f in footers if f.may_hold(min(ids), max(ids))]
    if not holding:
        return []
    keys = {(r.run.study or "", r.run.run_id) for r in loose}
    # A list as parameter: its length is that of the live runs.
    query = f"{_KEYS} FROM {_scan(holding)} WHERE is_first AND counts AND run_id IN (SELECT unnest(?))"
    return [m for m in connection.execute(query, [ids]).fetchall() if (m[1], m[2]) in keys]


def _met_twice(
    connection: DuckDBPyConnection, footers: Sequence[Footer], touched: Sequence[Footer]
) -> list[_Met]:
    found: list[_Met] = []
    for group in _overlapping(footers):
        if not any(f in touched for f in group):
            continue
        query = f"""
            WITH met AS ({_KEYS} FROM {_scan(group)} WHERE is_first AND counts),
                 twice AS (SELECT study_key, run_id FROM met GROUP BY ALL HAVING count(*) > 1)
            SELECT met.* FROM met JOIN twice USING (study_key, run_id)"""  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
        found += connection.execute(query).fetchall()
    return found


def _overlapping(footers: Sequence[Footer]) -> list[list[Footer]]:
    """Return groups of files whose spans of run ids overlap; a file alone cannot hold a run twice."""
    untold = [f for f in footers if f.ids is None]
    told = sorted((f for f in footers if f.ids is not None), key=lambda f: f.ids or ("", ""))
    if untold:
        return [list(footers)] if len(footers) > 1 else []
    groups: list[list[Footer]] = []
    last = ""
    for footer in told:
        first_id, last_id = footer.ids or ("", "")
        if groups and first_id <= last:
            groups[-1].append(footer)
        else:
            groups.append([footer])
        last = max(last, last_id)
    return [g for g in groups if len(g) > 1]


def _records(connection: DuckDBPyConnection, footers: Sequence[Footer], condition: str) -> list[Stored]:
    if not footers:
        return []
    query = f"SELECT filename, record FROM {_scan(footers)} WHERE is_first AND {condition}"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
    rows = connection.execute(query).fetchall()
    return [Stored(run=decode(text.encode()), text=text.encode(), file=file) for file, text in rows]


def _holding_any(connection: DuckDBPyConnection, footers: Sequence[Footer], condition: str) -> list[Footer]:
    if not footers:
        return []
    query = f"SELECT DISTINCT filename FROM {_scan(footers)} WHERE {condition}"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
    names = {name for (name,) in connection.execute(query).fetchall()}
    return [f for f in footers if str(f.file) in names]


def records_where(
    connection: DuckDBPyConnection, footers: Sequence[Footer], column: str, values: Collection[str]
) -> list[Stored]:
    """Return the records in files, but for rows of ``left_out``, of which a column has one of the values.

    Args:
        connection: An open DuckDB with the table ``left_out``.
        footers: Files.
        column: ``run_id`` or ``parent_run_id``.
        values: What is looked for; may be very many.
    """
    if not footers or not values:
        return []
    query = f"""
        SELECT file, record
        FROM (SELECT filename AS file, coalesce(study, '') AS study_key, run_id, record FROM {_scan(footers)}
              WHERE is_first AND counts AND {column} IN (SELECT unnest(?)))
        ANTI JOIN left_out USING (file, study_key, run_id)"""  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
    rows = connection.execute(query, [sorted(values)]).fetchall()
    return [Stored(run=decode(text.encode()), text=text.encode(), file=file) for file, text in rows]


def _scan(footers: Sequence[Footer]) -> str:
    return f"read_parquet([{_listed(str(f.file) for f in footers)}], filename=true)"


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(quoted(t) for t in texts)
