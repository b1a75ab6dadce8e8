"""Tally: readings become energy while they come in, so that stopping takes no time.

Counters keep few readings: all near the edges of the window and about one a minute
between, with wraps unrolled and resets kept. Power is integrated minute by minute.
What a killed run's journal holds goes through the same tally later.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, Protocol

import msgspec

from carbonlens.domain.units import US_PER_S
from carbonlens.metering.gained import (
    Gained,
    Step,
    lost_between,
    only_impossible,
    reset_of,
    stretches_of,
    summed,
    twin_of,
    up_to_now,
    whole_if_near,
    within,
    wrapped,
)
from carbonlens.metering.pace import SLOW_S, period_s
from carbonlens.metering.plausible import TICK_S, least_w, most_w
from carbonlens.metering.sensors import VOID, Channel, SensorInfo
from carbonlens.signals.calibrate import Calibration
from carbonlens.signals.counters import difference
from carbonlens.signals.integral import Integral
from carbonlens.signals.integrate import integrate_counter, integrate_power
from carbonlens.signals.sensor import GAP_PERIODS, Kind, Sensor

CHUNK_US: Final = 60 * US_PER_S
"""Power is integrated over stretches of this length; the pace changes at a multiple of it."""

NEAR_US: Final = 5 * US_PER_S
"""Readings this near to an edge are all kept: they tell the power there."""

_SETTLED_US: Final = 2 * US_PER_S
"""A stretch is integrated this long after its end, when shifted samples reach past it."""

_CONTEXT_US: Final = 5 * US_PER_S


MOST_COUNTED: Final = 1e14
"""No counter holds more: it is a megawatt for three years."""

MOST_THREADS: Final = 1e5
"""What seconds in use gain in a second at most: they are of many threads at once."""


_SIGNAL_KIND: Final[dict[str, Kind]] = {"cumulative": "counter", "instant": "instant", "average": "average"}


class ChannelTally(Protocol):
    """Takes one channel's readings in time order."""

    def add(self, t_us: int, value: float | None) -> None:
        """Take a reading; ``None`` is one that failed."""
        ...

    def finish(self, window_us: int) -> Gained:
        """Return what was gained from 0 to the end of the window."""
        ...

    def describe(self, info: SensorInfo) -> None:
        """Take a better description of the sensor, before ``finish``."""
        ...


class CounterTally:
    """A counter's readings, few of them kept.

    Args:
        info: The sensor.
        channel: The counter.
    """

    def __init__(self, info: SensorInfo, channel: Channel) -> None:
        """Start without a reading."""
        self._info = info
        self._channel = channel
        self._kept: list[tuple[int, float | None]] = []
        self._recent: deque[tuple[int, float | None, bool]] = deque()
        self._last: tuple[int, float] | None = None
        self._unrolled = 0.0
        self._wraps = 0
        self._failed_first = False
        self._failed_since = False
        self._jumped: tuple[int, float] | None = None
        self._void = False
        self._refused = 0
        self._most_w = most_w(info, channel) if info.unit == "J" else MOST_THREADS
        calibration = _usable_calibration(channel) if info.unit == "J" else None
        # Of a calibration a counter takes the gain alone (metering.calibrations).
        self._factor = 1.0 if calibration is None else calibration.gain.value or 1.0

    def add(self, t_us: int, value: float | None) -> None:
        """Take a reading; a failed one costs nothing as long as a later one comes."""
        # Neither NaN nor infinity passes.
        if value is None or not 0 <= value <= MOST_COUNTED:
            self._void = self._void or value == VOID
            self._refused += value is not None
            self._fail()
            return
        begins = self._last is None
        if self._last is not None:
            if t_us <= self._last[0]:
                return
            gain = self._gain(self._last, t_us, value)
            if gain is not None and math.isinf(gain):
                gain = self._gain_since_jump(t_us, value)
                if gain is None:
                    self._jumped = (t_us, value)
                    self._refused += 1
                    self._fail()
                    return
            if gain is None:
                self._break_off()
                begins = True
            else:
                self._wraps += value < self._last[1]
                self._unrolled += gain * self._factor
        self._last, self._jumped = (t_us, value), None
        self._failed_since = False
        self._recent.append((t_us, self._unrolled, begins))
        while self._recent[0][0] < t_us - NEAR_US:
            self._keep(*self._recent.popleft())

    def _fail(self) -> None:
        if self._last is None:
            self._failed_first = True
        self._failed_since = True

    def describe(self, info: SensorInfo) -> None:
        """Take a better description of the sensor."""
        self._info = info

    def _gain(self, since: tuple[int, float], t_us: int, value: float) -> float | None:
        """Return what was gained; ``None`` after a reset, infinity where it is more than can be."""
        gain = difference(since[1], value, self._channel.max_range)
        most = self._most_w * max((t_us - since[0]) / US_PER_S, TICK_S)
        return math.inf if gain is not None and gain > most else gain

    def _gain_since_jump(self, t_us: int, value: float) -> float | None:
        """Return what was gained since an impossible reading that this one goes on from.

        One such reading alone is at fault and left out; two in a row are a counter that
        was set: what it gained when it jumped is not known.
        """
        if self._jumped is None or t_us <= self._jumped[0]:
            return None
        gain = self._gain(self._jumped, t_us, value)
        if gain is None or math.isinf(gain):
            return None
        self._break_off()
        self._last = self._jumped
        self._recent.append((self._jumped[0], self._unrolled, True))
        return gain

    def _break_off(self) -> None:
        """Mark that what was gained between the last reading and the next is not known."""
        while self._recent:
            self._keep(*self._recent.popleft(), must=True)
        self._kept.append((self._kept[-1][0], None))

    def _keep(self, t_us: int, joules: float | None, begins: bool = False, *, must: bool = False) -> None:
        first = self._kept[0][0] if self._kept else t_us
        if must or begins or t_us - first <= NEAR_US or t_us - self._kept[-1][0] >= CHUNK_US:
            self._kept.append((t_us, joules))

    def finish(self, window_us: int) -> Gained:
        """Return the sum of the known differences inside the window."""
        if self._void:
            return Gained(amount=None, covered_s=0.0)
        readings = [*self._kept, *((t, j) for t, j, _ in self._recent)]
        stretches = stretches_of(readings)
        parts = [within(p, window_us) for p in stretches if len(p) > 1]
        if not parts:
            return Gained(amount=None, covered_s=0.0, findings=only_impossible(self._refused))
        noted = list(wrapped(self._wraps))
        if len(stretches) > 1:
            noted.append(reset_of(len(stretches) - 1, lost_between(stretches, window_us)))
        steps = tuple((a[0], b[0], b[1] - a[1]) for part in parts for a, b in pairwise(part))
        # A reading that stands alone gains nothing, but what lies beside it is lost all the same.
        unbroken = len(stretches) == 1 and not (self._failed_first or self._failed_since)
        if self._info.unit != "J":
            covered_us = float(sum(b - a for a, b, _ in steps))
            return Gained(
                amount=math.fsum(s[2] for s in steps),
                covered_s=whole_if_near(readings, covered_us, window_us, unbroken) / US_PER_S,
                steps=steps,
                findings=tuple(noted),
            )
        sensor = signal_sensor(self._info, self._channel, 0.0)
        integrals = [integrate_counter(p, p[0][0], p[-1][0], sensor) for p in parts]
        merged = summed(integrals, steps, noted)
        whole_us = whole_if_near(readings, merged.covered_s * US_PER_S, window_us, unbroken)
        return msgspec.structs.replace(merged, covered_s=whole_us / US_PER_S)


