"""Prometheus text exposition of DCGM exporter, Kepler and Scaphandre: one scrape or several.

A line is a metric, its labels, a value and perhaps a time (milliseconds since 1970; seconds
in OpenMetrics). A scrape begins where a series comes again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Facts, Group, Item, Kind, Options, Tally
from carbonlens.importers.device_samples import epoch_us
from carbonlens.importers.prometheus_metrics import METRICS, PREFIXES
from carbonlens.importers.prometheus_series import Collector
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source

_SAMPLE: Final = re.compile(r"^([A-Za-z_:][\w:]*)\s*(?:\{(.*)\})?\s+(\S+)(?:\s+(-?[\d.]+))?\s*(?:#.*)?$")
_LABEL: Final = re.compile(r'\s*([A-Za-z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_COMMENT: Final = re.compile(r"^# (?:HELP|TYPE|UNIT) (\S+)")
_ESCAPES: Final = {r"\\": "\\", r"\"": '"', r"\n": "\n"}
_LEAST_MS: Final = 1e11
"""A time from here on is milliseconds: as seconds it would be the year 5138."""


class PrometheusTextImporter:
    """Importer of text that exporters of power and energy answer a scrape with."""

    name = "prometheus-text"
    version = 1
    kind: Kind = "trace"
    rank = USUAL
    facts = Facts(
        title="Prometheus text: DCGM exporter, Kepler, Scaphandre",
        reads="one scrape or several in one file, with and without times; OpenMetrics",
        units="as each metric's documentation says: W, mJ (DCGM), J and W (Kepler), uW and uJ (Scaphandre)",
        grade="B: energy counters; C: power, integrated",
        traps=(
            "rows of MIG instances and of pods repeat the whole GPU's figure: counted once, by UUID",
            "9223372036854775794 and its like are blank readings, as is Kepler's 9.2e14 J of an overflow",
            "zones of Kepler overlap: package and dram count, psys, core and uncore stand beside",
            "shares of processes, containers and pods are not added to their host",
            "one scrape of a counter is energy since it began, not of a run; one of power is no energy",
            "Kepler or Scaphandre beside one another, or beside DCGM's GPUs, count once",
        ),
        tested_on=(
            "two real scrapes of DCGM exporter",
            "Kepler and Scaphandre: tested on samples written after the documentation",
        ),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Return the sources in which a line names a metric of these exporters."""
        return each(sources, _is_mine)

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield the series of each device.

        Raises:
            InputFileError: If no series tells a power or an energy.
        """
        source = group.main
        collector = Collector(self, source, has_interval=options.interval_s is not None)
        rows = rejected = scrape = 0
        seen: set[str] = set()
        has_times: bool | None = None
        for line, text in source.lines():
            bare = text.strip()
            if not bare or bare.startswith("#"):
                continue
            rows += 1
            try:
                name, written, value, time = _parted(bare)
                if name in METRICS and has_times is None:
                    has_times = time is not None
                if name in METRICS and has_times != (time is not None):
                    raise ValueError("has no time, or has one where others have none")
                series = f"{name}{{{written}}}"
                if time is None and series in seen:
                    scrape += 1
                    seen.clear()
                seen.add(series)
                labels = _labels_of(written)
                collector.take(name, labels, float(scrape) if time is None else _us(time), value, line)
            except ValueError as error:
                rejected += 1
                said = f"line {line} {error}; it is left out"
                yield finding("CL202", "error", said, source, line=line, mend="scrape again")
        yield from collector.items(has_times=bool(has_times))
        yield Tally(rows=rows, rejected=rejected)


IMPORTER: Final = PrometheusTextImporter()


def _is_mine(source: Source) -> bool:
    if source.start.lstrip()[:1] in (b"{", b"["):
        return False
    for line in source.head_lines():
        told = _COMMENT.match(line) or _SAMPLE.match(line.strip())
        if told is not None and told[1].startswith(PREFIXES):
            return True
    return False


def _parted(text: str) -> tuple[str, str, str, str | None]:
    """Return name, labels, value and time of a line.

    Raises:
        ValueError: If it is no sample.
    """
    told = _SAMPLE.match(text)
    if told is None:
        raise ValueError("is no sample of a metric")
    return told[1], told[2] or "", told[3], told[4]


@lru_cache(maxsize=4096)
def _labels_of(text: str) -> Mapping[str, str]:
    """Return labels by name; each scrape writes those of a series alike."""
    found: dict[str, str] = {}
    at = 0
    while at < len(text.rstrip(" ,")):
        told = _LABEL.match(text, at)
        if told is None:
            raise ValueError("has labels that cannot be read")
        found[told[1]] = re.sub(r"\\[\\\"n]", lambda m: _ESCAPES[m[0]], told[2])
        at = told.end()
    return found


def _us(text: str) -> float:
    try:
        time = float(text)
    except ValueError:
        raise ValueError(f"has the time {text!r}, which is none") from None
    return epoch_us(time * 1e-3 if time >= _LEAST_MS else time)
