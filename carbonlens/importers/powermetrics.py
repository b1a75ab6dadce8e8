"""powermetrics of macOS, text and property lists: the mean power since the sample before.

A sample holds the time since the one before it, and power (text, milliwatts) or energy
(property list, millijoules) of CPU, GPU and neural engine over it. Older systems on Apple
chips tell the package too, which holds all of them and the memory; Macs with Intel CPUs
tell the package alone. Apple calls the figures estimates, so their grade is that of a model.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from carbonlens.errors import InputFileError
from carbonlens.importers import unit_checks
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Channel, Facts, Group, Item, Kind, Named, Options, Tally
from carbonlens.importers.device_samples import DeviceSamples
from carbonlens.importers.once import Once
from carbonlens.importers.powermetrics_plist import LONGEST_S, Sample, is_plist, plist_samples
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source

_START: Final = re.compile(
    r"^\*\*\* Sampled system activity \((.+?)\)\s*\((\d+(?:\.\d+)?)\s*ms elapsed\) \*\*\*"
)
_POWER: Final = re.compile(r"^(CPU|GPU|ANE|DRAM|Package) Power:\s*([\d.]+)\s*(m?W)\s*$")
_INTEL: Final = re.compile(r"^Intel energy model derived package power[^:]*:\s*([\d.]+)\s*(m?W)\s*$")
_MODEL: Final = re.compile(r"^Machine model:\s*(\S+)")
_MONTHS: Final = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_STAMP: Final = re.compile(
    r"^[A-Z][a-z]{2} ([A-Z][a-z]{2})\s+(\d+) (\d\d:\d\d:\d\d) (\d{4})(?: ([+-]\d{4}))?$"
)
_PARTS: Final = {"cpu": "cpu", "gpu": "gpu", "ane": "npu", "dram": "ram"}
_US: Final = 1_000_000
_LATE_S: Final = 1.5
"""A stamp of whole seconds may be this far ahead of the time that samples add up to."""


class PowermetricsImporter:
    """Importer of what ``powermetrics`` prints on a Mac."""

    name = "powermetrics"
    version = 1
    kind: Kind = "trace"
    rank = USUAL
    facts = Facts(
        title="powermetrics of macOS",
        reads="text and property lists (-f plist), Apple chips and Intel CPUs",
        units="text: mW or W, mean since the sample before; property list: mJ since then",
        grade="D: Apple calls the figures estimates that are not for comparing devices",
        traps=(
            "each sample counts with its own elapsed time, not with the interval asked for; "
            "together they are held against the stamps",
            "Package Power holds CPU, GPU and neural engine: it alone counts where it is told; "
            "Combined Power is their sum and is left out",
            "clusters are parts of the CPU, and energy by task is a part of the whole: neither is added",
            "property lists are parted by zero bytes, which are no padding",
            "memory is in none of the parts but the package",
        ),
        tested_on=("one real text of 10 samples (M1); property lists typed here after recordings",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Return the sources that hold a sample's heading, or property lists with an elapsed time."""
        return each(sources, lambda s: is_plist(s) or any(_START.match(line) for line in s.head_lines()))

    def read(self, group: Group, options: Options) -> Iterator[Item]:  # noqa: ARG002  # stamps bear their zone
        """Yield the energy of each part.

        Raises:
            InputFileError: If no sample tells an energy.
        """
        yield from _Log(group.main).items()


IMPORTER: Final = PowermetricsImporter()


