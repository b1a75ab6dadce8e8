"""Which rows that are no runs count: readings, lines of bills and snapshots that correct others.

One rule for the ledger's batches and for an inventory's own readings, so that none counts in
one account and vanishes from the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from msgspec.structs import replace

from carbonlens.domain.charge import Charge
from carbonlens.domain.finding import Finding
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.domain.snapshot import Snapshot

Activity = MeterReading | Charge | Snapshot
Row = TypeVar("Row", MeterReading, Charge, Snapshot)


def counting(records: Iterable[Row], id_field: str) -> tuple[list[Row], list[Finding]]:
    """Return the rows that count, in their order, and what is wrong with corrections.

    Args:
        records: Rows, superseded ones too; of one id the last.
        id_field: Name of the field that holds it.
    """
    rows: dict[str, Row] = {str(getattr(r, id_field)): r for r in records}
    gone, findings = corrected_rows(rows, id_field)
    # One that corrects itself corrects nothing, also for who asks again what is corrected.
    return [
        replace(r, supersedes=None) if r.supersedes == name else r
        for name, r in rows.items()
        if name not in gone
    ], findings


def corrected_rows(rows: Mapping[str, Activity], id_field: str) -> tuple[set[str], list[Finding]]:
    """Return the ids of rows that count no more, and what is wrong with corrections.

    Of rows that correct each other in a circle the last counts: none vanishes. Of several last
    corrections of one row that share a time only the last counts: nothing counts twice. A reading
    of a month may be corrected by one of each half of it.

    Args:
        rows: By their ids.
        id_field: Their name for messages.
    """
    gone: set[str] = set()
    findings: list[Finding] = []
    superseded = {r.supersedes for r in rows.values()}
    for family in _families(rows):
        ordered = sorted(family, key=lambda n: _written(n, rows[n]), reverse=True)
        ends = [name for name in ordered if name not in superseded]
        kept: list[str] = []
        for name in ends or ordered[:1]:
            if not any(_overlap(rows[name], rows[other]) for other in kept):
                kept.append(name)
        gone |= family - set(kept)
        if not ends:
            findings.append(_circular(id_field, family, kept[0]))
        elif len(kept) < len(ends):
            findings.append(_corrected_twice(id_field, ends, kept[0]))
    return gone, findings


def _families(rows: Mapping[str, Activity]) -> list[set[str]]:
    """Return the ids of rows that correct each other, directly or over others."""
    beside: dict[str, set[str]] = {}
    for name, record in rows.items():
        if record.supersedes in rows:
            older = str(record.supersedes)
            beside.setdefault(name, set()).add(older)
            beside.setdefault(older, set()).add(name)
    found: list[set[str]] = []
    met: set[str] = set()
    for name in beside:
        family: set[str] = set()
        waiting = {name} - met
        while waiting:
            family |= waiting
            waiting = {other for n in waiting for other in beside[n]} - family
        met |= family
        found += [family] if family else []
    return found


def _written(name: str, record: Activity) -> tuple[int, int, str]:
    """Return when a row came, as far as it tells, for ordering."""
    origin = None if isinstance(record, Snapshot) else record.origin
    return (
        0 if origin is None else origin.imported_us or 0,
        0 if origin is None else origin.source_line or 0,
        name,
    )


def _overlap(one: Activity, other: Activity) -> bool:
    if isinstance(one, Snapshot) or isinstance(other, Snapshot):
        return True
    return one.start_us < other.end_us and other.start_us < one.end_us


def _circular(id_field: str, names: Iterable[str], last: str) -> Finding:
    return Finding(
        code="CL508",
        severity="error",
        message=f"corrections go in a circle ({id_field} {', '.join(sorted(names))});"
        f" only the last counts, {last}",
        subject=last,
        mend=f"add one more that is right, of an id of its own, that supersedes {last}",
    )


def _corrected_twice(id_field: str, names: Iterable[str], last: str) -> Finding:
    return Finding(
        code="CL507",
        severity="warning",
        message=f"one was corrected twice for the same time ({id_field} {', '.join(sorted(names))});"
        f" the last counts, {last}",
        subject=last,
        mend=f"where {last} is wrong, add one more that supersedes it",
    )
