"""The plain run table: a CSV of runs that anyone can type.

Required columns are ``run_id, study, energy_j, units`` and one of ``step`` or
``on`` (``factors`` is an alias): the optimizations that were on, joined by
``+``, empty for the baseline.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import chain
from typing import Final, Literal, cast, get_args

from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Origin, Run
from carbonlens.domain.units import US_PER_S, Role
from carbonlens.errors import InputFileError
from carbonlens.importers.cells import (
    Decimals,
    Row,
    RowError,
    delimiter_of,
    integer_of,
    number_of,
    start_us_of,
    text_of,
    word_of,
)
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import SPECIFIC, Facts, Group, Item, Kind, Options, RunRecord, Tally
from carbonlens.importers.run_table_figures import cost_of, latency_of, quality_of, reading_of
from carbonlens.importers.sources import Source, first_names
from carbonlens.importers.tables import is_other_header, other_header

_REQUIRED: Final = ("run_id", "study", "energy_j", "units")
_ALIASES: Final = {"factors": "on"}
_OVERFLOW: Final = "\0more cells"
_COLUMNS: Final = (
    *_REQUIRED,
    *("step", "on", "role", "repeat", "start_utc", "duration_s", "energy_low_j", "energy_high_j"),
    *("energy_grade", "boundary", "unit", "zone", "site", "cost", "currency", "latency_p50_ms"),
    *(
        "latency_p99_ms",
        "quality_name",
        "quality",
        "quality_n",
        "quality_direction",
        "model_bytes",
        "host",
        "hardware",
    ),
    "workload",
)
_NUMBERS: Final = frozenset(
    {
        *("energy_j", "units", "repeat", "duration_s", "energy_low_j", "energy_high_j", "cost"),
        *("latency_p50_ms", "latency_p99_ms", "quality", "quality_n", "model_bytes"),
    }
)


class RunTableImporter:
    """Importer of the plain run table."""

    name = "run-table"
    version = 1
    kind: Kind = "runs"
    rank = SPECIFIC
    facts = Facts(
        title="The plain run table (CSV)",
        reads="a CSV that anyone can type: run_id, study, energy_j, units, and step or on",
        units="as the columns' names say: joules, seconds, milliseconds",
        grade="the table's own energy_grade; unknown width without one",
        traps=(
            "a run_id that stands twice with other content is left out",
            "an energy finer than a microjoule is left out: let a run do more units",
        ),
        tested_on=("tables typed here, and by property tests",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Claim texts whose first line names the required columns."""
        return each(sources, is_run_table)

    def read(self, group: Group, options: Options) -> Iterator[Item]:  # noqa: ARG002  # the table says it all
        """Yield the runs; each bad row becomes a Finding with its line.

        Raises:
            InputFileError: If the file cannot be read, or its header has changed.
        """
        source = group.main
        text = source.text().replace("\r\n", "\n").replace("\r", "\n")
        table = _Source(source.name, source.sha256)
        try:
            table.take_header(_header(text), source.shown)
            table.decimals = _decimals(text, source.shown)
            if table.decimals is not None:
                unsure = table.decimals.undecided(table.name, _table(text)[1])
                table.findings += [unsure] if unsure else []
            for line, row in _rows(text, source.shown):
                table.take(line, row)
                yield from table.told()
        except csv.Error as error:
            raise InputFileError(
                f"is no CSV table ({error})", where=source.shown, mend="check quotes and line ends"
            ) from error
        yield from table.items()


IMPORTER: Final = RunTableImporter()


def is_run_table(source: Source) -> bool:
    """Tell whether a source's first line names the required columns."""
    names = {_ALIASES.get(name, name) for name in first_names(source)}
    return names.issuperset(_REQUIRED) and bool(names & {"step", "on"})


