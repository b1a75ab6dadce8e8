"""Outliving: nested runs that go on while their parent does not.

What they use then lies in no other run, so that it counts. A few columns tell which runs do;
most ledgers have none, and only the records of those are read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from carbonlens.accounting.allocation_nesting import SLACK_SHARE, SLACK_US
from carbonlens.domain.run import Run
from carbonlens.ledger.footers import Footer
from carbonlens.ledger.parquet import quoted
from carbonlens.ledger.records import Stored

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TIMES: Final = "run_id VARCHAR, host UBIGINT, start_us BIGINT, end_us BIGINT"

_HOST: Final = "CASE WHEN host_id IS NOT NULL THEN hash(host_id) END"

_OUTLIVING: Final = f"""
SELECT study_key, c.run_id, c.host, c.start_us, c.end_us
FROM children c JOIN parents p ON c.parent = p.run_id
WHERE greatest(p.start_us - c.start_us, c.end_us - p.end_us)
      > least({SLACK_US}, (c.end_us - c.start_us + {SLACK_SHARE - 1}) // {SLACK_SHARE})
   OR c.host <> p.host
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
    connection.execute(f"CREATE OR REPLACE TEMP TABLE parents ({_TIMES})")
    _insert_times(connection, [*((r.run.run_id, r.run) for r in held.loose), *held.heirs.items()])
    holding = [f for f in held.footers if f.may_hold(low, high)]
    if holding:
        connection.execute(
            f"INSERT INTO parents SELECT run_id, {_HOST}, start_us, end_us FROM ({_keyed(holding)})"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
            " ANTI JOIN left_out USING (file, study_key, run_id)"
            " WHERE run_id IN (SELECT parent FROM children)"
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
    connection.execute(f"CREATE OR REPLACE TEMP TABLE children (study_key VARCHAR, parent VARCHAR, {_TIMES})")
    rows: list[Any] = [
        (r.run.study or "", r.run.parent_run_id, r.run.run_id, r.run.host_id, r.run.start_us, r.run.end_us)
        for r in mine
        if r.run.start_us is not None
        and r.run.end_us is not None
        and r.run.end_us > r.run.start_us
        and (span_us is None or (r.run.start_us < span_us[1] and r.run.end_us > span_us[0]))
    ]
    if rows:
        columns: list[Any] = [list(c) for c in zip(*rows, strict=True)]
        given = (
            "unnest(?) s, unnest(?) p, unnest(?) i, unnest(?::VARCHAR[]) host_id, unnest(?) a, unnest(?) b"
        )
        into = f"INSERT INTO children SELECT s, p, i, {_HOST}, a, b FROM (SELECT {given})"  # noqa: S608  # our own names
        connection.execute(into, columns)
    if not holding:
        return
    inside = "" if span_us is None else f"AND start_us < {span_us[1]} AND end_us > {span_us[0]}"
    held = f"AND parent_run_id NOT IN ({', '.join(quoted(o) for o in sorted(orphans))})" if orphans else ""
    connection.execute(
        f"INSERT INTO children SELECT study_key, parent_run_id, run_id, {_HOST}, start_us, end_us"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
        f" FROM ({_keyed(holding)} AND parent_run_id IS NOT NULL AND end_us > start_us {inside} {held})"
        " ANTI JOIN left_out USING (file, study_key, run_id)"
    )


def _insert_times(connection: DuckDBPyConnection, named: Iterable[tuple[str, Run]]) -> None:
    rows = [
        (i, r.host_id, r.start_us, r.end_us)
        for i, r in named
        if r.start_us is not None and r.end_us is not None
    ]
    if rows:
        columns: list[Any] = [list(c) for c in zip(*rows, strict=True)]
        given = "unnest(?) i, unnest(?::VARCHAR[]) host_id, unnest(?) a, unnest(?) b"
        connection.execute(f"INSERT INTO parents SELECT i, {_HOST}, a, b FROM (SELECT {given})", columns)  # noqa: S608  # our own names


def _keyed(files: Sequence[Footer]) -> str:
    scan = f"read_parquet([{', '.join(quoted(f.file) for f in files)}], filename='file')"
    return f"SELECT *, coalesce(study, '') AS study_key FROM {scan} WHERE is_first AND counts"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
