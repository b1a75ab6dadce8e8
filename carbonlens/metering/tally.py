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

from carbonlens.domain.finding import Finding
from carbonlens.domain.units import US_PER_S
from carbonlens.metering.pace import period_s
from carbonlens.metering.sensors import Channel, SensorInfo
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

_EDGE_US: Final = 50_000
"""An edge reading is this near to its edge, at most: nobody waits longer for one."""

WHOLE_SHARE: Final = 0.99
"""Share of the window from which a reading is taken as complete."""

_OF_THE_PART: Final = frozenset({"CL120", "CL121", "CL127"})
"""Findings about one stretch's length and cover; the whole window has its own."""

Step = tuple[int, int, float]
"""From, to (microseconds since the start) and what was gained."""

_SIGNAL_KIND: Final[dict[str, Kind]] = {"cumulative": "counter", "instant": "instant", "average": "average"}


class Gained(msgspec.Struct, frozen=True, kw_only=True):
    """What one channel gained over the window.

    Attributes:
        amount: Joules or seconds; ``None`` when no reading tells.
        covered_s: Seconds of the window that readings stand for.
        u_random: One sigma of the window's own error, in the amount's unit.
        u_common: One sigma of the error all readings of this device share.
        steps: Where in the window it was gained, in time order.
    """

    amount: float | None
    covered_s: float
    u_random: float = 0.0
    u_common: float = 0.0
    steps: tuple[Step, ...] = ()
    findings: tuple[Finding, ...] = ()


class ChannelTally(Protocol):
    """Takes one channel's readings in time order."""

    def add(self, t_us: int, value: float | None) -> None:
        """Take a reading; ``None`` is one that failed."""
        ...

    def finish(self, window_us: int) -> Gained:
        """Return what was gained from 0 to the end of the window."""
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
        calibration = _usable_calibration(channel) if info.unit == "J" else None
        # Of a calibration a counter takes the gain alone (metering.calibrations).
        self._factor = 1.0 if calibration is None else calibration.gain.value or 1.0

    def add(self, t_us: int, value: float | None) -> None:
        """Take a reading; a failed one costs nothing as long as a later one comes."""
        if value is None or not math.isfinite(value):
            return
        begins = self._last is None
        if self._last is not None:
            if t_us <= self._last[0]:
                return
            gain = difference(self._last[1], value, self._channel.max_range)
            if gain is None:
                self._break_off()
                begins = True
            else:
                self._wraps += value < self._last[1]
                self._unrolled += gain * self._factor
        self._last = (t_us, value)
        self._recent.append((t_us, self._unrolled, begins))
        while self._recent[0][0] < t_us - NEAR_US:
            self._keep(*self._recent.popleft())

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
        readings = [*self._kept, *((t, j) for t, j, _ in self._recent)]
        parts = [p for p in _unbroken(readings) if len(p) > 1]
        if not parts:
            return Gained(amount=None, covered_s=0.0)
        lost_us = sum(b[0][0] - a[-1][0] for a, b in pairwise(parts))
        noted = list(_wrapped(self._wraps))
        if len(_unbroken(readings)) > 1:
            noted.append(_reset(len(_unbroken(readings)) - 1, lost_us))
        steps = tuple((a[0], b[0], b[1] - a[1]) for part in parts for a, b in pairwise(part))
        if self._info.unit != "J":
            covered_us = float(sum(b - a for a, b, _ in steps))
            return Gained(
                amount=math.fsum(s[2] for s in steps),
                covered_s=_whole_if_near(readings, covered_us, window_us) / US_PER_S,
                steps=steps,
                findings=tuple(noted),
            )
        sensor = signal_sensor(self._info, self._channel, 0.0)
        integrals = [integrate_counter(p, p[0][0], p[-1][0], sensor) for p in parts]
        merged = _merged(integrals, steps, noted)
        whole_us = _whole_if_near(readings, merged.covered_s * US_PER_S, window_us, len(parts))
        return msgspec.structs.replace(merged, covered_s=whole_us / US_PER_S)


