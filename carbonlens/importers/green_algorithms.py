"""Green Algorithms' calculator: the CSV of one form, with rated power, usage, PUE and result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final

from carbonlens.domain.run import Run
from carbonlens.domain.units import J_PER_KWH
from carbonlens.importers import unit_checks
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Facts, Group, Item, Kind, Options, RunRecord, Tally, Written
from carbonlens.importers.once import Once
from carbonlens.importers.records import exact_j, origin_of, reading
from carbonlens.importers.run_rows import content_id, left_out, number_in, whole_row
from carbonlens.importers.sources import Source, first_names
from carbonlens.importers.tables import Table

_ESSENTIAL: Final = frozenset(
    {"coretype", "runtime", "pue", "mult_factor", "energy_needed", "carbonemissions"}
)
_HARDWARE: Final = ("coretype", "numbercpus", "cpumodel", "numbergpus", "gpumodel", "memory")
_TAGS: Final = {"platformtype": "platform", "appversion": "data_version", "mult_factor": "mult_factor"}
_G_PER_KG: Final = 1000
_S_PER_H: Final = 3600
_LEAST_W: Final = 0.05


class GreenAlgorithmsImporter:
    """Importer of the CSV files of Green Algorithms' calculator."""

    name = "green-algorithms"
    version = 1
    kind: Kind = "runs"
    rank = USUAL
    facts = Facts(
        title="Green Algorithms calculator, exported form (CSV)",
        reads="the home page's export of version 3, semicolons between cells",
        units="kWh, grams, hours; the energy holds the PUE and the multiplicative factor",
        grade="E: rated power by usage, and watts a gigabyte of memory",
        traps=(
            "energy_needed holds the PUE: it is taken out again, and the stated energy stands beside",
            "mult_factor is how often the work ran: energy is of all of them, runTime of one",
            "carbonEmissions are grams",
            "a form that was not filled in has 0 kWh: unknown, not zero",
            "links to a form hold no result, and the AI page exports another table: neither is read",
        ),
        tested_on=("samples written after its code (form_blueprint.py, import_export_blueprint.py)",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Claim tables with the form's inputs and its two results."""
        return each(sources, lambda s: set(first_names(s)) >= _ESSENTIAL)

    def read(self, group: Group, options: Options) -> Iterator[Item]:  # noqa: ARG002  # the form says all
        """Yield a run a form.

        Raises:
            InputFileError: If it cannot be read.
        """
        source = group.main
        table, once = Table(source), Once(source)
        rows = rejected = repeated = 0
        seen: set[str] = set()
        for line, cells in table.dicts():
            rows += 1
            try:
                record = _record(source, line, whole_row(cells), once)
            except ValueError as error:
                rejected += 1
                yield left_out(error, source, line)
                continue
            if record.run.run_id in seen:
                repeated += 1
                once.say("CL201", "info", "repeats an earlier row exactly; counted once", line)
                continue
            seen.add(record.run.run_id)
            once.say("CL245", "warning", "when it ran is not told: the energy is in no hour", line)
            yield from _checks(source, record)
            yield record
        yield from once.findings()
        yield Tally(rows=rows, rejected=rejected, repeated=repeated)


IMPORTER: Final = GreenAlgorithmsImporter()


def _record(source: Source, line: int, row: Mapping[str, str], once: Once) -> RunRecord:
    kwh, grams = number_in(row, "energy_needed"), number_in(row, "carbonemissions")
    hours, times = number_in(row, "runtime"), number_in(row, "mult_factor")
    pue = number_in(row, "pue")
    if kwh is None:
        raise ValueError("has no energy_needed")
    if kwh == 0:
        once.say("CL260", "warning", "an energy of 0 is a form that was not filled in; it is unknown", line)
    elif pue is None or pue < 1:
        raise ValueError("has no PUE of 1 or more, which is inside its energy")
    energy_j = kwh * J_PER_KWH if kwh else None
    meter = source.name
    method = "Green Algorithms, rated power by usage"
    device_j = energy_j / pue if energy_j is not None and pue else None
    facility = reading("total", energy_j, method=method, grade="E", meter=meter, boundary="facility")
    hardware = ", ".join(f"{name} {row[name]}" for name in _HARDWARE if _is_told(row.get(name)))
    run = Run(
        run_id=content_id("green-algorithms", row),
        duration_s=float(hours * (times or 1) * _S_PER_H) if hours is not None else None,
        energy=(reading("total", device_j, method=method, grade="E", meter=meter),),
        beside=(facility,) if energy_j is not None and pue is not None and pue > 1 else (),
        emissions_reported_kg=grams / _G_PER_KG if grams and kwh else None,
        hardware=hardware or None,
        tags={tag: row[name] for name, tag in _TAGS.items() if _is_told(row.get(name))},
        origin=origin_of(IMPORTER, source, line),
    )
    return RunRecord(run=run, line=line, stated_j=exact_j(energy_j), place=_place(row))


def _checks(source: Source, record: RunRecord) -> Iterator[Item]:
    kg, energy_j = record.run.emissions_reported_kg, record.stated_j
    stated = unit_checks.Stated(
        energy_j=None if energy_j is None else float(energy_j),
        energy_unit="kWh",
        duration_s=record.run.duration_s,
        emissions_kg=None if kg is None else float(kg),
        least_w=_LEAST_W,
        most_w=float(Decimal(10) * Decimal(repr(unit_checks.MOST_HOST_W))),
    )
    yield from unit_checks.of_run(stated, source, record.line)


def _is_told(text: str | None) -> bool:
    return bool(text) and text not in {"None", "nan", "0"}


def _place(row: Mapping[str, str]) -> Written | None:
    country, region = row.get("locationcountry"), row.get("locationregion")
    if not _is_told(country):
        return None
    return Written(country=country, region=region if _is_told(region) else None)