class PowerTally:
    """Samples of power, integrated stretch by stretch.

    Args:
        info: The sensor.
        channel: The device.
        age_us: Age of the session where the tally begins: its looks are paced by that.
    """

    def __init__(self, info: SensorInfo, channel: Channel, age_us: int = 0) -> None:
        """Start without a sample."""
        self._info = info
        self._channel = channel
        self._age_us = age_us
        self._samples: list[tuple[int, float | None]] = []
        self._from_us = 0
        self._integrals: list[Integral] = []
        self._steps: list[Step] = []
        self._most_w = most_w(info, channel)
        self._least_w = least_w(channel)
        self._refused = 0

    def describe(self, info: SensorInfo) -> None:
        """Take a better description of the sensor."""
        self._info = info

    def add(self, t_us: int, value: float | None) -> None:
        """Take a sample; the time a failed one stood for is not covered."""
        if self._samples and t_us <= self._samples[-1][0]:
            return
        # Neither NaN nor infinity passes.
        possible = value is not None and self._least_w <= value <= self._most_w
        self._refused += value is not None and not possible
        self._samples.append((t_us, value if possible else None))
        while t_us >= self._from_us + CHUNK_US + _SETTLED_US:
            self._close(self._from_us + CHUNK_US)

    def _close(self, to_us: int) -> None:
        pace_s = period_s((self._age_us + self._from_us) / US_PER_S, power=True)
        sensor = signal_sensor(self._info, self._channel, pace_s)
        times = [t for t, _ in self._samples]
        watts = [w for _, w in self._samples]
        calibration = _usable_calibration(self._channel)
        if calibration is not None:
            watts = calibration.correct(watts)
        found = integrate_power(times, watts, self._from_us, to_us, sensor)
        self._integrals.append(found)
        if found.estimate.value is not None:
            self._steps.append((self._from_us, to_us, found.estimate.value))
        # The last sample before holds on, however long ago it was taken.
        last_us = max((t for t, _ in self._samples if t <= to_us), default=to_us)
        self._samples = [s for s in self._samples if s[0] >= min(to_us - _CONTEXT_US, last_us)]
        self._from_us = to_us

    def finish(self, window_us: int) -> Gained:
        """Return the sum over all stretches."""
        while window_us > self._from_us:
            self._close(min(self._from_us + CHUNK_US, window_us))
        found = summed(self._integrals, tuple(self._steps), ())
        if found.amount is not None:
            return found
        return msgspec.structs.replace(found, findings=only_impossible(self._refused))


