"""Balance: runs that were left out must not leave the arms on another mix of machines or workloads.

Where arms without numbered rounds were measured as often on each machine and workload, and one of
them lost runs since (no energy, a disturbed host), the others leave out as many there: the last
ones recorded, whatever they took.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Final

from carbonlens.accounting.job_runs import wholes
from carbonlens.compare.arms import Arm, with_observations
from carbonlens.compare.from_runs import VARIANT_ROLES
from carbonlens.compare.grouping import StepRuns
from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run

_TAGS: Final = ("batch", "sequence_length", "volume")

Place = Hashable


def balanced(
    arms: Sequence[Arm], groups: Mapping[str, StepRuns], failed: Collection[str]
) -> tuple[tuple[Arm, ...], tuple[Finding, ...]]:
    """Return arms that have as many runs on each machine and workload, where they were measured so.

    Args:
        arms: The usable arms, after all cleaning.
        groups: The runs that were measured, by step.
        failed: Names of steps that failed: they lack runs without having lost them to cleaning.
    """
    judged = [a for a in arms if a.name not in failed]
    if len(judged) < 2 or any(o.repeat is not None for a in judged for o in a.observations):
        return tuple(arms), ()
    measured = [_measured(groups[a.name]) for a in judged]
    kept = [Counter(_place(o.runs) for o in a.observations) for a in judged]
    is_uneven = any(k != kept[0] for k in kept)
    if not is_uneven or len(measured[0]) < 2 or any(m != measured[0] for m in measured):
        return tuple(arms), ()
    fewest = Counter({place: min(k[place] for k in kept) for place in measured[0]})
    if not fewest.total():
        return tuple(arms), ()
    made = [_evened(a, fewest) if a.name not in failed else (a, None) for a in arms]
    return tuple(a for a, _ in made), tuple(f for _, f in made if f is not None)


def _measured(runs: StepRuns) -> Counter[Place]:
    tried = [r for r in (*runs.variants, *runs.failed, *runs.cut_short) if r.role in VARIANT_ROLES]
    return Counter(_place(job) for job in wholes(tried))


def _place(runs: Sequence[Run]) -> Place:
    """Return what a run ran on, of a job of all its ranks."""
    return frozenset(
        (r.hardware, r.machine_id or r.host_id, r.workload, *(r.tags.get(t) for t in _TAGS)) for r in runs
    )


def _evened(arm: Arm, fewest: Counter[Place]) -> tuple[Arm, Finding | None]:
    left = Counter(fewest)
    kept = []
    for one in arm.observations:
        place = _place(one.runs)
        if left[place] > 0:
            left[place] -= 1
            kept.append(one)
    gone = len(arm.observations) - len(kept)
    if not gone:
        return arm, None
    finding = Finding(
        code="CL454",
        severity="warning",
        message=f"{counted(gone, 'run')} of step {arm.name!r} on a machine or workload of which another step "
        "lost runs: left out too, so that all have the same mix",
        subject=arm.name,
        mend="number the rounds (--repeat), or measure again what was left out",
    )
    return with_observations(arm, kept), finding
