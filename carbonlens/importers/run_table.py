"""The plain run table: a CSV of runs that anyone can type.

Required columns are ``run_id, study, energy_j, units`` and one of ``step`` or
``on`` (``factors`` is an alias): the optimizations that were on, joined by
``+``, empty for the baseline.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Final, Literal, cast, get_args

from carbonlens.domain.finding import Finding
from carbonlens.domain.grades import default_relative_sigma
from carbonlens.domain.identity import sha256_hex
from carbonlens.domain.latency import Latency
from carbonlens.domain.money import Money
from carbonlens.domain.run import Origin, Quality, Reading, Run
from carbonlens.domain.units import US_PER_S, Boundary, Grade, Role
from carbonlens.errors import InputFileError
from carbonlens.importers.claiming import Extract

_REQUIRED: Final = ("run_id", "study", "energy_j", "units")
_ALIASES: Final = {"factors": "on"}
_UNKNOWN_WORDS: Final = frozenset({"", "n/a", "na", "nan", "null", "none", "unknown", "-", "[n/a]"})
_MICRO: Final = Decimal("0.000001")
_OVERFLOW: Final = "\0more cells"
_NUMBERS: Final = frozenset(
    {
        *("energy_j", "units", "repeat", "duration_s", "energy_low_j", "energy_high_j", "cost"),
        *("latency_p50_ms", "latency_p99_ms", "quality", "quality_n", "model_bytes"),
    }
)

Row = Mapping[str, str]


class _RowError(Exception):
    """One row cannot become a record; the text says why."""


class RunTableImporter:
    """Importer of the plain run table."""

    name = "run-table"
    version = 1

    def claim(self, head: bytes) -> bool:
        """Claim a text whose first line names the required columns."""
        try:
            text = _decode(head, whole=False)
        except UnicodeDecodeError:
            return False
        first = next((line for line in text.splitlines() if line.strip()), "")
        names = set(_names(first.split(_delimiter(first))))
        return names.issuperset(_REQUIRED) and bool(names & {"step", "on"})

    def read(self, path: Path) -> Extract:
        """Read the table; each bad row becomes a Finding with its line.

        Raises:
            InputFileError: If the file cannot be read, or its header has changed.
        """
        try:
            content = path.read_bytes()
            text = _decode(content, whole=True)
        except (OSError, UnicodeDecodeError) as error:
            raise InputFileError(
                f"cannot be read ({error})", where=str(path), mend="give a readable UTF-8 or UTF-16 file"
            ) from error
        source = _Source(path, sha256_hex(content))
        try:
            for line, row in _rows(text):
                source.take(line, row)
        except csv.Error as error:
            raise InputFileError(
                f"is no CSV table ({error})", where=str(path), mend="check quotes and line ends"
            ) from error
        return source.extract()


class _Source:
    """Collects the records and Findings of one table."""

    def __init__(self, path: Path, sha256: str) -> None:
        self.path = path
        self.sha256 = sha256
        self.rows = 0
        self.rejected = 0
        self.findings: list[Finding] = []
        self.runs: list[Run] = []
        self._lines: dict[str, tuple[int, Run]] = {}
        self._unstated: dict[str, int] = {}

    def take(self, line: int, row: Row) -> None:
        """Turn one row into a record, or into a Finding."""
        self.rows += 1
        if _OVERFLOW in row:
            self._reject(line, "has more cells than the header has columns")
            return
        try:
            run = self._run(line, row)
        except _RowError as error:
            self._reject(line, str(error))
            return
        self._note_gaps(run, line)
        self._keep(line, run)

    def _keep(self, line: int, run: Run) -> None:
        earlier = self._lines.get(run.run_id)
        if earlier is None:
            self._lines[run.run_id] = (line, run)
            self.runs.append(run)
        elif earlier[1].says_the_same(run):
            self._find("CL201", "info", line, f"repeats line {earlier[0]} exactly; counted once")
            self.rejected += 1
        else:
            text = f"has the run_id {run.run_id!r} of line {earlier[0]} with other content; not imported"
            self._reject(line, text, mend="give every run its own run_id")

    def _run(self, line: int, row: Row) -> Run:
        run_id = row["run_id"].strip()
        if not run_id:
            raise _RowError("has no run_id")
        study = row["study"].strip()
        if not study:
            raise _RowError("has no study")
        on = _on(row)
        step = row.get("step", "").strip() or None
        if step is None and on is None:
            raise _RowError("has neither step nor on")
        start_us = _start_us(row)
        duration = _number(row, "duration_s", minimum=Decimal(0))
        duration_s = None if duration is None else float(duration)
        end_us = None
        if start_us is not None and duration_s is not None:
            end_us = start_us + round(duration_s * US_PER_S)
        units = _number(row, "units", minimum=Decimal(0))
        return Run(
            run_id=run_id,
            study=study,
            step=step if step is not None else "+".join(on or ()) or "baseline",
            on=on,
            role=cast("Role", _word(row, "role", get_args(Role)) or "variant"),
            repeat=_integer(row, "repeat"),
            start_us=start_us,
            end_us=end_us,
            duration_s=duration_s,
            energy=(_reading(row),),
            units=units,
            unit=_text(row, "unit"),
            latency=_latency(row),
            quality=_quality(row),
            model_bytes=_integer(row, "model_bytes"),
            workload=_text(row, "workload"),
            hardware=_text(row, "hardware"),
            zone=_text(row, "zone"),
            site=_text(row, "site"),
            host_id=_text(row, "host"),
            cost=_cost(row),
            origin=Origin(
                instrument=f"{RunTableImporter.name}/{RunTableImporter.version}",
                source_file=self.path.name,
                source_sha256=self.sha256,
                source_line=line,
            ),
        )

    def _note_gaps(self, run: Run, line: int) -> None:
        reading = run.energy[0]
        for what, missing in (
            ("energy_j", reading.energy_j is None),
            ("units", run.units is None or run.units == 0),
            ("boundary", reading.boundary is None),
            ("energy_grade", reading.grade is None),
        ):
            if missing:
                self._unstated.setdefault(what, line)

    def extract(self) -> Extract:
        """Return everything read, with one Finding per column that is not stated."""
        for what, line in self._unstated.items():
            self.findings.append(_gap_finding(what, self.path.name, line))
        energies = [r.energy[0].energy_j for r in self.runs]
        stated = [e for e in energies if e is not None]
        complete = bool(stated) and len(stated) == len(energies)
        return Extract(
            runs=tuple(self.runs),
            rows=self.rows,
            rows_rejected=self.rejected,
            energy_j=sum(stated, Decimal(0)) if complete else None,
            findings=tuple(self.findings),
        )

    def _reject(self, line: int, text: str, mend: str = "mend the row and import again") -> None:
        self.rejected += 1
        self._find("CL202", "error", line, f"line {line} {text}", mend)

    def _find(
        self, code: str, severity: Literal["error", "info"], line: int, text: str, mend: str | None = None
    ) -> None:
        self.findings.append(
            Finding(code=code, severity=severity, message=text, file=self.path.name, line=line, mend=mend)
        )


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


def _decode(content: bytes, *, whole: bool) -> str:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", errors="strict" if whole else "ignore")
    return content.decode("utf-8-sig", errors="strict" if whole else "ignore")


def _delimiter(line: str) -> str:
    return max(",;\t", key=line.count)


def _names(cells: list[str]) -> list[str]:
    plain = [c.strip().strip('"').lower() for c in cells]
    return [_ALIASES.get(c, c) for c in plain]


def _rows(text: str) -> Iterator[tuple[int, Row]]:
    """Yield each data row with its line number; blank lines and repeated headers are skipped."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    delimiter = _delimiter(lines[first]) if lines else ","
    reader = csv.reader(io.StringIO("\n".join(lines[first:])), delimiter=delimiter)
    header = _names(next(reader, []))
    for cells in reader:
        if not any(c.strip() for c in cells) or _names(cells) == header:
            continue
        row: dict[str, str] = dict.fromkeys(header, "")
        row.update(zip(header, cells, strict=False))
        if len(cells) > len(header):
            row[_OVERFLOW] = ""
        elif delimiter == ";":
            row = {k: _decimal_point(k, v) for k, v in row.items()}
        yield first + reader.line_num, row


