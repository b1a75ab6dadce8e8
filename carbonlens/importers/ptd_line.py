"""A line of PTDaemon's power log, for all who read it: a time, then name and value in turn.

With several channels (``Ch1``) or analyzers (``Analyzer1``) blocks of their own follow what is
said of the whole; merged logs name a meter before the time instead. What is not measured is
``-1``, a word or an error: no reading, never 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final

import msgspec

from carbonlens.importers.tables import exact

ERROR: Final = "ERROR"
TIME: Final = "Time"
_STAMP: Final = "%m-%d-%Y %H:%M:%S"
_PLAIN_STAMP: Final = re.compile("([0-9]{2})-([0-9]{2})-([0-9]{4}) ([0-9]{2}):([0-9]{2}):([0-9]{2})")
_BLOCK: Final = re.compile(r"^(?:Ch|Analyzer)\d+$")
_CHANNEL: Final = re.compile(r"^Ch\d+$")
_METER: Final = re.compile(r"^Analyzer\d+$")
_OFF: Final = Decimal(-1)
"""What the daemon writes where a quantity is not measured."""

_LEAST_VA: Final = 0.05
"""Below it volts and amperes are the meter's own noise, and tell nothing of a power beside them."""

MOST_RATIO: Final = 2.0
"""Most by which watts may differ from volts x amperes x power factor: they are means of a second each."""


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """What one channel, one analyzer or the whole tells.

    Attributes:
        name: ``Ch1``, ``Analyzer1``; empty for the whole.
        watts: Mean power; NaN where it was not measured.
        implied_w: Volts x amperes, x the power factor where it is told; ``None`` without them.
        has_factor: Whether the power factor is in it.
        stamp: Its own time, where it has one.
    """

    name: str
    watts: float
    implied_w: float | None = None
    has_factor: bool = False
    stamp: datetime | None = None

    @property
    def contradiction(self) -> str | None:
        """What its watts say against its volts and amperes; ``None`` where they agree, or one is not told."""
        if self.implied_w is None or self.implied_w < _LEAST_VA or not math.isfinite(self.watts):
            return None
        ratio = self.watts / self.implied_w
        if ratio > MOST_RATIO or (self.has_factor and ratio < 1 / MOST_RATIO):
            return f"Watts are another power than Volts x Amps{' x PF' if self.has_factor else ''}"
        return None


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line.

    Attributes:
        stamp: Local time, without a zone.
        meter: Name before the time, in merged logs.
        whole: What is said of the whole; without watts of its own, the sum of its channels.
        parts: Channels and analyzers.
        mark: Of the run that a client asked for.
        is_error: Whether the meter told an error in place of figures.
    """

    stamp: datetime
    meter: str | None
    whole: Block
    parts: tuple[Block, ...] = ()
    mark: str | None = None
    is_error: bool = False


def parse(text: str) -> Line:
    """Return what a line tells.

    Raises:
        ValueError: If it is none of the daemon's, or damaged; the text says how.
    """
    cells = [cell.strip() for cell in text.split(",")]
    meter = cells.pop(0) if _METER.match(cells[0]) else None
    if len(cells) < 4 or cells[0] != TIME:
        raise ValueError("is none of the daemon's")
    stamp = _moment(cells[1])
    if cells[2] == ERROR:
        return Line(stamp=stamp, meter=meter, whole=Block(name="", watts=math.nan), is_error=True)
    (_, told), *others = _blocks(cells)
    parts = tuple(_block(name, pairs) for name, pairs in others)
    channels = [part.watts for part in parts if _CHANNEL.match(part.name)]
    # Where no sum stands before the channels that it would be of, theirs is taken.
    is_summed = "Watts" not in told and bool(channels)
    whole = Block(name="", watts=math.fsum(channels)) if is_summed else _block("", told)
    return Line(stamp=stamp, meter=meter, whole=whole, parts=parts, mark=mark_of(text))


def mark_of(text: str) -> str | None:
    """Return the mark of a line; ``None`` where it bears none."""
    _, is_there, rest = text.partition(",Mark,")
    return rest.partition(",")[0].strip() if is_there else None


def _block(name: str, pairs: dict[str, str]) -> Block:
    if "Watts" not in pairs:
        raise ValueError("tells no Watts")
    watts = _figure(pairs["Watts"])
    if watts < 0:
        raise ValueError(f"has a power of {watts:g} W, below zero")
    volts, amperes, factor = (_beside(pairs, key) for key in ("Volts", "Amps", "PF"))
    implied_w = None if volts is None or amperes is None else volts * amperes * (factor or 1.0)
    return Block(
        name=name,
        watts=watts,
        implied_w=implied_w,
        has_factor=factor is not None,
        stamp=_moment(pairs[TIME]) if name and TIME in pairs else None,
    )


def _figure(text: str) -> float:
    """Return a figure; NaN for one that is not measured."""
    if text.lstrip("+-").lower() in {"nan", "inf"}:
        return math.nan
    value = exact(text)
    return math.nan if value is None or value == _OFF else float(value)


def _beside(pairs: dict[str, str], name: str) -> float | None:
    """Return a figure that watts are held against; ``None`` where it is no such."""
    try:
        value = abs(_figure(pairs.get(name, "")))
    except ValueError:
        return None
    return value if 0 < value < math.inf else None


def _moment(text: str) -> datetime:
    whole, _, part = text.partition(".")
    plain = _PLAIN_STAMP.fullmatch(whole)
    try:
        if plain is not None:
            month, day, year, hour, minute, second = map(int, plain.groups())
            moment = datetime(year, month, day, hour, minute, second)  # noqa: DTZ001  # the log has no zone
        else:
            moment = datetime.strptime(whole, _STAMP)  # noqa: DTZ007  # the log has no zone
    except ValueError:
        raise ValueError(f"has the time {text!r}, which is none") from None
    if part and not (part.isascii() and part.isdigit()):
        raise ValueError(f"has the time {text!r}, which is none")
    return moment.replace(microsecond=int(part[:6].ljust(6, "0")))


def _blocks(cells: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield name and pairs of the whole (an empty name) and of each part, in the order of the line."""
    name: str = ""
    pairs: dict[str, str] = {}
    place = 0
    while place < len(cells):
        cell = cells[place]
        if _BLOCK.match(cell):
            yield name, pairs
            name, pairs = cell, {}
            place += 1
            continue
        if place + 1 >= len(cells):
            raise ValueError(f"ends after {cell!r}: it is cut off")
        if cell in pairs:
            raise ValueError(f"tells {cell!r} twice")
        pairs[cell] = cells[place + 1]
        place += 2
    yield name, pairs
