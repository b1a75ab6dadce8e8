"""codecarbon's emissions.csv of all eras, its task files and their ``.bak`` copies.

Energies are kilowatt-hours and hold the PUE already; it is taken out again, so that the run's
energy is that of the devices, and the facility's stands beside it. Times are local, without a
zone. ``flush`` writes a run several times, ever longer: the furthest counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final

from carbonlens.domain.counting import counted
from carbonlens.domain.identity import sha256_hex
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.units import J_PER_KWH, US_PER_S, Grade
from carbonlens.importers import codecarbon_blocks, unit_checks
from carbonlens.importers.claiming import each
from carbonlens.importers.codecarbon_cells import ESSENTIAL, realigned
from carbonlens.importers.contract import USUAL, Facts, Group, Item, Kind, Options, RunRecord, Tally, Written
from carbonlens.importers.once import Once
from carbonlens.importers.records import exact_j, finding, origin_of, reading
from carbonlens.importers.sources import Source, first_names
from carbonlens.importers.tables import Table, exact
from carbonlens.importers.times import Clock

_PARTS: Final = ("cpu", "gpu", "ram")
_DEFAULT_EXPERIMENT: Final = "5b0fa12a-3dd7-45bb-9766-cc326314d9f1"
_NEVER_ZERO_S: Final = 1.0
"""A device that is there draws something in this long."""

_LEAST_W: Final = 1e-4
_SAME: Final = Decimal("0.005")
"""Share by which parts may miss their stated sum before that is said."""

_HARDWARE: Final = ("cpu_count", "cpu_model", "gpu_count", "gpu_model", "ram_total_size", "os")


class CodecarbonImporter:
    """Importer of codecarbon's CSV files."""

    name = "codecarbon"
    version = 1
    kind: Kind = "runs"
    rank = USUAL
    facts = Facts(
        title="codecarbon emissions.csv",
        reads="versions 1.x to 3.3.2: 11 to 38 columns in any order, task files, .bak copies",
        units="kWh, kg, seconds, watts; energies hold the PUE already",
        grade="GPU B (the driver's counter), CPU D (the file does not say counter or model), RAM E",
        traps=(
            "flush() writes a run several times, ever longer: the furthest counts",
            "rows of 3.2.9 and 3.3.0 lack their empty cells: put right where one way fits, and said",
            "local times without a zone: --tz, else UTC, and said",
            "tracking_mode machine holds the whole node: ranks of one node over the same time count once",
            "a GPU that is there and used nothing was not measured: unknown, not zero",
            "emissions_rate was g/s and is kg/s: not read; *_power are unweighted means: not read",
            "Quebec at 46.8, -71.2 is what it writes when it does not know the place: no zone is taken",
            "experiment_id has a constant default, which is no identity",
        ),
        tested_on=("files of ten versions from public repositories", "files typed here for each trap"),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Claim tables that name what every era of the file names."""
        return each(sources, lambda source: set(first_names(source)) >= ESSENTIAL)

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield the runs of a file.

        Raises:
            InputFileError: If it cannot be read.
        """
        yield from _Reading(group.main, options).items()


IMPORTER: Final = CodecarbonImporter()


class _Reading:
    """One file, row by row."""

    def __init__(self, source: Source, options: Options) -> None:
        self._source = source
        self._options = options
        self.table = Table(source)
        self.once = Once(source)
        self.rows = self._rejected = 0
        self._clocks: dict[str | None, Clock] = {}

    def items(self) -> Iterator[Item]:
        """Yield runs, Findings and a tally."""
        if codecarbon_blocks.is_worth_it(self._source):
            yield from codecarbon_blocks.Blocks(self._source, self.table, self._options, self).items()
        else:
            for line, cells in self.table.rows():
                yield from self.row(line, cells)
        yield from self.once.findings()
        for clock in self._clocks.values():
            yield from clock.findings
        yield Tally(rows=self.rows, rejected=self._rejected)

    def row(self, line: int, cells: list[str]) -> Iterator[Item]:
        """Yield the run of a row, after what is wrong in it."""
        self.rows += 1
        try:
            row, repair = self._row(self.table.named(cells))
            record = self._record(line, row)
        except ValueError as error:
            self._rejected += 1
            text = f"line {line} {error}; the row is left out"
            yield finding("CL202", "error", text, self._source, line=line, mend="mend the row")
            return
        if repair is not None:
            yield finding("CL254", "warning", f"line {line} {repair}", self._source, line=line)
        yield from self._checks(record, row)
        yield record

    def clock(self, zone: str | None) -> Clock:
        """Return the clock of a zone; the one that rows are read by."""
        if zone not in self._clocks:
            self._clocks[zone] = Clock(zone, self._source)
        return self._clocks[zone]

    def _row(self, cells: dict[str, str] | list[str]) -> tuple[dict[str, str], str | None]:
        """Return a row by its columns, and what had to be put right.

        Raises:
            ValueError: If it cannot be.
        """
        if isinstance(cells, dict):
            return cells, None
        header = self.table.header
        if len(cells) > len(header):
            raise ValueError("has more cells than the header has columns: two rows on one line?")
        whole = realigned(header, cells)
        if whole is None:
            raise ValueError("has fewer cells than the header has columns, and it cannot be told which")
        row = dict(zip(header, whole, strict=True))
        lacking = len(header) - len(cells)
        return row, f"lacks {counted(lacking, 'cell')} and slid to the left; it was put right by its kinds"

    def _record(self, line: int, row: Mapping[str, str]) -> RunRecord:
        energy_kwh = self._number(row, "energy_consumed")
        if energy_kwh is None:
            raise ValueError("has no energy_consumed")
        duration = self._number(row, "duration")
        project = row.get("project_name") or None
        end_us = self._end_us(row, project, line)
        start_us = None if end_us is None or duration is None else end_us - round(duration * US_PER_S)
        stated_j = energy_kwh * J_PER_KWH
        pue = self._pue(row)
        readings, beside = self._energy(row, stated_j, pue, line)
        run_id, parent = _identity(row)
        run = Run(
            run_id=run_id,
            parent_run_id=parent,
            start_us=start_us,
            end_us=end_us,
            duration_s=None if duration is None else float(duration),
            energy=readings,
            beside=beside,
            emissions_reported_kg=self._number(row, "emissions"),
            hardware=_hardware(row),
            tags=_tags(row),
            origin=origin_of(IMPORTER, self._source, line),
        )
        return RunRecord(
            run=run,
            line=line,
            stated_j=exact_j(stated_j),
            cumulative=parent is None,
            project=project,
            place=_place(row),
            machine=run.hardware if parent is None and row.get("tracking_mode") == "machine" else None,
        )

    def _energy(
        self, row: Mapping[str, str], stated_j: Decimal, pue: Decimal, line: int
    ) -> tuple[tuple[Reading, ...], tuple[Reading, ...]]:
        """Return the parts of a run's energy, and what stands beside them."""
        meter = _hardware(row) or self._source.name
        method = f"codecarbon {row.get('codecarbon_version') or 'of an unknown version'}"
        beside: tuple[Reading, ...] = ()
        if pue > 1:
            told = f"{method}, device energy x PUE {pue:f}"
            beside = (reading("total", stated_j, method=told, grade="D", meter=meter, boundary="facility"),)
        parts = {name: self._number(row, f"{name}_energy") for name in _PARTS}
        whole = (reading("total", stated_j / pue, method=method, grade="D", meter=meter),)
        known = [kwh for kwh in parts.values() if kwh is not None]
        if not known:
            self.once.say("CL257", "info", "parts are not told apart: all of it has grade D", line)
            return whole, beside
        if abs(sum(known) * J_PER_KWH - stated_j) > _SAME * stated_j:
            text = "the energies of cpu, gpu and ram do not sum to energy_consumed, which is kept"
            self.once.say("CL256", "warning", text, line, "check who edited the file")
            return whole, beside
        made = [
            reading(
                name, self._part_j(name, kwh, row, line, pue), method=method, grade=_grade(name), meter=meter
            )
            for name, kwh in parts.items()
            if kwh is not None and not (kwh == 0 and not _has(name, row))
        ]
        return (tuple(made) or whole), beside

    def _part_j(
        self, name: str, kwh: Decimal, row: Mapping[str, str], line: int, pue: Decimal
    ) -> Decimal | None:
        """Return the joules of a part; one that is there and used nothing was not measured."""
        duration = self._number(row, "duration") or Decimal(0)
        if kwh == 0 and float(duration) > _NEVER_ZERO_S:
            text = f"{name.upper()} not measured: it is there, and its energy is 0; it counts as unknown"
            mend = "measure it by a sensor that it has; the sum is a lower bound"
            self.once.say("CL253", "warning", text, line, mend)
            return None
        return kwh * J_PER_KWH / pue

    def _checks(self, record: RunRecord, row: Mapping[str, str]) -> Iterator[Item]:
        run, line = record.run, record.line
        kg, energy_j = run.emissions_reported_kg, record.stated_j
        stated = unit_checks.Stated(
            energy_j=None if energy_j is None else float(energy_j),
            energy_unit="kWh",
            duration_s=run.duration_s,
            emissions_kg=None if kg is None else float(kg),
            least_w=_LEAST_W,
        )
        yield from unit_checks.of_run(stated, self._source, line)
        pue = float(self._pue(row))
        for part in _PARTS:
            kwh, watts = self._number(row, f"{part}_energy"), self._power(row, part)
            told = unit_checks.Power(
                part=part,
                energy_j=None if kwh is None else float(kwh * J_PER_KWH),
                stated_w=None if watts is None else float(watts),
                duration_s=run.duration_s,
                multiplier=pue,
            )
            yield from unit_checks.of_power(told, self._source, line)

    def _end_us(self, row: Mapping[str, str], project: str | None, line: int) -> int | None:
        text = row.get("timestamp", "")
        clock = self.clock(self._options.zone_of(project))
        try:
            return clock.us(datetime.fromisoformat(text), line)
        except ValueError:
            self.once.say("CL245", "warning", "timestamp is no time: the energy is in no hour", line)
            return None

    def _number(self, row: Mapping[str, str], column: str) -> Decimal | None:
        text = row.get(column)
        if text is None:
            return None
        try:
            value = exact(text, delimiter=self.table.delimiter)
        except ValueError as error:
            raise ValueError(f"has {column}: {error}") from None
        if value is not None and value < 0:
            raise ValueError(f"has {column} {value}, below zero")
        return value

    def _power(self, row: Mapping[str, str], part: str) -> Decimal | None:
        """Return a stated power, which nothing is made of: what is no number is not there."""
        try:
            return self._number(row, f"{part}_power")
        except ValueError:
            return None

    def _pue(self, row: Mapping[str, str]) -> Decimal:
        return max(self._number(row, "pue") or Decimal(1), Decimal(1))


def _grade(part: str) -> Grade:
    # Before 3.3.2 codecarbon read the driver's counter alone; the file does not say more.
    grades: dict[str, Grade] = {"gpu": "B", "ram": "E"}
    return grades.get(part, "D")


def _has(part: str, row: Mapping[str, str]) -> bool:
    """Whether the row says that the device is there."""
    if part != "gpu":
        return True
    count = row.get("gpu_count", "")
    return bool(row.get("gpu_model")) or count not in {"", "0", "0.0"}


def _identity(row: Mapping[str, str]) -> tuple[str, str | None]:
    """Return a row's id, and the run it is a task of."""
    experiment = row.get("experiment_id", "")
    usual = experiment if experiment != _DEFAULT_EXPERIMENT and "run_id" not in row else ""
    run_id = row.get("run_id") or row.get("id") or usual
    if not run_id:
        content = "\x1f".join(f"{k}={v}" for k, v in sorted(row.items()))
        return f"row-{sha256_hex(content.encode())[:24]}", None
    task = row.get("task_name")
    return (f"{run_id}/{task}@{row.get('timestamp', '')}", run_id) if task else (run_id, None)


def _hardware(row: Mapping[str, str]) -> str | None:
    told = [f"{name} {row[name]}" for name in _HARDWARE if row.get(name)]
    return ", ".join(told) or None


def _tags(row: Mapping[str, str]) -> dict[str, str]:
    named = {"project_name": "project", "tracking_mode": "tracking_mode", "task_name": "task"}
    return {tag: value for column, tag in named.items() if (value := row.get(column))}


def _place(row: Mapping[str, str]) -> Written | None:
    country = row.get("country_iso_code") or row.get("country_name") or None
    region = row.get("region") or None
    if row.get("on_cloud") == "Y" and row.get("cloud_provider") and row.get("cloud_region"):
        return Written(country=country, cloud=f"{row['cloud_provider']}:{row['cloud_region']}")
    if country is None:
        return None
    doubt = None
    fallback = (row.get("longitude", ""), row.get("latitude", "")) == ("-71.2", "46.8")
    if country == "CAN" and (region or "").lower() == "quebec" and fallback:
        doubt = "Quebec at 46.8, -71.2 is what codecarbon writes when it cannot find the place"
    return Written(country=country, region=region, doubt=doubt)
