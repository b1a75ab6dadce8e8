"""``readings*.csv``: what meters counted, as spans of energy or as counts at instants.

A row is a span (``start``, ``end``, ``energy``) or a count (``time``, ``counter``); the
counts of all files together give the spans between them (``counts``). Every row names its
unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import tzinfo
from decimal import Context, Decimal
from typing import Any, Final, Literal, NamedTuple, cast, get_args

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.identity import sha256_hex
from carbonlens.domain.meter_reading import MeterMethod, MeterReading
from carbonlens.domain.run import Origin
from carbonlens.domain.units import Grade
from carbonlens.inventory import csv_entries
from carbonlens.inventory.faults import Fault, shown
from carbonlens.inventory.local_time import Unclear, instant_us, parsed
from carbonlens.inventory.toml_entries import INVALID, Entry
from carbonlens.inventory.values import plain

PREFIX: Final = "readings"
INSTRUMENT: Final = "inventory-readings/1"

_J: Final[Mapping[str, int]] = {
    "j": 1,
    "kj": 10**3,
    "mj": 10**6,
    "gj": 10**9,
    "wh": 3_600,
    "kwh": 3_600_000,
    "mwh": 3_600_000_000,
    "gwh": 3_600_000_000_000,
}
_EXACT: Final = Context(prec=60)
"""Products and differences keep every digit."""

_UNITS: Final = "Wh, kWh, MWh, GWh, J, kJ, MJ, GJ"

Direction = Literal["import", "export"]
Carrier = Literal["electricity", "heat", "cooling", "gas"]
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "direction": get_args(Direction),
    "carrier": get_args(Carrier),
    "method": get_args(MeterMethod),
}
_NUMBERS: Final[tuple[str, ...]] = ("energy", "counter", "counter_start", "counter_end")
COLUMNS: Final = (
    *("meter", "start", "end", "energy", "time", "counter", "unit"),
    *("direction", "carrier", "method", "reading_id", "supersedes", "counter_start", "counter_end"),
)
"""Columns that a file may have."""

_ALIASES: Final = {"meter_id": "meter"}
_TIME: Final = "write it as 2026-03-01T13:00, with an offset such as +01:00 if it is no local time"


class Meant(NamedTuple):
    """What a row is about."""

    meter_id: str
    direction: Direction
    carrier: Carrier
    method: MeterMethod | None


class Count(NamedTuple):
    """What a meter showed at an instant."""

    meant: Meant
    time_us: int
    counter_j: Decimal
    origin: Origin


class Rows(msgspec.Struct, frozen=True, kw_only=True):
    """What one file gave.

    Attributes:
        rows: Number of its rows.
        spans: Readings it states.
        counts: Counts it states.
        findings: What cannot be read without a guess, and is left out.
    """

    rows: int = 0
    spans: tuple[MeterReading, ...] = ()
    counts: tuple[Count, ...] = ()
    findings: tuple[Finding, ...] = ()


def read(text: str, file: str, zone: tzinfo | None, faults: list[Fault]) -> Rows:
    """Return the readings of one file.

    Args:
        text: Its content.
        file: Its name.
        zone: Of times without an offset; ``None`` where none is stated, and such times are a fault.
        faults: Takes what is wrong.
    """
    entries = csv_entries.entries(text, file, faults, columns=COLUMNS, numbers=_NUMBERS, aliases=_ALIASES)
    reader = _Reader(zone, faults, file, sha256_hex(text.encode()))
    for entry in entries:
        if INVALID not in entry.values.values():
            reader.take(entry)
    return Rows(
        rows=len(entries),
        spans=tuple(reader.spans),
        counts=tuple(reader.counts),
        findings=tuple(reader.findings()),
    )


def grade_of(method: MeterMethod | None) -> Grade:
    """Return the evidence grade: what a supplier estimated was metered by nothing."""
    return "D" if method == "estimated" else "A"


def content_id(meant: Meant, start_us: int, end_us: int, *amounts: Decimal | None) -> str:
    """Return the id of a reading whose source gives none, made from its content.

    Args:
        meant: What it is about.
        start_us: Its start.
        end_us: Its end.
        amounts: Its energy, and the counts at its ends.
    """
    parts = (*meant, start_us, end_us, *map(_normal, amounts))
    return sha256_hex(msgspec.json.encode(parts))[:32]


class _Reader:
    """Takes the rows of one file."""

    def __init__(self, zone: tzinfo | None, faults: list[Fault], file: str, sha256: str) -> None:
        self.spans: list[MeterReading] = []
        self.counts: list[Count] = []
        self._zone = zone
        self._faults = faults
        self._file = file
        self._sha256 = sha256
        self._unclear: dict[Unclear, list[int]] = {}
        self._negative: list[int] = []

    def take(self, entry: Entry) -> None:
        """Add a row's span or count; a row with a fault or an unclear time gives none."""
        before = len(self._faults)
        meant, factor = self._meant(entry), self._factor(entry)
        is_count = "counter" in entry.values or "time" in entry.values
        keys = ("time",) if is_count else ("start", "end")
        times = [self._time(entry, key) for key in keys]
        stated = {k: Decimal(entry.values[k]) for k in _NUMBERS if k in entry.values}
        amounts = {k: _EXACT.multiply(v, Decimal(factor or 0)) for k, v in stated.items()}
        for key, amount in amounts.items():
            if plain(amount):
                self._fault(entry, f"{key} {shown(entry.values[key])} is beyond any plausible figure", key)
        self._check_layout(entry, is_count=is_count)
        if len(self._faults) > before or meant is None:
            return
        unclear = [t for t in times if isinstance(t, str)]
        if unclear:
            for why in dict.fromkeys(unclear):
                self._unclear.setdefault(why, []).append(entry.line)
        elif is_count:
            self.counts.append(Count(meant, cast("int", times[0]), amounts["counter"], self._origin(entry)))
        else:
            self._span(entry, meant, cast("list[int]", times), amounts)

    def _span(self, entry: Entry, meant: Meant, times: list[int], amounts: dict[str, Decimal]) -> None:
        start_us, end_us = times
        if end_us <= start_us:
            self._fault(entry, "ends when it begins, or earlier", "end", "check start and end")
            return
        first, last, energy = (amounts.get(k) for k in ("counter_start", "counter_end", "energy"))
        if energy is not None and energy < 0:
            self._negative.append(entry.line)
            energy = None
        elif first is not None and last is not None:
            energy = between(first, last, energy)
        name = entry.values.get("reading_id")
        self.spans.append(
            MeterReading(
                reading_id=name or content_id(meant, start_us, end_us, energy, first, last),
                meter_id=meant.meter_id,
                start_us=start_us,
                end_us=end_us,
                energy_j=energy,
                direction=meant.direction,
                carrier=meant.carrier,
                method=meant.method,
                counter_start_j=first,
                counter_end_j=last,
                grade=grade_of(meant.method),
                supersedes=entry.values.get("supersedes"),
                origin=self._origin(entry),
            )
        )

    def findings(self) -> Iterator[Finding]:
        """Yield what was left out or made unknown; local times without a zone are a fault."""
        for why, lines in self._unclear.items():
            rows = counted(len(lines), "row has a local time", "rows have a local time")
            if why == "unzoned":
                mend = "state timezone in reporting.toml, or write the offset: 2026-03-01T13:00+01:00"
                what = f"{rows} and no time zone is stated"
                self._faults.append(Fault(file=self._file, line=lines[0], what=what, mend=mend))
            else:
                clocks = "skip: it is no instant" if why == "skipped" else "repeat: it could be either"
                mend = "write the times of that day with their offset: 2026-10-25T02:00+01:00"
                yield self._found("CL361", f"{rows} that the clocks {clocks}; left out", lines[0], mend)
        if self._negative:
            rows = counted(len(self._negative), "row has an energy", "rows have an energy")
            mend = "write what is fed into the grid with direction export, and without a sign"
            yield self._found("CL366", f"{rows} below 0; it is unknown", self._negative[0], mend)

    def _found(self, code: str, message: str, line: int, mend: str) -> Finding:
        return Finding(
            code=code,
            severity="error",
            message=message,
            file=self._file,
            line=line,
            mend=mend,
            subject=self._file,
        )

    def _meant(self, entry: Entry) -> Meant | None:
        words: dict[str, Any] = {}
        for key, known in _WORDS.items():
            text = entry.values.get(key)
            words[key] = text.lower() if text is not None else None
            if text is not None and text.lower() not in known:
                self._fault(entry, f"{key} is {shown(text)}", key, f"write one of {', '.join(known)}")
        meter = entry.values.get("meter")
        if meter is None:
            self._fault(entry, "lacks 'meter'", "meter", "name the meter of meters.toml")
            return None
        direction: Direction = words["direction"] or "import"
        return Meant(meter, direction, words["carrier"] or "electricity", words["method"])

    def _factor(self, entry: Entry) -> int | None:
        text = entry.values.get("unit")
        if text is None:
            self._fault(entry, "lacks 'unit'", "unit", f"add the column unit: {_UNITS}")
            return None
        # A small m is milli: nobody means it, but whether k or M was meant is not for us to say.
        factor = None if text.startswith("m") else _J.get(text.lower())
        if factor is None:
            self._fault(entry, f"unit is {shown(text)}", "unit", f"write one of {_UNITS}")
        return factor

    def _time(self, entry: Entry, key: str) -> int | Unclear | None:
        text = entry.values.get(key)
        moment = None if text is None else parsed(text)
        if moment is None:
            self._fault(entry, f"lacks {key!r}" if text is None else f"{key} is {shown(text)}", key, _TIME)
            return None
        return instant_us(moment, self._zone, is_end=key == "end")

    def _check_layout(self, entry: Entry, *, is_count: bool) -> None:
        values = entry.values
        if is_count:
            others = [k for k in ("start", "end", "energy", "counter_start", "counter_end") if k in values]
            if "counter" not in values:
                self._fault(entry, "has a time without a counter", "counter", "add counter")
            elif others:
                mend = "write time and counter, or start, end and energy"
                self._fault(entry, f"has a counter and {others[0]}", others[0], mend)
        elif ("counter_start" in values) != ("counter_end" in values):
            self._fault(entry, "has one of counter_start and counter_end", "counter_start", "write both")

    def _origin(self, entry: Entry) -> Origin:
        return Origin(
            instrument=INSTRUMENT,
            source_file=self._file,
            source_sha256=self._sha256,
            source_line=entry.line,
        )

    def _fault(self, entry: Entry, what: str, key: str, mend: str = "check the number and its unit") -> None:
        self._faults.append(entry.fault(what, mend, key))


def between(first: Decimal, last: Decimal, energy: Decimal | None = None) -> Decimal | None:
    """Return the energy between two counts; ``None`` where they run back or contradict it.

    Args:
        first: Joules counted at the start.
        last: Joules counted at the end.
        energy: What the source states for the span, if it does.
    """
    difference = _EXACT.subtract(last, first)
    return difference if difference >= 0 and energy in (None, difference) else None


def _normal(value: Decimal | None) -> str | None:
    """Return a number's text, alike for 1.5 and 1.50."""
    return None if value is None else f"{_EXACT.normalize(value):f}"
