"""Idle and full power of this machine by a meter: the two points of its own curve."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.domain.estimate import Estimate, add
from carbonlens.domain.grades import COUNTER_GAIN_95
from carbonlens.domain.units import Z_95
from carbonlens.errors import MeasurementError
from carbonlens.metering.calibration_files import MachineCurve
from carbonlens.metering.cpu_load import STAT, FullLoad, cpu_time, load_between
from carbonlens.metering.plausible import MACHINE_W
from carbonlens.metering.sensors import Sensor, SensorInfo
from carbonlens.metering.tally import Tally
from carbonlens.signals.cpu_curve import KNEE, two_points

LOOK_S: Final = 0.1
SETTLE_S: Final = 1.0
"""Time from the start of the load until it is measured: clocks and meters follow late."""

MOST_IDLE_LOAD: Final = 0.3
"""Load up to which a machine's power can be carried back to idle."""

LEAST_RISE: Final = 0.05
"""Share of full power that must lie above idle: less is not the machine's own power."""

_ENOUGH: Final = 0.9
_WHOLES: Final = ("wall", "total")


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """Mean power and load over some seconds."""

    power_w: Estimate
    load: float


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured on: the real machine unless a test says otherwise.

    Attributes:
        stat: Where the kernel tells busy time.
        load: Makes the full load.
        settle_s: Time to wait before each phase.
        clock, sleep: Monotonic seconds, and how to wait.
    """

    stat: Path = STAT
    load: Callable[[], AbstractContextManager[object]] = FullLoad
    settle_s: float = SETTLE_S
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def _silent(text: str) -> None:
    del text  # nobody wants to know


def measure(
    meter: Sensor,
    seconds: float,
    *,
    name: str,
    setting: Setting | None = None,
    progress: Callable[[str], None] = _silent,
) -> MachineCurve:
    """Return idle and full power of this machine, each the mean over some seconds.

    Args:
        meter: Probed; reads the packages or the plug.
        seconds: Length of each phase.
        name: Of the meter, as it will be named in figures.
        setting: What is measured on.
        progress: Told what happens now.

    Raises:
        MeasurementError: If the machine was not idle, could not be loaded, or the
            meter told too little or saw no difference.
        OSError: If the load cannot be started.
    """
    setting = setting or Setting()
    progress(f"idle for {seconds:g} s: leave the machine alone")
    setting.sleep(setting.settle_s)
    idle = observe(meter, seconds, setting)
    # Said before the machine is loaded for nothing.
    if idle.load > MOST_IDLE_LOAD:
        raise MeasurementError(
            f"the machine is not idle: {idle.load:.0%} of its threads were busy",
            mend="stop other work and calibrate again",
        )
    threads = os.cpu_count() or 1
    progress(f"full load on {threads} threads for {seconds:g} s")
    with setting.load():
        setting.sleep(setting.settle_s)
        full = observe(meter, seconds, setting)
    return curve_of(idle, full, boundary_of=meter.info, name=name, threads=threads)


def observe(meter: Sensor, seconds: float, setting: Setting) -> Phase:
    """Return mean power and load over the next seconds.

    Args:
        meter: Probed; all its channels of the widest component are one load.
        seconds: How long to read.
        setting: What is measured on.

    Raises:
        MeasurementError: If the meter told power of too little of the time, or the
            kernel does not tell how busy it was.
    """
    tally, window_us = Tally((meter.info,)), round(seconds * 1_000_000)
    before, start_s = cpu_time(setting.stat), setting.clock()
    t_us, edge = 0, True
    while True:
        try:
            values = meter.read(edge=edge)
        except OSError:
            values = (None,) * len(meter.info.channels)
        t_us = round((setting.clock() - start_s) * 1_000_000)
        tally.add(0, t_us, values)
        if t_us >= window_us:
            break
        left_s = (window_us - t_us) / 1_000_000
        edge = left_s <= LOOK_S
        setting.sleep(min(LOOK_S, left_s))
    load = load_between(before, cpu_time(setting.stat))
    if load is None:
        raise MeasurementError(
            "the kernel does not tell how busy the machine is",
            where=str(setting.stat),
            mend="give the watts of a meter by hand: --idle-w and --full-w",
        )
    return Phase(power_w=_mean_power(meter.info, tally, t_us), load=load)


def _mean_power(info: SensorInfo, tally: Tally, window_us: int) -> Estimate:
    seconds = window_us / 1_000_000
    component = measured_component(info)
    parts = []
    for channel, gained in zip(info.channels, tally.finish(window_us)[0], strict=True):
        if channel.component != component:
            continue
        if gained.amount is None or gained.covered_s < _ENOUGH * seconds:
            raise MeasurementError(
                f"{channel.device} told power of {gained.covered_s:.2g} s of {seconds:.2g} s",
                mend="use a meter that tells power at least once a second, or more --seconds",
            )
        watts, scale = gained.amount / gained.covered_s, 1 / gained.covered_s
        common = gained.u_common * scale
        if not info.width_known:
            common = math.hypot(common, watts * COUNTER_GAIN_95 / Z_95)
        parts.append(
            Estimate(
                value=watts,
                unit="W",
                grade=info.grade,
                u_random=gained.u_random * scale,
                u_by_source={f"meter:{info.name}": common} if common else {},
            )
        )
    return add(parts, "W")


def measured_component(info: SensorInfo) -> str:
    """Return what a meter tells of this machine: all of it, or its CPU packages."""
    components = [c.component for c in info.channels]
    return next((w for w in _WHOLES if w in components), "cpu")


def curve_of(
    idle: Phase, full: Phase, *, boundary_of: SensorInfo, name: str, threads: int, now_us: int | None = None
) -> MachineCurve:
    """Return the machine's curve through two measured points, carried to no and to full load.

    Args:
        idle: The first point.
        full: The second one.
        boundary_of: What the meter includes.
        name: Of the meter.
        threads: Hardware threads of the machine.
        now_us: Present time, UTC.

    Raises:
        MeasurementError: If the points tell no curve.
    """
    if full.load < KNEE:
        raise MeasurementError(
            f"only {full.load:.0%} of the machine's threads could be kept busy",
            mend="lift the limit on CPUs (container, affinity, job), or give --idle-w and --full-w",
        )
    low_w, high_w = idle.power_w.value or 0.0, full.power_w.value or 0.0
    if not high_w - low_w > LEAST_RISE * high_w:
        raise MeasurementError(
            f"the meter told {low_w:.4g} W idle and {high_w:.4g} W under full load",
            where=name,
            mend="check that it measures this machine",
        )
    line = two_points((idle.load, low_w), (full.load, high_w))
    if line.idle <= 0:
        raise MeasurementError(
            f"{low_w:.4g} W at {idle.load:.0%} load and {high_w:.4g} W at {full.load:.0%} "
            "leave nothing for idle",
            where=name,
            mend="stop other work and calibrate again",
        )
    return MachineCurve(
        boundary=boundary_of.boundary,
        idle_w=_moved(idle.power_w, line.idle),
        full_w=_moved(full.power_w, line.full),
        threads=threads,
        loads=(idle.load, full.load),
        meter=name,
        taken_us=time.time_ns() // 1000 if now_us is None else now_us,
    )


def _moved(measured: Estimate, value_w: float) -> Estimate:
    scaled = measured.scale(value_w / (measured.value or value_w), "W")
    return msgspec.structs.replace(scaled, value=value_w)


def by_hand(
    idle_w: float, full_w: float, *, meter: str, meter_95: float | None, threads: int | None = None
) -> MachineCurve:
    """Return the machine's curve from what somebody read off a meter at the plug.

    Args:
        idle_w: Watts of the idle machine.
        full_w: Watts with all threads busy.
        meter: Its name.
        meter_95: Its relative accuracy at 95 %; without one the 5 % of a usual sensor.
        threads: Hardware threads; this machine's by default.

    Raises:
        MeasurementError: If the watts tell no curve.
    """
    numbers = (idle_w, full_w)
    if not all(math.isfinite(w) for w in numbers) or not 0 < idle_w < (1 - LEAST_RISE) * full_w <= MACHINE_W:
        raise MeasurementError(
            f"{idle_w:g} W idle and {full_w:g} W full tell no curve",
            mend="give the power of the whole machine at the plug, idle and with all threads busy",
        )
    u = (COUNTER_GAIN_95 if meter_95 is None else meter_95) / Z_95
    idle, full = (
        Estimate(value=w, unit="W", grade="A", u_by_source={f"meter:{meter}": u * w}) for w in numbers
    )
    return MachineCurve(
        boundary="it",
        idle_w=idle,
        full_w=full,
        threads=threads or os.cpu_count() or 1,
        meter=meter,
        taken_us=time.time_ns() // 1000,
    )
