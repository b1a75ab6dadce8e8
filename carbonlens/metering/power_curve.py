"""Power curve: power over a run's time, out of the very readings that its energy is made of.

Each of those readings is drawn over time as its sensor told it: power as it was read, a
counter or CPU time as the mean between two reads. It is scaled so that it holds the energy
that the record states of it (on the curve of a model, or of the share of a divided device).
Stretches of one length sum them; one of which a reading told nothing is a gap.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import msgspec

from carbonlens.domain.trace import PhaseSpan, PowerTrace
from carbonlens.domain.units import US_PER_S
from carbonlens.metering.pace import period_s
from carbonlens.metering.parts import Part
from carbonlens.metering.phase_energy import place_of
from carbonlens.metering.phase_spans import Span, longest
from carbonlens.metering.plausible import TICK_S, least_w, most_w
from carbonlens.metering.power_obstacles import LEAST_BIN_US, obstacle
from carbonlens.metering.sealing import Sample, Sealed
from carbonlens.metering.sensors import Channel, SensorInfo
from carbonlens.metering.tally import MOST_COUNTED, MOST_THREADS, signal_sensor
from carbonlens.signals.calibrate import Calibration
from carbonlens.signals.counters import difference

MOST_BINS: Final = 300
"""Stretches of a curve: least and most of each are 600 points, more than a chart has pixels for."""

_LEAST_STEP_US: Final = LEAST_BIN_US / 2
"""What a counter gained between looks is drawn over this time at least: a switch of phases looks too,
however short after another look, and CPU time has ticks of its own."""

_TICKS: Final = 5
"""Ticks that a counter's step spans at least. A look just before a tick and one just after it differ
by one, whatever was drawn: over five that is a fifth of its power, over one all of it."""

_MOST_SPANS: Final = 100
_KNOWN_SHARE: Final = 0.5
"""Part of a stretch that readings must stand for; what they do not is short beside the stretch."""

_OF_A_BIN: Final = 0.25
_OF_A_STEP: Final = 0.5
"""A step's power counts among the least and most of the stretches that hold such a part of it."""

_DIGITS: Final = 5


class _Bins:
    """What one reading amounts to in each stretch."""

    def __init__(self, count: int, bin_us: float) -> None:
        self._bin_us = bin_us
        self.amount = [0.0] * count
        self.covered_us = [0.0] * count
        self.low = [math.inf] * count
        self.high = [-math.inf] * count

    def add(self, from_us: float, to_us: float, rate: float) -> None:
        """Take a step: so much a microsecond between two times."""
        count, bin_us = len(self.amount), self._bin_us
        from_us, to_us = max(from_us, 0.0), min(to_us, count * bin_us)
        if to_us <= from_us:
            return
        for k in range(int(from_us / bin_us), min(math.ceil(to_us / bin_us), count)):
            overlap_us = min(to_us, (k + 1) * bin_us) - max(from_us, k * bin_us)
            if overlap_us <= 0:
                continue
            self.amount[k] += rate * overlap_us
            self.covered_us[k] += overlap_us
            if overlap_us >= _OF_A_BIN * bin_us or overlap_us >= _OF_A_STEP * (to_us - from_us):
                self.low[k] = min(self.low[k], rate)
                self.high[k] = max(self.high[k], rate)


def _calibration(channel: Channel) -> Calibration | None:
    """Return the calibration that the record's energy was corrected by."""
    calibration = channel.calibration
    return calibration if calibration is not None and calibration.usable else None


def joined_us(info: SensorInfo) -> float:
    """Return the least length of a step of which a sensor's least and most are the mean; 0 of power.

    Args:
        info: The sensor.
    """
    return 0.0 if info.unit == "W" else max(_TICKS * info.update_period_s * US_PER_S, _LEAST_STEP_US)


class _Line(Protocol):
    """Draws one channel's readings, which come in time order."""

    def add(self, t_us: float, value: float | None) -> None:
        """Take a reading; ``None`` is one that failed."""

    def end(self, window_us: float) -> None:
        """Draw what is left."""


