"""ONNX Runtime's profile: the time of each operator, and which execution provider ran it.

With ``enable_profiling`` ONNX Runtime writes one JSON object an event and a line
(``onnxruntime/core/common/profiler.cc``). An event of category ``Node`` whose name ends in
``_kernel_time`` is one call of one node; ``ts`` and ``dur`` are whole microseconds, rounded
down. Releases differ: older ones write ``_fence_before`` and ``_fence_after`` events beside it,
some write events in the order of their ends and others of their starts. An operator with
subgraphs (If, Loop, Scan) holds the time of the nodes in them, which is taken out of it here.

A profile holds no energy: ``import`` shows its times, ``read_profile`` gives them whole.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.decoding import convert, json_decoder
from carbonlens.domain.execution import ProviderTime
from carbonlens.errors import InputFileError
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Facts, Group, Item, Kind, Options, ProfileRecord, Tally
from carbonlens.importers.contract import OperatorTime as Times
from carbonlens.importers.ort_events import Event, EventTable
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source

MOST_BYTES: Final = 2 * 1024**3
"""Largest profile that is read: ONNX Runtime's own limit of a million events is about half of it."""

MOST_EVENTS: Final = 1_000_000
"""As many events ONNX Runtime records by default; it drops what comes later without a word in the file."""

_WHOLE_BYTES: Final = 64 * 1024**2
_LONGEST_LINE: Final = 4 * 1024**2
_US: Final = 1_000_000
_MEND: Final = "give the JSON file that ONNX Runtime writes with enable_profiling"
_FUSED: Final = re.compile(r"^TRTKernel|subgraph|ExecutionProvider", re.IGNORECASE)
_FRAME: Final = re.compile(r'\{\s*"traceEvents"\s*:|\}')
_LONGEST_FRAME: Final = 40
_NUMBERS: Final = re.compile(r"(_\d+)+$")


class OperatorTime(msgspec.Struct, frozen=True, kw_only=True):
    """All calls of one kind of operator on one provider.

    Attributes:
        provider: Execution provider; ``not told`` where the profile names none.
        operator: Kind of operator, such as ``Conv``; of a fused part, what the provider calls it.
        fused: Whether it is a part of the graph that the provider compiled into one node.
        nodes: Nodes of this kind.
        calls: Calls of them.
        time_s: Seconds in them, without the nodes of their subgraphs.
    """

    provider: str
    operator: str
    fused: bool
    nodes: int
    calls: int
    time_s: float


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """What a profile says.

    Attributes:
        operators: The longest first.
        sessions: Sessions in the file.
        runs: Calls of the sessions, warm-up left out.
        warm_up_runs: Calls that were left out on request.
        events: Events of all kinds.
        unread: Events that could not be used: torn, or without a time.
        complete: False for a file that ends in the middle.
        device_s: Seconds of kernels on a GPU, where the build of ONNX Runtime records
            them; they are in no operator, whose times are the host's.
    """

    operators: tuple[OperatorTime, ...]
    sessions: int
    runs: int
    warm_up_runs: int
    events: int
    unread: int
    complete: bool
    device_s: float | None = None

    @property
    def is_capped(self) -> bool:
        """Whether ONNX Runtime's default limit of events was reached: what came later is missing."""
        return self.events >= MOST_EVENTS * self.sessions > 0

    @property
    def time_s(self) -> float:
        """Seconds in all kernels."""
        return math.fsum(o.time_s for o in self.operators)

    @property
    def providers(self) -> tuple[ProviderTime, ...]:
        """Time by provider, the longest first.

        A share is ``None`` where all kernels took less than the clock tells, the number of
        nodes where some were fused into one.
        """
        total = self.time_s
        by_name: dict[str, list[OperatorTime]] = {}
        for operator in self.operators:
            by_name.setdefault(operator.provider, []).append(operator)
        times = [
            ProviderTime(
                provider=name,
                nodes=None if any(o.fused for o in mine) else sum(o.nodes for o in mine),
                time_s=(seconds := math.fsum(o.time_s for o in mine)),
                share=seconds / total if total > 0 else None,
            )
            for name, mine in by_name.items()
        ]
        return tuple(sorted(times, key=lambda t: (-(t.time_s or 0.0), t.provider)))


