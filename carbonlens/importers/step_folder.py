"""Folders of optimization steps: a latency, a power and a memory CSV for each variant of a model.

The tables say what they hold and not of which variant: that stands in the names of the files
alone. Names pair the tables of one variant; a table is claimed by its columns.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from decimal import Decimal
from typing import Final

import msgspec

from carbonlens.domain.counting import with_article
from carbonlens.domain.run import Reading, Run
from carbonlens.errors import InputFileError
from carbonlens.importers import unit_checks
from carbonlens.importers.contract import SPECIFIC, Facts, Group, Item, Kind, Options, RunRecord, Tally
from carbonlens.importers.file_sets import folder_of, name_of
from carbonlens.importers.records import exact_j, finding, origin_of, reading
from carbonlens.importers.run_rows import content_id, whole_row
from carbonlens.importers.sources import Source, first_names
from carbonlens.importers.tables import Table, exact

_COLUMNS: Final = {
    "latency": frozenset({"run", "den_lat", "dec_lat", "total_lat"}),
    "power": frozenset({"run", "pwr_in_avg", "pwr_cpu_avg", "pwr_gpu_avg"}),
    "memory": frozenset({"run", "mem_max", "mem_avg"}),
}
_NAME: Final = re.compile(r"^(.*?)[_\-. ]*(latency|power|memory)\b", re.IGNORECASE)
_BASELINE: Final = "baseline"
_STEP: Final = re.compile(
    r"(?:baseline|original|vanilla|reference|eager|naive|default"
    r"|(?:fp|bf|tf|int|uint|nf|float|mxfp)\d+\w*|w\d+a\d+|q\d|\d+bits?|half|mixed|amp"
    r"|quant\w*|ptq|qat|gptq|awq|smoothquant|dynamic|static"
    r"|prun\w*|spars\w*|distil(?:led|lation)?|kd|q?lora"
    r"|jit|script(?:ed)?|compil\w*|onnx\w*|ort|trt|tensorrt|openvino|tflite|coreml|inductor|xla"
    r"|fused|fusion|cudagraphs?|flash\w*|batch\w*|bs\d+|kvcache)$",
    re.IGNORECASE,
)
"""Words that a step's name begins with: a baseline, precisions, compression, compilers, serving."""

_NAME_STEPS: Final = "name the tables STUDY_STEP_latency.csv, such as net_fp16_latency.csv"
_NOT_MEASURED: Final = Decimal(-1)
_W_PER_MW: Final = Decimal("0.001")
_LEAST_W: Final = 0.1
_MOST_W: Final = 2_000.0


class _Cell(msgspec.Struct, frozen=True):
    line: int
    values: dict[str, Decimal | None]


