"""External: a power meter that a program or a pipe tells of, line by line (grade A).

The lines are read beside the work and summed to a counter of joules a rail, on the
meter's own clock. The program is started by the first probe or reading and ended by
``close``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.sources import ExternalMeter
from carbonlens.domain.units import Z_95
from carbonlens.errors import MeasurementError
from carbonlens.metering.sensors import VOID, Channel, Probe, SensorInfo
from carbonlens.metering.sensors.meter_lines import (
    DEFAULT_PERIOD_S,
    HoldCounter,
    LineParser,
    MeterLine,
    clock_fault,
    on_host_clock,
)
from carbonlens.metering.sensors.stream import ABOVE_J, EARLY_END_S, Followed, Program, Pump

_CLOCK_MEND: Final = (
    "have it print its own monotonic time in microseconds, or name the unit in a header: t_ms,watts"
)


class ExternalSensor:
    """Reads one declared meter.

    Args:
        meter: What the user declared.
        wait_s: How long a probe waits for a line, and calls silence a fault.
            ``None`` is for the start of a run, which waits for nothing: a meter
            that stays silent then is time not covered.
        clock: Monotonic seconds, by which lines grow old.
        tied: True to have a program end whenever this process does, however it ends;
            for a process that does nothing but measure.
    """

    may_block = False
    rest_s = 0.0

    def __init__(
        self,
        meter: ExternalMeter,
        *,
        wait_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        tied: bool = False,
    ) -> None:
        """Keep what was declared; nothing is started."""
        self._meter = meter
        self._wait_s = wait_s
        self._clock = clock
        self._source = _source(meter, tied=tied)
        self._parser = _parser(meter)
        self._counters = {rail: HoldCounter(meter.period_s) for rail in meter.rails or (None,)}
        self._lock = threading.Lock()
        self._pump: Pump | None = None
        self._first_line = threading.Event()
        self._closed = False
        self._info: SensorInfo | None = None

    @property
    def info(self) -> SensorInfo:
        """Describe the readings; how often lines come is what was seen when it was probed."""
        return self._info or _info(self._meter, None)

    @property
    def seen_period_s(self) -> float | None:
        """Seconds between two lines of a rail by now; ``None`` where that was declared, or none came."""
        if self._meter.period_s is not None:
            return None
        with self._lock:
            return self._slowest_s()

    def _slowest_s(self) -> float | None:
        return max((c.seen_period_s for c in self._counters.values() if c.seen_period_s), default=None)

    def probe(self) -> Probe:
        """Start the source and see whether it tells something."""
        # Arguments may hold a key, and are left out.
        place = self._meter.pipe or Path(*self._meter.command[:1]).name or "nothing declared"
        try:
            self._start()
        except OSError as error:
            return Probe(
                usable=False,
                found=place,
                reason=f"it cannot be started or opened ({error.strerror or error})",
                mend="try it in a terminal, and correct the meter's command or pipe in the sources file",
            )
        if self._wait_s is None:
            self._ended.wait(EARLY_END_S)
        else:
            self._wait_for_line(self._wait_s)
        if self._info is None:
            with self._lock:
                self._info = _info(self._meter, self._slowest_s())
        return self._told(place)

    def read(self, *, edge: bool) -> tuple[float | None, ...]:
        """Return joules a rail; ``None`` for a rail whose last line is old.

        A rail whose clock is at fault tells ``VOID``: what it told before was false too.

        Raises:
            OSError: If no rail has a recent line, or the sensor is closed.
        """
        del edge  # the lines are there already
        self._start()
        now_s = self._clock()
        with self._lock:
            values = tuple(_told_by(counter, now_s) for counter in self._counters.values())
        if all(v is None for v in values):
            raise OSError(f"the meter {self._meter.name} has told nothing lately")
        return values

    def close(self) -> None:
        """End the program, or close the pipe."""
        with self._lock:
            self._closed = True
            pump, self._pump = self._pump, None
        if pump is not None:
            pump.stop()

    def notes(self) -> tuple[Finding, ...]:
        """Return what a reader must know about the lines so far."""
        noted = []
        with self._lock:
            fault = self._clock_fault()
        if fault is not None:
            noted.append(clock_at_fault(self._meter.name, fault))
        if self._parser.refused:
            noted.append(lines_refused(self._meter.name, self._parser.refused))
        if self._meter.gain_95 is None:
            noted.append(accuracy_unstated(self._meter.name))
        return tuple(noted)

    def _clock_fault(self) -> str | None:
        return next((c.clock_fault for c in self._counters.values() if c.clock_fault is not None), None)

    def _start(self) -> None:
        with self._lock:
            if self._closed:
                raise OSError("the sensor is closed")
            if self._pump is None:
                pump = Pump(self._source, self._feed)
                pump.start()
                self._pump = pump
                self._ended = pump.ended

    def _feed(self, data: bytes) -> None:
        arrived_s = self._clock()
        with self._lock:
            for line in self._parser.feed(data):
                counter = self._counters.get(line.rail) if self._meter.rails else self._counters[None]
                if counter is not None:
                    counter.take(line, arrived_s)
                    self._first_line.set()

    def _wait_for_line(self, wait_s: float) -> None:
        deadline_s = time.monotonic() + wait_s
        while time.monotonic() < deadline_s and not self._ended.is_set():
            if self._first_line.wait(EARLY_END_S):
                # A second line tells how often they come.
                with self._lock:
                    if all(c.seen_period_s for c in self._counters.values()):
                        return
                time.sleep(EARLY_END_S)

    def _told(self, place: str) -> Probe:
        with self._lock:
            watts = [c.watts for c in self._counters.values() if c.watts is not None]
            periods = [c.seen_period_s for c in self._counters.values() if c.seen_period_s]
            fault = self._clock_fault()
        if fault is not None:
            return Probe(
                usable=False,
                found=place,
                reason=f"its clock {fault}, so that its energy cannot be told",
                mend=_CLOCK_MEND,
            )
        if self._ended.is_set():
            code = self._source.exit_code
            return self._silent(place, f"it ended with exit code {code}" if code is not None else "it ended")
        if watts:
            often = f", a line every {max(periods):.3g} s" if periods else ""
            return Probe(usable=True, found=f"{place}: {sum(watts):.4g} W now{often}")
        if self._wait_s is None:
            return Probe(usable=True, found=f"{place}, started")
        return self._silent(place, f"it told no power in {self._wait_s:g} s")

    def _silent(self, place: str, reason: str) -> Probe:
        refused = self._parser.last_refused
        last = f"; a line that is not understood: {refused[:60]!r}" if refused else ""
        return Probe(
            usable=False,
            found=place,
            reason=reason + last,
            mend="have it print t_us,watts or t_us,watts,rail lines, each as soon as it is measured",
        )


def collect(
    meter: ExternalMeter, seconds: float, *, clock: Callable[[], float] = time.monotonic
) -> list[MeterLine]:
    """Return a meter's raw lines of the next seconds, for a calibration.

    Args:
        meter: What the user declared; where it names rails, only these are returned.
        seconds: How long to read.
        clock: Monotonic seconds of the clock that times are returned on.

    Returns:
        Lines whose ``t_us`` are microseconds of ``clock``.

    Raises:
        MeasurementError: If the meter cannot be started, tells nothing, or its clock
            does not go like this machine's.
    """
    parser, told = _parser(meter), list[tuple[MeterLine, float]]()

    def feed(data: bytes) -> None:
        arrived_s = clock()
        told.extend((line, arrived_s) for line in parser.feed(data))

    pump = Pump(_source(meter), feed)
    try:
        pump.start()
        pump.ended.wait(seconds)
    except OSError as error:
        raise MeasurementError(
            f"the meter cannot be started or opened ({error.strerror or error})",
            where=meter.name,
            mend="try its command in a terminal",
        ) from error
    finally:
        pump.stop()
    lines = [s for s in list(told) if not meter.rails or s[0].rail in meter.rails]
    if not lines:
        raise MeasurementError(
            f"the meter told no power in {seconds:g} s ({counted(parser.refused, 'line was', 'lines were')}"
            f" not understood)",
            where=meter.name,
            mend="have it print t_us,watts or t_us,watts,rail lines, each as soon as it is measured",
        )
    fault = clock_fault(lines)
    if fault is not None:
        raise MeasurementError(f"the meter's clock {fault}", where=meter.name, mend=_CLOCK_MEND)
    return on_host_clock(lines)


def lines_refused(name: str, count: int) -> Finding:
    """Some of a meter's lines hold no power; the time they stand for may be a gap."""
    return Finding(
        code="CL145",
        severity="info",
        message=f"{counted(count, 'line')} of the meter {name} not understood and left out",
        mend="have it print t_us,watts or t_us,watts,rail lines",
        subject=name,
    )


