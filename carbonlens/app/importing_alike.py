"""Runs that come as columns: which of them meet no other, and so need no look one by one.

A run that has an id of its own, and the machine to itself at its time, is kept whatever else is
imported. The others leave the columns and are looked at as records.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from carbonlens.importers.contract import AlikeRecords, RunRecord

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Mask = npt.NDArray[np.bool_]
    Whole = npt.NDArray[np.int64]

Key = tuple[str | None, str]

_OF_OURS: Final = ("@", "~")
"""What ids hold that are given to a further record of a run."""


class AlikeKept:
    """The runs that were kept as columns, found again by id, or by machine and time.

    Args:
        span_us: How near starts are of records that may be one measurement.
    """

    def __init__(self, span_us: int) -> None:
        """Start with none."""
        self._span_us = span_us
        self._waiting: list[AlikeRecords] = []
        self._by_key: dict[Key, tuple[AlikeRecords, int]] = {}
        self._by_machine: dict[tuple[str, int], list[tuple[AlikeRecords, int]]] = defaultdict(list)

    def add(self, told: AlikeRecords) -> None:
        """Keep some; they are sorted in once another file is looked at."""
        self._waiting.append(told)

    def find(self, key: Key) -> RunRecord | None:
        """Return the record of an id."""
        self._settle()
        found = self._by_key.get(key)
        return None if found is None else found[0].record(found[1])

    @property
    def keys(self) -> Mapping[Key, object]:
        """What is kept, by id."""
        self._settle()
        return self._by_key

    def starting(self, machine: str, span: int) -> list[RunRecord]:
        """Return the records of a whole machine that start in a span, counted from 1970."""
        self._settle()
        return [told.record(place) for told, place in self._by_machine.get((machine, span), ())]

    def has_start(self, machine: str, span: int) -> bool:
        """Tell whether there is any."""
        self._settle()
        return (machine, span) in self._by_machine

    def _settle(self) -> None:
        for told in self._waiting:
            study, machine = told.pattern.run.study, told.pattern.machine
            for place, run_id in enumerate(told.runs.run_ids):
                self._by_key[study, run_id] = told, place
            if machine is not None:
                for place, span in enumerate((told.runs.start_us // self._span_us).tolist()):
                    self._by_machine[machine, span].append((told, place))
        self._waiting.clear()


class Before(msgspec.Struct, frozen=True):
    """What was kept before.

    Attributes:
        known: Of ids those that are, in any study.
        has_start: Whether a record of a machine is that starts in a span.
        span_us: Length of the spans.
    """

    known: Callable[[set[str]], set[str]]
    has_start: Callable[[str, int], bool]
    span_us: int


def parted(
    singles: Sequence[RunRecord], alike: Sequence[AlikeRecords], before: Before
) -> tuple[list[RunRecord], list[AlikeRecords]]:
    """Return the records to look at one by one, in order of their lines, and the others as columns.

    Args:
        singles: Records of a source.
        alike: Its further ones, as columns.
        before: What was kept of others.
    """
    import numpy as np

    if not alike:
        return list(singles), []
    same = _same_ids(singles, alike, before)
    near = _near_starts(singles, alike, before)
    met = [one | other for one, other in zip(same, near, strict=True)]
    loose = [
        told.record(place)
        for told, out in zip(alike, met, strict=True)
        for place in np.flatnonzero(out).tolist()
    ]
    kept = [
        told.of(np.flatnonzero(~out)) if out.any() else told for told, out in zip(alike, met, strict=True)
    ]
    every = sorted([*singles, *loose], key=lambda record: record.line) if loose else list(singles)
    return every, [told for told in kept if len(told)]


def _same_ids(singles: Sequence[RunRecord], alike: Sequence[AlikeRecords], before: Before) -> list[Mask]:
    """Return which runs have an id that another has too, or might be given."""
    import numpy as np

    ids: dict[str | None, list[str]] = defaultdict(list)
    for told in alike:
        ids[told.pattern.run.study] += told.runs.run_ids
    for record in singles:
        ids[record.run.study].append(record.run.run_id)
    met = {study: _met(names, before) for study, names in ids.items()}
    made = []
    for told in alike:
        of_study = met[told.pattern.run.study]
        out = [name in of_study for name in told.runs.run_ids] if of_study else False
        made.append(np.zeros(len(told), dtype=bool) | np.asarray(out))
    return made


def _met(names: Sequence[str], before: Before) -> set[str]:
    once = set(names)
    met = {name for name, count in Counter(names).items() if count > 1} if len(once) < len(names) else set()
    met |= before.known(once)
    every = "\n".join(names)
    if any(mark in every for mark in _OF_OURS):
        met |= {name for name in once if any(mark in name for mark in _OF_OURS)}
    return met


def _near_starts(singles: Sequence[RunRecord], alike: Sequence[AlikeRecords], before: Before) -> list[Mask]:
    """Return which records of a whole machine start near another one of it."""
    import numpy as np

    starts: dict[str, list[Whole]] = defaultdict(list)
    for told in alike:
        if told.pattern.machine is not None:
            starts[told.pattern.machine].append(told.runs.start_us)
    for record in singles:
        if record.machine in starts and record.run.start_us is not None:
            starts[record.machine].append(np.array([record.run.start_us]))
    met = {machine: _crowded(np.concatenate(of), before.span_us) for machine, of in starts.items()}
    made = []
    for told in alike:
        machine = told.pattern.machine
        if machine is None:
            made.append(np.zeros(len(told), dtype=bool))
            continue
        out = np.isin(told.runs.start_us, met[machine])
        spans = set(_spans(told.runs.start_us, before.span_us))
        taken = [span for span in spans if any(before.has_start(machine, span + i) for i in (-1, 0, 1))]
        made.append(out | np.isin(told.runs.start_us // before.span_us, taken))
    return made


def _crowded(start_us: Whole, span_us: int) -> Whole:
    """Return the starts that have another within a span."""
    import numpy as np

    order = np.sort(start_us)
    close = np.diff(order) <= span_us
    return np.unique(np.concatenate((order[1:][close], order[:-1][close])))


def _spans(start_us: Whole, span_us: int) -> Iterator[int]:
    return iter((start_us // span_us).tolist())


def each_in_order(
    singles: Iterable[tuple[int, RunRecord]], alike: Iterable[AlikeRecords]
) -> Iterator[RunRecord | AlikeRecords]:
    """Yield records and columns in the order of their first lines.

    Args:
        singles: Line and record.
        alike: Columns, whose lines ascend.
    """
    every: list[tuple[int, RunRecord | AlikeRecords]] = [*singles]
    every += [(int(told.runs.lines[0]), told) for told in alike]
    return (one for _, one in sorted(every, key=lambda pair: pair[0]))
