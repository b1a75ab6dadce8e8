"""experiment-impact-tracker's data.json: a JSON object a line, with watts of the machine and of the work.

The tool sums the watts it attributes to the work; those of the whole machine stand beside.
Its info.pkl is a pickle, which is never opened: it can run code.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from carbonlens.domain.decoding import json_decoder
from carbonlens.errors import InputFileError
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Channel, Chunk, Facts, Group, Item, Kind, Options, Tally
from carbonlens.importers.run_rows import left_out
from carbonlens.importers.sources import Source
from carbonlens.importers.times import FIRST_YEAR, LAST_YEAR

_BATCH: Final = 8192
_US: Final = 1e6
_YEAR_S: Final = 31_556_952
_SERIES: Final = (
    ("rapl_estimated_attributable_power_draw", "cpu", True),
    ("nvidia_estimated_attributable_power_draw", "gpu", True),
    ("rapl_power_draw_absolute", "cpu", False),
    ("nvidia_draw_absolute", "gpu", False),
)
"""Keys, components, and whether they are the work's own share."""


class _Row(msgspec.Struct, frozen=True):
    timestamp: float
    rapl_estimated_attributable_power_draw: float | None = None
    nvidia_estimated_attributable_power_draw: float | None = None
    rapl_power_draw_absolute: float | None = None
    nvidia_draw_absolute: float | None = None


class ImpactTrackerImporter:
    """Importer of experiment-impact-tracker's readings."""

    name = "experiment-impact-tracker"
    version = 1
    kind: Kind = "trace"
    rank = USUAL
    facts = Facts(
        title="experiment-impact-tracker data.json",
        reads="versions 0.1: RAPL and NVIDIA power, of the machine and attributed to the work",
        units="watts; seconds since 1970",
        grade="D: measured power times shares of use; the machine's own, beside it, C",
        traps=(
            "a file of JSON lines, whatever its name says",
            "attributed watts count, as the tool's own report does; absolute ones stand beside",
            "the tool's report multiplies by a PUE of 1.58; these watts hold none",
            "start, end and region are in info.pkl, a pickle: never opened, so the span is of the samples",
        ),
        tested_on=("samples written after its code (data_info_and_router.py, data_utils.py)",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Claim JSON lines with a time and a power that the tool names."""
        return each(sources, _is_mine)

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield the samples.

        Raises:
            InputFileError: If it cannot be read, or no line tells power.
        """
        import numpy as np

        source = group.main
        decoder = json_decoder(_Row)
        channels = {key: _channel(key, options) for key, _, _ in _SERIES}
        told: set[str] = set()
        rows = rejected = 0
        waiting: list[tuple[int, _Row]] = []

        def drained() -> Iterator[Item]:
            times = np.array([row.timestamp * _US for _, row in waiting])
            for key, channel in channels.items():
                values = [getattr(row, key) for _, row in waiting]
                if key not in told and all(v is None for v in values):
                    continue
                if key not in told:
                    told.add(key)
                    yield channel
                watts = np.array([math.nan if v is None else v for v in values])
                yield Chunk(channel=channel, t_us=times, values=watts, line=waiting[0][0])
            waiting.clear()

        for line, text in source.lines():
            if not text.strip():
                continue
            rows += 1
            try:
                waiting.append((line, _row(decoder, text)))
            except ValueError as error:
                rejected += 1
                yield left_out(error, source, line)
            if len(waiting) == _BATCH:
                yield from drained()
        if waiting:
            yield from drained()
        if not told:
            raise InputFileError(
                "tells no power: energy cannot be computed",
                where=source.shown,
                mend="let the tool read RAPL or nvidia-smi",
            )
        yield Tally(rows=rows, rejected=rejected)


IMPORTER: Final = ImpactTrackerImporter()


def _is_mine(source: Source) -> bool:
    line = source.first_lines[0] if source.first_lines else ""
    keys = ('"rapl_power_draw_absolute"', '"nvidia_draw_absolute"')
    return line.startswith("{") and '"timestamp"' in line and any(key in line for key in keys)


def _channel(key: str, options: Options) -> Channel:
    _, component, is_own = next(told for told in _SERIES if told[0] == key)
    return Channel(
        name=key,
        component=component,
        counted=is_own,
        grade="D" if is_own else "C",
        method="experiment-impact-tracker, " + ("the work's share of power" if is_own else "power of all"),
        boundary=options.boundary or "device",
    )


def _row(decoder: msgspec.json.Decoder[_Row], text: str) -> _Row:
    """Return what a line tells.

    Raises:
        ValueError: If it is no such line, or has a figure that cannot be.
    """
    try:
        row = decoder.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise ValueError("is no whole JSON line with a timestamp") from None
    if not (FIRST_YEAR - 1970) * _YEAR_S <= row.timestamp <= (LAST_YEAR - 1970) * _YEAR_S:
        raise ValueError(f"has the timestamp {row.timestamp:g}, which is not of this age")
    powers = [value for key, _, _ in _SERIES if (value := getattr(row, key)) is not None]
    if any(value < 0 or math.isinf(value) for value in powers):
        raise ValueError("has a power below zero")
    return row
