"""Files of an MLPerf power measurement: which of them belong to one session, by what they hold.

The power log marks each sample with its session and phase; the session files of the two sides
name the session and when its phases began, by UTC; a log of the load generator tells when it
started, in UTC too. Folders decide only where several would fit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from carbonlens.domain.decoding import decode_json
from carbonlens.errors import InputFileError
from carbonlens.importers.contract import Group
from carbonlens.importers.file_sets import folder_of
from carbonlens.importers.sources import Source

TESTING: Final = "testing"
STAMP: Final = "%m-%d-%Y %H:%M:%S.%f"

_MARK: Final = re.compile(r"^(?:Analyzer\d+,)?Time,\d\d-\d\d-\d{4} [\d:.]+,.*\bMark,([^,\s]+)")
_SESSION: Final = re.compile(r"^(.*)_(ranging|testing)$")
_GO: Final = re.compile(r"Go with mark '(.*)_(?:ranging|testing)'")
_STARTED: Final = re.compile(r'"test_datetime", "value": "([^"]+)"')
_LOG: Final = ":::MLLOG {"
_MOST_SETUP_S: Final = 6 * 3600.0
_EARLY_S: Final = 60.0


class Session(msgspec.Struct, frozen=True):
    """What one side of a session writes down.

    Attributes:
        timezone: Seconds that its local time is behind UTC, summer time left out.
        phases: By phase: when each part began, as seconds since 1970 and of a monotonic clock.
        ptd_messages: The talk with the power daemon, of the server's side only.
    """

    session_name: str
    timezone: float
    phases: dict[str, list[tuple[float, float]]]
    ptd_messages: list[dict[str, str]] | None = None

    def phase_us(self, name: str) -> tuple[float, float] | None:
        """Return when the work of a phase began and ended, in UTC microseconds."""
        parts = self.phases.get(name, [])
        return (parts[1][0] * 1e6, parts[2][0] * 1e6) if len(parts) >= 3 else None


class Meter(msgspec.Struct, frozen=True):
    """A log of power.

    Attributes:
        session: Of its samples; ``None`` where they bear no mark of one.
        phase: ``ranging`` or ``testing``.
        first: Time of the first sample, without a zone.
    """

    source: Source
    session: str | None
    phase: str
    first: datetime


def session_of(source: Source) -> Session | None:
    """Return the session a source tells of; ``None`` where it is no session file."""
    start = source.start.lstrip(b"\xef\xbb\xbf\xff\xfe \r\n\t\0")
    if not start.startswith(b"{") or "mlcommons/power" not in "".join(source.head_lines()):
        return None
    try:
        return decode_json(source.text(), Session)
    except (msgspec.DecodeError, RecursionError, InputFileError):
        return None


def meter_of(source: Source) -> Meter | None:
    """Return what log of power a source is; ``None`` where it is none."""
    for line in source.first_lines[:3]:
        found = _MARK.match(line)
        if found is None:
            continue
        session = _SESSION.match(found[1])
        cells = line.split(",")
        try:
            first = datetime.strptime(cells[cells.index("Time") + 1], STAMP)  # noqa: DTZ007  # the log has no zone
        except (ValueError, IndexError):
            return None
        if session is None:
            return Meter(source, None, TESTING, first)
        return Meter(source, session[1], session[2], first)
    return None


def is_detail(source: Source) -> bool:
    """Whether a source is a load generator's log."""
    return any(line.startswith(_LOG) and "loadgen_version" in line for line in source.first_lines[:3])


def is_summary(source: Source) -> bool:
    """Whether a source is a load generator's summary."""
    return any(line.startswith("MLPerf Results Summary") for line in source.first_lines[:3])


def started(detail: Source) -> datetime | None:
    """Return when a load generator's log was begun, in UTC."""
    for line in detail.head_lines():
        found = _STARTED.search(line)
        if found:
            try:
                moment = datetime.fromisoformat(found[1])
            except ValueError:
                return None
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None


def daemon_session(source: Source) -> str | None:
    """Return the session that a power daemon's own log names."""
    if not any("PTDaemon" in line for line in source.first_lines[:12]):
        return None
    found = (_GO.search(line) for line in source.head_lines())
    return next((match[1] for match in found if match), None)


