"""Occupancy: how long runs kept hosts, hardware and devices busy, counted in the period of a view.

A run that reaches over an end of the period counts in it with the part that lies in it. Its
own end stands where it states one, else its duration. Runs inside another run are a part of it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

import msgspec

from carbonlens.domain.units import US_PER_HOUR
from carbonlens.ledger import fetching, queries

if TYPE_CHECKING:
    from carbonlens.ledger.frames import View

_US_PER_S: Final = 1_000_000


class Stay(msgspec.Struct, frozen=True, kw_only=True):
    """The time that one run spent on a host, within the period.

    Attributes:
        run: Study and id.
        devices: Ids of the accelerators that it used, as it records them.
        start_us, end_us: Of the part in the period, UTC microseconds.
    """

    run: tuple[str, str]
    host_id: str | None
    machine_id: str | None
    hardware: str | None
    site: str | None
    devices: tuple[str, ...]
    start_us: int
    end_us: int


def hours_by_hardware(view: View) -> dict[tuple[str | None, str | None], float]:
    """Return hours of runs in the period by hardware and site, an hour of a run each.

    Args:
        view: Of the period.
    """
    # With the rows, of which the id is: they are asked for by who shares out and by who tells what is left.
    key = ("hours by hardware", id(view.counting))
    if key not in view.kept:
        rows = _rows(view, "hardware, site, sum(end_us - start_us)::BIGINT", "GROUP BY ALL")
        found = {(hardware, site): us / US_PER_HOUR for hardware, site, us in rows}
        view.kept[key] = view.counting, found
    held: dict[tuple[str | None, str | None], float] = view.kept[key][1]
    return held


def busy_hours(view: View, hardware: str | None, site: str | None, pieces: int) -> float:
    """Return piece hours of runs on some hardware at a site: at any moment at most as many as there are.

    Args:
        view: Of the period.
        hardware: As the runs state it.
        site: Likewise.
        pieces: How many there are.
    """
    import numpy as np

    keep = "hardware IS NOT DISTINCT FROM ? AND site IS NOT DISTINCT FROM ?"
    held = view.connection.execute(_query(view, "start_us, end_us", "", keep), [hardware, site]).fetchnumpy()
    start, end = (np.asarray(held[name], dtype=np.int64) for name in ("start_us", "end_us"))
    at = np.concatenate((start, end))
    order = np.argsort(at, kind="stable")
    change = np.where(order < len(start), 1, -1)
    active = np.minimum(np.cumsum(change)[:-1], pieces)
    return float(np.sum(active * np.diff(at[order]))) / US_PER_HOUR


def stays(view: View, hosts: Collection[str], sites: Collection[str]) -> tuple[Stay, ...]:
    """Return the time of each run on some hosts or at some sites, with the devices that it names.

    Args:
        view: Of the period.
        hosts: Ids of hosts or machines; a machine is found at a site alone.
        sites: Names of sites; all runs where one of them is empty.
    """
    rows = _rows(
        view, "coalesce(study, ''), run_id, host_id, hardware, site, start_us, end_us", "ORDER BY ALL"
    )
    every = "" in sites
    wanted = [r for r in rows if every or r[2] in hosts or r[4] in sites]
    records = {(s.run.study or "", s.run.run_id): s.run for s in view.records({r[1] for r in wanted})}
    found = []
    for study, run_id, host, hardware, site, start, end in wanted:
        run = records.get((study, run_id))
        found.append(
            Stay(
                run=(study, run_id),
                host_id=host,
                machine_id=None if run is None else run.machine_id,
                hardware=hardware,
                site=site,
                devices=() if run is None else run.device_uuids,
                start_us=start,
                end_us=end,
            )
        )
    return tuple(found)


def first_start_us(view: View) -> int | None:
    """Return when the first run of the view began; ``None`` where it holds none."""
    found = _rows(view, "min(start_us)", "")
    start: int | None = found[0][0]
    return start


def _rows(view: View, columns: str, rest: str) -> list[tuple[Any, ...]]:
    """Return columns of the root runs with a part in the period, as ``_query`` has them."""
    rows: list[tuple[Any, ...]] = view.connection.execute(_query(view, columns, rest)).fetchall()
    return rows


def _query(view: View, columns: str, rest: str, keep: str = "true") -> str:
    """Return SQL of columns of the root runs with a part in the period; start and end are of that part.

    As text, and not as a chain of frames: each link of one would be bound anew, which takes longer than
    the hours of a quarter.
    """
    names = "study, run_id, host_id, hardware, site"
    low, high = "start_us", "stop"
    if view.period is not None:
        begin, end = (h * US_PER_HOUR for h in (view.period.first_hour, view.period.end_hour))
        low, high = f"greatest(start_us, {begin})", f"least(stop, {end})"
    stop = f"coalesce(end_us, start_us + (duration_s * {_US_PER_S})::BIGINT)"
    rows, root = view.counting, "parent_run_id IS NULL"
    if view.orphans:
        # Names that come from records are told to DuckDB by its own means.
        rows, root = queries.roots(rows, view.orphans), "true"
    return f"""
        SELECT {columns} FROM (
            SELECT {names}, {low} AS start_us, {high} AS end_us
            FROM (SELECT *, {stop} AS stop FROM ({fetching.sql_of(rows)})
                  WHERE is_first AND {root} AND {keep})
            WHERE {high} > {low})
        {rest}"""  # noqa: S608  # our own names and whole numbers: SQL takes no parameter there
