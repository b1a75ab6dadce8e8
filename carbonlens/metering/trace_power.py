"""Power out of a run's trace: of a device as it told it, and of a meter from its joules."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import Final

from carbonlens.domain.units import US_PER_S
from carbonlens.metering.sensors import VOID
from carbonlens.metering.trace_file import Column, RunTrace
from carbonlens.metering.trace_pair import Trace, look_s
from carbonlens.signals.sensor import GAP_PERIODS

REPLAYED: Final = "replay:"
EXTERNAL: Final = "external:"


def is_reference(column: Column) -> bool:
    """Tell whether a column is of an external meter: grade A, as only those are."""
    return column.sensor.grade == "A"


def tells_power(column: Column) -> bool:
    """Tell whether a column is of a device's own power readings, which a line can correct."""
    return column.sensor.unit == "W" and column.sensor.kind in {"instant", "average"}


def meter_name(column: Column) -> str:
    """Return a meter's name as the user declared it."""
    return column.sensor.name.removeprefix(REPLAYED).removeprefix(EXTERNAL)


def device_power(trace: RunTrace, column: int) -> Trace:
    """Return a device's power readings, no closer together than it has new ones.

    Of readings closer than that a calibration would keep those alone that differ from the
    one before, and lose what the device held steady.

    Args:
        trace: The run's readings.
        column: Place of the device's column.
    """
    apart_us = look_s(trace.columns[column].sensor) * US_PER_S
    kept: list[tuple[int, float]] = []
    for t_us, watts in trace.readings(column):
        if not kept or t_us - kept[-1][0] >= apart_us:
            kept.append((t_us, watts))
    return Trace(tuple(float(t) for t, _ in kept), tuple(w for _, w in kept))


def meter_power(trace: RunTrace, columns: Sequence[int]) -> Trace:
    """Return the power of a meter; of a counter the mean between two readings, at the first.

    Args:
        trace: The run's readings.
        columns: Places of the meter's columns: its rails, which are summed. A moment at which
            one of them told nothing tells nothing of the sum.
    """
    told = [
        (t_us, math.fsum(v for v in values if v is not None))
        for t_us, values in _of(trace, columns)
        if None not in values
    ]
    if trace.columns[columns[0]].sensor.unit == "W":
        return Trace(tuple(float(t) for t, _ in told), tuple(w for _, w in told))
    means = list(_means(told))
    return Trace(tuple(t for t, _ in means), tuple(w for _, w in means))


def is_void(trace: RunTrace, columns: Sequence[int]) -> bool:
    """Tell whether a meter said in this run that nothing it told is true.

    Args:
        trace: The run's readings.
        columns: Places of the meter's columns.
    """
    return any(VOID in values for _, values in _of(trace, columns))


def spacing_us(trace: Trace) -> float | None:
    """Return the median time between readings; ``None`` for fewer than two."""
    return median(b - a for a, b in pairwise(trace.t_us)) if len(trace.t_us) > 1 else None


def in_blocks(trace: Trace, block_us: float, *, earlier_us: float = 0.0) -> Trace:
    """Return the means of readings over blocks of time, at the first reading of each.

    Args:
        trace: Power, as a device told it.
        block_us: Length of a block.
        earlier_us: How long before its time each reading was true.
    """
    blocks: dict[int, list[tuple[float, float]]] = {}
    for t_us, watts in zip(trace.t_us, trace.power_w, strict=True):
        if watts is not None:
            blocks.setdefault(int(t_us // block_us), []).append((t_us - earlier_us, watts))
    told = list(blocks.values())
    return Trace(
        tuple(block[0][0] for block in told),
        tuple(math.fsum(w for _, w in block) / len(block) for block in told),
    )


def _of(trace: RunTrace, columns: Sequence[int]) -> Iterator[tuple[int, tuple[float | None, ...]]]:
    for t_us, values in trace.rows:
        yield t_us, tuple(values[c] for c in columns)


def _means(told: Iterable[tuple[int, float]]) -> Iterator[tuple[float, float | None]]:
    steps = [(a, b) for a, b in pairwise(told) if b[0] > a[0]]
    longest_us = GAP_PERIODS * median(b[0] - a[0] for a, b in steps) if steps else 0.0
    for (a_us, a_j), (b_us, b_j) in steps:
        # A counter that falls was begun anew: what lies between is not known.
        known = b_j >= a_j and b_us - a_us <= longest_us
        yield float(a_us), (b_j - a_j) * US_PER_S / (b_us - a_us) if known else None
