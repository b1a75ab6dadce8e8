"""Perfetto's power rails: as ``trace_processor`` prints a query, as trace events, or the trace itself."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from carbonlens.errors import InputFileError
from carbonlens.importers import perfetto_trace
from carbonlens.importers.cells import UNKNOWN_WORDS
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Facts, Group, Item, Kind, Options, Tally
from carbonlens.importers.kineto_events import decoded
from carbonlens.importers.perfetto_rails import RailSamples, rail_of
from carbonlens.importers.records import finding
from carbonlens.importers.run_rows import left_out, number_in, whole_row
from carbonlens.importers.sources import Source, first_names
from carbonlens.importers.tables import Table

_TIME: Final = "ts"
_NAMES: Final = ("power_rail_name", "name")
_VALUES: Final = ("energy_since_boot", "value")
_RAW: Final = "raw_power_rail_name"
_NOTHING: Final = {*UNKNOWN_WORDS, "[null]"}
_US_PER_NS: Final = 1e-3
_IN_EVENTS: Final = re.compile(rb'"name"\s*:\s*"power\.(?:rails\.[a-z.]+|\w+_uws)"')
_TRACK: Final = re.compile(r'^"?power\.')
_LONGEST_NS: Final = 1e20
_LOOK_AT: Final = 512 * 1024**2
_MEND: Final = "trace with the data source android.power and collect_power_rails: true"


class PerfettoImporter:
    """Importer of Perfetto's power rails."""

    name = "perfetto"
    version = 1
    kind: Kind = "trace"
    rank = USUAL
    facts = Facts(
        title="Perfetto power rails (ODPM)",
        reads="a query's rows by trace_processor (ts, name, value of counters, or "
        "android_power_rails_counters) as CSV or TSV; counter events of JSON traces; binary traces "
        "with the extra perfetto",
        units="microwatt-seconds since boot; nanoseconds (CSV), microseconds (JSON) of the trace's clock",
        grade="B: energy counters",
        traps=(
            "rails are channels of the chip's meter and not the whole device: that is said",
            "low-dropout rails (L9S_...) are fed by bucks (S6M_LLDO1): beside, where those are logged",
            "a power.* counter whose name tells no unit (neither _uws nor power.rails.) is left aside",
            "CSV and JSON times count from boot: --start; a binary trace tells when it booted",
            "counters wrap on some devices: energy of the step is unknown, and said",
            "batt.* counters are charge in and out of the battery, and no energy: not read",
        ),
        tested_on=(
            "tables and JSON written after its documentation and standard library",
            "binary traces written with Perfetto's own Python package (0.59.1), of packets typed here",
        ),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Return query results with power rails, JSON traces with such counters, and binary traces."""
        return each(sources, lambda s: _is_table(s) or perfetto_trace.is_trace(s) or _is_json(s))

    def read(self, group: Group, options: Options) -> Iterator[Item]:  # noqa: ARG002  # the trace says all
        """Yield the rails.

        Raises:
            InputFileError: If there is no rail, or a binary trace cannot be decoded.
        """
        source = group.main
        if _is_table(source):
            yield from _table_items(source)
        elif source.encoding is None:
            yield from perfetto_trace.items(source)
        else:
            yield from _json_items(source)


IMPORTER: Final = PerfettoImporter()


def _is_table(source: Source) -> bool:
    names = first_names(source)
    if _TIME not in names or not set(_VALUES) & set(names):
        return False
    if _NAMES[0] in names:
        return True
    return _NAMES[1] in names and any(
        _TRACK.match(cell.strip()) for line in source.head_lines()[1:] for cell in re.split(r"[,\t;|]", line)
    )


def _is_json(source: Source) -> bool:
    """Whether a JSON trace has counters of rails, wherever in it."""
    text = "".join(source.first_lines)
    if '"traceEvents"' not in text or not text.lstrip().startswith("{"):
        return False
    seen = 0
    tail = b""
    try:
        for _, block in source.blocks():
            if _IN_EVENTS.search(tail + block):
                return True
            tail, seen = block[-200:], seen + len(block)
            if seen > _LOOK_AT:
                break
    except InputFileError:
        return False
    finally:
        source.repairs.clear()  # what reading repairs is said by the reading that counts
    return False


def _table_items(source: Source) -> Iterator[Item]:
    table = Table(source)
    gathered = RailSamples(source, relative=True)
    rows = rejected = 0
    aside: dict[str, int] = {}
    for line, cells in table.dicts():
        rows += 1
        try:
            row = whole_row(cells)
            track = next(row[n] for n in _NAMES if n in row)
            rail = rail_of(track, _raw_of(row))
            if rail is None:
                if track.startswith("power."):
                    aside.setdefault(track, line)
                continue
            told_ns = number_in(row, _TIME, table.delimiter)
            value = number_in(row, next(n for n in _VALUES if n in row), table.delimiter)
            if told_ns is None or value is None:
                raise ValueError("tells no time, or no energy")
            if told_ns > _LONGEST_NS:
                raise ValueError(f"has ts {told_ns:.3g}, which is no time")
        except ValueError as error:
            rejected += 1
            yield left_out(error, source, line)
            continue
        gathered.add(rail, float(told_ns) * _US_PER_NS, float(value))
    yield from _handed_on(source, gathered, aside)
    yield Tally(rows=rows, rejected=rejected)


def _json_items(source: Source) -> Iterator[Item]:
    gathered = RailSamples(source, relative=True)
    rows = torn = 0
    torn_line: int | None = None
    aside: dict[str, int] = {}
    is_closed = False
    for item in decoded(source):
        is_closed = is_closed or item.what == "closed"
        if item.what == "torn":
            rows, torn, torn_line = rows + 1, torn + 1, torn_line or item.line
        if item.what != "event" or item.value.get("ph") != "C":
            continue
        track = item.value.get("name")
        if not isinstance(track, str) or not track.startswith("power."):
            continue
        rows += 1
        rail = rail_of(track)
        if rail is None:
            aside.setdefault(track, item.line)
            continue
        t_us, value = item.value.get("ts"), _value_of(item.value.get("args"))
        if not _is_number(t_us) or value is None:
            torn, torn_line = torn + 1, torn_line or item.line
            continue
        gathered.add(rail, float(t_us), value)
    yield from _handed_on(source, gathered, aside)
    if torn:
        text = f"{torn} events cannot be read and are left out" if torn > 1 else "an event cannot be read"
        yield finding("CL202", "error", text, source, line=torn_line, mend="export the trace again")
    if not is_closed:
        text = "the trace is cut off: events after the cut are missing"
        yield finding("CL240", "warning", text, source, mend="export the trace again")
    yield Tally(rows=rows, rejected=torn)


def _handed_on(source: Source, gathered: RailSamples, aside: Mapping[str, int]) -> Iterator[Item]:
    if not gathered.count:
        raise InputFileError("holds no power rail whose unit is told", where=source.shown, mend=_MEND)
    yield from gathered.items()
    for track, line in aside.items():
        text = f"{track}: neither its name nor its table tells a unit; it is left aside"
        yield finding("CL269", "info", text, source, line=line)


def _raw_of(row: Mapping[str, str]) -> str | None:
    raw = row.get(_RAW, "")
    return None if raw.lower() in _NOTHING else raw


def _value_of(args: object) -> float | None:
    """Return the one number of a counter event."""
    values = list(args.values()) if isinstance(args, dict) else []
    return float(values[0]) if len(values) == 1 and _is_number(values[0]) else None


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value < 2**63 and math.isfinite(value)
