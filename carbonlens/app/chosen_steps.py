"""Which baseline and steps a comparison has, where the command line names them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from carbonlens.compare.from_runs import VARIANT_ROLES
from carbonlens.compare.selecting import matches, parse_selector
from carbonlens.domain.run import Run
from carbonlens.domain.study import Selector, Step, Study
from carbonlens.errors import SelectionError

UNIT_OF_THE_RUNS = ""
"""Stands for the functional unit of a study made of selectors until its runs are known."""


def of_selectors(baseline: str, steps: Sequence[str]) -> Study:
    """Return a study of selectors over the whole ledger."""
    first, *others = (_selected(text) for text in (baseline, *steps))
    _refuse_twice([first.name, *(s.name for s in others)], "the selection")
    return Study(
        name="selection",
        baseline=first.name,
        baseline_select=first.select,
        steps=tuple(others),
        unit=UNIT_OF_THE_RUNS,
        select=Selector(),
    )


def reselected(study: Study, baseline: str | None, steps: Sequence[str], runs: Sequence[Run]) -> Study:
    """Return a study with another baseline or other steps.

    Args:
        study: As its file or its runs say.
        baseline: Step or selector in place of the study's baseline.
        steps: Steps or selectors in place of the study's, in order.
        runs: Runs of the ledger.

    Raises:
        SelectionError: If a name is none of the study's, or stands twice.
    """
    known = {s.name: s for s in study.steps}

    def step_of(text: str) -> Step:
        if text in known:
            return known[text]
        if text == study.baseline:
            return Step(name=text, select=study.baseline_select)
        made = _selected(text)
        if made.select is None:
            raise SelectionError(
                f"study {study.name!r} has no step {text!r}",
                mend=f"known: {listed([study.baseline, *known])}",
            )
        return made

    first = step_of(baseline if baseline is not None else study.baseline)
    chosen = [step_of(t) for t in steps] or _others(study, first.name, runs)
    names = [s.name for s in chosen]
    _refuse_twice([first.name, *names], study.name)
    kept = {first.name, *names}
    return msgspec.structs.replace(
        study,
        orders=(),  # drawn for all combinations; some of them make no estimate
        baseline=first.name,
        baseline_select=first.select,
        baseline_title=study.baseline_title if first.name == study.baseline else (first.title or first.name),
        steps=tuple(_rebased(s, kept) for s in chosen),
    )


def _others(study: Study, first: str, runs: Sequence[Run]) -> list[Step]:
    """Return the steps beside a baseline; the study's own is one of them where a step takes its place.

    What was measured on either of the two is measured on the new one. A lattice has no other baseline.
    """
    from carbonlens.compare.lattice import is_lattice

    others = [s for s in study.steps if s.name != first]
    if len(others) == len(study.steps) or is_lattice(study, frozenset()):
        return others
    names = [s.name for s in study.steps]
    before = dict(zip(names, [study.baseline, *names], strict=False))
    replaced = (study.baseline, first)
    rebased = [
        msgspec.structs.replace(s, measured_on=first) if (s.measured_on or before[s.name]) in replaced else s
        for s in others
    ]
    own = Step(
        name=study.baseline,
        title=study.baseline_title,
        measured_on=first,
        on=() if any(s.on is not None for s in study.steps) else None,
        select=study.baseline_select,
    )
    return [*rebased, own] if _has_baseline(study, runs) else rebased


def _has_baseline(study: Study, runs: Sequence[Run]) -> bool:
    """Return whether a run measured the study's own baseline."""
    wanted = study.baseline_select
    tried = (r for r in runs if r.role in VARIANT_ROLES and r.status in ("complete", "failed"))
    if wanted is not None:
        return any(matches(wanted, r) for r in tried)
    mine = (r for r in tried if r.study == study.name or study.select is not None)
    return any(r.step == study.baseline or r.on == () for r in mine)


def _selected(text: str) -> Step:
    """Return a step of its name alone, or of a selector."""
    found = parse_selector(text)
    return Step(name=text) if found is None else Step(name=found[0], select=found[1])


def _refuse_twice(names: Sequence[str], where: str) -> None:
    if len(set(names)) < len(names):
        if names[0] in names[1:]:
            raise SelectionError(
                f"{names[0]!r} is the baseline: it cannot be a step too",
                where=where,
                mend="name other steps, or another --baseline",
            )
        twice = next(n for n in names if names.count(n) > 1)
        raise SelectionError(
            f"the step {twice!r} is named twice", where=where, mend="name the baseline and every step once"
        )


def _rebased(step: Step, kept: set[str]) -> Step:
    """Let a step whose reference was left out be measured on its new predecessor."""
    if step.measured_on is None or step.measured_on in kept:
        return step
    return msgspec.structs.replace(step, measured_on=None)


def listed(names: Sequence[str], most: int = 8) -> str:
    """Return names in one line, with how many more there are."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
