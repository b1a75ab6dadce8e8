"""Harvest: everything a group of sources gave, with its traces made into runs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final

import msgspec

from carbonlens.domain.charge import Charge
from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.identity import sha256_hex
from carbonlens.domain.run import HourEnergy, Reading, Run
from carbonlens.domain.units import US_PER_S
from carbonlens.errors import InputFileError
from carbonlens.importers import hours, unit_checks
from carbonlens.importers.contract import (
    AlikeRecords,
    Channel,
    ChargeRecord,
    Chunk,
    Group,
    Importer,
    Item,
    Measured,
    Named,
    Options,
    ProfileRecord,
    RunRecord,
    Tally,
    Window,
)
from carbonlens.importers.records import origin_of
from carbonlens.importers.sample_digest import sha256_of
from carbonlens.importers.tracing import Series

MOST_ALIKE: Final = 100
"""Findings of one code that a source may give; more are counted, and said in one."""

_ROW_LEFT_OUT: Final = "CL202"
_SMALL_SHARE: Final = 0.05


class Harvest:
    """What a group gave.

    Attributes:
        singles: Runs that are records of their own, in the order of the source; those of traces last.
        alike: Runs of a large table, as columns.
        rows, rejected, repeated: Rows that were met, that gave nothing, and that repeat another.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self.singles: list[RunRecord] = []
        self.alike: list[AlikeRecords] = []
        self.charges: list[Charge] = []
        self.profiles: list[ProfileRecord] = []
        self.findings: list[Finding] = []
        self.rows = self.rejected = self.repeated = 0

    @property
    def records(self) -> list[RunRecord]:
        """Every run as a record of its own, in the order of the source."""
        if not self.alike:
            return self.singles
        every = [*self.singles, *(told.record(i) for told in self.alike for i in range(len(told)))]
        return sorted(every, key=lambda record: record.line)


def group_sha256(group: Group) -> str:
    """Return the hash of a group's content: that of its one source, or of theirs in order."""
    if len(group.sources) == 1:
        return group.main.sha256
    return sha256_hex("\n".join(s.sha256 for s in group.sources).encode())


def harvest(importer: Importer, group: Group, options: Options) -> Harvest:
    """Read a group to its end.

    Raises:
        InputFileError: If nothing of it can be used.
    """
    keeper = _Keeper(importer, group, options)
    try:
        for item in importer.read(group, options):
            keeper.take(item)
    except InputFileError as error:
        raise keeper.with_reason(error) from error
    return keeper.finish()