def read_profile(path: str | Path, *, warm_up: int = 0, most_bytes: int = MOST_BYTES) -> Profile:
    """Read a profile that ONNX Runtime wrote.

    Args:
        path: The file; it is read line by line, in bounded memory.
        warm_up: First calls of each session to leave out.
        most_bytes: A larger file is refused.

    Raises:
        InputFileError: If it cannot be read, is no such profile, is too large, or has no
            more calls than are to be left out.
    """
    file = Path(path)
    try:
        size = file.stat().st_size
        if size > most_bytes:
            raise InputFileError(
                f"is too large ({size / 1e6:.0f} MB, at most {most_bytes / 1e6:.0f} MB are read)",
                where=file.name,
                mend="profile fewer calls, or raise most_bytes",
            )
        with file.open("r", encoding="utf-8", errors="replace") as stream:
            table = _table(_lines(stream), file.name)
            if table is None:
                stream.seek(0)
                table = _whole(_all_of(stream, size, file.name), file.name)
    except OSError as error:
        raise InputFileError(
            f"cannot be read ({error.strerror or error})", where=file.name, mend="check the path"
        ) from error
    return _profile(table, warm_up, file.name)


def parse_profile(text: str, *, warm_up: int = 0, name: str = "profile") -> Profile:
    """Return what the text of a profile says.

    Args:
        text: Content of the file.
        warm_up: First calls of each session to leave out.
        name: What errors call it.

    Raises:
        InputFileError: As for ``read_profile``.
    """
    import io

    return _profile(_table(_lines(io.StringIO(text)), name) or _whole(text, name), warm_up, name)


