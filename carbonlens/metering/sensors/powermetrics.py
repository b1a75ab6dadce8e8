"""Powermetrics: what Apple's program of that name says of CPU, GPU and neural engine.

Run only if the user declared it, by ``sudo -n``, which never asks for a password.
Each sample holds the energy since the one before, in millijoules; they are summed.
Apple calls the figures estimates that may be inaccurate and are not for comparing
devices (help text of powermetrics), hence the width of a model. Memory is not in them.
Tested on recordings; no Mac was at hand.
"""

from __future__ import annotations

import math
import platform
import plistlib
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from xml.parsers.expat import ExpatError

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.grades import MODEL_FACTOR_95
from carbonlens.domain.units import Z_95
from carbonlens.metering.sensors import Channel, Probe, SensorInfo
from carbonlens.metering.sensors.stream import ABOVE_J, EARLY_END_S, Program, Pump, TellingCounter
from carbonlens.signals.sensor import GAP_PERIODS

PERIOD_S: Final = 1.0
COMMAND: Final = (
    "sudo",
    "-n",
    "/usr/bin/powermetrics",
    "--samplers",
    "cpu_power,gpu_power,ane_power",
    "-i",
    "1000",
    "-f",
    "plist",
)

_PARTS: Final = {"cpu": "cpu", "gpu": "gpu", "ane": "npu"}
_PACKAGE: Final = "total"
_PLIST_END: Final = b"</plist>"
_TEXT_START: Final = b"*** Sampled system activity"
_MOST_WAITING: Final = 1 << 22
_ELAPSED: Final = re.compile(r"\(([\d.]+)\s*ms elapsed\)")
_POWER: Final = re.compile(
    r"^(?:(CPU|GPU|ANE|Package) Power|Intel energy model derived package power[^:]*):\s*([\d.]+)\s*(m?W)\b",
    re.MULTILINE,
)


class PowerSample(msgspec.Struct, frozen=True, kw_only=True):
    """One sample.

    Attributes:
        elapsed_s: Time since the sample before.
        joules: Energy in it by component; a component that is not told is absent.
    """

    elapsed_s: float
    joules: Mapping[str, float]


_DAMAGED: Final = (
    *(plistlib.InvalidFileException, ExpatError, ValueError, TypeError, OverflowError),
    *(AttributeError, LookupError, RecursionError),
)
"""What plistlib raises at documents that are none: its handlers do not check what they are given."""


def parse_plist(document: bytes) -> PowerSample | None:
    """Read one property list; ``None`` if it is damaged or tells no time.

    The processor's own figures are taken. Energy by task, which stands in the same
    document, is a part of them and is not added.
    """
    try:
        told = plistlib.loads(document.strip(b"\x00\r\n\t "))
    except _DAMAGED:
        return None
    elapsed_ns = _number(told.get("elapsed_ns")) if isinstance(told, dict) else None
    if not elapsed_ns:
        return None
    elapsed_s = elapsed_ns * 1e-9
    places = [place for place in (told.get("processor"), told.get("gpu"), told) if isinstance(place, dict)]
    joules: dict[str, float] = {}
    for key, component in (*_PARTS.items(), ("package", _PACKAGE)):
        energy_mj, power_mw = _first(places, f"{key}_energy"), _first(places, f"{key}_power")
        if energy_mj is not None:
            joules[component] = energy_mj * 1e-3
        elif power_mw is not None:
            joules[component] = power_mw * 1e-3 * elapsed_s
    watts = _first(places, "package_watts")
    if watts is not None:
        joules.setdefault(_PACKAGE, watts * elapsed_s)
    return PowerSample(elapsed_s=elapsed_s, joules=joules)


