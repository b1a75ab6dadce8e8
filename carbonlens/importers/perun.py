"""perun's JSON export: a tree of runs, hosts, devices and sensors, of which the runs are read.

A run's energy holds an overhead in watts and a PUE that the user configured; those of its
devices do not. The run's energy here is that of the devices; the stated one stands beside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

import msgspec

from carbonlens.domain.run import Reading, Run
from carbonlens.domain.units import Boundary, Grade
from carbonlens.errors import InputFileError
from carbonlens.importers import unit_checks
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Facts, Group, Item, Kind, Options, RunRecord, Tally
from carbonlens.importers.json_files import Notes, decoded, id_of, quantity
from carbonlens.importers.records import exact_j, finding, origin_of, reading
from carbonlens.importers.sources import Source
from carbonlens.importers.times import Clock

_APP, _MULTI_RUN, _RUN, _NODE = 1, 2, 3, 4
_TREE: Final = re.compile(r'^\s*\{\s*"id":\s*"[^"]*",\s*"type":\s*[123]\s*,\s*"metadata":\s*\{')
_PARTS: Final[dict[str, tuple[str, Grade]]] = {
    "cpu_energy": ("cpu", "B"),
    "gpu_energy": ("gpu", "C"),
    "dram_energy": ("ram", "B"),
    "other_energy": ("other", "C"),
}
_METHOD: Final = "perun"
_SAME: Final = Decimal("0.005")
_LEAST_W: Final = 0.05
_G_PER_KG: Final = 1000


class _Meta(msgspec.Struct, frozen=True):
    unit: str
    mag: float = 1.0


class _Metric(msgspec.Struct, frozen=True):
    metric_md: _Meta
    value: float | None = None


class _Node(msgspec.Struct, frozen=True):
    """A node of the tree; ``nodes`` is a list of one mapping in files that perun 0.8 and later write."""

    id: str
    type: int
    metadata: dict[str, object] = {}
    metrics: dict[str, _Metric] = {}
    nodes: dict[str, _Node] | list[dict[str, _Node]] | None = None

    @property
    def children(self) -> list[_Node]:
        """The nodes under this one, in the order of the file."""
        groups = self.nodes if isinstance(self.nodes, list) else [self.nodes or {}]
        return [node for group in groups for node in group.values()]


class PerunImporter:
    """Importer of perun's JSON files."""

    name = "perun"
    version = 1
    kind: Kind = "runs"
    rank = USUAL
    facts = Facts(
        title="perun JSON",
        reads="trees of an application, of one multi-run or of one run, as perun 0.5 to 1.0 export them",
        units="joules, seconds, grams, each with a magnitude beside it",
        grade="CPU and memory B (RAPL), GPU C (polled power)",
        traps=(
            "energy of a run holds the configured overhead and PUE; the devices' do not: both are kept",
            "without a power sensor there is no energy: unknown, not zero",
            "figures of an application or multi-run are means over its runs: the runs are read",
            "nodes stand in a list of one, which perun itself cannot read back",
            "execution_dt is local time without a zone: --tz, else UTC; later rounds begin where "
            "the earlier ones ended, by their runtimes",
            "perun makes power of counters and integrates that: its joules may miss the counters' own",
        ),
        tested_on=(
            "samples written after its code (io/json.py, data_model/data.py); "
            "one that perun 0.9.1 made on a machine without sensors",
        ),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Claim JSON that begins as perun's nodes do."""
        return each(sources, lambda s: _TREE.match("\n".join(s.first_lines)) is not None)

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield the runs of a tree.

        Raises:
            InputFileError: If it is no whole tree, or holds no run.
        """
        yield from _Reading(group.main, options).items()


IMPORTER: Final = PerunImporter()


class _Place(msgspec.Struct, frozen=True, kw_only=True):
    """What stands above a run: its application and round, and what was configured."""

    app: str
    multi_run: str | None = None
    metadata: dict[str, object] = {}
    earlier_s: float | None = 0.0


class _Reading:
    def __init__(self, source: Source, options: Options) -> None:
        self._source = source
        self._options = options
        self._notes = Notes(source)
        self._clock = Clock(options.tz, source)

    def items(self) -> Iterator[Item]:
        """Yield runs, Findings and a tally."""
        tree = decoded(self._source, _Node, "export of perun")
        rows = rejected = 0
        for node, place in _runs(tree, _Place(app=tree.id)):
            rows += 1
            try:
                record = self._record(node, place)
            except ValueError as error:
                rejected += 1
                text = f"run {node.id!r} {error}; it is left out"
                yield finding("CL202", "error", text, self._source, mend="export it again")
                continue
            yield from self._checks(record)
            yield record
        if not rows:
            raise InputFileError(
                "holds no run", where=self._source.shown, mend="export after the application has run"
            )
        yield from self._notes.findings()
        yield from self._clock.findings
        yield Tally(rows=rows, rejected=rejected)

    def _record(self, node: _Node, place: _Place) -> RunRecord:
        duration = _told(node, "runtime", "s")
        whole = _told(node, "energy", "J")
        pue, overhead_w = _configured(place, "pue", 1.0), _configured(place, "power_overhead", 0.0)
        hosts = [child.id for child in node.children if child.type == _NODE]
        devices = None
        if whole is not None:
            devices = whole / pue - overhead_w * (duration or 0) * max(len(hosts), 1)
        meter = ", ".join(hosts) or self._source.name
        energy, beside = self._energy(node, whole, devices, meter, pue)
        co2 = _told(node, "co2", "g")
        start_us = self._start_us(place)
        has_end = start_us is not None and duration is not None
        run = Run(
            run_id=id_of("perun", {"app": place.app, "multi": place.multi_run, **_content(node)}),
            job_id=place.multi_run,
            start_us=start_us,
            end_us=(start_us or 0) + round((duration or 0) * 1_000_000) if has_end else None,
            duration_s=None if duration is None else float(duration),
            energy=energy,
            beside=beside,
            emissions_reported_kg=co2 / _G_PER_KG if co2 and whole else None,
            workload=place.app,
            hardware=", ".join(hosts) or None,
            tags={"round": node.id},
            origin=origin_of(IMPORTER, self._source),
        )
        return RunRecord(run=run, stated_j=exact_j(whole or None))

    def _energy(
        self, node: _Node, whole: Decimal | None, devices: Decimal | None, meter: str, pue: Decimal
    ) -> tuple[tuple[Reading, ...], tuple[Reading, ...]]:
        """Return the devices' energy, and the stated one where it holds more."""
        if not whole or devices is None or devices <= 0:
            text = "no sensor told power: the energy was not measured, and is unknown"
            self._notes.say("CL260", "warning", text, "let perun read RAPL or NVML")
            return (reading("total", None, method=_METHOD, grade="D", meter=meter),), ()
        parts = {name: _told(node, name, "J") for name in _PARTS}
        known = {name: joules for name, joules in parts.items() if joules}
        if abs(sum(known.values()) - devices) <= _SAME * devices:
            made = tuple(
                reading(_PARTS[name][0], joules, method=_METHOD, grade=_PARTS[name][1], meter=meter)
                for name, joules in known.items()
            )
        else:
            if known:
                text = "the energies of the devices do not sum to the run's, which is kept"
                self._notes.say("CL256", "warning", text, "check which sensors perun read")
            made = (reading("total", devices, method=_METHOD, grade="C", meter=meter),)
        if abs(whole - devices) <= _SAME * devices:
            return made, ()
        boundary: Boundary = "facility" if pue > 1 else "it"
        method = f"perun, devices and overhead x PUE {pue:f}"
        return made, (reading("total", whole, method=method, grade="D", meter=meter, boundary=boundary),)

    def _start_us(self, place: _Place) -> int | None:
        text = place.metadata.get("execution_dt")
        if not isinstance(text, str) or place.earlier_s is None:
            self._notes.say("CL245", "warning", "when a run began is not told: its energy is in no hour")
            return None
        try:
            moment = datetime.fromisoformat(text) + timedelta(seconds=place.earlier_s)
            return self._clock.us(moment, 0)
        except (ValueError, OverflowError):
            self._notes.say("CL245", "warning", f"execution_dt {text!r} is no time: the energy is in no hour")
            return None

    def _checks(self, record: RunRecord) -> Iterator[Item]:
        known = [float(r.energy_j) for r in record.run.energy if r.energy_j is not None]
        kg = record.run.emissions_reported_kg
        stated = unit_checks.Stated(
            energy_j=sum(known) or None,
            duration_s=record.run.duration_s,
            emissions_kg=None if kg is None else float(kg),
            least_w=_LEAST_W,
            most_w=unit_checks.MOST_HOST_W * max(len((record.run.hardware or "").split(", ")), 1),
        )
        yield from unit_checks.of_run(stated, self._source, 0)


def _runs(node: _Node, place: _Place) -> Iterator[tuple[_Node, _Place]]:
    """Yield the runs under a node, each with what stands above it."""
    if node.type == _RUN:
        yield node, place
        return
    if node.type == _MULTI_RUN:
        place = _Place(app=place.app, multi_run=node.id, metadata=node.metadata)
    for child in node.children if node.type in {_APP, _MULTI_RUN} else ():
        yield from _runs(child, place)
        if child.type == _RUN and place.earlier_s is not None:
            told = child.metrics.get("runtime")
            lasted = told.value if told is not None else None
            earlier_s = None if lasted is None else place.earlier_s + lasted
            place = msgspec.structs.replace(place, earlier_s=earlier_s)


def _told(node: _Node, name: str, unit: str) -> Decimal | None:
    """Return a metric in its unit.

    Raises:
        ValueError: If it is in another one, or no figure.
    """
    metric = node.metrics.get(name)
    if metric is None:
        return None
    if metric.metric_md.unit != unit:
        raise ValueError(f"has {name} in {metric.metric_md.unit!r}; known is {unit!r}")
    value, size = quantity(metric.value, name), quantity(metric.metric_md.mag, f"magnitude of {name}")
    return None if value is None or size is None else value * size


def _configured(place: _Place, name: str, usual: float) -> Decimal:
    value = place.metadata.get(f"post-processing.{name}", usual)
    try:
        return max(quantity(float(str(value)), name) or Decimal(0), Decimal(repr(usual)))
    except ValueError:
        return Decimal(repr(usual))


def _content(node: _Node) -> dict[str, object]:
    metrics = {name: (metric.value, metric.metric_md.mag) for name, metric in node.metrics.items()}
    return {"run": node.id, "metrics": sorted(metrics.items())}
