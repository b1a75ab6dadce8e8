"""perun's CSV export: every reading of every sensor of one multi-run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from carbonlens.errors import InputFileError
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Channel, Chunk, Facts, Group, Item, Kind, Options, Tally
from carbonlens.importers.run_rows import left_out, number_in, whole_row
from carbonlens.importers.sources import Source, first_names
from carbonlens.importers.tables import Table

_COLUMNS: Final = frozenset(
    {"run id", "hostname", "device_group", "sensor", "unit", "magnitude", "timestep", "value"}
)
_COMPONENTS: Final = {"cpu": "cpu", "gpu": "gpu", "ram": "ram", "other": "other"}
_WHOLES: Final = frozenset({"node", "rack"})
_BATCH: Final = 65_536
_US: Final = 1e6


class PerunCsvImporter:
    """Importer of perun's CSV files."""

    name = "perun-csv"
    version = 1
    kind: Kind = "trace"
    rank = USUAL
    facts = Facts(
        title="perun CSV of raw readings",
        reads="run id, hostname, device_group, sensor, unit, magnitude, timestep, value",
        units="watts times a magnitude; seconds from the start of each run",
        grade="C: polled power, and power that perun made of counters",
        traps=(
            "readings in bytes, percent and hertz are passed over",
            "sensors of a whole node or rack stand beside its devices, and are not added to them",
            "each round of a host is a run of its own",
            "times are relative: --start gives the hour",
        ),
        tested_on=("samples written after its code (io/pandas.py)",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Claim tables of perun's columns."""
        return each(sources, lambda s: set(first_names(s)) - {""} == _COLUMNS)

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield the power of each sensor.

        Raises:
            InputFileError: If it cannot be read, or no sensor tells power.
        """
        yield from _Reading(group.main, options).items()


IMPORTER: Final = PerunCsvImporter()


class _Reading:
    def __init__(self, source: Source, options: Options) -> None:
        self._source = source
        self._boundary = options.boundary or "device"
        self._table = Table(source)
        self._channels: dict[tuple[str, str, str, str], Channel] = {}
        self._first_run: str | None = None
        self._times: list[float] = []
        self._watts: list[float] = []
        self._line = 0

    def items(self) -> Iterator[Item]:
        """Yield channels, chunks and a tally."""
        rows = rejected = 0
        now: Channel | None = None
        for line, cells in self._table.dicts():
            rows += 1
            try:
                row = whole_row(cells)
                if row["unit"] != "W":
                    continue
                sample = self._sample(row)
            except ValueError as error:
                rejected += 1
                yield left_out(error, self._source, line)
                continue
            channel, is_new = self._channel(row)
            if channel is not now or len(self._times) >= _BATCH:
                yield from self._drained(now)
                now, self._line = channel, line
            if is_new:
                yield channel
            self._times.append(sample[0])
            self._watts.append(sample[1])
        yield from self._drained(now)
        if not self._channels:
            raise InputFileError(
                "has no reading in watts: energy cannot be computed",
                where=self._source.shown,
                mend="let perun read RAPL or NVML",
            )
        yield Tally(rows=rows, rejected=rejected)

    def _sample(self, row: Mapping[str, str]) -> tuple[float, float]:
        delimiter = self._table.delimiter
        seconds = number_in(row, "timestep", delimiter)
        size, value = number_in(row, "magnitude", delimiter), number_in(row, "value", delimiter)
        if seconds is None or not size:
            raise ValueError("has no timestep or no magnitude")
        if row["device_group"] not in _WHOLES and row["device_group"] not in _COMPONENTS:
            raise ValueError(f"has watts of {row['device_group']!r}, which is no group of devices")
        return float(seconds) * _US, math.nan if value is None else float(value * size)

    def _channel(self, row: Mapping[str, str]) -> tuple[Channel, bool]:
        key = row["run id"], row["hostname"], row["device_group"], row["sensor"]
        found = self._channels.get(key)
        if found is not None:
            return found, False
        run, host, group, sensor = key
        self._first_run = run if self._first_run is None else self._first_run
        made = Channel(
            name=sensor,
            host=host if run == self._first_run else f"{host}, round {run}",
            component=_COMPONENTS.get(group, "total"),
            device=sensor,
            counted=group in _COMPONENTS,
            method="perun, power of a sensor",
            boundary=self._boundary,
        )
        self._channels[key] = made
        return made, True

    def _drained(self, channel: Channel | None) -> Iterator[Chunk]:
        import numpy as np

        times, watts = self._times, self._watts
        self._times, self._watts = [], []
        if channel is not None and times:
            t_us, values = np.array(times), np.array(watts)
            yield Chunk(channel=channel, t_us=t_us, values=values, line=self._line, relative=True)
