"""MLPerf Power: the wall meter's log of a testing run, within the load generator's marks.

Only samples between ``power_begin`` and ``power_end`` count. The ranging run before it sets the
meter's ranges and is no measurement.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.decoding import decode_json
from carbonlens.errors import InputFileError
from carbonlens.importers.contract import (
    SPECIFIC,
    Channel,
    Chunk,
    Facts,
    Group,
    Item,
    Kind,
    Named,
    Options,
    Tally,
    Window,
)
from carbonlens.importers.mlperf_files import STAMP, TESTING, Session, groups, of_kind, session_of
from carbonlens.importers.once import Once
from carbonlens.importers.ptd_line import parse
from carbonlens.importers.ptdaemon import CHECK_WATTS
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source
from carbonlens.importers.times import Clock
from carbonlens.importers.unit_checks import LEAST_METER_W

if TYPE_CHECKING:
    from carbonlens.importers.contract import Array

_PREFIX: Final = ":::MLLOG "
_KEYS: Final = frozenset(
    {
        *("power_begin", "power_end", "sut_name", "effective_scenario", "effective_test_mode"),
        *("result_validity", "result_query_count", "generated_query_count", "generated_samples_per_query"),
    }
)
_KEY: Final = re.compile(r'"key": "(\w+)"')
_UNSURE: Final = re.compile(r"^(\S+ [\d:.]+): .*(?:Uncertainty|uncertainty)")
_HOUR_US: Final = 3600.0 * 1e6
_SLACK_US: Final = 60.0 * 1e6
_MOST_BEHIND_S: Final = 15 * 3600.0
_MOST_UNCERTAINTY: Final = 0.01
"""Above which the power daemon warns, of each sample."""

_BATCH: Final = 65_536


class _Entry(msgspec.Struct, frozen=True):
    key: str
    value: Any


class MlperfPowerImporter:
    """Importer of MLPerf Power sessions."""

    name = "mlperf-power"
    version = 1
    kind: Kind = "trace"
    rank = SPECIFIC
    facts = Facts(
        title="MLPerf Power: spl.txt, mlperf_log_detail.txt and the files of the session",
        reads="power-dev sessions of MLPerf Inference: one run a testing phase",
        units="W, means of a second; local times in spl.txt, UTC in the load generator's log",
        grade="A (external meter, at the wall); +-1 % where the daemon checked each sample, by its log",
        traps=(
            "samples outside power_begin and power_end are not counted, nor is the ranging run",
            "without one of the marks the energy is refused, not taken from the whole file",
            "the zone of spl.txt stands in server.json, without summer time: the phases settle it",
            "several meters (Analyzer1) or channels (Ch1) of one box are added up",
            "a watt reading of -1, nan or ERROR failed: it is unknown, not zero",
            "Watts are held against Volts x Amps x PF where those are told",
            "a session that the load generator calls INVALID is kept, and said",
        ),
        tested_on=("one session of MLPerf Inference 3.0 (Orin, WT310E)", "samples typed here"),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Claim load generators' logs, with the power logs and session files that belong to them."""
        return groups(sources)

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield the testing window's samples.

        Raises:
            InputFileError: If there is no power log, no testing run or no mark.
        """
        yield from _Reading(group, options).items()


IMPORTER: Final = MlperfPowerImporter()


class _Reading:
    def __init__(self, group: Group, options: Options) -> None:
        self._options = options
        parts = list(of_kind(group))
        self._meters = {phase: s for phase, s in reversed(parts) if phase in {TESTING, "ranging"}}
        if not self._meters:
            raise InputFileError(
                "is a load generator's log without the log of a power meter: there is no energy",
                where=group.main.shown,
                mend="import it together with its spl.txt",
            )
        if TESTING not in self._meters:
            raise InputFileError(
                "is of a ranging run, which sets the meter and measures nothing",
                where=group.main.shown,
                mend="import spl.txt and mlperf_log_detail.txt of the testing run (run_1)",
            )
        self._meter = self._meters[TESTING]
        self._detail = next(s for kind, s in parts if kind == "detail")
        self._daemons = [s for kind, s in parts if kind == "daemon"]
        told = [session_of(s) for kind, s in parts if kind == "session"]
        self._sessions = [s for s in told if s is not None]
        self._server = next((s for s in self._sessions if s.ptd_messages is not None), None)
        self._client = next((s for s in self._sessions if s.ptd_messages is None), None)

    def items(self) -> Iterator[Item]:
        """Yield the window, the samples and what was found."""
        told = _told_by(self._detail)
        window = self._window(told)
        yield window
        yield _named(told, self._server, f"{IMPORTER.name}-{self._meter.sha256[:24]}")
        gain_95 = yield from self._uncertainty(window)
        channels: dict[str, Channel] = {}
        clock = Clock(self._options.tz, self._meter)
        samples = _Samples(self._meter, clock, self._zone(), window)
        for meter, t_us, watts, line in samples.batches():
            if meter not in channels:
                channels[meter] = _channel(meter, gain_95)
                yield channels[meter]
            yield Chunk(channel=channels[meter], t_us=t_us, values=watts, line=line)
        yield from samples.findings
        yield from samples.once.findings()
        yield from clock.findings
        yield from self._left_out(samples)
        validity = told.get("result_validity")
        if validity not in {"VALID", None}:
            text = f"the load generator calls the run {validity}"
            mend = "see mlperf_log_summary.txt for the rule that it breaks"
            yield finding("CL280", "warning", text, self._detail, mend=mend)
        yield Tally(rows=samples.rows, rejected=samples.rejected)

    def _window(self, told: dict[str, Any]) -> Window:
        """Return what the marks enclose.

        Raises:
            InputFileError: If one is missing or is no time, or they do not enclose any.
        """
        ends = []
        for mark in ("power_begin", "power_end"):
            try:
                moment = datetime.strptime(str(told[mark]), STAMP)  # noqa: DTZ007  # the log has no zone
            except (KeyError, ValueError):
                raise InputFileError(
                    f"has no {mark} mark in {self._detail.name}: which samples count is not known",
                    where=self._detail.shown,
                    mend="copy the load generator's whole log",
                ) from None
            ends.append(moment.replace(tzinfo=UTC).timestamp() * 1e6)
        start_us, end_us = ends
        if end_us <= start_us:
            raise InputFileError(
                f"has no time between power_begin and power_end in {self._detail.name}",
                where=self._detail.shown,
                mend="copy the load generator's whole log",
            )
        shift_us = 0.0
        if self._client is not None:
            zone_us = self._client.timezone * 1e6
            shift_us = _shift(start_us, self._client.phase_us(TESTING), (0.0, zone_us, zone_us - _HOUR_US))
        return Window(start_us=start_us + shift_us, end_us=end_us + shift_us, why="power_begin to power_end")

    def _zone(self) -> timezone | None:
        """Return the zone of the power log, by the server's word and the times of its phases."""
        if self._server is None or not abs(self._server.timezone) <= _MOST_BEHIND_S:
            return None
        behind_us = self._server.timezone * 1e6
        phase = self._server.phase_us(TESTING)
        first = _first_stamp(self._meter)
        if first is not None:
            plain_us = first.replace(tzinfo=UTC).timestamp() * 1e6
            behind_us += _shift(plain_us + behind_us, phase, (0.0, -_HOUR_US, _HOUR_US))
        return timezone(-timedelta(microseconds=behind_us))

    def _uncertainty(self, window: Window) -> Generator[Item, None, float | None]:
        """Yield what the daemon says of its meter; return its relative 95 % width if it checked."""
        zone = self._zone() or UTC
        for source in self._daemons:
            active, unsure, first_line = False, 0, 0
            for line, text in source.lines():
                active = active or "Uncertainty checking for" in text
                found = _UNSURE.match(text)
                if found and "WARNING" in text and _is_within(found[1], zone, window):
                    unsure += 1
                    first_line = first_line or line
            if unsure:
                told = counted(unsure, "sample")
                text = f"the meter's uncertainty is unknown or above 1 % for {told} of the testing window"
                mend = "set the meter's ranges by a ranging run"
                yield finding("CL281", "warning", text, source, line=first_line, mend=mend)
            elif active:
                return _MOST_UNCERTAINTY
        return None

    def _left_out(self, samples: _Samples) -> Iterator[Item]:
        if not samples.inside:
            raise InputFileError(
                "has no sample between power_begin and power_end",
                where=self._meter.shown,
                mend="import server.json too, which tells the zone of its times, or give --tz",
            )
        if samples.outside:
            told = f"{samples.outside} of {counted(samples.rows, 'sample')}"
            text = f"{told} lie outside power_begin and power_end and are not counted"
            yield finding("CL262", "info", text, self._meter)
        if "ranging" in self._meters:
            text = "the ranging run sets the meter's ranges and is not counted"
            yield finding("CL262", "info", text, self._meters["ranging"])


