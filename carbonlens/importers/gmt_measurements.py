"""The Green Metrics Tool's measurements of a run, as its interface gives them: one row a sample.

``/v1/measurements/single/ID`` answers with ``[detail_name, time, metric, value, unit]`` rows,
by metric, detail and time. Energies are of the interval since the row before.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.errors import InputFileError
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Channel, Chunk, Facts, Group, Item, Kind, Options, Tally
from carbonlens.importers.gmt_metrics import JOULES, WATTS, Metric, counted_of, metric_of
from carbonlens.importers.json_files import Notes, decoded
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source

_ROWS: Final = re.compile(r'"data"\s*:\s*\[\s*\[\s*"[^"]*"\s*,\s*\d{16}\s*,\s*"[a-z0-9_]+"\s*,')
_EARLIEST_US, _LATEST_US = 3.1e13, 7.26e15
_CELLS: Final = 5


class _File(msgspec.Struct, frozen=True):
    data: list[list[str | int | float | None]]


class GmtMeasurementsImporter:
    """Importer of the measurements of a run."""

    name = "gmt-measurements"
    version = 1
    kind: Kind = "trace"
    rank = USUAL
    facts = Facts(
        title="Green Metrics Tool measurements (JSON of its interface)",
        reads="/v1/measurements/single: energies and powers of machines and components",
        units="each row states its own: uJ, mJ or J since the row before; mW or W; microseconds since 1970",
        grade="by provider: A (MCP, Gude, PowerSpy2), B (RAPL), C (NVML, powermetrics, IPMI), D (models)",
        traps=(
            "a machine's meter holds its components: where one measured, they stand beside; "
            "psu models (xgboost, sdia) never count beside a measurement",
            "containers and slices are shares of the machine, carbon is computed: not read",
            "cores are a part of the CPU that stands in the same file",
            "rows are of the whole run, with its baseline, installation and idling: phase stats part them",
            "a row of a time that was told already counts once",
        ),
        tested_on=("samples written after its interface and providers (August 2026)",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Claim JSON objects whose data are such rows."""
        return each(sources, lambda s: _ROWS.search("\n".join(s.first_lines)) is not None)

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield the energies by metric and detail.

        Raises:
            InputFileError: If it is no whole answer, or holds no energy.
        """
        yield from _Reading(group.main, options).items()


IMPORTER: Final = GmtMeasurementsImporter()

_Key = tuple[str, str, str]


class _Reading:
    def __init__(self, source: Source, options: Options) -> None:
        self._source = source
        self._options = options
        self._notes = Notes(source)
        self._series: dict[_Key, tuple[array[float], array[float]]] = {}
        self._rows = self._rejected = self._repeated = 0

    def items(self) -> Iterator[Item]:
        """Yield channels, samples, Findings and a tally."""
        for row in decoded(self._source, _File, "answer of the Green Metrics Tool").data:
            self._rows += 1
            try:
                self._take(row)
            except ValueError as error:
                self._rejected += 1
                text = f"row {self._rows} {error}; it is left out"
                yield finding("CL202", "error", text, self._source, mend="ask for the measurements again")
        if not self._series:
            raise InputFileError(
                "holds no energy of a machine or component",
                where=self._source.shown,
                mend="let the tool measure with a provider of energy, such as RAPL",
            )
        yield from self._channels()
        yield from self._notes.findings()
        if self._repeated:
            told = counted(self._repeated, "row is of a time", "rows are of times")
            text = f"{told} that earlier rows told of; counted once"
            yield finding("CL201", "warning", text, self._source)
        yield Tally(rows=self._rows, rejected=self._rejected, repeated=self._repeated)

    def _take(self, row: Sequence[str | int | float | None]) -> None:
        if len(row) != _CELLS:
            raise ValueError(f"has {counted(len(row), 'cell')} instead of {_CELLS}")
        detail, time_us, name, value, unit = row
        if not isinstance(detail, str) or not isinstance(name, str) or not isinstance(unit, str | None):
            raise ValueError("names no metric")
        metric = metric_of(name)
        if metric is None:
            if "_energy_" in name:
                text = f"{name} is a share or a model of other energies; not read"
                self._notes.say("CL269", "info", text)
            return
        size = (WATTS if metric.is_power else JOULES).get((unit or "").lower())
        if size is None:
            raise ValueError(f"states {name} in {unit!r}, which is no unit of it that is known")
        if not isinstance(time_us, int | float) or not _EARLIEST_US <= time_us <= _LATEST_US:
            raise ValueError(f"has the time {time_us!r}, which is none")
        if value is not None and (not isinstance(value, int | float) or not 0 <= value < 2**63):
            raise ValueError(f"has {name} {value!r}, which cannot be")
        times, values = self._series.setdefault((name, detail, unit or ""), (array("d"), array("d")))
        if times and time_us <= times[-1]:
            self._repeated += 1
            return
        times.append(time_us)
        values.append(math.nan if value is None else value * size)

    def _channels(self) -> Iterator[Item]:
        import numpy as np

        metrics = {name: m for name, _, _ in self._series if (m := metric_of(name)) is not None}
        counts = counted_of(metrics.values())
        for (name, detail, unit), (times, values) in self._series.items():
            channel = self._channel(metrics[name], detail, unit, is_counted=name in counts)
            yield channel
            yield Chunk(
                channel=channel, t_us=np.array(times, np.float64), values=np.array(values, np.float64)
            )

    def _channel(self, metric: Metric, detail: str, unit: str, *, is_counted: bool) -> Channel:
        grade = metric.grade
        return Channel(
            name=f"{metric.name} {detail}",
            component=metric.component,
            device=f"{metric.name} {detail}",
            kind="instant" if metric.is_power else "delta",
            counted=is_counted,
            boundary=metric.boundary if metric.is_machine else self._options.boundary or metric.boundary,
            grade="C" if metric.is_power and grade == "B" else grade,
            method=f"Green Metrics Tool, {metric.name}",
            unit={"uj": "uJ", "mj": "mJ", "j": "J", "uw": "uW", "mw": "mW", "w": "W"}[unit.lower()],
        )
