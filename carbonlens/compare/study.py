"""Compare a study: from runs to effects, attribution, decision and break-even."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from carbonlens.accounting.amounts import NO_CURRENCY
from carbonlens.compare import ladder, lattice
from carbonlens.compare.about import about_quality, of_runs
from carbonlens.compare.adjust import adjusted
from carbonlens.compare.arms import Arm, complete_rounds, numbered_rounds
from carbonlens.compare.balance import balanced
from carbonlens.compare.break_even import break_evens
from carbonlens.compare.comparability import check, refuse_other_unit
from carbonlens.compare.contrast import scaled, total_of
from carbonlens.compare.device_settings import settled_arms
from carbonlens.compare.disagreement import disagreements
from carbonlens.compare.effort import efforts_of, total_effort
from carbonlens.compare.from_runs import PER_RUN
from carbonlens.compare.grouping import StepRuns, build_arm, group, is_per_run
from carbonlens.compare.material import Material, Outline
from carbonlens.compare.metrics import metrics_of
from carbonlens.compare.no_power import without_power
from carbonlens.compare.noise import without_disturbed
from carbonlens.compare.pareto import pareto
from carbonlens.compare.power import powers
from carbonlens.compare.regularity import about_rounds
from carbonlens.domain.comparison import Amounts, BreakEven, Comparison, StepResult
from carbonlens.domain.counting import counted
from carbonlens.domain.factor import Vector
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.domain.study import Study
from carbonlens.errors import IncomparableError, SelectionError


def compare_study(
    study: Study,
    runs: Sequence[Run],
    vector: Vector,
    outcomes: Mapping[str, Sequence[int]],
    environment: tuple[tuple[str, str], ...] = (),
) -> Comparison:
    """Compare the steps of a study.

    Args:
        study: Baseline, steps, gates, margin and volume.
        runs: Runs of the study, in any order.
        vector: Factors and prices that all arms share.
        outcomes: Per-example 0/1 outcomes by the hash of their sidecar.
        environment: Name and value of what is printed about the machine.

    Raises:
        SelectionError: If the baseline or a step has no measured run.
        IncomparableError: If arms differ in unit, boundary, workload, hardware,
            host or currency, or the runs of one step in what was on.
        ConfigError: If a name stands twice, or steps are measured on each other
            in a circle.
    """
    material, findings = material_of(study, runs, vector, outcomes)
    found = _outline(material)
    findings += found.findings + disagreements(found.steps, found.mode)
    silent_effort, effort, others = _efforts(material, found)
    findings += silent_effort
    first = material.measured(study.baseline)
    baseline_metrics = None if first is None else metrics_of(first, outcomes)
    findings += about_rounds(found.steps, baseline_metrics, study.interval)
    total = None if found.saving is None else _total(found, material.for_volume(found.saving))
    interaction = None if found.interaction_j is None else material.for_volume(found.interaction_j)
    power = powers(material, runs)
    return Comparison(
        study=study,
        basis="per_unit" if study.volume_units is None else "volume",
        mode=found.mode,
        baseline_metrics=baseline_metrics,
        baseline_amounts=material.for_volume(material.baseline.amounts),
        final_amounts=None if found.end is None else material.for_volume(found.end.amounts),
        steps=tuple(_with_break_even(s, material) for s in found.steps),
        path=found.path,
        total=total,
        interaction_j=None if interaction is None else interaction.energy_j,
        baseline_effort=material.efforts.get(study.baseline),
        accepted_effort=effort,
        rejected_effort=others,
        break_even=_break_even(found, effort, study),
        vector=vector,
        findings=_once(findings),
        environment=environment,
        total_effect=found.effect,
        total_gates=found.gates,
        total_decision=found.decision,
        attribution_method=found.method,
        orders=found.orders,
        pareto=pareto(material),
        power=power,
        no_power=without_power(material, power),
    )


def material_of(
    study: Study, runs: Sequence[Run], vector: Vector, outcomes: Mapping[str, Sequence[int]]
) -> tuple[Material, tuple[Finding, ...]]:
    """Return the usable arms of a study, made comparable, and what was found on the way.

    Args:
        study: Names baseline and steps.
        runs: Runs of the study, in any order.
        vector: Factors and prices that all arms share.
        outcomes: Per-example 0/1 outcomes by the hash of their sidecar.

    Raises:
        SelectionError: If the baseline or a step has no measured run.
        IncomparableError: If arms differ in what must be equal.
        ConfigError: If a name stands twice.
    """
    groups, findings = group(study, runs)
    per_run = is_per_run(groups)
    if per_run:
        findings += (_of_whole_runs(study),)
    built: list[Arm] = []
    for one in groups.values():
        arm, of_arm = build_arm(one, vector, per_run=per_run)
        findings += of_arm
        if arm is not None:
            built.append(arm)
    if not built or built[0].name != study.baseline:
        raise _unusable_baseline(study, next(iter(groups.values())))
    findings += _unusable(groups, {a.name for a in built})
    failed = {n for n, g in groups.items() if n != study.baseline and g.has_failed}
    numbered, of_numbers = numbered_rounds(built)
    settled, of_devices = settled_arms(numbered)
    quiet, of_noise = without_disturbed(settled)
    complete, of_rounds = complete_rounds(quiet, failed)
    arms, of_balance = balanced(complete, groups, failed)
    refuse_other_unit(arms, study)
    of_rounds += of_balance
    findings += of_numbers + of_devices + of_noise + of_rounds + check(arms, study, failed)
    arms, of_adjustment = adjusted(arms, study)
    findings += of_adjustment + _about_arms(arms, vector)
    efforts, works, of_effort = efforts_of(groups, study, vector, arms[0].boundary, _currency(arms))
    material = Material(
        study=study,
        vector=vector,
        outcomes=outcomes,
        groups=groups,
        arms={a.name: a for a in arms},
        efforts=efforts,
        works=works,
    )
    return material, findings + of_effort + about_quality(material) + of_runs(groups, arms)


def _currency(arms: Sequence[Arm]) -> str | None:
    """Return the one currency of what the arms cost; ``None`` where nobody prices it."""
    units = (a.series["cost"].mean.unit for a in arms)
    return next((u for u in units if u != NO_CURRENCY), None)


def _unusable_baseline(study: Study, group_of: StepRuns) -> SelectionError:
    """Return why the baseline is no arm: what is lacking is named."""
    lacks_units = [r for r in group_of.variants if r.units is None and r.total_energy.value is not None]
    if lacks_units and len(lacks_units) == len(group_of.variants):
        return SelectionError(
            f"baseline {study.baseline!r} does not tell its units of work, as other steps do",
            where=study.name,
            mend=f"tell how many of {study.unit} each run did: import or run again with --units N",
        )
    return SelectionError(
        f"baseline {study.baseline!r} has no run with a usable energy",
        where=study.name,
        mend="measure the baseline's energy and units of work",
    )


def _unusable(groups: Mapping[str, StepRuns], usable: Collection[str]) -> tuple[Finding, ...]:
    """Say which steps were measured and have no usable energy; one that failed is told as such."""
    return tuple(
        Finding(
            code="CL443",
            severity="error",
            message=f"step {name!r} has no run with a usable energy (missing, negative, of mixed boundaries, "
            "or without units of work): nothing is said about it",
            subject=name,
            mend="measure its energy and units of work, or leave it out with --step",
        )
        for name, one in groups.items()
        if name not in usable and not one.has_failed
    )


def _outline(material: Material) -> Outline:
    if lattice.is_lattice(material.study, material.baseline.on):
        return lattice.outline(material)
    return ladder.outline(material)


def _efforts(
    material: Material, found: Outline
) -> tuple[tuple[Finding, ...], Amounts | None, Amounts | None]:
    """Return the effort of the path and of the other steps, and what is missing of it."""
    efforts, works, study = material.efforts, material.works, material.study
    effort, silent = total_effort(efforts, works, found.made, study)
    beside = [s.name for s in study.steps if s.name not in found.made]
    others, _ = total_effort(efforts, works, (n for n in beside if n in efforts), study)
    if not silent:
        return (), effort, others
    finding = Finding(
        code="CL419",
        severity="info",
        message=f"no run says what it took to make {', '.join(silent)}: "
        + ("break-even is unknown" if effort is None else "effort and break-even are lower bounds"),
        mend="record that work as a run with role effort",
    )
    return (finding,), effort, others


def _total(found: Outline, whole: Amounts) -> Amounts:
    """Return the path's saving as the sum of the parts that are printed."""
    parts = [s.attribution for s in found.steps if s.attribution is not None]
    return total_of(parts, whole) if parts else whole


