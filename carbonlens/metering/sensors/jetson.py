"""Jetson: power of a module's rails by its INA3221 and INA238 monitors (grade C).

NVML starts on a Jetson and tells no power (HazyResearch/intelligence-per-watt issue 40);
the monitors on the I2C bus do. Which rail is the module's input, or that the rails must be
summed, stands in ``domain.jetson_rails``. Layouts read:

- JetPack 5 and later: ``in{n}_label``, ``in{n}_input`` (mV) times ``curr{n}_input`` (mA);
- JetPack 4: ``rail_name_{n}``, ``in_power{n}_input`` (mW);
- INA238 of Thor: ``power1_input`` (uW), of the board's input where it has no label.

What a reading is follows from the chip's settings (kernel documentation, hwmon/ina3221):
``samples`` conversions are averaged and a round over all channels takes
``update_interval`` milliseconds, so it is the mean of that time. Without these files the
chip's default of single conversions of a millisecond holds, which is as good as instant.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from carbonlens.domain.grades import COUNTER_GAIN_95
from carbonlens.domain.jetson_rails import Layout, is_rail, layout, module_of
from carbonlens.domain.units import Z_95
from carbonlens.metering.sensors import Channel, Probe, SensorInfo
from carbonlens.metering.sensors.sysfs import folders, line, number, readable_mend, why_unreadable

DRIVERS: Final = ("ina3221", "ina3221x", "ina238", "ina2xx")
"""Drivers below ``/sys/bus/i2c/drivers`` whose devices are looked at."""

MOST_OF_A_CORE: Final = 0.005
"""Share of one core that reading may take: reads are spaced so that it does not take more."""

_DEFAULT_PERIOD_S: Final = 0.0066
"""Three channels, bus and shunt voltage, 1.1 ms each: the INA3221 as it starts (datasheet)."""

_NOISE_W: Final = 0.2
"""A rail without load may read this much below nothing: a few steps of the shunt's converter."""

_MICRO: Final = 1e-6
_GAIN_SIGMA: Final = COUNTER_GAIN_95 / Z_95


class _Source(NamedTuple):
    """Where one rail is read: the product of the files' numbers is watts times ``scale``."""

    name: str
    files: tuple[Path, ...]
    scale: float


class JetsonSensor:
    """Reads the rails of the Jetson this runs on.

    Args:
        root: The file system; ``/`` on a real machine.
        clock: CPU seconds of the calling thread, by which the cost of a read is told.
    """

    may_block = True  # an I2C transfer can wait for a busy or stuck bus
    rest_s = 0.0

    def __init__(self, root: Path, clock: Callable[[], float] = time.thread_time) -> None:
        """Keep where to look; rails are listed at the first question."""
        self._root = root
        self._clock = clock
        self._listed: tuple[Layout, tuple[_Source, ...]] | None = None
        self._timing: tuple[bool, float] | None = None

    @property
    def info(self) -> SensorInfo:
        """Describe the readings."""
        rails, _ = self._rails()
        if self._timing is None:
            self._timing = _timing(self._root)
        averaged, period_s = self._timing
        return SensorInfo(
            name="jetson",
            kind="average" if averaged else "instant",
            unit="W",
            scope="module" if rails.total is not None else "rail",
            boundary="device",
            grade="C",
            update_period_s=max(period_s, self.rest_s),
            window_s=period_s if averaged else None,
            channels=tuple(Channel(device=r.name, component=r.component) for r in rails.rails),
            method=_method(rails),
            gain_sigma=_GAIN_SIGMA,
            whole_machine=True,
        )

    def probe(self) -> Probe:
        """Read every rail once, and tell what a read costs."""
        rails, sources = self._rails()
        if not sources and not rails.ignored:
            return self._nothing()
        found = f"{rails.title}: {', '.join(r.name for r in rails.rails) or 'no known rail'}"
        if rails.ignored:
            found += f"; left out: {'; '.join(f'{n} ({why})' for n, why in rails.ignored)}"
        if not rails.whole:
            missing = ", ".join(rails.missing) or "any rail that is known"
            return Probe(
                usable=False,
                found=found,
                reason=f"{missing} is not there, and the other rails are not the whole module",
                mend="look which power monitors the kernel shows: ls /sys/bus/i2c/drivers/ina3221*/*/",
            )
        for source in sources:
            fault = next((why for f in source.files if (why := why_unreadable(f)) is not None), None)
            if fault is not None:
                denied = "root only" in fault
                mend = readable_mend(self._root, *(f for s in sources for f in s.files)) if denied else None
                return Probe(usable=False, found=found, reason=fault, mend=mend)
        return self._tried(found)

    def _tried(self, found: str) -> Probe:
        begin_s = self._clock()
        try:
            self.read(edge=True)
        except OSError as error:
            return Probe(usable=False, found=found, reason=str(error))
        cost_s = max(self._clock() - begin_s, 0.0)
        # Whole tenths of a second, at which sessions look anyway.
        self.rest_s = round(cost_s / MOST_OF_A_CORE, 1)
        return Probe(
            usable=True,
            found=f"{found}; a read takes {cost_s * 1e3:.1f} ms of a core; tested on recordings",
        )

    def _nothing(self) -> Probe:
        module = module_of(*_device_tree(self._root))
        if module is None:
            return Probe(usable=False, found="no Jetson", reason="the device tree names none")
        return Probe(
            usable=False,
            found=module.title,
            reason="no INA3221 or INA238 power monitor is shown (a container may hide /sys/bus/i2c)",
            mend="start the container with: -v /sys/bus/i2c:/sys/bus/i2c:ro",
        )

    def read(self, *, edge: bool) -> tuple[float | None, ...]:
        """Return watts a rail; ``None`` for one that cannot be read now.

        A part may sleep and draw 0 W; a module that runs this program does not.

        Raises:
            OSError: If no rail can be read, or not the one that holds the others: they
                alone would pass for the module. If that one, or all of them, read 0 W.
        """
        del edge
        rails, sources = self._rails()
        values = tuple(_watts(source) for source in sources)
        if not values or all(v is None for v in values):
            raise OSError("no rail of the module could be read")
        if rails.total is not None and values[0] is None:
            raise OSError(f"{rails.total.name}, the module's input, could not be read")
        if not (values[0] if rails.total is not None else sum(v for v in values if v is not None)):
            raise OSError("the module reads 0 W: its power monitor tells nothing")
        return values

    def close(self) -> None:
        """Nothing is held open."""

    def _rails(self) -> tuple[Layout, tuple[_Source, ...]]:
        if self._listed is None:
            sources: dict[str, _Source] = {}
            for source in _sources(self._root):
                sources.setdefault(source.name, source)
            rails = layout(tuple(sources), module_of(*_device_tree(self._root)))
            self._listed = rails, tuple(sources[r.name] for r in rails.rails)
        return self._listed


