"""Alumet's CSV: a line a measurement, of whatever its plugins measure; energies are kept.

RAPL and NVML tell joules since the measurement before. Names end in their unit unless the
user has switched that off; RAPL's zones stand in the attribute ``domain``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

import msgspec

from carbonlens.errors import InputFileError
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Channel, Facts, Group, Item, Kind, Options, Tally
from carbonlens.importers.device_samples import DeviceSamples
from carbonlens.importers.once import Once
from carbonlens.importers.run_rows import left_out, number_in, whole_row
from carbonlens.importers.sources import Source, first_names
from carbonlens.importers.tables import Table
from carbonlens.importers.times import Clock

if TYPE_CHECKING:
    from carbonlens.importers.contract import SampleKind

_NAMES: Final = (
    *("metric", "timestamp", "value", "resource_kind", "resource_id"),
    *("consumer_kind", "consumer_id"),
)
_LATE: Final = "__late_attributes"
_WHOLE_MACHINE: Final = "local_machine"
_TOTAL: Final = "_total"


class _Metric(msgspec.Struct, frozen=True):
    kind: SampleKind
    size: float
    """Joules or watts in one of the metric's own unit."""


_RAPL: Final = "rapl_consumed_energy"
_NVML: Final = "nvml_energy_consumption"
_POWER: Final = "nvml_instant_power"
_METRICS: Final = {
    _RAPL: _Metric("delta", 1.0),
    f"{_RAPL}_j": _Metric("delta", 1.0),
    _NVML: _Metric("delta", 1e-3),
    f"{_NVML}_mj": _Metric("delta", 1e-3),
    _POWER: _Metric("average", 1e-3),
    f"{_POWER}_mw": _Metric("average", 1e-3),
}
_PARTS: Final = {"package": "cpu", "dram": "ram", "platform": "total", "psys": "total"}
"""RAPL's zones that are kept, and components; cores and graphics are parts of the package."""


class AlumetImporter:
    """Importer of Alumet's CSV files."""

    name = "alumet"
    version = 1
    kind: Kind = "trace"
    rank = USUAL
    facts = Facts(
        title="Alumet (CSV)",
        reads="RAPL's and NVML's energies and NVML's power, with and without units in names",
        units="joules since the measurement before (RAPL: J, NVML: mJ), milliwatts; times with their zone",
        grade="B: counters; C: power, integrated, where a GPU tells no energy",
        traps=(
            "RAPL's totals over sockets repeat the sockets: only the sockets count where both are there",
            "package holds pp0 and pp1: those are not read; platform holds all and stands beside",
            "energies attributed to processes are shares of the machine's and are not added",
            "nvml_instant_power repeats NVML's energy: it counts only where there is none",
            "an attribute that came up late stands in the last column",
        ),
        tested_on=("samples written after the documentation and the plugin's source code",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Return the tables that begin with Alumet's columns."""
        return each(sources, lambda s: first_names(s)[: len(_NAMES)] == _NAMES)

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield the energies of each zone and device.

        Raises:
            InputFileError: If nothing in it is an energy.
        """
        yield from _Log(group.main, options).items()


IMPORTER: Final = AlumetImporter()


class _Series(msgspec.Struct, frozen=True):
    """Which series a line belongs to."""

    metric: str
    domain: str
    resource: str
    device: str


class _Log:
    def __init__(self, source: Source, options: Options) -> None:
        self._source = source
        self._clock = Clock(options.tz, source)
        self._once = Once(source)
        self._boundary = options.boundary or "device"
        self._every = _all_of(source)
        self._channels: dict[_Series, Channel | None] = {}

    def items(self) -> Iterator[Item]:
        """Yield everything."""
        if not self._every:
            raise InputFileError(
                "holds no energy of RAPL or NVML: energy cannot be computed",
                where=self._source.shown,
                mend="let Alumet run with its plugin rapl or nvml",
            )
        samples = DeviceSamples()
        table = Table(self._source)
        rows = rejected = 0
        last: tuple[_Series, str, str] | None = None
        seen: set[tuple[_Series, str, str]] = set()
        for line, cells in table.dicts():
            rows += 1
            try:
                row = whole_row(cells)
                series = _series_of(row)
                channel = None if series is None else self._channel(series)
                if series is None or channel is None:
                    continue
                last = (series, row["timestamp"], row["value"])
                if last in seen:
                    self._once.say("CL201", "info", "repeats an earlier one; counted once", line)
                    continue
                value = number_in(row, "value", table.delimiter)
                t_us = self._us(row["timestamp"], line)
            except ValueError as error:
                rejected += 1
                yield left_out(error, self._source, line)
                continue
            seen.add(last)
            if value is None:
                text = "a measurement failed and is left out, not counted as zero"
                self._once.say("CL125", "warning", text, line, "the energy of that time is lost")
            size = _METRICS[series.metric].size
            samples.add(channel, t_us, math.nan if value is None else float(value) * size, line)
            if samples.is_full:
                yield from samples.hand_on()
                seen.clear()
        yield from samples.hand_on()
        yield from self._once.findings()
        yield from self._clock.findings
        yield Tally(rows=rows, rejected=rejected)

    def _us(self, text: str, line: int) -> int:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise ValueError(f"has the time {text!r}, which is none") from None
        return self._clock.us(moment, line)

    def _channel(self, series: _Series) -> Channel | None:
        """Return the channel of a series; ``None`` for one that another one holds."""
        if series not in self._channels:
            self._channels[series] = self._made(series)
        return self._channels[series]

    def _made(self, series: _Series) -> Channel | None:
        metric = _METRICS[series.metric]
        plain = (
            series.metric.rpartition("_")[0] if series.metric[-2:] in {"_j", "mj", "mw"} else series.metric
        )
        if plain == _RAPL:
            part = series.domain.removesuffix(_TOTAL)
            is_sum = series.domain.endswith(_TOTAL) or series.resource == _WHOLE_MACHINE
            sockets = {s for s in self._every if s.domain == part and s.resource != _WHOLE_MACHINE}
            if is_sum and sockets:
                return None
            component, name = _PARTS[part], f"{part} {series.device}".strip()
        else:
            has_energy = any(s.metric.startswith(_NVML) for s in self._every if s.device == series.device)
            if plain == _POWER and has_energy:
                return None
            component, name = "gpu", f"GPU {series.device}".strip()
        return Channel(
            name=name,
            component=component,
            device=name,
            kind=metric.kind,
            counted=component != "total"
            or all(s.domain.startswith(("platform", "psys")) for s in self._every),
            boundary=self._boundary,
            method=f"Alumet {plain}",
            unit="W" if metric.kind == "average" else "J",
        )


def _series_of(row: Mapping[str, str]) -> _Series | None:
    metric = row.get("metric", "").lower()
    if metric not in _METRICS or row.get("consumer_kind", "").lower() != _WHOLE_MACHINE:
        return None
    late = dict(p.strip().partition("=")[::2] for p in row.get(_LATE, "").split(","))
    domain = (row.get("domain") or late.get("domain") or "").lower()
    if metric.startswith(_RAPL) and domain.removesuffix(_TOTAL) not in _PARTS:
        return None
    return _Series(metric, domain, row["resource_kind"].lower(), row["resource_id"])


def _all_of(source: Source) -> set[_Series]:
    """Return the series that a source holds; it is read once for it."""
    said = len(source.repairs)
    found = set()
    for _, cells in Table(source).dicts():
        series = None if isinstance(cells, list) else _series_of(cells)
        if series is not None:
            found.add(series)
    del source.repairs[said:]  # what it had to repair is said by the reading that counts
    return found
