"""Outliving: nested runs of which something may count beside their parent.

They go on while it does not, their process does not descend from its, or they read what it did
not (``accounting.allocation_holding``). Times, processes and devices tell which may; most ledgers
have none, and only the records of those are read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from carbonlens.accounting.allocation_nesting import SLACK_SHARE, SLACK_US
from carbonlens.domain.run import Run
from carbonlens.ledger.footers import Footer
from carbonlens.ledger.parquet import quoted
from carbonlens.ledger.records import Stored

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TIMES: Final = "run_id VARCHAR, host UBIGINT, start_us BIGINT, end_us BIGINT"

_TOLD: Final = "process VARCHAR, line VARCHAR, reads VARCHAR[], known VARCHAR[]"
"""Of a run its process, those above it, and its readings: all, and those of known energy."""

_FROM_RECORD: Final = """
json_extract_string(record, '$.process') AS process,
CASE json_type(record, '$.ancestors') WHEN 'ARRAY' THEN json_extract(record, '$.ancestors')::VARCHAR
END AS line,
from_json(json_extract(record, '$.energy'),
          '[{"component":"VARCHAR","devices":["VARCHAR"],"divided":"BOOLEAN","energy_j":"VARCHAR"}]')
AS energy,
[x.component || '|' || coalesce(array_to_string(x.devices, ','), '') || '|' || coalesce(x.divided, false)
 FOR x IN energy] AS reads,
[x.component || '|' || coalesce(array_to_string(x.devices, ','), '') || '|' || coalesce(x.divided, false)
 FOR x IN energy IF x.energy_j IS NOT NULL] AS known
