"""Sources of which something was imported before: the same content, a log that has grown, or its begin.

A log that is written on and imported again holds all that it held: the run of its longer content
takes the place of the one before. The hash of its first bytes tells that, not its name. An older
copy of a log that is in the ledger further on adds nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from carbonlens.app.importing_versions import Marks
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import ImportedAs, Origin, Run
from carbonlens.importers.contract import RunRecord
from carbonlens.importers.host_names import host_in, is_copy_by_name
from carbonlens.importers.source_hashes import FIRST_BYTES, Hashes
from carbonlens.importers.sources import Source

_MEND_HOST = "if they are of two machines, name the hosts: --host, or host in a [[place]] of --map"
_MEND_TIMES = "keep one of them: carbonlens runs supersede; let the log say when each sample was taken"

CUT_FROM = "counted from us"
"""Name of what is kept with a run of which a part is left out: where the part that counts begins."""

CUT_BESIDE = "counted beside"
"""Name of what is kept with it too: the ids of the runs that tell of that part. Older versions kept none."""


def _no_marks(record: RunRecord) -> Marks:
    del record
    return Marks()


class Again(msgspec.Struct, frozen=True, kw_only=True):
    """What an import is beside earlier ones.

    Attributes:
        held: Runs of a trace that count and whose place its runs take.
        grown: Whether the source tells more than they do.
        contents: Hashes of the content: runs of it in the ledger are told anew.
        imported: What is kept with each run.
        beside: Ids of whole runs that tell of a part of it, which is left out.
        said: What the user says now of how the source is read.
        marks: What the user says now of where a run belongs.
    """

    held: tuple[Run, ...] = ()
    grown: bool = False
    contents: frozenset[str] = frozenset()
    imported: ImportedAs | None = None
    beside: frozenset[str] = frozenset()
    said: Mapping[str, str] = msgspec.field(default_factory=dict)
    marks: Callable[[RunRecord], Marks] = _no_marks

    def partner(self, run: Run) -> Run | None:
        """Return the held run whose place a run of the source takes: that of its host."""
        near = [h for h in self.held if h.host_id == run.host_id]
        near = near or [h for h in self.held if h.host_id is None or run.host_id is None]
        return near[0] if len(near) == 1 else None

    def is_held_by(self, run: Run) -> bool:
        """Whether a run in the ledger tells of all that the source is counted in part beside."""
        return self.beside <= set(_cut_beside(imported_as(run)))

    def tells_of(self, run: Run) -> bool:
        """Whether a run in the ledger is of the content, and told anew."""
        return run.origin is not None and run.origin.source_sha256 in self.contents


class Before(msgspec.Struct, frozen=True, kw_only=True):
    """What was imported before of a source's content, or of its begin.

    Attributes:
        told: What was said of it then.
        runs: Runs of the same content that count.
        held: Of a trace those whose place its runs take.
        grown: Whether the source tells more than they do.
        further: Runs of longer contents that may have begun as this one.
        is_begin: Whether they did for sure: they took the place of its own.
        finding: What is to be said of it.
    """

    told: Mapping[str, str] = msgspec.field(default_factory=dict)
    runs: tuple[Run, ...] = ()
    held: tuple[Run, ...] = ()
    grown: bool = False
    further: tuple[Run, ...] = ()
    is_begin: bool = False
    finding: Finding | None = None

    def lacks(self, said: Mapping[str, str], marks: Marks) -> bool:
        """Whether something is said now that is not so in the runs of the same content.

        Args:
            said: Of how the source is read.
            marks: Of where its runs belong.
        """
        if any(self.told.get(option) != text for option, text in said.items()):
            return True
        is_marked = bool(marks.tags or marks.site or marks.zone or marks.told)
        return is_marked and not (self.runs and all(_bears(run, marks) for run in self.runs))


def _bears(run: Run, marks: Marks) -> bool:
    tags = all(run.tags.get(name) == value for name, value in marks.tags.items())
    is_there = marks.site in {None, run.site} and marks.zone in {None, run.zone}
    return tags and is_there and all(getattr(run, name) == value for name, value in marks.told.items())


class Contents:
    """The runs of a ledger and of an import, by the content that they come from."""

    def __init__(self) -> None:
        """Start with none."""
        self._by_sha256: dict[str, list[Run]] = defaultdict(list)
        self._by_begin: dict[tuple[str, str], list[Run]] = defaultdict(list)
        self._tables: dict[str, dict[str, Run]] = defaultdict(dict)
        self._cut: dict[str, list[Run]] = defaultdict(list)
        self._cut_of_old: list[Run] = []

    def add(self, run: Run) -> None:
        """Note a run."""
        origin, kept = run.origin, imported_as(run)
        # Before anything that may have been redacted is asked for.
        for run_id in _cut_beside(kept):
            self._cut[run_id].append(run)
        if kept is not None and CUT_FROM in kept.told and CUT_BESIDE not in kept.told:
            self._cut_of_old.append(run)
        if origin is None or not origin.source_sha256:
            return
        self._by_sha256[origin.source_sha256].append(run)
        if kept is None or kept.size_bytes is None:
            return
        if not kept.prefixes and kept.size_bytes >= FIRST_BYTES:
            self._tables[_instrument(origin)][origin.source_sha256] = run
        else:
            self._by_begin[_instrument(origin), "".join(kept.prefixes[:1])].append(run)

    def of(self, sha256: str) -> list[Run]:
        """Return the runs of a content."""
        return self._by_sha256.get(sha256, [])

    def cut_beside(self, run_id: str) -> list[Run]:
        """Return the runs of which a part was left out, for the run of an id tells of it."""
        return self._cut.get(run_id, [])

    def cut_of_old(self) -> list[Run]:
        """Return the runs of which a part is left out, and no ids are kept of those that tell of it."""
        return self._cut_of_old

    def near(self, instrument: str, hashes: Hashes) -> list[Run]:
        """Return the runs of an importer whose content may begin as another one does.

        Args:
            instrument: Name of the importer.
            hashes: Of the content.
        """
        begins = dict.fromkeys(("", *hashes.prefixes[:1]))
        return [run for begin in begins for run in self._by_begin.get((instrument, begin), ())]

    def tables(self, instrument: str) -> list[Run]:
        """Return a run of each table of an importer of which something was told."""
        return list(self._tables.get(instrument, {}).values())


def told_of(runs: Iterable[Run]) -> dict[str, str]:
    """Return what was said of the sources of runs, the last first."""
    found: dict[str, str] = {}
    for run in runs:
        kept = imported_as(run)
        found |= {} if kept is None else kept.told
    return found


def is_by(run: Run, instrument: str) -> bool:
    """Tell whether an importer of this name, of any version, made a run."""
    return run.origin is not None and _instrument(run.origin) == instrument


def _cut_beside(kept: ImportedAs | None) -> list[str]:
    return [] if kept is None else kept.told.get(CUT_BESIDE, "").splitlines()


def imported_as(run: Run) -> ImportedAs | None:
    """Return what an import kept with a run."""
    return None if run.origin is None else run.origin.imported_as


def kept_of(source: Source, told: Mapping[str, str], *, is_trace: bool) -> ImportedAs | None:
    """Return what is kept with the runs of a source; ``None`` where nothing is.

    Args:
        source: The source.
        told: What the user said of it.
        is_trace: Whether a longer content takes the place of this one; rows are known one by one.
    """
    hashes = source.hashes
    if is_trace:
        return ImportedAs(size_bytes=hashes.size_bytes, prefixes=hashes.prefixes, told=told)
    return ImportedAs(size_bytes=hashes.size_bytes, told=told) if told else None


def trace_before(source: Source, host: str | None, near: Sequence[Run]) -> Before:
    """Return what was imported before of a trace whose content is new.

    Args:
        source: The trace.
        host: Its machine, as the user says.
        near: Runs of its importer that count and may begin as it does.

    Raises:
        InputFileError: If the trace cannot be read.
    """
    mine = [run for run in near if _is_of(run, source, host)]
    held = _grown_from(source, mine)
    if not held:
        further = tuple(_further_on(source.hashes, mine))
        return Before(told=told_of(further), further=further)
    # Samples with their times do not happen twice. Without, two logs may begin alike: the name tells.
    if not all(run.start_us is not None or is_copy_by_name(source.name, _name(run)) for run in held):
        return Before(finding=_say_alike(source, held))
    return Before(told=told_of(held), held=tuple(held), grown=True, finding=_say_grown(source, held))


def same_before(runs: Sequence[Run], held: Sequence[Run], source: Source, *, is_trace: bool) -> Before:
    """Return what was imported before of a source whose content is in the ledger.

    Args:
        runs: The versions that count of the runs of its content.
        held: Those of a trace whose place its runs take.
        source: The source.
        is_trace: Whether a longer content takes the place of this one.
    """
    further = tuple(r for r in held if is_trace and _size(r) > source.hashes.size_bytes)
    return Before(
        told=told_of((further or runs)[-1:]),
        runs=tuple(runs),
        held=tuple(held),
        further=further,
        is_begin=bool(further),
    )


def table_before(source: Source, tables: Sequence[Run]) -> Before:
    """Return what was said of the rows that a table of runs begins with.

    Args:
        source: The table.
        tables: A run of each table of its importer of which something was told.

    Raises:
        InputFileError: If the table cannot be read.
    """
    return Before(told=told_of(_grown_from(source, tables)))


def _grown_from(source: Source, runs: Sequence[Run]) -> list[Run]:
    """Return the runs whose whole content a source begins with: of the longest of such contents."""
    hashes = source.hashes
    near = [run for run in runs if _may_begin(hashes, imported_as(run))]
    if not near:
        return []
    found = source.first_sha256({_size(run) for run in near})
    same = [run for run in near if found.get(_size(run)) == _origin(run).source_sha256]
    longest = max(map(_size, same), default=0)
    return [run for run in same if _size(run) == longest]


def _further_on(hashes: Hashes, runs: Sequence[Run]) -> list[Run]:
    """Return the runs of longer contents that share more than half of a content, from its begin on."""
    place = len(hashes.prefixes) - 1
    longer = [run for run in runs if _size(run) > hashes.size_bytes and place >= 0]
    return [run for run in longer if _prefixes(run)[place : place + 1] == hashes.prefixes[-1:]]


def is_begin(records: Sequence[RunRecord], source: Source, further: Sequence[Run]) -> bool:
    """Tell whether all runs of a trace are the begin of those that are told further on.

    Args:
        records: Of the trace.
        source: The trace.
        further: Runs of longer contents that may have begun as it.
    """
    return bool(records) and all(any(_is_within(r.run, run, source) for run in further) for r in records)


def is_before(records: Sequence[RunRecord], until_us: float, further: Sequence[Run]) -> bool:
    """Tell whether all runs of a trace end before the counted part does of those that are told further on.

    Args:
        records: Of the trace.
        until_us: Where that part ends, UTC microseconds.
        further: Runs of longer contents that may have begun as it.
    """
    ends = [record.run.end_us for record in records]
    is_early = all(end is not None and end <= until_us for end in ends)
    return bool(ends) and is_early and all(any(_is_one_host(r.run, f) for f in further) for r in records)


def _say_grown(source: Source, held: Sequence[Run]) -> Finding:
    text = f"is {_name(held[0])} as imported before, and further: it takes the place of that import"
    return Finding(code="CL292", severity="info", message=text, file=source.shown)


def say_begin(source: Source, further: Sequence[Run], aside: Sequence[str] = ()) -> Finding:
    """Return what is said of a log that is in the ledger further on.

    Args:
        source: The log.
        further: Its runs there.
        aside: Options that are given, and stand on none of those.
    """
    name = _name(further[0])
    text = f"is the begin of {name}, which is in the ledger further on; counted once"
    if aside:
        text += f", and {', '.join(aside)} left aside for it"
    if is_copy_by_name(source.name, name):
        return Finding(code="CL292", severity="info", message=text, file=source.shown)
    return Finding(code="CL292", severity="warning", message=text, file=source.shown, mend=_MEND_HOST)


def _say_alike(source: Source, held: Sequence[Run]) -> Finding:
    text = (
        f"begins with all that {_name(held[0])} holds; without times nobody can tell whether that "
        "is one log: both count"
    )
    return Finding(code="CL292", severity="warning", message=text, file=source.shown, mend=_MEND_TIMES)


def _may_begin(hashes: Hashes, kept: ImportedAs | None) -> bool:
    """Whether a content may begin with one of which this is kept."""
    if kept is None or kept.size_bytes is None or not 0 < kept.size_bytes < hashes.size_bytes:
        return False
    return hashes.prefixes[: len(kept.prefixes)] == kept.prefixes


def _is_within(run: Run, other: Run, source: Source) -> bool:
    if not _is_one_host(run, other):
        return False
    if run.start_us is None or other.start_us is None:
        return is_copy_by_name(source.name, _name(other))
    return run.start_us == other.start_us and (run.end_us or 0) <= (other.end_us or 0)


def _is_one_host(run: Run, other: Run) -> bool:
    return run.host_id is None or other.host_id is None or run.host_id == other.host_id


def _is_of(run: Run, source: Source, host: str | None) -> bool:
    """Whether a run may be of the same machine as a trace, as far as anybody says."""
    mine, theirs = host or host_in(source.name), run.host_id or host_in(_name(run))
    return mine is None or theirs is None or mine == theirs


def _origin(run: Run) -> Origin:
    return run.origin or Origin(instrument="")


def _instrument(origin: Origin) -> str:
    return origin.instrument.partition("/")[0]


def _size(run: Run) -> int:
    kept = imported_as(run)
    return 0 if kept is None else kept.size_bytes or 0


def _prefixes(run: Run) -> tuple[str, ...]:
    kept = imported_as(run)
    return () if kept is None else kept.prefixes


def _name(run: Run) -> str:
    return _origin(run).source_file or ""
