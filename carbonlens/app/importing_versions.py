"""Versions of a run: what an import makes anew of one that the ledger holds, and what of it stays.

What the user corrected or tagged since is no part of the source: it stays. What is said now goes
before what was said then; what is not said now is as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import msgspec

from carbonlens.domain.in_study import FIELDS, InStudy, stated
from carbonlens.domain.run import Run
from carbonlens.ledger.records import superseded_ids

Key = tuple[str | None, str]

_OWN: Final = frozenset(
    {"run_id", "schema_version", "supersedes", "supersedes_study", "supersedes_also", "findings", "origin"}
)
"""Fields that every version has of its own."""

_MARKS: Final = frozenset({"tags", "site", "zone"})
"""Fields that say where a run belongs, by the command line and the map."""

_MEASURED: Final = frozenset(
    {
        *("start_us", "end_us", "duration_s", "energy", "beside", "energy_by_hour", "coverage", "lost_s"),
        *("emissions_reported_kg", "latency", "phases", "units"),
    }
)
"""Fields that a log tells more of as it grows."""


class Marks(InStudy, frozen=True, kw_only=True):
    """What the user says now of where a run belongs, and of what it is in a study.

    Attributes:
        tags: By the command line and the map.
        site, zone: ``None`` where nothing is said, or the source states one that goes before.
        aside: What else is said, and goes behind what the source states, as the user wrote it.
    """

    tags: Mapping[str, str] = msgspec.field(default_factory=dict)
    site: str | None = None
    zone: str | None = None
    aside: tuple[str, ...] = ()


class Versions:
    """Which record took the place of which.

    Args:
        find: Returns the record of an id.
    """

    def __init__(self, find: Callable[[Key], Run | None]) -> None:
        """Start with none."""
        self._find = find
        self._later: dict[Key, Run] = {}

    def add(self, run: Run) -> None:
        """Note a record; of two that take one place the later note counts."""
        for name in superseded_ids(run):
            self._later[_study_meant(run), name] = run

    def counts(self, run: Run) -> bool:
        """Whether nothing took a record's place."""
        return (run.study, run.run_id) not in self._later

    def latest(self, run: Run) -> Run:
        """Return the version of a run that counts."""
        return self.of(run)[-1]

    def of(self, run: Run) -> list[Run]:
        """Return all versions of a run, from the first to the one that counts."""
        found = [run]
        met = {_key(run)}
        # A circle of corrections, which the ledger says, ends where it began.
        while (earlier := self._before(found[0])) is not None and _key(earlier) not in met:
            met.add(_key(earlier))
            found.insert(0, earlier)
        while (later := self._later.get(_key(found[-1]))) is not None and _key(later) not in met:
            met.add(_key(later))
            found.append(later)
        return found

    def _before(self, run: Run) -> Run | None:
        return None if run.supersedes is None else self._find((_study_meant(run), run.supersedes))


def _study_meant(run: Run) -> str | None:
    return run.study if run.supersedes_study is None else run.supersedes_study or None


def _key(run: Run) -> Key:
    return run.study, run.run_id


def remade(run: Run, marks: Marks, versions: Sequence[Run], *, grown: bool) -> Run:
    """Return the version of a run that an import makes beside those before.

    Args:
        run: As the source states it now.
        marks: What is said now.
        versions: Earlier ones, in order; the last one counts.
        grown: Whether the source tells more than before.
    """
    last = versions[-1]
    by_hand = _by_hand(versions)
    kept = {f: v for f, v in by_hand.items() if f not in _MARKS and not (grown and f in _MEASURED)}
    source_tags = run.tags if grown else {}
    # Units that were told count what was measured then; how many a longer log is of is to be told anew.
    stay = FIELDS if not (grown and _is_further(run, last)) else [f for f in FIELDS if f not in _MEASURED]
    in_study = {f: kept.get(f, stated(run, f)) or getattr(last, f) for f in stay} | marks.told
    return msgspec.structs.replace(
        run,
        **{**kept, **in_study},
        host_id=run.host_id or last.host_id,
        tags={**source_tags, **last.tags, **marks.tags},
        site=marks.site or last.site,
        zone=marks.zone or last.zone,
        supersedes=last.run_id,
        supersedes_study=last.study or "",
    )


def _is_further(run: Run, last: Run) -> bool:
    return any(getattr(run, field) != getattr(last, field) for field in _MEASURED - {"units"})


def differs(run: Run, earlier: Run, *, but_for: Iterable[str] = ()) -> bool:
    """Whether two versions of a run say different things.

    Args:
        run: One.
        earlier: The other.
        but_for: Fields that are not looked at.
    """
    unseen = _OWN | set(but_for)
    return any(getattr(run, f) != getattr(earlier, f) for f in Run.__struct_fields__ if f not in unseen)


def differs_beyond_marks(run: Run, earlier: Run, marks: Marks) -> bool:
    """Whether two versions differ in more than where they belong, and what is said now of their study."""
    return differs(run, earlier, but_for=_MARKS | marks.told.keys())


def differs_beyond_times(run: Run, earlier: Run) -> bool:
    """Whether two versions differ in more than where they belong and when they were: in another zone."""
    return differs(run, earlier, but_for=_MARKS | {"start_us", "end_us", "energy_by_hour"})


def _by_hand(versions: Sequence[Run]) -> dict[str, Any]:
    """Return what the user changed: an import gives a version an origin of its own, a correction does not."""
    found: dict[str, Any] = {}
    for before, after in pairwise(versions):
        if after.origin == before.origin:
            for field in Run.__struct_fields__:
                if field not in _OWN and getattr(after, field) != getattr(before, field):
                    found[field] = getattr(after, field)
    return found