class _Counter:
    """A counter: the mean between two reads, of several of its ticks.

    What is added, broken off and left out is what its tally (``tally.CounterTally``) does of it.
    """

    def __init__(self, info: SensorInfo, channel: Channel, bins: _Bins) -> None:
        self._max_range = channel.max_range
        self._most = most_w(info, channel) if info.unit == "J" else MOST_THREADS
        calibration = _calibration(channel) if info.unit == "J" else None
        # Of a calibration a counter takes the gain alone (metering.calibrations).
        self._factor = 1.0 if calibration is None else calibration.gain.value or 1.0
        self._joined_us = joined_us(info)
        self._bins = bins
        self._last: tuple[float, float] | None = None
        self._jumped: tuple[float, float] | None = None
        self._total = 0.0
        self._ends: list[tuple[float, float]] = []
        """When the step begins that is next to be drawn, and ends once it is long enough; the sums there."""

    def add(self, t_us: float, value: float | None) -> None:
        # A read that failed costs nothing: the next one tells what was gained since.
        if value is None or not 0 <= value <= MOST_COUNTED or (self._last and t_us <= self._last[0]):
            return
        if self._last is None:
            self._ends = [(t_us, self._total)]
        else:
            gain = self._gain(self._last, t_us, value)
            if gain is not None and math.isinf(gain):
                # Alone it is at fault itself; where the next one goes on from it, the counter was set.
                gain = None if self._jumped is None else self._gain(self._jumped, t_us, value)
                if self._jumped is None or gain is None or math.isinf(gain):
                    self._jumped = (t_us, value)
                    return
                self._break_off(self._jumped[0])
            if gain is None:
                self._break_off(t_us)
            else:
                self._total += gain * self._factor
                self._join(t_us)
        self._last, self._jumped = (t_us, value), None

    def _gain(self, since: tuple[float, float], t_us: float, value: float) -> float | None:
        """Return what was gained; ``None`` after a reset, infinity where it is more than can be."""
        gain = difference(since[1], value, self._max_range)
        most = self._most * max((t_us - since[0]) / US_PER_S, TICK_S)
        return math.inf if gain is not None and (gain > most or t_us <= since[0]) else gain

    def _join(self, t_us: float) -> None:
        """Draw a step as soon as the next is long enough too, so that none at the end is too short."""
        if t_us - self._ends[-1][0] >= self._joined_us:
            self._ends.append((t_us, self._total))
        if len(self._ends) > 2:  # both ends of a step, and that of the next
            (from_us, before), (to_us, after), *_ = self._ends
            self._bins.add(from_us, to_us, (after - before) / (to_us - from_us))
            del self._ends[0]

    def _break_off(self, begins_us: float) -> None:
        """Draw what is known; nothing is of the time from the last reading to the next beginning."""
        if self._last is not None and self._ends and self._last[0] > self._ends[0][0]:
            (from_us, before), to_us = self._ends[0], self._last[0]
            self._bins.add(from_us, to_us, (self._total - before) / (to_us - from_us))
        self._ends = [(begins_us, self._total)]

    def end(self, window_us: float) -> None:
        self._break_off(window_us)


class _Power:
    """Power: a reading holds until the next, as it is integrated (``signals.integrate``)."""

    def __init__(self, info: SensorInfo, channel: Channel, bins: _Bins) -> None:
        self._info, self._channel, self._bins = info, channel, bins
        self._least, self._most = least_w(channel), most_w(info, channel)
        self._calibration = _calibration(channel)
        sensor = signal_sensor(info, channel, 0.0)
        self._earlier_us = sensor.lag_us
        if sensor.kind == "average":
            # The mean belongs to the middle of its own window, the step to its own middle.
            spacing_us = sensor.update_period_us or LEAST_BIN_US
            self._earlier_us += ((sensor.window_us or spacing_us) + spacing_us) / 2
        self._holds_us: dict[float, float] = {}
        self._last: tuple[float, float | None] | None = None

    def add(self, t_us: float, value: float | None) -> None:
        if self._last is not None and t_us <= self._last[0]:
            return
        watts = value if value is not None and self._least <= value <= self._most else None
        if watts is not None and self._calibration is not None:
            watts = self._calibration.correct([watts])[0]
        self._draw(t_us)
        self._last = (t_us, watts)

    def _draw(self, until_us: float) -> None:
        """Draw the last reading, as far as it stands for the time to the next one."""
        from_us, watts = self._last or (0.0, None)
        if watts is None:
            return
        to_us = min(until_us, from_us + self._hold_us(from_us))
        self._bins.add(from_us - self._earlier_us, to_us - self._earlier_us, watts / US_PER_S)

    def _hold_us(self, age_us: float) -> float:
        pace_s = period_s(max(age_us, 0.0) / US_PER_S, power=True)
        if pace_s not in self._holds_us:
            gap_us = signal_sensor(self._info, self._channel, pace_s).gap_us
            self._holds_us[pace_s] = math.inf if gap_us is None else max(gap_us, self._earlier_us)
        return self._holds_us[pace_s]

    def end(self, window_us: float) -> None:
        self._draw(window_us + max(self._earlier_us, 0.0))


