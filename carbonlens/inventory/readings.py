"""The readings of all files together: each once, corrected, and with what its meter is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.domain.site import Meter
from carbonlens.inventory import counts
from carbonlens.inventory.faults import Fault, shown
from carbonlens.inventory.readings_file import Rows
from carbonlens.ledger.superseding import counting


def joined(
    files: Sequence[Rows], meters: Iterable[Meter], faults: list[Fault]
) -> tuple[tuple[MeterReading, ...], list[Finding]]:
    """Return the readings that count, in order of meter and time.

    Args:
        files: What each file gave.
        meters: Tell site, boundary and accuracy of what they counted.
        faults: Takes readings that share an id and differ.
    """
    between, findings = counts.spans(count for rows in files for count in rows.counts)
    findings += [finding for rows in files for finding in rows.findings]
    every = sorted([*(s for rows in files for s in rows.spans), *between], key=_order)
    once, repeated = _once(every, faults)
    findings += _repeats(repeated)
    kept, said = counting(once, "reading_id")
    by_id = {m.meter_id: m for m in meters}
    return tuple(_of_meter(r, by_id) for r in kept), [*findings, *said]


def _order(reading: MeterReading) -> tuple[str, int, int, str, str, str, str, int]:
    origin = reading.origin
    return (
        *(reading.meter_id, reading.start_us, reading.end_us, reading.direction, reading.carrier),
        reading.reading_id,
        *(("", 0) if origin is None else (origin.source_file or "", origin.source_line or 0)),
    )


def _once(
    readings: Iterable[MeterReading], faults: list[Fault]
) -> tuple[list[MeterReading], list[MeterReading]]:
    """Return each reading once, and those that only repeat one."""
    first: dict[str, MeterReading] = {}
    repeated: list[MeterReading] = []
    for reading in readings:
        earlier = first.setdefault(reading.reading_id, reading)
        if earlier is reading:
            continue
        if replace(earlier, origin=None) == replace(reading, origin=None):
            repeated.append(reading)
        else:
            faults.append(_clash(reading))
    return list(first.values()), repeated


def _clash(reading: MeterReading) -> Fault:
    origin = reading.origin
    return Fault(
        file=(origin and origin.source_file) or "",
        line=(origin and origin.source_line) or 0,
        what=f"reading_id {shown(reading.reading_id)} stands twice with different content",
        mend="give each its own id; a correction has supersedes with the id that it corrects",
    )


def _repeats(repeated: Iterable[MeterReading]) -> list[Finding]:
    """Return one Finding a file that repeats readings."""
    lines: dict[str, int] = {}
    times: Counter[str] = Counter()
    for reading in repeated:
        origin = reading.origin
        file = (origin and origin.source_file) or ""
        times[file] += 1
        lines.setdefault(file, (origin and origin.source_line) or 0)
    return [
        Finding(
            code="CL369",
            severity="info",
            message=f"{counted(n, 'reading repeats', 'readings repeat')} another exactly; counted once",
            file=file,
            line=lines[file] or None,
            subject=file,
        )
        for file, n in times.items()
    ]


def _of_meter(reading: MeterReading, meters: Mapping[str, Meter]) -> MeterReading:
    meter = meters.get(reading.meter_id)
    if meter is None:
        return reading
    return replace(reading, site=meter.site, boundary=meter.boundary, accuracy_class=meter.accuracy_class)