def _break_even(found: Outline, effort: Amounts | None, study: Study) -> tuple[BreakEven, ...]:
    refused = any(g.outcome == "fail" for g in found.gates)
    if found.saving is None or len(found.path) < 2 or refused:
        # What fails a gate is not served, so it earns nothing back.
        return ()
    return break_evens(effort, found.saving, study.unit, study.per_day)


def _with_break_even(step: StepResult, material: Material) -> StepResult:
    """Return a step with the break-even of its own effort over its own saving.

    That is its part of the saving, else what it saves against the step it was
    measured on. A step without recorded work has none.
    """
    own = step.attribution or step.would_have
    if step.effort is None or own is None:
        return step
    per_unit = scaled(own, 1 / material.volume)
    study = material.study
    return replace(step, break_even=break_evens(step.effort, per_unit, study.unit, study.per_day))


def _about_arms(arms: Sequence[Arm], vector: Vector) -> tuple[Finding, ...]:
    findings: list[Finding] = []
    for arm in arms:
        if any(v == 0 for v in arm.series["energy_j"].values):
            findings.append(
                Finding(
                    code="CL403",
                    severity="warning",
                    message=f"step {arm.name!r} has a round of zero energy: "
                    "differences are given, ratios are not",
                    subject=arm.name,
                    mend="check the sensor, or measure for longer",
                )
            )
    return (*findings, *_stated(arms), *_widthless(arms), *_costs(arms, vector))