class Tally:
    """All channels of a session's sensors.

    Args:
        infos: The sensors, in the order of each sample's values.
        age_us: Age of the session where the tally begins.
    """

    def __init__(self, infos: Sequence[SensorInfo], age_us: int = 0) -> None:
        """Start without a sample."""
        self.infos = tuple(infos)
        self._channels = [[_tally(info, channel, age_us) for channel in info.channels] for info in infos]
        # The sampler may still be at a look that the end of the window did not wait for.
        self._lock = threading.Lock()
        self._done = False

    def add(self, sensor: int, t_us: int, values: Sequence[float | None] | None) -> None:
        """Take one sensor's reading.

        Args:
            sensor: Its place among the sensors.
            t_us: When it was read.
            values: One a channel; ``None`` for a reading that failed, nothing for
                a sensor that was not read this time.
        """
        if sensor >= len(self._channels) or (values is not None and not values):
            return
        with self._lock:
            for place, channel in enumerate(() if self._done else self._channels[sensor]):
                value = values[place] if values is not None and place < len(values) else None
                channel.add(t_us, value)

    def take(
        self, t_us: int, values: Sequence[Sequence[float | None] | None], skew_us: Sequence[int] = ()
    ) -> None:
        """Take what one look saw.

        Args:
            t_us: When it was.
            values: One entry a sensor, as of ``add``.
            skew_us: When each sensor was read, from ``t_us`` on; nothing where all were at once.
        """
        with self._lock:
            if self._done:
                return
            for place, told in enumerate(values):
                if told is not None and not told:
                    continue
                at_us = t_us + skew_us[place] if place < len(skew_us) else t_us
                for k, channel in enumerate(self._channels[place] if place < len(self._channels) else ()):
                    channel.add(at_us, told[k] if told is not None and k < len(told) else None)

    def so_far(self, window_us: int) -> tuple[tuple[Gained, ...], ...]:
        """Return what each channel gained until now, while the window goes on.

        Args:
            window_us: Time of the last look.
        """
        twins = self.twin()._channels
        return tuple(tuple(up_to_now(c.finish(window_us), window_us) for c in found) for found in twins)

    def twin(self) -> Tally:
        """Return a copy as it stands, which goes on apart from this one."""
        twin = Tally(())
        twin.infos = self.infos
        with self._lock:
            twin._channels = [[twin_of(channel) for channel in channels] for channels in self._channels]
        return twin

    def describe(self, sensor: int, info: SensorInfo) -> None:
        """Take a sensor's description anew: it may have learnt how often its value changes.

        Args:
            sensor: Its place among the sensors.
            info: With the same channels.
        """
        self.infos = (*self.infos[:sensor], info, *self.infos[sensor + 1 :])
        for channel in self._channels[sensor]:
            channel.describe(info)

    def finish(self, window_us: int) -> tuple[tuple[Gained, ...], ...]:
        """Return what each channel of each sensor gained; nothing is taken any more."""
        with self._lock:
            self._done = True
        return tuple(tuple(c.finish(window_us) for c in channels) for channels in self._channels)


def is_understood(info: SensorInfo) -> bool:
    """Tell whether readings of this kind and unit can be turned into anything."""
    return (info.kind, info.unit) in {
        ("cumulative", "J"),
        ("utilisation", "s"),
        ("use", "s"),
        ("instant", "W"),
        ("average", "W"),
    }


def signal_sensor(info: SensorInfo, channel: Channel, pace_s: float) -> Sensor:
    """Return how a channel reads and errs, for the integration.

    Args:
        info: The sensor.
        channel: The device.
        pace_s: How often it is looked at.
    """
    update_us = info.update_period_s * US_PER_S or None
    offset_w = info.offset_sigma_w
    if offset_w is None and info.grade != "C":
        # The spread of a model or a datasheet figure holds all there is.
        offset_w = 0.0
    sensor = Sensor(
        kind=_SIGNAL_KIND[info.kind],
        source=f"{info.name}:{channel.device}",
        update_period_us=update_us,
        window_us=None if info.window_s is None else info.window_s * US_PER_S,
        lag_us=info.lag_s * US_PER_S,
        lag_u_us=None if info.lag_sigma_s is None else info.lag_sigma_s * US_PER_S,
        gap_us=GAP_PERIODS * max(pace_s, info.update_period_s, SLOW_S if info.slow else 0.0) * US_PER_S
        or None,
        max_range=None,
        duty=info.duty if info.duty is not None or update_us else 1.0,
        gain_u=info.gain_sigma,
        offset_u_w=offset_w,
        rated_w=channel.rated_w,
    )
    calibration = _usable_calibration(channel)
    return sensor if calibration is None else calibration.applied_to(sensor)


def _usable_calibration(channel: Channel) -> Calibration | None:
    return channel.calibration if channel.calibration is not None and channel.calibration.usable else None


def _tally(info: SensorInfo, channel: Channel, age_us: int) -> ChannelTally:
    return PowerTally(info, channel, age_us) if info.unit == "W" else CounterTally(info, channel)
