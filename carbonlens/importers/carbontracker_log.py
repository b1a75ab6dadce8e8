"""Sessions of carbontracker's logs: messages with a local time, some of several lines.

The output log holds consumptions, the standard log the seconds and watts of each epoch. Both
begin with the components that were found, at the same second.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Final, TypeAlias

import msgspec

from carbonlens.importers.sources import Source
from carbonlens.importers.tables import exact

PREFIX: Final = "CarbonTracker: "
_STAMP: Final = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) - (.*)$")
FOUND: Final = "The following components were found:"
_VERSION: Final = "carbontracker version "
_ACTUAL: Final = re.compile(r"^\s*Actual consumption(?: for (\d+) epoch\(s\))?:")
_PREDICTED: Final = re.compile(r"^\s*Predicted consumption for (\d+) epoch\(s\):")
_TIME: Final = re.compile(r"^\s*Time:\s*(\d+:\d\d:\d\d(?:\.\d+)?)\s*$", re.M)
_ENERGY: Final = re.compile(r"^\s*Energy:\s*(\S+)\s+kWh\s*$", re.M)
_CO2: Final = re.compile(r"^\s*CO2eq:\s*(\S+)\s+g\s*$", re.M)
_PUE: Final = re.compile(r"PUE coefficient of (\d+(?:\.\d+)?)\b")
_EPOCH: Final = re.compile(r"^Epoch (\d+):$")
_DURATION: Final = re.compile(r"^Duration: (\d+:\d\d:\d\d\.\d\d)$")
_POWER: Final = re.compile(r"^Average power usage \(W\) for (\w+): (\[[^\]]*\]|None|nan|\d+\.\d+)$", re.S)
_PLACE: Final = re.compile(r"detected location:? (.+?): \[|gCO2/kWh at (.+)$")
_DEVICES: Final = re.compile(r"(\w+) with device\(s\) ([^.]*(?:\.\d[^.]*)*)\.")

Key: TypeAlias = tuple[str, str]


class Consumption(msgspec.Struct, frozen=True, kw_only=True):
    """What the output log says of the epochs until then; the PUE is inside.

    Attributes:
        epochs: How many; ``None`` where it does not say.
        co2_g: ``None`` where no intensity was found.
    """

    epochs: int | None
    time_s: Decimal
    energy_kwh: Decimal | None
    co2_g: Decimal | None
    stamp: str
    line: int


@dataclass(kw_only=True, slots=True)
class Epoch:
    """What the standard log says of an epoch: seconds, and watts of each component's devices."""

    duration_s: Decimal | None = None
    watts: dict[str, Decimal | None] = field(default_factory=dict)
    stamp: str
    line: int


@dataclass(kw_only=True, slots=True)
class Session:
    """One tracker's life, as one log tells it."""

    line: int
    key: Key | None = None
    version: str | None = None
    pue: Decimal | None = None
    location: str | None = None
    devices: dict[str, str] = field(default_factory=dict)
    actual: Consumption | None = None
    predicted: int | None = None
    epochs: list[Epoch] = field(default_factory=list)
    ended: bool = False
    bad: list[tuple[int, str]] = field(default_factory=list)


def messages(source: Source) -> Iterator[tuple[int, str, str]]:
    """Yield line, time and text of each message, with the lines that follow it."""
    first, stamp, parts = 0, "", [""]
    for line, text in source.lines():
        found = _STAMP.match(text)
        if found is None:
            parts.append(text)
            continue
        if first:
            yield first, stamp, "\n".join(parts)
        first, stamp, parts = line, found[1], [found[2]]
    if first:
        yield first, stamp, "\n".join(parts)


def key_of(source: Source) -> Key | None:
    """Return what an output and a standard log of one tracker have in common, from the first lines."""
    for text in source.first_lines:
        found = _STAMP.match(text)
        plain = found[2].removeprefix(PREFIX) if found else ""
        if found and plain.startswith(FOUND):
            return found[1], plain.strip()
    return None


def sessions(source: Source) -> Iterator[Session]:
    """Yield the sessions of a log, in order."""
    now: Session | None = None
    for line, stamp, text in messages(source):
        plain = text.removeprefix(PREFIX)
        starts = plain.startswith((FOUND, _VERSION))
        if now is not None and starts and now.key is not None:
            yield now
            now = None
        now = now or Session(line=line)
        try:
            _take(now, line, stamp, plain)
        except ValueError as error:
            now.bad.append((line, str(error)))
    if now is not None:
        yield now


def _take(now: Session, line: int, stamp: str, text: str) -> None:
    """Take one message into a session.

    Raises:
        ValueError: If a figure in it is none.
    """
    if text.startswith(FOUND):
        now.key = stamp, text.strip()
        now.devices = {name.lower(): names.strip() for name, names in _DEVICES.findall(text)}
    elif text.startswith(_VERSION):
        now.version = text.removeprefix(_VERSION).strip()
    elif pue := _PUE.search(text):
        now.pue = _number(pue[1])
    elif actual := _ACTUAL.match(text):
        now.actual = _consumption(actual[1], text, stamp, line)
    elif predicted := _PREDICTED.match(text):
        now.predicted = int(predicted[1])
    elif _EPOCH.match(text):
        now.epochs.append(Epoch(stamp=stamp, line=line))
    elif now.epochs and (duration := _DURATION.match(text)):
        now.epochs[-1].duration_s = _seconds(duration[1])
    elif now.epochs and (power := _POWER.match(text.rstrip())):
        now.epochs[-1].watts[power[1].lower()] = _watts(power[2])
    elif place := _PLACE.search(text):
        now.location = (place[1] or place[2]).strip()
    if text.startswith(("Finished monitoring.", "Monitoring thread ended.")):
        now.ended = True


def _consumption(epochs: str | None, text: str, stamp: str, line: int) -> Consumption:
    time, energy, co2 = _TIME.search(text), _ENERGY.search(text), _CO2.search(text)
    if time is None or energy is None:
        raise ValueError("states a consumption without its time or energy")
    return Consumption(
        epochs=int(epochs) if epochs else None,
        time_s=_seconds(time[1]),
        energy_kwh=_number(energy[1]),
        co2_g=_number(co2[1]) if co2 else None,
        stamp=stamp,
        line=line,
    )


def _number(text: str) -> Decimal | None:
    value = exact(text)
    if value is not None and value < 0:
        raise ValueError(f"has {text!r}, below zero")
    return value


def _seconds(text: str) -> Decimal:
    hours, minutes, seconds = text.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + Decimal(seconds)


def _watts(text: str) -> Decimal | None:
    """Return the sum over a component's devices; unknown where one of them is."""
    values = [_number(part) for part in text.strip("[]").split()]
    known = [v for v in values if v is not None]
    return sum(known, Decimal(0)) if known and len(known) == len(values) else None


def moment_of(stamp: str) -> datetime:
    """Return the local time of a message.

    Raises:
        ValueError: If it is none.
    """
    return datetime.fromisoformat(stamp)
