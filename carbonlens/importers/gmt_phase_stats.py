"""The Green Metrics Tool's phase statistics: energy, duration and carbon of each phase of a run.

``/v1/phase_stats/single/ID`` answers with phases, metrics in them, details of those, and under
each run's id its figure. ``[RUNTIME]`` is the sum of the scenario's own phases, which are not hidden.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final

import msgspec

from carbonlens.domain.counting import counted, with_article
from carbonlens.domain.run import Reading, Run
from carbonlens.errors import InputFileError
from carbonlens.importers import unit_checks
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Facts, Group, Item, Kind, Options, RunRecord, Tally
from carbonlens.importers.gmt_metrics import JOULES, WATTS, Metric, counted_of, metric_of
from carbonlens.importers.json_files import Notes, decoded, quantity
from carbonlens.importers.records import exact_j, finding, origin_of, reading
from carbonlens.importers.sources import Source

_SHOWN_BY: Final = ('"comparison_case"', '"comparison_identifiers"', '"data"')
_TIME: Final = "phase_time_syscall_system"
_SECONDS: Final = {"us": Decimal("1e-6"), "ms": Decimal("1e-3"), "s": Decimal(1)}
_KG_PER_UG: Final = Decimal("1e-9")
_MICROGRAMS: Final = frozenset({"ug", "ugco2e"})
_RUNTIME: Final = "[RUNTIME]"
_METHOD: Final = "Green Metrics Tool"
_MAY_REST: Final = frozenset({"ane", "gpu"})
"""What may have used nothing; a CPU, memory or machine that ran did not."""
_MOST: Final = Decimal(10) ** 24


class _Value(msgspec.Struct, frozen=True):
    mean: float | None = None
    values: list[float | None] = []


class _Detail(msgspec.Struct, frozen=True):
    data: dict[str, _Value] = {}


class _Metric(msgspec.Struct, frozen=True):
    data: dict[str, _Detail]
    unit: str | None = None
    type: str | None = None


class _Phase(msgspec.Struct, frozen=True):
    data: dict[str, _Metric]
    hidden: bool | None = False


class _Stats(msgspec.Struct, frozen=True):
    data: dict[str, _Phase]
    comparison_case: str | None = None


class _File(msgspec.Struct, frozen=True):
    data: _Stats


class GmtPhaseStatsImporter:
    """Importer of phase statistics."""

    name = "gmt-phase-stats"
    version = 1
    kind: Kind = "runs"
    rank = USUAL
    facts = Facts(
        title="Green Metrics Tool phase statistics (JSON of its interface)",
        reads="/v1/phase_stats/single, and comparisons of two runs by their ids: a run a phase",
        units="each metric states its own: uJ, mJ or J; us; ug or ugCO2e; mW beside",
        grade="by provider: A (MCP, Gude, PowerSpy2), B (RAPL), C (NVML, powermetrics, IPMI), D (models)",
        traps=(
            "[RUNTIME] holds the scenario's phases: they count with it; hidden ones are not in it",
            "[BASELINE], [INSTALLATION], [BOOT], [IDLE] and [REMOVE] are runs of their own, tagged phase=",
            "a machine's meter holds its components: where one measured, they stand beside",
            "containers, slices and the network's formula are shares and models: not read",
            "a comparison (by commit, machine, ...) holds means of several runs: refused",
            "no time of day is in it: the energy is in no hour",
        ),
        tested_on=("samples written after its interface and code (August 2026)",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Claim JSON objects with the tool's members of a comparison."""
        return each(sources, lambda s: all(word in "\n".join(s.first_lines) for word in _SHOWN_BY))

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield a run a phase.

        Raises:
            InputFileError: If it is no whole answer, compares means, or holds no duration and no energy.
        """
        yield from _Reading(group.main, options).items()


IMPORTER: Final = GmtPhaseStatsImporter()


class _Reading:
    def __init__(self, source: Source, options: Options) -> None:
        self._source = source
        self._options = options
        self._notes = Notes(source)

    def items(self) -> Iterator[Item]:
        """Yield runs, Findings and a tally."""
        stats = decoded(self._source, _File, "answer of the Green Metrics Tool").data
        if stats.comparison_case is not None:
            raise InputFileError(
                f"compares means of runs by {stats.comparison_case}",
                where=self._source.shown,
                mend="ask for the phase statistics of each run: /v1/phase_stats/single/ID",
            )
        rows = rejected = 0
        for name, phase in stats.data.items():
            keys = dict.fromkeys(k for m in phase.data.values() for d in m.data.values() for k in d.data)
            for key in keys:
                rows += 1
                try:
                    record = self._record(name, phase, key, has_runtime=_RUNTIME in stats.data)
                except ValueError as error:
                    rejected += 1
                    text = f"phase {name!r} {error}; it is left out"
                    yield finding("CL202", "error", text, self._source, mend="ask for the statistics again")
                    continue
                yield from self._checks(record, phase, key)
                yield record
        if not rows:
            raise InputFileError(
                "holds no phase", where=self._source.shown, mend="wait until the run has ended"
            )
        yield from self._notes.findings()
        text = "phases have no time of day: their energy is in no hour"
        yield finding("CL245", "warning", text, self._source, mend="import the measurements of the run too")
        yield Tally(rows=rows, rejected=rejected)

    def _record(self, name: str, phase: _Phase, key: str, *, has_runtime: bool) -> RunRecord:
        duration_s = _duration_s(phase, key)
        metrics = {n: m for n in phase.data if (m := metric_of(n)) is not None and not m.is_power}
        counts = counted_of(metrics.values())
        every = [(metrics[n], r) for n in metrics for r in self._readings(metrics[n], phase, key, duration_s)]
        energy = tuple(r for m, r in every if m.name in counts)
        if not energy:
            text = f"phase {name!r} tells no energy of a machine or component: it is unknown"
            self._notes.say("CL260", "warning", text, "let the tool measure with a provider of energy")
            energy = (
                reading("total", None, method="Green Metrics Tool", grade="D", meter=self._source.name),
            )
        is_part = has_runtime and not phase.hidden and not name.startswith("[")
        tags = {"phase": name} | ({"hidden": "true"} if phase.hidden else {})
        run = Run(
            run_id=f"{key}/{name}",
            job_id=key,
            parent_run_id=f"{key}/{_RUNTIME}" if is_part else None,
            duration_s=None if duration_s is None else float(duration_s),
            energy=energy,
            beside=tuple(r for m, r in every if m.name not in counts),
            emissions_reported_kg=_kg(phase, key, counts),
            tags=tags,
            origin=origin_of(IMPORTER, self._source),
        )
        known = [r.energy_j for r in energy if r.energy_j is not None]
        whole = sum(known, Decimal(0)) if len(known) == len(energy) else None
        return RunRecord(run=run, stated_j=exact_j(whole))

    def _readings(
        self, metric: Metric, phase: _Phase, key: str, duration_s: Decimal | None
    ) -> Iterator[Reading]:
        told = phase.data[metric.name]
        size = JOULES.get((told.unit or "").lower())
        if size is None:
            raise ValueError(f"states {metric.name} in {told.unit!r}, which is no unit of it that is known")
        if told.type not in {"TOTAL", None}:
            raise ValueError(f"tells {with_article(told.type)} of {metric.name}, and no sum")
        for detail, value in _values(told, key):
            self._say_other_value(metric.name, value)
            joules = _figure(value.mean, metric.name)
            if joules == 0 and metric.what not in _MAY_REST:
                text = f"{metric.name} tells 0: it was not measured, and is unknown"
                self._notes.say("CL253", "warning", text, "measure it by a sensor that the machine has")
                joules = None
            yield reading(
                metric.component,
                None if joules is None else joules * Decimal(repr(size)),
                method=f"{_METHOD}, {metric.name}",
                grade=metric.grade,
                meter=self._source.name,
                boundary=metric.boundary if metric.is_machine else self._options.boundary or metric.boundary,
                devices=(f"{metric.name} {detail}",),
                covered_s=None if duration_s is None else float(duration_s),
            )

    def _say_other_value(self, name: str, value: _Value) -> None:
        told = [v for v in value.values if v is not None]
        if len(told) == 1 and value.mean is not None and told[0] != value.mean:
            text = f"the mean of {name} is not its one value; the mean is taken"
            self._notes.say("CL282", "warning", text, "ask for the statistics again")

    def _checks(self, record: RunRecord, phase: _Phase, key: str) -> Iterator[Item]:
        run = record.run
        kg = run.emissions_reported_kg
        stated = unit_checks.Stated(
            energy_j=None if record.stated_j is None else float(record.stated_j),
            duration_s=run.duration_s,
            emissions_kg=None if kg is None else float(kg),
        )
        yield from unit_checks.of_run(stated, self._source, 0)
        for told in run.energy:
            watts = _power_w(phase, key, told)
            power = unit_checks.Power(
                part=told.component,
                energy_j=None if told.energy_j is None else float(told.energy_j),
                stated_w=watts,
                duration_s=run.duration_s,
            )
            yield from unit_checks.of_power(power, self._source, 0)


def _values(metric: _Metric, key: str) -> Iterator[tuple[str, _Value]]:
    for detail, told in metric.data.items():
        if key in told.data:
            yield detail, told.data[key]


def _figure(value: float | None, name: str) -> Decimal | None:
    """Return a figure exactly.

    Raises:
        ValueError: If it cannot be.
    """
    found = quantity(value, name)
    if found is not None and found > _MOST:
        raise ValueError(f"has {name} {value:g}, which cannot be")
    return found


def _duration_s(phase: _Phase, key: str) -> Decimal | None:
    metric = phase.data.get(_TIME)
    told = [] if metric is None else list(_values(metric, key))
    if metric is None or not told:
        return None
    size = _SECONDS.get(metric.unit or "")
    if size is None:
        raise ValueError(f"states its duration in {metric.unit!r}")
    if len(told) > 1:
        raise ValueError(f"tells {counted(len(told), 'duration')}")
    found = _figure(told[0][1].mean, "its duration")
    return None if found is None else found * size


def _kg(phase: _Phase, key: str, counts: set[str]) -> Decimal | None:
    """Return the tool's own emissions of what counts; ``None`` unless each energy has one."""
    whole = Decimal(0)
    for name in counts:
        metric = phase.data.get(name.replace("_energy_", "_carbon_"))
        energies = len(list(_values(phase.data[name], key)))
        if metric is None or (metric.unit or "").lower() not in _MICROGRAMS:
            return None
        told = [_figure(v.mean, "its carbon") for _, v in _values(metric, key)]
        known = [v for v in told if v is not None]
        # Several grids make several figures of one energy: none of them is the run's.
        if len(known) != energies:
            return None
        whole += sum(known, Decimal(0)) * _KG_PER_UG
    return whole if counts else None


def _power_w(phase: _Phase, key: str, told: Reading) -> float | None:
    """Return the mean power that stands beside an energy."""
    name, _, detail = told.devices[0].partition(" ") if told.devices else ("", "", "")
    metric = phase.data.get(name.replace("_energy_", "_power_"))
    size = WATTS.get((metric.unit or "").lower()) if metric is not None else None
    value = None if metric is None else metric.data.get(detail, _Detail()).data.get(key)
    return None if size is None or value is None or value.mean is None else value.mean * size