def groups(sources: Sequence[Source]) -> list[Group]:
    """Return a group a testing run: its power log first, then all that tells of it."""
    details = [s for s in sources if is_detail(s)]
    if not details:
        return []
    meters, copies = _meters(sources)
    sessions = [(s, told) for s in sources if (told := session_of(s)) is not None]
    daemons = [(s, name) for s in sources if (name := daemon_session(s)) is not None]
    by_meter: dict[int, list[Source]] = {id(m): [] for m in meters}
    alone: list[Source] = []
    for detail in details:
        meter = _meter_for(detail, meters, [told for _, told in sessions])
        (alone if meter is None else by_meter[id(meter)]).append(detail)
    used = [m for m in meters if by_meter[id(m)]]
    for meter in used:
        nearest = sorted(by_meter[id(meter)], key=partial(_apart_s, meter))
        by_meter[id(meter)] = [*nearest, *copies.get(id(meter), [])]
    testing = [m for m in used if m.phase == TESTING]
    found = [_group(m, used, by_meter, sessions, daemons) for m in testing]
    found += [
        Group((m.source, *by_meter[id(m)]))
        for m in used
        if m.phase != TESTING and not any(_same(m, t) for t in testing)
    ]
    found += [Group((detail,)) for detail in alone]
    return _with_summaries(found, [s for s in sources if is_summary(s)])


def _meters(sources: Sequence[Source]) -> tuple[list[Meter], dict[int, list[Source]]]:
    """Return the power logs, and the copies of each: a copy is no second measurement."""
    first: dict[str, Meter] = {}
    copies: dict[int, list[Source]] = {}
    for meter in filter(None, map(meter_of, sources)):
        kept = first.setdefault(meter.source.sha256, meter)
        if kept is not meter:
            copies.setdefault(id(kept), []).append(meter.source)
    return list(first.values()), copies


def _apart_s(meter: Meter, detail: Source) -> float:
    """Return the seconds between the start of a load generator's log and that of a power log."""
    moment = started(detail)
    if moment is None:
        return _MOST_SETUP_S
    return abs((moment.replace(tzinfo=None) - meter.first) / timedelta(seconds=1))


def _group(
    meter: Meter,
    used: Sequence[Meter],
    by_meter: dict[int, list[Source]],
    sessions: Sequence[tuple[Source, Session]],
    daemons: Sequence[tuple[Source, str]],
) -> Group:
    parts = [meter.source, *by_meter[id(meter)]]
    for other in used:
        if other is not meter and other.phase != TESTING and _same(other, meter):
            parts += [other.source, *by_meter[id(other)]]
    parts += [s for s, told in sessions if told.session_name == meter.session]
    parts += [s for s, name in daemons if name == meter.session]
    return Group(tuple(parts))


def _same(one: Meter, other: Meter) -> bool:
    return one.session is not None and one.session == other.session


def _meter_for(detail: Source, meters: Sequence[Meter], sessions: Sequence[Session]) -> Meter | None:
    """Return the power log that ran while a load generator's did."""
    moment = started(detail)
    if moment is None:
        return meters[0] if len(meters) == 1 else None
    us = moment.timestamp() * 1e6
    fits: list[tuple[bool, float, int]] = []
    for place, meter in enumerate(meters):
        wait_s = (moment.replace(tzinfo=None) - meter.first) / timedelta(seconds=1)
        told = [s.phase_us(meter.phase) for s in sessions if s.session_name == meter.session]
        known = [phase for phase in told if phase is not None]
        if known:
            if any(begin - _EARLY_S * 1e6 <= us <= end for begin, end in known):
                fits.append((folder_of(meter.source) != folder_of(detail), 0.0, place))
        elif -_EARLY_S <= wait_s <= _MOST_SETUP_S:
            fits.append((folder_of(meter.source) != folder_of(detail), abs(wait_s), place))
    if fits:
        return meters[min(fits)[2]]
    # Clocks without a zone may be hours apart; of one log each there is no doubt.
    return meters[0] if len(meters) == 1 else None


def _with_summaries(found: list[Group], summaries: Sequence[Source]) -> list[Group]:
    """Add each summary to the group in whose folder it lies, or to the only one."""
    made = []
    for group in found:
        folders = {folder_of(s) for s in group.sources}
        mine = [s for s in summaries if len(found) == 1 or folder_of(s) in folders]
        made.append(Group((*group.sources, *mine)))
    return made


def of_kind(group: Group) -> Iterator[tuple[str, Source]]:
    """Yield what each source of a group is, and the source."""
    for source in group.sources:
        meter = meter_of(source)
        if meter is not None:
            yield meter.phase, source
        elif is_detail(source):
            yield "detail", source
        elif is_summary(source):
            yield "summary", source
        elif daemon_session(source) is not None:
            yield "daemon", source
        else:
            yield "session", source
