"""Property lists of powermetrics: XML documents one after another, parted by zero bytes."""

from __future__ import annotations

import math
import plistlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final
from xml.parsers.expat import ExpatError

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.importers.sources import Source

_END: Final = "</plist>"
_PARTS: Final = ("cpu", "gpu", "ane", "dram", "package")
_DAMAGED: Final = (
    *(plistlib.InvalidFileException, ExpatError, ValueError, TypeError, OverflowError),
    *(AttributeError, LookupError, RecursionError),
)
"""What plistlib raises at documents that are none: its handlers do not check what they are given."""

LONGEST_S: Final = 1e6
"""Longest time between two samples that is believed: 11 days."""

_MOST_LINES: Final = 200_000
"""Lines of one document: a list of tasks has some tens of thousands."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One sample.

    Attributes:
        line: Line on which it begins.
        elapsed_s: Seconds since the sample before.
        stamp_s: Its end, seconds since 1970, as far as the format tells: whole seconds.
        joules: Energy by part.
        both: Parts of which energy and power are told: joules and watts.
        fault: Why it cannot be used.
    """

    line: int
    elapsed_s: float
    stamp_s: float | None
    joules: dict[str, float]
    both: Mapping[str, tuple[float, float]] = msgspec.field(default_factory=dict)
    fault: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it can be used."""
        return self.fault is None


def is_plist(source: Source) -> bool:
    """Tell whether a source holds property lists of powermetrics."""
    lines = source.first_lines[:60]
    return any("<plist" in line for line in lines[:4]) and any("<key>elapsed_ns</key>" in n for n in lines)


def plist_samples(source: Source) -> Iterator[Sample]:
    """Yield the samples of a stream of property lists.

    Raises:
        InputFileError: If the source cannot be read.
    """
    waiting: list[str] = []
    first = 1
    for number, raw in source.lines(keep_nul=True):
        text = raw.lstrip("\0") if len(raw) - len(raw.lstrip("\0")) == 1 else raw
        if not waiting:
            first = number
        waiting.append(text)
        while _END in waiting[-1]:
            head, _, rest = waiting[-1].partition(_END)
            yield _sample("\n".join([*waiting[:-1], head + _END]), first)
            waiting, first = [rest], number
        if not waiting[-1].strip("\0 \t") and len(waiting) == 1 and "\0" not in waiting[-1]:
            waiting = []
        if len(waiting) > _MOST_LINES:
            waiting = waiting[-1:]
    yield from _rest(source, "\n".join(waiting), first)


def _rest(source: Source, text: str, first: int) -> Iterator[Sample]:
    """Yield what is left as a sample that was cut off; zero bytes beyond one are padding."""
    padding = text.count("\0")
    if padding > 1:
        told = counted(padding, "zero byte was", "zero bytes were")
        source.note(
            "CL240",
            "warning",
            f"{told} taken out: a crash or a full disk leaves them",
            mend="compare the last lines with what should be there",
        )
    if text.strip("\0 \t\n"):
        yield Sample(line=first, elapsed_s=0.0, stamp_s=None, joules={}, fault="is cut off")


def _sample(document: str, line: int) -> Sample:
    try:
        told = plistlib.loads(document.strip("\0 \t\n").encode())
    except _DAMAGED:
        return Sample(line=line, elapsed_s=0.0, stamp_s=None, joules={}, fault="is damaged")
    elapsed_ns = _number(told.get("elapsed_ns")) if isinstance(told, dict) else None
    if not elapsed_ns or elapsed_ns > LONGEST_S * 1e9:
        return Sample(line=line, elapsed_s=0.0, stamp_s=None, joules={}, fault="tells no time")
    elapsed_s = elapsed_ns * 1e-9
    places = [place for place in (told.get("processor"), told.get("gpu"), told) if isinstance(place, dict)]
    joules: dict[str, float] = {}
    both: dict[str, tuple[float, float]] = {}
    for part in _PARTS:
        energy_mj, power_mw = _first(places, f"{part}_energy"), _first(places, f"{part}_power")
        if energy_mj is not None:
            joules[part] = energy_mj * 1e-3
            if power_mw is not None:
                both[part] = (energy_mj * 1e-3, power_mw * 1e-3)
        elif power_mw is not None:
            joules[part] = power_mw * 1e-3 * elapsed_s
    watts = _first(places, "package_watts")
    if watts is not None:
        joules.setdefault("package", watts * elapsed_s)
    stamp = told.get("timestamp")
    return Sample(
        line=line,
        elapsed_s=elapsed_s,
        # A property list's dates are UTC.
        stamp_s=stamp.replace(tzinfo=UTC).timestamp() if isinstance(stamp, datetime) else None,
        joules=joules,
        both=both,
        fault=None if joules else "tells no energy",
    )


def _first(places: Sequence[Mapping[str, object]], key: str) -> float | None:
    return next((v for v in (_number(place.get(key)) for place in places) if v is not None), None)


def _number(value: object) -> float | None:
    """Return a number that energies and times may be; not a truth value, not below zero."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and 0 <= value < 1e18 else None
