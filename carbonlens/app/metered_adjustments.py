"""Use case part: metered energy of closed periods that readings or bills found later change."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from carbonlens.accounting.metered import Metered, each_once, metered
from carbonlens.accounting.restatement import PriorPeriod, held_state
from carbonlens.app.statement_meters import in_local_days, meters_and_readings
from carbonlens.domain.charge import Charge
from carbonlens.domain.estimate import unknown
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.domain.units import State
from carbonlens.ledger.activity import CHARGES, READINGS, read_stored
from carbonlens.ledger.closes import Close
from carbonlens.ledger.store import Ledger
from carbonlens.ledger.superseding import counting


class _Counted(NamedTuple):
    """What meters of one kind at one site counted, and when."""

    found: Metered
    spans: frozenset[tuple[str, int, int]]


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
    rows = _stored(store)
    then, now = (_metered(store, inventory, close, rows, without) for without in (late, ()))
    lines = []
    for key in dict.fromkeys((*now, *then)):
        before, after = then.get(key), now.get(key)
        ids = {name for c in (before, after) if c is not None for name in c.found.reading_ids}
        # A correction of unknown energy is not counted, and takes away what was.
        names = ids | _corrections(ids, rows)
        own = [(name, place) for name, place in found if name in names]
        line = _line(close, before, after, own)
        if own and not line.is_none:
            lines.append(line)
    return tuple(lines)


def _corrections(ids: Collection[str], rows: tuple[Sequence[MeterReading], Sequence[Charge]]) -> set[str]:
    """Return the ids of the records that correct some of these, directly or over others."""
    newer: dict[str, set[str]] = {}
    readings, charges = rows
    named = ((r.supersedes, r.reading_id) for r in readings)
    for older, name in (*named, *((c.supersedes, c.charge_id) for c in charges)):
        if older is not None:
            newer.setdefault(older, set()).add(name)
    found: set[str] = set()
    waiting = set(ids)
    while waiting:
        waiting = {name for old in waiting for name in newer.get(old, ())} - found
        found |= waiting
    return found


def _line(
    close: Close, before: _Counted | None, after: _Counted | None, own: Sequence[tuple[str, str]]
) -> PriorPeriod:
    either = after or before
    same = before is not None and after is not None and before.spans == after.spans
    return PriorPeriod(
        period=close.period,
        found_in=tuple(sorted({place for _, place in own})),
        boundary=None if either is None else either.found.boundary,
        records=tuple(dict.fromkeys(name for name, _ in own)),
        closed_j=None if before is None else before.found.exact_j,
        closed_state=_state(before),
        now_j=None if after is None else after.found.exact_j,
        now=unknown("J") if after is None else replace(after.found.energy, state=_state(after)),
        # The hours that nobody counted are unknown then and now.
        same_unknown=same,
        metered_at=None if either is None else either.found.site_id,
    )


def _state(counted: _Counted | None) -> State:
    if counted is None:
        return "unknown"
    return held_state(counted.found.exact_j, is_whole=counted.found.is_whole)


def _stored(store: Ledger) -> tuple[list[MeterReading], list[Charge]]:
    try:
        readings, _ = read_stored(store.path / READINGS.folder, READINGS)
        charges, _ = read_stored(store.path / CHARGES.folder, CHARGES)
    except OSError as error:
        raise store.unreadable(error) from error
    return [r for r, _ in readings], [c for c, _ in charges]


def _metered(
    store: Ledger,
    inventory: Inventory,
    close: Close,
    rows: tuple[Sequence[MeterReading], Sequence[Charge]],
    without: Collection[str],
) -> dict[tuple[str, str, str], _Counted]:
    """Return what meters and bills count in a closed period, as if some records were not there."""
    stored, bills = rows
    readings = [r for r in stored if r.reading_id not in without]
    charges, _ = counting((c for c in bills if c.charge_id not in without), CHARGES.id_field)
    current = in_local_days(charges, inventory)
    meters, every, _ = meters_and_readings(store, inventory, current, readings)
    found = each_once(metered(meters, every, close.start_us, close.end_us))
    return {(m.site_id, m.name, m.boundary): _Counted(m, _spans(m, every, close)) for m in found}


def _spans(found: Metered, every: Sequence[MeterReading], close: Close) -> frozenset[tuple[str, int, int]]:
    """Return the parts of a closed period that each meter counted, those that touch as one."""
    ids = frozenset(found.reading_ids)
    ends: dict[str, list[tuple[int, int]]] = {}
    for reading in sorted((r for r in every if r.reading_id in ids), key=lambda r: r.start_us):
        start, end = max(reading.start_us, close.start_us), min(reading.end_us, close.end_us)
        own = ends.setdefault(reading.meter_id, [])
        if own and start <= own[-1][1]:
            start, last = own.pop()
            end = max(end, last)
        own.append((start, end))
    return frozenset((meter, *span) for meter, spans in ends.items() for span in spans)