class _Source:
    """Collects the records and Findings of one table."""

    def __init__(self, name: str, sha256: str) -> None:
        self.name = name
        self.sha256 = sha256
        self.decimals: Decimals | None = None
        self.rows = 0
        self.rejected = 0
        self.repeated = 0
        self.findings: list[Finding] = []
        self.runs: list[Run] = []
        self._lines: dict[str, tuple[int, Run]] = {}
        self._unstated: dict[str, int] = {}

    def take_header(self, header: list[str], where: str) -> None:
        """Note columns that nobody reads: a misspelt one would go unseen.

        Raises:
            InputFileError: If a column stands twice, so that one would be lost.
        """
        double = sorted({c for c in header if header.count(c) > 1 and c})
        if double:
            raise InputFileError(f"has the column {double[0]!r} twice", where=where, mend="keep one of them")
        strange = [c for c in header if c and c not in _COLUMNS]
        if strange:
            text = f"columns that are not read: {', '.join(strange)}"
            self.findings.append(
                Finding(
                    code="CL208",
                    severity="warning",
                    message=text,
                    file=self.name,
                    line=1,
                    mend=f"known are {', '.join(_COLUMNS)}",
                )
            )

    def take(self, line: int, row: Row) -> None:
        """Turn one row into a record, or into a Finding."""
        self.rows += 1
        if _OVERFLOW in row:
            self._reject(line, "has more cells than the header has columns")
            return
        try:
            run = self._run(line, self._with_points(row))
        except RowError as error:
            self._reject(line, str(error))
            return
        self._note_gaps(run, line)
        self._keep(line, run)

    def _with_points(self, row: Row) -> Row:
        decimals = self.decimals
        if decimals is None:
            return row
        return {k: decimals.plain(k, v) if k in _NUMBERS else v for k, v in row.items()}

    def _keep(self, line: int, run: Run) -> None:
        earlier = self._lines.get(run.run_id)
        if earlier is None:
            self._lines[run.run_id] = (line, run)
            self.runs.append(run)
        elif earlier[1].says_the_same(run):
            self._find("CL201", "info", line, f"repeats line {earlier[0]} exactly; counted once")
            self.repeated += 1
        else:
            text = f"has the run_id {run.run_id!r} of line {earlier[0]} with other content; not imported"
            self._reject(line, text, mend="give every run its own run_id")

    def _run(self, line: int, row: Row) -> Run:
        run_id = row["run_id"].strip()
        if not run_id:
            raise RowError("has no run_id")
        study = row["study"].strip()
        if not study:
            raise RowError("has no study")
        on = _on(row)
        for column in ("run_id", "study", "step", "on"):
            # A quote that nobody closed swallows the rows after it into one cell.
            if "\n" in row.get(column, ""):
                raise RowError(f"has a line break in {column}: is a quote left open?")
        step = row.get("step", "").strip() or None
        if step is None and on is None:
            raise RowError("has neither step nor on")
        start_us = start_us_of(row)
        duration = number_of(row, "duration_s", minimum=Decimal(0))
        duration_s = None if duration is None else float(duration)
        end_us = None
        if start_us is not None and duration_s is not None:
            end_us = start_us + round(duration_s * US_PER_S)
        units = number_of(row, "units", minimum=Decimal(0))
        return Run(
            run_id=run_id,
            study=study,
            step=step if step is not None else "+".join(on or ()) or "baseline",
            on=on,
            role=cast("Role", word_of(row, "role", get_args(Role)) or "variant"),
            repeat=integer_of(row, "repeat"),
            start_us=start_us,
            end_us=end_us,
            duration_s=duration_s,
            energy=(reading_of(row),),
            units=units,
            unit=text_of(row, "unit"),
            latency=latency_of(row),
            quality=quality_of(row),
            model_bytes=integer_of(row, "model_bytes"),
            workload=text_of(row, "workload"),
            hardware=text_of(row, "hardware"),
            zone=text_of(row, "zone"),
            site=text_of(row, "site"),
            host_id=text_of(row, "host"),
            cost=cost_of(row),
            origin=Origin(
                instrument=f"{RunTableImporter.name}/{RunTableImporter.version}",
                source_file=self.name,
                source_sha256=self.sha256,
                source_line=line,
            ),
        )

    def _note_gaps(self, run: Run, line: int) -> None:
        reading = run.energy[0]
        for what, missing in (
            ("energy_j", reading.energy_j is None),
            ("units", run.role not in _WITHOUT_UNITS and not run.units),
            ("boundary", reading.boundary is None),
            ("energy_grade", reading.grade is None),
            ("quality_direction", any(q.higher_is_better is None for q in run.quality)),
        ):
            if missing:
                self._unstated.setdefault(what, line)

    def told(self) -> list[Finding]:
        """Return the Findings since the last call: of many rows they are not kept here."""
        found, self.findings = self.findings, []
        return found

    def items(self) -> Iterator[Item]:
        """Yield everything read, with one Finding per column that is not stated."""
        for what, line in self._unstated.items():
            self.findings.append(_gap_finding(what, self.name, line))
        for run in self.runs:
            yield RunRecord(run=run, line=run.origin.source_line or 0 if run.origin else 0)
        yield from self.findings
        yield Tally(rows=self.rows, rejected=self.rejected, repeated=self.repeated)

    def _reject(self, line: int, text: str, mend: str = "mend the row and import again") -> None:
        self.rejected += 1
        self._find("CL202", "error", line, f"line {line} {text}", mend)

    def _find(
        self, code: str, severity: Literal["error", "info"], line: int, text: str, mend: str | None = None
    ) -> None:
        self.findings.append(
            Finding(code=code, severity=severity, message=text, file=self.name, line=line, mend=mend)
        )


