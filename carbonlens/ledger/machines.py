"""Machines: which hosts of a ledger are one, told by the devices that they read at one time.

Older records of two containers tell two hosts. A GPU's UUID stands in its readings, and in
files in the name of the reading's error, which is all that is read: a column of few values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from carbonlens.accounting.allocation_machines import UUID_PATTERN, Seen, joined_hosts, seen_by
from carbonlens.ledger.footers import Footer
from carbonlens.ledger.parquet import quoted
from carbonlens.ledger.records import Stored

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_SOURCES: Final = ("sensor_source_id", "host_source_id")
"""Columns of errors that are named after a device."""


def join_machines(
    connection: DuckDBPyConnection,
    files: Sequence[Footer],
    loose: Sequence[Stored],
    machines: Mapping[str, str] | None = None,
) -> Mapping[str, str]:
    """Put one host in the place of several of one machine in the table ``windows``; return which are one.

    Args:
        connection: Has the tables ``windows`` and ``left_out``.
        files: That may hold runs with a host.
        loose: Records outside of them.
        machines: What an earlier call returned; looked for when ``None``.
    """
    if machines is None:
        ((hosts,),) = connection.execute(
            "SELECT count(*) FROM (SELECT DISTINCT host FROM windows LIMIT 2)"
        ).fetchall()
        seen = [s for r in loose for s in seen_by(r.run)] if hosts > 1 else []
        machines = joined_hosts([*seen, *_seen_in_files(connection, files, seen)]) if hosts > 1 else {}
    others = {host: first for host, first in machines.items() if host != first}
    if others:
        columns: list[Any] = [list(others), list(others.values())]
        connection.execute(
            "UPDATE windows SET host = hash(m.first) FROM (SELECT unnest(?) AS name, unnest(?) AS first) m"
            " WHERE windows.host = hash(m.name)",
            columns,
        )
    return machines


def _seen_in_files(
    connection: DuckDBPyConnection, files: Sequence[Footer], loose: Sequence[Seen]
) -> list[Seen]:
    """Return when hosts read devices that several hosts read; most ledgers have none."""
    holding = [f for f in files if f.has_hosts]
    if not holding:
        return []
    scan = f"read_parquet([{', '.join(quoted(f.file) for f in holding)}], filename='file')"
    told = " UNION ALL ".join(
        f"SELECT {name} AS source, host_id FROM {scan}"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
        f" WHERE {name} LIKE '%GPU-%' AND host_id IS NOT NULL GROUP BY ALL"
        for name in _SOURCES
    )
    found = connection.execute(
        f"SELECT DISTINCT regexp_extract(source, '{UUID_PATTERN}', 0, 'i'), host_id FROM ({told})"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
    ).fetchall()
    hosts: dict[str, set[str]] = {}
    for device, host in [*found, *((s.device, s.host_id) for s in loose)]:
        hosts.setdefault(device, set()).add(host)
    shared = [device for device, by in hosts.items() if device and len(by) > 1]
    return _windows(connection, scan, shared) if shared else []


def _windows(connection: DuckDBPyConnection, scan: str, devices: Sequence[str]) -> list[Seen]:
    sources = [f"coalesce(regexp_extract({name}, '{UUID_PATTERN}', 0, 'i'), '')" for name in _SOURCES]
    rows = connection.execute(
        f"SELECT DISTINCT unnest([{', '.join(sources)}]) AS device, start_us, end_us, host_id, file, study_key, run_id"  # noqa: E501, S608  # our own names and quoted paths: SQL takes no parameter there
        f" FROM (SELECT *, coalesce(study, '') AS study_key FROM {scan}"
        f" WHERE counts AND host_id IS NOT NULL AND end_us > start_us"
        f" AND ({' OR '.join(f'{s} IN (SELECT unnest(?))' for s in sources)}))"
        " ANTI JOIN left_out USING (file, study_key, run_id)",
        [list(devices)] * len(sources),
    ).fetchall()
    wanted = set(devices)
    return [Seen(r[0], r[1], r[2], r[3]) for r in rows if r[0] in wanted]
