"""Traces that are told anew with options that change their times, beside those held against them.

Which part of a trace counts was judged by times. Where those of one of two traces are others later, what
was left out would be in no run, or what is told would be in two: the first is refused, the second is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from carbonlens.app.importing_again import Before, is_before, is_begin, say_begin
from carbonlens.app.importing_devices import devices_of
from carbonlens.app.importing_overlaps import Beside, file_of, further, met_most, say_met, without
from carbonlens.app.importing_rest import Span, rest_in, without_rest
from carbonlens.app.importing_runs import RunKeeper
from carbonlens.app.importing_told import options_of
from carbonlens.app.importing_twins import of_host
from carbonlens.domain.finding import Finding
from carbonlens.domain.import_map import TableRule
from carbonlens.domain.run import Run
from carbonlens.errors import InputFileError
from carbonlens.importers.claiming import Claim
from carbonlens.importers.contract import RunRecord
from carbonlens.importers.harvest import Harvest, harvest
from carbonlens.importers.sources import Source

_OF_NO_TIMES: Final = ("boundary", "voltage")
_MEND_ANEW: Final = "import these traces into a new ledger, with that option from the begin"
_MEND_MOVED: Final = "tell the other one the same, or keep one of them: carbonlens runs supersede"

Times = list[tuple[object, ...]]
"""Of each run of a source: its machine, devices, begin, end and hours."""


class Anew(msgspec.Struct, frozen=True):
    """A source of which something was imported before, and what is said of it now.

    Attributes:
        claim: The source.
        told: What was said of it before.
        said: What is said now.
        table: How the columns of a table of no known format are read.
        met: What was said by the readings that tell what it is.
    """

    claim: Claim
    told: Mapping[str, str]
    said: Mapping[str, str]
    table: TableRule | None
    met: list[Finding] = msgspec.field(default_factory=list)

    @property
    def _others(self) -> list[str]:
        """Options that are said otherwise than before, and may change times."""
        names = (n for n, text in self.said.items() if self.told.get(n) != text)
        return sorted(n for n in names if n not in _OF_NO_TIMES)

    def moving(self) -> list[str]:
        """Return the options whose texts change the times that result; those together where none does alone.

        Raises:
            InputFileError: If nothing of the source can be used with what is said now.
        """
        names = self._others
        if not names:
            return []
        before = self._times_with(())
        if _times(self._read(self.said)) == before:
            return []
        alone = [n for n in names if self._times_with((n,)) != before] if len(names) > 1 else []
        return alone or names

    def begin_of(self, before: Before, host: str | None, aside: Sequence[str]) -> Finding | None:
        """Return what is said of a trace that is the begin of one in the ledger; ``None`` where it is not.

        It is, if it is read as that one was: whatever is said now.

        Args:
            before: What was imported before.
            host: Machine that its runs are of, where the content names none.
            aside: Options that are given, and stand on none of those runs.
        """
        source = self.claim.group.main
        if before.further and (before.is_begin or self._begins(before.further, host)):
            return say_begin(source, before.further, aside)
        return None

    def _begins(self, longer: Sequence[Run], host: str | None) -> bool:
        kept = rest_in(self.told)
        if is_begin(self._records(kept, host), self.claim.group.main, longer):
            return True
        # Of a log that is counted in part an older copy may end before that part.
        return kept is not None and is_before(self._records(None, host), kept[1], longer)

    def _records(self, kept_us: Span | None, host: str | None) -> list[RunRecord]:
        """Return the runs of what stands in a time, as it was read before; none where nothing can be used."""
        try:
            records = self._read({}, kept_us).singles
        except InputFileError:
            return []
        return records if host is None else [of_host(r, host) for r in records]

    def checked(self, before: Before, cut_beside: Callable[[Run], Sequence[Run]]) -> Before:
        """Return what was imported before, for a source that may be told anew.

        Args:
            before: What was imported of it.
            cut_beside: Tells the runs that count and of which a part is left out beside a run.

        Raises:
            InputFileError: If what is left out of a trace would be nowhere.
        """
        if not before.further:
            self._check(before, cut_beside)
        if not (before.grown or before.further):
            return before
        # Which part of it counts is to be found anew.
        return msgspec.structs.replace(before, told=without_rest(before.told))

    def _check(self, before: Before, cut_beside: Callable[[Run], Sequence[Run]]) -> None:
        """Refuse other times for a trace of which a part is left out, or beside which one of another is."""
        if not self._others:
            return
        if rest_in(before.told) is not None:
            what, which = "is counted in part, beside another trace", "its times"
        else:
            cut = next((cut for run in (*before.runs, *before.held) for cut in cut_beside(run)), None)
            if cut is None:
                return
            what, which = f"has a time that is left out of {_name(cut)}", "it"
        moving = self.moving()
        if moving:
            text = f"{what}, and {' and '.join(moving)} would change {which}"
            raise InputFileError(text, where=self.claim.group.main.shown, mend=_MEND_ANEW)

    def _times_with(self, names: Iterable[str]) -> Times | None:
        """Return the times as some of the options make them; ``None`` where nothing can be used then."""
        try:
            return _times(self._read({name: self.said[name] for name in names}))
        except InputFileError:
            return None

    def _read(self, said: Mapping[str, str], kept_us: Span | None = None) -> Harvest:
        """Return all of the source, or what of it stands in a time."""
        options = msgspec.structs.replace(options_of({**self.told, **said}, self.table), kept_us=kept_us)
        try:
            got = harvest(self.claim.importer, self.claim.group, options)
            self.met.extend(got.findings)
            return got
        finally:
            # What had to be repaired is said by the reading that counts.
            for source in self.claim.group.sources:
                source.repairs.clear()


def _name(run: Run) -> str:
    return file_of(run) or f"run {run.run_id}"


def _times(got: Harvest) -> Times:
    runs = [record.run for record in got.records]
    return [
        (r.host_id, *devices_of(r), r.start_us, r.end_us, *sorted({e.hour_utc for e in r.energy_by_hour}))
        for r in runs
    ]


class Moved:
    """The runs of traces that an import gave other times.

    Args:
        runs: The runs that it keeps.
    """

    def __init__(self, runs: RunKeeper) -> None:
        """Start with none."""
        self._runs = runs
        self._moved: list[tuple[Source, str, Run]] = []

    def note(self, claim: Claim, before: Before) -> None:
        """Note the runs of a content whose times are others than they were.

        Args:
            claim: The content.
            before: What was imported of it before.
        """
        for old in before.runs if claim.importer.kind == "trace" else ():
            for new in self._runs.latest((old,)):
                if new.start_us is not None and (new.start_us, new.end_us) != (old.start_us, old.end_us):
                    self._moved.append((claim.group.main, claim.importer.name, new))

    def doubled(self) -> Iterator[Finding]:
        """Yield what is said of those that stand on the time of others, once all are told anew."""
        told: set[tuple[str | None, str]] = set()
        for source, instrument, run in self._moved:
            told.add((run.study, run.run_id))
            contents = {(run.origin.source_sha256 if run.origin else None) or ""}
            near = without(self._runs.beside(instrument, run), contents, (), run.run_id)
            record = RunRecord(run=run, measured=self._runs.samples_of(run))
            # Of two that were moved one tells of both.
            others = [h for h in near if (h.study, h.run_id) not in told]
            said = _doubled([Beside(record, h, self._runs.samples_of(h)) for h in others], source)
            if said is not None:
                yield said


def _doubled(every: Sequence[Beside], source: Source) -> Finding | None:
    others = [o for o in every if not o.is_another_hosts]
    sure = [o for o in others if o.is_sure]
    if not sure:
        unsure = met_most(others, source)
        return None if unsure is None else say_met(source, *unsure)
    most = max(sure, key=lambda o: o.overlap_s)
    text = (
        f"tells of {most.overlap_s:.6g} s of {most.devices[0]} that {_name(most.held)}"
        f"{further(len(sure) - 1)} tells of too, now that its times are others: both are counted"
    )
    return Finding(code="CL296", severity="warning", message=text, file=source.shown, mend=_MEND_MOVED)
