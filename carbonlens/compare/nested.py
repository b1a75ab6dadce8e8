"""Nested runs: one that lies inside another run of its study is a part of that, and counts once.

Its joules are in the outer run's already. So it is no round of its step, and no effort in a sum
that has the effort around it; in another it is. What was recorded in it, as an accuracy, stays known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from carbonlens.accounting.allocation_machines import one_machine
from carbonlens.accounting.allocation_nesting import nested
from carbonlens.compare.from_runs import VARIANT_ROLES
from carbonlens.compare.parents import around
from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.domain.units import Role

EFFORT_ROLES: Final[frozenset[Role]] = frozenset({"effort", "training"})

_MEND: Final = "measure it outside of that run, or give that run another study"


class Nesting(NamedTuple):
    """Which runs of a study lie in which.

    Attributes:
        same: Ids of parts of a run of the same step and role (rank, stage): not a run of their own.
        inside: Of runs of another step or role, id to the outermost run of the study that holds it.
        efforts: Of those in effort runs of the study, id to the ids of these.
        frames: Ids of runs that only hold the rounds of their own step: no round themselves.
        numbers: Of runs without a number in such a run that has one, id to that number.
    """

    same: frozenset[str]
    inside: Mapping[str, Run]
    efforts: Mapping[str, frozenset[str]]
    frames: frozenset[str] = frozenset()
    numbers: Mapping[str, int] = {}  # a frozen record's default is never mutated


def nesting(runs: Sequence[Run], members: Collection[str]) -> Nesting:
    """Return which runs lie inside a run of a step of the study.

    Args:
        runs: Of one study.
        members: Ids of the runs that belong to baseline or steps; a run around them that
            belongs to none, such as a script that measures all steps, is no part of the comparison.
    """
    if not any(r.parent_run_id for r in runs):
        return Nesting(frozenset(), {}, {})  # the usual case
    by_id = {r.run_id: r for r in runs}
    frames, numbers = _frames(runs, by_id, members)
    same: set[str] = set()
    inside: dict[str, Run] = {}
    efforts: dict[str, frozenset[str]] = {}
    for run in runs:
        chain = list(around(run, by_id))
        outer = [r for r in chain if r.run_id in members and r.run_id not in frames]
        if any((r.step, r.role) == (run.step, run.role) for r in outer):
            same.add(run.run_id)
        elif outer and run.run_id in members:
            inside[run.run_id] = outer[-1]
            if not any(r.parent_run_id == run.run_id for r in chain):  # in a circle none holds another
                efforts[run.run_id] = frozenset(r.run_id for r in outer if r.role in EFFORT_ROLES)
    return Nesting(frozenset(same), inside, efforts, frames, numbers)


def _frames(
    runs: Sequence[Run], by_id: Mapping[str, Run], members: Collection[str]
) -> tuple[frozenset[str], dict[str, int]]:
    """Return the ids of runs around a script that measures the rounds of their step itself.

    Their parts are what was counted and numbered; as one run they would hide all of it. And the
    number of the round that such a run gives to those in it that have none.
    """
    held: dict[str, list[Run]] = {}
    for run in runs:
        if run.role not in VARIANT_ROLES or run.run_id not in members:
            continue
        outer = (r for r in around(run, by_id) if r.run_id in members and r.role in VARIANT_ROLES)
        nearest = next((r for r in outer if (r.step, r.on) == (run.step, run.on)), None)
        if nearest is not None:
            held.setdefault(nearest.run_id, []).append(run)
    frames = {i: inner for i, inner in held.items() if _is_frame(by_id[i], inner)}
    numbers = {
        r.run_id: number
        for i, inner in frames.items()
        if (number := by_id[i].repeat) is not None
        for r in inner
        if r.repeat is None
    }
    return frozenset(frames), numbers


def _is_frame(outer: Run, inner: Sequence[Run]) -> bool:
    """Return whether the work of a run is told, or its rounds are numbered, by the runs in it alone."""
    counting = [r for r in inner if r.units is not None]
    if counting and outer.units is None:
        return True
    rounds = {r.repeat for r in (inner if outer.units is None else counting)}
    return outer.repeat is None and len(rounds - {None}) > 1


def with_near_parents(
    runs: Sequence[Run], everything: Iterable[Run], heirs: Mapping[str, str]
) -> tuple[Run, ...]:
    """Return runs whose parent is the nearest run around them that is among them.

    Around a run whose process is known is what measured it, whether it names that or not.

    A run between the two may belong to no study, and a corrected run around them has the id of
    its correction.

    Args:
        runs: Those of a study.
        everything: Runs of the ledger, superseded ones too.
        heirs: Ids of corrected runs, each to that of the run which counts in its place.
    """
    if not any(r.parent_run_id or r.ancestors for r in runs):
        return tuple(runs)
    here = {r.run_id for r in runs}
    recorded = {r.run_id: r for r in everything}
    parents = {r.run_id: r.parent_run_id for r in recorded.values()}
    return tuple(_near(run, here, parents, heirs) for run in _as_they_lie(runs, recorded, heirs))


def _as_they_lie(runs: Sequence[Run], recorded: Mapping[str, Run], heirs: Mapping[str, str]) -> Iterator[Run]:
    """Yield the runs; one that lies in windows of the processes above it names the nearest as its parent.

    One that lies in nothing of the run that it names, as its process is apart, names none.
    """
    known = {i: r for i, r in recorded.items() if i not in heirs} | {r.run_id: r for r in runs}
    slices = nested(known, one_machine(known.values()), heirs).slices
    here = {r.run_id for r in runs}
    for run in runs:
        parts = slices.get(run.run_id, ())
        parent = run.parent_run_id
        if run.process is None or run.ancestors is None:
            yield run
        elif parent is None and parts and all(p.inside for p in parts):
            near = [i for p in parts for i in p.inside]
            yield replace(run, parent_run_id=next((i for i in near if i in here), near[0]))
        elif heirs.get(parent or "", parent) in known and not any(p.inside for p in parts):
            yield replace(run, parent_run_id=None)
        else:
            yield run


def about_nested(found: Nesting, runs: Sequence[Run]) -> list[Finding]:
    """Say which runs lie inside a run of another role or step; a measuring one of another step warns.

    And which only hold the rounds of their own step.
    """
    groups: dict[tuple[str | None, bool, str | None, str], list[Run]] = {}
    for run in runs:
        outer = found.inside.get(run.run_id)
        if outer is not None:
            key = (run.step, run.role in EFFORT_ROLES, outer.step, outer.role)
            groups.setdefault(key, []).append(run)
    findings = []
    for (step, is_effort, where, role), some in groups.items():
        strays = step != where and any(r.role in VARIANT_ROLES for r in some)
        how = "as effort it counts where that run does not" if is_effort else "it is no round of its own"
        lies = "lies" if len(some) == 1 else "lie"
        findings.append(
            Finding(
                code="CL449",
                severity="warning" if strays else "info",
                message=f"{counted(len(some), 'run')} of step {step!r} {lies} inside a run ({role}) of step "
                f"{where!r}, which holds the energy: {how}",
                subject=step,
                mend=_MEND,
            )
        )
    return [*findings, *_about_frames(found, runs)]


def _about_frames(found: Nesting, runs: Sequence[Run]) -> list[Finding]:
    framing: dict[str | None, int] = {}
    for run in runs:
        if run.run_id in found.frames:
            framing[run.step] = framing.get(run.step, 0) + 1
    return [
        Finding(
            code="CL449",
            severity="info",
            message=f"{counted(count, 'run holds', 'runs hold')} the measured runs of step {step!r}: "
            "those are compared, and what lies between them is in no figure",
            subject=step,
            mend="measure the script as a whole, without numbers and units inside it, to compare all of it",
        )
        for step, count in framing.items()
    ]


def why_none(found: Nesting, step: str, runs: Sequence[Run]) -> str:
    """Return why a step has no measured run where all of them lie inside another run; else nothing."""
    some = [r for r in runs if r.run_id in found.inside and r.step == step and r.role in VARIANT_ROLES]
    if not some:
        return ""
    outer = found.inside[some[0].run_id]
    return f": its measuring runs lie inside run {outer.run_id} ({outer.role} of step {outer.step!r})"


def _near(
    run: Run, here: Collection[str], parents: Mapping[str, str | None], heirs: Mapping[str, str]
) -> Run:
    seen: set[str] = set()
    parent = run.parent_run_id
    while parent is not None and parent not in seen:
        seen.add(parent)
        if parent in here:
            return run if parent == run.parent_run_id else replace(run, parent_run_id=parent)
        parent = heirs.get(parent) or parents.get(parent)
    return run
