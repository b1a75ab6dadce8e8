"""Use case: which of the expected deliveries are in the ledger and the inventory."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from functools import cache

from msgspec.structs import replace

from carbonlens.accounting.charges import is_dated
from carbonlens.accounting.deliveries import Coverage, Held, coverage
from carbonlens.app.inventory import calendar_of
from carbonlens.domain.charge import Charge
from carbonlens.domain.finding import Finding
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.domain.run import Run
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.errors import MissingExtraError
from carbonlens.ledger.activity import CHARGES, READINGS
from carbonlens.ledger.calendar import Calendar
from carbonlens.ledger.store import Ledger

_TEAM = "team"
"""The tag of a run that names its team."""


def delivered(inventory: Inventory, store: Ledger, *, now_us: int | None = None) -> Coverage:
    """Return what of the inventory's expected deliveries came; months not over are not due.

    What the ledger could not read is among the Findings: it may be what seems to be missing.

    Args:
        inventory: With the deliveries, and readings of its own.
        store: The ledger.
        now_us: The present, UTC microseconds; by the clock when ``None``.

    Raises:
        MissingExtraError: If batches are to be read and DuckDB is not installed.
        RecordError: If the ledger cannot be read.
    """
    months = _Months(calendar_of(inventory.terms))
    present = time.time_ns() // 1000 if now_us is None else now_us
    held: set[Held] = set()
    unread: list[Finding] = []
    wanted = {d.what for d in inventory.deliveries}
    if "runs" in wanted:
        view = store.view()
        if view.unread_batches:
            raise MissingExtraError("analysis", "duckdb")
        unread += view.findings
        held.update(_of_runs(view.runs, months))
    if "meter" in wanted:
        readings, findings = store.rows(READINGS)
        unread += findings
        held.update(_of_sites("meter", [*inventory.readings, *readings], inventory, months))
    if "bill" in wanted:
        charges, findings = store.rows(CHARGES)
        unread += findings
        # Bills write whole days in UTC, of whatever place: these are dates already.
        dated = [c for c in charges if is_dated(c.start_us, c.end_us)]
        held.update(_of_sites("bill", dated, inventory, _Months(Calendar())))
        others = [c for c in charges if not is_dated(c.start_us, c.end_us)]
        held.update(_of_sites("bill", others, inventory, months))
    found = coverage(inventory.deliveries, held, through=months.before(present))
    return replace(found, findings=(*found.findings, *unread))


class _Months:
    """Local months of instants."""

    def __init__(self, calendar: Calendar) -> None:
        self._of_hour = cache(lambda hour: calendar.rows(hour, hour + 1)[0].month)

    def of(self, instant_us: int) -> str:
        """Return the month of an instant."""
        month: int = self._of_hour(instant_us // US_PER_HOUR)
        return f"{month // 100:04}-{month % 100:02}"

    def before(self, instant_us: int) -> str:
        """Return the last month that is over at an instant."""
        year, month = map(int, self.of(instant_us).split("-"))
        return f"{year:04}-{month - 1:02}" if month > 1 else f"{year - 1:04}-12"

    def touched(self, start_us: int, end_us: int) -> Iterator[str]:
        """Yield the months of a span, end exclusive."""
        last = self.of(max(start_us, end_us - 1))
        month = self.of(start_us)
        while month <= last:
            yield month
            index = int(month[:4]) * 12 + int(month[5:])
            month = f"{index // 12:04}-{index % 12 + 1:02}"


def _of_runs(runs: Iterable[Run], months: _Months) -> Iterator[Held]:
    for run in runs:
        team = run.tags.get(_TEAM)
        if team is not None and run.start_us is not None:
            yield Held("runs", team, months.of(run.start_us))


def _of_sites(
    what: str, rows: Iterable[MeterReading | Charge], inventory: Inventory, months: _Months
) -> Iterator[Held]:
    sites = {m.meter_id: m.site for m in inventory.meters}
    for row in rows:
        site = row.site or sites.get(row.meter_id or "")
        if site is not None:
            for month in months.touched(row.start_us, row.end_us):
                yield Held("meter" if what == "meter" else "bill", site, month)