"""

_HOST: Final = "CASE WHEN host_id IS NOT NULL THEN hash(host_id) END"

_OUTLIVING: Final = f"""
SELECT study_key, c.run_id, c.host, c.start_us, c.end_us
FROM children c JOIN parents p ON c.parent = p.run_id
WHERE greatest(p.start_us - c.start_us, c.end_us - p.end_us)
      > least({SLACK_US}, (c.end_us - c.start_us + {SLACK_SHARE - 1}) // {SLACK_SHARE})
   OR c.host <> p.host
   OR ((c.process = p.process OR c.line IS NOT NULL)
       AND NOT ((c.process = p.process OR strpos(c.line, '"' || p.process || '"') > 0)
                AND list_has_all(p.known, c.reads)))
"""  # noqa: S608  # our own numbers


def heirs_of(heirs: Mapping[str, Run]) -> dict[str, Run]:
    """Return of each corrected id the record that counts in its place, over all its corrections.

    Args:
        heirs: Ids that corrections name, each to its correction.
    """
    last: dict[str, Run] = {}
    for name in heirs:
        here = heirs[name]
        met = {name}
        while here.run_id in heirs and here.run_id not in met:
            met.add(here.run_id)
            here = heirs[here.run_id]
        last[name] = here
    return last


class Held(NamedTuple):
    """Where parents may be found.

    Attributes:
        footers: All files.
        loose: Records outside of them that were read.
        heirs: As of ``heirs_of``.
        live_runs: Reads live runs of these ids.
        orphans: Parents that are not held.
    """

    footers: Sequence[Footer]
    loose: Sequence[Stored]
    heirs: Mapping[str, Run]
    live_runs: Callable[[Collection[str]], Sequence[Stored]]
    orphans: Collection[str]


def load_outliving(
    connection: DuckDBPyConnection, held: Held, files: Sequence[Footer], span_us: tuple[int, int] | None
) -> None:
    """Put into the table ``outliving`` the nested runs that reach beyond their parents, and when.

    Args:
        connection: Has the table ``left_out``.
        held: Where parents are.
        files: Those that may hold runs of the span.
        span_us: First and end microsecond asked for; all when ``None``.
    """
    connection.execute(f"CREATE OR REPLACE TEMP TABLE outliving (study_key VARCHAR, {_TIMES})")
    files = [f for f in files if f.has_children]
    children = [r for r in held.loose if r.run.parent_run_id not in {None, *held.orphans}]
    if not files and not children:
        return
    _load_children(connection, files, children, held.orphans, span_us)
    ((low, high),) = connection.execute("SELECT min(parent), max(parent) FROM children").fetchall()
    if low is None:
        return
    connection.execute(f"CREATE OR REPLACE TEMP TABLE parents ({_TIMES}, {_TOLD})")
    _insert_times(connection, [*((r.run.run_id, r.run) for r in held.loose), *held.heirs.items()])
    holding = [f for f in held.footers if f.may_hold(low, high)]
    if holding:
        connection.execute(
            f"INSERT INTO parents SELECT * EXCLUDE energy FROM (SELECT run_id, {_HOST}, start_us, end_us, {_FROM_RECORD}"  # noqa: E501, S608  # our own names and quoted paths: SQL takes no parameter there
            f" FROM ({_keyed(holding)}) ANTI JOIN left_out USING (file, study_key, run_id)"
            " WHERE run_id IN (SELECT parent FROM children))"
        )
    missing = connection.execute(
        "SELECT DISTINCT parent FROM children ANTI JOIN parents ON parent = parents.run_id"
    )
    ids = [i for (i,) in missing.fetchall()]
    _insert_times(connection, [(r.run.run_id, r.run) for r in held.live_runs(ids)] if ids else [])
    connection.execute(f"INSERT INTO outliving {_OUTLIVING}")


def _load_children(
    connection: DuckDBPyConnection,
    holding: Sequence[Footer],
    mine: Sequence[Stored],
    orphans: Collection[str],
    span_us: tuple[int, int] | None,
) -> None:
    columns = f"study_key VARCHAR, parent VARCHAR, {_TIMES}, {_TOLD}"
    connection.execute(f"CREATE OR REPLACE TEMP TABLE children ({columns})")
    rows: list[tuple[Any, ...]] = [
        (r.run.study or "", r.run.parent_run_id, r.run.run_id, *_columns(r.run))
        for r in mine
        if r.run.start_us is not None
        and r.run.end_us is not None
        and r.run.end_us > r.run.start_us
        and (span_us is None or (r.run.start_us < span_us[1] and r.run.end_us > span_us[0]))
    ]
    _insert(connection, "children", ("study_key", "parent", "run_id"), rows)
    if not holding:
        return
    inside = "" if span_us is None else f"AND start_us < {span_us[1]} AND end_us > {span_us[0]}"
    held = f"AND parent_run_id NOT IN ({', '.join(quoted(o) for o in sorted(orphans))})" if orphans else ""
    connection.execute(
        "INSERT INTO children SELECT * EXCLUDE energy FROM"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
        f" (SELECT study_key, parent_run_id, run_id, {_HOST}, start_us, end_us, {_FROM_RECORD}"
        f" FROM ({_keyed(holding)} AND parent_run_id IS NOT NULL AND end_us > start_us {inside} {held})"
        " ANTI JOIN left_out USING (file, study_key, run_id))"
    )


def _insert_times(connection: DuckDBPyConnection, named: Iterable[tuple[str, Run]]) -> None:
    rows = [(i, *_columns(r)) for i, r in named if r.start_us is not None and r.end_us is not None]
    _insert(connection, "parents", ("run_id",), rows)


def _columns(run: Run) -> tuple[Any, ...]:
    """Return the columns of a record from its host on, as ``_FROM_RECORD`` has them."""
    line = None if run.ancestors is None else msgspec.json.encode(run.ancestors).decode()
    names = [f"{r.component}|{','.join(r.devices)}|{str(r.divided).lower()}" for r in run.energy]
    known = [name for name, r in zip(names, run.energy, strict=True) if r.energy_j is not None]
    return run.host_id, run.start_us, run.end_us, run.process, line, names, known


def _insert(
    connection: DuckDBPyConnection, table: str, names: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Put rows into a table; ``names`` are its columns before the host."""
    if not rows:
        return
    given = [*(f"unnest(?::VARCHAR[]) AS {name}" for name in (*names, "host_id"))]
    given += ["unnest(?::BIGINT[]) AS start_us", "unnest(?::BIGINT[]) AS end_us"]
    given += ["unnest(?::VARCHAR[]) AS process", "unnest(?::VARCHAR[]) AS line"]
    given += ["unnest(?::VARCHAR[][]) AS reads", "unnest(?::VARCHAR[][]) AS known"]
    connection.execute(
        f"INSERT INTO {table} SELECT {', '.join(names)}, {_HOST},"  # noqa: S608  # our own names
        f" * EXCLUDE ({', '.join(names)}, host_id) FROM (SELECT {', '.join(given)})",
        [list(c) for c in zip(*rows, strict=True)],
    )


def _keyed(files: Sequence[Footer]) -> str:
    scan = f"read_parquet([{', '.join(quoted(f.file) for f in files)}], filename='file')"
    return f"SELECT *, coalesce(study, '') AS study_key FROM {scan} WHERE is_first AND counts"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
