"""Integrate: joules of a window from counter readings or power samples, with their interval.

``counter_energy`` and ``power_energy`` give the estimate alone; ``integrate_counter``
and ``integrate_power`` also say what is covered, what was found and what the
interval is made of. Plain sequences need nothing beyond the core; numpy arrays go
through ``kernel`` and give the same figures.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from carbonlens.domain.estimate import Estimate
from carbonlens.domain.finding import Finding
from carbonlens.domain.units import US_PER_S
from carbonlens.signals import counters, series
from carbonlens.signals.integral import Integral, known, nothing
from carbonlens.signals.interval_parts import Window
from carbonlens.signals.profile import Profile, stretches
from carbonlens.signals.sensor import GAP_PERIODS, Kind, Sensor

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from carbonlens.signals.kernel import ArraySeries

    Array: TypeAlias = npt.NDArray[np.float64] | npt.NDArray[np.int64]

_POWER_KINDS: Final = ("instant", "average")

ENOUGH_MOVES: Final = 10
"""Moves from which on a power sensor that repeats itself is taken to be polled too often."""

SLOWEST_COUNTER_US: Final = US_PER_S
"""Update period of a counter of which none is known, at most.

RAPL moves about every millisecond, NVML's counter every 20 to 100 ms by board.
"""


def counter_energy(
    readings: Iterable[tuple[float, float | None]],
    start_us: float,
    end_us: float,
    *,
    max_range: float | None = None,
    update_period_us: float | None = None,
) -> Estimate:
    """Return the joules between two times from a cumulative counter.

    Args:
        readings: Pairs of time in microseconds and counter in joules; ``None``
            for a reading that failed.
        start_us: Start of the window.
        end_us: End of the window.
        max_range: Joules at which the counter wraps; ``None`` if unknown.
        update_period_us: How often the counter moves; by default the median
            spacing of the readings, or of the moves where it repeats itself.

    Raises:
        ValueError: If the window ends before it starts.
    """
    sensor = Sensor(kind="counter", max_range=max_range, update_period_us=update_period_us)
    return integrate_counter(readings, start_us, end_us, sensor).estimate


def power_energy(  # noqa: PLR0913 - the parts of a sensor by name, for callers outside
    t_us: Sequence[float] | Array,
    power_w: Sequence[float | None] | Array,
    start_us: float,
    end_us: float,
    *,
    kind: Literal["instant", "average"],
    update_period_us: float | None = None,
    lag_us: float = 0,
    gap_us: float | None = None,
) -> Estimate:
    """Return the joules between two times from power samples.

    A sample holds until the next one, the end, or ``gap_us`` after it, whichever
    comes first, also past the last sample. Before the first nothing is known.

    Args:
        t_us: Times of the samples in microseconds.
        power_w: Power in watts; ``None`` or not a number for a reading that failed.
        start_us: Start of the window.
        end_us: End of the window.
        kind: ``"instant"``, or ``"average"`` over the update period before the sample.
        update_period_us: How often the sensor updates; by default the median
            spacing of the samples, those that failed among them.
        lag_us: How long ago a sample was true when it was read.
        gap_us: Longest time a sample stands for; by default 3 update periods.

    Raises:
        ValueError: If the window ends before it starts, a time is no number, lengths differ, or
            the kind is none.
    """
    if kind not in _POWER_KINDS:
        raise ValueError(f"kind is {kind!r}: give one of {', '.join(map(repr, _POWER_KINDS))}")
    sensor = Sensor(kind=kind, update_period_us=update_period_us, lag_us=lag_us, gap_us=gap_us)
    return integrate_power(t_us, power_w, start_us, end_us, sensor).estimate


def integrate_counter(
    readings: Iterable[tuple[float, float | None]], start_us: float, end_us: float, sensor: Sensor
) -> Integral:
    """Return the integral of a cumulative counter, with what it rests on.

    A difference that an edge of the window cuts counts by its share of time. A
    counter that did not move is not zero: if its moves around the window are
    known, the window gets its share of the one it lies in, else it is unknown.

    Args:
        readings: Pairs of time in microseconds and counter in joules; ``None``
            for a reading that failed.
        start_us: Start of the window.
        end_us: End of the window.
        sensor: What is known about the counter.

    Raises:
        ValueError: If the window ends before it starts.
    """
    _check(start_us, end_us, sensor)
    pairs = list(readings)
    told = series.clean((t for t, _ in pairs), (j for _, j in pairs))
    moves = told.moves()
    found = counters.differences(told.t_us, told.values, sensor.max_range)
    updates = stretches(moves.t_us, counters.differences(moves.t_us, moves.values, sensor.max_range).joules)
    findings = [*series.faults(told.dropped), *counters.notes(found)]
    for profile in (stretches(told.t_us, found.joules), updates):
        joules, covered_s = profile.energy(start_us, end_us)
        if joules:
            break
    else:
        unmoved = [_unmoved(start_us, end_us)] if len(told.t_us) > 1 and end_us > start_us else []
        return nothing(start_us, end_us, [*findings, *unmoved])
    window = Window(
        profile=profile,
        updates=updates,
        sensor=sensor,
        start_us=start_us,
        end_us=end_us,
        energy_j=joules,
        covered_s=covered_s,
        period_us=sensor.update_period_us or min(_own_period_us(told, "counter"), SLOWEST_COUNTER_US),
    )
    return known(window, findings)


def integrate_power(
    t_us: Sequence[float] | Array,
    power_w: Sequence[float | None] | Array,
    start_us: float,
    end_us: float,
    sensor: Sensor,
) -> Integral:
    """Return the integral of power samples, with what it rests on.

    Args:
        t_us: Times of the samples in microseconds.
        power_w: Power in watts; ``None`` or not a number for a reading that failed.
        start_us: Start of the window.
        end_us: End of the window.
        sensor: What is known about the sensor.

    Raises:
        ValueError: If the window ends before it starts, or lengths differ.
    """
    _check(start_us, end_us, sensor)
    told = _clean(t_us, power_w)
    findings = series.faults(told.dropped)
    # How often a sensor is read does not change with what it answers.
    spacing_us = sensor.update_period_us or told.pace_us
    hold_us = sensor.gap_us if sensor.gap_us is not None else GAP_PERIODS * (spacing_us or 0.0)
    if not hold_us:
        # One sample of an unknown period: how long it holds is not known.
        return nothing(start_us, end_us, findings)
    for_ever = math.isinf(hold_us)
    if for_ever:
        # A sample that holds for ever holds until the end of the window.
        hold_us = max(end_us - _first_us(told), 0.0) + US_PER_S
    shift_us = _shift_us(sensor, spacing_us or hold_us)
    if sensor.kind == "average":
        # A mean tells of all its window: of the time up to its reading as well.
        hold_us = max(hold_us, shift_us)
    if for_ever:
        hold_us += abs(shift_us)
    profile: Profile = told.held(hold_us, shift_us)
    joules, covered_s = profile.energy(start_us, end_us)
    if not covered_s:
        return nothing(start_us, end_us, findings)
    window = Window(
        profile=profile,
        updates=profile,
        sensor=sensor,
        start_us=start_us,
        end_us=end_us,
        energy_j=joules,
        covered_s=covered_s,
        period_us=max(
            sensor.update_period_us or _own_period_us(told, sensor.kind), told.spacing_us or hold_us
        ),
    )
    return known(window, findings)


def without_idle_tail(total: Estimate, idle_w: Estimate, tail_s: float) -> Estimate:
    """Return the energy of work from a window that runs on into idleness.

    Sensors lag: a window that ends with the work misses its end. One that ends a
    while later (0.3 s on an H100) holds all of it and some idle energy, which is
    taken off here; a gain both figures share cancels as far as it is shared.

    Args:
        total: Joules from the start of the work to the end of the tail.
        idle_w: Idle power in watts, measured with the same context open.
        tail_s: Seconds from the end of the work to the end of the window.
    """
    return total.minus(idle_w.scale(tail_s, total.unit))


def _check(start_us: float, end_us: float, sensor: Sensor) -> None:
    if not (math.isfinite(start_us) and math.isfinite(end_us)):
        raise ValueError(f"a window from {start_us} us to {end_us} us has no length")
    if sensor.update_period_us == math.inf:
        raise ValueError("update_period_us is inf: give microseconds, or None where it is not known")
    for name, given in (("update_period_us", sensor.update_period_us), ("gap_us", sensor.gap_us)):
        if given is not None and not given >= 0:
            raise ValueError(f"{name} is {given}: give microseconds from 0")
    if not math.isfinite(sensor.lag_us):
        raise ValueError(f"lag_us is {sensor.lag_us}: give microseconds")
    if not end_us >= start_us:
        raise ValueError(f"the window ends at {end_us} us, before its start at {start_us} us")


def _clean(
    t_us: Sequence[float] | Array, power_w: Sequence[float | None] | Array
) -> series.Series | ArraySeries:
    if hasattr(power_w, "__array__"):
        from carbonlens.signals import kernel

        return kernel.clean(t_us, power_w)
    return series.clean(t_us, power_w)


def _first_us(told: series.Series | ArraySeries) -> float:
    return float(told.t_us[0]) if len(told.t_us) else math.inf


def _own_period_us(told: series.Series | ArraySeries, kind: Kind) -> float:
    """Return the time between a sensor's own updates, where readings repeat themselves.

    Steady power repeats itself too, so it takes some moves, and a low quantile of
    the times between them. A counter that stands still waits for its next tick.
    """
    spacing_us, moves = told.spacing_us or 0.0, told.moves()
    if len(moves.t_us) <= (2 if kind == "counter" else ENOUGH_MOVES):
        return spacing_us
    return max(spacing_us, moves.quick_spacing_us or 0.0)


def _shift_us(sensor: Sensor, spacing_us: float) -> float:
    """Return how long before its reading a sample starts to hold."""
    if sensor.kind != "average":
        return sensor.lag_us
    # The mean belongs to the middle of its own window, the step to its own middle.
    return sensor.lag_us + ((sensor.window_us or spacing_us) + spacing_us) / 2


def _unmoved(start_us: float, end_us: float) -> Finding:
    return Finding(
        code="CL124",
        severity="warning",
        message=f"the counter did not move in {(end_us - start_us) / US_PER_S:g} s: "
        "the window is shorter than its update period, or the counter stands still",
        mend="repeat the work within one window, or read power",
    )
