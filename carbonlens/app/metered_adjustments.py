"""Use case part: metered energy of closed periods that readings or bills found later change."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from carbonlens.accounting.metered import Metered, each_once, metered
from carbonlens.accounting.restatement import PriorPeriod
from carbonlens.app.statement_meters import in_local_days, meters_and_readings
from carbonlens.domain.charge import Charge
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.ledger.activity import CHARGES, READINGS, read_stored
from carbonlens.ledger.closes import Close
from carbonlens.ledger.store import Ledger


def names_of_activity(store: Ledger) -> frozenset[str]:
    """Return the ids of all readings and lines of bills in a ledger: of the records that are no runs.

    Raises:
        RecordError: If the ledger cannot be read.
    """
    readings, charges = _stored(store)
    return frozenset((*(r.reading_id for r in readings), *(c.charge_id for c in charges)))


def metered_adjustments(
    store: Ledger, inventory: Inventory, close: Close, found: Sequence[tuple[str, str]]
) -> tuple[PriorPeriod, ...]:
    """Return the lines that late readings, and bills with energy, make in a closed period.

    Meters are those of the inventory in use, and so are the readings it holds itself: what
    another inventory changes is a restatement.

    Args:
        store: The ledger.
        inventory: With meters.
        close: Of the period.
        found: Of each late record: its id, and the period in which it was found.

    Raises:
        RecordError: If the ledger cannot be read.
    """
    late = {name for name, _ in found}
    then, now = (_metered(store, inventory, close, without) for without in (late, ()))
    lines = []
    for key, after in now.items():
        before = then.get(key)
        closed_j = None if before is None else before.exact_j
        names = {*after.reading_ids, *(() if before is None else before.reading_ids)}
        own = [(name, place) for name, place in found if name in names]
        if own and closed_j != after.exact_j:
            lines.append(
                PriorPeriod(
                    period=close.period,
                    found_in=tuple(sorted({place for _, place in own})),
                    boundary=after.boundary,
                    records=tuple(dict.fromkeys(name for name, _ in own)),
                    closed_j=closed_j,
                    now_j=after.exact_j,
                    now=after.energy,
                    metered_at=after.site_id,
                )
            )
    return tuple(lines)


def _stored(store: Ledger) -> tuple[list[MeterReading], list[Charge]]:
    try:
        readings, _ = read_stored(store.path / READINGS.folder, READINGS)
        charges, _ = read_stored(store.path / CHARGES.folder, CHARGES)
    except OSError as error:
        raise store.unreadable(error) from error
    return [r for r, _ in readings], [c for c, _ in charges]


def _metered(
    store: Ledger, inventory: Inventory, close: Close, without: Collection[str]
) -> dict[tuple[str, str, str], Metered]:
    """Return what meters and bills count in a closed period, as if some records were not there."""
    stored, bills = _stored(store)
    readings = [r for r in stored if r.reading_id not in without]
    charges = [c for c in bills if c.charge_id not in without]
    gone = {c.supersedes for c in charges}
    current = in_local_days([c for c in charges if c.charge_id not in gone], inventory)
    meters, every, _ = meters_and_readings(store, inventory, current, readings)
    found = each_once(metered(meters, every, close.start_us, close.end_us))
    return {(m.site_id, m.name, m.boundary): m for m in found}
