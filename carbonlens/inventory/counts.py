"""From counts of meters at instants to the energy of the spans between them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby, pairwise

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.inventory.readings_file import Count, between, content_id, grade_of


def spans(counts: Iterable[Count]) -> tuple[list[MeterReading], list[Finding]]:
    """Return the span between each two neighbouring counts of a meter.

    A counter that runs back was changed or has turned over: the energy of that span is
    unknown. Counts that contradict each other at one instant are left out.

    Args:
        counts: Of all files, in any order.
    """
    found: list[MeterReading] = []
    findings: list[Finding] = []
    for _, series in groupby(sorted(counts, key=_order), key=lambda c: _order(c)[:3]):
        kept, doubtful = _settled(list(series))
        if doubtful:
            findings.append(_contradiction(doubtful))
        found += (_span(first, last) for first, last in pairwise(kept))
    return found, findings


def _order(count: Count) -> tuple[str, str, str, int, str, str, str, int]:
    meant, origin = count.meant, count.origin
    return (
        *(meant.meter_id, meant.direction, meant.carrier, count.time_us, f"{count.counter_j:f}"),
        *(meant.method or "", origin.source_file or "", origin.source_line or 0),
    )


def _settled(series: list[Count]) -> tuple[list[Count], list[Count]]:
    """Return one count an instant, and those that contradict another of their instant."""
    kept: list[Count] = []
    doubtful: list[Count] = []
    for _, group in groupby(series, key=lambda c: c.time_us):
        same = list(group)
        if len({c.counter_j for c in same}) == 1:
            kept.append(same[0])
        else:
            doubtful += same
    return kept, doubtful


def _span(first: Count, last: Count) -> MeterReading:
    meant = last.meant
    if first.meant.method == "estimated":
        # A span is only as good as the worse of its ends.
        meant = meant._replace(method="estimated")
    energy, start_us, end_us = between(first.counter_j, last.counter_j), first.time_us, last.time_us
    return MeterReading(
        reading_id=content_id(meant, start_us, end_us, energy, first.counter_j, last.counter_j),
        meter_id=meant.meter_id,
        start_us=start_us,
        end_us=end_us,
        energy_j=energy,
        direction=meant.direction,
        carrier=meant.carrier,
        method=meant.method,
        counter_start_j=first.counter_j,
        counter_end_j=last.counter_j,
        grade=grade_of(meant.method),
        origin=last.origin,
    )


def _contradiction(doubtful: list[Count]) -> Finding:
    first = min(doubtful, key=lambda c: (c.origin.source_file or "", c.origin.source_line or 0))
    counts = counted(len(doubtful), "count contradicts", "counts contradict")
    return Finding(
        code="CL362",
        severity="error",
        message=f"{counts} each other at one instant; left out",
        file=first.origin.source_file,
        line=first.origin.source_line,
        subject=first.meant.meter_id,
        mend="keep the right one",
    )
