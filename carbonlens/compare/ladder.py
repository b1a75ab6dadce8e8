"""Ladder: steps measured one on top of another, and the path that is accepted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, pairwise

from msgspec.structs import replace

from carbonlens.compare.arms import Arm
from carbonlens.compare.contrast import log_change, no_change, saving, total_of
from carbonlens.compare.decision import Judgement, failed, judge
from carbonlens.compare.effects import Change, study_effects
from carbonlens.compare.from_runs import is_chain
from carbonlens.compare.gates import check_gates
from carbonlens.compare.grouping import refuse_repeated
from carbonlens.compare.material import Material, Outline
from carbonlens.compare.metrics import metrics_of
from carbonlens.domain.comparison import Amounts, Effect, StepResult
from carbonlens.domain.finding import Finding
from carbonlens.domain.study import Step, Study
from carbonlens.errors import ConfigError, SelectionError


def references(study: Study, baseline_on: Iterable[str] = ()) -> dict[str, str]:
    """Return what each step is measured on.

    That is what the study says, else the next smaller set where the sets form
    a chain, else the preceding step, as far as its set, if stated, is held by
    the step's own.

    Args:
        study: With steps in their order.
        baseline_on: Optimizations that are on in the baseline.

    Raises:
        SelectionError: If a step is measured on one the study does not name.
        ConfigError: If a name stands twice, steps are measured on each other in
            a circle, or sets form no ladder.
    """
    refuse_repeated(study)
    sets = {study.baseline: tuple(baseline_on), **{s.name: s.on for s in study.steps}}
    known = {study.baseline, *(s.name for s in study.steps)}
    chained = _chained(study, sets[study.baseline] or ())
    found: dict[str, str] = {}
    before = study.baseline
    for step in study.steps:
        found[step.name] = step.measured_on or chained.get(step.name, before)
        if step.measured_on is None and step.name not in chained:
            _refuse_unordered(study, step, before, sets)
        before = step.name
        if found[step.name] not in known:
            raise SelectionError(
                f"step {step.name!r} is measured on {found[step.name]!r}, which the study does not name",
                where=study.name,
                mend=f"name one of {', '.join(sorted(known - {step.name}))}",
            )
    _refuse_circle(found, study)
    return found


def ladder(path: Sequence[Arm]) -> tuple[tuple[Amounts, ...], Amounts]:
    """Return the part of each step along a path, and the total they sum to.

    Args:
        path: The baseline's arm and those on top of it, in order.

    Returns:
        One saving per step after the first, and the saving of the whole path;
        an empty path saves exactly nothing.
    """
    if len(path) < 2:
        return (), no_change(path[0].amounts)
    parts = tuple(saving(a, b) for a, b in pairwise(path))
    return parts, total_of(parts, saving(path[0], path[-1]))


def outline(material: Material) -> Outline:
    """Judge every step and find the accepted path.

    Args:
        material: The study's arms.
    """
    study = material.study
    on = references(study, material.baseline.on or ())
    previous = _effects(material, on)
    against_baseline = _effects(material, dict.fromkeys(on, study.baseline))
    judged: dict[str, Judgement] = {}
    drafts: dict[str, StepResult] = {}
    for name in _in_order(on, study.baseline):
        drafts[name] = _draft(material, _step(study, name), on[name], previous, against_baseline)
        judged[name] = _judge(material, drafts[name], judged)
    path, findings = _path(material, on, judged)
    arms = [material.arms[n] for n in path]
    parts, total = ladder(arms)
    by_step = {n: material.for_volume(p) for n, p in zip(path[1:], parts, strict=True)}
    return Outline(
        mode="ladder",
        steps=tuple(
            _final(material, drafts[s.name], judged[s.name], by_step.get(s.name)) for s in study.steps
        ),
        path=path,
        saving=total,
        end=arms[-1],
        effect=against_baseline.get(path[-1]),
        gates=drafts[path[-1]].gates if len(path) > 1 else (),
        decision="adopt" if len(path) > 1 else None,
        made=path[1:],
        findings=findings,
        method="ladder" if parts else None,
    )


def _effects(material: Material, on: Mapping[str, str]) -> dict[str, Effect]:
    changes = {}
    for name, reference in on.items():
        arm, other = material.arms.get(name), material.arms.get(reference)
        if arm is not None and other is not None:
            changes[name] = Change(reference=reference, log=log_change([(1.0, arm), (-1.0, other)]))
    return study_effects(changes, material.study)


def _draft(
    material: Material,
    step: Step,
    reference: str,
    previous: Mapping[str, Effect],
    against_baseline: Mapping[str, Effect],
) -> StepResult:
    """Return what was seen of a step, before it is judged."""
    study = material.study
    arm, other = material.arms.get(step.name), material.arms.get(reference)
    measured, first = material.measured(step.name), material.measured(study.baseline)
    effect = previous.get(step.name)
    on = material.groups[step.name].on
    return StepResult(
        step=step.name,
        title=step.title or step.name,
        on=tuple(step.on) if step.on is not None else tuple(sorted(on or ())),
        on_known=on is not None,
        measured_on=reference,
        status="undetermined",
        vs_previous=effect,
        vs_baseline=against_baseline.get(step.name),
        savings=None if arm is None else material.for_volume(saving(material.baseline, arm)),
        attribution=None,
        would_have=None if arm is None or other is None else material.for_volume(saving(other, arm)),
        verdict="inconclusive" if effect is None else effect.verdict,
        gates=() if first is None else check_gates(study.gates, first, measured, material.outcomes),
        decision="undetermined",
        reasons=(),
        metrics=None if measured is None else metrics_of(measured, material.outcomes),
        effort=material.efforts.get(step.name),
        amounts=None if arm is None else material.for_volume(arm.amounts),
    )


def _judge(material: Material, draft: StepResult, judged: Mapping[str, Judgement]) -> Judgement:
    group = material.groups[draft.step]
    if group.has_failed:
        return failed(group.error)
    below = judged.get(draft.measured_on)
    return judge(
        draft.vs_previous,
        draft.gates,
        unit=material.study.unit,
        margin=material.study.margin,
        rests_on=None if below is None or below.status == "accepted" else draft.measured_on,
    )


def _final(material: Material, draft: StepResult, judgement: Judgement, part: Amounts | None) -> StepResult:
    error = material.groups[draft.step].error if judgement.status == "failed" else None
    return replace(
        draft,
        status=judgement.status,
        decision=judgement.decision,
        reason=judgement.reason,
        reasons=judgement.reasons,
        attribution=part,
        error=error,
    )


def _path(
    material: Material, on: Mapping[str, str], judged: Mapping[str, Judgement]
) -> tuple[tuple[str, ...], tuple[Finding, ...]]:
    """Return the accepted path that ends at the lowest energy.

    Accepted steps measured on the same step are alternatives: only one of them
    can be adopted without a new measurement.
    """
    accepted = [n for n in on if judged[n].status == "accepted"]
    if not accepted:
        return (material.study.baseline,), ()
    end = min(accepted, key=lambda n: material.arms[n].series["energy_j"].mean.value or 0.0)
    path = [end]
    while path[0] != material.study.baseline:
        path.insert(0, on[path[0]])
    beside = [n for n in accepted if n not in path]
    findings = tuple(
        Finding(
            code="CL412",
            severity="info",
            message=f"step {n!r} is accepted as an alternative to the path {' -> '.join(path)}, "
            "and is not summed with it",
            subject=n,
            mend=f"measure {n!r} on top of {end!r}",
        )
        for n in beside
    )
    return tuple(path), findings


def _chained(study: Study, baseline_on: Sequence[str]) -> dict[str, str]:
    if not is_chain([Step(name=study.baseline, on=tuple(baseline_on)), *study.steps]):
        return {}
    ordered = [study.baseline, *(s.name for s in sorted(study.steps, key=lambda s: len(s.on or ())))]
    return dict(zip(ordered[1:], ordered, strict=False))


def _in_order(on: Mapping[str, str], baseline: str) -> list[str]:
    """Return the steps so that each stands after the one it is measured on."""
    done = [baseline]
    while len(done) <= len(on):
        done.extend(n for n in on if n not in done and on[n] in done)
    return done[1:]


def _refuse_unordered(
    study: Study, step: Step, before: str, sets: Mapping[str, tuple[str, ...] | None]
) -> None:
    """Refuse to take a step as measured on the preceding one whose set it does not hold.

    Sets that are a chain are a ladder, other distinct ones on top of the baseline
    a lattice; what is neither has no order that a saving could be summed in.
    """
    mine, other = step.on, sets[before]
    if mine is None or other is None or frozenset(other) < frozenset(mine):
        return
    stated = {name: frozenset(on) for name, on in sets.items() if on is not None}
    for first, second in combinations(stated, 2):
        if stated[first] == stated[second]:
            raise ConfigError(
                f"steps {first!r} and {second!r} have the same optimizations on "
                f"({_spelled(sorted(stated[first]))}), so the sets form neither a ladder nor a lattice",
                where=study.name,
                mend="leave one out, correct its set, or state in a study file what each step is measured_on",
            )
    raise ConfigError(
        f"step {step.name!r} ({_spelled(mine)}) does not hold what is on in {before!r} "
        f"({_spelled(other)}), so the sets form neither a ladder nor a lattice",
        where=study.name,
        mend="measure the baseline with every optimization off and name it as baseline, or state in a study "
        "file what each step is measured_on",
    )


def _spelled(on: Sequence[str]) -> str:
    return "+".join(on) or "nothing"


def _refuse_circle(on: Mapping[str, str], study: Study) -> None:
    for start in on:
        name, hops = start, 0
        while name != study.baseline:
            name, hops = on[name], hops + 1
            if hops > len(on):
                raise ConfigError(
                    f"step {start!r} is measured on itself through others",
                    where=study.name,
                    mend="let every step be measured on one before it",
                )


def _step(study: Study, name: str) -> Step:
    return next(s for s in study.steps if s.name == name)