class _Samples:
    """Samples of a power log, with how many of them count."""

    def __init__(self, source: Source, clock: Clock, zone: timezone | None, window: Window) -> None:
        self.rows = self.rejected = self.inside = self.outside = 0
        self.findings: list[Item] = []
        self.once = Once(source)
        self._source = source
        self._clock = clock
        self._zone = zone
        self._window = window

    def batches(self) -> Iterator[tuple[str, Array, Array, int]]:
        """Yield meter, times, watts and the first line, batch by batch."""
        waiting: dict[str, list[tuple[float, float, int]]] = {}
        for line, text in self._source.lines():
            row = self._row(line, text)
            if row is None:
                continue
            rows = waiting.setdefault(row[0], [])
            rows.append((row[1], row[2], line))
            if len(rows) >= _BATCH:
                yield _batch(row[0], rows)
                rows.clear()
        for meter, rows in waiting.items():
            if rows:
                yield _batch(meter, rows)

    def _row(self, line: int, text: str) -> tuple[str, float, float] | None:
        if not text.strip():
            return None
        self.rows += 1
        try:
            told = parse(text.strip())
            moment = told.stamp.replace(tzinfo=self._zone) if self._zone else told.stamp
            us = float(self._clock.us(moment, line))
        except ValueError as error:
            self.rejected += 1
            why = f"line {line} {error}; it is left out"
            self.findings.append(
                finding("CL202", "error", why, self._source, line=line, mend="copy the log again")
            )
            return None
        is_ranging = told.mark is not None and told.mark.endswith("ranging")
        if is_ranging or not self._window.start_us <= us <= self._window.end_us:
            self.outside += 1
            return None
        self.inside += 1
        wrong = told.whole.contradiction
        if wrong is not None:
            self.once.say("CL247", "warning", f"{wrong}; the Watts are kept", line, CHECK_WATTS)
        return told.meter or "wall", us, told.whole.watts


