"""amd-smi: CSV of ``metric`` and ``monitor`` (-w), and JSON of ``metric``.

The CSV bears seconds since 1970 when it watches, a banner before the header, and headers that
repeat. ``total_energy_consumption`` is joules so far; power columns are watts.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from carbonlens.errors import InputFileError
from carbonlens.importers.cells import UNKNOWN_WORDS
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Channel, Facts, Group, Item, Kind, Options, Tally
from carbonlens.importers.device_samples import DeviceSamples, epoch_us
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source
from carbonlens.importers.tables import exact, is_other_header, names_of, other_header, split, with_unit
from carbonlens.importers.times import Clock
from carbonlens.importers.unit_checks import LEAST_DEVICE_W

ENERGY: Final = "total_energy_consumption"
POWER: Final = ("socket_power", "current_socket_power", "average_socket_power", "power_usage")
_LEAST_MS: Final = 1e11
_LOOK_AHEAD: Final = 4096
"""Rows that tell which figure counts."""

_MOST: Final = 0.5
"""Share of the readings of the figure told most from which one is told, and not by a mishap."""

_UNITS: Final = {"": 1.0, "w": 1.0, "j": 1.0, "mw": 1e-3, "uj": 1e-6, "mj": 1e-3, "kj": 1e3}
_BANNER: Final = "to stop watching output"


class AmdSmiImporter:
    """Importer of what ``amd-smi metric`` and ``amd-smi monitor`` write."""

    name = "amd-smi"
    version = 1
    kind: Kind = "trace"
    rank = USUAL
    facts = Facts(
        title="amd-smi metric and monitor",
        reads="CSV with and without times (-w), also the banner and repeated headers; JSON, one or several",
        units="W, and J so far; seconds since 1970, or ISO 8601",
        grade="B: energy counter; C: power, integrated",
        traps=(
            "N/A (a board that has not this figure, a second die) is no reading, never 0",
            "the energy counter counts where it is told as a rule and not now and then, power stands beside",
            "rows of further partitions (xcp) of a GPU repeat it: only the first counts",
            "JSON and CSV without -w bear no time: --interval",
        ),
        tested_on=("tested on samples written after the documentation",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Return the sources with a header, or an object, of a GPU's power or energy by amd-smi."""
        return each(sources, lambda s: _header_at(s) is not None or _is_json(s))

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield the samples of each GPU.

        Raises:
            InputFileError: If no power and no energy is told.
        """
        log = _Log(group.main, options)
        yield from log.json_items() if _is_json(group.main) else log.csv_items()


IMPORTER: Final = AmdSmiImporter()

_Taken = tuple[str, Mapping[str, float], float | None, int]
"""GPU, its figures, the time and the line of a row."""


def _header_at(source: Source) -> list[str] | None:
    for line in source.first_lines[:3]:
        names = names_of(line, ",")
        if "gpu" in names and {ENERGY, *POWER} & set(names):
            return names
        if _BANNER not in line:
            return None
    return None


def _is_json(source: Source) -> bool:
    if source.encoding is None:
        return False
    text = "\n".join(source.head_lines())
    if not text.lstrip().startswith(("{", "[")) or '"gpu"' not in text[:400]:
        return False
    return any(f'"{name}"' in text for name in (ENERGY, *POWER))


class _Log:
    def __init__(self, source: Source, options: Options) -> None:
        self._source = source
        self._clock = Clock(options.tz, source)
        self._samples = DeviceSamples()
        self._channels: dict[tuple[str, str], Channel] = {}
        self._waiting: list[_Taken] | None = []
        self._best: dict[str, str] = {}
        self._rows = self._rejected = 0

    def csv_items(self) -> Iterator[Item]:
        """Yield everything of a CSV."""
        names = _header_at(self._source) or []
        self._samples = DeviceSamples(has_times="timestamp" in names)
        told = [n for n in (ENERGY, *POWER) if n in names]
        for line, text in self._source.lines():
            cells = split(text, ",")
            if not text.strip() or _BANNER in text or [c.strip('"').lower() for c in cells] == names:
                continue
            if is_other_header(cells, names):
                raise other_header(self._source.shown, line)
            self._rows += 1
            try:
                if len(cells) != len(names):
                    size = "more" if len(cells) > len(names) else "fewer"
                    raise ValueError(f"has not as many cells as there are columns, but {size}")
                row = dict(zip(names, cells, strict=True))
                if row.get("xcp", "0").lower() not in {"0", *UNKNOWN_WORDS}:
                    continue
                t_us = self._t_us(row["timestamp"], line) if "timestamp" in row else None
                values: dict[str, float] = {name: _value(row[name]) for name in told}
                self._take(_gpu(row["gpu"]), values, t_us, line)
            except ValueError as error:
                yield self._rejection(f"line {line}", error, line)
            if self._samples.is_full:
                yield from self._samples.hand_on()
        yield from self._rest()

    def json_items(self) -> Iterator[Item]:
        """Yield everything of JSON documents that stand one after another."""
        self._samples = DeviceSamples(has_times=False)
        decoder = json.JSONDecoder()
        text, at = self._source.text(), 0
        while at < len(text):
            if text[at] in " \t\r\n,":
                at += 1
                continue
            line = text.count("\n", 0, at) + 1
            try:
                document, at = decoder.raw_decode(text, at)
            except (ValueError, RecursionError):
                self._rows += 1
                yield self._rejection(
                    f"the document at line {line}", ValueError("is cut off or damaged"), line
                )
                break
            for metrics in _gpus_of(document):
                self._rows += 1
                try:
                    self._take(_gpu(metrics.get("gpu")), _figures(metrics), None, line)
                except ValueError as error:
                    yield self._rejection(f"the document at line {line}", error, line)
        yield from self._rest()

    def _rest(self) -> Iterator[Item]:
        self._decide()
        if not self._samples.is_known:
            raise InputFileError(
                "tells no power and no energy of a GPU",
                where=self._source.shown,
                mend="log amd-smi metric -p -E; a second die has its figures at the first",
            )
        yield from self._samples.hand_on()
        yield from self._clock.findings
        yield Tally(rows=self._rows, rejected=self._rejected)

    def _take(self, gpu: str, values: Mapping[str, float], t_us: float | None, line: int) -> None:
        """Take a row; the first ones wait until it is known which figure counts."""
        if self._waiting is None:
            self._add(gpu, values, t_us, line)
            return
        self._waiting.append((gpu, values, t_us, line))
        if len(self._waiting) == _LOOK_AHEAD:
            self._decide()

    def _decide(self) -> None:
        """Choose what counts of each GPU, and take the rows that waited for it."""
        waiting, self._waiting = self._waiting or [], None
        told: dict[str, Counter[str]] = {}
        for gpu, values, _, _ in waiting:
            told.setdefault(gpu, Counter()).update(n for n, v in values.items() if math.isfinite(v))
        for gpu, counts in told.items():
            names = [n for n in (ENERGY, *POWER) if counts[n] and counts[n] >= _MOST * max(counts.values())]
            if names:
                self._best[gpu] = _best_of(names, has_times=waiting[0][2] is not None)
        for row in waiting:
            self._add(*row)

    def _add(self, gpu: str, values: Mapping[str, float], t_us: float | None, line: int) -> None:
        for name, value in values.items():
            if name != ENERGY and (gpu, name) not in self._channels and math.isnan(value):
                continue
            samples_of = self._channels.get((gpu, name)) or self._channel(gpu, name, values, t_us)
            self._samples.add(samples_of, t_us, value, line)

    def _channel(self, gpu: str, name: str, values: Mapping[str, float], t_us: float | None) -> Channel:
        is_energy = name == ENERGY
        told = [n for n, v in values.items() if math.isfinite(v)] or [name]
        best = self._best.get(gpu) or _best_of(told, has_times=t_us is not None)
        is_counted = name == best and not any(c.counted for (of, _), c in self._channels.items() if of == gpu)
        made = self._channels[gpu, name] = Channel(
            name=f"GPU {gpu}" if is_counted else f"GPU {gpu} {name}",
            component="gpu",
            device=gpu,
            kind="counter" if is_energy else "average" if name.startswith("average") else "instant",
            counted=is_counted,
            method=f"amd-smi {name}",
            unit="J" if is_energy else "W",
            least_w=LEAST_DEVICE_W,
        )
        return made

    def _t_us(self, text: str, line: int) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if math.isfinite(number):
            return epoch_us(number * 1e-3 if number >= _LEAST_MS else number)
        try:
            return self._clock.us(datetime.fromisoformat(text), line)
        except ValueError:
            raise ValueError(f"has timestamp {text!r}, which is none") from None

    def _rejection(self, place: str, error: ValueError, line: int) -> Item:
        self._rejected += 1
        text = f"{place} {error}; it is left out"
        return finding("CL202", "error", text, self._source, line=line, mend="mend the line")


def _best_of(told: Sequence[str], *, has_times: bool) -> str:
    """Return the figure that counts: the counter, else the first power.

    Without times a counter gives no energy that power would not give better.
    """
    powers = [name for name in told if name != ENERGY]
    return ENERGY if ENERGY in told and (has_times or not powers) else powers[0]


def _gpu(cell: object) -> str:
    text = str(cell).strip()
    if not text.isdigit():
        raise ValueError(f"does not tell its GPU ({text!r})")
    return text


def _value(cell: object, unit: str = "") -> float:
    """Return watts or joules; NaN for a figure that is not there.

    Raises:
        ValueError: If it is no such figure.
    """
    text, written = with_unit(str(cell))
    if str(cell).strip().lower() in UNKNOWN_WORDS or str(cell).startswith("N/A"):
        return math.nan
    size = _UNITS.get((written or unit).lower())
    value = exact(text)
    if size is None or value is None or value < 0:
        raise ValueError(f"has {cell!r}, which is no power or energy")
    return float(value) * size


def _gpus_of(document: object) -> list[Mapping[str, object]]:
    """Return the GPUs of a document: a list, or one under ``gpu_data``."""
    if isinstance(document, dict):
        document = document.get("gpu_data", [document])
    return [g for g in document if isinstance(g, dict)] if isinstance(document, list) else []


def _figures(metrics: Mapping[str, object]) -> dict[str, float]:
    found: dict[str, float] = {}
    for group, names in (("energy", (ENERGY,)), ("power", POWER)):
        place = metrics.get(group)
        if not isinstance(place, dict):
            continue
        for name in names:
            told = place.get(name)
            if isinstance(told, dict):
                found[name] = _value(told.get("value"), str(told.get("unit", "")))
            elif told is not None:
                found[name] = _value(told)
    return found
