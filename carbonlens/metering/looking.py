"""Looking: a session's sensors, each read when it is due.

Between the edges of a window a look must cost little: it takes time from the work it
measures. Sensors that need no reading yet are passed over before anything is made. A look
that finds none due leaves a sample only where the last one is old, so that it is known
how far a run came that is killed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, cast

from carbonlens.domain.finding import Finding
from carbonlens.metering.findings import sensor_stalled
from carbonlens.metering.pace import FAST_S, STEADY_S, easy_s
from carbonlens.metering.sealing import Values
from carbonlens.metering.sensors import Sensor, SensorInfo

_SKEW_NS: Final = 1_000_000
"""Sensors read further apart than this have their own times noted."""

_NS_PER_S: Final = 1_000_000_000
_EARLY_S: Final = FAST_S / 2
"""A beat comes a little early at times: what is due within half of one is read now."""

Seen = tuple[tuple[Values, ...], int, tuple[int, ...] | None]
"""What a look saw: values by sensor, its time by the monotonic clock in nanoseconds, and
when each sensor was read from then on in microseconds, where they are far apart."""


class Looking:
    """Reads the sensors of one session.

    Args:
        sensors: In the order of each sample's values; those that may hang wrapped.
        infos: Their descriptions.
        all_at_once: True to read every sensor at every look, but for those that ask for rest.
    """

    def __init__(
        self, sensors: Sequence[Sensor], infos: Sequence[SensorInfo], *, all_at_once: bool = False
    ) -> None:
        """Prepare; nothing is read."""
        self.sensors = tuple(sensors)
        self._lines = [
            _Line(k, sensor, easy_from_s=math.inf if all_at_once else easy_from_s(infos[k], infos))
            for k, sensor in enumerate(self.sensors)
        ]
        # Those that answer at once are read where the window begins or ends.
        self._quick_first = sorted(self._lines, key=lambda line: hasattr(line.sensor, "ask"))
        self._easy_from_s = max((line.easy_from_s for line in self._lines), default=0.0)
        self._counters = [line for line, info in zip(self._lines, infos, strict=True) if info.unit == "J"]
        self._seen_ns = 0
        self.reads_power = any(info.unit == "W" for info in infos)

    def is_easy_at(self, age_s: float) -> bool:
        """Tell whether nothing is lost by waiting at some age of a run.

        Args:
            age_s: Seconds since the window began; from some age on power only stands beside a counter.
        """
        if self._easy_from_s == 0.0:
            return True
        # A counter that is there and dead has nobody's energy: power is all there is, and changes quickly.
        return age_s >= self._easy_from_s and all(line.moves for line in self._counters)

    def edge(self, *, first: bool) -> Seen:
        """Read all sensors at the start or the end of the window.

        The window ends before the last readings, and begins after the first, whatever
        they took: the work does not run meanwhile.

        Args:
            first: Whether the window begins.
        """
        start_ns = time.monotonic_ns()
        for sensor in self.sensors:
            # All that may hang are asked first, so that the work waits once for them and not for each.
            ask = getattr(sensor, "ask", None)
            if ask is not None:
                ask(edge=True)
        values: list[Values] = [()] * len(self._lines)
        times_ns = [start_ns] * len(self._lines)
        for line in reversed(self._quick_first) if first else self._quick_first:
            begin_ns = time.monotonic_ns()
            values[line.place] = _read(line.at_edge)
            line.note(values[line.place], is_first=first)
            times_ns[line.place] = line.read_at(begin_ns, time.monotonic_ns(), bool(values[line.place]), 0.0)
        now_ns = self._seen_ns = time.monotonic_ns() if first else start_ns
        return tuple(values), now_ns, _skew_us(times_ns, now_ns)

    def between(self, now_ns: int, age_s: float) -> Seen | None:
        """Read the sensors that are due; ``None`` when none is and the last look is not old.

        Args:
            now_ns: The monotonic clock.
            age_s: Seconds since the window began.
        """
        due = [line for line in self._quick_first if line.due_ns <= now_ns]
        rest_s = easy_s(age_s)
        if not due and now_ns - self._seen_ns < (rest_s - _EARLY_S) * _NS_PER_S:
            return None
        self._seen_ns = end_ns = now_ns
        values: list[Values] = [()] * len(self._lines)
        read_ns: list[int] = []
        for line in due:
            begin_ns = end_ns
            told = values[line.place] = _read(line.inside)
            end_ns = time.monotonic_ns()
            easy_rest_s = rest_s if line.easy_from_s == 0.0 or self.is_easy_at(age_s) else 0.0
            read_ns.append(line.read_at(begin_ns, end_ns, bool(told), easy_rest_s))
            line.note(told)
        if end_ns - now_ns <= _SKEW_NS:
            return tuple(values), end_ns, None
        times_ns = [end_ns] * len(self._lines)
        for line, at_ns in zip(due, read_ns, strict=True):
            times_ns[line.place] = at_ns
        return tuple(values), end_ns, _skew_us(times_ns, end_ns)

    def said(self) -> list[Finding]:
        """Return what the sensors themselves have to say, before they are closed."""
        said = [sensor_stalled(s.info.name) for s in self.sensors if getattr(s, "stalled", False)]
        for sensor in self.sensors:
            notes = getattr(sensor, "notes", None)
            said += notes() if callable(notes) else ()
        return said


class _Line:
    """One sensor, and when it is to be read next."""

    __slots__ = (
        "_first",
        "at_edge",
        "due_ns",
        "easy_from_s",
        "inside",
        "moves",
        "place",
        "sensor",
        "tells_time",
    )

    def __init__(self, place: int, sensor: Sensor, *, easy_from_s: float) -> None:
        self.place = place
        self.sensor = sensor
        self.easy_from_s = easy_from_s
        self.due_ns = 0.0
        self.at_edge: Callable[[], Values] = partial(sensor.read, edge=True)
        # The edges are read in the user's thread, looks between them in the sampler's.
        here = getattr(sensor, "read_here", None)
        self.inside = cast("Callable[[], Values]", here or partial(sensor.read, edge=False))
        self.tells_time = hasattr(sensor, "read_at_ns")
        self._first: Values = ()
        self.moves = False

    def note(self, told: Values, *, is_first: bool = False) -> None:
        """Note a reading: a counter moves when each of its values is told, and another than at first."""
        if is_first:
            self._first = told
        first, now = self._first or (), told or ()
        self.moves = len(now) == len(first) > 0 and all(
            value is not None and value != then for value, then in zip(now, first, strict=True)
        )

    def read_at(self, begin_ns: int, end_ns: int, told: bool, easy_rest_s: float) -> int:
        """Return when a reading was true, and note when the next one is due."""
        rest_s = self.sensor.rest_s
        if rest_s < easy_rest_s > FAST_S:
            rest_s = easy_rest_s
        self.due_ns = begin_ns + (rest_s - _EARLY_S) * _NS_PER_S if rest_s > _EARLY_S else 0.0
        if told and self.tells_time:
            own_ns: int | None = getattr(self.sensor, "read_at_ns", None)
            if own_ns is not None:
                return own_ns
        # A slow driver takes its figure somewhere between the call and its end.
        return (begin_ns + end_ns) // 2


def is_easy(info: SensorInfo) -> bool:
    """Tell whether a sensor loses nothing when it is read after a while: a counter does not.

    Args:
        info: The sensor.
    """
    return info.unit != "W" or info.slow


def beside_counters(info: SensorInfo, infos: Iterable[SensorInfo]) -> bool:
    """Tell whether a sensor of power only stands beside counters, which count the energy of its devices.

    Args:
        info: The sensor.
        infos: All that are read.
    """
    if info.unit != "W" or not info.channels:
        return False
    counted = {(c.component, c.device) for i in infos if i.unit == "J" for c in i.channels}
    return all((c.component, c.device) in counted for c in info.channels)


def easy_from_s(info: SensorInfo, infos: Iterable[SensorInfo]) -> float:
    """Return the age of a run from which on a sensor loses nothing when it is read after a while.

    Power beside a counter stands in for it in a short window, whose steps the counter hardly tells; of
    a longer one the counter has the energy, and ten looks a second would only take time from the work.

    Args:
        info: The sensor.
        infos: All that are read.
    """
    if not is_easy(info):
        return math.inf
    return STEADY_S if beside_counters(info, infos) else 0.0


def _skew_us(times_ns: list[int], now_ns: int) -> tuple[int, ...] | None:
    if not times_ns or max(now_ns - min(times_ns), max(times_ns) - now_ns) <= _SKEW_NS:
        return None
    return tuple([(t - now_ns) // 1000 for t in times_ns])


def _read(read: Callable[[], Values]) -> Values:
    try:
        return read()
    except Exception:  # noqa: BLE001  # law 8: whatever a driver raises is a gap, never the user's error
        return None