class StepFolderImporter:
    """Importer of latency, power and memory tables of a model's variants."""

    name = "step-folder"
    version = 2
    kind: Kind = "runs"
    rank = SPECIFIC
    facts = Facts(
        title="Optimization steps: VARIANT_latency.csv, VARIANT_power.csv, VARIANT_memory.csv",
        reads="tables by RUN with TOTAL_LAT, PWR_IN_AVG and MEM_MAX: one run a RUN, a step a variant",
        units="seconds, mW at the board's input and MB; the tables name none of them, which is said",
        grade="C (mean of polled power, times the latency)",
        traps=(
            "which variant a table is of stands in its name alone: three tables are one variant",
            "study and step part before the first word of a step (baseline, fp16, jit, pruned, ...), "
            "else before the last word, which is said",
            "a latency of -1 was not measured: it is unknown, and so is the energy",
            "the first RUN warms up, and a compiler's may come later: all are kept, numbered as repeats",
            "CPU and GPU power are parts of the input's: they are not added to it",
            "a table with no rows is a variant that was not measured",
            "no time of measuring is in the tables: the energy is in no hour",
        ),
        tested_on=("five variants of a diffusion model on a Jetson Nano", "samples typed here"),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Claim tables by their columns: all of one study and folder are a group."""
        mine = [s for s in sources if _kind_of(s) is not None]
        by_folder: dict[str, list[Source]] = {}
        for source in mine:
            by_folder.setdefault(folder_of(source), []).append(source)
        found = []
        for inside in by_folder.values():
            by_study: dict[str, list[Source]] = {}
            for source in inside:
                by_study.setdefault(_parted(_variant_of(source) or "")[0], []).append(source)
            found += [Group(tuple(part)) for part in by_study.values()]
        return found

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield a run a row of each variant.

        Raises:
            InputFileError: If tables of several variants have names that do not pair them.
        """
        yield from _Reading(group, options).items()


IMPORTER: Final = StepFolderImporter()


def _kind_of(source: Source) -> str | None:
    names = set(first_names(source))
    return next((kind for kind, needed in _COLUMNS.items() if needed <= names), None)


def _variant_of(source: Source) -> str | None:
    """Return what a file's name says before its kind; ``None`` where it says no kind."""
    found = _NAME.match(name_of(source))
    return found[1].rstrip("_-. ") if found else None


def _parted(name: str) -> tuple[str, str, bool]:
    """Return the study and the step that a variant's name says, and whether it is sure where they part.

    The name alone tells, and never the names beside it: a table that is imported by itself, and
    with its whole folder later, is of one study both times. The first word of a step begins the
    step; a name without such a word has its last word for a step.
    """
    words = re.split(r"([_\-. ])", name)
    first = next((place for place, word in enumerate(words) if _STEP.match(word)), None)
    at = first if first is not None else len(words) - 1
    return "".join(words[:at]).rstrip("_-. "), "".join(words[at:]), first is not None


class _Reading:
    def __init__(self, group: Group, options: Options) -> None:
        self._group = group
        self._boundary = options.boundary or "device"
        self._study = _parted(_variant_of(group.main) or "")[0]
        self._rows = self._rejected = self._repeated = 0

    def items(self) -> Iterator[Item]:
        """Yield runs of all variants, the baseline first."""
        variants = self._variants()
        units = "the tables name no units: s, mW and MB are taken"
        hour = "when the variants ran is not told: the energy is in no hour"
        for name in sorted(variants, key=lambda n: (not n.endswith(_BASELINE), n)):
            yield from self._variant(name, variants[name])
        if self._rows:
            yield finding("CL283", "info", units, self._group.main)
            yield finding("CL245", "warning", hour, self._group.main)
        yield Tally(rows=self._rows, rejected=self._rejected, repeated=self._repeated)

    def _variants(self) -> dict[str, dict[str, Source]]:
        """Return the tables of each variant by kind.

        Raises:
            InputFileError: If two of one kind would be of one variant.
        """
        found: dict[str, dict[str, Source]] = {}
        for source in self._group.sources:
            kind, name = _kind_of(source) or "", _variant_of(source) or ""
            tables = found.setdefault(name, {})
            if kind not in tables:
                tables[kind] = source
            elif tables[kind].sha256 != source.sha256:
                raise InputFileError(
                    f"and {tables[kind].shown} are both {with_article(kind)} table of one variant, "
                    "by their names",
                    where=source.shown,
                    mend="name the tables VARIANT_latency.csv, VARIANT_power.csv, VARIANT_memory.csv",
                )
        return found

    def _variant(self, name: str, tables: dict[str, Source]) -> Iterator[Item]:
        _, step, is_sure = _parted(name)
        main = tables.get("latency") or next(iter(tables.values()))
        if name and not is_sure:
            text = f"{name!r} names no step that is known: {step!r} is taken, of study {self._study!r}"
            yield finding("CL257", "info", text, main, mend=_NAME_STEPS)
        cells: dict[str, dict[str, _Cell]] = {}
        for kind, source in tables.items():
            cells[kind] = yield from self._cells(source)
        numbers = list(dict.fromkeys(n for of in cells.values() for n in of))
        called = f"variant {step!r}" if step else "the variant"
        if not numbers:
            text = f"{called} has no rows: nothing was measured"
            yield finding("CL260", "warning", text, main, mend="measure it again, or remove its tables")
            return
        missing = [kind for kind in ("latency", "power") if not cells.get(kind)]
        if missing:
            text = f"{called} has no {' and no '.join(missing)}: its energy is unknown"
            yield finding("CL260", "warning", text, main, mend="import its tables together")
        for number in numbers:
            yield from self._run(number, step, cells, main)

    def _cells(self, source: Source) -> Generator[Item, None, dict[str, _Cell]]:
        """Yield what is wrong in a table; return its rows by their number."""
        table = Table(source)
        found: dict[str, _Cell] = {}
        for line, cells in table.dicts():
            self._rows += 1
            try:
                number, cell = _cell(line, cells, table.delimiter)
            except ValueError as error:
                self._rejected += 1
                text = f"line {line} {error}; the row is left out"
                yield finding("CL202", "error", text, source, line=line, mend="mend the row")
                continue
            if number not in found:
                found[number] = cell
            elif found[number].values == cell.values:
                self._repeated += 1
                yield finding("CL201", "info", f"RUN {number} stands twice; counted once", source, line=line)
            else:
                self._rejected += 1
                text = f"line {line} tells of RUN {number} a second time, otherwise; the row is left out"
                yield finding("CL202", "error", text, source, line=line, mend="keep one of the rows")
        return found

    def _run(
        self, number: str, step: str, cells: dict[str, dict[str, _Cell]], main: Source
    ) -> Iterator[Item]:
        latency, power, memory = (cells.get(kind, {}).get(number) for kind in _COLUMNS)
        line = (latency or power or memory or _Cell(0, {})).line
        duration_s = latency.values.get("total_lat") if latency else None
        watts = _watts(power, "pwr_in_avg")
        energy_j = None if duration_s is None or watts is None else duration_s * watts
        if energy_j is None and cells.get("latency") and cells.get("power"):
            text = f"RUN {number} lacks its latency or its power: its energy is unknown"
            yield finding("CL260", "warning", text, main, line=line, mend="measure it again")
        seconds = None if duration_s is None else float(duration_s)
        joules = None if energy_j is None else float(energy_j)
        stated = unit_checks.Stated(
            energy_j=joules, energy_unit="mJ", duration_s=seconds, least_w=_LEAST_W, most_w=_MOST_W
        )
        yield from unit_checks.of_run(stated, main, line)
        of = latency or power or memory
        told = {"run": number, "step": step, "study": self._study, "told": str(of and of.values)}
        run = Run(
            run_id=content_id("step", told),
            study=self._study or None,
            step=step or None,
            repeat=int(number),
            role="variant",
            duration_s=seconds,
            energy=(self._reading("total", energy_j, main),),
            beside=tuple(self._parts(power, duration_s, main)),
            units=Decimal(1) if latency else None,
            unit="run" if latency else None,
            tags=_memory(memory),
            origin=origin_of(IMPORTER, main, line),
        )
        # A later import may bring the power of what was of a latency alone.
        yield RunRecord(run=run, line=line, stated_j=exact_j(energy_j), cumulative=True)

    def _reading(self, part: str, joules: Decimal | None, main: Source) -> Reading:
        return reading(
            part, joules, method="mean power x latency", grade="C", meter=main.name, boundary=self._boundary
        )

    def _parts(self, power: _Cell | None, duration_s: Decimal | None, main: Source) -> Iterator[Reading]:
        """Yield the parts of the input's energy."""
        for part in ("cpu", "gpu"):
            watts = _watts(power, f"pwr_{part}_avg")
            if watts is not None and duration_s is not None:
                yield self._reading(part, watts * duration_s, main)


def _cell(line: int, cells: dict[str, str] | list[str], delimiter: str) -> tuple[str, _Cell]:
    """Return the number of a row, and its figures; one of -1 was not measured.

    Raises:
        ValueError: If it is no row of figures.
    """
    values: dict[str, Decimal | None] = {}
    for name, text in whole_row(cells).items():
        try:
            value = exact(text, delimiter=delimiter)
        except ValueError as error:
            raise ValueError(f"has {name}: {error}") from None
        if value is not None and value < 0 and value != _NOT_MEASURED:
            raise ValueError(f"has {name} {value}, below zero")
        values[name] = None if value == _NOT_MEASURED else value
    number = values.pop("run")
    if number is None or number != number.to_integral_value() or number.adjusted() > 8:
        raise ValueError("has no whole number of a RUN")
    return str(int(number)), _Cell(line, values)


def _watts(power: _Cell | None, column: str) -> Decimal | None:
    milliwatts = power.values.get(column) if power else None
    return None if milliwatts is None else milliwatts * _W_PER_MW


def _memory(memory: _Cell | None) -> dict[str, str]:
    most = memory.values.get("mem_max") if memory else None
    return {} if most is None else {"memory_max_mb": f"{most:g}"}
