"""Qualcomm QNN's profile, as ONNX Runtime's provider writes it to a CSV file; no energy.

A row is one figure, in the unit of its own row: microseconds, hardware cycles, counts or bytes.
Rows of level ``ROOT`` are of a whole call, those of ``NODE`` are of one operator, mostly in
cycles; cycles are not turned into seconds, as the clock is not told. Times of a call hold each
other (host, remote call, accelerator), so that they are never added up. The file is opened to
append, so that it may hold many sessions, and its last column may have come later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.errors import InputFileError
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import (
    USUAL,
    Facts,
    Group,
    Item,
    Kind,
    OperatorTime,
    Options,
    ProfileRecord,
    Tally,
)
from carbonlens.importers.once import Once
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source, delimiter_of, first_names
from carbonlens.importers.tables import exact, names_of, split

_COLUMNS: Final = (
    *("msg timestamp", "message", "time", "unit of measurement", "timing source", "event level"),
    "event identifier",
)
_BEFORE_NAME: Final = 6
_PROVIDER: Final = "QNN"
_US: Final = Decimal(1_000_000)
_MOST: Final = Decimal(2**63)
_UNITS: Final = {"US", "CYCLES", "COUNT", "BYTES", "OBJECT", "BACKEND", "UNKNOWN"}
_CYCLES_OF: Final = re.compile(r"\s*\(cycles\)\s*$", re.IGNORECASE)
_OP_ID: Final = re.compile(r":OpId_\d+(?:\s.*)?$")
_TOKEN: Final = re.compile(r"_token(?:_\d+)+$")
_BEFORE_RUNS: Final = ("INIT", "FINALIZE")
_EXECUTE: Final = "(execute)"

_CALLS: Final = {
    ("accelerator (execute) time", "US"): "accelerator_us",
    ("accelerator (execute) time (cycles)", "CYCLES"): "accelerator_cycles",
    ("qnn accelerator (execute) time", "US"): "qnn_accelerator_us",
    ("rpc (execute) time", "US"): "rpc_us",
    ("qnn (execute) time", "US"): "execute_us",
}
"""Figures of a whole call by identifier and unit: views of the same time, from the device to the host."""


class QnnProfileImporter:
    """Reads the CSV of QNN's profiler."""

    name = "qnn-profile"
    version = 1
    kind: Kind = "profile"
    rank = USUAL
    facts = Facts(
        title="QNN profile (CSV of ONNX Runtime's QNN provider)",
        reads="profiling_level basic and detailed, with and without the column ONNX Source Ops",
        units="each row has its own: US, CYCLES, COUNT, BYTES; cycles stay cycles",
        grade="none: it holds times and no energy",
        traps=(
            "units are mixed within one column: each row is read by its own",
            "times of one call hold each other and are not added up",
            "the file is appended to: several sessions are said",
            "names are written without quotes and may hold commas",
            "the header stays as it was first written, also where rows have a column more",
        ),
        tested_on=("samples written after the documentation and the provider's source",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Claim tables that begin with the seven columns of the profiler."""
        return each(sources, lambda s: first_names(s)[: len(_COLUMNS)] == _COLUMNS)

    def read(self, group: Group, options: Options) -> Iterator[Item]:  # noqa: ARG002  # a profile has no options
        """Yield the profile.

        Raises:
            InputFileError: If no row tells a time or cycles.
        """
        source, once = group.main, Once(group.main)
        taken, rows, rejected = _Taken(once), 0, 0
        for line, row in _rows(source):
            rows += 1
            try:
                taken.take(row, line)
            except ValueError as error:
                rejected += 1
                text = f"line {line} {error}; the row is left out"
                yield finding("CL202", "error", text, source, line=line, mend="mend the row")
        if not taken.is_any:
            raise InputFileError(
                "tells no time and no cycles",
                where=source.shown,
                mend="profile at least one call, with profiling_level basic or detailed",
            )
        yield taken.profile(rows)
        if taken.sessions > 1:
            text = (
                f"holds {counted(taken.sessions, 'session')}, one appended to the other: figures are of all"
            )
            yield finding(
                "CL275", "warning", text, source, line=taken.session_line, mend="give each its own file"
            )
        yield from once.findings()
        yield Tally(rows=rows, rejected=rejected)


IMPORTER: Final = QnnProfileImporter()


class _Row(msgspec.Struct, frozen=True):
    message: str
    value: str
    unit: str
    level: str
    name: str
    stamp: str


def _rows(source: Source) -> Iterator[tuple[int, _Row | str]]:
    """Yield each row with its line; what is wrong with it where it is none."""
    delimiter, has_sources = ",", False
    is_begun = False
    for line, text in source.lines():
        if not text.strip():
            continue
        cells = split(text, delimiter_of(text)) if not is_begun else split(text, delimiter)
        if not is_begun or tuple(c.lower() for c in cells[: len(_COLUMNS)]) == _COLUMNS:
            delimiter, is_begun = delimiter_of(text), True
            has_sources = len(names_of(text, delimiter)) > len(_COLUMNS)
            continue
        yield line, _row(cells, delimiter, has_sources=has_sources)


def _row(cells: list[str], delimiter: str, *, has_sources: bool) -> _Row | str:
    if len(cells) < len(_COLUMNS):
        return f"has {counted(len(cells), 'cell')} instead of {len(_COLUMNS)}"
    stamp, message, value, unit, _, level = cells[:_BEFORE_NAME]
    # Names are written as they are: commas in them part no cells.
    rest = cells[_BEFORE_NAME:]
    name = delimiter.join(rest[:-1] if has_sources and len(rest) > 1 else rest)
    return _Row(message.upper(), value, unit.upper(), level.upper(), name.strip(), stamp)


class _Taken:
    """Sums by operator and by figure of a call."""

    def __init__(self, once: Once) -> None:
        self.sessions = 1
        self.session_line: int | None = None
        self._once = once
        self._nodes: dict[tuple[str, str], tuple[int, Decimal]] = {}
        self._calls: dict[str, tuple[int, Decimal]] = {}
        self._threads: Decimal | None = None
        self._is_executed = False
        self._unnamed: tuple[int, Decimal] = (0, Decimal(0))

    @property
    def is_any(self) -> bool:
        """Whether anything but counts was told."""
        return bool(self._nodes or self._calls or self._unnamed[0])

    def take(self, row: _Row | str, line: int) -> None:
        """Take a row.

        Raises:
            ValueError: If it cannot be used.
        """
        if isinstance(row, str):
            raise ValueError(row)
        if row.unit not in _UNITS:
            raise ValueError(f"has the unit {row.unit[:20]!r}, which is none of the profiler's")
        if row.unit not in {"US", "CYCLES", "COUNT"}:
            return
        value = exact(row.value, delimiter=",")
        if value is None:
            self._once.say("CL276", "warning", "a figure is not told", line, "profile again")
            return
        if not 0 <= value < _MOST:
            raise ValueError(f"tells {row.value[:30]} {row.unit}, which no profiler counts")
        self._count_sessions(row, line)
        if row.message == "NODE":
            self._add_node(row, value)
        else:
            self._add_call(row, value)

    def _count_sessions(self, row: _Row, line: int) -> None:
        """A session begins by making its graph; making one after a call is another session's begin."""
        if row.message.startswith(_BEFORE_RUNS):
            if self._is_executed:
                self.sessions += 1
                self.session_line = self.session_line or line
            self._is_executed = False
        elif row.message.startswith("EXECUTE") or _EXECUTE in row.name.lower():
            self._is_executed = True

    def _add_node(self, row: _Row, value: Decimal) -> None:
        if row.unit == "COUNT":
            return
        key = (_operator(row.name), row.unit)
        calls, total = self._nodes.get(key, (0, Decimal(0)))
        self._nodes[key] = calls + 1, total + value

    def _add_call(self, row: _Row, value: Decimal) -> None:
        name = row.name.lower()
        figure = _CALLS.get((name, row.unit))
        if row.unit == "COUNT":
            if "hvx threads" in name:
                self._threads = max(self._threads or value, value)
        elif figure is not None:
            calls, total = self._calls.get(figure, (0, Decimal(0)))
            self._calls[figure] = calls + 1, total + value
        elif row.unit == "US" and row.message == "EXECUTE" and row.level == "ROOT":
            self._unnamed = self._unnamed[0] + 1, self._unnamed[1] + value

    def profile(self, rows: int) -> ProfileRecord:
        """Return operators, the longest first, and the figures of the calls."""
        units = {unit for _, unit in self._nodes}
        if not self._calls.get("execute_us") and self._unnamed[0]:
            self._calls["execute_us"] = self._unnamed
        operators = [
            OperatorTime(
                provider=_PROVIDER,
                operator=name,
                calls=calls,
                time_s=float(total / _US) if unit == "US" else None,
                cycles=int(total) if unit == "CYCLES" else None,
            )
            for (name, unit), (calls, total) in self._nodes.items()
        ]
        operators.sort(key=lambda o: (-(o.time_s or 0.0), -(o.cycles or 0), o.operator))
        facts: dict[str, float | int | None] = {
            "inferences": max((calls for calls, _ in self._calls.values()), default=0) or None,
            "sessions": self.sessions,
        }
        for figure, (_, total) in self._calls.items():
            is_time = figure.endswith("_us")
            facts[figure.removesuffix("_us") + "_s" if is_time else figure] = (
                float(total / _US) if is_time else int(total)
            )
        if "CYCLES" in units:
            facts["operator_cycles"] = sum(o.cycles or 0 for o in operators)
        if self._threads is not None:
            facts["hvx_threads"] = int(self._threads)
        return ProfileRecord(operators=tuple(operators), events=rows, facts=facts)


def _operator(name: str) -> str:
    """Return a node's name without what only counts it."""
    plain = _TOKEN.sub("", _OP_ID.sub("", _CYCLES_OF.sub("", name)))
    return plain or name or "not told"