def power_trace(
    samples: Iterable[Sample],
    infos: Sequence[SensorInfo],
    sealed: Sealed,
    window_us: int,
    spans: Iterable[Span] = (),
) -> PowerTrace | None:
    """Return a run's power over time; ``None`` where that cannot be told.

    It cannot where the energy of a part of the run is not known, or no sum, or where the run
    is shorter than two looks.

    Args:
        samples: In time order, one at a time.
        infos: The sensors, in the order of each sample's values.
        sealed: What the run's readings were made from.
        window_us: Length of the run.
        spans: When its phases were.
    """
    if obstacle(infos, sealed, window_us) is not None:
        return None
    count = min(window_us // LEAST_BIN_US, MOST_BINS)
    bin_us = window_us / count
    drawn = {
        place: _Bins(count, bin_us) for part in sealed.parts if (place := place_of(part, infos)) is not None
    }
    _draw(samples, infos, drawn, window_us)
    trace = _summed(
        list(drawn.values()), [_scale(p) for p in sealed.parts], bin_us, longest(spans, _MOST_SPANS)
    )
    over_s = max(joined_us(infos[i]) for i, _ in drawn) / US_PER_S
    return None if trace is None else msgspec.structs.replace(trace, over_s=over_s)


def _draw(
    samples: Iterable[Sample],
    infos: Sequence[SensorInfo],
    drawn: dict[tuple[int, int], _Bins],
    window_us: int,
) -> None:
    lines: dict[tuple[int, int], _Line] = {
        (i, k): (_Power if infos[i].unit == "W" else _Counter)(infos[i], infos[i].channels[k], bins)
        for (i, k), bins in drawn.items()
    }
    for sample in samples:
        skew = sample.skew_us or ()
        for (i, k), line in lines.items():
            told = sample.values[i] if i < len(sample.values) else ()
            if told is None or told:
                t_us = sample.t_us + (skew[i] if i < len(skew) else 0)
                line.add(t_us, told[k] if told and k < len(told) else None)
    for line in lines.values():
        line.end(window_us)


def _scale(part: Part) -> float:
    """Return joules of the record for one of what its sensor told."""
    told = math.fsum(gained for _, _, gained in part.steps)
    return float(part.reading.energy_j or 0) / told if told > 0 else 0.0


def _summed(
    drawn: Sequence[_Bins], scales: Sequence[float], bin_us: float, spans: Iterable[Span]
) -> PowerTrace | None:
    least_us = _KNOWN_SHARE * bin_us
    mean: list[float | None] = []
    low: list[float | None] = []
    high: list[float | None] = []
    for k in range(len(drawn[0].amount)):
        if any(bins.covered_us[k] < least_us for bins in drawn):
            mean.append(None)
            low.append(None)
            high.append(None)
            continue
        pairs = list(zip(drawn, scales, strict=True))
        told = math.fsum(b.amount[k] / b.covered_us[k] * s for b, s in pairs) * US_PER_S
        # One that only touched the stretch told its mean all the same.
        least = math.fsum(min(b.low[k], b.amount[k] / b.covered_us[k]) * s for b, s in pairs) * US_PER_S
        most = math.fsum(max(b.high[k], b.amount[k] / b.covered_us[k]) * s for b, s in pairs) * US_PER_S
        mean.append(_short(told))
        low.append(min(_short(least), _short(told)))
        high.append(max(_short(most), _short(told)))
    if all(value is None for value in mean):
        return None
    return PowerTrace(
        bin_s=bin_us / US_PER_S,
        power_w=tuple(mean),
        low_w=tuple(low),
        high_w=tuple(high),
        spans=tuple(
            PhaseSpan(name=s.name, start_s=s.start_us / US_PER_S, end_s=s.end_us / US_PER_S) for s in spans
        ),
    )


def _short(watts: float) -> float:
    return float(f"{watts:.{_DIGITS}g}")
