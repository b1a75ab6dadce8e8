"""A study made from runs alone, for ledgers without a study file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from carbonlens.compare.parents import around
from carbonlens.domain.run import Run
from carbonlens.domain.study import Step, Study
from carbonlens.domain.units import Role
from carbonlens.errors import IncomparableError, SelectionError

VARIANT_ROLES: Final[frozenset[Role]] = frozenset({"variant", "other"})
"""``other`` is a run whose role nobody stated; with a step's name it is a variant."""

PER_RUN: Final = "run"
"""Functional unit of runs that state none."""


def study_from_runs(runs: Sequence[Run], name: str | None = None) -> Study:
    """Return the study that the runs themselves describe.

    Steps stand in order of first appearance; sets of optimizations that form a
    chain stand in the chain's order, the only one in which they can be a
    ladder. The baseline is the empty set, else the first step named. A run in which all
    the others lie, such as a script that measures several steps, is no step.

    Args:
        runs: Runs of one study.
        name: The study's name; that of the runs when ``None``.

    Raises:
        SelectionError: If no run names a step, or the sets have no baseline.
        IncomparableError: If the runs of one step state different sets.
    """
    runs = _without_frames(runs)
    refuse_mixed_sets(runs, name)
    steps = _steps(runs)
    if not steps:
        raise SelectionError(
            "no run names a step or the optimizations that were on",
            where=name,
            mend="give the runs a step, for example with --step",
        )
    empty = [s for s in steps if s.on == ()]
    if not empty and all(_is_joined(s) for s in steps):
        raise SelectionError(
            "no run has every optimization off, so there is no baseline",
            where=name,
            mend="measure the baseline: a run with every optimization off",
        )
    baseline = empty[0] if empty else steps[0]
    others = [s for s in steps if s is not baseline]
    if is_chain([baseline, *others]):
        others.sort(key=lambda s: len(s.on or ()))
    return Study(
        name=name or next((r.study for r in runs if r.study), "study"),
        baseline=baseline.name,
        steps=tuple(others),
        unit=unit_of(runs),
    )


def unit_of(runs: Iterable[Run]) -> str:
    """Return the functional unit that measured runs state; work to make a step counts in its own.

    Args:
        runs: Runs of a study.
    """
    measuring = [r for r in runs if r.role in VARIANT_ROLES]
    stated = next((r.unit for r in measuring if r.unit is not None), None)
    if stated is not None:
        return stated
    return "unit" if any(r.units is not None for r in measuring) else PER_RUN


def refuse_mixed_sets(
    runs: Sequence[Run], study: str | None = None, stated: Mapping[str, Sequence[str]] | None = None
) -> None:
    """Refuse a step whose runs had different optimizations on: they are no one arm.

    Args:
        runs: Runs of a study.
        study: Its name, for the error.
        stated: Sets that the study states, by step.

    Raises:
        IncomparableError: If the runs of one step state different sets, or another than the study.
    """
    sets = {name: {frozenset(on): None} for name, on in (stated or {}).items()}
    for run in runs:
        if run.role in VARIANT_ROLES and run.step is not None and run.on is not None:
            sets.setdefault(run.step, {}).setdefault(frozenset(run.on))
    mixed = next((name for name, some in sets.items() if len(some) > 1), None)
    if mixed is not None:
        spelled = ", ".join(joined(sorted(some)) if some else "nothing" for some in sets[mixed])
        raise IncomparableError(
            f"the runs of step {mixed!r} differ in the optimizations that were on: {spelled}",
            where=study,
            mend="give the runs of each combination a step of their own, or correct their sets",
        )


def joined(on: Sequence[str]) -> str:
    """Return the name of a set of optimizations."""
    return "+".join(on) or "baseline"


def spelled_set(step: str | None, on: Sequence[str] | None) -> frozenset[str] | None:
    """Return the set that a step's name only spells out; ``None`` if the name says more.

    Such a name is the same in any order of the set.

    Args:
        step: Name of the step, when stated.
        on: Optimizations that were on, when stated.
    """
    if on is None or (step is not None and step != joined(on)):
        return None
    return frozenset(on)


def is_chain(steps: Sequence[Step]) -> bool:
    """Return whether all steps state their sets and each set holds the smaller ones."""
    if any(s.on is None for s in steps):
        return False
    sets = sorted((frozenset(s.on or ()) for s in steps), key=len)
    return all(a < b for a, b in pairwise(sets))


def _without_frames(runs: Sequence[Run]) -> Sequence[Run]:
    """Leave out the steps in whose runs every run of two or more other steps lies."""
    if not any(r.parent_run_id for r in runs):
        return runs  # the usual case
    by_id = {r.run_id: r for r in runs}
    measuring = [r for r in runs if r.role in VARIANT_ROLES and _name_of(r) is not None]
    names = {_name_of(r) for r in measuring}
    frames = set(names)
    for run in measuring:
        frames &= {_name_of(run), *(_name_of(r) for r in around(run, by_id))}
    if len(names - frames) < 2:
        return runs
    return [r for r in runs if r.role not in VARIANT_ROLES or _name_of(r) not in frames]


def _name_of(run: Run) -> str | None:
    return joined(run.on) if run.step is None and run.on is not None else run.step


def _steps(runs: Sequence[Run]) -> list[Step]:
    steps: dict[object, Step] = {}
    for run in runs:
        if run.role not in VARIANT_ROLES or (run.step is None and run.on is None):
            continue
        spelled = spelled_set(run.step, run.on)
        key: object = run.step if spelled is None else spelled
        steps.setdefault(key, Step(name=run.step or joined(run.on or ()), on=run.on))
    return list(steps.values())


def _is_joined(step: Step) -> bool:
    return spelled_set(step.name, step.on) is not None