def _decimal_point(column: str, value: str) -> str:
    """Turn a decimal comma into a point; only ``;`` tables have them, only in number columns."""
    if column not in _NUMBERS or value.count(",") != 1 or "." in value:
        return value
    bare = value.strip().lstrip("+-").replace(",", "").lower().replace("e", "").replace("-", "")
    return value.replace(",", ".") if bare.isdigit() else value


def _text(row: Row, column: str) -> str | None:
    value = row.get(column, "").strip()
    return None if value.lower() in _UNKNOWN_WORDS else value


def _number(row: Row, column: str, *, minimum: Decimal | None = None) -> Decimal | None:
    text = _text(row, column)
    if text is None:
        return None
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise _RowError(f"has {column} {text!r}, which is no number") from None
    if not value.is_finite():
        raise _RowError(f"has {column} {text!r}, which is not finite")
    if minimum is not None and value < minimum:
        raise _RowError(f"has {column} {text}, which is below {minimum}")
    if value.adjusted() > 17:
        raise _RowError(f"has {column} {text}, beyond any plausible figure")
    return value


def _integer(row: Row, column: str) -> int | None:
    value = _number(row, column, minimum=Decimal(0))
    if value is None:
        return None
    if value != value.to_integral_value():
        raise _RowError(f"has {column} {value}, which is no whole number")
    return int(value)