def _method(rails: Layout) -> str:
    how = (
        f"power of {rails.total.name}, the input of the {rails.title}"
        if rails.total is not None
        else f"power of the rails of the {rails.title}, whose sum is the module"
    )
    caveat = f"; {rails.caveat}" if rails.caveat else ""
    return f"{how}, integrated (INA power monitor{caveat}; sensor tested on recordings)"


def _device_tree(root: Path) -> tuple[str | None, tuple[str, ...]]:
    folder = root / "proc" / "device-tree"
    compatible = line(folder / "compatible") or ""
    return line(folder / "model"), tuple(compatible.split("\0"))


def _chips(root: Path) -> list[Path]:
    """Return the folders of all monitors that hold their numbers."""
    drivers = root / "sys" / "bus" / "i2c" / "drivers"
    found: list[Path] = []
    for driver in DRIVERS:
        for chip in folders(drivers / driver, "*-*"):
            found += folders(chip / "hwmon", "hwmon*") + folders(chip, "iio:device*")
    return found


def _sources(root: Path) -> list[_Source]:
    is_jetson = module_of(*_device_tree(root)) is not None
    found: list[_Source] = []
    for folder in _chips(root):
        driver = folder.parents[1].parent.name if folder.parent.name == "hwmon" else folder.parents[1].name
        if driver.startswith("ina3221"):
            found += _hwmon_rails(folder) + _iio_rails(folder)
        elif is_jetson:
            found += _input_rail(folder)
    return found


def _hwmon_rails(folder: Path) -> list[_Source]:
    found = []
    for label in folders(folder, "in*_label"):
        number_text = re.fullmatch(r"in([0-9]+)_label", label.name)
        name = line(label)
        # 1 to 3 are rails; 7 is a sum of shunt voltages.
        if number_text is None or int(number_text[1]) > 3 or name is None or not is_rail(name):
            continue
        files = (folder / f"in{number_text[1]}_input", folder / f"curr{number_text[1]}_input")
        found.append(_Source(name, files, _MICRO))
    return found


def _iio_rails(folder: Path) -> list[_Source]:
    found = []
    for label in folders(folder, "rail_name_*"):
        name = line(label)
        if name is not None and is_rail(name):
            file = folder / f"in_power{label.name.removeprefix('rail_name_')}_input"
            found.append(_Source(name, (file,), 1e-3))
    return found


def _input_rail(folder: Path) -> list[_Source]:
    """Return the rail of an INA238; the one without a label is the board's input (``VIN``)."""
    file = folder / "power1_input"
    name = line(folder / "power1_label") or line(folder / "in1_label") or "VIN"
    return [_Source(name, (file,), _MICRO)] if file.exists() and is_rail(name) else []


def _timing(root: Path) -> tuple[bool, float]:
    """Return whether the chips average, and how long a round takes in seconds."""
    averaged, period_s = False, 0.0
    for folder in _chips(root):
        samples = number(folder / "samples")
        interval_ms = number(folder / "update_interval")
        averaged = averaged or (samples is not None and samples > 1 and bool(interval_ms))
        if interval_ms is not None and interval_ms > 0:
            period_s = max(period_s, interval_ms / 1e3)
    return averaged, period_s or _DEFAULT_PERIOD_S


def _watts(source: _Source) -> float | None:
    product = source.scale
    for file in source.files:
        value = number(file)
        if value is None:
            return None
        product *= value
    if product < -_NOISE_W:
        return None
    return max(product, 0.0)
