"""Two traces of one device over the same minutes: its own readings, and a meter's."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from carbonlens.domain.counting import counted
from carbonlens.domain.sources import ExternalMeter
from carbonlens.errors import CarbonlensError, InputFileError, MeasurementError
from carbonlens.metering.sensors import Sensor, SensorInfo
from carbonlens.metering.sensors.external import collect
from carbonlens.metering.sensors.meter_lines import LineParser, MeterLine
from carbonlens.metering.threads import start_beside

LOOK_S: Final = 0.02
"""Time between two looks at a device whose update period nobody knows."""

LOOKS_A_PERIOD: Final = 0.6
"""The same in its update periods. Looked at twice a period or more, it would be taken
for one that tells by its moves alone, and what it held steady would be lost."""

_LATE_S: Final = 10.0


class Trace(NamedTuple):
    """Times in microseconds and watts; ``None`` for a reading that failed."""

    t_us: tuple[float, ...]
    power_w: tuple[float | None, ...]


def record(sensor: Sensor, channel: int, meter: ExternalMeter, seconds: float) -> tuple[Trace, Trace]:
    """Return a device's and a meter's trace of the next seconds, on one clock.

    Args:
        sensor: Probed; reads the device's power.
        channel: Place of the device among its channels.
        meter: Declared meter of the same supply.
        seconds: How long to record.

    Raises:
        MeasurementError: If the meter or the device told nothing.
    """
    lines: list[MeterLine] = []
    faults: list[CarbonlensError] = []

    def listen() -> None:
        try:
            lines.extend(collect(meter, seconds))
        except CarbonlensError as error:
            faults.append(error)

    thread = start_beside(listen, "carbonlens-meter")
    device = _look(sensor, channel, seconds, thread, look_s(sensor.info))
    thread.join(_LATE_S)
    if faults:
        raise faults[0]
    if not lines:
        raise MeasurementError(
            "the meter did not end in time", where=meter.name, mend="try its command in a terminal"
        )
    if not any(w is not None for w in device.power_w):
        raise MeasurementError(
            f"{sensor.info.name} told no power in {seconds:g} s",
            mend="see what `carbonlens doctor` says of it",
        )
    return device, summed(lines)


def look_s(info: SensorInfo) -> float:
    """Return the time between two looks at a device, in seconds."""
    return max(LOOK_S, LOOKS_A_PERIOD * info.update_period_s)


def _look(sensor: Sensor, channel: int, seconds: float, meter: threading.Thread, every_s: float) -> Trace:
    t_us: list[float] = []
    watts: list[float | None] = []
    end_s = time.monotonic() + seconds
    while (now_s := time.monotonic()) < end_s and meter.is_alive():
        try:
            value = sensor.read(edge=False)[channel]
        except OSError:
            value = None
        # Between both: a read through a driver takes milliseconds.
        t_us.append((now_s + time.monotonic()) / 2 * 1e6)
        watts.append(value)
        time.sleep(every_s)
    return Trace(tuple(t_us), tuple(watts))


def summed(lines: Sequence[MeterLine]) -> Trace:
    """Return the sum over a meter's rails, each held until its next line.

    Before every rail has told something the sum is not known.

    Args:
        lines: Of one meter.
    """
    rails = {line.rail for line in lines}
    latest: dict[str | None, float] = {}
    found: dict[float, float] = {}
    for line in sorted(lines, key=lambda each: each.t_us):
        latest[line.rail] = line.watts
        if len(latest) == len(rails):
            found[line.t_us] = sum(latest.values())
    return Trace(tuple(found), tuple(found.values()))


def read_trace(path: Path) -> Trace:
    """Return a trace from a file of ``t_us,watts[,rail]`` lines; a header is skipped.

    Args:
        path: The file.

    Raises:
        InputFileError: If it cannot be read, or holds no such line.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputFileError(
            f"cannot be read ({error.strerror or error})", where=str(path), mend="check the path"
        ) from error
    parser = LineParser()
    lines = parser.feed(content + b"\n")
    if parser.refused:
        raise InputFileError(
            f"{counted(parser.refused, 'line is', 'lines are')}"
            f" no t_us,watts, the last of them {parser.last_refused!r:.60}",
            where=str(path),
            mend="write microseconds and watts, separated by a comma, one reading a line",
        )
    if not lines:
        raise InputFileError(
            "holds no reading", where=str(path), mend="write t_us,watts lines: microseconds and watts"
        )
    return summed(lines)