def _first_stamp(meter: Source) -> datetime | None:
    for _, text in meter.lines():
        try:
            return parse(text.strip()).stamp
        except ValueError:
            continue  # a torn line tells no time; the next one does
    return None


def _channel(name: str, gain_95: float | None) -> Channel:
    return Channel(
        name=name,
        component="wall",
        kind="average",
        boundary="it",
        grade="A",
        method="SPEC PTDaemon, mean watts",
        gain_95=gain_95,
        least_w=LEAST_METER_W if name == "wall" else 0.0,
    )


def _batch(meter: str, rows: list[tuple[float, float, int]]) -> tuple[str, Array, Array, int]:
    import numpy as np

    made = np.array(rows)
    return meter, made[:, 0], made[:, 1], rows[0][2]


def _told_by(detail: Source) -> dict[str, Any]:
    """Return what a load generator's log says under the keys that matter."""
    told: dict[str, Any] = {}
    for _, text in detail.lines():
        found = _KEY.search(text, 0, 120)
        if found is None or found[1] not in _KEYS or not text.startswith(_PREFIX):
            continue
        try:
            entry = decode_json(text.removeprefix(_PREFIX), _Entry)
        except (msgspec.DecodeError, RecursionError):
            continue  # a torn line tells nothing; what is missing is said where it matters
        told[entry.key] = entry.value
    return told


def _named(told: dict[str, Any], server: Session | None, run_id: str) -> Named:
    queries = told.get("result_query_count", told.get("generated_query_count"))
    each = told.get("generated_samples_per_query")
    units = None
    if isinstance(queries, int) and isinstance(each, int) and queries > 0 and each > 0:
        units = Decimal(queries) * each
    tags = {
        "scenario": told.get("effective_scenario"),
        "mode": told.get("effective_test_mode"),
        "validity": told.get("result_validity"),
        "session": server.session_name if server else None,
        "meter": _meter_name(server),
    }
    return Named(
        run_id=run_id,
        workload=str(told["sut_name"]) if told.get("sut_name") else None,
        units=units,
        unit="sample" if units else None,
        tags={name: str(value) for name, value in tags.items() if value},
    )


def _meter_name(server: Session | None) -> str | None:
    for message in (server.ptd_messages or ()) if server else ():
        if message.get("cmd") == "Identify":
            return message.get("reply", "").partition(",")[0] or None
    return None


def _shift(us: float, phase: tuple[float, float] | None, shifts: Sequence[float]) -> float:
    """Return the shift that brings a time into a phase; the first where none does or none is known."""
    if phase is None:
        return shifts[0]
    begin, end = phase[0] - _SLACK_US, phase[1] + _SLACK_US
    return next((s for s in shifts if begin <= us + s <= end), shifts[0])


def _is_within(text: str, zone: timezone, window: Window) -> bool:
    try:
        moment = datetime.strptime(text, STAMP).replace(tzinfo=zone)
    except ValueError:
        return False
    return window.start_us <= moment.timestamp() * 1e6 <= window.end_us