def parse_text(document: str) -> PowerSample | None:
    """Read one sample of the text format; ``None`` if it tells no time.

    ``Combined Power`` is the sum of the others and is left out.
    """
    elapsed = _ELAPSED.search(document)
    elapsed_s = _float(elapsed[1]) if elapsed else None
    if not elapsed_s:
        return None
    elapsed_s *= 1e-3
    joules: dict[str, float] = {}
    for name, figure, unit in _POWER.findall(document):
        watts = _float(figure)
        component = _PARTS.get(name.lower(), _PACKAGE)
        if watts is not None:
            joules.setdefault(component, watts * (1e-3 if unit == "mW" else 1.0) * elapsed_s)
    return PowerSample(elapsed_s=elapsed_s, joules=joules)


class SampleSplitter:
    """Cuts a stream of either format into samples; ``None`` stands for a damaged one."""

    def __init__(self) -> None:
        """Start with nothing waiting."""
        self._rest = b""

    def feed(self, data: bytes) -> list[PowerSample | None]:
        """Return the samples that are whole; a text sample is when the next begins."""
        self._rest += data
        found: list[PowerSample | None] = []
        while _PLIST_END in self._rest:
            document, _, self._rest = self._rest.partition(_PLIST_END)
            found.append(parse_plist(document + _PLIST_END))
        if self._rest.lstrip(b"\x00\r\n\t ")[:1] != b"<":
            _, *texts = self._rest.split(_TEXT_START)
            found += [parse_text(text.decode("utf-8", "replace")) for text in texts[:-1]]
            if texts:
                self._rest = _TEXT_START + texts[-1]
        if len(self._rest) > _MOST_WAITING:
            self._rest = b""
            found.append(None)
        return found


class _Component:
    """The counter of one component, and when it was last told of."""

    def __init__(self) -> None:
        self.counter = TellingCounter()
        self.told_s: float | None = None
        self._watts = 0.0

    def take(self, sample: PowerSample | None, name: str, now_s: float) -> None:
        joules = None if sample is None else sample.joules.get(name)
        if sample is None or joules is None:
            # What it drew in this sample is not known, so nothing may lead over it.
            self.counter.begin_anew()
            self.told_s = None
        else:
            self.counter.add(joules)
            self.told_s = now_s
            self._watts = joules / sample.elapsed_s

    def tell(self, now_s: float) -> float | None:
        silent_s = math.inf if self.told_s is None else now_s - self.told_s
        if silent_s > GAP_PERIODS * PERIOD_S:
            return None
        # The mean power of the last sample stands in for the next until it comes.
        return ABOVE_J + self.counter.tell(self._watts * silent_s)