def clock_at_fault(name: str, what: str) -> Finding:
    """A meter's clock does not go like this machine's: its watts make no energy."""
    return Finding(
        code="CL148",
        severity="warning",
        message=f"the clock of the meter {name} {what} by this machine's clock: its figure is left out",
        mend=_CLOCK_MEND,
        subject=name,
    )


def accuracy_unstated(name: str) -> Finding:
    """Nobody stated how accurate the meter is: its figure has no interval."""
    return Finding(
        code="CL146",
        severity="warning",
        message=f"the accuracy of the meter {name} is not stated: its figures have no interval",
        mend="state gain_95 from the meter's specification in the sources file",
        subject=name,
    )


def _told_by(counter: HoldCounter, now_s: float) -> float | None:
    if counter.clock_fault is not None:
        return VOID
    told_j = counter.tell(now_s)
    return None if told_j is None else ABOVE_J + told_j


def _parser(meter: ExternalMeter) -> LineParser:
    return LineParser(meter.rails, is_whole=meter.component in {"wall", "total"})


def _source(meter: ExternalMeter, *, tied: bool = False) -> Program | Followed:
    return Followed(Path(meter.pipe)) if meter.pipe is not None else Program(meter.command, tied=tied)


def _info(meter: ExternalMeter, seen_period_s: float | None) -> SensorInfo:
    known = meter.gain_95 is not None
    width = f"+-{100 * (meter.gain_95 or 0.0):g} % by its specification" if known else "accuracy not stated"
    return SensorInfo(
        name=f"external:{meter.name}",
        kind="cumulative",
        unit="J",
        scope="wall" if meter.component == "wall" else "module" if meter.component == "total" else "rail",
        boundary=meter.boundary,
        grade="A",
        update_period_s=meter.period_s or seen_period_s or DEFAULT_PERIOD_S,
        channels=tuple(
            Channel(device=f"{meter.name}:{rail}" if rail else meter.name, component=meter.component)
            for rail in meter.rails or (None,)
        ),
        method=f"external meter {meter.name}, watts held until the next line; {width}",
        gain_sigma=(meter.gain_95 or 0.0) / Z_95,
        offset_sigma_w=None if meter.offset_95_w is None else meter.offset_95_w / Z_95,
        whole_machine=True,
        width_known=known,
    )