class _Log:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._once = Once(source)
        self._now_s: float | None = None
        self._stamps_s: tuple[float, float] | None = None
        self._elapsed_s = 0.0
        self._model: str | None = None

    def items(self) -> Iterator[Item]:
        """Yield everything."""
        samples: DeviceSamples | None = None
        channels: dict[str, Channel] = {}
        rows = rejected = 0
        told = plist_samples(self._source) if is_plist(self._source) else self._texts()
        for sample in told:
            rows += 1
            if not sample.is_whole:
                rejected += 1
                text = f"the sample at line {sample.line} {sample.fault}; it is left out"
                yield finding(
                    "CL202", "error", text, self._source, line=sample.line, mend="let the tool end by itself"
                )
                continue
            if samples is None:
                samples = DeviceSamples(relative=sample.stamp_s is None)
                channels = _channels(sample.joules)
            self._check(sample)
            self._take(sample, channels, samples)
            if samples.is_full:
                yield from samples.hand_on()
        if samples is None or not samples.is_known:
            raise InputFileError(
                "tells no energy of the chip",
                where=self._source.shown,
                mend="ask for the samplers cpu_power,gpu_power,ane_power",
            )
        if self._model:
            yield Named(hardware=self._model)
        yield from samples.hand_on()
        yield from self._once.findings()
        if self._stamps_s is not None:
            told_s = self._stamps_s[1] - self._stamps_s[0]
            yield from unit_checks.of_length(self._elapsed_s, told_s, self._source, 0, has_gaps=True)
        yield Tally(rows=rows, rejected=rejected)

    def _take(self, sample: Sample, channels: dict[str, Channel], samples: DeviceSamples) -> None:
        """Take a sample; a stamp well ahead of the time that samples add up to is a gap before it."""
        if sample.stamp_s is not None:
            first_s = sample.stamp_s if self._stamps_s is None else self._stamps_s[0]
            self._elapsed_s += 0.0 if self._stamps_s is None else sample.elapsed_s
            self._stamps_s = (first_s, sample.stamp_s)
        if self._now_s is None:
            self._now_s = sample.elapsed_s if sample.stamp_s is None else sample.stamp_s
        else:
            self._now_s += sample.elapsed_s
            ahead_s = 0.0 if sample.stamp_s is None else sample.stamp_s - self._now_s
            if ahead_s > _LATE_S:
                self._now_s += ahead_s
                for channel in channels.values():
                    gap_us = (self._now_s - sample.elapsed_s) * _US
                    samples.add(channel, gap_us, math.nan, sample.line, seconds=ahead_s)
        for part, channel in channels.items():
            joules = sample.joules.get(part, math.nan)
            samples.add(channel, self._now_s * _US, joules, sample.line, seconds=sample.elapsed_s)

    def _check(self, sample: Sample) -> None:
        """Say where energy and power of a part are two things."""
        for part, (energy_j, power_w) in sample.both.items():
            implied_w = energy_j / sample.elapsed_s
            if power_w > 0 and not 0.5 <= implied_w / power_w <= 2:
                text = f"{part}_energy over elapsed_ns is another power than {part}_power; the energy is kept"
                self._once.say("CL247", "warning", text, sample.line, "check which of the two is right")

    def _texts(self) -> Iterator[Sample]:
        """Yield the samples of a text."""
        begun: re.Match[str] | None = None
        first = 0
        joules: dict[str, float] = {}
        for line, text in self._source.lines():
            started = _START.match(text)
            if started is None:
                if begun is not None:
                    _power_of(text, float(begun[2]) * 1e-3, joules)
                elif model := _MODEL.match(text):
                    self._model = model[1]
                continue
            if begun is not None:
                yield _text_sample(begun, first, joules)
            begun, first, joules = started, line, {}
        if begun is not None:
            yield _text_sample(begun, first, joules)


def _power_of(text: str, elapsed_s: float, joules: dict[str, float]) -> None:
    """Take the power of a line; of a part that stands twice in a sample the first."""
    told = _POWER.match(text)
    part, figure, unit = (told[1].lower(), told[2], told[3]) if told else ("", "", "")
    if intel := _INTEL.match(text):
        part, figure, unit = "package", intel[1], intel[2]
    if not part or figure.count(".") > 1 or figure == ".":
        return
    watts = float(figure) * (1e-3 if unit == "mW" else 1.0)
    joules.setdefault(part, watts * elapsed_s)


def _text_sample(begun: re.Match[str], line: int, joules: dict[str, float]) -> Sample:
    elapsed_s = float(begun[2]) * 1e-3
    is_time = 0 < elapsed_s <= LONGEST_S
    fault = None if joules and is_time else "tells no power" if is_time else "tells no time"
    return Sample(
        line=line, elapsed_s=elapsed_s, stamp_s=_stamp_s(begun[1]), joules=dict(joules), fault=fault
    )


def _stamp_s(text: str) -> float | None:
    """Return the time of a heading such as ``Fri Nov 10 12:37:08 2023 +0100``, in seconds since 1970."""
    told = _STAMP.match(text)
    if told is None or told[1] not in _MONTHS or told[5] is None:
        return None
    month = _MONTHS.index(told[1]) + 1
    try:
        moment = datetime.fromisoformat(
            f"{told[4]}-{month:02}-{int(told[2]):02}T{told[3]}{told[5][:3]}:{told[5][3:]}"
        )
    except ValueError:
        return None
    return moment.astimezone(UTC).timestamp()


def _channels(joules: dict[str, float]) -> dict[str, Channel]:
    """Return a channel a part of the first sample; the package counts alone where it is told."""
    has_package = "package" in joules
    names = {"package": "total"} | _PARTS
    return {
        part: Channel(
            name=part,
            component=names[part],
            device=part,
            kind="delta",
            counted=part == "package" or not has_package,
            grade="D",
            method=f"powermetrics {part}, an estimate of Apple's",
            unit="mW",
        )
        for part in joules
    }