class OrtProfileImporter:
    """Shows the times of a profile."""

    name = "onnxruntime-profile"
    version = 2
    kind: Kind = "profile"
    rank = USUAL
    facts = Facts(
        title="ONNX Runtime profile (JSON)",
        reads="what enable_profiling writes; also several sessions in one file, and traceEvents",
        units="whole microseconds, rounded down",
        grade="none: it holds times and no energy",
        traps=(
            "an operator with subgraphs holds the time of the nodes in them, which is taken out",
            "ONNX Runtime stops recording at a million events, and does not say so: it is said here",
            "the first call of a session is in the times: it is slower than those after it",
        ),
        tested_on=("profiles that ONNX Runtime wrote here", "other providers: samples written by hand"),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Claim texts whose first events are those of ONNX Runtime."""
        return each(sources, lambda source: is_profile("\n".join(source.head_lines())))

    def read(self, group: Group, options: Options) -> Iterator[Item]:  # noqa: ARG002  # a profile has no options
        """Yield the profile.

        Raises:
            InputFileError: If it is none after all.
        """
        source = group.main
        lines = (part for _, text in source.lines() for part in _parted(f"{text}\n"))
        table = _table(lines, source.shown)
        if table is None:
            table = _whole(_joined(source), source.shown)
        profile = _profile(table, 0, source.shown)
        yield _record(profile)
        if profile.unread:
            text = f"{counted(profile.unread, 'event')} cannot be read and are left out"
            yield finding("CL276", "warning", text, source, mend="profile again")
        if not profile.complete:
            text = "the profile ends in the middle: events after that are missing"
            yield finding(
                "CL277", "warning", text, source, mend="end the session's profiling, or copy it again"
            )
        if profile.is_capped:
            text = f"the profile reached {MOST_EVENTS} events a session: what came later was not recorded"
            yield finding("CL277", "warning", text, source, mend="profile fewer calls")
        if profile.sessions > 1:
            text = f"holds {counted(profile.sessions, 'session')}: times are of all of them"
            yield finding("CL275", "warning", text, source, mend="give each its own file")
        yield Tally(rows=profile.events)


IMPORTER: Final = OrtProfileImporter()


def is_profile(head: str) -> bool:
    """Tell whether text, given its begin, is a profile of ONNX Runtime."""
    text = head.lstrip("\ufeff \r\n\t")
    if not text.startswith(("[", "{")):
        return False
    events = '"model_loading' in text or '"session_initialization"' in text or '_kernel_time"' in text
    return events and '"cat"' in text and '"dur"' in text


def _record(profile: Profile) -> ProfileRecord:
    return ProfileRecord(
        operators=tuple(
            Times(provider=o.provider, operator=o.operator, calls=o.calls, time_s=o.time_s)
            for o in profile.operators
        ),
        events=profile.events,
        facts={"sessions": profile.sessions, "inferences": profile.runs, "device_s": profile.device_s},
    )


def _joined(source: Source) -> str:
    """Return the text of a source that is small enough to be held.

    Raises:
        InputFileError: If it is too large.
    """
    parts, size = [], 0
    for _, text in source.lines():
        size += len(text) + 1
        if size > _WHOLE_BYTES:
            raise _too_large(size, source.shown)
        parts.append(text)
    return "\n".join(parts)


def _table(lines: Iterable[str], name: str) -> EventTable | None:
    """Return the events of a profile of one event a line; ``None`` where it may be another layout."""
    table = EventTable()
    decoder = json_decoder(Event)
    for line in lines:
        text = line.strip("[], \r\n\t\ufeff")
        if line.startswith("["):
            table.next_session()
        elif line.isspace():
            continue
        is_frame = not text or (len(text) < _LONGEST_FRAME and _FRAME.fullmatch(text) is not None)
        event = None if is_frame else _event(decoder, text)
        if not is_frame:
            table.take(event)
        # A torn event can end with a bracket of its own.
        table.is_closed = (is_frame or event is not None) and "]" in line[-4:]
    if table.kernels == 0 and table.sessions == 0:
        return None
    if not table.sessions:
        raise _no_profile(name)
    return table


def _lines(stream: IO[str]) -> Iterator[str]:
    """Yield lines that can hold an event; one too long for that ends it, as it is another layout."""
    while line := stream.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE:
            return
        yield from _parted(line)


def _parted(line: str) -> Iterator[str]:
    """Part a line where files of several sessions were joined without a line break between them."""
    if line.startswith("]["):
        yield "]"
        yield line[1:]
    else:
        yield line


def _event(decoder: msgspec.json.Decoder[Event], text: str) -> Event | None:
    """Return an event of one line; ``None`` for one that is torn or no event."""
    try:
        return decoder.decode(text)
    except msgspec.DecodeError:
        pass
    try:
        # Python's own reader takes NaN, which is no JSON and stands for no time.
        return _of_value(json.loads(text))
    except (ValueError, RecursionError):
        return None


def _of_value(value: object) -> Event | None:
    if not isinstance(value, dict):
        return None
    clean = {k: v for k, v in value.items() if not (isinstance(v, float) and not math.isfinite(v))}
    try:
        return convert(clean, Event)
    except msgspec.ValidationError:
        return None


def _all_of(stream: IO[str], size: int, name: str) -> str:
    if size > _WHOLE_BYTES:
        raise _too_large(size, name)
    return stream.read()


def _too_large(size: int, name: str) -> InputFileError:
    return InputFileError(
        f"is not written one event a line, and too large to be read otherwise ({size / 1e6:.0f} MB)",
        where=name,
        mend=_MEND,
    )


def _no_profile(name: str) -> InputFileError:
    return InputFileError("is no profile of ONNX Runtime", where=name, mend=_MEND)


def _whole(text: str, name: str) -> EventTable:
    """Read a profile that another program wrote anew: on one line, indented, or as ``traceEvents``."""
    try:
        value: Any = json.loads(text.lstrip("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise _no_profile(name) from error
    events = value.get("traceEvents") if isinstance(value, dict) else value
    table = EventTable()
    for event in events if isinstance(events, list) else ():
        table.take(_of_value(event))
    table.is_closed = True
    if not table.sessions:
        raise _no_profile(name)
    return table


def _profile(table: EventTable, warm_up: int, name: str) -> Profile:
    runs, left_out = table.runs(warm_up)
    if warm_up and not runs:
        raise InputFileError(
            f"has no call beside the {left_out} that are left out as warm-up",
            where=name,
            mend="profile more calls, or leave out fewer",
        )
    grouped: dict[tuple[str, str, bool], list[tuple[int, int, int]]] = {}
    for key, calls, own_us in table.times(warm_up):
        named = _named(*key[1:3])
        grouped.setdefault(named, []).append((1, calls, own_us))
    operators = (
        _operator(provider, operator, fused, parts) for (provider, operator, fused), parts in grouped.items()
    )
    return Profile(
        operators=tuple(sorted(operators, key=lambda o: (-o.time_s, o.provider, o.operator))),
        sessions=table.sessions,
        runs=runs,
        warm_up_runs=left_out,
        events=table.events,
        unread=table.unread,
        complete=table.is_closed,
        device_s=None if table.device_us is None else table.device_us / _US,
    )


def _operator(
    provider: str, operator: str, fused: bool, parts: Iterable[tuple[int, int, int]]
) -> OperatorTime:
    nodes, calls, own_us = (sum(column) for column in zip(*parts, strict=True))
    return OperatorTime(
        provider=provider, operator=operator, fused=fused, nodes=nodes, calls=calls, time_s=own_us / _US
    )


def _named(provider: str | None, operator: str | None) -> tuple[str, str, bool]:
    """Return provider, operator and whether it is fused; numbers that only count parts are left out."""
    kind = operator or "not told"
    fused = _FUSED.search(kind) is not None
    return provider or "not told", (_NUMBERS.sub("", kind) or kind) if fused else kind, fused
