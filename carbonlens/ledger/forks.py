"""Forks: corrections of one run by hosts that did not know of each other, and what settles them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from carbonlens.domain.run import Run
from carbonlens.errors import UsageError
from carbonlens.ledger.oddities import hours_fit
from carbonlens.ledger.records import families, links

FIXED: Final = frozenset(
    {"run_id", "schema_version", "supersedes", "supersedes_study", "supersedes_also", "findings"}
)
"""A new record's own, whatever a correction says."""

_LONGEST_VALUE: Final = 40

_TAGS: Final = "tags"
_HOURS: Final = "energy_by_hour"


class Fork(msgspec.Struct, frozen=True, kw_only=True):
    """What a correction of a run must settle.

    Attributes:
        also: Corrections beside the latest; the next one supersedes them too.
        merged: The latest with what the others alone changed; ``None`` without others.
        conflicts: Fields that two corrections changed differently, such as ``units`` or
            ``tags.owner``: in ``merged`` they are the latest's.
        values: Of each such field, what the corrections have, as text, the latest's first.
    """

    also: tuple[str, ...] = ()
    merged: Run | None = None
    conflicts: tuple[str, ...] = ()
    values: Mapping[str, str] = {}

    def refuse_open(self, given: Sequence[str], run_id: str) -> None:
        """Refuse a correction that leaves a conflict open: a host's correction would be lost silently.

        Args:
            given: Fields that the correction gives; ``tags`` stands for all tags.
            run_id: Of the latest, for the message.

        Raises:
            UsageError: If it does not give every field in conflict.
        """
        left = [c for c in self.conflicts if c not in given and c.partition(".")[0] not in given]
        if left:
            raise UsageError(
                f"corrections of the run differ in {', '.join(map(self._told, left))}",
                where=", ".join((run_id, *self.also)),
                mend="give the right values: carbonlens runs supersede RUN --by FIELD=VALUE",
            )

    def _told(self, field: str) -> str:
        return f"{field} ({self.values[field]})" if field in self.values else field


def fork_of(latest: Run, runs: Sequence[Run]) -> Fork:
    """Return what a correction of a run must settle; an empty one where it was corrected once at a time.

    Args:
        latest: The record that counts.
        runs: All records of the ledger.
    """
    family = next((f for f in families(runs) if any(r is latest for r in f.leaves)), None)
    others = [] if family is None else [r for r in family.leaves if r is not latest]
    if family is None or not others:
        return Fork()
    base = _common(family.runs, [latest, *others])
    values, conflicts = _merged(latest, others, base)
    said = dict.fromkeys(f for r in (latest, *others) for f in r.findings)
    merged = msgspec.structs.replace(latest, **values, findings=tuple(said))
    timed = ("start_us", "end_us", "energy", _HOURS)
    if any(getattr(merged, n) != getattr(latest, n) for n in timed) and not hours_fit(merged):
        # Each side's hours fit its own times and energy, not those of the other.
        conflicts = [*dict.fromkeys((*conflicts, _HOURS))]
    values = {c: " or ".join(dict.fromkeys(_text_of(r, c) for r in (latest, *others))) for c in conflicts}
    return Fork(
        also=tuple(r.run_id for r in others), merged=merged, conflicts=tuple(conflicts), values=values
    )


def _text_of(run: Run, field: str) -> str:
    """Return what a record has in a field, short enough for a message."""
    name, _, tag = field.partition(".")
    value = run.tags.get(tag) if name == _TAGS and tag else getattr(run, name)
    plain = msgspec.to_builtins(value)
    text = (
        "none" if plain is None else plain if isinstance(plain, str) else msgspec.json.encode(plain).decode()
    )
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."


def _common(family: Sequence[Run], leaves: Sequence[Run]) -> Run | None:
    """Return the nearest record that all leaves correct; ``None`` where there is not just one."""
    older: dict[int, list[int]] = {}
    for newer, superseded in links(family):
        older.setdefault(newer, []).append(superseded)
    place = {id(run): i for i, run in enumerate(family)}

    def above(start: int) -> set[int]:
        found: set[int] = set()
        waiting = list(older.get(start, ()))
        while waiting:
            here = waiting.pop()
            if here not in found:
                found.add(here)
                waiting += older.get(here, ())
        return found

    shared = set.intersection(*(above(place[id(leaf)]) for leaf in leaves))
    nearest = [i for i in shared if not any(i in above(other) for other in shared if other != i)]
    return family[nearest[0]] if len(nearest) == 1 else None


def _merged(latest: Run, others: Sequence[Run], base: Run | None) -> tuple[dict[str, Any], list[str]]:
    """Return the fields to take over, and those in conflict."""
    values: dict[str, Any] = {}
    conflicts: list[str] = []
    for field in msgspec.structs.fields(Run):
        name = field.name
        if name in FIXED:
            continue
        sides = [getattr(r, name) for r in (latest, *others)]
        if name == _TAGS:
            values[name], open_tags = _merged_tags(sides, None if base is None else base.tags)
            conflicts += [f"{name}.{tag}" for tag in open_tags]
            continue
        values[name], is_open = _one(sides, () if base is None else (getattr(base, name),))
        conflicts += [name] * is_open
    return values, conflicts


def _merged_tags(
    sides: Sequence[Mapping[str, str]], base: Mapping[str, str] | None
) -> tuple[dict[str, str], list[str]]:
    found: dict[str, str] = {}
    conflicts: list[str] = []
    names = sorted({name for side in (*sides, base or {}) for name in side})
    for name in names:
        value, is_open = _one([s.get(name) for s in sides], () if base is None else (base.get(name),))
        if value is not None:
            found[name] = value
        conflicts += [name] * is_open
    return found, conflicts


def _one(sides: Sequence[Any], base: tuple[Any, ...]) -> tuple[Any, bool]:
    """Return the value that changed, and whether two changed differently: then the latest's, the first."""
    changed: list[Any] = []
    for value in sides:
        # Without a base nobody knows which side changed it.
        if (not base or value != base[0]) and value not in changed:
            changed.append(value)
    if len(changed) > 1:
        return sides[0], True
    return (changed[0] if changed else base[0]), False