class _Keeper:
    def __init__(self, importer: Importer, group: Group, options: Options) -> None:
        self._importer = importer
        self._group = group
        self._options = options
        self._found = Harvest()
        self._codes: Counter[str] = Counter()
        self._series: dict[tuple[str | None, str | None, str], Series] = {}
        self._window: Window | None = None
        self._named = Named()

    def take(self, item: Item) -> None:
        """Keep one thing that was read."""
        match item:
            case Chunk():
                self._series_of(item.channel).take(item)
            case RunRecord():
                self._found.singles.append(item)
            case AlikeRecords():
                self._found.alike.append(item)
            case Finding():
                self._say(item)
            case Tally():
                self._found.rows += item.rows
                self._found.rejected += item.rejected
                self._found.repeated += item.repeated
            case Channel():
                self._series_of(item)
            case ChargeRecord():
                self._found.charges.append(item.charge)
            case ProfileRecord():
                self._found.profiles.append(item)
            case Window():
                self._window = item
            case Named():
                self._named = item

    def with_reason(self, error: InputFileError) -> InputFileError:
        """Return the refusal with the first row that was left out, which may be why nothing is left."""
        first = next((f for f in self._found.findings if f.code == _ROW_LEFT_OUT), None)
        if first is None:
            return error
        what = f"{error.what} (and {first.message})"
        mend = f"{error.mend}; or {first.mend or 'mend the row'}"
        return InputFileError(what, where=error.where, mend=mend)

    def finish(self) -> Harvest:
        """Return everything, with traces made into runs."""
        hosts = {host for host, _, _ in self._series}
        for host in sorted(hosts, key=lambda h: h or ""):
            series = [s for (of, _, _), s in self._series.items() if of == host]
            self._finish_host(host, series, is_one=len(hosts) == 1)
        for source in self._group.sources:
            for said in source.repairs:
                self._say(said)
            source.repairs.clear()
        for code, count in self._codes.items():
            if count > MOST_ALIKE:
                self._found.findings.append(_and_more(code, count - MOST_ALIKE, self._found.findings))
        return self._found

    def _series_of(self, channel: Channel) -> Series:
        found = self._series.get(channel.key)
        if found is None:
            file = self._group.main.shown
            found = self._series[channel.key] = Series(channel, self._window, file, self._options)
        return found

    def _say(self, said: Finding) -> None:
        self._codes[said.code] += 1
        if self._codes[said.code] <= MOST_ALIKE:
            self._found.findings.append(said)

    def _finish_host(self, host: str | None, every: list[Series], *, is_one: bool) -> None:
        for series in every:
            series.close()
            for said in series.findings:
                self._say(said)
        counted_ones = [s for s in every if s.channel.counted]
        if not any(s.samples for s in every):
            return
        self._say_gaps(host, counted_ones)
        for series in every:
            for wrong in self._unlikely(series):
                self._say(wrong)
        self._found.singles.append(self._record(host, every, counted_ones, is_one=is_one))

    def _unlikely(self, series: Series) -> Iterator[Finding]:
        """Yield what the figures of a channel imply that cannot be."""
        channel, main = series.channel, self._group.main
        yield from unit_checks.of_trace(
            channel.component, series.mean_w, channel.unit, main, least_w=channel.least_w
        )
        if series.stated_span_s is not None:
            stated_s, told_s = series.stated_span_s
            yield from unit_checks.of_length(stated_s, told_s, main, 0, has_gaps=True)

    def _record(
        self, host: str | None, every: list[Series], counted_ones: list[Series], *, is_one: bool
    ) -> RunRecord:
        meter = host or self._group.main.name
        sha = group_sha256(self._group)
        start_us, end_us, duration_s = self._span(counted_ones or every)
        told = measured(counted_ones)
        covered = told.covered_s is not None and told.uncovered_s is not None
        whole_s = (told.covered_s or 0.0) + (told.uncovered_s or 0.0)
        readings = tuple(s.reading(meter) for s in counted_ones)
        named = self._named
        run = Run(
            run_id=(named.run_id or f"{self._importer.name}-{sha[:24]}") + ("" if is_one else f"-{host}"),
            study=named.study,
            step=named.step,
            workload=named.workload,
            hardware=named.hardware,
            job_id=named.job_id,
            units=named.units,
            unit=named.unit,
            tags=dict(named.tags),
            host_id=host,
            start_us=start_us,
            end_us=end_us,
            duration_s=duration_s,
            energy=readings,
            energy_by_hour=_by_hour(counted_ones, readings),
            beside=tuple(s.reading(meter) for s in every if not s.channel.counted),
            coverage=(told.covered_s or 0.0) / whole_s if covered and whole_s else None,
            lost_s=told.uncovered_s if covered else None,
            origin=origin_of(self._importer, self._group.main),
        )
        is_own = named.run_id is not None
        return RunRecord(run=run, measured=told, stated_j=_sum_of(run), cumulative=is_own)

    def _span(self, series: list[Series]) -> tuple[int | None, int | None, float | None]:
        """Return start, end and length of what the channels tell of."""
        if self._window is not None:
            first_us, last_us = self._window.start_us, self._window.end_us
        else:
            first_us, last_us = min(s.first_us for s in series), max(s.last_us for s in series)
        if not math.isfinite(first_us) or not math.isfinite(last_us):
            covered = [s.covered_s for s in series if s.covered_s is not None]
            return None, None, max(covered, default=None)
        # Where a clock was set back, more time passed than lies between first and last.
        spans = [
            s.covered_s + s.uncovered_s
            for s in series
            if s.covered_s is not None and s.uncovered_s is not None
        ]
        duration_s = max([(last_us - first_us) / US_PER_S, *spans])
        if any(s.is_relative for s in series):
            return None, None, duration_s
        return round(first_us), round(last_us), duration_s

    def _say_gaps(self, host: str | None, series: list[Series]) -> None:
        """Say what a reader of the energy must know of its times."""
        file, of_host = self._group.main.shown, "" if host is None else f" of {host}"
        if any(not s.has_times for s in series):
            text = f"samples{of_host} have no times: there is a mean power, and no energy"
            self._say(_warning("CL244", text, file, "give --interval with the seconds between samples"))
        elif any(s.is_relative for s in series) and self._options.start_us is None:
            text = f"when the samples{of_host} were taken is not told: the energy is in no hour"
            self._say(_warning("CL245", text, file, "give --start with the time of the first sample"))
        spans = [(s.channel.name, s.last_us - s.first_us) for s in series if math.isfinite(s.first_us)]
        longest = max((span for _, span in spans), default=0.0)
        short = [name for name, span in spans if span < (1 - _SMALL_SHARE) * longest]
        if short:
            text = f"{', '.join(short)} tell{'s' if len(short) == 1 else ''} of less time than the others"
            self._say(_warning("CL246", text, file, "log all of them over the whole run"))