def _stated(arms: Sequence[Arm]) -> tuple[Finding, ...]:
    names = {n for a in arms for n in a.series["energy_j"].mean.u_by_source}
    if not any(n.startswith("stated:") for n in names):
        return ()
    return (
        Finding(
            code="CL414",
            severity="info",
            message="stated energy intervals are taken as one error of the instrument, "
            "which cancels in ratios of runs that it measured",
            mend="state random and common error apart, or repeat the runs",
        ),
    )


def _widthless(arms: Sequence[Arm]) -> tuple[Finding, ...]:
    """Say so when nothing tells how sure the energies are."""
    names = [a.name for a in arms if a.series["energy_j"].mean.has_unknown_width]
    if not names:
        return ()
    return (
        Finding(
            code="CL426",
            severity="info",
            message=f"no source says how sure the energy of {', '.join(names)} is: neither it nor what is "
            "saved of it has an interval; those of ratios rest on the scatter of the rounds",
            mend="state an interval or the errors with the runs",
        ),
    )


def _costs(arms: Sequence[Arm], vector: Vector) -> tuple[Finding, ...]:
    """Say where costs come from when the vector has no price."""
    if vector.currency is not None:
        return ()
    runs = [r for a in arms for r in a.runs]
    silent = sum(r.cost is None for r in runs)
    if silent == len(runs) or all(a.series["cost"].mean.unit == NO_CURRENCY for a in arms):
        return ()
    if silent:
        has = "has" if silent == 1 else "have"
        message = f"{silent} of {counted(len(runs), 'run')} {has} no price; means of cost are over the others"
        return (Finding(code="CL418", severity="warning", message=message, mend="state the missing costs"),)
    message = "cost is what the runs themselves state, because no prices are given"
    return (Finding(code="CL418", severity="info", message=message, mend="state a price vector"),)


def _of_whole_runs(study: Study) -> Finding:
    """Say that a whole run is the unit; where the unit is another, a run may be any number of it.

    Raises:
        IncomparableError: If the study counts in something else than runs.
    """
    if study.unit != PER_RUN:
        raise IncomparableError(
            f"the study counts in {study.unit!r}, and no run states how many it did",
            where=study.name,
            mend="state the units of work with the runs; to compare whole runs, name no unit, or "
            f"{PER_RUN!r} in the study file",
        )
    return Finding(
        code="CL422",
        severity="info",
        message="no run states its units of work: a whole run is taken as one unit",
        subject=study.name,
        mend="state unit and units with the runs",
    )


def _once(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(dict.fromkeys(findings))
