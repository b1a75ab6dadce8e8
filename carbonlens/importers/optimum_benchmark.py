"""optimum-benchmark's benchmark.json and benchmark_report.json: kilowatt-hours by codecarbon.

Inference states the mean of one pass, and not how many there were; training and the Energy
Star scenario state the whole. A decode is the difference of a generate and a prefill.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final

import msgspec

from carbonlens.domain.run import Reading, Run
from carbonlens.domain.units import J_PER_KWH, Grade
from carbonlens.importers import unit_checks
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Facts, Group, Item, Kind, Options, RunRecord, Tally
from carbonlens.importers.json_files import Notes, decoded, id_of, quantity
from carbonlens.importers.records import exact_j, finding, origin_of, reading
from carbonlens.importers.sources import Source

_REPORT: Final = re.compile(r'^\s*\{\s*"\w+":\s*\{\s*"memory":\s*(?:null|\{[^{}]*\}),\s*"latency":')
_WHOLE: Final = '"optimum_benchmark.'
_PASSES: Final = frozenset({"forward", "prefill", "decode", "generate", "call"})
_WITHIN_GENERATE: Final = frozenset({"prefill", "decode"})
_OF_A_DATASET: Final = frozenset({"load_dataset", "preprocess_dataset"})
_GRADES: Final[dict[str, Grade]] = {"cpu": "D", "gpu": "B", "ram": "E"}
_SAME: Final = Decimal("0.005")
_LEAST_W: Final = 1e-4


class _Energy(msgspec.Struct, frozen=True):
    unit: str
    total: float | None
    cpu: float | None = None
    gpu: float | None = None
    ram: float | None = None


class _Latency(msgspec.Struct, frozen=True):
    unit: str = "s"
    mean: float | None = None
    total: float | None = None
    values: list[float] = []


class _Efficiency(msgspec.Struct, frozen=True):
    unit: str
    value: float | None


class _Target(msgspec.Struct, frozen=True):
    latency: _Latency | None = None
    energy: _Energy | None = None
    efficiency: _Efficiency | None = None


class _Backend(msgspec.Struct, frozen=True):
    name: str | None = None
    model: str | None = None
    device: str | None = None
    task: str | None = None


class _Environment(msgspec.Struct, frozen=True):
    cpu: str | None = None
    gpu: list[str] | str | None = None


class _Config(msgspec.Struct, frozen=True):
    name: str | None = None
    backend: _Backend = msgspec.field(default_factory=_Backend)
    environment: _Environment = msgspec.field(default_factory=_Environment)


class _Benchmark(msgspec.Struct, frozen=True):
    config: _Config
    report: dict[str, _Target]


class OptimumBenchmarkImporter:
    """Importer of optimum-benchmark's JSON files."""

    name = "optimum-benchmark"
    version = 1
    kind: Kind = "runs"
    rank = USUAL
    facts = Facts(
        title="optimum-benchmark benchmark.json and benchmark_report.json",
        reads="inference, training and Energy Star reports, alone or with their config",
        units="kWh by codecarbon, of the whole machine; seconds; samples, tokens or images a kWh",
        grade="as of codecarbon: GPU B, CPU D, RAM E",
        traps=(
            "an inference energy is the mean of one pass: its unit is a pass, and the total is not told",
            "prefill and decode lie within generate: their runs have it as parent, and count once",
            "the report stands in both files: it counts once",
            "energy: null was not tracked, and a total of 0 was not measured: unknown, not zero",
            "a GPU of 0 kWh is left out where the device is a CPU, else unknown",
            "no time of measuring is in the file: the energy is in no hour",
            "the tool leaves codecarbon.csv of the same work beside it: import one of the two",
        ),
        tested_on=("reports in its repository, which track no energy", "samples written after its code"),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Claim JSON whose first target has its five measurements, or whose config names the tool."""
        return each(sources, _is_mine)

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield a run a target.

        Raises:
            InputFileError: If it is no whole report.
        """
        yield from _Reading(group.main, options).items()


IMPORTER: Final = OptimumBenchmarkImporter()


def _is_mine(source: Source) -> bool:
    start = "\n".join(source.first_lines)
    if not start.lstrip().startswith("{"):
        return False
    whole = re.match(r'^\s*\{\s*"config":\s*\{', start) is not None and _WHOLE in start
    return whole or _REPORT.match(start) is not None


class _Reading:
    def __init__(self, source: Source, options: Options) -> None:
        self._source = source
        self._boundary = options.boundary or "device"
        self._notes = Notes(source)
        if re.match(r'^\s*\{\s*"config":', "\n".join(source.first_lines)):
            whole = decoded(source, _Benchmark, "benchmark of optimum-benchmark")
            self._config, self._report = whole.config, whole.report
        else:
            self._config = _Config()
            self._report = decoded(source, dict[str, _Target], "report of optimum-benchmark")
        self._is_mean = not _OF_A_DATASET & set(self._report)

    def items(self) -> Iterator[Item]:
        """Yield runs, Findings and a tally."""
        rows = rejected = 0
        for name, target in self._report.items():
            if target.energy is None and target.latency is None:
                continue
            rows += 1
            try:
                record = self._record(name, target)
            except ValueError as error:
                rejected += 1
                text = f"target {name!r} {error}; it is left out"
                yield finding("CL202", "error", text, self._source, mend="measure it again")
                continue
            self._notes.say("CL245", "warning", "when it ran is not told: the energy is in no hour")
            yield from self._checks(record)
            yield record
        yield from self._notes.findings()
        yield Tally(rows=rows, rejected=rejected)

    def _record(self, name: str, target: _Target) -> RunRecord:
        is_pass = self._is_mean and name in _PASSES
        if is_pass and target.energy is not None:
            text = "energies of inference are of one pass; how many there were is not told"
            self._notes.say("CL264", "info", text)
        energy, stated_j = self._energy(name, target)
        latency = target.latency or _Latency()
        seconds = latency.mean if name in _PASSES and self._is_mean else latency.total
        duration = quantity(seconds, "latency") if latency.unit == "s" else None
        units, unit = _units(target, is_pass=is_pass)
        config = self._config
        tags = {"target": name, "benchmark": config.name, "backend": config.backend.name}
        run = Run(
            run_id=self._id_of(name),
            parent_run_id=self._parent(name),
            duration_s=None if duration is None else float(duration),
            energy=energy,
            units=units,
            unit=unit,
            workload=config.backend.model,
            hardware=_hardware(config),
            tags={key: value for key, value in tags.items() if value},
            origin=origin_of(IMPORTER, self._source),
        )
        return RunRecord(run=run, stated_j=stated_j, cumulative=True)

    def _energy(self, name: str, target: _Target) -> tuple[tuple[Reading, ...], Decimal | None]:
        """Return the parts of a target's energy, and the whole as stated."""
        told = target.energy
        meter = _hardware(self._config) or self._source.name
        method = "optimum-benchmark, codecarbon"
        nothing = (reading("total", None, method=method, grade="D", meter=meter, boundary=self._boundary),)
        if told is None:
            self._notes.say("CL260", "warning", "energy was not tracked: it is unknown", "set energy: true")
            return nothing, None
        if told.unit != "kWh":
            raise ValueError(f"has an energy in {told.unit!r}; known is kWh")
        whole = quantity(told.total, "energy")
        if not whole:
            self._notes.say("CL260", "warning", "an energy of 0 was not measured; it is unknown")
            return nothing, None
        parts = {part: quantity(getattr(told, part), part) for part in _GRADES}
        known = [kwh for kwh in parts.values() if kwh is not None]
        stated_j = exact_j(whole * J_PER_KWH)
        if abs(sum(known) - whole) > _SAME * whole:
            text = f"the parts of {name} do not sum to its total, which is kept"
            self._notes.say("CL256", "warning", text, "check who edited the file")
            total = reading("total", stated_j, method=method, grade="D", meter=meter, boundary=self._boundary)
            return (total,), stated_j
        made = []
        for part, kwh in parts.items():
            if kwh or (kwh is not None and self._is_there(part)):
                joules = kwh * J_PER_KWH if kwh else None
                made.append(
                    reading(
                        part,
                        joules,
                        method=method,
                        grade=_GRADES[part],
                        meter=meter,
                        boundary=self._boundary,
                    )
                )
        return tuple(made), stated_j

    def _is_there(self, part: str) -> bool:
        """Whether a part that used nothing is there, and so was not measured."""
        if part == "gpu" and self._config.backend.device not in {"cuda", None}:
            return False
        if part == "gpu" and self._config.backend.device is None:
            text = "GPU energy is 0, and whether there is a GPU is not told; it is left out"
            self._notes.say("CL253", "info", text, "import benchmark.json, which names the device")
            return False
        text = f"{part.upper()} not measured: its energy is 0; it counts as unknown"
        self._notes.say("CL253", "warning", text, "measure it by a sensor that it has")
        return True

    def _id_of(self, name: str) -> str:
        target = self._report[name]
        told = {"target": name, "energy": target.energy, "latency": target.latency}
        return id_of("optimum", {key: msgspec.to_builtins(value) for key, value in told.items()})

    def _parent(self, name: str) -> str | None:
        generate = self._report.get("generate")
        if name in _WITHIN_GENERATE and generate is not None and (generate.energy or generate.latency):
            return self._id_of("generate")
        return None

    def _checks(self, record: RunRecord) -> Iterator[Item]:
        stated = unit_checks.Stated(
            energy_j=None if record.stated_j is None else float(record.stated_j),
            energy_unit="kWh",
            duration_s=record.run.duration_s,
            least_w=_LEAST_W,
        )
        yield from unit_checks.of_run(stated, self._source, 0)


def _units(target: _Target, *, is_pass: bool) -> tuple[Decimal | None, str | None]:
    """Return the work done: samples, tokens or images where the efficiency tells, else a pass."""
    told, energy = target.efficiency, target.energy
    if told is not None and energy is not None and told.value and energy.total and told.value > 0:
        unit, slash, per = told.unit.partition("/")
        if slash and per == "kWh" and unit.endswith("s") and energy.total > 0:
            return Decimal(repr(round(told.value * energy.total, 6))), unit.removesuffix("s")
    return (Decimal(1), "pass") if is_pass else (None, None)


def _hardware(config: _Config) -> str | None:
    gpus = config.environment.gpu
    named: Mapping[str, str | None] = {
        "cpu": config.environment.cpu,
        "gpu": ", ".join(gpus) if isinstance(gpus, list) else gpus,
        "device": config.backend.device,
    }
    return "; ".join(f"{name} {value.strip()}" for name, value in named.items() if value) or None
