"""Any CSV of runs, by a map that says which column holds what, in which unit.

The fields are named with their unit: ``energy_wh = "Energy (Wh)"``. A table is read so only
where a map asks for it; no column is guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final, cast, get_args

from carbonlens.domain.identity import sha256_hex
from carbonlens.domain.import_map import TableRule
from carbonlens.domain.run import Run
from carbonlens.domain.units import J_PER_KWH, US_PER_S, Grade
from carbonlens.errors import ConfigError, InputFileError
from carbonlens.importers import unit_checks
from carbonlens.importers.cells import Decimals, RowError
from carbonlens.importers.contract import (
    GENERIC,
    Facts,
    Group,
    Item,
    Kind,
    Options,
    RunRecord,
    Tally,
    Written,
)
from carbonlens.importers.records import exact_j, finding, origin_of, reading
from carbonlens.importers.sources import Source
from carbonlens.importers.tables import Table, exact
from carbonlens.importers.times import Clock, seconds_of

ENERGY_J: Final = {
    "energy_kwh": Decimal(J_PER_KWH),
    "energy_wh": Decimal(3600),
    "energy_mwh": Decimal(J_PER_KWH) * 1000,
    "energy_kj": Decimal(1000),
    "energy_j": Decimal(1),
    "energy_mj": Decimal("0.001"),
    "energy_uj": Decimal("0.000001"),
}
"""Fields of energy and joules in one; ``mwh`` is a megawatt-hour, ``mj`` a millijoule."""

DURATION_S: Final = {
    "duration_h": Decimal(3600),
    "duration_min": Decimal(60),
    "duration_s": Decimal(1),
    "duration_ms": Decimal("0.001"),
}
EMISSIONS_KG: Final = {
    "emissions_t": Decimal(1000),
    "emissions_kg": Decimal(1),
    "emissions_g": Decimal("0.001"),
    "emissions_mg": Decimal("0.000001"),
}
_TEXTS: Final = ("run_id", "study", "step", "project", "host", "hardware", "workload", "zone", "site", "team")
_NUMBERS: Final = frozenset({*ENERGY_J, *DURATION_S, *EMISSIONS_KG, "units", "power_w"})
_OTHERS: Final = ("start", "end", "units", "power_w", "country", "region")
FIELDS: Final = (*ENERGY_J, *DURATION_S, *EMISSIONS_KG, *_TEXTS, *_OTHERS)
_UNITS: Final = {
    "energy_kwh": "kWh",
    "energy_wh": "Wh",
    "energy_mwh": "MWh",
    "energy_kj": "kJ",
    "energy_mj": "mJ",
    "energy_uj": "uJ",
}


class MappedTableImporter:
    """Importer of any CSV, by a user's map of its columns."""

    name = "mapped-table"
    version = 1
    kind: Kind = "runs"
    rank = GENERIC
    facts = Facts(
        title="Any CSV of runs, by --map",
        reads="tables that a [[table]] of the map names, with the column of each field",
        units="as the map's fields say: energy_kwh, energy_wh, energy_j, duration_s, emissions_g and so on",
        grade="as the map says; unknown is D",
        traps=(
            "a row without a run_id is known by its whole content: two equal rows count once",
            "a duration may be given by start and end, or an energy by power_w and duration",
        ),
        tested_on=("tables typed here; two tables of emissions from public repositories",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:  # noqa: ARG002  # a map claims for it
        """Claim nothing: only a map says what a column means."""
        return []

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield the runs of a table.

        Raises:
            InputFileError: If the table cannot be read, or lacks a column that the map names.
            ConfigError: If the map names no such field.
        """
        if options.table is None:
            raise InputFileError(
                "is a table that no map speaks of", where=group.main.shown, mend="give --map with a [[table]]"
            )
        yield from _Reading(group.main, options.table, options).items()


IMPORTER: Final = MappedTableImporter()


class _Reading:
    def __init__(self, source: Source, rule: TableRule, options: Options) -> None:
        strange = sorted(set(rule.columns) - set(FIELDS))
        if strange:
            raise ConfigError(
                f"a table has no field {strange[0]!r}", where="--map", mend=f"known are {', '.join(FIELDS)}"
            )
        self._source = source
        self._rule = rule
        self._options = options
        self._columns = {field: name.strip().lower() for field, name in rule.columns.items()}
        self._clocks: dict[str | None, Clock] = {}
        self._table = Table(source)
        self._decimals = self._seen()
        self._grade = cast("Grade", rule.grade if rule.grade in get_args(Grade) else "D")

    def _seen(self) -> Decimals | None:
        """Return how the table's numbers mark decimals; ``None`` where commas part its cells."""
        table, found = Table(self._source), Decimals()
        columns = [name for field, name in self._columns.items() if field in _NUMBERS]
        for line, cells in table.dicts():
            if table.delimiter == ",":
                return None
            if isinstance(cells, dict):
                for name in columns:
                    found.see(name, cells.get(name, ""), line)
        return found

    def items(self) -> Iterator[Item]:
        """Yield runs, Findings and a tally."""
        rows = rejected = repeated = 0
        seen: dict[str, int] = {}
        for line, cells in self._table.dicts():
            if not rows:
                self._check_header()
            rows += 1
            try:
                if not isinstance(cells, dict):
                    size = "more" if len(cells) > len(self._table.header) else "fewer"
                    raise ValueError(f"has not as many cells as the header has columns, but {size}")
                record = self._record(line, cells)
            except ValueError as error:
                rejected += 1
                text = f"line {line} {error}; the row is left out"
                yield finding("CL202", "error", text, self._source, line=line, mend="mend the row")
                continue
            if record.run.run_id in seen and "run_id" not in self._columns:
                repeated += 1
                text = f"repeats line {seen[record.run.run_id]} exactly; counted once"
                yield finding("CL201", "info", text, self._source, line=line)
                continue
            seen.setdefault(record.run.run_id, line)
            yield from self._checks(record)
            yield record
        for clock in self._clocks.values():
            yield from clock.findings
        unsure = self._decimals and self._decimals.undecided(self._source.shown, self._table.delimiter)
        if unsure:
            yield unsure
        yield Tally(rows=rows, rejected=rejected, repeated=repeated)

    def _check_header(self) -> None:
        lacking = [name for name in self._columns.values() if name not in self._table.header]
        if lacking:
            raise InputFileError(
                f"lacks the column {lacking[0]!r} that the map names",
                where=f"{self._source.shown}:{self._table.header_line}",
                mend=f"its columns are {', '.join(self._table.header)}",
            )

    def _record(self, line: int, cells: dict[str, str]) -> RunRecord:
        rule, source = self._rule, self._source
        texts = {field: self._text(cells, field) for field in _TEXTS}
        project = texts["project"]
        start_us, end_us = self._us(cells, "start", project, line), self._us(cells, "end", project, line)
        duration_s = self._scaled(cells, DURATION_S)
        if duration_s is None and start_us is not None and end_us is not None:
            duration_s = Decimal(end_us - start_us) / US_PER_S
        if end_us is None and start_us is not None and duration_s is not None:
            end_us = start_us + round(duration_s * US_PER_S)
        energy_j = self._scaled(cells, ENERGY_J)
        method = "as stated in the table"
        watts = self._number(cells, "power_w")
        if energy_j is None and watts is not None and duration_s is not None:
            energy_j, method = watts * duration_s, "stated power times stated duration"
        if energy_j is None and self._scaled(cells, EMISSIONS_KG) is None:
            raise ValueError("states neither energy nor emissions")
        units = self._number(cells, "units")
        content = "\x1f".join(f"{k}={v}" for k, v in sorted(cells.items()))
        run = Run(
            run_id=texts["run_id"] or f"row-{sha256_hex(content.encode())[:24]}",
            study=texts["study"] or rule.study,
            step=texts["step"],
            start_us=start_us,
            end_us=end_us,
            duration_s=None if duration_s is None else float(duration_s),
            energy=(
                reading(
                    "total",
                    energy_j,
                    method=method,
                    grade=self._grade,
                    meter=texts["host"] or texts["hardware"] or source.name,
                    boundary=rule.boundary or self._options.boundary,
                ),
            ),
            units=units,
            unit=rule.unit,
            emissions_reported_kg=self._scaled(cells, EMISSIONS_KG),
            host_id=texts["host"],
            hardware=texts["hardware"],
            workload=texts["workload"],
            zone=texts["zone"],
            site=texts["site"],
            tags={name: value for name in ("project", "team") if (value := texts[name])},
            origin=origin_of(IMPORTER, source, line),
        )
        place = Written(country=self._text(cells, "country"), region=self._text(cells, "region"))
        return RunRecord(
            run=run,
            line=line,
            stated_j=exact_j(energy_j),
            project=project,
            place=place if place.country else None,
        )

    def _checks(self, record: RunRecord) -> Iterator[Item]:
        run = record.run
        field = next((f for f in self._columns if f in ENERGY_J), "energy_j")
        kg, energy_j = run.emissions_reported_kg, record.stated_j
        stated = unit_checks.Stated(
            energy_j=None if energy_j is None else float(energy_j),
            energy_unit=_UNITS.get(field, "J"),
            duration_s=run.duration_s,
            emissions_kg=None if kg is None else float(kg),
        )
        yield from unit_checks.of_run(stated, self._source, record.line)
        if run.start_us is not None and run.end_us is not None:
            told_s = (run.end_us - run.start_us) / US_PER_S
            yield from unit_checks.of_length(run.duration_s, told_s, self._source, record.line)

    def _text(self, cells: dict[str, str], field: str) -> str | None:
        return cells.get(self._columns.get(field, ""), "") or None

    def _number(self, cells: dict[str, str], field: str) -> Decimal | None:
        text = self._text(cells, field)
        try:
            if text is not None and self._decimals is not None:
                text = self._decimals.plain(field, text)
            value = None if text is None else exact(text, delimiter=self._table.delimiter)
        except RowError as error:
            raise ValueError(str(error)) from None
        except ValueError as error:
            raise ValueError(f"has {field}: {error}") from None
        if value is not None and value < 0:
            raise ValueError(f"has {field} {value}, below zero")
        return value

    def _scaled(self, cells: dict[str, str], units: dict[str, Decimal]) -> Decimal | None:
        for field, size in units.items():
            text = self._text(cells, field)
            if text is not None and field == "duration_s" and ":" in text:
                seconds = seconds_of(text)
                return None if seconds is None else Decimal(repr(seconds))
            value = self._number(cells, field)
            if value is not None:
                return value * size
        return None

    def _us(self, cells: dict[str, str], field: str, project: str | None, line: int) -> int | None:
        text = self._text(cells, field)
        if text is None:
            return None
        zone = self._options.zone_of(project)
        clock = self._clocks.setdefault(zone, Clock(zone, self._source))
        try:
            return clock.us(datetime.fromisoformat(text), line)
        except ValueError as error:
            raise ValueError(f"has {field} {text!r}: {error}") from None