_WITHOUT_UNITS: Final = frozenset({"effort", "idle"})
"""Roles whose energy is a cost of its own, and is divided by no units."""

_GAPS: Final = {
    "energy_j": ("CL204", "runs without energy are kept, but no total is possible", "fill energy_j"),
    "units": ("CL205", "runs without units have no energy per unit", "fill units with the work done"),
    "boundary": (
        "CL206",
        "boundary is not stated: whether PUE is included is unknown",
        "add the column boundary (device, it or facility)",
    ),
    "energy_grade": (
        "CL207",
        "energy_grade is not stated: the width of the energy is unknown",
        "add the column energy_grade (A meter to E datasheet)",
    ),
    "quality_direction": (
        "CL215",
        "which way a quality is better is not told by its name: gates on its loss are undetermined",
        "add the column quality_direction (higher or lower)",
    ),
}


def _gap_finding(what: str, file: str, line: int) -> Finding:
    code, message, mend = _GAPS[what]
    return Finding(
        code=code,
        severity="warning",
        message=f"{message} (first on line {line})",
        file=file,
        line=line,
        mend=mend,
    )


def _names(cells: list[str]) -> list[str]:
    plain = [c.strip().strip('"').lower() for c in cells]
    return [_ALIASES.get(c, c) for c in plain]


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of a table with their ends, one at a time: a list of them may take far more room."""
    at = 0
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        yield text[at:end]
        at = end


def _table(text: str) -> tuple[int, str, Iterator[str]]:
    """Return lines before the header, the delimiter, and the lines from the header on."""
    lines = _lines(text)
    before, header = next(((i, line) for i, line in enumerate(lines) if line.strip()), (0, ""))
    return before, delimiter_of(header), chain((header,), lines)


def _header(text: str) -> list[str]:
    _, delimiter, lines = _table(text)
    return _names(next(csv.reader(lines, delimiter=delimiter, strict=True), []))


def _rows(text: str, where: str) -> Iterator[tuple[int, Row]]:
    """Yield each data row with its line number; blank lines and repeated headers are skipped.

    Raises:
        InputFileError: If another header follows.
    """
    first, delimiter, lines = _table(text)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    header = _names(next(reader, []))
    for cells in reader:
        if not any(c.strip() for c in cells) or _names(cells) == header:
            continue
        if is_other_header(cells, header, _ALIASES):
            raise other_header(where, first + reader.line_num)
        row: dict[str, str] = dict.fromkeys(header, "")
        row.update(zip(header, cells, strict=False))
        if len(cells) > len(header):
            row[_OVERFLOW] = ""
        yield first + reader.line_num, row


def _decimals(text: str, where: str) -> Decimals | None:
    """Return how the numbers of a table mark decimals; ``None`` where commas part its cells."""
    if _table(text)[1] == ",":
        return None
    found = Decimals()
    for line, row in _rows(text, where):
        for name in sorted(_NUMBERS & row.keys()):
            found.see(name, row[name], line)
    return found


def _on(row: Row) -> tuple[str, ...] | None:
    if "on" not in row:
        return None
    names = [n.strip() for n in row["on"].split("+")]
    return tuple(n for n in names if n)