class PowerTally:
    """Samples of power, integrated stretch by stretch.

    Args:
        info: The sensor.
        channel: The device.
    """

    def __init__(self, info: SensorInfo, channel: Channel) -> None:
        """Start without a sample."""
        self._info = info
        self._channel = channel
        self._samples: list[tuple[int, float | None]] = []
        self._from_us = 0
        self._integrals: list[Integral] = []
        self._steps: list[Step] = []

    def add(self, t_us: int, value: float | None) -> None:
        """Take a sample; the time a failed one stood for is not covered."""
        if self._samples and t_us <= self._samples[-1][0]:
            return
        self._samples.append((t_us, None if value is None or not math.isfinite(value) else value))
        while t_us >= self._from_us + CHUNK_US + _SETTLED_US:
            self._close(self._from_us + CHUNK_US)

    def _close(self, to_us: int) -> None:
        pace_s = period_s(self._from_us / US_PER_S, power=True)
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
        self._samples = [s for s in self._samples if s[0] >= to_us - _CONTEXT_US]
        self._from_us = to_us

    def finish(self, window_us: int) -> Gained:
        """Return the sum over all stretches."""
        while window_us > self._from_us:
            self._close(min(self._from_us + CHUNK_US, window_us))
        return _merged(self._integrals, tuple(self._steps), ())


class Tally:
    """All channels of a session's sensors.

    Args:
        infos: The sensors, in the order of each sample's values.
    """

    def __init__(self, infos: Sequence[SensorInfo]) -> None:
        """Start without a sample."""
        self.infos = tuple(infos)
        self._channels = [[_tally(info, channel) for channel in info.channels] for info in infos]
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
        gap_us=GAP_PERIODS * max(pace_s, info.update_period_s) * US_PER_S or None,
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


def _tally(info: SensorInfo, channel: Channel) -> ChannelTally:
    return PowerTally(info, channel) if info.unit == "W" else CounterTally(info, channel)


def _unbroken(readings: Sequence[tuple[int, float | None]]) -> list[list[tuple[int, float]]]:
    parts: list[list[tuple[int, float]]] = [[]]
    for t_us, joules in readings:
        if joules is None:
            parts.append([])
        else:
            parts[-1].append((t_us, joules))
    return [p for p in parts if p]


def _whole_if_near(
    readings: Sequence[tuple[int, float | None]], covered_us: float, window_us: int, parts: int = 1
) -> float:
    """Return what is covered: all, if the edges were read and only the driver took a while for it.

    A dear read is of a moment some milliseconds before the edge, at the start as at
    the end, so that its difference spans the window's length.
    """
    near = abs(readings[0][0]) <= _EDGE_US and abs(window_us - readings[-1][0]) <= _EDGE_US
    if parts == 1 and near and covered_us >= window_us - 2 * _EDGE_US:
        return window_us
    return min(covered_us, window_us)


def _merged(integrals: Sequence[Integral], steps: tuple[Step, ...], noted: Sequence[Finding]) -> Gained:
    """Return the sum of stretches: their own errors in quadrature, the common one linearly."""
    told = [i for i in integrals if i.estimate.value is not None]
    covered_s = math.fsum(i.covered_s for i in told)
    findings = {f.code: f for i in integrals for f in i.findings if f.code not in _OF_THE_PART}
    said = (*noted, *(f for f in findings.values() if f.code not in {n.code for n in noted}))
    if not told:
        return Gained(amount=None, covered_s=0.0, findings=said)
    return Gained(
        amount=math.fsum(i.estimate.value or 0.0 for i in told),
        covered_s=covered_s,
        u_random=math.hypot(*(i.estimate.u_random for i in told)),
        u_common=math.fsum(math.hypot(*i.estimate.u_by_source.values()) for i in told),
        steps=steps,
        findings=said,
    )


def _wrapped(wraps: int) -> tuple[Finding, ...]:
    if not wraps:
        return ()
    message = f"the counter passed its range {wraps} times; the differences are exact"
    return (Finding(code="CL122", severity="info", message=message),)


def _reset(resets: int, lost_us: float) -> Finding:
    return Finding(
        code="CL123",
        severity="warning",
        message=f"the counter fell back {resets} times (reset, or a wrap of unknown range): "
        f"the energy of {lost_us / US_PER_S:g} s is not known",
        mend="make the counter's range readable, or read power beside it",
    )