def _word(row: Row, column: str, allowed: tuple[str, ...]) -> str | None:
    text = _text(row, column)
    if text is None:
        return None
    for word in allowed:
        if text.lower() == word.lower():
            return word
    raise _RowError(f"has {column} {text!r}; known are {', '.join(allowed)}")


def _on(row: Row) -> tuple[str, ...] | None:
    if "on" not in row:
        return None
    names = [n.strip() for n in row["on"].split("+")]
    return tuple(n for n in names if n)


def _start_us(row: Row) -> int | None:
    text = _text(row, "start_utc")
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise _RowError(f"has start_utc {text!r}, which is no ISO 8601 time") from None
    offset = moment.utcoffset()
    # The column is UTC by its name; a stated offset is honoured.
    epoch = datetime(1970, 1, 1, tzinfo=moment.tzinfo)
    delta = moment - epoch
    shift = 0 if offset is None else round(offset.total_seconds() * US_PER_S)
    return (delta.days * 86_400 + delta.seconds) * US_PER_S + delta.microseconds - shift


def _reading(row: Row) -> Reading:
    energy = _number(row, "energy_j", minimum=Decimal(0))
    low = _number(row, "energy_low_j", minimum=Decimal(0))
    high = _number(row, "energy_high_j", minimum=Decimal(0))
    if energy is not None and ((low is not None and low > energy) or (high is not None and high < energy)):
        raise _RowError("has an energy outside its own interval")
    grade = cast("Grade | None", _word(row, "energy_grade", get_args(Grade)))
    return Reading(
        component="total",
        energy_j=None if energy is None else energy.quantize(_MICRO),
        boundary=cast("Boundary | None", _word(row, "boundary", get_args(Boundary))),
        grade=grade,
        method="as stated in the table",
        state="unknown" if energy is None else "known",
        u_by_source_j={} if low is not None or high is not None else _default_width(row, grade, energy),
        low_j=None if low is None else float(low),
        high_j=None if high is None else float(high),
    )


def _default_width(row: Row, grade: Grade | None, energy: Decimal | None) -> dict[str, float]:
    """Return the grade's usual error as one source of the meter or model used.

    Rows of one host or kind of hardware share it: it is the same meter, so it
    cancels when they are compared.
    """
    sigma = default_relative_sigma(grade)
    if sigma is None or energy is None:
        return {}
    place = _text(row, "host") or _text(row, "hardware") or row["study"].strip()
    return {f"grade_{grade}:{place}": sigma * float(energy)}


def _latency(row: Row) -> Latency | None:
    p50, p99 = _number(row, "latency_p50_ms"), _number(row, "latency_p99_ms")
    if p50 is None and p99 is None:
        return None
    return Latency(p50_ms=None if p50 is None else float(p50), p99_ms=None if p99 is None else float(p99))


def _quality(row: Row) -> tuple[Quality, ...]:
    value, count = _number(row, "quality"), _integer(row, "quality_n")
    name = _text(row, "quality_name")
    if value is None and name is None:
        return ()
    return (Quality(name=name or "quality", value=None if value is None else float(value), n=count),)


def _cost(row: Row) -> Money | None:
    amount, currency = _number(row, "cost"), _text(row, "currency")
    if amount is None:
        return None
    if currency is None:
        raise _RowError("has a cost without a currency")
    return Money(amount, currency.upper())