class PowermetricsSensor:
    """Reads CPU, GPU and neural engine, or the package where a Mac tells only that.

    Args:
        command: What prints the samples.
        package_only: Whether there is but the package, as on Macs with Intel CPUs;
            ``None`` asks this machine.
        wait_s: How long a probe waits for a sample, and calls silence a fault; a
            first one takes a second. ``None`` is for the start of a run, which waits
            for nothing.
        clock: Monotonic seconds, by which samples grow old.
    """

    may_block = False
    rest_s = 0.0

    def __init__(
        self,
        command: Sequence[str] = COMMAND,
        *,
        package_only: bool | None = None,
        wait_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Keep the command; nothing is started."""
        if package_only is None:
            package_only = platform.machine() == "x86_64"
        self._info = _info(package_only)
        self._wait_s = wait_s
        self._clock = clock
        self._program = Program(command)
        self._place = " ".join(command[:3])
        self._splitter = SampleSplitter()
        self._components = {c.component: _Component() for c in self._info.channels}
        self._lock = threading.Lock()
        self._pump: Pump | None = None
        self._first = threading.Event()
        self._closed = False
        self._damaged = 0
        self._last_s = math.inf

    @property
    def info(self) -> SensorInfo:
        """Describe the readings."""
        return self._info

    def probe(self) -> Probe:
        """Start the program and see whether it tells something."""
        try:
            self._start()
        except OSError as error:
            return Probe(
                usable=False,
                found="no powermetrics",
                reason=f"{self._place} cannot be started ({error.strerror or error}); it is part of macOS",
                mend="take powermetrics out of the sources file on this machine",
            )
        if self._wait_s is None:
            self._ended.wait(EARLY_END_S)
        else:
            deadline_s = time.monotonic() + self._wait_s
            while not (self._first.wait(EARLY_END_S) or self._ended.is_set()):
                if time.monotonic() > deadline_s:
                    break
        return self._told()

    def read(self, *, edge: bool) -> tuple[float | None, ...]:
        """Return joules a component; ``None`` for one that the last sample does not tell.

        Raises:
            OSError: If no component was told of lately, or the sensor is closed.
        """
        del edge  # the samples are there already
        self._start()
        now_s = self._clock()
        with self._lock:
            values = tuple(c.tell(now_s) for c in self._components.values())
        if all(v is None for v in values):
            raise OSError("powermetrics has told nothing lately")
        return values

    def close(self) -> None:
        """End the program."""
        with self._lock:
            self._closed = True
            pump, self._pump = self._pump, None
        if pump is not None:
            pump.stop()

    def notes(self) -> tuple[Finding, ...]:
        """Return what a reader must know about the samples so far."""
        return (samples_damaged(self._damaged),) if self._damaged else ()

    def _start(self) -> None:
        with self._lock:
            if self._closed:
                raise OSError("the sensor is closed")
            if self._pump is None:
                pump = Pump(self._program, self._feed)
                pump.start()
                self._pump = pump
                self._ended = pump.ended

    def _feed(self, data: bytes) -> None:
        now_s = self._clock()
        with self._lock:
            for sample in self._splitter.feed(data):
                self._damaged += sample is None
                self._mind_gap(sample, now_s)
                for name, component in self._components.items():
                    component.take(sample, name, now_s)
                if sample is not None:
                    self._first.set()

    def _mind_gap(self, sample: PowerSample | None, now_s: float) -> None:
        """Begin anew where a late sample does not reach back to the one before."""
        silent_s = now_s - self._last_s
        self._last_s = now_s
        if sample is not None and GAP_PERIODS * PERIOD_S < silent_s > sample.elapsed_s + PERIOD_S:
            for component in self._components.values():
                component.counter.begin_anew()

    def _told(self) -> Probe:
        if self._first.is_set() and not self._ended.is_set():
            with self._lock:
                told = [n for n, c in self._components.items() if c.told_s is not None]
            if told:
                return Probe(usable=True, found=f"powermetrics: {', '.join(told)}")
            return Probe(usable=False, found="powermetrics", reason="it tells no energy of this Mac's chip")
        if not self._ended.is_set() and self._wait_s is None:
            return Probe(usable=True, found="powermetrics, started")
        return Probe(
            usable=False,
            found="powermetrics",
            reason=f"it ended with exit code {self._program.exit_code}, as when sudo wants a password"
            if self._ended.is_set()
            else f"it told nothing in {self._wait_s:g} s",
            mend="ask an administrator for a sudoers line that lets you run /usr/bin/powermetrics "
            "without a password",
        )


def samples_damaged(count: int) -> Finding:
    """Samples could not be read; the time they stand for is not covered."""
    return Finding(
        code="CL147",
        severity="warning",
        message=f"{counted(count, 'sample')} of powermetrics could not be read: that time is not covered",
        subject="powermetrics",
    )


def _info(package_only: bool) -> SensorInfo:
    channels = (
        (Channel(device="package", component=_PACKAGE),)
        if package_only
        else tuple(Channel(device=key, component=component) for key, component in _PARTS.items())
    )
    return SensorInfo(
        name="powermetrics",
        kind="cumulative",
        unit="J",
        scope="package",
        boundary="device",
        # Its maker calls the figures estimates; their width is that of a model.
        grade="D",
        update_period_s=PERIOD_S,
        channels=channels,
        method="powermetrics, whose figures Apple calls estimates; memory not included",
        gain_sigma=math.log(MODEL_FACTOR_95) / Z_95,
        whole_machine=True,
    )


def _first(places: Sequence[Mapping[str, object]], key: str) -> float | None:
    return next((v for v in (_number(place.get(key)) for place in places) if v is not None), None)


def _number(value: object) -> float | None:
    """Return a finite number from 0; ``None`` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
