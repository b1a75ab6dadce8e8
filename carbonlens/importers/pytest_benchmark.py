"""pytest-benchmark's JSON: how long calls took. No energy is claimed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec

from carbonlens.domain.latency import Latency
from carbonlens.domain.run import Run
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Facts, Group, Item, Kind, Options, RunRecord, Tally
from carbonlens.importers.json_files import Notes, decoded, id_of, quantity
from carbonlens.importers.records import finding, origin_of
from carbonlens.importers.sources import Source

_SAME: Final = Decimal("0.01")


class _Stats(msgspec.Struct, frozen=True):
    mean: float | None
    rounds: int
    median: float | None = None
    iterations: int = 1
    total: float | None = None
    data: list[float] | None = None


class _Benchmark(msgspec.Struct, frozen=True):
    name: str
    stats: _Stats
    fullname: str | None = None
    group: str | None = None
    param: str | None = None


class _Cpu(msgspec.Struct, frozen=True):
    brand_raw: str | None = None
    brand: str | None = None


class _Machine(msgspec.Struct, frozen=True):
    processor: str | None = None
    machine: str | None = None
    python_version: str | None = None
    cpu: _Cpu = msgspec.field(default_factory=_Cpu)


class _Export(msgspec.Struct, frozen=True):
    machine_info: _Machine
    benchmarks: list[_Benchmark]
    datetime: Any = None


class PytestBenchmarkImporter:
    """Importer of pytest-benchmark's JSON."""

    name = "pytest-benchmark"
    version = 1
    kind: Kind = "runs"
    rank = USUAL
    facts = Facts(
        title="pytest-benchmark --benchmark-json and its stored runs",
        reads="the statistics of each benchmark, with or without its data: one run a benchmark",
        units="seconds a call",
        grade="none: time only, no energy is claimed",
        traps=(
            "time is no energy: the energy of each benchmark is unknown, and that is said",
            "a time is the mean of a round's iterations: the work took the total times them",
            "percentiles of rounds of several iterations are those of means: they are left out",
            "the time in the file is when it was written, not when a benchmark ran",
            "calibration and warm-up are not in the file",
        ),
        tested_on=("samples written after its documentation",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Claim JSON that begins with a machine and holds benchmarks."""
        return each(sources, _is_mine)

    def read(self, group: Group, options: Options) -> Iterator[Item]:  # noqa: ARG002  # no option tells more
        """Yield a run a benchmark.

        Raises:
            InputFileError: If it is no whole export.
        """
        source = group.main
        notes, rejected = Notes(source), 0
        whole = decoded(source, _Export, "export of pytest-benchmark")
        for place, benchmark in enumerate(whole.benchmarks):
            try:
                record = _record(source, whole, benchmark, notes)
            except ValueError as error:
                rejected += 1
                text = f"benchmark {place} {error}; it is left out"
                yield finding("CL202", "error", text, source, mend="run it again")
                continue
            yield record
        if whole.benchmarks:
            text = "times only: the energy of the runs is unknown"
            notes.say("CL204", "warning", text, "run it by carbonlens bench, or import a meter's log")
        yield from notes.findings()
        yield Tally(rows=len(whole.benchmarks), rejected=rejected)


IMPORTER: Final = PytestBenchmarkImporter()


def _is_mine(source: Source) -> bool:
    start = "\n".join(source.first_lines)
    if not re.match(r'^\s*\{\s*"(?:machine_info|benchmarks|commit_info|datetime)":', start):
        return False
    head = "\n".join(source.head_lines())
    return '"machine_info":' in head and ('"benchmarks":' in head or '"commit_info":' in head)


def _record(source: Source, whole: _Export, told: _Benchmark, notes: Notes) -> RunRecord:
    stats = told.stats
    if not 0 < stats.rounds < 10**15 or not 0 < stats.iterations < 10**15:
        raise ValueError("has no rounds or no iterations")
    mean, total = quantity(stats.mean, "mean"), quantity(stats.total, "total")
    if mean is not None and total is not None and abs(total - mean * stats.rounds) > _SAME * total:
        text = "a mean is not the total over the rounds; both are kept"
        notes.say("CL282", "warning", text, "check who edited the file")
    if total is None and mean is not None:
        total = mean * stats.rounds
    median = quantity(stats.median, "median") if stats.iterations == 1 else None
    calls = stats.rounds * stats.iterations
    tags = {"group": told.group, "parameter": told.param, "python": whole.machine_info.python_version}
    run = Run(
        run_id=id_of("pytest-benchmark", {"file": whole.datetime, "told": msgspec.to_builtins(told)}),
        duration_s=None if total is None else float(total * stats.iterations),
        units=Decimal(calls),
        unit="call",
        latency=Latency(n=calls, mean_ms=_ms(mean), p50_ms=_ms(median)),
        workload=told.fullname or told.name,
        hardware=_hardware(whole.machine_info),
        tags={name: value for name, value in tags.items() if value},
        origin=origin_of(IMPORTER, source),
    )
    return RunRecord(run=run)


def _hardware(machine: _Machine) -> str | None:
    return machine.cpu.brand_raw or machine.cpu.brand or machine.processor or machine.machine or None


def _ms(seconds: Decimal | None) -> float | None:
    return None if seconds is None else float(seconds * 1000)
