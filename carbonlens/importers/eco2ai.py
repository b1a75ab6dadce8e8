"""eco2ai's emission.csv.

The energy is one figure: a share of the processor's rated power by utilisation, the driver's
power of GPUs, a constant of memory, times a PUE that the file does not name (1 unless the user
set one). In training mode a row is an epoch of its own; rows of one id are no running totals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from carbonlens.domain.run import Run
from carbonlens.domain.units import J_PER_KWH, US_PER_S
from carbonlens.importers import unit_checks
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Facts, Group, Item, Kind, Options, RunRecord, Tally, Written
from carbonlens.importers.once import Once
from carbonlens.importers.records import exact_j, origin_of, reading
from carbonlens.importers.run_rows import content_id, left_out, number_in, whole_row
from carbonlens.importers.sources import Source, first_names
from carbonlens.importers.tables import Table
from carbonlens.importers.times import Clock

# Each column names its unit in brackets.
_ENERGY, _OLD_ENERGY, _KG, _SECONDS = (
    f"{name}({unit})"
    for name, unit in (
        ("power_consumption", "kwh"),
        ("power_consumption", "kwth"),
        ("co2_emissions", "kg"),
        ("duration", "s"),
    )
)
_ALIASES: Final = {_OLD_ENERGY: _ENERGY, "country": "region/country"}
_ESSENTIAL: Final = frozenset({_ENERGY, _KG, _SECONDS, "cpu_name"})
_LEAST_W: Final = 0.05
"""Mean power below which a run that takes a second cannot have used a core."""

_UNMEASURED: Final = {"", "n/a", "nan"}


class Eco2aiImporter:
    """Importer of eco2ai's CSV file."""

    name = "eco2ai"
    version = 1
    kind: Kind = "runs"
    rank = USUAL
    facts = Facts(
        title="eco2ai emission.csv",
        reads="versions 0.1 to 0.3.12: with and without epoch and cost; power_consumption in kWh or kWTh",
        units="kWh, kg, seconds",
        grade="D: CPU and memory are models, GPUs are polled, and the file gives their sum alone",
        traps=(
            "power_consumption is an energy, by its unit",
            "rows of one id are epochs of one training, each with its own energy: all of them count",
            "a PUE the user set is inside and not named; the tool's default is 1",
            "local times without a zone: --tz, else UTC, and said",
            "less than 50 mW over a second or more is said: no working core draws so little",
            "an energy of 0 was not measured: unknown, not zero",
            "cost is in a currency that nobody names: not read",
        ),
        tested_on=("three files from public repositories, 53 runs", "files typed here for each trap"),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Claim tables that name the columns every version writes."""
        return each(sources, _is_mine)

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield the runs of a file.

        Raises:
            InputFileError: If it cannot be read.
        """
        yield from _Reading(group.main, options).items()


IMPORTER: Final = Eco2aiImporter()


def _is_mine(source: Source) -> bool:
    return {_ALIASES.get(name, name) for name in first_names(source)} >= _ESSENTIAL


class _Reading:
    def __init__(self, source: Source, options: Options) -> None:
        self._source = source
        self._options = options
        self._table = Table(source, aliases=_ALIASES)
        self._once = Once(source)
        self._clocks: dict[str | None, Clock] = {}
        self._seen: dict[str, int] = {}

    def items(self) -> Iterator[Item]:
        """Yield runs, Findings and a tally."""
        rows = rejected = repeated = 0
        for line, cells in self._table.dicts():
            rows += 1
            try:
                row = whole_row(cells)
                record = self._record(line, row)
            except ValueError as error:
                rejected += 1
                yield left_out(error, self._source, line)
                continue
            if content_id("", row) in self._seen:
                repeated += 1
                self._once.say("CL201", "info", "repeats an earlier row exactly; counted once", line)
                continue
            self._seen[content_id("", row)] = line
            yield from self._checks(record)
            yield record
        yield from self._once.findings()
        for clock in self._clocks.values():
            yield from clock.findings
        yield Tally(rows=rows, rejected=rejected, repeated=repeated)

    def _record(self, line: int, row: Mapping[str, str]) -> RunRecord:
        delimiter = self._table.delimiter
        kwh, kg = number_in(row, _ENERGY, delimiter), number_in(row, _KG, delimiter)
        duration = number_in(row, _SECONDS, delimiter)
        if kwh is None:
            raise ValueError(f"has no {_ENERGY}")
        if kwh == 0:
            self._once.say("CL260", "warning", "an energy of 0 was not measured; it is unknown", line)
        elif self._options.boundary is None:
            self._once.say(
                "CL263",
                "info",
                "a PUE may be inside the energy and is not named; the tool's default of 1 is taken",
                line,
                "give --boundary facility where the tracker was given a PUE",
            )
        energy_j = kwh * J_PER_KWH if kwh else None
        start_us = self._start_us(row, line)
        has_end = start_us is not None and duration is not None
        hardware = "; ".join(row[c].strip() for c in ("cpu_name", "gpu_name") if row.get(c, "").strip())
        run = Run(
            run_id=_identity(row),
            job_id=row.get("id") or None,
            start_us=start_us,
            end_us=(start_us or 0) + round((duration or 0) * US_PER_S) if has_end else None,
            duration_s=None if duration is None else float(duration),
            energy=(
                reading(
                    "total",
                    energy_j,
                    method="eco2ai, sum of CPU, GPU and memory",
                    grade="D",
                    meter=hardware or self._source.name,
                    boundary=self._options.boundary or "device",
                ),
            ),
            emissions_reported_kg=kg if kwh else None,
            hardware=hardware or None,
            tags=_tags(row),
            origin=origin_of(IMPORTER, self._source, line),
        )
        return RunRecord(
            run=run,
            line=line,
            stated_j=exact_j(energy_j),
            cumulative=run.run_id == row.get("id"),
            project=_project(row),
            place=_place(row),
        )

    def _start_us(self, row: Mapping[str, str], line: int) -> int | None:
        zone = self._options.zone_of(_project(row))
        if zone not in self._clocks:
            self._clocks[zone] = Clock(zone, self._source)
        try:
            return self._clocks[zone].us(datetime.fromisoformat(row.get("start_time", "")), line)
        except ValueError:
            self._once.say("CL245", "warning", "start_time is no time: the energy is in no hour", line)
            return None

    def _checks(self, record: RunRecord) -> Iterator[Item]:
        run, kg, energy_j = record.run, record.run.emissions_reported_kg, record.stated_j
        stated = unit_checks.Stated(
            energy_j=None if energy_j is None else float(energy_j),
            energy_unit="kWh",
            duration_s=run.duration_s,
            emissions_kg=None if kg is None else float(kg),
        )
        yield from unit_checks.of_run(stated, self._source, record.line)
        if (
            energy_j
            and run.duration_s
            and run.duration_s >= 1
            and float(energy_j) / run.duration_s < _LEAST_W
        ):
            self._once.say(
                "CL248",
                "error",
                f"the mean power is below {_LEAST_W} W, which no working core draws",
                record.line,
                "measure again with a meter; the energy is kept as stated",
            )


def _identity(row: Mapping[str, str]) -> str:
    """Return a row's id; an epoch has its own, within that of its training."""
    run_id, epoch = row.get("id", ""), row.get("epoch", "")
    if run_id.lower() in _UNMEASURED:
        return content_id("row", row)
    if epoch.lower() in _UNMEASURED:
        return run_id
    return f"{run_id}/{epoch.partition(',')[0]}@{row.get('start_time', '')}"


def _project(row: Mapping[str, str]) -> str | None:
    return row.get("project_name") or None


def _tags(row: Mapping[str, str]) -> dict[str, str]:
    named = {"project_name": "project", "experiment_description": "experiment", "epoch": "epoch", "os": "os"}
    return {tag: text for column, tag in named.items() if (text := row.get(column, "")) not in {"", "N/A"}}


def _place(row: Mapping[str, str]) -> Written | None:
    country, _, region = row.get("region/country", "").partition("/")
    return Written(country=country.strip(), region=region.strip() or None) if country.strip() else None
