"""Series of power and energy, from scrapes or query answers: which count, and what they come to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.run import Reading, Run
from carbonlens.errors import InputFileError
from carbonlens.importers.contract import Channel, Chunk, Importer, Item, Measured, RunRecord
from carbonlens.importers.device_samples import all_epoch_us
from carbonlens.importers.once import Once
from carbonlens.importers.prometheus_metrics import (
    METRICS,
    SHARES,
    TOOLS,
    Metric,
    Place,
    place_of,
    value_of,
    values_of,
)
from carbonlens.importers.records import exact_j, finding, origin_of, reading
from carbonlens.importers.sources import Source
from carbonlens.importers.unit_checks import LEAST_DEVICE_W

if TYPE_CHECKING:
    from carbonlens.importers.contract import Array

_SAME: Final = 0.01
_MEND_NONE: Final = (
    "export DCGM_FI_DEV_POWER_USAGE, kepler_node_cpu_joules_total, scaph_host_power_microwatts"
)


class _Told(msgspec.Struct, frozen=True):
    """What was told of one place by one metric: values by time, or by scrape where there is none."""

    metric: Metric
    name: str
    place: Place
    line: int
    values: dict[float, float]


class Collector:
    """Takes samples of any metric, and yields what they come to.

    Args:
        importer: Who reads.
        source: What is read.
        has_interval: Whether the user told the seconds between scrapes.
    """

    def __init__(self, importer: Importer, source: Source, *, has_interval: bool) -> None:
        """Start with nothing."""
        self._importer = importer
        self._source = source
        self._has_interval = has_interval
        self._told: dict[tuple[str | None, str, str], _Told] = {}
        self._once = Once(source)
        self._shares = 0

    def take(self, name: str, labels: Mapping[str, str], at: float, text: str, line: int) -> None:
        """Take one sample.

        Args:
            name: Of the metric.
            labels: Its labels.
            at: Microseconds since 1970, or the number of the scrape.
            text: The value as written.
            line: Its line.

        Raises:
            ValueError: If the value cannot be one.
        """
        metric = METRICS.get(name)
        if metric is None:
            self._shares += bool(SHARES.match(name))
            return
        place = place_of(metric, labels)
        value = value_of(metric, text)
        key = (place.host, place.name, name)
        told = self._told.get(key)
        if told is None:
            told = self._told[key] = _Told(metric, name, place, line, {})
        if at not in told.values:
            told.values[at] = value
            return
        first = told.values[at]
        if math.isnan(first):
            told.values[at] = value
        elif not math.isnan(value) and abs(value - first) > _SAME * max(value, first):
            text = f"series of one device differ in {name}: the first counts"
            self._once.say("CL268", "warning", text, line, "check which labels tell the devices apart")
        else:
            text = f"series repeat the whole figure of their device in {name}: counted once"
            self._once.say("CL269", "info", text, line)

    def take_all(self, name: str, labels: Mapping[str, str], at_s: Array, values: Array) -> bool:
        """Take the samples of a series at once, where none is out of the ordinary.

        Args:
            name: Of the metric.
            labels: Its labels.
            at_s: Seconds since 1970.
            values: The values as written.

        Returns:
            Whether they were taken: else each has to be looked at by itself.
        """
        metric = METRICS.get(name)
        times_us = all_epoch_us(at_s)
        sized = None if metric is None else values_of(metric, values)
        if times_us is None or metric is None or sized is None:
            return False
        try:
            place = place_of(metric, labels)
        except ValueError:
            return False
        key = (place.host, place.name, name)
        told = self._told.get(key)
        if told is not None and not told.values.keys().isdisjoint(times_us):
            return False
        if told is None:
            told = self._told[key] = _Told(metric, name, place, 1, {})
        told.values.update(zip(times_us, sized.tolist(), strict=True))
        return True

    def items(self, *, has_times: bool) -> Iterator[Item]:
        """Yield everything.

        Args:
            has_times: Whether samples were taken with times.

        Raises:
            InputFileError: If no series tells a power or an energy.
        """
        if not any(math.isfinite(v) for t in self._told.values() for v in t.values.values()):
            raise self._nothing()
        if self._shares:
            text = (
                f"{counted(self._shares, 'sample')} of processes, containers or pods are shares of their host"
            )
            yield finding("CL269", "info", f"{text}: not added to it", self._source)
        yield from self._once.findings()
        counts = self._that_count()
        lone: dict[str | None, list[_Told]] = {}
        for key, told in self._told.items():
            is_counted = key in counts
            is_lone = len(told.values) < 2 or (not has_times and not self._has_interval)
            if told.metric.is_counter and is_lone:
                if is_counted:
                    lone.setdefault(told.place.host, []).append(told)
                continue
            yield from self._series(told, is_counted=is_counted, has_times=has_times and not is_lone)
        for host, several in lone.items():
            yield from self._risen(host, several, has_times=has_times)

    def _that_count(self) -> set[tuple[str | None, str, str]]:
        """Return the series that count: one a place, and one tool a host and family."""
        tools: dict[tuple[str | None, str], int] = {}
        best: dict[tuple[str | None, str], int] = {}
        for told in self._told.values():
            if not told.place.counted or not any(math.isfinite(v) for v in told.values.values()):
                continue
            family = (told.place.host, told.metric.family)
            tools[family] = min(tools.get(family, len(TOOLS)), TOOLS.index(told.metric.tool))
            place = (told.place.host, told.place.name)
            best[place] = min(best.get(place, 99), told.metric.rank)
        return {
            key
            for key, told in self._told.items()
            if told.place.counted
            and best.get((told.place.host, told.place.name)) == told.metric.rank
            and tools[told.place.host, told.metric.family] == TOOLS.index(told.metric.tool)
        }

    def _series(self, told: _Told, *, is_counted: bool, has_times: bool) -> Iterator[Item]:
        import numpy as np

        channel = Channel(
            name=told.place.name if is_counted else f"{told.place.name} {told.name}",
            host=told.place.host,
            component=told.place.component,
            device=told.place.device,
            kind="counter" if told.metric.is_counter else "instant",
            counted=is_counted,
            method=f"{told.metric.tool} {told.name}",
            unit=told.metric.unit,
            least_w=LEAST_DEVICE_W if told.metric.tool == "DCGM" else 0.0,
        )
        at: Array = np.array(sorted(told.values), dtype=np.float64)
        values: Array = np.array([told.values[t] for t in at.tolist()], dtype=np.float64)
        yield channel
        yield Chunk(channel=channel, t_us=at if has_times else None, values=values, line=told.line)

    def _risen(self, host: str | None, several: list[_Told], *, has_times: bool) -> Iterator[Item]:
        """Yield the run of counters whose times are not told: what they rose by, or all they tell."""
        is_one = all(len(t.values) == 1 for t in several)
        of_host = "" if host is None else f" of {host}"
        if is_one:
            text = f"one reading of each energy counter{of_host}: the energy is all that it counted"
            mend = "scrape at the start of the run and at its end, into one file"
        else:
            text = f"scrapes{of_host} have no times: the energy is what the counters rose by"
            mend = "give --interval with the seconds between scrapes"
        yield finding("CL266", "warning", text, self._source, line=several[0].line, mend=mend)
        meter = host or self._source.name
        readings = tuple(_reading(t, meter, is_one=is_one) for t in several)
        known = [r.energy_j for r in readings if r.energy_j is not None]
        ends = [at for t in several for at in t.values] if has_times else []
        run = Run(
            run_id=f"{self._importer.name}-{self._source.sha256[:24]}" + (f"-{host}" if host else ""),
            host_id=host,
            end_us=round(max(ends)) if ends else None,
            energy=readings,
            origin=origin_of(self._importer, self._source, several[0].line),
        )
        yield RunRecord(
            run=run,
            line=several[0].line,
            stated_j=sum(known, Decimal(0)) if len(known) == len(readings) else None,
            measured=Measured(samples=max(len(t.values) for t in several), mean_power_w=None),
        )

    def _nothing(self) -> InputFileError:
        if self._told:
            what = "holds no reading of power or energy: each is blank or failed"
        elif self._shares:
            what = "holds shares of processes or containers alone, and not their host's energy"
        else:
            what = "holds no metric of power or energy that is known: energy cannot be computed"
        return InputFileError(what, where=self._source.shown, mend=_MEND_NONE)


def _reading(told: _Told, meter: str, *, is_one: bool) -> Reading:
    values = [v for _, v in sorted(told.values.items()) if math.isfinite(v)]
    if is_one:
        joules, fell = (values[0] if values else None), False
    else:
        steps = [later - earlier for earlier, later in pairwise(values)]
        joules = math.fsum(s for s in steps if s >= 0) if steps else None
        fell = any(s < 0 for s in steps)
    made = reading(
        told.place.component,
        exact_j(joules),
        method=f"{told.metric.tool} {told.name}",
        grade="B",
        meter=f"{meter}:{told.place.device}",
        devices=(told.place.device,),
    )
    # A counter that fell was begun anew: what it counted in between is lost.
    return msgspec.structs.replace(made, state="unbounded") if fell else made