def measured(series: Sequence[Series]) -> Measured:
    """Return what the counted channels of one host hold.

    A second is covered when each channel tells of it, as of a run's readings: the covered seconds
    are those of the channel that tells least, and the other ones make up the longest span.
    """
    means = [s.mean_w for s in series]
    known = [m for m in means if m is not None]
    covered_s = min((s.covered_s for s in series if s.covered_s is not None), default=None)
    span_s = max((s.span_s for s in series if s.span_s is not None), default=None)
    is_told = covered_s is not None and span_s is not None
    return Measured(
        samples=max((s.samples for s in series), default=0),
        mean_power_w=math.fsum(known) if known and len(known) == len(means) else None,
        covered_s=covered_s,
        uncovered_s=max((span_s or 0.0) - (covered_s or 0.0), 0.0) if is_told else None,
        samples_sha256=sha256_of((f"{s.channel.device} {s.channel.name}", s.digest) for s in series),
        changes=max((s.digest.shape.changes for s in series), default=0),
        gaps_us=_gaps_of(series),
    )


def _gaps_of(series: Sequence[Series]) -> dict[str, tuple[tuple[float, float], ...]]:
    """Return the gaps of each device that has one channel; an energy tells of the time before it."""
    channels = Counter(s.channel.device or s.channel.name for s in series)
    found = {s.channel.device or s.channel.name: (s.channel.kind, s.digest.shape.gaps_us) for s in series}
    return {
        device: () if kind in {"counter", "delta"} else gaps
        for device, (kind, gaps) in found.items()
        if gaps is not None and channels[device] == 1
    }


def _by_hour(series: list[Series], readings: tuple[Reading, ...]) -> tuple[HourEnergy, ...]:
    """Return the hours that each component's energy fell into; none where one is unknown."""
    sums: dict[str, dict[int, float]] = {}
    whole: dict[str, Decimal] = {}
    for one, told in zip(series, readings, strict=True):
        if told.energy_j is None or one.is_relative or not one.hours_j:
            return ()
        of = sums.setdefault(told.component, {})
        for hour, joules in one.hours_j.items():
            of[hour] = of.get(hour, 0.0) + joules
        whole[told.component] = whole.get(told.component, Decimal(0)) + told.energy_j
    return tuple(row for name, of in sums.items() for row in hours.rows(name, of, whole[name]))


def _sum_of(run: Run) -> Decimal | None:
    parts = [r.energy_j for r in run.energy]
    known = [p for p in parts if p is not None]
    return sum(known, Decimal(0)) if known and len(known) == len(parts) else None


def _warning(code: str, text: str, file: str, mend: str) -> Finding:
    return Finding(code=code, severity="warning", message=text, file=file, mend=mend)


def _and_more(code: str, count: int, found: list[Finding]) -> Finding:
    last = next(f for f in reversed(found) if f.code == code)
    text = f"{counted(count, 'more place')} like those of {code}: the first {MOST_ALIKE} are listed"
    return msgspec.structs.replace(last, message=text, line=None)
