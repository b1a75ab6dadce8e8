"""Answers of Prometheus' query API as JSON: ranges (``query_range``) and instants (``query``).

A series is its labels, with the metric under ``__name__``, and pairs of seconds since 1970 and
a value as text. A query of ``rate()`` or ``sum()`` answers without a name: its unit is not told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.decoding import decode_json
from carbonlens.errors import InputFileError
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Facts, Group, Item, Kind, Options, Tally
from carbonlens.importers.device_samples import epoch_us
from carbonlens.importers.prometheus_series import Collector
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source

if TYPE_CHECKING:
    from carbonlens.importers.contract import Array

_DIGITS: Final = b"0123456789."
_COMPACT: Final = b'[,""],'
_SPACED: Final = b'[, ""], '
"""A pair without its digits, with what parts it from the next: as Prometheus writes it, and as Python."""

_MEND: Final = "save the whole answer of /api/v1/query_range for a metric by its name"


class PrometheusRangeImporter:
    """Importer of JSON answers of Prometheus."""

    name = "prometheus-query"
    version = 1
    kind: Kind = "trace"
    rank = USUAL
    facts = Facts(
        title="Prometheus query answers, JSON: DCGM exporter, Kepler, Scaphandre",
        reads="query_range and query of a metric by its name, of several hosts; the bare list of results",
        units="as each metric's documentation says; times are UTC",
        grade="B: energy counters; C: power, integrated",
        traps=(
            "an answer without __name__ (rate, sum) does not tell its unit: left out, or refused",
            "series of one GPU that change their pod in between are one GPU",
            "each host is a run of its own, and a device counts by host and id",
            "Prometheus repeats the last value for up to 5 minutes after an exporter falls silent",
            "those of Prometheus text: MIG rows, blanks, zones, shares",
        ),
        tested_on=("tested on samples written after the documentation",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Return the sources that hold results with metrics and values."""
        return each(sources, _is_mine)

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield the series of each device.

        Raises:
            InputFileError: If it is no whole answer, or tells no power or energy.
        """
        source = group.main
        collector = Collector(self, source, has_interval=options.interval_s is not None)
        rows = rejected = nameless = 0
        for series in _results(source):
            name = series.metric.get("__name__")
            if name is None:
                nameless += 1
                continue
            plain = _plain(bytes(series.values))
            if plain is not None and collector.take_all(name, series.metric, *plain):
                rows += len(plain[0])
                continue
            pairs = _pairs(series, source) or ([series.value] if series.value else [])
            for seconds, value in pairs:
                rows += 1
                try:
                    collector.take(name, series.metric, epoch_us(seconds), str(value), 1)
                except ValueError as error:
                    rejected += 1
                    text = f"a sample of {name} {error}; it is left out"
                    yield finding("CL202", "error", text, source, mend="query again")
        if nameless:
            told = counted(nameless, "series has", "series have")
            text = f"{told} no __name__ (a query of rate or sum): the unit is not told, left out"
            rejected += nameless
            rows += nameless
            yield finding("CL202", "error", text, source, mend=_MEND)
        yield from collector.items(has_times=True)
        yield Tally(rows=rows, rejected=rejected)


IMPORTER: Final = PrometheusRangeImporter()


_Pair = tuple[float, str | float | int]


class _Series(msgspec.Struct, frozen=True):
    metric: dict[str, str] = msgspec.field(default_factory=dict)
    values: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"[]"))
    value: _Pair | None = None


class _Data(msgspec.Struct, frozen=True):
    result: list[_Series] = msgspec.field(default_factory=list)


class _Answer(msgspec.Struct, frozen=True):
    status: str = "success"
    error: str = ""
    data: _Data | None = None


def _is_mine(source: Source) -> bool:
    if source.encoding is None:
        return False
    text = "\n".join(source.head_lines()).lstrip()
    if not text.startswith(("{", "[")) or '"metric"' not in text:
        return False
    return '"resultType"' in text or ('"__name__"' in text and '"value' in text)


def _results(source: Source) -> list[_Series]:
    text = source.text().strip()
    try:
        if text.startswith("["):
            return decode_json(text, list[_Series])
        answer = decode_json(text, _Answer)
    except msgspec.DecodeError as error:
        raise _no_answer(source, error) from error
    if answer.status != "success" or answer.data is None:
        raise InputFileError(
            f"is an answer that failed ({answer.error or answer.status})", where=source.shown, mend=_MEND
        )
    return answer.data.result


def _plain(text: bytes) -> tuple[Array, Array] | None:
    """Return times and values of a series whose pairs are a plain number and one in quotes; else ``None``."""
    import numpy as np

    shape = text.translate(None, _DIGITS)
    pair = _COMPACT if shape.startswith(b'[[,"') else _SPACED
    # Behind the last pair stands nothing.
    count, rest = divmod(len(shape) - len(b"[]") + len(pair) - len(pair.rstrip(b", ")), len(pair))
    if count < 1 or rest or shape != b"[" + (pair * count).rstrip(b", ") + b"]":
        return None
    try:
        told = np.array(list(map(float, text.translate(None, b'[]" ').split(b","))), dtype=np.float64)
    except ValueError:
        return None
    return told[::2], told[1::2]


def _pairs(series: _Series, source: Source) -> list[_Pair]:
    try:
        return decode_json(bytes(series.values), list[_Pair])
    except msgspec.DecodeError as error:
        raise _no_answer(source, error) from error


def _no_answer(source: Source, error: msgspec.DecodeError) -> InputFileError:
    return InputFileError(f"is no whole answer of Prometheus ({error})", where=source.shown, mend=_MEND)
